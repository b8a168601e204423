/*
 * Happy eyeballs; see dial.h. Runs in stockade-proxyd. Only addresses that its
 * caller has checked come here.
 */
#include "proxyd/dial.h"

#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxyd/proxyd.h"

static const struct timeval next_attempt = { 0, 250000 };
static const struct timeval at_once = { 0, 0 };

struct attempt {
	struct dial *dial;
	int fd;
	struct event ev;
};

struct dial {
	struct proxyd *p;
	void (*fn)(void *ctx, int fd);
	void *ctx;
	struct event timer;
	int error; /* of the last failure, negative */
	uint16_t port;
	size_t n;
	size_t next;
	size_t open;
	struct hostname_addr addrs[DIAL_MAX];
	struct attempt attempts[];
};

static void
attempt_close(struct attempt *attempt)
{
	if (attempt->fd < 0)
		return;
	(void)event_del(&attempt->ev);
	(void)close(attempt->fd);
	attempt->fd = -1;
	attempt->dial->open--;
}

void
dial_cancel(struct dial *dial)
{
	size_t i;

	if (dial == NULL)
		return;
	(void)event_del(&dial->timer);
	for (i = 0; i < dial->next; i++)
		attempt_close(&dial->attempts[i]);
	free(dial);
}

/* Ends the dial with fd, or with the error if fd is negative. */
static void
finish(struct dial *dial, int fd)
{
	void (*fn)(void *, int) = dial->fn;
	void *ctx = dial->ctx;

	dial_cancel(dial);
	fn(ctx, fd);
}

static void dial_step(struct dial *dial);

static void
on_connect(int fd, short what, void *arg)
{
	struct attempt *attempt = arg;
	struct dial *dial = attempt->dial;
	socklen_t len = sizeof(int);
	int error = 0;

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error == 0) {
		(void)event_del(&attempt->ev);
		attempt->fd = -1;
		finish(dial, fd);
		return;
	}
	dial->error = -error;
	attempt_close(attempt);
	dial_step(dial);
}

static void
set_options(int fd)
{
	static const int on = 1, idle = 60;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
}

/* One attempt under way, or -errno. */
static int
attempt_start(struct dial *dial, struct attempt *attempt,
    const struct hostname_addr *addr)
{
	struct sockaddr_storage ss;
	socklen_t len = hostname_addr_to_sockaddr(addr, dial->port, &ss);
	int fd;

	attempt->dial = dial;
	attempt->fd = -1;
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    IPPROTO_TCP);
	if (fd < 0)
		return -errno;
	set_options(fd);
	if (connect(fd, (const struct sockaddr *)&ss, len) < 0 &&
	    errno != EINPROGRESS) {
		int error = -errno;

		(void)close(fd);
		return error;
	}
	attempt->fd = fd;
	dial->open++;
	(void)event_assign(&attempt->ev, dial->p->base, fd, EV_WRITE,
	    on_connect, attempt);
	(void)event_add(&attempt->ev, NULL);
	return 0;
}

/* Starts the next attempt; ends the dial when none is left. */
static void
dial_step(struct dial *dial)
{
	while (dial->next < dial->n) {
		size_t i = dial->next++;
		int r =
		    attempt_start(dial, &dial->attempts[i], &dial->addrs[i]);

		if (r < 0) {
			dial->error = r;
			continue;
		}
		if (dial->next < dial->n)
			(void)event_add(&dial->timer, &next_attempt);
		return;
	}
	if (dial->open == 0)
		finish(dial, dial->error);
}

static void
on_timer(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	dial_step(arg);
}

struct dial *
dial_start(struct proxyd *p, const struct hostname_addr *addrs, size_t n,
    uint16_t port, void (*fn)(void *, int), void *ctx)
{
	struct dial *dial;
	int r;

	if (n > DIAL_MAX)
		n = DIAL_MAX;
	dial = calloc(1, sizeof(*dial) + n * sizeof(struct attempt));
	if (dial == NULL)
		return NULL;
	dial->p = p;
	dial->fn = fn;
	dial->ctx = ctx;
	dial->error = -EHOSTUNREACH;
	dial->port = port;
	dial->n = n;
	memcpy(dial->addrs, addrs, n * sizeof(*addrs));
	(void)event_assign(&dial->timer, p->base, -1, 0, on_timer, dial);
	/*
	 * The first attempt starts here; if it fails at once, the answer
	 * still comes from the loop.
	 */
	if (n > 0) {
		dial->next = 1;
		r = attempt_start(dial, &dial->attempts[0], &dial->addrs[0]);
		dial->error = r < 0 ? r : dial->error;
	}
	if (dial->open == 0)
		(void)event_add(&dial->timer, &at_once);
	else if (n > 1)
		(void)event_add(&dial->timer, &next_attempt);
	return dial;
}

void
dial_interleave(struct hostname_addr *addrs, size_t n)
{
	struct hostname_addr move;
	uint8_t want = 6;
	size_t i, k;

	for (i = 0; i < n; i++) {
		for (k = i; k < n && addrs[k].family != want; k++)
			continue;
		if (k < n) {
			move = addrs[k];
			memmove(addrs + i + 1, addrs + i,
			    (k - i) * sizeof(*addrs));
			addrs[i] = move;
		}
		want = want == 6 ? 4 : 6;
	}
}
