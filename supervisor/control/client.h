/*
 * Connections of clients (SPEC X): accepted here, identified by the supervisor
 * (who asks the kernel), read with hard limits, answered in any order. A
 * client that breaks the protocol loses its connection and nothing else.
 *
 * Limits: connections in all and per uid (configuration), CALLS in flight,
 * RPC_MSG_MAX per message, CLIENT_OUT_MAX bytes of output that waits, above
 * which the connection is closed; above CLIENT_OUT_HIGH nothing more is read
 * from it and no more events are written to it.
 */
#ifndef SUPERVISOR_CONTROL_CLIENT_H
#define SUPERVISOR_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/cause.h"
#include "protocol/rpc.h"

struct call;
struct client;
struct clients;
struct control;
union msg_any;

#define CLIENT_CALLS_MAX 64
#define CLIENT_OUT_HIGH (256u << 10)
#define CLIENT_OUT_MAX (8u << 20)
#define CLIENT_HELLO_MS 10000

/* Who asks: the supervisor's word, from the kernel. */
struct caller {
	uint64_t client; /* number, never reused */
	uid_t uid;
	bool is_operator;
};

/* True when `who` may see what belongs to `uid`. NULL is control itself. */
bool caller_may_see(const struct caller *who, uid_t uid);

/* ------------------------------------------------ a call in flight */

/*
 * A handler (methods.h) gets a call whose parameters passed the checks of
 * methods.def, and answers it exactly once, now or later, by call_end() or
 * call_fail*(), which free it. The caller's connection may end meanwhile: the
 * call stays valid, its answer is dropped.
 */
const struct caller *call_caller(const struct call *);
bool call_connected(const struct call *);

/* Parameters; for what rpc.h's getters cannot do, the map itself. Strings are
 * NUL-terminated and live as long as the call. */
const msgpack_object *call_params(const struct call *);
const char *call_str(const struct call *, const char *name);
uint64_t call_u64(const struct call *, const char *name, uint64_t fallback);
bool call_bool(const struct call *, const char *name, bool fallback);
struct rpc_span call_bin(const struct call *, const char *name);

/* Descriptors that came with the request (parameter passFds), in order. Taken
 * ones belong to the taker (-1 beyond the last or taken before); the rest is
 * closed with the call. Close-on-exec, otherwise as the client made them. */
size_t call_nfds(const struct call *);
int call_take_fd(struct call *, size_t i);

/*
 * A descriptor that goes with the first byte of the answer (SPEC X14). Takes
 * it, also on failure. 0, or -EBUSY when another one of this connection has
 * not left yet, -ENOTCONN when the connection is gone.
 */
int call_give_fd(struct call *, int fd);

/* The answer: result map open in the returned writer, never NULL. */
struct rpc_out *call_begin(struct call *);
void call_end(struct call *);
/* An answer with an empty map. */
void call_ok(struct call *);

/*
 * An error (SPEC X8, X10). `field`: for badParams the parameter at fault
 * ("spec.bindMounts"), else NULL. The text is one line; it is cleaned and
 * redacted here. A code that methods.def does not allow is our own bug: it is
 * logged and sent as internal.
 */
void call_fail(struct call *, enum api_error, const char *field,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* What else an error's detail map may hold; zero or NULL is left out. */
struct call_detail {
	const char *field;
	const char *step;
	const char *hint;
	const char *file;
	unsigned line;
	int error; /* errno, hostError */
};
void call_fail_detail(struct call *, enum api_error, const struct call_detail *,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* -ENOMEM and other failures of our own: internal, with errno in the log. */
void call_fail_internal(struct call *, int error, const char *step);

/* ------------------------------------------------ connections */

int clients_new(struct control *, struct clients **ret);
void clients_free(struct clients *);

/* Takes the listening socket and accepts from now on. */
int clients_listen(struct clients *, int fd);
/* client_answer of the supervisor. -EPROTO when nobody asked. */
int clients_identified(struct clients *, uint64_t conn, uint64_t client,
    uid_t uid, bool is_operator);
size_t clients_count(const struct clients *);
/* Calls fn for every identified connection. */
void clients_each(const struct clients *,
    void (*fn)(void *arg, const struct caller *), void *arg);

const struct caller *client_caller(const struct client *);
/* Queues the bytes of one message and writes what the socket takes. */
void client_send(struct client *, const void *data, size_t len);
/* The same with a descriptor at the first byte; takes it. At most one waits
 * (client_fd_waits()). */
void client_send_fd(struct client *, const void *data, size_t len, int fd);
bool client_fd_waits(const struct client *);
/* Bytes that wait for the socket. */
size_t client_pending(const struct client *);
/* For events.c: called when less than CLIENT_OUT_HIGH waits, and when the
 * connection is about to be freed. */
struct events_reader;
void client_set_reader(struct client *, struct events_reader *);
struct events_reader *client_reader(const struct client *);
struct client *call_client(struct call *); /* NULL when gone */

/* For hello: says yes once the version is agreed; false makes the connection
 * close after its answer. */
void client_welcome(struct client *, bool agreed);

#endif
