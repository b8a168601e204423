/*
 * One socket of a connection; see side.h. Runs in stockade-proxyd; who is at
 * the other end may send, stall or vanish at any time.
 */
#include "proxyd/side.h"

#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "proxyd/conn.h"
#include "proxyd/proxyd.h"

#define CHUNK_FIRST (16u * 1024)
#define CHUNK_LOW (4u * 1024)

void
side_init(struct side *side)
{
	memset(side, 0, sizeof(*side));
	side->fd = -1;
	side->chunk = CHUNK_FIRST;
}

void
side_open(struct conn *conn, struct side *side, int fd)
{
	side->fd = fd;
	side->eof = false;
	side->shut = false;
	side->shut_wanted = false;
	side->reading = false;
	side->writing = false;
	side->chunk = CHUNK_FIRST;
	(void)event_assign(&side->rd, conn->p->base, fd, EV_READ | EV_PERSIST,
	    conn_readable, conn);
	(void)event_assign(&side->wr, conn->p->base, fd, EV_WRITE | EV_PERSIST,
	    conn_writable, conn);
}

static void
side_write(struct side *side, bool on)
{
	if (side->writing == on)
		return;
	side->writing = on;
	if (on)
		(void)event_add(&side->wr, NULL);
	else
		(void)event_del(&side->wr);
}

void
side_read(struct side *side, bool on)
{
	if (side->fd < 0 || side->reading == on)
		return;
	side->reading = on;
	if (on)
		(void)event_add(&side->rd, NULL);
	else
		(void)event_del(&side->rd);
}

void
side_close(struct proxyd *p, struct side *side, bool reset)
{
	const struct linger abort_it = { .l_onoff = 1, .l_linger = 0 };

	if (side->fd < 0)
		return;
	side_read(side, false);
	side_write(side, false);
	p->pending_bytes -= side->out.len;
	buf_done(&side->out);
	if (reset)
		(void)setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &abort_it,
		    sizeof(abort_it));
	(void)close(side->fd);
	side->fd = -1;
}

/* Bytes taken by the socket, 0 if it is full, or -errno. */
static ssize_t
push(struct side *side, const void *data, size_t len)
{
	ssize_t n = send(side->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	return -errno;
}

static void
finish_shut(struct side *side)
{
	if (!side->shut_wanted || side->shut || side->out.len > 0)
		return;
	side->shut = true;
	(void)shutdown(side->fd, SHUT_WR);
}

int
side_send(struct proxyd *p, struct side *side, const void *data, size_t len)
{
	ssize_t n = 0;

	if (side->fd < 0 || side->shut || side->shut_wanted)
		return -EPIPE;
	if (side->out.len == 0) {
		n = push(side, data, len);
		if (n < 0)
			return (int)n;
		if ((size_t)n == len)
			return 0;
	}
	if (buf_add(&side->out, (const char *)data + n, len - (size_t)n) < 0)
		return -ENOMEM;
	p->pending_bytes += len - (size_t)n;
	side_write(side, true);
	return 1;
}

int
side_flush(struct proxyd *p, struct side *side)
{
	ssize_t n;

	if (side->out.len > 0) {
		n = push(side, side->out.data, side->out.len);
		if (n < 0)
			return (int)n;
		p->pending_bytes -= (size_t)n;
		buf_drop(&side->out, (size_t)n);
	}
	if (side->out.len > 0)
		return 1;
	side_write(side, false);
	finish_shut(side);
	return 0;
}

void
side_discard(struct proxyd *p, struct side *side)
{
	p->pending_bytes -= side->out.len;
	buf_done(&side->out);
	side_write(side, false);
	side->shut = true;
}

void
side_shut(struct side *side)
{
	side->shut_wanted = true;
	if (side->fd >= 0)
		finish_shut(side);
}

/*
 * A direction that fills its reads gets larger ones: fewer calls for the same
 * bytes.  While much waits in all, reads are small, so that many slow
 * receivers cannot make us hold much.
 */
static void
adapt(struct proxyd *p, struct side *side, size_t got, size_t asked)
{
	if (p->pending_bytes > PROXYD_PENDING_HIGH)
		side->chunk = CHUNK_LOW;
	else if (got == asked && side->chunk < PROXYD_SCRATCH)
		side->chunk *= 2;
}

ssize_t
side_recv(struct proxyd *p, struct side *side, void *data, size_t max)
{
	size_t ask = side->chunk < max ? side->chunk : max;
	ssize_t n = recv(side->fd, data, ask, MSG_DONTWAIT);

	if (n > 0) {
		adapt(p, side, (size_t)n, ask);
		return n;
	}
	if (n == 0) {
		side->eof = true;
		side_read(side, false);
		return 0;
	}
	return errno == EINTR ? -EAGAIN : -errno;
}
