/*
 * Typed messages on a channel: decode, check the state, hand over. What a
 * handler may be called for is decided here, from the table, and nowhere else.
 */
#include "protocol/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/log.h"

struct peer {
	struct chan *chan;
	enum proc self;
	enum proc other;
	const struct peer_ops *ops;
	void *ctx;
	unsigned state;
	uint64_t seen; /* handlers marked `once` that have run */
	bool in_handler;
	bool freed; /* peer_free() came while a handler ran */
	bool ended;
	union msg_any msg;
};

static const char *
end_text(enum chan_end why)
{
	static const char *const texts[] = {
		[CHAN_END_EOF] = "the channel was closed",
		[CHAN_END_RULES] = "a packet broke the channel's rules",
		[CHAN_END_QUEUE] = "the peer does not read",
		[CHAN_END_ERROR] = "the channel failed",
	};

	return texts[why];
}

static void
peer_end(struct peer *peer, enum chan_end why, const char *text)
{
	if (peer->ended)
		return;
	peer->ended = true;
	chan_pause(peer->chan, true);
	peer->ops->on_end(peer->ctx, peer, why, text);
}

/* The handler that the table permits now, or why there is none. */
static const struct peer_handler *
find_handler(struct peer *peer, enum msg_type type, const char **ret_why)
{
	const struct peer_handler *h;

	for (size_t i = 0; i < peer->ops->nhandlers; i++) {
		h = &peer->ops->handlers[i];
		if (h->type != type)
			continue;
		if ((h->states & (1u << peer->state)) == 0) {
			*ret_why = "message not permitted in this state";
			return NULL;
		}
		if (h->once && (peer->seen & (uint64_t)1 << i) != 0) {
			*ret_why = "message permitted only once";
			return NULL;
		}
		if (h->once)
			peer->seen |= (uint64_t)1 << i;
		return h;
	}
	*ret_why = "message not expected here";
	return NULL;
}

static void
peer_packet(void *ctx, const uint8_t *data, size_t len, int *fds, size_t nfds)
{
	struct peer *peer = ctx;
	const struct peer_handler *h = NULL;
	const char *why = NULL;
	int type, error = 0;

	if (peer->ended) {
		close_all(fds, nfds);
		return;
	}
	type = msg_decode(data, len, nfds, peer->other, peer->self, &peer->msg,
	    &why);
	if (type >= 0)
		h = find_handler(peer, (enum msg_type)type, &why);
	if (h == NULL) {
		close_all(fds, nfds);
		log_event(EV_PEER_RULES,
		    LF_STR(LK_PEER, proc_name(peer->other)),
		    LF_STR(LK_MESSAGE_TYPE,
			type >= 0 ? msg_name((unsigned)type) : "?"),
		    LF_STR(LK_REASON, why));
		peer_end(peer, CHAN_END_RULES, why);
		return;
	}
	peer->in_handler = true;
	error = h->fn(peer->ctx, peer, &peer->msg, fds, nfds);
	peer->in_handler = false;
	if (error < 0 && !peer->freed) {
		why = "the message's content is not permitted";
		log_event(EV_PEER_RULES,
		    LF_STR(LK_PEER, proc_name(peer->other)),
		    LF_STR(LK_MESSAGE_TYPE, msg_name((unsigned)type)),
		    LF_STR(LK_REASON, why));
		peer_end(peer, CHAN_END_RULES, why);
		return;
	}
	if (peer->freed)
		free(peer);
}

static void
peer_chan_end(void *ctx, enum chan_end why)
{
	struct peer *peer = ctx;

	if (why == CHAN_END_QUEUE)
		log_event(EV_PEER_QUEUE,
		    LF_STR(LK_PEER, proc_name(peer->other)));
	peer_end(peer, why, end_text(why));
}

struct peer *
peer_new(struct event_base *base, int fd, enum proc self, enum proc other,
    const struct peer_ops *ops, void *ctx)
{
	static const struct chan_ops chan_ops = { peer_packet, peer_chan_end };
	struct peer *peer = calloc(1, sizeof(*peer));

	if (peer == NULL) {
		close_all(&fd, 1);
		return NULL;
	}
	peer->self = self;
	peer->other = other;
	peer->ops = ops;
	peer->ctx = ctx;
	peer->chan = chan_new(base, fd, &chan_ops, peer);
	if (peer->chan == NULL) {
		free(peer);
		return NULL;
	}
	return peer;
}

void
peer_free(struct peer *peer)
{
	if (peer == NULL)
		return;
	chan_free(peer->chan);
	peer->chan = NULL;
	if (peer->in_handler)
		peer->freed = true;
	else
		free(peer);
}

unsigned
peer_state(const struct peer *peer)
{
	return peer->state;
}

void
peer_set_state(struct peer *peer, unsigned state)
{
	peer->state = state;
}

enum proc
peer_proc(const struct peer *peer)
{
	return peer->other;
}

struct chan *
peer_chan(struct peer *peer)
{
	return peer->chan;
}

int
peer_send(struct peer *peer, enum msg_type type, const void *msg, int *fds,
    size_t nfds)
{
	uint8_t buf[MSG_SIZE_MAX];
	ptrdiff_t len;

	if (peer == NULL || peer->ended || peer->chan == NULL) {
		close_all(fds, nfds);
		return -EPIPE;
	}
	len = msg_encode(type, msg, peer->self, peer->other, nfds, buf,
	    sizeof(buf));
	if (len < 0) {
		close_all(fds, nfds);
		log_event(EV_INTERNAL, LF_STR(LK_MESSAGE_TYPE, msg_name(type)),
		    LF_STR(LK_REASON, "a message could not be encoded"));
		return (int)len;
	}
	return chan_send(peer->chan, buf, (size_t)len, fds, nfds);
}

size_t
peer_pending(const struct peer *peer)
{
	return chan_pending(peer->chan);
}
