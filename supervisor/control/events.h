/*
 * Events of sessions, and who gets them (SPEC K4..K8, K15, X9).
 *
 * A source is one session's stream: events numbered from 1 without gaps, the
 * newest EVENTS_REPLAY of them (or EVENTS_REPLAY_BYTES) kept, encoded once. A
 * subscription reads from sources through cursors: events are copied to a
 * connection only as fast as its socket takes them, so what a slow client has
 * not taken costs nothing but the ring that is kept anyway. When the ring
 * drops an event that a cursor has not reached, the connection gets one
 * `overrun {first, last}` in its place and goes on behind it. A connection
 * gets an event once, in order, however many of its subscriptions cover it;
 * only a `since` makes it get again what it asks for.
 *
 * A source that was restored after a restart of stockade-control starts at
 * seq (seconds since 1970) * 2^20 + 1: an older `since` answers gone, and no
 * two events of a session have the same seq.
 */
#ifndef SUPERVISOR_CONTROL_EVENTS_H
#define SUPERVISOR_CONTROL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/rpc.h"

struct caller;
struct client;
struct control;
struct events;
struct events_reader;
struct events_source;
struct violations;

#define EVENTS_REPLAY 4096
#define EVENTS_REPLAY_BYTES (4u << 20)
#define EVENTS_QUEUE (4u << 20) /* of ended sessions, per connection */
#define EVENTS_CHUNK (64u << 10) /* data in one stdout or stderr event */
#define EVENTS_SUBSCRIPTIONS_MAX 64 /* per connection */

int events_new(struct control *, struct events **ret);
void events_free(struct events *);

/* ------------------------------------------------ the session's side */

/*
 * A source for a session; `session_id` is copied. Subscriptions of all
 * sessions that may see `owner` get it. NULL: no memory. on_room (may be NULL)
 * is called from the loop with `arg` after a reader took events, see
 * events_backlog(); not after events_source_close().
 */
struct events_source *events_source_new(struct events *, const char *session_id,
    uid_t owner, bool restored, void (*on_room)(void *arg), void *arg);

/* The session is gone: no more events, no new subscription. Readers still get
 * what is in the ring; the source frees itself. NULL is fine. */
void events_source_close(struct events_source *);

const char *events_source_session(const struct events_source *);
uid_t events_source_owner(const struct events_source *);
uint64_t events_source_next(const struct events_source *); /* seq */

/*
 * One event. seq, time, sessionId, execId (NULL: none) and type are written
 * already; add the fields of methods.def to the returned writer, then call
 * events_end(). The writer is never NULL; nothing else may be begun between.
 *
 *	struct rpc_out *out = events_begin(src, RPC_EVENT_EXIT, exec_id);
 *	rpc_add_u64(out, "exitCode", code);
 *	events_end(src);
 *
 * Without memory the event is lost and said so in the log, and seq goes on:
 * readers see an overrun of it.
 */
struct rpc_out *
events_begin(struct events_source *, enum rpc_event_type, const char *exec_id);
void events_end(struct events_source *);
/* Without fields of its own. */
void
events_emit(struct events_source *, enum rpc_event_type, const char *exec_id);

/*
 * Bytes of this source that connection `client` has subscribed to and not
 * taken; 0 without such a subscription. Back-pressure (K15): the exec code
 * stops reading a run's output while the client that started the command has
 * more than OUT_BUFFER to take, and goes on at on_room. Other subscribers
 * never stop a run; they get an overrun.
 */
size_t events_backlog(const struct events_source *, uint64_t client);

/* The session's violation records; lives as long as the source. */
struct violations *events_source_violations(struct events_source *);

/* ------------------------------------------------ the client's side */

/*
 * Subscribes a connection. src NULL: every source that the caller may see, now
 * and later. types: mask of 1 << enum rpc_event_type, 0 all. since 0: from now
 * on; else from that seq on, -ESTALE when it is no longer kept or has not been
 * given out. *ret_next (with src): seq of the first event that is sent.
 * -ENOSPC: too many subscriptions. -ENOMEM. Nothing is written before the
 * next turn of the loop, so the answer to the call comes first.
 */
int events_subscribe(struct events *, struct client *,
    struct events_source *src, uint32_t types, uint64_t since,
    uint64_t *ret_subscription, uint64_t *ret_next);
int events_unsubscribe(struct client *, uint64_t subscription); /* -ENOENT */

/* client.c: the connection takes bytes again; it is about to be freed. */
void events_reader_ready(struct events_reader *);
void events_reader_free(struct events_reader *); /* NULL is fine */

/* Calls fn for every open source that `who` may see. */
void events_each(struct events *, const struct caller *who,
    void (*fn)(void *arg, struct events_source *), void *arg);

#endif
