/*
 * One of the two sockets of a connection: raw descriptor, two plain events,
 * and the bytes its receiver has not taken yet.  A connection reads from one
 * side only while the other side has nothing waiting: that is all the flow
 * control there is, TCP does the rest.
 */
#ifndef PROXYD_SIDE_H
#define PROXYD_SIDE_H

#include <sys/types.h>

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>

#include "proxyd/buf.h"

struct conn;
struct proxyd;

struct side {
	int fd;
	bool reading; /* rd is pending */
	bool writing; /* wr is pending */
	bool eof; /* the far end will send no more */
	bool shut; /* we have sent our end of file, or will never */
	bool shut_wanted; /* send it once out is empty */
	unsigned chunk; /* bytes to read at once; grows and shrinks */
	struct event rd;
	struct event wr;
	struct buf out;
};

/* fd is taken. conn_readable() and conn_writable() are called. */
void side_init(struct side *side);
void side_open(struct conn *conn, struct side *side, int fd);
/* Discards what waits.  reset: RST instead of FIN, so that a cut answer does
 * not look complete. */
void side_close(struct proxyd *p, struct side *side, bool reset);

void side_read(struct side *side, bool on);

/*
 * Write now what the socket takes and keep the rest.  0: all is out; 1: some
 * waits, so stop reading the other side; -errno: the socket is broken.
 */
int
side_send(struct proxyd *p, struct side *side, const void *data, size_t len);
/* Called when writable.  As side_send(). */
int side_flush(struct proxyd *p, struct side *side);

/* The receiver is lost: forget what waits, and never send to it again. */
void side_discard(struct proxyd *p, struct side *side);

/* End of file for the receiver, after what waits. */
void side_shut(struct side *side);

/*
 * Up to side->chunk bytes (max at most) into data.  Bytes read, 0 at end of
 * file (eof is set), -EAGAIN, or -errno.
 */
ssize_t side_recv(struct proxyd *p, struct side *side, void *data, size_t max);

#endif
