/*
 * Sessions; see session.h.  Descriptors and lists come from the supervisor,
 * which relays the lists of stockade-control unread: they are decoded here
 * and each pattern is checked again.
 */
#include "proxyd/session.h"

#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "protocol/egress.h"
#include "proxyd/decide.h"
#include "proxyd/proxyd.h"

#define ACCEPT_TURN 8 /* connections taken before the loop goes on */

struct session *
session_find(struct proxyd *p, uint64_t id)
{
	struct session *session;

	LIST_FOREACH (session, &p->sessions, link)
		if (session->id == id)
			return session;
	return NULL;
}

static const char *
view_text(const struct wire_view *view)
{
	return (const char *)(const void *)view->data;
}

static int
compile(const struct egress_lists *in, struct decide_lists *lists)
{
	size_t i;
	int r = 0;

	for (i = 0; i < in->ndeny && r == 0; i++)
		r = decide_lists_deny(lists, view_text(&in->deny[i].pattern),
		    in->deny[i].pattern.len, view_text(&in->deny[i].origin),
		    in->deny[i].origin.len);
	for (i = 0; i < in->nallow && r == 0; i++) {
		const struct egress_rule *rule = &in->allow[i];

		if (rule->port > 65535)
			return -EINVAL;
		r = decide_lists_allow(lists, view_text(&rule->pattern),
		    rule->pattern.len, (uint16_t)rule->port,
		    view_text(&rule->origin), rule->origin.len);
	}
	for (i = 0; i < in->nprivate && r == 0; i++)
		r = decide_lists_private(lists,
		    view_text(&in->private_[i].cidr), in->private_[i].cidr.len,
		    view_text(&in->private_[i].host), in->private_[i].host.len);
	return r;
}

/* The session's lists; any fault gives lists that allow nothing. */
static struct decide_lists *
read_lists(int fd, size_t *ret_tunnels)
{
	/* 160 KiB of views; the process is single-threaded. */
	static struct egress_lists in;
	struct memfd_map map = { NULL, 0 };
	struct decide_lists *lists = NULL;
	int r;

	r = memfd_open_map(fd, EGRESS_BYTES_MAX, &map);
	if (r == 0)
		r = egress_lists_decode(map.data, map.len, &in);
	if (r == 0) {
		lists = decide_lists_new(in.network);
		r = lists == NULL ? -ENOMEM : compile(&in, lists);
		*ret_tunnels = (size_t)in.tunnels_max;
	}
	memfd_unmap(&map);
	if (r < 0) {
		log_event(EV_INTERNAL, LF_STR(LK_STEP, "egress lists"),
		    LF_NUM(LK_ERRNO, -r));
		decide_lists_free(lists);
		return decide_lists_new(false);
	}
	return lists;
}

/* No descriptors: drop one connection by the reserve and wait a little. */
static void
out_of_descriptors(struct proxyd *p, int listener)
{
	static const struct timeval wait = { 0, 100000 };
	int fd;

	if (p->reserve_fd >= 0) {
		(void)close(p->reserve_fd);
		/* cppcheck-suppress nullPointer; accept4(2) permits it */
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			(void)close(fd);
		p->reserve_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	}
	session_accept_all(p, false);
	(void)event_add(p->accept_again, &wait);
}

static void
on_accept(int fd, short what, void *arg)
{
	struct session_listener *listener = arg;
	struct session *session = listener->session;
	struct proxyd *p = session->p;
	bool over;
	int i, c;

	(void)what;
	for (i = 0; i < ACCEPT_TURN; i++) {
		/* cppcheck-suppress nullPointer; accept4(2) permits it */
		c = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (c < 0) {
			if (errno == EMFILE || errno == ENFILE ||
			    errno == ENOBUFS || errno == ENOMEM)
				out_of_descriptors(p, fd);
			return;
		}
		over = session->nconns >= session->tunnels_max ||
		    session->nconns >= p->conns_session_max ||
		    p->nconns >= p->conns_max;
		if (session->nconns >=
			session->tunnels_max + SESSION_OVERFLOW ||
		    session->nconns >=
			p->conns_session_max + SESSION_OVERFLOW ||
		    p->nconns >= p->conns_max + SESSION_OVERFLOW)
			(void)close(c);
		else
			conn_start(p, session, c, listener->kind, over);
	}
}

/* It must be a listening TCP socket; options pass on to what is accepted. */
static int
check_listener(int fd)
{
	static const int on = 1, idle = 60;
	socklen_t len = sizeof(int);
	int value = 0, flags;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &len) < 0 ||
	    value != 1)
		return -EINVAL;
	len = sizeof(int);
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &len) < 0 ||
	    value != IPPROTO_TCP)
		return -EINVAL;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	return 0;
}

static void
listener_start(struct session *session, enum conn_listener kind, int fd)
{
	struct session_listener *listener = &session->listeners[kind];

	listener->session = session;
	listener->fd = fd;
	listener->kind = kind;
	(void)event_assign(&listener->ev, session->p->base, fd,
	    EV_READ | EV_PERSIST, on_accept, listener);
	(void)event_add(&listener->ev, NULL);
}

int
session_open(struct proxyd *p, uint64_t id, int fds[3])
{
	autoclose int http = take_fd(&fds[0]);
	autoclose int socks = take_fd(&fds[1]);
	autoclose int lists = take_fd(&fds[2]);
	struct session *session;

	if (session_find(p, id) != NULL)
		return -EEXIST;
	if (check_listener(http) < 0 || check_listener(socks) < 0)
		return -EINVAL;
	session = calloc(1, sizeof(*session));
	if (session == NULL)
		return -ENOMEM;
	session->p = p;
	session->id = id;
	session->tunnels_max = p->conns_session_max;
	LIST_INIT(&session->conns);
	report_init(&session->report);
	session->lists = read_lists(lists, &session->tunnels_max);
	if (session->lists == NULL) {
		free(session);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&p->sessions, session, link);
	listener_start(session, CONN_HTTP, take_fd(&http));
	listener_start(session, CONN_SOCKS, take_fd(&socks));
	log_event(EV_EGRESS_OPENED, LF_NUM(LK_SANDBOX, id));
	return 0;
}

void
session_free(struct session *session)
{
	struct conn *conn;
	size_t i;

	if (session == NULL)
		return;
	for (i = 0; i < 2; i++) {
		(void)event_del(&session->listeners[i].ev);
		(void)close(session->listeners[i].fd);
	}
	while ((conn = LIST_FIRST(&session->conns)) != NULL)
		conn_free(conn, true);
	report_done(session);
	decide_lists_free(session->lists);
	LIST_REMOVE(session, link);
	log_event(EV_EGRESS_CLOSED, LF_NUM(LK_SANDBOX, session->id));
	free(session);
}

void
session_accept_all(struct proxyd *p, bool on)
{
	struct session *session;
	size_t i;

	LIST_FOREACH (session, &p->sessions, link)
		for (i = 0; i < 2; i++)
			if (on)
				(void)event_add(&session->listeners[i].ev,
				    NULL);
			else
				(void)event_del(&session->listeners[i].ev);
}
