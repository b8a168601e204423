/*
 * stockade-proxyd: the one context, passed as first argument everywhere.
 * The process is single-threaded; all of it runs on one event loop.
 */
#ifndef PROXYD_PROXYD_H
#define PROXYD_PROXYD_H

#include <sys/queue.h>

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "proxyd/conn.h"

struct event;
struct event_base;
struct names;
struct own;
struct peer;
struct session;

LIST_HEAD(session_list, session);

/*
 * Bytes on their way are read into scratch and written on from there; only
 * what a slow receiver leaves is kept (buf.h).  Any function may use scratch
 * and encode; none keeps a pointer into them across a return to the loop.
 */
#define PROXYD_SCRATCH (256u * 1024)
#define PROXYD_ENCODE (PROXYD_SCRATCH + 20u * 1024) /* a head more */

/* Above this many waiting bytes in all, reads become small. */
#define PROXYD_PENDING_HIGH (32u << 20)

struct proxyd {
	struct event_base *base;
	struct peer *supervisor;
	struct names *names;
	struct own *own;
	struct event *tick; /* every second: time limits, reports */
	struct event *accept_again;
	struct session_list sessions;
	struct conn_queue phases[CONN_PHASES]; /* oldest first */
	char *scratch;
	char *encode;
	size_t pending_bytes; /* waiting in all side buffers */
	size_t nconns;
	size_t conns_max;
	size_t conns_session_max;
	size_t nofile_max; /* what conns_max may be at most */
	time_t tunnel_idle_s;
	int reserve_fd;
};

/* Seconds of the monotonic clock, read once per turn of the loop. */
time_t proxyd_now(struct proxyd *p);

#endif
