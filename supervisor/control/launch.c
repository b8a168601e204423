/*
 * In stockade-control. sandbox.launch: spec, backend, user, question, answer,
 * plan, sandbox. The client's word decides nothing about ids: run_uid is
 * checked once more by the supervisor, which knows the caller from the kernel.
 */
#include "supervisor/control/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "config.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/size.h"
#include "protocol/guard.h"
#include "protocol/peer.h"
#include "supervisor/control/backend.h"
#include "supervisor/control/client.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/explain_path.h"
#include "supervisor/control/name_rules.h"

void
session_answer_fault(struct call *call, const struct spec_fault *fault,
    const char *step)
{
	struct call_detail detail = { .step = step, .error = fault->error };
	char field[sizeof(fault->field) + 8];

	if (fault->field[0] != '\0') {
		(void)snprintf(field, sizeof(field), "spec.%s", fault->field);
		detail.field = field;
	}
	call_fail_detail(call, fault->code, &detail, "%s", fault->text);
}

void
launch_free(struct launch *l)
{
	if (l == NULL)
		return;
	TAILQ_REMOVE(&l->control->sessions->launches, l, entry);
	if (l->waits_for != NULL)
		TAILQ_REMOVE(&l->waits_for->replacing, l, wait_entry);
	if (l->call != NULL)
		call_fail(l->call, API_RESTARTING, NULL,
		    "the service is stopping");
	if (l->timer != NULL)
		event_free(l->timer);
	spec_free(l->spec);
	plan_made_free(l->made);
	pool_done(&l->pool);
	free(l);
}

static void
refuse(struct launch *l, const struct spec_fault *fault)
{
	struct spec_fault shown;

	log_event(EV_LAUNCH_REFUSED,
	    LF_STR(LK_SESSION, l->spec == NULL ? "" : l->spec->session_id),
	    LF_NUM(LK_CLIENT, l->client), LF_NUM(LK_PEER_UID, l->owner),
	    LF_STR(LK_CAUSE, api_error_name(fault->code)),
	    LF_STR(LK_REASON, fault->text));
	shown = *fault;
	/* explain answers fewer codes (SPEC X11); the text says what it is */
	if (l->explain &&
	    (fault->code == API_UNAVAILABLE || fault->code == API_UNCONFINED ||
		fault->code == API_HOST_ERROR))
		shown.code = API_UNSUPPORTED;
	session_answer_fault(l->call, &shown, NULL);
	l->call = NULL;
	launch_free(l);
}

/* ------------------------------------------------ before the question */

static const enum api_error verdict_errors[] = {
	[BACKEND_REFUSED_INTERNAL] = API_INTERNAL,
	[BACKEND_CHOSEN] = API_OK,
	[BACKEND_BAD_PARAMS] = API_BAD_PARAMS,
	[BACKEND_UNAVAILABLE] = API_UNAVAILABLE,
	[BACKEND_UNCONFINED] = API_UNCONFINED,
	[BACKEND_UNSUPPORTED] = API_UNSUPPORTED,
};

static const char *
reason_of(const struct probe_result *result)
{
	return result->install_hint[0] != '\0' ? result->install_hint :
						 result->note;
}

static void
fill_ask(const struct launch *l, struct backend_ask *ask)
{
	const struct control *control = l->control;
	const struct probe_report *report = &control->probe.report;
	const struct spec *spec = l->spec;

	ask->explicit_name = spec->backend;
	ask->stored_name = spec->stored_backend;
	ask->has_stored = spec->has_stored;
	ask->windows = report->windows;
	ask->setting = control->setting.setting;
	ask->setting_source = control->setting.source;
	ask->conf_default = control->conf->backend_default;
	ask->native_available = report->results[BACKEND_NATIVE].available;
	ask->native_reason = reason_of(&report->results[BACKEND_NATIVE]);
	ask->microvm_available = report->results[BACKEND_MICROVM].available;
	ask->microvm_reason = reason_of(&report->results[BACKEND_MICROVM]);
	ask->restricts_network = !spec->network || spec->egress_allow.n > 0;
	ask->accept_unconfined = spec->accept_unconfined;
}

/* Only `native` is built; the others are refused with the reason. */
static int
choose_backend(struct launch *l, struct spec_fault *fault)
{
	autofree struct backend_choice *choice = calloc(1, sizeof(*choice));
	struct backend_ask ask = { 0 };

	if (choice == NULL)
		return spec_fault_set(fault, API_INTERNAL, NULL,
		    "out of memory");
	fill_ask(l, &ask);
	backend_choose(&ask, choice);
	if (choice->verdict != BACKEND_CHOSEN)
		return spec_fault_set(fault, verdict_errors[choice->verdict],
		    choice->verdict == BACKEND_BAD_PARAMS ? "backend" : NULL,
		    "%s", choice->message);
	if (choice->log_line[0] != '\0')
		log_line(LOG_LEVEL_NOTICE, "%s", choice->log_line);
	if (choice->backend == BACKEND_NATIVE)
		return 0;
	return spec_fault_set(fault, API_UNSUPPORTED, NULL,
	    "runs with backend %s are not in this version%s%s",
	    backend_name(choice->backend), choice->why[0] == '\0' ? "" : ": ",
	    choice->why);
}

/* A run of a daemon's uid could signal that daemon. */
static bool
is_service_user(const struct control *control, uid_t uid)
{
	static const char *const names[] = { CONTROL_USER, PROXY_USER,
		RESOLVE_USER, BROKER_USER };
	uid_t own;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (users_find(&control->sessions->users, names[i], &own) ==
			0 &&
		    own == uid)
			return true;
	return false;
}

/* SPEC C7 and the roles of X2; the supervisor checks it again. */
static int
choose_user(struct launch *l, struct spec_fault *fault)
{
	const struct caller *who = call_caller(l->call);
	const char *user = l->spec->user;
	uid_t uid = who->uid;

	if (user == NULL && uid == 0)
		user = l->control->conf->run_user;
	if (user != NULL &&
	    users_find(&l->control->sessions->users, user, &uid) < 0)
		return spec_fault_set(fault, API_BAD_PARAMS, "user",
		    "user: there is no user %s on this host", user);
	if (uid == 0)
		return spec_fault_set(fault, API_BAD_PARAMS, "user",
		    "a run needs a user that is not root");
	if (is_service_user(l->control, uid))
		return spec_fault_set(fault, API_BAD_PARAMS, "user",
		    "user: a run cannot be one of the service's own users");
	if (uid != who->uid && !who->is_operator)
		return spec_fault_set(fault, API_FORBIDDEN, "user",
		    "user: only an operator may name another user");
	l->run_uid = uid;
	return 0;
}

static int
check_quota(struct launch *l, struct spec_fault *fault)
{
	const struct sessions *all = l->control->sessions;
	const uint64_t *limits = l->control->conf->limits;
	const struct launch *other;
	size_t mine = 0, others = 0;

	/* Joining or replacing a session makes no further one. */
	if (session_find_owned(l->control, l->owner, l->spec->session_id) !=
	    NULL)
		return 0;
	TAILQ_FOREACH (other, &all->launches, entry) {
		mine += other->owner == l->owner;
		others++;
	}
	if (session_count_of(all, &l->owner) + mine >
		limits[LIMIT_SESSIONS_UID] ||
	    session_count_of(all, NULL) + others > limits[LIMIT_SESSIONS])
		return spec_fault_set(fault, API_LIMIT, NULL,
		    "too many sessions");
	return 0;
}

static void
on_time(int fd, short what, void *arg)
{
	struct spec_fault fault;

	(void)fd;
	(void)what;
	(void)spec_fault_set(&fault, API_HOST_ERROR, NULL,
	    "the look-up of the paths took more than 10 s");
	fault.error = ETIMEDOUT;
	refuse(arg, &fault);
}

static int
start_timer(struct launch *l)
{
	const struct timeval tv = { .tv_sec = SESSION_LAUNCH_MS / 1000 };

	l->timer = evtimer_new(l->control->base, on_time, l);
	return l->timer != NULL && evtimer_add(l->timer, &tv) == 0 ? 0 :
								     -ENOMEM;
}

/* Seals `bytes` and gives the descriptor, or -errno. */
static int
seal(const char *name, const struct wire_out *bytes)
{
	return bytes->err ? -ENOMEM : memfd_seal(name, bytes->data, bytes->len);
}

static int
take_path(struct launch *l, struct spec_fault *fault)
{
	const char *path = call_str(l->call, "path");

	if (path == NULL)
		return 0;
	l->path = pool_strdup(&l->pool, path);
	return l->path != NULL ?
	    0 :
	    spec_fault_set(fault, API_INTERNAL, NULL, "out of memory");
}

/* Takes fd, or the -errno of making it. */
static int
send_question(struct launch *l, int question_fd, struct spec_fault *fault)
{
	struct msg_lookup_ask msg = { .request = l->request,
		.client = l->client,
		.run_uid = l->run_uid };
	int fd = question_fd;
	int r = fd < 0 ? fd : start_timer(l);

	if (r < 0)
		close_all(&fd, 1);
	else
		r = peer_send(l->control->supervisor, MSG_lookup_ask, &msg, &fd,
		    1);
	if (r == 0)
		return 0;
	(void)spec_fault_set(fault, API_HOST_ERROR, NULL,
	    "the look-up could not be started");
	fault->error = -r;
	return -EINVAL;
}

/* With the path that the rules are asked about; one that is relative to a plan
 * that does not stand yet is not looked up. */
static int
ask_path(struct launch *l, struct spec_fault *fault)
{
	const char *clean;

	if (l->path == NULL || l->path[0] != '/')
		return 0;
	clean = spec_path_clean(&l->pool, l->path, strlen(l->path));
	if (clean == NULL || plan_ask_path(&l->pool, clean, &l->asked) == 0)
		return 0;
	return spec_fault_set(fault, API_LIMIT, "path", "path: it is too long");
}

static int
find_places(struct launch *l)
{
	struct wire_out places;
	int r;

	wire_out_init(&places);
	plan_ask_places(l->spec, &places);
	r = plan_sha256(&places, l->places);
	wire_out_done(&places);
	return r;
}

static int
ask(struct launch *l, struct spec_fault *fault)
{
	struct wire_out question;
	int fd;

	if (plan_ask(l->spec, l->control->conf, &l->pool, &l->asked, fault) !=
		0 ||
	    ask_path(l, fault) != 0)
		return -EINVAL;
	if (find_places(l) < 0)
		return spec_fault_set(fault, API_INTERNAL, NULL,
		    "out of memory");
	wire_out_init(&question);
	if (plan_ask_encode(&l->asked, l->spec, l->control->conf,
		seen_find(&l->control->sessions->seen, l->run_uid, l->places),
		&question, fault) != 0) {
		wire_out_done(&question);
		return -EINVAL;
	}
	fd = seal("lookup", &question);
	wire_out_done(&question);
	return send_question(l, fd, fault);
}

/* NULL after the answer. */
static struct launch *
launch_new(struct control *control, struct call *call)
{
	struct launch *l = calloc(1, sizeof(*l));
	const struct caller *who = call_caller(call);

	if (l == NULL) {
		call_fail_internal(call, -ENOMEM, "launch");
		return NULL;
	}
	l->control = control;
	l->call = call;
	l->client = who->client;
	l->owner = who->uid;
	l->request = control_number(control);
	TAILQ_INSERT_TAIL(&control->sessions->launches, l, entry);
	return l;
}

/* Without an answer of the look-up the rules are told all the same. */
static void
answer_path_of(struct launch *l)
{
	struct session *s = session_of_sandbox(l->control, l->path_of);

	if (s == NULL)
		call_fail(l->call, API_NOT_FOUND, NULL,
		    "there is no such session");
	else
		explain_answer(l->call, session_plan_of(s), session_guard_of(s),
		    session_facts_of(s), l);
	l->call = NULL;
	launch_free(l);
}

/* Only the path; nothing is searched. */
static int
ask_path_alone(struct launch *l, struct spec_fault *fault)
{
	autofree struct lookup_question *question =
	    calloc(1, sizeof(*question));
	struct wire_out bytes;
	int fd;

	if (question == NULL)
		return -ENOMEM;
	question->items[question->nitems++].path = l->path;
	wire_out_init(&bytes);
	lookup_question_encode(question, &bytes);
	fd = seal("lookup", &bytes);
	wire_out_done(&bytes);
	return send_question(l, fd, fault);
}

void
launch_explain_path(struct session *s, struct call *call)
{
	struct launch *l = launch_new(s->control, call);
	struct spec_fault fault;

	if (l == NULL)
		return;
	l->explain = true;
	l->path_of = s->sandbox;
	l->run_uid = session_facts_of(s)->uid;
	if (take_path(l, &fault) != 0) {
		refuse(l, &fault);
		return;
	}
	l->path = explain_path_clean(&l->pool, l->path, session_plan_of(s));
	if (l->path == NULL) {
		(void)spec_fault_set(&fault, API_BAD_PATH, NULL,
		    "path: a path without .. is expected");
		refuse(l, &fault);
	} else if (ask_path_alone(l, &fault) != 0) {
		answer_path_of(l);
	}
}

void
launch_start(struct control *control, struct call *call, bool explain)
{
	struct launch *l = launch_new(control, call);
	struct spec_fault fault;

	if (l == NULL)
		return;
	l->explain = explain;
	l->replace = call_bool(call, "replace", false);
	if ((explain && take_path(l, &fault) != 0) ||
	    spec_parse(rpc_map(call_params(call), "spec"), &l->spec, &fault) !=
		0 ||
	    choose_backend(l, &fault) != 0 || choose_user(l, &fault) != 0 ||
	    check_quota(l, &fault) != 0 || ask(l, &fault) != 0)
		refuse(l, &fault);
}

/* ------------------------------------------------ with the answer */

static void
answer_plan(struct launch *l)
{
	const struct plan_made *made = l->made;
	autofree struct guard *guard = NULL;
	char digest[2 * PLAN_DIGEST + 1];
	struct rpc_out *out;

	if (made->plan->nroots > 0)
		guard = malloc(sizeof(*guard));
	if (made->plan->nroots > 0 &&
	    (guard == NULL ||
		guard_decode(made->guard_bytes.data, made->guard_bytes.len,
		    guard) < 0)) {
		call_fail_internal(l->call, -ENOMEM, "explain");
	} else if (l->path != NULL) {
		explain_answer(l->call, made->plan, guard, made->facts, l);
	} else {
		session_hex(made->digest, PLAN_DIGEST, digest);
		out = call_begin(l->call);
		rpc_add_map(out, "plan");
		rpc_add_str(out, "digest", digest);
		explain_put_plan(made->plan, made->facts, made->egress, guard,
		    out);
		rpc_close(out);
		call_end(l->call);
	}
	l->call = NULL;
	launch_free(l);
}

static int
keep(struct session *s, const struct plan_made *made)
{
	const struct wire_out *plan = &made->plan_bytes;
	const struct wire_out *egress = &made->egress_bytes;
	const struct wire_out *guard = &made->guard_bytes;

	if (plan->err || egress->err || guard->err)
		return -ENOMEM;
	return kept_set(&s->kept, s->control->sessions->opened,
	    (struct kept_bytes){ plan->data, plan->len },
	    (struct kept_bytes){ egress->data, egress->len },
	    (struct kept_bytes){ guard->data, guard->len });
}

/* The session takes the call. NULL: the launch was answered and freed. */
static struct session *
make_session(struct launch *l)
{
	struct session *s =
	    session_new(l->control, l->spec->session_id, l->owner, false);

	if (s == NULL || keep(s, l->made) < 0 ||
	    waiters_add(&s->launching, l->call) < 0) {
		if (s != NULL)
			session_remove(s);
		call_fail_internal(l->call, -ENOMEM, "session");
		l->call = NULL;
		launch_free(l);
		return NULL;
	}
	s->client = l->client;
	s->client_here = call_connected(l->call);
	s->request = l->request;
	memcpy(s->digest, l->made->digest, sizeof(s->digest));
	l->call = NULL;
	return s;
}

static void
on_launch_time(int fd, short what, void *arg)
{
	struct spec_fault fault;

	(void)fd;
	(void)what;
	(void)spec_fault_set(&fault, API_HOST_ERROR, NULL,
	    "the sandbox was not ready within 10 s");
	fault.error = ETIMEDOUT;
	session_fail(arg, &fault, "start");
}

static int
send_launch(struct session *s, const struct plan_made *made, uint64_t run_uid,
    uint64_t client)
{
	struct msg_launch_ask msg = { .request = s->request,
		.client = client,
		.run_uid = run_uid };
	size_t n = made->plan->nroots > 0 ? 3 : 2;
	int fds[3] = { -1, -1, -1 }, error = 0;

	msg.plan_digest.len = PLAN_DIGEST;
	memcpy(msg.plan_digest.data, s->digest, PLAN_DIGEST);
	fds[0] = seal("plan", &made->plan_bytes);
	fds[1] = seal("egress", &made->egress_bytes);
	if (n > 2)
		fds[2] = seal("guard", &made->guard_bytes);
	for (size_t i = 0; i < n && error == 0; i++)
		if (fds[i] < 0)
			error = fds[i];
	if (error < 0) {
		close_all(fds, n);
		return error;
	}
	return peer_send(s->control->supervisor, MSG_launch_ask, &msg, fds, n);
}

/* SPEC H10: what a spec adds to the allow list, with its origin. */
static void
log_additions(const struct spec *spec, uint64_t request)
{
	for (size_t i = 0; i < spec->egress_allow.n; i++)
		log_event(EV_NOTICE, LF_STR(LK_SESSION, spec->session_id),
		    LF_NUM(LK_REQUEST, request), LF_STR(LK_NAME, "egressAdded"),
		    LF_STR(LK_HOST, spec->egress_allow.items[i]),
		    LF_STR(LK_RULE, "spec"));
}

/* SPEC D2: by the stored probe, before anything of the run exists. */
static bool
lacks_guard(const struct launch *l, struct spec_fault *fault)
{
	if (l->made->plan->nroots == 0 ||
	    l->control->probe.report.mechanisms[PROBE_GUARD_CREATE].available)
		return false;
	(void)spec_fault_set(fault, API_GUARD_UNAVAILABLE, NULL,
	    "sandbox refused: file-name rule \"%s\" cannot be enforced at "
	    "creation on this host; new files could not be protected",
	    name_rules_first());
	return true;
}

static void
commit(struct launch *l)
{
	bool stale = l->stale;
	struct session *s = make_session(l);
	struct plan_made *made;
	uint64_t run_uid, client;
	struct spec_fault fault;
	int r;

	if (s == NULL)
		return;
	run_uid = l->run_uid;
	client = l->client;
	made = take_ptr(&l->made);
	log_additions(l->spec, s->request);
	launch_free(l);
	session_set_state(s, SESSION_CREATED);
	log_event(EV_LAUNCH_STARTED, LF_STR(LK_SESSION, s->id),
	    LF_NUM(LK_REQUEST, s->request), LF_NUM(LK_PEER_UID, s->owner),
	    LF_NUM(LK_RUN_UID, run_uid));
	for (size_t i = 0; i < made->nnotices; i++)
		session_notice(s, made->notices[i].code,
		    made->notices[i].detail);
	if (stale)
		renew_session(s);
	r = session_timer(s, &s->launch_timer, SESSION_LAUNCH_MS,
	    on_launch_time);
	if (r == 0)
		r = send_launch(s, made, run_uid, client);
	plan_made_free(made);
	if (r < 0) {
		(void)spec_fault_set(&fault, API_HOST_ERROR, NULL,
		    "the plan could not be handed over");
		fault.error = -r;
		session_fail(s, &fault, "plan");
	}
}

/* The label is in use by a session that goes on with the same plan. */
static void
join(struct launch *l, struct session *s)
{
	const struct caller *who = call_caller(l->call);
	struct rpc_out *out;

	if (!s->client_here && call_connected(l->call))
		session_adopt(s, who);
	if (s->state == SESSION_CREATED) {
		if (waiters_add(&s->launching, l->call) < 0)
			call_fail_internal(l->call, -ENOMEM, "launch");
	} else {
		out = call_begin(l->call);
		rpc_add_map(out, "handle");
		session_put_handle(s, out, true);
		rpc_close(out);
		call_end(l->call);
	}
	l->call = NULL;
	launch_free(l);
}

/* SPEC I18: equal digest joins, another one is refused or replaces. */
static void
decide(struct launch *l)
{
	struct session *s =
	    session_find_owned(l->control, l->owner, l->spec->session_id);
	struct spec_fault fault;

	if (lacks_guard(l, &fault)) {
		refuse(l, &fault);
		return;
	}
	if (s != NULL && s->state == SESSION_ERROR) {
		session_remove(s);
		s = NULL;
	}
	if (s == NULL) {
		commit(l);
		return;
	}
	if (!s->ending && !s->ended &&
	    memcmp(s->digest, l->made->digest, PLAN_DIGEST) == 0) {
		join(l, s);
		return;
	}
	if (!l->replace && !s->ending && !s->ended) {
		(void)spec_fault_set(&fault, API_EXISTS, NULL,
		    "session %s exists with another plan", s->id);
		refuse(l, &fault);
		return;
	}
	l->waits_for = s;
	TAILQ_INSERT_TAIL(&s->replacing, l, wait_entry);
	session_end(s, RUN_CAUSE_MANUAL, l->client);
}

void
launch_go_on(struct launch *l)
{
	decide(l);
}

static enum api_error
lookup_error(uint64_t error)
{
	switch (error) {
	case EPERM:
		return API_FORBIDDEN;
	case EAGAIN:
	case ECONNRESET:
	case EPIPE:
		return API_RESTARTING;
	default:
		return API_LOOKUP_FAILED;
	}
}

/* What was found at the path that is asked about: the last question. */
static void
take_found(struct launch *l, const struct lookup_results *results)
{
	const struct lookup_result *from;
	struct lookup_result *to;

	if (results->nresults == 0 ||
	    results->nresults != (l->path_of != 0 ? 1 : l->asked.n) ||
	    (l->path_of == 0 &&
		l->asked.items[l->asked.n - 1].role != PLAN_ROLE_EXPLAIN))
		return;
	from = &results->results[results->nresults - 1];
	to = pool_alloc(&l->pool, 1, sizeof(*to));
	if (to == NULL)
		return;
	*to = *from;
	to->literal = l->path;
	to->resolved = pool_strdup(&l->pool, from->resolved);
	if (to->resolved != NULL)
		l->found = to;
}

static int
make_plan(struct launch *l, const struct msg_lookup_answer *m, int fd,
    struct spec_fault *fault)
{
	autofree struct lookup_results *results = calloc(1, sizeof(*results));
	struct memfd_map map = { NULL, 0 };
	const struct plan_input in = {
		.spec = l->spec,
		.conf = l->control->conf,
		.host = &l->control->sessions->host,
		.asked = &l->asked,
		.results = results,
		.user = { m->user, m->home, m->shell, m->run_uid, m->run_gid },
		.memory_default = l->control->sessions->memory_default,
		.now_ms = control_time_ms(),
	};
	int r;

	if (results == NULL)
		return spec_fault_set(fault, API_INTERNAL, NULL,
		    "out of memory");
	if (fd < 0 || m->run_uid != l->run_uid ||
	    memfd_open_map(fd, LOOKUP_BYTES_MAX, &map) < 0 ||
	    lookup_results_decode(map.data, map.len, results) < 0)
		r = spec_fault_set(fault, API_LOOKUP_FAILED, NULL,
		    "the look-up's answer cannot be read");
	else
		r = l->path_of != 0 ? 0 : plan_make(&in, &l->made, fault);
	if (r == 0)
		take_found(l, results);
	if (r == 0 && l->spec != NULL)
		seen_keep(&l->control->sessions->seen, l->run_uid, l->places,
		    results->seen);
	memfd_unmap(&map);
	return r;
}

int
sessions_on_lookup_answer(void *ctx, struct peer *peer,
    const union msg_any *msg, int *fds, size_t nfds)
{
	const struct msg_lookup_answer *m = &msg->lookup_answer;
	autoclose int fd = nfds > 0 ? take_fd(&fds[0]) : -1;
	struct control *control = ctx;
	struct spec_fault fault;
	struct launch *l;

	(void)peer;
	TAILQ_FOREACH (l, &control->sessions->launches, entry)
		if (l->request == m->request)
			break;
	if (l == NULL || l->made != NULL)
		return 0; /* timed out meanwhile */
	if (l->path_of != 0) {
		if (m->error == 0)
			(void)make_plan(l, m, fd, &fault);
		answer_path_of(l);
		return 0;
	}
	if (m->error != 0) {
		(void)spec_fault_set(&fault, lookup_error(m->error), NULL, "%s",
		    m->reason[0] != '\0' ? m->reason : "the look-up failed");
		refuse(l, &fault);
		return 0;
	}
	(void)evtimer_del(l->timer);
	if (make_plan(l, m, fd, &fault) != 0)
		refuse(l, &fault);
	else if (l->explain)
		answer_plan(l);
	else
		decide(l);
	return 0;
}

/* ------------------------------------------------ the sandbox stands, or not */

static struct session *
session_of_request(struct control *control, uint64_t request)
{
	struct session *s;

	TAILQ_FOREACH (s, &control->sessions->list, entry)
		if (s->request == request)
			return s;
	return NULL;
}

static void
fail_launch(struct session *s, const struct msg_launch_answer *m)
{
	enum api_error code = (enum api_error)m->code;
	struct spec_fault fault;

	if (strcmp(api_error_name(code), "unknown") == 0)
		code = API_INTERNAL;
	(void)spec_fault_set(&fault, code, NULL, "%s%s%s", m->step,
	    m->step[0] != '\0' && m->reason[0] != '\0' ? ": " : "", m->reason);
	fault.error = (int)m->error;
	session_fail(s, &fault, m->step);
}

int
sessions_on_launch_answer(void *ctx, struct peer *peer,
    const union msg_any *msg, int *fds, size_t nfds)
{
	const struct msg_launch_answer *m = &msg->launch_answer;
	struct session *s = session_of_request(ctx, m->request);
	enum run_cause cause;

	(void)fds;
	(void)nfds;
	if (s == NULL || s->state != SESSION_CREATED) {
		/* Too late: we gave it up. */
		if (m->code == API_OK && m->sandbox != 0)
			(void)PEER_SEND(peer, destroy_ask,
			    .sandbox = m->sandbox, .cause = RUN_CAUSE_MANUAL);
		return 0;
	}
	if (m->code != API_OK) {
		fail_launch(s, m);
		return 0;
	}
	if (m->sandbox == 0)
		return -EPROTO;
	s->sandbox = m->sandbox;
	s->pid = m->pid;
	s->landlock_abi = m->landlock_abi;
	s->limits_unset = m->limits_unset;
	s->kernel_guard = m->kernel_guard != 0;
	log_event(EV_LAUNCH_READY, LF_STR(LK_SESSION, s->id),
	    LF_NUM(LK_SANDBOX, s->sandbox), LF_NUM(LK_REQUEST, s->request));
	session_ready(s);
	if (s->ending) { /* destroyed while it was starting */
		cause = s->cause;
		s->ending = false;
		session_end(s, cause, 0);
	}
	return 0;
}
