/*
 * What client.c (connections) and call.c (calls in flight) share; for nobody
 * else.
 */
#ifndef SUPERVISOR_CONTROL_CLIENT_PRIVATE_H
#define SUPERVISOR_CONTROL_CLIENT_PRIVATE_H

#include <sys/queue.h>

#include "supervisor/control/client.h"

struct event;
struct method;

#define CLIENT_FDS_MAX 16 /* received and not yet asked for */

enum client_state {
	CLIENT_ASKING, /* the supervisor was asked who it is */
	CLIENT_HELLO, /* nothing but hello is answered */
	CLIENT_OPEN,
	CLIENT_DRAINING, /* nothing more is read; ends when all is sent */
	CLIENT_DOOMED, /* freed at the next turn of the loop */
};

TAILQ_HEAD(call_list, call);

struct client {
	TAILQ_ENTRY(client) entry;
	struct clients *clients;
	enum client_state state;
	uint64_t conn; /* our number, for the supervisor's answer */
	struct caller who; /* client 0 before the answer */
	bool over_limit; /* hello is answered `limit` */
	int fd;
	struct event *readable;
	struct event *writable;
	struct event *timer; /* hello, draining */
	uint8_t *in;
	size_t in_len;
	size_t in_cap;
	struct rpc_scan scan; /* of the message at in[0] */
	int fds[CLIENT_FDS_MAX];
	size_t nfds;
	uint8_t *out;
	size_t out_at; /* sent up to here */
	size_t out_len;
	size_t out_cap;
	int out_fd; /* goes with the byte at out_fd_at, or -1 */
	size_t out_fd_at;
	struct call_list calls;
	size_t ncalls;
	struct events_reader *reader;
	uint64_t refused_from_ms; /* window of the refusals in the log */
	unsigned refused;
};

struct call {
	TAILQ_ENTRY(call) entry;
	struct control *control;
	struct client *client; /* NULL: gone */
	struct caller who;
	struct rpc_message msg;
	const struct method *method; /* NULL: unknown */
	int fds[RPC_FDS_MAX];
	size_t nfds;
	int give_fd; /* goes with the answer, or -1 */
	struct rpc_out out;
};

TAILQ_HEAD(client_list, client);

struct clients {
	struct control *control;
	struct client_list list;
	size_t n;
	int listen_fd;
	struct event *acceptable;
	struct event *accept_again; /* after the system had no memory */
	struct event *not_busy; /* after the supervisor took nothing */
	struct event *reap; /* frees the doomed */
	int reserve_fd; /* given up to accept and refuse at EMFILE */
};

/* Ends a connection; it is freed at the next turn. `why` (static) is logged as
 * a broken rule unless NULL. */
void client_doom(struct client *, const char *why);
/* Nothing more is read; the connection ends when what waits was sent. */
void client_drain(struct client *);

/* call.c: one request, from its check to its handler. Takes the message. */
void call_start(struct client *, struct rpc_message *);
/* The connection ends; the call lives on. */
void call_orphan(struct call *);

#endif
