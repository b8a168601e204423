/*
 * Own addresses; see own.h.  The kernel is the only sender that is listened
 * to (nl_pid 0).
 */
#include "proxyd/own.h"

#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hostname.h"

#define ADDRS_MAX 4096

/* The same address may be on two interfaces and leave one of them. */
struct own_addr {
	struct hostname_addr addr;
	unsigned index; /* of the interface */
};

struct own {
	int fd;
	struct event *ev;
	struct own_addr *addrs;
	size_t n;
	bool done; /* the dump is complete */
	uint32_t seq;
	char buf[32768];
};

bool
own_has(const struct own *own, const struct hostname_addr *addr)
{
	size_t i;

	for (i = 0; i < own->n; i++)
		if (hostname_addr_equal(&own->addrs[i].addr, addr))
			return true;
	return false;
}

static void
del(struct own *own, const struct own_addr *entry)
{
	size_t i;

	for (i = 0; i < own->n; i++)
		if (own->addrs[i].index == entry->index &&
		    hostname_addr_equal(&own->addrs[i].addr, &entry->addr)) {
			own->addrs[i] = own->addrs[--own->n];
			return;
		}
}

/* Also sent when an address that is known changes. */
static void
add(struct own *own, const struct own_addr *entry)
{
	struct own_addr *grown;

	del(own, entry);
	if (own->n >= ADDRS_MAX)
		return;
	if (own->n % 16 == 0) {
		grown = reallocarray(own->addrs, own->n + 16, sizeof(*grown));
		if (grown == NULL)
			return;
		own->addrs = grown;
	}
	own->addrs[own->n++] = *entry;
}

/*
 * IFA_LOCAL is ours on a point-to-point link, IFA_ADDRESS the other's.  The
 * attributes are walked by hand: the kernel's macros mix signed and unsigned.
 */
static void
read_address(struct own *own, unsigned type, const char *at, size_t len)
{
	const char *end = at + len;
	struct ifaddrmsg ifa;
	struct own_addr entry = { .addr = { .family = 6 } };
	struct rtattr attr;
	bool found = false;
	size_t want;

	if (len < sizeof(ifa))
		return;
	memcpy(&ifa, at, sizeof(ifa));
	want = ifa.ifa_family == AF_INET ? 4 : 16;
	entry.addr.family = want == 4 ? 4 : 6;
	entry.index = ifa.ifa_index;
	at += NLMSG_ALIGN(sizeof(ifa));
	while (end - at >= (ptrdiff_t)sizeof(attr)) {
		memcpy(&attr, at, sizeof(attr));
		if (attr.rta_len < sizeof(attr) || attr.rta_len > end - at)
			return;
		if (attr.rta_len == sizeof(attr) + want &&
		    (attr.rta_type == IFA_LOCAL ||
			(attr.rta_type == IFA_ADDRESS && !found))) {
			memcpy(entry.addr.bytes, at + sizeof(attr), want);
			found = true;
		}
		at += RTA_ALIGN(attr.rta_len);
	}
	if (!found)
		return;
	if (type == RTM_NEWADDR)
		add(own, &entry);
	else
		del(own, &entry);
}

static int
ask(struct own *own)
{
	struct {
		struct nlmsghdr head;
		struct ifaddrmsg body;
	} req = { .head = { .nlmsg_len = sizeof(req),
		      .nlmsg_type = RTM_GETADDR,
		      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		      .nlmsg_seq = ++own->seq } };

	if (send(own->fd, &req, sizeof(req), 0) < 0)
		return -errno;
	return 0;
}

/* One datagram of the kernel; -EAGAIN when there is none. */
static int
read_some(struct own *own, int flags)
{
	struct sockaddr_nl from;
	socklen_t from_len = sizeof(from);
	struct nlmsghdr msg;
	size_t at = 0, size;
	ssize_t n;

	n = recvfrom(own->fd, own->buf, sizeof(own->buf), flags,
	    (struct sockaddr *)&from, &from_len);
	if (n < 0)
		return -errno;
	if (from_len != sizeof(from) || from.nl_pid != 0)
		return 0;
	for (size = (size_t)n; size - at >= sizeof(msg);) {
		memcpy(&msg, own->buf + at, sizeof(msg));
		if (msg.nlmsg_len < sizeof(msg) || msg.nlmsg_len > size - at)
			break;
		if (msg.nlmsg_type == NLMSG_DONE ||
		    msg.nlmsg_type == NLMSG_ERROR)
			own->done = true;
		if (msg.nlmsg_type == RTM_NEWADDR ||
		    msg.nlmsg_type == RTM_DELADDR)
			read_address(own, msg.nlmsg_type,
			    own->buf + at + NLMSG_HDRLEN,
			    msg.nlmsg_len - NLMSG_HDRLEN);
		at += NLMSG_ALIGN(msg.nlmsg_len);
		if (at > size)
			break;
	}
	return 0;
}

struct own *
own_new(void)
{
	struct sockaddr_nl sa = { .nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	struct own *own = calloc(1, sizeof(*own));

	if (own == NULL)
		return NULL;
	own->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (own->fd < 0 ||
	    bind(own->fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    ask(own) < 0)
		goto fail;
	while (!own->done)
		if (read_some(own, 0) < 0)
			goto fail;
	return own;
fail:
	own_free(own);
	return NULL;
}

static void
on_change(int fd, short what, void *arg)
{
	struct own *own = arg;
	int r;

	(void)fd;
	(void)what;
	r = read_some(own, MSG_DONTWAIT);
	/* Changes were lost: ask for everything; what is gone stays refused
	 * until the next start, which errs on the safe side. */
	if (r == -ENOBUFS)
		(void)ask(own);
}

int
own_start(struct own *own, struct event_base *base)
{
	own->ev =
	    event_new(base, own->fd, EV_READ | EV_PERSIST, on_change, own);
	if (own->ev == NULL || event_add(own->ev, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void
own_free(struct own *own)
{
	if (own == NULL)
		return;
	if (own->ev != NULL)
		event_free(own->ev);
	if (own->fd >= 0)
		(void)close(own->fd);
	free(own->addrs);
	free(own);
}
