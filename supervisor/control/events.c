/*
 * Sources, subscriptions and the cursors between them. In stockade-control.
 *
 * A reader is one connection. A cursor is one (reader, source): the seq that
 * is sent next, so that a connection gets the events of a session in order and
 * each once, however many of its subscriptions cover it. Which events those
 * are is said by the cursor's members, one for each such subscription. A
 * reader writes from the loop, a chunk at a time, only while its connection
 * has room (client.h), so that nothing is copied for a client that does not
 * read.
 */
#include "supervisor/control/events.h"

#include <sys/queue.h>

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "supervisor/control/client.h"
#include "supervisor/control/control.h"
#include "supervisor/control/violations.h"

#define RING_FIRST 16 /* slots of the first allocation */
#define RESTORED_SHIFT 20 /* events.h: first seq of a restored source */
#define PUMP_BURST 64 /* events of one cursor before the next has its turn */

/* One event, encoded. data NULL: lost for want of memory. */
struct record {
	enum rpc_event_type type;
	uint32_t len;
	uint64_t at; /* bytes of all events before it */
	uint8_t *data;
};

/* What a subscription wants of a source: its types, from this seq on. */
struct member {
	TAILQ_ENTRY(member) in_cursor;
	TAILQ_ENTRY(member) in_subscription;
	struct cursor *cursor;
	struct subscription *subscription;
	uint64_t from;
};
TAILQ_HEAD(member_list, member);

struct cursor {
	TAILQ_ENTRY(cursor) in_source;
	TAILQ_ENTRY(cursor) in_reader;
	struct events_source *source;
	struct events_reader *reader;
	struct member_list members; /* never empty but while it is made */
	uint64_t next;
	uint64_t held; /* bytes that an ended source keeps for it */
};
TAILQ_HEAD(cursor_list, cursor);

struct subscription {
	TAILQ_ENTRY(subscription) entry;
	struct events_reader *reader;
	uint64_t number;
	uint32_t types;
	bool all; /* sources to come, too */
	struct member_list members;
};

struct events_reader {
	TAILQ_ENTRY(events_reader) entry;
	struct events *events;
	struct client *client;
	struct caller who;
	struct event *pump;
	TAILQ_HEAD(subscription_list, subscription) subscriptions;
	size_t nsubscriptions;
	uint64_t last_number;
	struct cursor_list cursors;
	uint64_t held; /* of its cursors on ended sources */
};

struct events_source {
	TAILQ_ENTRY(events_source) entry;
	struct events *events;
	struct violations *violations;
	char session[RPC_LABEL_MAX + 1];
	uid_t owner;
	bool closed;
	void (*on_room)(void *arg);
	void *arg;
	struct event *room; /* calls on_room from the loop */
	struct cursor_list cursors;
	/* The ring: `n` records, the oldest at `head`, up to next - 1. */
	struct record *ring;
	size_t slots;
	size_t head;
	size_t n;
	size_t bytes;
	uint64_t written; /* bytes of all events so far */
	uint64_t next;
	uint64_t first_ever; /* since before it is gone */
	enum rpc_event_type type; /* of the one being written */
	struct rpc_out out;
};

struct events {
	struct control *control;
	TAILQ_HEAD(source_list, events_source) sources;
	TAILQ_HEAD(reader_list, events_reader) readers;
};

int
events_new(struct control *control, struct events **ret)
{
	struct events *ev = calloc(1, sizeof(*ev));

	if (ev == NULL)
		return -ENOMEM;
	ev->control = control;
	TAILQ_INIT(&ev->sources);
	TAILQ_INIT(&ev->readers);
	*ret = ev;
	return 0;
}

/* ---------------------------------------------------------------- the ring */

static uint64_t
oldest(const struct events_source *src)
{
	return src->next - src->n;
}

static struct record *
record_of(const struct events_source *src, uint64_t seq)
{
	return &src->ring[(src->head + (size_t)(seq - oldest(src))) %
	    src->slots];
}

static void
ring_drop_oldest(struct events_source *src)
{
	struct record *r = &src->ring[src->head];

	src->bytes -= r->len;
	free(r->data);
	memset(r, 0, sizeof(*r));
	src->head = (src->head + 1) % src->slots;
	src->n--;
}

static bool
ring_grow(struct events_source *src)
{
	size_t slots = src->slots == 0 ? RING_FIRST : src->slots * 2;
	struct record *ring;

	if (slots > EVENTS_REPLAY)
		slots = EVENTS_REPLAY;
	ring = calloc(slots, sizeof(*ring));
	if (ring == NULL)
		return false;
	for (size_t i = 0; i < src->n; i++)
		ring[i] = src->ring[(src->head + i) % src->slots];
	free(src->ring);
	src->ring = ring;
	src->slots = slots;
	src->head = 0;
	return true;
}

/* Takes data. Without a slot the oldest makes room; without any, all that was
 * kept is given up, and cursors see an overrun. */
static void
ring_add(struct events_source *src, enum rpc_event_type type, uint8_t *data,
    size_t len)
{
	while (src->n > 0 &&
	    (src->n == EVENTS_REPLAY || src->bytes + len > EVENTS_REPLAY_BYTES))
		ring_drop_oldest(src);
	if (src->n == src->slots && !ring_grow(src)) {
		if (src->n == 0) {
			free(data);
			src->next++;
			return;
		}
		ring_drop_oldest(src);
	}
	src->next++;
	src->n++;
	src->bytes += len;
	*record_of(src, src->next - 1) =
	    (struct record){ type, (uint32_t)len, src->written, data };
	src->written += len;
}

/* ---------------------------------------------------------------- cursors */

static void
member_free(struct member *m)
{
	TAILQ_REMOVE(&m->cursor->members, m, in_cursor);
	TAILQ_REMOVE(&m->subscription->members, m, in_subscription);
	free(m);
}

static void
cursor_free(struct cursor *cur)
{
	struct member *m;

	while ((m = TAILQ_FIRST(&cur->members)) != NULL)
		member_free(m);
	TAILQ_REMOVE(&cur->source->cursors, cur, in_source);
	TAILQ_REMOVE(&cur->reader->cursors, cur, in_reader);
	cur->reader->held -= cur->held;
	free(cur);
}

static struct cursor *
cursor_find(const struct events_reader *reader, const struct events_source *src)
{
	struct cursor *cur;

	TAILQ_FOREACH (cur, &src->cursors, in_source)
		if (cur->reader == reader)
			return cur;
	return NULL;
}

static struct cursor *
cursor_new(struct events_reader *reader, struct events_source *src,
    uint64_t next)
{
	struct cursor *cur = calloc(1, sizeof(*cur));

	if (cur == NULL)
		return NULL;
	cur->source = src;
	cur->reader = reader;
	cur->next = next;
	TAILQ_INIT(&cur->members);
	TAILQ_INSERT_TAIL(&src->cursors, cur, in_source);
	TAILQ_INSERT_TAIL(&reader->cursors, cur, in_reader);
	return cur;
}

/* Goes back to `seq`; what was sent already is not sent again to those who
 * have had it. */
static void
cursor_rewind(struct cursor *cur, uint64_t seq)
{
	struct member *m;

	TAILQ_FOREACH (m, &cur->members, in_cursor)
		if (m->from < cur->next)
			m->from = cur->next;
	cur->next = seq;
}

/* Lets a subscription have a source's events from `from` on. */
static int
member_new(struct subscription *sub, struct events_source *src, uint64_t from)
{
	struct cursor *cur = cursor_find(sub->reader, src);
	struct member *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	if (cur == NULL)
		cur = cursor_new(sub->reader, src, from);
	else if (from < cur->next)
		cursor_rewind(cur, from);
	if (cur == NULL) {
		free(m);
		return -ENOMEM;
	}
	m->cursor = cur;
	m->subscription = sub;
	m->from = from;
	TAILQ_INSERT_TAIL(&cur->members, m, in_cursor);
	TAILQ_INSERT_TAIL(&sub->members, m, in_subscription);
	return 0;
}

static bool
cursor_wants(const struct cursor *cur, uint64_t seq, enum rpc_event_type type)
{
	const struct member *m;

	TAILQ_FOREACH (m, &cur->members, in_cursor)
		if (m->from <= seq &&
		    (m->subscription->types & (1u << type)) != 0)
			return true;
	return false;
}

/* Some member wants every event from the cursor on. */
static bool
cursor_wants_all(const struct cursor *cur)
{
	const struct member *m;

	TAILQ_FOREACH (m, &cur->members, in_cursor)
		if (m->from <= cur->next &&
		    m->subscription->types == UINT32_MAX)
			return true;
	return false;
}

/* Bytes that the ring holds for it. */
static size_t
cursor_backlog(const struct cursor *cur)
{
	const struct events_source *src = cur->source;
	uint64_t seq = cur->next < oldest(src) ? oldest(src) : cur->next;
	size_t sum = 0;

	if (seq >= src->next)
		return 0;
	if (cursor_wants_all(cur))
		return (size_t)(src->written - record_of(src, seq)->at);
	for (; seq < src->next; seq++) {
		const struct record *r = record_of(src, seq);

		if (cursor_wants(cur, seq, r->type))
			sum += r->len;
	}
	return sum;
}

/* The first event up to `last` that a member waits for, 0 for none. */
static uint64_t
first_missed(const struct cursor *cur, uint64_t last)
{
	uint64_t first = UINT64_MAX;
	const struct member *m;

	TAILQ_FOREACH (m, &cur->members, in_cursor)
		if (m->from < first)
			first = m->from;
	if (first < cur->next)
		first = cur->next;
	return first <= last ? first : 0;
}

/* Where the ring no longer has what the cursor wants (K15). Its seq is the
 * last one lost, so that seqs still follow each other. */
static void
send_overrun(struct cursor *cur, uint64_t last)
{
	uint64_t first = first_missed(cur, last);
	struct rpc_out out;

	cur->next = last + 1;
	if (first == 0)
		return;
	rpc_out_init(&out);
	rpc_begin_notify(&out, "event");
	rpc_add_u64(&out, "seq", last);
	rpc_add_u64(&out, "time", control_time_ms());
	rpc_add_str(&out, "sessionId", cur->source->session);
	rpc_add_str(&out, "type", rpc_event_name(RPC_EVENT_OVERRUN));
	rpc_add_u64(&out, "first", first);
	rpc_add_u64(&out, "last", last);
	if (rpc_end_message(&out) == 0)
		client_send(cur->reader->client, out.data, out.len);
	rpc_out_done(&out);
}

/* The end of the run of lost events that starts at the cursor, or its own seq
 * minus one when it is there. */
static uint64_t
lost_until(const struct cursor *cur)
{
	const struct events_source *src = cur->source;
	uint64_t seq = cur->next;

	if (seq < oldest(src))
		seq = oldest(src);
	while (seq < src->next && record_of(src, seq)->data == NULL)
		seq++;
	return seq - 1;
}

/* Writes some events of one cursor. True when it could go on. */
static bool
cursor_pump(struct cursor *cur)
{
	struct client *client = cur->reader->client;
	struct events_source *src = cur->source;

	for (int i = 0; i < PUMP_BURST && cur->next < src->next; i++) {
		const struct record *r;
		uint64_t last = lost_until(cur);

		if (client_pending(client) >= CLIENT_OUT_HIGH)
			return false;
		if (last >= cur->next) {
			send_overrun(cur, last);
			continue;
		}
		r = record_of(src, cur->next);
		cur->next++;
		if (cursor_wants(cur, cur->next - 1, r->type))
			client_send(client, r->data, r->len);
	}
	return cur->next < src->next;
}

/* ---------------------------------------------------------------- sources */

static void
source_free(struct events_source *src)
{
	struct cursor *cur;

	while ((cur = TAILQ_FIRST(&src->cursors)) != NULL)
		cursor_free(cur);
	TAILQ_REMOVE(&src->events->sources, src, entry);
	while (src->n > 0)
		ring_drop_oldest(src);
	violations_free(src->violations);
	event_free(src->room);
	rpc_out_done(&src->out);
	free(src->ring);
	free(src);
}

/*
 * From the loop and not from the pump: the session code may close the source
 * in it.
 */
static void
on_source_room(evutil_socket_t fd, short what, void *arg)
{
	struct events_source *src = arg;

	(void)fd;
	(void)what;
	if (src->on_room != NULL)
		src->on_room(src->arg);
}

/* Readers that subscribed to all that they may see. */
static void
source_offer(struct events_source *src)
{
	struct events_reader *reader;
	struct subscription *sub;

	TAILQ_FOREACH (reader, &src->events->readers, entry) {
		if (!caller_may_see(&reader->who, src->owner))
			continue;
		TAILQ_FOREACH (sub, &reader->subscriptions, entry)
			if (sub->all && member_new(sub, src, src->next) != 0)
				log_event(EV_INTERNAL,
				    LF_STR(LK_SESSION, src->session),
				    LF_STR(LK_REASON,
					"no memory for a "
					"subscription"));
	}
}

struct events_source *
events_source_new(struct events *ev, const char *session_id, uid_t owner,
    bool restored, void (*on_room)(void *arg), void *arg)
{
	struct events_source *src = calloc(1, sizeof(*src));

	if (src == NULL)
		return NULL;
	src->violations = violations_new(ev->control->base, src);
	src->room = event_new(ev->control->base, -1, 0, on_source_room, src);
	if (src->violations == NULL || src->room == NULL) {
		violations_free(src->violations);
		if (src->room != NULL)
			event_free(src->room);
		free(src);
		return NULL;
	}
	src->events = ev;
	(void)strncpy(src->session, session_id, sizeof(src->session) - 1);
	src->owner = owner;
	src->on_room = on_room;
	src->arg = arg;
	src->next = 1;
	if (restored)
		src->next += (control_time_ms() / 1000) << RESTORED_SHIFT;
	src->first_ever = src->next;
	TAILQ_INIT(&src->cursors);
	TAILQ_INSERT_TAIL(&ev->sources, src, entry);
	source_offer(src);
	return src;
}

/* What an ended session's ring holds for readers counts against them: beyond
 * EVENTS_QUEUE they lose it. */
static void
close_cursor(struct cursor *cur)
{
	struct events_reader *reader = cur->reader;

	cur->held = cursor_backlog(cur);
	reader->held += cur->held;
	if (reader->held > EVENTS_QUEUE) {
		send_overrun(cur, cur->source->next - 1);
		cursor_free(cur);
	} else if (cur->next >= cur->source->next) {
		cursor_free(cur);
	} else {
		event_active(reader->pump, 0, 0);
	}
}

void
events_source_close(struct events_source *src)
{
	struct cursor *cur, *next;

	if (src == NULL)
		return;
	violations_flush(src->violations);
	src->closed = true;
	src->on_room = NULL;
	(void)event_del(src->room);
	for (cur = TAILQ_FIRST(&src->cursors); cur != NULL; cur = next) {
		next = TAILQ_NEXT(cur, in_source);
		close_cursor(cur);
	}
	if (TAILQ_EMPTY(&src->cursors))
		source_free(src);
}

const char *
events_source_session(const struct events_source *src)
{
	return src->session;
}

uid_t
events_source_owner(const struct events_source *src)
{
	return src->owner;
}

uint64_t
events_source_next(const struct events_source *src)
{
	return src->next;
}

struct violations *
events_source_violations(struct events_source *src)
{
	return src->violations;
}

struct rpc_out *
events_begin(struct events_source *src, enum rpc_event_type type,
    const char *exec_id)
{
	struct rpc_out *out = &src->out;

	src->type = type;
	rpc_begin_notify(out, "event");
	rpc_add_u64(out, "seq", src->next);
	rpc_add_u64(out, "time", control_time_ms());
	rpc_add_str(out, "sessionId", src->session);
	rpc_add_text(out, "execId", exec_id);
	rpc_add_str(out, "type", rpc_event_name(type));
	return out;
}

void
events_end(struct events_source *src)
{
	struct cursor *cur;
	int r = rpc_end_message(&src->out);
	uint8_t *copy = r == 0 ? malloc(src->out.len) : NULL;

	if (copy != NULL)
		memcpy(copy, src->out.data, src->out.len);
	else
		log_event(EV_INTERNAL, LF_STR(LK_SESSION, src->session),
		    LF_NUM(LK_ERRNO, r == 0 ? ENOMEM : -r),
		    LF_STR(LK_REASON, "an event is lost"));
	ring_add(src, src->type, copy, copy != NULL ? src->out.len : 0);
	/* a long event's buffer is not kept for short ones */
	rpc_out_done(&src->out);
	TAILQ_FOREACH (cur, &src->cursors, in_source)
		event_active(cur->reader->pump, 0, 0);
}

void
events_emit(struct events_source *src, enum rpc_event_type type,
    const char *exec_id)
{
	(void)events_begin(src, type, exec_id);
	events_end(src);
}

size_t
events_backlog(const struct events_source *src, uint64_t client)
{
	const struct cursor *cur;

	TAILQ_FOREACH (cur, &src->cursors, in_source)
		if (cur->reader->who.client == client)
			return cursor_backlog(cur);
	return 0;
}

void
events_each(struct events *ev, const struct caller *who,
    void (*fn)(void *arg, struct events_source *), void *arg)
{
	struct events_source *src, *next;

	for (src = TAILQ_FIRST(&ev->sources); src != NULL; src = next) {
		next = TAILQ_NEXT(src, entry);
		if (!src->closed && caller_may_see(who, src->owner))
			fn(arg, src);
	}
}

/* ---------------------------------------------------------------- readers */

/* One cursor's turn; frees it and its source when both are finished. */
static bool
pump_one(struct cursor *cur)
{
	struct events_source *src = cur->source;
	uint64_t before = cur->next;
	bool more = cursor_pump(cur);

	if (cur->next != before && src->on_room != NULL)
		event_active(src->room, 0, 0);
	if (!src->closed || cur->next < src->next)
		return more;
	cursor_free(cur);
	if (TAILQ_EMPTY(&src->cursors))
		source_free(src);
	return false;
}

static void
on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct events_reader *reader = arg;
	struct cursor *cur, *next;
	bool more = false;

	(void)fd;
	(void)what;
	for (cur = TAILQ_FIRST(&reader->cursors); cur != NULL; cur = next) {
		next = TAILQ_NEXT(cur, in_reader);
		if (pump_one(cur))
			more = true;
	}
	/* without room, client.c calls when there is some */
	if (more && client_pending(reader->client) < CLIENT_OUT_HIGH)
		event_active(reader->pump, 0, 0);
}

void
events_reader_ready(struct events_reader *reader)
{
	event_active(reader->pump, 0, 0);
}

/* The last subscription that wanted its source has ended. */
static void
cursor_end(struct cursor *cur)
{
	struct events_source *src = cur->source;

	cursor_free(cur);
	if (src->on_room != NULL)
		event_active(src->room, 0, 0);
	if (src->closed && TAILQ_EMPTY(&src->cursors))
		source_free(src);
}

static void
subscription_free(struct subscription *sub)
{
	struct member *m;

	while ((m = TAILQ_FIRST(&sub->members)) != NULL) {
		struct cursor *cur = m->cursor;

		member_free(m);
		if (TAILQ_EMPTY(&cur->members))
			cursor_end(cur);
	}
	TAILQ_REMOVE(&sub->reader->subscriptions, sub, entry);
	sub->reader->nsubscriptions--;
	free(sub);
}

void
events_reader_free(struct events_reader *reader)
{
	struct subscription *sub;

	if (reader == NULL)
		return;
	while ((sub = TAILQ_FIRST(&reader->subscriptions)) != NULL)
		subscription_free(sub);
	TAILQ_REMOVE(&reader->events->readers, reader, entry);
	event_free(reader->pump);
	free(reader);
}

static struct events_reader *
reader_of(struct events *ev, struct client *client)
{
	struct events_reader *reader = client_reader(client);

	if (reader != NULL)
		return reader;
	reader = calloc(1, sizeof(*reader));
	if (reader == NULL)
		return NULL;
	reader->pump = event_new(ev->control->base, -1, 0, on_pump, reader);
	if (reader->pump == NULL) {
		free(reader);
		return NULL;
	}
	reader->events = ev;
	reader->client = client;
	reader->who = *client_caller(client);
	TAILQ_INIT(&reader->subscriptions);
	TAILQ_INIT(&reader->cursors);
	TAILQ_INSERT_TAIL(&ev->readers, reader, entry);
	client_set_reader(client, reader);
	return reader;
}

static int
subscribe_all(struct events *ev, struct subscription *sub)
{
	struct events_source *src;

	sub->all = true;
	TAILQ_FOREACH (src, &ev->sources, entry)
		if (!src->closed &&
		    caller_may_see(&sub->reader->who, src->owner) &&
		    member_new(sub, src, src->next) != 0)
			return -ENOMEM;
	return 0;
}

static int
subscribe_one(struct subscription *sub, struct events_source *src,
    uint64_t since, uint64_t *ret_next)
{
	uint64_t next = since == 0 ? src->next : since;

	if (next < oldest(src) || next < src->first_ever || next > src->next)
		return -ESTALE;
	if (member_new(sub, src, next) != 0)
		return -ENOMEM;
	*ret_next = next;
	return 0;
}

int
events_subscribe(struct events *ev, struct client *client,
    struct events_source *src, uint32_t types, uint64_t since,
    uint64_t *ret_subscription, uint64_t *ret_next)
{
	struct events_reader *reader = reader_of(ev, client);
	struct subscription *sub;
	int r;

	if (reader == NULL)
		return -ENOMEM;
	if (reader->nsubscriptions >= EVENTS_SUBSCRIPTIONS_MAX)
		return -ENOSPC;
	sub = calloc(1, sizeof(*sub));
	if (sub == NULL)
		return -ENOMEM;
	sub->reader = reader;
	sub->types = types == 0 ? UINT32_MAX : types;
	TAILQ_INIT(&sub->members);
	TAILQ_INSERT_TAIL(&reader->subscriptions, sub, entry);
	reader->nsubscriptions++;
	r = src == NULL ? subscribe_all(ev, sub) :
			  subscribe_one(sub, src, since, ret_next);
	if (r != 0) {
		subscription_free(sub);
		return r;
	}
	sub->number = ++reader->last_number;
	*ret_subscription = sub->number;
	event_active(reader->pump, 0, 0);
	return 0;
}

int
events_unsubscribe(struct client *client, uint64_t number)
{
	struct events_reader *reader = client_reader(client);
	struct subscription *sub;

	if (reader == NULL)
		return -ENOENT;
	TAILQ_FOREACH (sub, &reader->subscriptions, entry) {
		if (sub->number != number)
			continue;
		subscription_free(sub);
		return 0;
	}
	return -ENOENT;
}

void
events_free(struct events *ev)
{
	struct events_source *src;

	if (ev == NULL)
		return;
	while ((src = TAILQ_FIRST(&ev->sources)) != NULL)
		source_free(src);
	free(ev);
}
