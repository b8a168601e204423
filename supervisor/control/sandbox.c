/*
 * The handlers of sandbox.* that are about a session as a whole. In
 * stockade-control; parameters passed the method table's checks and are hostile
 * all the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "protocol/peer.h"
#include "supervisor/control/client.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/methods.h"
#include "supervisor/control/session.h"

/* NULL after the answer; one text for what is not there and what is another's
 * (SPEC X7). */
static struct session *
named(struct control *control, struct call *call)
{
	struct session *s = session_find(control, call_caller(call),
	    call_str(call, "sessionId"));

	if (s == NULL)
		call_fail(call, API_NOT_FOUND, NULL,
		    "there is no such session");
	return s;
}

void
method_sandbox_launch(struct control *control, struct call *call)
{
	launch_start(control, call, false);
}

/* ------------------------------------------------ suspend and resume */

static void
freeze(struct control *control, struct call *call, bool frozen)
{
	const char *depth = call_str(call, "depth");
	struct session *s = named(control, call);

	if (s == NULL)
		return;
	if (depth != NULL && strcmp(depth, "freeze") != 0) {
		call_fail(call, API_BAD_PARAMS, "depth",
		    "depth: freeze is the only one");
		return;
	}
	if (s->ending || s->ended || s->freezing.n > 0 ||
	    !session_move_permitted(s->state,
		frozen ? SESSION_SUSPENDED : SESSION_WARM) ||
	    (!frozen && s->state != SESSION_SUSPENDED)) {
		call_fail(call, API_BAD_STATE, NULL, "the session is %s",
		    s->freezing.n > 0 ? "about to change" :
					session_state_name(s->state));
		return;
	}
	if (waiters_add(&s->freezing, call) < 0) {
		call_fail_internal(call, -ENOMEM, "freeze");
		return;
	}
	if (!frozen)
		renew_ready(s);
	(void)PEER_SEND(control->supervisor, freeze_ask,
	    .request = control_number(control), .sandbox = s->sandbox,
	    .frozen = frozen);
}

void
method_sandbox_suspend(struct control *control, struct call *call)
{
	freeze(control, call, true);
}

void
method_sandbox_resume(struct control *control, struct call *call)
{
	freeze(control, call, false);
}

/* What the freezer did is what is reported. */
static void
apply_freeze(struct session *s, bool frozen)
{
	if (s->ending || s->ended)
		return;
	if (frozen) {
		(void)session_timer(s, &s->idle_timer, 0, NULL);
		session_set_state(s, SESSION_SUSPENDED);
		return;
	}
	session_set_state(s, s->running > 0 ? SESSION_ACTIVE : SESSION_WARM);
	session_settle(s);
}

int
sessions_on_freeze_answer(void *ctx, struct peer *peer,
    const union msg_any *msg, int *fds, size_t nfds)
{
	const struct msg_freeze_answer *m = &msg->freeze_answer;
	struct session *s = session_of_sandbox(ctx, m->sandbox);
	struct call_detail detail = { .error = (int)m->error,
		.step = "freeze" };
	struct rpc_out *out;
	struct call *call;

	(void)peer;
	(void)fds;
	(void)nfds;
	if (s == NULL || s->freezing.n == 0)
		return 0;
	if (m->error == 0)
		apply_freeze(s, m->frozen != 0);
	while ((call = waiters_take(&s->freezing)) != NULL) {
		if (m->error != 0) {
			call_fail_detail(call, API_HOST_ERROR, &detail, "%s",
			    strerror((int)m->error));
			continue;
		}
		out = call_begin(call);
		rpc_add_str(out, "state", session_state_name(s->state));
		rpc_add_map(out, "details");
		session_put_details(s, out, false);
		rpc_close(out);
		call_end(call);
	}
	return 0;
}

/* ------------------------------------------------ destroy, list, get */

/* Idempotent (SPEC K18): waits for an end that is under way, and says yes to
 * one that was a while ago. */
void
method_sandbox_destroy(struct control *control, struct call *call)
{
	const struct caller *who = call_caller(call);
	const char *id = call_str(call, "sessionId");
	struct session *s = session_find(control, who, id);

	if (s == NULL && session_was_destroyed(control, who->uid, id)) {
		rpc_add_str(call_begin(call), "state", "destroyed");
		call_end(call);
		return;
	}
	if (s == NULL) {
		call_fail(call, API_NOT_FOUND, NULL,
		    "there is no such session");
		return;
	}
	if (waiters_add(&s->destroying, call) < 0) {
		call_fail_internal(call, -ENOMEM, "destroy");
		return;
	}
	if (s->state == SESSION_ERROR) {
		session_set_state(s, SESSION_DESTROYED);
		session_remove(s);
		return;
	}
	session_end(s, RUN_CAUSE_MANUAL, who->client);
}

/*
 * Asks for the figures of a session; false when it has none to tell, or was
 * asked so lately that what was told is fresh enough. Without that, a client
 * that lists many sessions many times at once would fill the channel to the
 * supervisor, and its end is ours.
 */
static bool
ask_figures(struct session *s, uint64_t request)
{
	uint64_t now = control_clock_ms();

	if (s->sandbox == 0 || s->ending || s->ended ||
	    (s->figures_ms != 0 && now - s->figures_ms < LISTING_MS))
		return false;
	s->figures_ms = now;
	return PEER_SEND(s->control->supervisor, stat_ask, .request = request,
		   .sandbox = s->sandbox) == 0;
}

static bool
is_listed(const struct listing *l, const struct session *s)
{
	const char *workspace = call_str(l->call, "workspaceId");
	const char *state = call_str(l->call, "state");

	return caller_may_see(call_caller(l->call), s->owner) &&
	    (workspace == NULL ||
		strcmp(workspace, session_facts_of(s)->workspace_id) == 0) &&
	    (state == NULL || strcmp(state, session_state_name(s->state)) == 0);
}

void
listing_free(struct listing *l)
{
	TAILQ_REMOVE(&l->control->sessions->listings, l, entry);
	if (l->call != NULL)
		call_fail(l->call, API_RESTARTING, NULL,
		    "the service is stopping");
	if (l->timer != NULL)
		event_free(l->timer);
	free(l);
}

static void
answer_list(struct listing *l)
{
	struct rpc_out *out = call_begin(l->call);
	struct session *s;

	rpc_add_array(out, "handles");
	TAILQ_FOREACH (s, &l->control->sessions->list, entry) {
		if (!is_listed(l, s))
			continue;
		rpc_open_map(out);
		session_put_handle(s, out, false);
		rpc_close(out);
	}
	rpc_close(out);
	call_end(l->call);
	l->call = NULL;
	listing_free(l);
}

static void
on_listing_time(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	answer_list(arg);
}

/* The figures are asked for and waited for, but not for long: what is not
 * told by then is shown as it was told last. */
void
method_sandbox_list(struct control *control, struct call *call)
{
	const struct timeval tv = { .tv_usec = LISTING_MS * 1000 };
	const char *state = call_str(call, "state");
	struct listing *l;
	struct session *s;

	if (state != NULL && session_state_find(state) < 0) {
		call_fail(call, API_BAD_PARAMS, "state",
		    "state: there is no such state");
		return;
	}
	l = calloc(1, sizeof(*l));
	if (l == NULL) {
		call_fail_internal(call, -ENOMEM, "list");
		return;
	}
	l->control = control;
	l->call = call;
	l->timer = evtimer_new(control->base, on_listing_time, l);
	TAILQ_INSERT_TAIL(&control->sessions->listings, l, entry);
	l->first = control_number(control);
	l->last = l->first;
	if (l->timer != NULL && evtimer_add(l->timer, &tv) == 0)
		TAILQ_FOREACH (s, &control->sessions->list, entry) {
			if (!is_listed(l, s))
				continue;
			l->last = control_number(control);
			l->pending += ask_figures(s, l->last);
		}
	if (l->pending == 0)
		answer_list(l);
}

int
sessions_on_stat_answer(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_stat_answer *m = &msg->stat_answer;
	struct session *s = session_of_sandbox(ctx, m->sandbox);
	const struct control *control = ctx;
	struct listing *l;

	(void)peer;
	(void)fds;
	(void)nfds;
	if (s != NULL && m->error == 0) {
		s->memory_bytes = m->memory_bytes;
		s->pids = m->pids;
	}
	TAILQ_FOREACH (l, &control->sessions->listings, entry)
		if (m->request >= l->first && m->request <= l->last &&
		    l->pending > 0) {
			if (--l->pending == 0)
				answer_list(l);
			break;
		}
	return 0;
}

void
method_sandbox_get(struct control *control, struct call *call)
{
	struct session *s = named(control, call);
	char digest[2 * PLAN_DIGEST + 1];
	struct rpc_out *out;

	if (s == NULL)
		return;
	if (call_bool(call, "adopt", false)) {
		if (s->ending || s->ended) {
			call_fail(call, API_BAD_STATE, NULL,
			    "the session is ending");
			return;
		}
		session_adopt(s, call_caller(call));
	}
	session_hex(s->digest, PLAN_DIGEST, digest);
	out = call_begin(call);
	rpc_add_map(out, "handle");
	session_put_handle(s, out, true);
	rpc_close(out);
	rpc_add_array(out, "execs");
	exec_put_all(s, out);
	rpc_close(out);
	rpc_add_str(out, "digest", digest);
	rpc_add_bool(out, "alive",
	    s->sandbox != 0 && !s->ended && s->state != SESSION_ERROR);
	call_end(call);
	(void)ask_figures(s, control_number(control)); /* for the next one */
}
