/*
 * One client connection: accepted on a session's listener, its first bytes
 * read, its target judged, resolved, checked and connected; then a tunnel
 * (relay.h) or an exchange of plain HTTP (plain.h).  The listener says which
 * session it belongs to; nothing that the client sends ever does.
 */
#ifndef PROXYD_CONN_H
#define PROXYD_CONN_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/hostname.h"
#include "common/http1.h"
#include "proxyd/decide.h"
#include "proxyd/names.h"
#include "proxyd/side.h"

struct conn;
struct dial;
struct plain;
struct proxyd;
struct session;

TAILQ_HEAD(conn_queue, conn);
LIST_HEAD(conn_list, conn);

/* What a connection waits for; each phase has one time limit (SPEC AB). */
enum conn_phase {
	CONN_HEAD, /* first byte to end of the head */
	CONN_KEPT, /* next request on a kept connection */
	CONN_CONNECT, /* resolver and upstream */
	CONN_EXCHANGE, /* plain HTTP */
	CONN_TUNNEL,
	CONN_HALF, /* tunnel with one direction closed */
	CONN_LINGER, /* answered, reading what the client still sends */
	CONN_PHASES
};

enum conn_listener { CONN_HTTP, CONN_SOCKS };

/* How the target was asked for, hence how an answer looks. */
enum conn_ask { CONN_ASK_CONNECT, CONN_ASK_PLAIN, CONN_ASK_SOCKS };

/* Which code has the connection; table in conn.c. */
enum conn_mode {
	CONN_MODE_HTTP, /* reading a head */
	CONN_MODE_SOCKS,
	CONN_MODE_WAIT, /* for resolver or upstream; nothing is read */
	CONN_MODE_TUNNEL,
	CONN_MODE_PLAIN,
	CONN_MODE_ANSWER, /* a refusal is on its way, then the next head */
	CONN_MODE_LINGER,
	CONN_MODES
};

#define CONN_ADDRS 16

/* Held from the first byte until a tunnel stands. */
struct conn_request {
	struct http1_head head;
	bool head_started;
	bool greeted; /* SOCKS */
	bool keep; /* plain: the connection may be kept */
	bool no_answer_body; /* HEAD */
	struct hostname host;
	struct names_wait wait;
	struct dial *dial;
};

struct conn {
	struct proxyd *p;
	struct session *session;
	TAILQ_ENTRY(conn) phase_link;
	LIST_ENTRY(conn) session_link;
	struct side client;
	struct side upstream;
	struct conn_request *request;
	struct plain *plain;
	struct buf in; /* read from the client, not yet used */
	time_t since; /* start of the phase or last activity */
	size_t discarded; /* bytes read while lingering */
	uint16_t port;
	uint8_t phase;
	uint8_t mode;
	uint8_t listener;
	uint8_t ask;
	bool overflow; /* beyond the limit: will be refused */
	bool more; /* in may hold another request */
	bool *gone; /* set by conn_free() for conn_next_request() */
};

/* Takes fd. */
void conn_start(struct proxyd *p, struct session *session, int fd,
    enum conn_listener listener, bool overflow);
/* Closes both sides; reset: with RST. */
void conn_free(struct conn *conn, bool reset);

/* Event callbacks of both sides. */
void conn_readable(int fd, short what, void *arg);
void conn_writable(int fd, short what, void *arg);

void conn_set_phase(struct conn *conn, enum conn_phase phase);
/* Something moved: the phase's limit starts again. */
void conn_touch(struct conn *conn);
/* Ends what is over its time; called every second. */
void conn_expire(struct proxyd *p);

/*
 * Judge, resolve and connect to conn->request->host, conn->port.  Ends in
 * conn_connected(), a refusal or a failure.
 */
void conn_want(struct conn *conn);

/* The exchange is over and the connection is kept: read the next head. */
void conn_next_request(struct conn *conn);

/* Answers that end the request; see answer.c. */
void conn_refuse(struct conn *conn, const struct decide_verdict *verdict);
void conn_malformed(struct conn *conn, enum http1_fault fault);
void conn_failed(struct conn *conn, int error);

/*
 * Send what waits to the client, then its end of file, read on for a while
 * and close: closing at once would make the kernel answer unread bytes with
 * RST, and the client would lose the answer.
 */
void conn_linger(struct conn *conn);

#endif
