/*
 * A channel on a libevent loop; see chan.h for the rules. The far end is
 * hostile: it may flood, stop reading, send descriptors that nobody asked for,
 * or go away in the middle of a callback. Each of these ends the channel and
 * nothing else.
 */
#include "common/chan.h"

#include <sys/queue.h>
#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

/* Packets read in one turn of the loop, so that one busy peer cannot starve
 * the others. */
#define READ_BURST 64

struct packet {
	STAILQ_ENTRY(packet) next;
	size_t len;
	size_t nfds;
	int fds[CHAN_FDS_MAX];
	uint8_t data[];
};

STAILQ_HEAD(packet_queue, packet);

struct chan {
	const struct chan_ops *ops;
	void *ctx;
	int fd;
	struct event *on_read;
	struct event *on_write;
	struct event *on_end; /* made active by hand: the deferred end */
	struct packet_queue queue;
	size_t queue_bytes;
	size_t queue_packets;
	enum chan_end why;
	bool ended; /* nothing is sent or received any more */
	/* The far end is gone; what it had sent is still to be read. */
	bool send_dead;
	bool paused;
	bool busy; /* inside on_packet */
	bool doomed; /* chan_free was called meanwhile */
};

static void
packet_free(struct packet *p)
{
	close_all(p->fds, p->nfds);
	free(p);
}

static void
drop_queue(struct chan *c)
{
	struct packet *p;

	while ((p = STAILQ_FIRST(&c->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->queue, next);
		packet_free(p);
	}
	c->queue_bytes = 0;
	c->queue_packets = 0;
}

/* Ends the channel; on_end follows from the loop. */
static void
end_later(struct chan *c, enum chan_end why)
{
	if (c->ended)
		return;
	c->ended = true;
	c->why = why;
	(void)event_del(c->on_read);
	(void)event_del(c->on_write);
	drop_queue(c);
	event_active(c->on_end, EV_TIMEOUT, 1);
}

static void
end_now(evutil_socket_t fd, short what, void *arg)
{
	struct chan *c = arg;

	(void)fd;
	(void)what;
	c->ops->on_end(c->ctx, c->why);
}

/* The far end is gone. Its last packets may still wait in the socket, so the
 * end is told by the reading side, unless that is stopped. */
static void
send_gone(struct chan *c)
{
	c->send_dead = true;
	(void)event_del(c->on_write);
	drop_queue(c);
	if (c->paused)
		end_later(c, CHAN_END_EOF);
}

static bool
is_gone(int error)
{
	return error == -EPIPE || error == -ECONNRESET ||
	    error == -ECONNREFUSED || error == -ENOTCONN;
}

static bool
is_full(int error)
{
	return error == -EAGAIN || error == -ENOBUFS || error == -ETOOMANYREFS;
}

static void
release(struct chan *c)
{
	drop_queue(c);
	if (c->on_read != NULL)
		event_free(c->on_read);
	if (c->on_write != NULL)
		event_free(c->on_write);
	if (c->on_end != NULL)
		event_free(c->on_end);
	if (c->fd >= 0)
		(void)close(c->fd);
	free(c);
}

/* Reads one packet; false when there is no more to do now. */
static bool
read_one(struct chan *c)
{
	static uint8_t buf[CHAN_PACKET_MAX];
	int fds[CHAN_FDS_MAX];
	size_t nfds = 0;
	ptrdiff_t len;

	len = chan_recv_fd(c->fd, buf, sizeof(buf), fds, &nfds);
	if (len == -EAGAIN)
		return false;
	if (len <= 0) {
		end_later(c,
		    len == 0 || len == -ECONNRESET ? CHAN_END_EOF :
			len == -EPROTO             ? CHAN_END_RULES :
						     CHAN_END_ERROR);
		return false;
	}
	c->ops->on_packet(c->ctx, buf, (size_t)len, fds, nfds);
	return !c->doomed && !c->ended && !c->paused;
}

static void
readable(evutil_socket_t fd, short what, void *arg)
{
	struct chan *c = arg;

	(void)fd;
	(void)what;
	c->busy = true;
	for (int i = 0; i < READ_BURST; i++)
		if (!read_one(c))
			break;
	c->busy = false;
	if (c->doomed)
		release(c);
}

static void
writable(evutil_socket_t fd, short what, void *arg)
{
	struct chan *c = arg;
	struct packet *p;

	(void)fd;
	(void)what;
	while ((p = STAILQ_FIRST(&c->queue)) != NULL) {
		int r = chan_send_fd(c->fd, p->data, p->len, p->fds, p->nfds);

		if (is_full(r))
			return;
		if (is_gone(r)) {
			send_gone(c);
			return;
		}
		if (r < 0) {
			end_later(c, CHAN_END_ERROR);
			return;
		}
		STAILQ_REMOVE_HEAD(&c->queue, next);
		c->queue_bytes -= p->len;
		c->queue_packets--;
		packet_free(p);
	}
	(void)event_del(c->on_write);
}

/* SEQPACKET, close-on-exec, non-blocking; false when fd is something else. */
static bool
prepare_fd(int fd)
{
	socklen_t size = sizeof(int);
	int type = 0;
	int flags;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
	    type != SOCK_SEQPACKET)
		return false;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return false;
	flags = fcntl(fd, F_GETFL);
	return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) >= 0;
}

struct chan *
chan_new(struct event_base *base, int fd, const struct chan_ops *ops, void *ctx)
{
	struct chan *c;

	if (!prepare_fd(fd) || (c = calloc(1, sizeof(*c))) == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return NULL;
	}
	c->ops = ops;
	c->ctx = ctx;
	c->fd = fd;
	STAILQ_INIT(&c->queue);
	c->on_read = event_new(base, fd, EV_READ | EV_PERSIST, readable, c);
	c->on_write = event_new(base, fd, EV_WRITE | EV_PERSIST, writable, c);
	c->on_end = event_new(base, -1, 0, end_now, c);
	if (c->on_read == NULL || c->on_write == NULL || c->on_end == NULL ||
	    event_add(c->on_read, NULL) < 0) {
		release(c);
		return NULL;
	}
	return c;
}

void
chan_free(struct chan *c)
{
	if (c == NULL)
		return;
	if (!c->busy) {
		release(c);
		return;
	}
	/* Inside on_packet: readable() finishes the work. */
	c->doomed = true;
	c->ended = true;
	(void)event_del(c->on_read);
	(void)event_del(c->on_write);
	(void)event_del(c->on_end);
	drop_queue(c);
}

/* Copies the packet to the end of the queue; takes the descriptors. */
static int
enqueue(struct chan *c, const void *data, size_t len, int *fds, size_t nfds)
{
	struct packet *p;

	if (c->queue_packets >= CHAN_QUEUE_PACKETS ||
	    c->queue_bytes + len > CHAN_QUEUE_BYTES ||
	    (p = malloc(sizeof(*p) + len)) == NULL) {
		close_all(fds, nfds);
		end_later(c, CHAN_END_QUEUE);
		return -ENOBUFS;
	}
	p->len = len;
	p->nfds = nfds;
	memcpy(p->data, data, len);
	for (size_t i = 0; i < nfds; i++)
		p->fds[i] = take_fd(&fds[i]);
	STAILQ_INSERT_TAIL(&c->queue, p, next);
	c->queue_bytes += len;
	c->queue_packets++;
	if (c->queue_packets == 1 && event_add(c->on_write, NULL) < 0) {
		end_later(c, CHAN_END_ERROR);
		return -EPIPE;
	}
	return 0;
}

int
chan_send(struct chan *c, const void *data, size_t len, int *fds, size_t nfds)
{
	int r;

	if (c->ended || c->send_dead)
		r = -EPIPE;
	else if (len == 0 || len > CHAN_PACKET_MAX || nfds > CHAN_FDS_MAX)
		r = -EMSGSIZE;
	else if (!STAILQ_EMPTY(&c->queue))
		return enqueue(c, data, len, fds, nfds);
	else
		r = chan_send_fd(c->fd, data, len, fds, nfds);
	if (is_full(r))
		return enqueue(c, data, len, fds, nfds);
	close_all(fds, nfds);
	if (is_gone(r)) {
		if (!c->ended && !c->send_dead)
			send_gone(c);
		return -EPIPE;
	}
	return r;
}

size_t
chan_pending(const struct chan *c)
{
	return c->queue_packets;
}

int
chan_fd(const struct chan *c)
{
	return c->fd;
}

void
chan_pause(struct chan *c, bool paused)
{
	if (c->ended || c->paused == paused)
		return;
	c->paused = paused;
	if (paused) {
		(void)event_del(c->on_read);
		if (c->send_dead)
			end_later(c, CHAN_END_EOF);
	} else if (event_add(c->on_read, NULL) < 0) {
		end_later(c, CHAN_END_ERROR);
	}
}
