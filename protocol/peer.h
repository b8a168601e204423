/*
 * A channel with typed messages and permissions that are data: which message
 * in which state of the peer, once or many times (libevent side; stockade-init
 * and stockade-lookup use msg_decode directly on chan_recv_fd).
 */
#ifndef PROTOCOL_PEER_H
#define PROTOCOL_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/chan.h"
#include "protocol/message.h"

struct event_base;
struct peer;

/* A peer's state is a number 0..31 that the owner gives meaning; handlers name
 * the states in which they are accepted as a mask (1u << state). */
#define PEER_ANY UINT32_MAX

/*
 * A handler owns `fds` (closes what it does not keep) and must not fail: what
 * the message asks for and cannot be had is answered by a message. A negative
 * return means the peer broke the rules and is dropped (on_end, CHAN_END_RULES).
 */
typedef int peer_fn(void *ctx, struct peer *, const union msg_any *msg,
    int *fds, size_t nfds);

struct peer_handler {
	enum msg_type type;
	uint32_t states;
	bool once; /* a second one in the life of the peer breaks the rules */
	peer_fn *fn;
};

/* on_end as in chan.h; `why_text` is a static sentence for the log. The owner
 * calls peer_free() in it or later. */
struct peer_ops {
	const struct peer_handler *handlers;
	size_t nhandlers;
	void (*on_end)(void *ctx, struct peer *, enum chan_end why,
	    const char *why_text);
};

/* Takes fd. `self` is this process, `other` the one at the far end. */
struct peer *peer_new(struct event_base *, int fd, enum proc self,
    enum proc other, const struct peer_ops *, void *ctx);
size_t peer_pending(const struct peer *); /* packets not taken yet */
void peer_free(struct peer *);

unsigned peer_state(const struct peer *);
void peer_set_state(struct peer *, unsigned state);
enum proc peer_proc(const struct peer *);
struct chan *peer_chan(struct peer *);

/* Encodes and sends; takes the descriptors always. NULL peer: -EPIPE, the
 * descriptors are closed. 0 or -errno as chan_send; -EINVAL is our own bug and
 * is logged here. */
int
peer_send(struct peer *, enum msg_type, const void *msg, int *fds, size_t nfds);
/* The usual case without descriptors:
 * PEER_SEND(peer, run_ended, .sandbox = id, .cause = RUN_CAUSE_EXIT); */
#define PEER_SEND(peer, type, ...) \
	peer_send((peer), MSG_##type, &(struct msg_##type){ __VA_ARGS__ }, \
	    NULL, 0)

#endif
