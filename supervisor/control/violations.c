/*
 * Violation records: merging, keeping, sending. In stockade-control. Texts are
 * a run's words: cleaned, redacted and cut before they are kept, so that what
 * is kept may be shown.
 */
#include "supervisor/control/violations.h"

#include <sys/queue.h>

#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/redact.h"

#define BUCKETS 128

enum text {
	TEXT_TARGET,
	TEXT_RULE,
	TEXT_REASON,
	TEXT_REMEDY,
	TEXT_RAW,
	TEXT_EXE,
	TEXTS
};
static const char *const text_keys[TEXTS] = { "target", "rule", "reason",
	"remedy", "raw", "exe" };

/* Kept from the first refusal on; open for merging until `until_ms`. Texts lie
 * behind the struct; those that were not given are NULL. */
struct record {
	TAILQ_ENTRY(record) kept;
	TAILQ_ENTRY(record) open;
	LIST_ENTRY(record) bucket;
	bool is_open;
	enum violation_action action;
	unsigned port;
	uint32_t hash;
	uint64_t pid;
	uint64_t time_ms; /* since 1970 */
	uint64_t until_ms; /* control_clock_ms() */
	uint64_t count;
	uint64_t sent; /* of count, in events */
	const char *text[TEXTS];
	char bytes[];
};

struct violations {
	struct events_source *source;
	struct event *timer;
	TAILQ_HEAD(kept_list, record) kept;
	size_t nkept;
	TAILQ_HEAD(open_list, record) open; /* the soonest to end first */
	size_t nopen;
	LIST_HEAD(bucket_list, record) buckets[BUCKETS];
};

static void on_timer(evutil_socket_t fd, short what, void *arg);

struct violations *
violations_new(struct event_base *base, struct events_source *source)
{
	struct violations *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	v->source = source;
	TAILQ_INIT(&v->kept);
	TAILQ_INIT(&v->open);
	v->timer = evtimer_new(base, on_timer, v);
	if (v->timer == NULL) {
		free(v);
		return NULL;
	}
	return v;
}

void
violations_free(struct violations *v)
{
	struct record *r;

	if (v == NULL)
		return;
	while ((r = TAILQ_FIRST(&v->kept)) != NULL) {
		TAILQ_REMOVE(&v->kept, r, kept);
		free(r);
	}
	event_free(v->timer);
	free(v);
}

/* ---------------------------------------------------------------- texts */

/* Cleaned and redacted into dst; the length. */
static size_t
clean_text(char dst[VIOLATIONS_TEXT_MAX + 1], const char *src)
{
	char bare[VIOLATIONS_TEXT_MAX + 1];
	size_t n = redact_copy(src, strnlen(src, VIOLATIONS_TEXT_MAX), bare,
	    sizeof(bare));

	return log_clean(dst, VIOLATIONS_TEXT_MAX + 1, bare, n);
}

static uint32_t
hash_of(enum violation_action action, unsigned port, const char *target)
{
	uint32_t h = 2166136261u ^ ((uint32_t)action << 16) ^ port;

	for (; *target != '\0'; target++)
		h = (h ^ (uint8_t)*target) * 16777619u;
	return h;
}

static struct record *
record_new(const struct violation *in)
{
	const char *const given[TEXTS] = { in->target != NULL ? in->target : "",
		in->rule, in->reason, in->remedy, in->raw, in->exe };
	char clean[TEXTS][VIOLATIONS_TEXT_MAX + 1];
	size_t len[TEXTS], size = sizeof(struct record);
	struct record *r;
	char *p;

	for (int i = 0; i < TEXTS; i++) {
		len[i] =
		    given[i] == NULL ? 0 : clean_text(clean[i], given[i]) + 1;
		size += len[i];
	}
	r = calloc(1, size);
	if (r == NULL)
		return NULL;
	p = r->bytes;
	for (int i = 0; i < TEXTS; i++) {
		if (given[i] == NULL)
			continue;
		memcpy(p, clean[i], len[i]);
		r->text[i] = p;
		p += len[i];
	}
	r->action = in->action;
	r->port = in->port;
	r->pid = in->pid;
	r->count = in->count == 0 ? 1 : in->count;
	r->hash = hash_of(r->action, r->port, r->text[TEXT_TARGET]);
	return r;
}

void
violation_summary(const struct violation *v, char *ret, size_t size)
{
	char target[VIOLATIONS_TEXT_MAX + 1];

	(void)clean_text(target, v->target != NULL ? v->target : "");
	(void)snprintf(ret, size, "[sandbox] denied %s on %s",
	    violation_name(v->action), target);
}

/* ---------------------------------------------------------------- telling */

static void
put_fields(struct rpc_out *out, const struct record *r, uint64_t count)
{
	rpc_add_str(out, "action", violation_name(r->action));
	rpc_add_str(out, "target", r->text[TEXT_TARGET]);
	for (int i = TEXT_TARGET + 1; i < TEXTS; i++)
		rpc_add_text(out, text_keys[i], r->text[i]);
	if (r->port != 0)
		rpc_add_u64(out, "port", r->port);
	if (r->pid != 0)
		rpc_add_u64(out, "pid", r->pid);
	rpc_add_u64(out, "count", count);
}

static const char *
given(const struct record *r, enum text which)
{
	return r->text[which] != NULL ? r->text[which] : "";
}

/* What has not been told of it: an event and a log record. */
static void
send_record(struct violations *v, struct record *r)
{
	const struct violation shown = { .action = r->action,
		.target = r->text[TEXT_TARGET] };
	char summary[VIOLATIONS_TEXT_MAX + 64];
	uint64_t count = r->count - r->sent;
	struct rpc_out *out;

	violation_summary(&shown, summary, sizeof(summary));
	log_event(EV_VIOLATION,
	    LF_STR(LK_SESSION, events_source_session(v->source)),
	    LF_NUM(LK_PEER_UID, events_source_owner(v->source)),
	    LF_STR(LK_ACTION, violation_name(r->action)),
	    LF_STR(LK_TARGET, r->text[TEXT_TARGET]), LF_NUM(LK_PORT, r->port),
	    LF_STR(LK_RULE, given(r, TEXT_RULE)),
	    LF_STR(LK_REASON, given(r, TEXT_REASON)),
	    LF_STR(LK_REMEDY, given(r, TEXT_REMEDY)), LF_NUM(LK_PID, r->pid),
	    LF_STR(LK_EXE, given(r, TEXT_EXE)), LF_NUM(LK_COUNT, count));
	out = events_begin(v->source, RPC_EVENT_VIOLATION, NULL);
	put_fields(out, r, count);
	rpc_add_str(out, "summary", summary);
	events_end(v->source);
	r->sent = r->count;
}

/* ---------------------------------------------------------------- merging */

static void
open_end(struct violations *v, struct record *r)
{
	if (!r->is_open)
		return;
	TAILQ_REMOVE(&v->open, r, open);
	LIST_REMOVE(r, bucket);
	r->is_open = false;
	v->nopen--;
	if (r->count > r->sent)
		send_record(v, r);
}

static void
arm_timer(struct violations *v)
{
	const struct record *r = TAILQ_FIRST(&v->open);
	uint64_t now = control_clock_ms(), ms;
	struct timeval tv;

	if (r == NULL || evtimer_pending(v->timer, NULL))
		return;
	ms = r->until_ms > now ? r->until_ms - now : 1;
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000) * 1000;
	(void)evtimer_add(v->timer, &tv);
}

/* Ends the merging of all that is due. */
static void
end_due(struct violations *v, uint64_t now)
{
	struct record *r;

	while ((r = TAILQ_FIRST(&v->open)) != NULL && r->until_ms <= now)
		open_end(v, r);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct violations *v = arg;

	(void)fd;
	(void)what;
	end_due(v, control_clock_ms());
	arm_timer(v);
}

void
violations_flush(struct violations *v)
{
	end_due(v, UINT64_MAX);
	(void)evtimer_del(v->timer);
}

static struct record *
find_open(struct violations *v, const struct record *like)
{
	struct record *r;

	LIST_FOREACH (r, &v->buckets[like->hash % BUCKETS], bucket)
		if (r->hash == like->hash && r->action == like->action &&
		    r->port == like->port &&
		    strcmp(r->text[TEXT_TARGET], like->text[TEXT_TARGET]) == 0)
			return r;
	return NULL;
}

/* Keeps a new one and opens it for merging. */
static void
keep(struct violations *v, struct record *r, uint64_t now)
{
	struct record *first;

	if (v->nkept == VIOLATIONS_KEPT) {
		first = TAILQ_FIRST(&v->kept);
		open_end(v, first);
		TAILQ_REMOVE(&v->kept, first, kept);
		free(first);
		v->nkept--;
	}
	if (v->nopen == VIOLATIONS_MERGE_MAX)
		open_end(v, TAILQ_FIRST(&v->open));
	r->time_ms = control_time_ms();
	r->until_ms = now + VIOLATIONS_MERGE_MS;
	TAILQ_INSERT_TAIL(&v->kept, r, kept);
	v->nkept++;
	TAILQ_INSERT_TAIL(&v->open, r, open);
	LIST_INSERT_HEAD(&v->buckets[r->hash % BUCKETS], r, bucket);
	r->is_open = true;
	v->nopen++;
}

void
violations_record(struct violations *v, const struct violation *in)
{
	uint64_t now = control_clock_ms();
	struct record *r = record_new(in), *same;

	if (r == NULL) {
		log_event(EV_INTERNAL,
		    LF_STR(LK_SESSION, events_source_session(v->source)),
		    LF_STR(LK_REASON, "no memory for a violation"));
		return;
	}
	end_due(v, now);
	same = find_open(v, r);
	if (same != NULL) {
		if (__builtin_add_overflow(same->count, r->count, &same->count))
			same->count = UINT64_MAX;
		free(r);
		return;
	}
	keep(v, r, now);
	send_record(v, r);
	arm_timer(v);
}

/* ---------------------------------------------------------------- asking */

size_t
violations_total(const struct violations *v)
{
	return v->nkept;
}

size_t
violations_put_rows(const struct violations *v, uint64_t since_ms, size_t limit,
    struct rpc_out *out)
{
	const struct record *r;
	size_t want = 0, n = 0;

	TAILQ_FOREACH (r, &v->kept, kept)
		if (r->time_ms > since_ms)
			want++;
	TAILQ_FOREACH (r, &v->kept, kept) {
		if (r->time_ms <= since_ms || want-- > limit)
			continue;
		rpc_open_map(out);
		rpc_add_u64(out, "time", r->time_ms);
		rpc_add_str(out, "sessionId", events_source_session(v->source));
		rpc_add_u64(out, "uid", events_source_owner(v->source));
		put_fields(out, r, r->count);
		rpc_close(out);
		n++;
	}
	return n;
}
