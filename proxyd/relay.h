/*
 * A tunnel: bytes both ways between two raw descriptors, unread.  Half-close
 * is kept (SPEC G27): the end of one direction is passed on and the other
 * goes on.
 */
#ifndef PROXYD_RELAY_H
#define PROXYD_RELAY_H

struct conn;
struct side;

/* The upstream is connected and the client has its answer.  conn->in are
 * bytes that came right behind the head. */
void relay_start(struct conn *conn);
void relay_readable(struct conn *conn, struct side *from);
void relay_drained(struct conn *conn, struct side *to);

#endif
