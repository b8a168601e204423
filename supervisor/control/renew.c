/*
 * See renew.h. The plan of a run goes with its table, since the plan's digest
 * covers the table: a launch of the same spec finds the run, and a later
 * control knows it as it is.
 */
#include "supervisor/control/renew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "protocol/guard.h"
#include "protocol/peer.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/control.h"
#include "supervisor/control/name_rules.h"
#include "supervisor/control/session.h"

/* Rules on their way; request 0: not sent. */
struct renewal {
	TAILQ_ENTRY(renewal) entry; /* of session->renewals, oldest first */
	uint64_t request;
	bool tentative; /* goes when one of the others cannot be made */
	uint64_t generation;
	size_t nrules;
	struct wire_out plan;
	struct wire_out guard;
	uint8_t digest[PLAN_DIGEST];
	struct renew_wait *wait;
};

static void
tell_wait(struct renewal *r)
{
	struct renew_wait *wait = r->wait;

	r->wait = NULL;
	if (wait != NULL && --wait->pending == 0)
		wait->fn(wait);
}

static void
renewal_free(struct renewal *r)
{
	tell_wait(r);
	wire_out_done(&r->plan);
	wire_out_done(&r->guard);
	free(r);
}

void
renew_drop(struct session *s)
{
	struct renewal *r;

	while ((r = TAILQ_FIRST(&s->renewals)) != NULL) {
		TAILQ_REMOVE(&s->renewals, r, entry);
		renewal_free(r);
	}
}

static bool
is_live(const struct session *s)
{
	return s->kept.guard_len > 0 && !s->ending && !s->ended &&
	    s->state != SESSION_ERROR && s->state != SESSION_DESTROYED;
}

/* ---------------------------------------------------------------- making */

/* Whether these are the bytes that the run has, or will have by then. */
static bool
is_same(const struct session *s, const struct wire_out *guard)
{
	const struct renewal *last = TAILQ_LAST(&s->renewals, renewal_list);
	const struct kept *k = &s->kept;

	if (last != NULL)
		return last->guard.len == guard->len &&
		    memcmp(last->guard.data, guard->data, guard->len) == 0;
	return k->guard_len == guard->len &&
	    memcmp(k->data + k->plan_len + k->egress_len, guard->data,
		guard->len) == 0;
}

static int
compile(const struct session *s, const struct conf *conf, struct renewal *r,
    struct spec_fault *fault)
{
	struct name_rules *rules = NULL;
	int error = name_rules_renew(session_guard_of(s), &conf->deny_names,
	    conf->name_exemptions, &rules, fault);

	if (error == 0)
		error = name_rules_encode(rules, &r->guard, fault);
	if (error == 0 && r->guard.len > GUARD_BYTES_MAX)
		error = spec_fault_set(fault, API_LIMIT, NULL,
		    "the name rules are too many");
	if (error == 0)
		r->nrules = rules->nrules;
	name_rules_free(rules);
	return error;
}

/* The run's plan with the digest of these rules. */
static int
write_plan(const struct session *s, struct renewal *r)
{
	const struct renewal *last = TAILQ_LAST(&s->renewals, renewal_list);
	autofree struct plan *plan = malloc(sizeof(*plan));
	autofree struct session_facts *facts = malloc(sizeof(*facts));
	uint8_t digest[PLAN_DIGEST];

	if (plan == NULL || facts == NULL)
		return -ENOMEM;
	*plan = *session_plan_of(s);
	*facts = *session_facts_of(s);
	r->generation =
	    (last != NULL ? last->generation : facts->generation) + 1;
	facts->generation = r->generation;
	if (plan_sha256(&r->guard, digest) < 0)
		return -EIO;
	facts->guard_digest = (struct wire_view){ digest, sizeof(digest) };
	return plan_write(plan, facts, &r->plan, r->digest);
}

/* 0 also when nothing changes. */
static int
make(struct session *s, const struct conf *conf, struct spec_fault *fault)
{
	struct renewal *r = calloc(1, sizeof(*r));
	int error;

	if (r == NULL)
		return -ENOMEM;
	wire_out_init(&r->plan);
	wire_out_init(&r->guard);
	error = compile(s, conf, r, fault);
	if (error == 0 && is_same(s, &r->guard)) {
		renewal_free(r);
		return 0;
	}
	if (error == 0)
		error = write_plan(s, r);
	if (error < 0) {
		renewal_free(r);
		return error;
	}
	r->tentative = true;
	TAILQ_INSERT_TAIL(&s->renewals, r, entry);
	return 0;
}

static void
make_text(const struct session *s, int error, const struct spec_fault *fault,
    char *ret, size_t size)
{
	(void)snprintf(ret, size, "session %s keeps its name rules: %s", s->id,
	    error == -EINVAL ? fault->text : strerror(-error));
}

/* What was made is to be sent, or not. */
static void
decide(struct control *control, bool good)
{
	struct session *s;
	struct renewal *r;

	TAILQ_FOREACH (s, &control->sessions->list, entry) {
		r = TAILQ_LAST(&s->renewals, renewal_list);
		if (r == NULL || !r->tentative)
			continue;
		r->tentative = false;
		if (good)
			continue;
		TAILQ_REMOVE(&s->renewals, r, entry);
		renewal_free(r);
	}
}

int
renew_prepare(struct control *control, const struct conf *fresh,
    struct conf_errors *errors)
{
	struct spec_fault fault;
	struct session *s;
	struct launch *l;
	char text[512];
	int error;

	TAILQ_FOREACH (s, &control->sessions->list, entry) {
		error = is_live(s) ? make(s, fresh, &fault) : 0;
		if (error == 0)
			continue;
		make_text(s, error, &fault, text, sizeof(text));
		decide(control, false);
		(void)conf_errors_add(errors, control->conf_name, 0, text);
		return -EINVAL;
	}
	decide(control, true);
	TAILQ_FOREACH (l, &control->sessions->launches, entry)
		l->stale = l->made != NULL;
	return 0;
}

void
renew_session(struct session *s)
{
	struct spec_fault fault;
	char text[512];
	int error = is_live(s) ? make(s, s->control->conf, &fault) : 0;

	decide(s->control, true);
	if (error == 0)
		return;
	make_text(s, error, &fault, text, sizeof(text));
	log_event(EV_RULES_KEPT, LF_STR(LK_SESSION, s->id),
	    LF_STR(LK_REASON, text));
}

/* ---------------------------------------------------------------- sending */

static int
send_one(struct session *s, struct renewal *r)
{
	struct msg_rules_ask msg = { .sandbox = s->sandbox };
	int fds[2];

	r->request = control_number(s->control);
	msg.request = r->request;
	msg.plan_digest.len = PLAN_DIGEST;
	memcpy(msg.plan_digest.data, r->digest, PLAN_DIGEST);
	fds[0] = memfd_seal("plan", r->plan.data, r->plan.len);
	fds[1] = memfd_seal("guard", r->guard.data, r->guard.len);
	if (fds[0] < 0 || fds[1] < 0) {
		int error = fds[0] < 0 ? fds[0] : fds[1];

		close_all(fds, 2);
		return error;
	}
	return peer_send(s->control->supervisor, MSG_rules_ask, &msg, fds, 2);
}

static void
kept_old(struct session *s, struct renewal *r, int error)
{
	struct renew_wait *wait = r->wait;

	log_event(EV_RULES_KEPT, LF_STR(LK_SESSION, s->id),
	    LF_NUM(LK_SANDBOX, s->sandbox), LF_NUM(LK_ERRNO, error));
	session_notice(s, "rulesKept",
	    "changed name rules could not be handed over; the old ones are in "
	    "force");
	if (wait != NULL && wait->failed++ == 0)
		(void)snprintf(wait->failed_id, sizeof(wait->failed_id), "%s",
		    s->id);
	TAILQ_REMOVE(&s->renewals, r, entry);
	renewal_free(r);
}

/* The newest of those that were not sent; it makes the others needless. */
static void
send_newest(struct session *s, struct renew_wait *wait)
{
	struct renewal *r, *next, *last;
	int error;

	last = TAILQ_LAST(&s->renewals, renewal_list);
	for (r = TAILQ_FIRST(&s->renewals); r != last; r = next) {
		next = TAILQ_NEXT(r, entry);
		if (r->request != 0)
			continue;
		TAILQ_REMOVE(&s->renewals, r, entry);
		renewal_free(r);
	}
	if (last == NULL || last->request != 0)
		return;
	last->wait = wait;
	if (wait != NULL)
		wait->pending++;
	error = send_one(s, last);
	if (error < 0)
		kept_old(s, last, -error);
}

/* Whether it must wait: for launch_answer, or for a broker that runs. */
static bool
is_to_wait(const struct session *s)
{
	return s->sandbox == 0 || s->state == SESSION_SUSPENDED;
}

void
renew_send(struct control *control, struct renew_wait *wait)
{
	struct session *s;

	if (wait != NULL)
		wait->pending = 1;
	TAILQ_FOREACH (s, &control->sessions->list, entry) {
		if (!is_to_wait(s))
			send_newest(s, wait);
		else if (wait != NULL && s->sandbox != 0 &&
		    !TAILQ_EMPTY(&s->renewals))
			wait->frozen++;
	}
	if (wait != NULL && --wait->pending == 0)
		wait->fn(wait);
}

void
renew_ready(struct session *s)
{
	send_newest(s, NULL);
}

void
renew_forget(struct control *control, const struct renew_wait *wait)
{
	struct session *s;
	struct renewal *r;

	TAILQ_FOREACH (s, &control->sessions->list, entry)
		TAILQ_FOREACH (r, &s->renewals, entry)
			if (r->wait == wait)
				r->wait = NULL;
}

/* --------------------------------------------------------------- the answer */

static int
take(struct session *s, const struct renewal *r)
{
	struct opened *opened = s->control->sessions->opened;
	const struct kept *k = &s->kept;
	struct kept fresh = { NULL, 0, 0, 0, 0, 0 };
	int error = kept_set(&fresh, opened,
	    (struct kept_bytes){ r->plan.data, r->plan.len },
	    (struct kept_bytes){ k->data + k->plan_len, k->egress_len },
	    (struct kept_bytes){ r->guard.data, r->guard.len });

	if (error < 0)
		return error;
	kept_done(&s->kept, opened);
	kept_move(&fresh, &s->kept, opened);
	memcpy(s->digest, r->digest, sizeof(s->digest));
	return 0;
}

static void
in_force(struct session *s, struct renewal *r)
{
	char text[96], digest[2 * PLAN_DIGEST + 1];

	session_hex(s->digest, PLAN_DIGEST, digest);
	log_event(EV_RULES_REPLACED, LF_STR(LK_SESSION, s->id),
	    LF_NUM(LK_SANDBOX, s->sandbox), LF_NUM(LK_COUNT, r->generation),
	    LF_STR(LK_DIGEST, digest));
	(void)snprintf(text, sizeof(text),
	    "generation %llu: %zu name rules are in force",
	    (unsigned long long)r->generation, r->nrules);
	session_notice(s, "rulesReplaced", text);
	TAILQ_REMOVE(&s->renewals, r, entry);
	renewal_free(r);
}

int
sessions_on_rules_answer(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_rules_answer *m = &msg->rules_answer;
	struct session *s = session_of_sandbox(ctx, m->sandbox);
	struct renewal *r = NULL;
	int error = (int)m->error;

	(void)peer;
	(void)fds;
	(void)nfds;
	if (s != NULL)
		TAILQ_FOREACH (r, &s->renewals, entry)
			if (r->request == m->request)
				break;
	if (r == NULL)
		return 0;
	/* The run has them; we must know of it, or explain would lie. */
	if (error == 0)
		error = -take(s, r);
	if (error == 0)
		in_force(s, r);
	else
		kept_old(s, r, error);
	return 0;
}
