/*
 * In stockade-control: the table of sessions and their life. A session is
 * removed at one place, session_remove(), from the loop or from a message,
 * never from inside a helper that its caller goes on using.
 */
#include "supervisor/control/session.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/log.h"
#include "common/size.h"
#include "protocol/peer.h"
#include "supervisor/control/client.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/violations.h"

#define TRIM_EVERY 64 /* sessions removed */
#define MEMORY_LEAST (UINT64_C(512) << 20) /* SPEC AB */

int
waiters_add(struct waiters *w, struct call *call)
{
	struct call **more = reallocarray(w->list, w->n + 1, sizeof(*more));

	if (more == NULL)
		return -ENOMEM;
	w->list = more;
	w->list[w->n++] = call;
	return 0;
}

struct call *
waiters_take(struct waiters *w)
{
	struct call *call;

	if (w->n == 0) {
		free(w->list);
		w->list = NULL;
		return NULL;
	}
	call = w->list[0];
	memmove(w->list, w->list + 1, (--w->n) * sizeof(struct call *));
	return call;
}

void
session_hex(const uint8_t *bytes, size_t n, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[2 * n] = '\0';
}

/* ------------------------------------------------ table */

int
sessions_new(struct control *control, struct sessions **ret)
{
	struct sessions *all = calloc(1, sizeof(*all));
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	if (all == NULL)
		return -ENOMEM;
	all->opened = opened_new();
	if (all->opened == NULL) {
		free(all);
		return -ENOMEM;
	}
	all->control = control;
	TAILQ_INIT(&all->list);
	TAILQ_INIT(&all->launches);
	TAILQ_INIT(&all->listings);
	all->memory_default =
	    pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : 0;
	if (all->memory_default < MEMORY_LEAST)
		all->memory_default = MEMORY_LEAST;
	etc_host_read(&all->host);
	users_read(&all->users, NULL);
	*ret = all;
	return 0;
}

void
sessions_free(struct sessions *all)
{
	struct listing *listing;
	struct launch *launch;
	struct session *s;

	if (all == NULL)
		return;
	while ((launch = TAILQ_FIRST(&all->launches)) != NULL)
		launch_free(launch);
	while ((listing = TAILQ_FIRST(&all->listings)) != NULL)
		listing_free(listing);
	while ((s = TAILQ_FIRST(&all->list)) != NULL)
		session_remove(s);
	etc_host_done(&all->host);
	users_done(&all->users);
	opened_free(all->opened);
	seen_done(&all->seen);
	free(all);
}

struct session *
session_find_owned(struct control *control, uid_t owner, const char *id)
{
	struct session *s;

	TAILQ_FOREACH (s, &control->sessions->list, entry)
		if (s->owner == owner && strcmp(s->id, id) == 0)
			return s;
	return NULL;
}

struct session *
session_find(struct control *control, const struct caller *who, const char *id)
{
	struct session *s = session_find_owned(control, who->uid, id);

	if (s != NULL)
		return s;
	TAILQ_FOREACH (s, &control->sessions->list, entry)
		if (strcmp(s->id, id) == 0 && caller_may_see(who, s->owner))
			return s;
	return NULL;
}

struct session *
session_of_sandbox(struct control *control, uint64_t sandbox)
{
	struct session *s;

	TAILQ_FOREACH (s, &control->sessions->list, entry)
		if (s->sandbox == sandbox)
			return s;
	return NULL;
}

static bool
is_live(const struct session *s)
{
	return s->state != SESSION_DESTROYED && s->state != SESSION_ERROR;
}

size_t
session_count_of(const struct sessions *all, const uid_t *owner)
{
	const struct session *s;
	size_t n = 0;

	TAILQ_FOREACH (s, &all->list, entry)
		n += is_live(s) && (owner == NULL || s->owner == *owner);
	return n;
}

size_t
sessions_count(struct control *control, const struct caller *who)
{
	struct session *s;
	size_t n = 0;

	TAILQ_FOREACH (s, &control->sessions->list, entry)
		n += is_live(s) && caller_may_see(who, s->owner);
	return n;
}

struct events_source *
sessions_source(struct control *control, const struct caller *who,
    const char *session_id)
{
	struct session *s = session_find(control, who, session_id);

	return s == NULL ? NULL : s->source;
}

struct events_source *
sessions_source_of_sandbox(struct control *control, uint64_t sandbox)
{
	struct session *s = session_of_sandbox(control, sandbox);

	return s == NULL ? NULL : s->source;
}

struct session *
session_new(struct control *control, const char *id, uid_t owner, bool restored)
{
	struct session *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->control = control;
	(void)snprintf(s->id, sizeof(s->id), "%s", id);
	s->owner = owner;
	s->cause = RUN_CAUSE_EXIT;
	TAILQ_INIT(&s->execs);
	TAILQ_INIT(&s->replacing);
	TAILQ_INIT(&s->renewals);
	s->source = events_source_new(control->events, id, owner, restored,
	    exec_on_room, s);
	if (s->source == NULL) {
		free(s);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&control->sessions->list, s, entry);
	control->sessions->n++;
	if (!restored)
		events_emit(s->source, RPC_EVENT_STARTING, NULL);
	return s;
}

const struct plan *
session_plan_of(const struct session *s)
{
	return kept_plan(&s->kept, s->control->sessions->opened);
}

const struct session_facts *
session_facts_of(const struct session *s)
{
	return kept_facts(&s->kept, s->control->sessions->opened);
}

const struct egress_lists *
session_egress_of(const struct session *s)
{
	return kept_egress(&s->kept, s->control->sessions->opened);
}

const struct guard *
session_guard_of(const struct session *s)
{
	return kept_guard(&s->kept, s->control->sessions->opened);
}

static void
bury(struct session *s)
{
	struct sessions *all = s->control->sessions;
	struct tomb *tomb = &all->tombs[all->next_tomb];

	tomb->owner = s->owner;
	(void)snprintf(tomb->id, sizeof(tomb->id), "%s", s->id);
	all->next_tomb = (all->next_tomb + 1) % SESSION_TOMBS;
}

bool
session_was_destroyed(struct control *control, uid_t owner, const char *id)
{
	const struct sessions *all = control->sessions;

	for (size_t i = 0; i < SESSION_TOMBS; i++)
		if (all->tombs[i].owner == owner &&
		    strcmp(all->tombs[i].id, id) == 0)
			return true;
	return false;
}

static void
timer_free(struct event **timer)
{
	if (*timer != NULL)
		event_free(*timer);
	*timer = NULL;
}

static void
answer_waiters(struct session *s)
{
	struct call *call;

	while ((call = waiters_take(&s->destroying)) != NULL) {
		rpc_add_str(call_begin(call), "state", "destroyed");
		call_end(call);
	}
	while ((call = waiters_take(&s->launching)) != NULL) {
		if (s->fault.code != API_OK)
			session_answer_fault(call, &s->fault, s->fault_step);
		else
			call_fail(call, API_BAD_STATE, NULL,
			    "the session ended while it was starting");
	}
	while ((call = waiters_take(&s->freezing)) != NULL)
		call_fail(call, API_BAD_STATE, NULL, "the session has ended");
}

void
session_remove(struct session *s)
{
	struct sessions *all = s->control->sessions;
	struct launch_list replacing = TAILQ_HEAD_INITIALIZER(replacing);
	struct launch *launch;

	TAILQ_REMOVE(&all->list, s, entry);
	all->n--;
	bury(s);
	exec_free_all(s);
	answer_waiters(s);
	timer_free(&s->launch_timer);
	timer_free(&s->wall_timer);
	timer_free(&s->idle_timer);
	timer_free(&s->gone_timer);
	timer_free(&s->end_timer);
	renew_drop(s);
	events_source_close(s->source);
	kept_done(&s->kept, all->opened);
	/* What many sessions leave lies between what goes on living. */
	if (++all->removed % TRIM_EVERY == 0)
		(void)malloc_trim(0);
	TAILQ_CONCAT(&replacing, &s->replacing, wait_entry);
	free(s);
	while ((launch = TAILQ_FIRST(&replacing)) != NULL) {
		TAILQ_REMOVE(&replacing, launch, wait_entry);
		launch->waits_for = NULL;
		launch_go_on(launch);
	}
}

/* ------------------------------------------------ states */

void
session_set_state(struct session *s, enum session_state state)
{
	struct rpc_out *out;

	s->state = state;
	out = events_begin(s->source, RPC_EVENT_STATE, NULL);
	rpc_add_str(out, "state", session_state_name(state));
	if (state == SESSION_ERROR) {
		rpc_add_map(out, "error");
		rpc_add_u64(out, "code", (uint64_t)s->fault.code);
		rpc_add_str(out, "name", api_error_name(s->fault.code));
		rpc_add_str(out, "message", s->fault.text);
		rpc_add_text(out, "step", s->fault_step);
		rpc_close(out);
	}
	if (state == SESSION_DESTROYED)
		rpc_add_str(out, "cause", run_cause_name(s->cause));
	events_end(s->source);
}

int
session_timer(struct session *s, struct event **timer, uint64_t ms,
    void (*fn)(int fd, short what, void *arg))
{
	struct timeval tv = { .tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	if (ms == 0) {
		if (*timer != NULL)
			(void)evtimer_del(*timer);
		return 0;
	}
	if (*timer == NULL)
		*timer = evtimer_new(s->control->base, fn, s);
	return *timer != NULL && evtimer_add(*timer, &tv) == 0 ? 0 : -ENOMEM;
}

static void
on_wall(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	session_end(arg, RUN_CAUSE_WALL, 0);
}

static void
on_idle(int fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	if (s->running == 0 && s->state == SESSION_WARM)
		session_end(s, RUN_CAUSE_IDLE, 0);
}

static void
on_gone(int fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	if (!s->client_here)
		session_end(s, RUN_CAUSE_CLIENT_GONE, 0);
}

static void
on_error_kept(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	session_remove(arg);
}

void
session_start_wall(struct session *s, uint64_t elapsed_ms)
{
	uint64_t wall = session_facts_of(s)->wall_ms;

	if (wall != 0 &&
	    session_timer(s, &s->wall_timer,
		wall > elapsed_ms ? wall - elapsed_ms : 1, on_wall) < 0)
		session_end(s, RUN_CAUSE_WALL, 0); /* not without it */
}

void
session_settle(struct session *s)
{
	enum session_state want =
	    s->running > 0 ? SESSION_ACTIVE : SESSION_WARM;

	if (s->ended ||
	    (s->state != SESSION_WARM && s->state != SESSION_ACTIVE))
		return;
	if (s->state != want)
		session_set_state(s, want);
	(void)session_timer(s, &s->idle_timer,
	    s->running > 0 ? 0 : session_facts_of(s)->idle_ms, on_idle);
}

void
session_notice(struct session *s, const char *code, const char *detail)
{
	char clean[5632];
	struct rpc_out *out = events_begin(s->source, RPC_EVENT_NOTICE, NULL);

	(void)log_clean(clean, sizeof(clean), detail, strlen(detail));
	rpc_add_str(out, "code", code);
	rpc_add_text(out, "detail", clean);
	events_end(s->source);
	log_event(EV_NOTICE, LF_STR(LK_SESSION, s->id),
	    LF_NUM(LK_SANDBOX, s->sandbox), LF_STR(LK_NAME, code),
	    LF_STR(LK_REASON, clean));
}

void
session_fail(struct session *s, const struct spec_fault *fault,
    const char *step)
{
	struct call *call;

	(void)session_timer(s, &s->launch_timer, 0, NULL);
	s->fault = *fault;
	(void)snprintf(s->fault_step, sizeof(s->fault_step), "%s", step);
	log_event(EV_LAUNCH_FAILED, LF_STR(LK_SESSION, s->id),
	    LF_NUM(LK_REQUEST, s->request), LF_STR(LK_STEP, s->fault_step),
	    LF_STR(LK_REASON, s->fault.text), LF_NUM(LK_ERRNO, s->fault.error));
	session_set_state(s, SESSION_ERROR);
	while ((call = waiters_take(&s->launching)) != NULL)
		session_answer_fault(call, fault, step);
	if (session_timer(s, &s->end_timer, SESSION_ERROR_KEPT_MS,
		on_error_kept) < 0 ||
	    s->destroying.n > 0 || !TAILQ_EMPTY(&s->replacing))
		session_remove(s);
}

struct limit_notice {
	uint64_t bit;
	const char *name;
};

void
session_ready(struct session *s)
{
	static const struct limit_notice limits[] = {
		{ PLAN_LIMIT_MEMORY, "memory" },
		{ PLAN_LIMIT_PIDS, "pids" },
		{ PLAN_LIMIT_CPUS, "cpus" },
	};
	struct rpc_out *out;
	struct call *call;

	(void)session_timer(s, &s->launch_timer, 0, NULL);
	renew_ready(s); /* before any command of it can be asked for */
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if ((s->limits_unset & limits[i].bit) != 0)
			session_notice(s, "limitNotSet", limits[i].name);
	out = events_begin(s->source, RPC_EVENT_READY, NULL);
	rpc_add_str(out, "backend", "native");
	rpc_add_u64(out, "pid", s->pid);
	events_end(s->source);
	session_set_state(s, SESSION_WARM);
	session_start_wall(s, 0);
	session_settle(s);
	while ((call = waiters_take(&s->launching)) != NULL) {
		struct rpc_out *answer = call_begin(call);

		rpc_add_map(answer, "handle");
		session_put_handle(s, answer, true);
		rpc_close(answer);
		call_end(call);
	}
	if (!s->client_here)
		session_client_lost(s);
}

/* ------------------------------------------------ end */

void
session_tell_killed(struct session *s, const char *exec_id,
    enum run_cause cause, uint64_t limit, uint64_t peak)
{
	struct rpc_out *out;

	if (exec_id == NULL) {
		if (s->killed_told)
			return;
		s->killed_told = true;
	}
	out = events_begin(s->source, RPC_EVENT_KILLED, exec_id);
	rpc_add_str(out, "cause", run_cause_name(cause));
	if (cause == RUN_CAUSE_OOM) {
		rpc_add_u64(out, "limit", limit);
		if (peak != 0)
			rpc_add_u64(out, "peak", peak);
	}
	events_end(s->source);
	log_event(EV_RUN_KILLED, LF_STR(LK_SESSION, s->id),
	    LF_NUM(LK_SANDBOX, s->sandbox),
	    LF_STR(LK_CAUSE, run_cause_name(cause)), LF_NUM(LK_LIMIT, limit),
	    LF_NUM(LK_PEAK, peak));
}

void
session_end(struct session *s, enum run_cause cause, uint64_t client)
{
	if (s->ending || s->ended)
		return;
	s->ending = true;
	s->cause = cause;
	(void)session_timer(s, &s->gone_timer, 0, NULL);
	(void)session_timer(s, &s->idle_timer, 0, NULL);
	(void)session_timer(s, &s->wall_timer, 0, NULL);
	if (s->sandbox == 0) /* still starting: launch_answer ends it */
		return;
	session_tell_killed(s, NULL, cause, 0, 0);
	(void)PEER_SEND(s->control->supervisor, destroy_ask,
	    .sandbox = s->sandbox, .client = client, .cause = cause,
	    .grace_ms = SESSION_DESTROY_GRACE_MS);
}

static void
finish(struct session *s)
{
	violations_flush(events_source_violations(s->source));
	session_set_state(s, SESSION_DESTROYED);
	log_event(EV_RUN_ENDED, LF_STR(LK_SESSION, s->id),
	    LF_NUM(LK_SANDBOX, s->sandbox),
	    LF_STR(LK_CAUSE, run_cause_name(s->cause)));
	session_remove(s);
}

static void
on_drained(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	exec_free_all(arg);
	finish(arg);
}

/* From the loop, in its next turn: the caller goes on using the session. The
 * timer was made when the run ended. */
void
session_try_finish(struct session *s)
{
	static const struct timeval now = { 0, 0 };

	if (s->ended && exec_alive(s) == 0 && s->end_timer != NULL)
		(void)evtimer_add(s->end_timer, &now);
}

int
sessions_on_run_ended(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_run_ended *m = &msg->run_ended;
	struct session *s = session_of_sandbox(ctx, m->sandbox);

	(void)peer;
	(void)fds;
	(void)nfds;
	if (s == NULL || s->ended)
		return 0;
	/* A cause that we gave stays; the host's own word otherwise. */
	if (!s->ending || m->cause == RUN_CAUSE_OOM ||
	    m->cause == RUN_CAUSE_SERVICE)
		s->cause = (enum run_cause)m->cause;
	if (s->cause != RUN_CAUSE_EXIT)
		session_tell_killed(s, NULL, s->cause, m->limit, m->peak);
	s->ended = true;
	if (session_timer(s, &s->end_timer, SESSION_DRAIN_MS, on_drained) < 0) {
		finish(s);
		return 0;
	}
	exec_end_all(s);
	session_try_finish(s);
	return 0;
}

int
sessions_on_run_notice(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_run_notice *m = &msg->run_notice;
	struct session *s = session_of_sandbox(ctx, m->sandbox);

	(void)peer;
	(void)fds;
	(void)nfds;
	if (s == NULL || (m->code == RUN_NOTICE_PID_LIMIT && s->pid_limit_told))
		return 0;
	s->pid_limit_told =
	    s->pid_limit_told || m->code == RUN_NOTICE_PID_LIMIT;
	session_notice(s, run_notice_name((unsigned)m->code), m->detail);
	return 0;
}

/* ------------------------------------------------ clients and configuration */

void
session_client_lost(struct session *s)
{
	const struct session_facts *facts;

	s->client_here = false;
	if (s->state == SESSION_ERROR) {
		(void)session_timer(s, &s->end_timer, 1, on_error_kept);
		return;
	}
	if (s->kept.data == NULL || s->ending || s->ended ||
	    s->state == SESSION_CREATED)
		return;
	facts = session_facts_of(s);
	if (facts->detach)
		return;
	if (facts->gone_ms == 0 ||
	    session_timer(s, &s->gone_timer, facts->gone_ms, on_gone) < 0)
		session_end(s, RUN_CAUSE_CLIENT_GONE, 0);
}

void
session_adopt(struct session *s, const struct caller *who)
{
	s->client = who->client;
	s->client_here = true;
	(void)session_timer(s, &s->gone_timer, 0, NULL);
}

void
sessions_client_gone(struct control *control, uint64_t client)
{
	struct session *s;

	TAILQ_FOREACH (s, &control->sessions->list, entry) {
		exec_client_lost(s, client);
		if (s->client == client && s->client_here)
			session_client_lost(s);
	}
}

void
sessions_open(struct control *control)
{
	struct session *s;

	control->sessions->open = true;
	/* They may be from before the configuration that we have read. */
	TAILQ_FOREACH (s, &control->sessions->list, entry)
		renew_session(s);
	renew_send(control, NULL);
	/* Restored ones have lost their connection with our predecessor. */
	TAILQ_FOREACH (s, &control->sessions->list, entry)
		if (!s->client_here)
			session_client_lost(s);
}

/* ------------------------------------------------ showing */

/* What a command without variables of its own is not given. */
static void
put_stripped(const struct session_facts *facts, const struct plan *plan,
    struct rpc_out *out)
{
	const struct environ_set none = { NULL, 0 };
	struct environ_result env;

	rpc_add_array(out, "stripped");
	if (plan_environ(facts, plan, &none, &env, NULL) == 0) {
		for (size_t i = 0; i < env.nstripped; i++)
			rpc_put_str(out, env.stripped[i]);
		environ_done(&env);
	}
	rpc_close(out);
}

void
session_put_details(const struct session *s, struct rpc_out *out, bool full)
{
	const struct session_facts *facts = session_facts_of(s);
	const struct plan *plan = session_plan_of(s);
	char digest[2 * PLAN_DIGEST + 1];

	session_hex(s->digest, sizeof(s->digest), digest);
	rpc_add_str(out, "workdir", plan->cwd);
	rpc_add_str(out, "home", plan->home);
	rpc_add_u64(out, "pid", s->pid);
	rpc_add_str(out, "planDigest", digest);
	if (plan->nroots > 0) {
		rpc_add_map(out, "guard");
		rpc_add_u64(out, "generation", facts->generation);
		rpc_close(out);
	}
	rpc_add_str(out, "mode", spec_mode_name((enum spec_mode)facts->mode));
	rpc_add_str(out, "user", facts->user);
	rpc_add_u64(out, "uid", facts->uid);
	rpc_add_u64(out, "ownerUid", s->owner);
	rpc_add_u64(out, "sandbox", s->sandbox);
	rpc_add_str(out, "workspaceId", facts->workspace_id);
	rpc_add_text(out, "agentId", facts->agent_id);
	rpc_add_text(out, "spaceId", facts->space_id);
	rpc_add_text(out, "conversationId", facts->conversation_id);
	rpc_add_text(out, "runId", facts->run_id);
	rpc_add_text(out, "actingUser", facts->acting_user);
	rpc_add_text(out, "adapter", facts->adapter);
	rpc_add_bool(out, "detach", facts->detach);
	rpc_add_u64(out, "createdMs", facts->created_ms);
	rpc_add_u64(out, "execs", exec_alive(s));
	rpc_add_u64(out, "memoryBytes", s->memory_bytes);
	rpc_add_u64(out, "pids", s->pids);
	rpc_add_u64(out, "denied",
	    violations_total(events_source_violations(s->source)));
	if (!full) /* in a list, hundreds must fit into a message */
		return;
	rpc_add_map(out, "confinement");
	explain_put_confinement(s, facts, plan, out);
	rpc_close(out);
	put_stripped(facts, plan, out);
	rpc_add_array(out, "mounts");
	for (size_t i = 0; i < plan->nmounts; i++) {
		rpc_open_map(out);
		rpc_add_str(out, "path", plan->mounts[i].target);
		rpc_add_bool(out, "readOnly", plan->mounts[i].read_only);
		rpc_close(out);
	}
	rpc_close(out);
}

void
session_put_handle(const struct session *s, struct rpc_out *out, bool full)
{
	rpc_add_str(out, "sessionId", s->id);
	rpc_add_str(out, "backend", "native");
	rpc_add_str(out, "state", session_state_name(s->state));
	if (s->state == SESSION_ERROR) {
		rpc_add_map(out, "error");
		rpc_add_u64(out, "code", (uint64_t)s->fault.code);
		rpc_add_str(out, "name", api_error_name(s->fault.code));
		rpc_add_str(out, "message", s->fault.text);
		rpc_add_text(out, "step", s->fault_step);
		rpc_close(out);
	}
	rpc_add_map(out, "details");
	session_put_details(s, out, full);
	rpc_close(out);
}

static void
put_row(const struct session *s, struct rpc_out *out)
{
	const struct session_facts *facts = session_facts_of(s);

	rpc_open_map(out);
	rpc_add_u64(out, "sandbox", s->sandbox);
	rpc_add_str(out, "sessionId", s->id);
	rpc_add_u64(out, "uid", s->owner);
	rpc_add_str(out, "backend", "native");
	rpc_add_str(out, "state", session_state_name(s->state));
	rpc_add_str(out, "mode", spec_mode_name((enum spec_mode)facts->mode));
	rpc_add_str(out, "user", facts->user);
	rpc_add_str(out, "workspaceId", facts->workspace_id);
	rpc_add_u64(out, "createdMs", facts->created_ms);
	rpc_add_u64(out, "execs", exec_alive(s));
	rpc_add_u64(out, "memoryBytes", s->memory_bytes);
	rpc_add_u64(out, "pids", s->pids);
	rpc_add_u64(out, "denied",
	    violations_total(events_source_violations(s->source)));
	rpc_close(out);
}

void
sessions_put_rows(struct control *control, const struct caller *who,
    const struct sessions_filter *filter, struct rpc_out *out)
{
	struct session *s;
	size_t n = 0;

	TAILQ_FOREACH (s, &control->sessions->list, entry) {
		if (n >= filter->limit)
			break;
		if (!caller_may_see(who, s->owner) ||
		    (filter->has_uid && filter->uid != s->owner) ||
		    (filter->session_id != NULL &&
			strcmp(filter->session_id, s->id) != 0))
			continue;
		put_row(s, out);
		n++;
	}
}
