/*
 * Plain HTTP through the proxy: requests in absolute form, judged one by one,
 * forwarded with heads built anew and bodies framed anew (SPEC G13, G14).
 * One upstream connection per client connection, kept while requests go to
 * the same host and port; it is never shared, so a smuggled request would
 * have nobody to hit.
 */
#ifndef PROXYD_PLAIN_H
#define PROXYD_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/http1.h"

struct conn;
struct side;

/*
 * Take a complete head in buf that is not CONNECT: sets the request's host,
 * port and flags and builds the head that goes on.  Changes nothing that is
 * visible outside.  HTTP1_OK, or the fault to answer; *ret_bad_name: the head
 * is well-formed but its host is not, which is a refusal.
 */
enum http1_fault
plain_take(struct conn *conn, const char *buf, bool *ret_bad_name);

/* The target was judged before: whether the kept upstream is the one. */
bool plain_can_reuse(const struct conn *conn);
/* The upstream is connected, or kept (reused): send the head and go on. */
void plain_connected(struct conn *conn, bool reused);
/* No answer can come any more: try again once if that is safe, else tell. */
void plain_lost(struct conn *conn, int error);

void plain_readable(struct conn *conn, struct side *side);
void plain_drained(struct conn *conn, struct side *side);
/* Writing to a side failed (-errno). */
void plain_broken(struct conn *conn, struct side *side, int error);
void plain_free(struct conn *conn);

#endif
