/*
 * Tunnels; see relay.h. Runs in stockade-proxyd. Both ends are hostile, and
 * what they send is passed on unread.
 */
#include "proxyd/relay.h"

#include <errno.h>

#include "proxyd/conn.h"
#include "proxyd/proxyd.h"

static struct side *
other(struct conn *conn, struct side *side)
{
	return side == &conn->client ? &conn->upstream : &conn->client;
}

/* Frees the connection when both directions are at their end. */
static void
check_end(struct conn *conn)
{
	const struct side *c = &conn->client, *u = &conn->upstream;

	if (c->eof && u->eof && c->shut && u->shut) {
		conn_free(conn, false);
		return;
	}
	if ((c->eof || u->eof) && conn->phase == CONN_TUNNEL)
		conn_set_phase(conn, CONN_HALF);
}

void
relay_start(struct conn *conn)
{
	int r = 0;

	conn->mode = CONN_MODE_TUNNEL;
	conn_set_phase(conn, CONN_TUNNEL);
	if (conn->in.len > 0) {
		r = side_send(conn->p, &conn->upstream, conn->in.data,
		    conn->in.len);
		buf_done(&conn->in);
	}
	if (r < 0) {
		conn_free(conn, true);
		return;
	}
	side_read(&conn->client, r == 0);
	side_read(&conn->upstream, conn->client.out.len == 0);
}

void
relay_readable(struct conn *conn, struct side *from)
{
	struct side *to = other(conn, from);
	ssize_t n;
	int r;

	n = side_recv(conn->p, from, conn->p->scratch, PROXYD_SCRATCH);
	if (n == -EAGAIN)
		return;
	if (n == 0) {
		side_shut(to);
		conn_touch(conn);
		check_end(conn);
		return;
	}
	/* A reset is passed on as one: a cut stream must not look whole. */
	r = n < 0 ? (int)n :
		    side_send(conn->p, to, conn->p->scratch, (size_t)n);
	if (r < 0) {
		conn_free(conn, true);
		return;
	}
	if (r > 0)
		side_read(from, false);
	conn_touch(conn);
}

void
relay_drained(struct conn *conn, struct side *to)
{
	struct side *from = other(conn, to);

	if (!from->eof)
		side_read(from, true);
	conn_touch(conn);
	check_end(conn);
}
