/*
 * The client half of MessagePack-RPC over the control socket: for stockadectl
 * and for tests in C. Blocking calls and a non-blocking part for a poll loop.
 *
 * What the service sends is checked as strictly as what it receives
 * (protocol/rpc.h): a broken message ends the connection. Descriptors that
 * come with an answer are kept in order until they are taken; at most
 * RPC_FDS_MAX wait, more end the connection.
 */
#ifndef PROTOCOL_CLIENT_H
#define PROTOCOL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/rpc.h"

struct rpc_client;

/* Connects to the stream socket at `path`. 0 or -errno (-ENAMETOOLONG). */
int rpc_client_open(const char *path, struct rpc_client **ret);
void rpc_client_close(struct rpc_client *); /* NULL is fine */
int rpc_client_fd(const struct rpc_client *);

/*
 * Begins a request; its parameter map is open in the writer that is returned,
 * which the caller fills. rpc_client_end() closes it and puts it behind what
 * waits to be sent; several requests may be put together before they are sent
 * at once. Returns the request's id (from 1), 0 when it could not be made.
 */
struct rpc_out *rpc_client_begin(struct rpc_client *, const char *method);
uint32_t rpc_client_end(struct rpc_client *);

/*
 * Sends everything that waits, with descriptors (borrowed) at its first byte;
 * blocks until the service has taken it. 0 or -errno; -EPIPE: it has closed.
 */
int rpc_client_flush(struct rpc_client *, const int *fds, size_t nfds);

/*
 * Reads what is there without blocking. 0; -EAGAIN: nothing; -EPIPE: closed by
 * the service; -EPROTO: it broke the rules; -errno.
 */
int rpc_client_read(struct rpc_client *);

/* Takes the next message that was read, in order. 1, 0: none, or -errno. The
 * caller calls rpc_done(). */
int rpc_client_next(struct rpc_client *, struct rpc_message *ret);

/*
 * Waits for the answer to `id`; messages before it stay for rpc_client_next().
 * 0 with *ret (may hold an error, see rpc_message); -ETIMEDOUT; -errno as
 * above. timeout_ms < 0: for ever.
 */
int rpc_client_wait(struct rpc_client *, uint32_t id, int timeout_ms,
    struct rpc_message *ret);

/* A descriptor that came, or -1. The caller's from then on. */
int rpc_client_take_fd(struct rpc_client *);

#endif
