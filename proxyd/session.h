/*
 * One egress session: its two listeners, made inside the run's network
 * namespace, its lists and its connections.  Opened and closed by the
 * supervisor; the sandbox number is the supervisor's.
 */
#ifndef PROXYD_SESSION_H
#define PROXYD_SESSION_H

#include <sys/queue.h>

#include <event2/event_struct.h>
#include <stddef.h>
#include <stdint.h>

#include "proxyd/conn.h"
#include "proxyd/report.h"

struct decide_lists;
struct proxyd;

/* Connections above the limit that are still answered with the reason. */
#define SESSION_OVERFLOW 32
#define SESSION_LOOKUPS_MAX 64

struct session_listener {
	struct session *session;
	int fd;
	enum conn_listener kind;
	struct event ev;
};

struct session {
	LIST_ENTRY(session) link;
	struct proxyd *p;
	uint64_t id;
	struct decide_lists *lists;
	size_t tunnels_max;
	size_t nconns;
	size_t nlookups; /* connections that wait for the resolver */
	struct conn_list conns;
	struct session_listener listeners[2];
	struct report report;
};

/*
 * fds: HTTP listener, SOCKS listener, lists (protocol/egress.h); all are
 * taken, also on failure.  Lists that cannot be read allow nothing: the
 * session still answers, and refuses everything.  -EEXIST for an id that is
 * open, -ENOMEM, -EINVAL for a descriptor that is no listening socket.
 */
int session_open(struct proxyd *p, uint64_t id, int fds[3]);
void session_free(struct session *session);
struct session *session_find(struct proxyd *p, uint64_t id);

/* Stops and resumes accepting on all listeners (no descriptors left). */
void session_accept_all(struct proxyd *p, bool on);

#endif
