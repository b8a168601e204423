/*
 * What launcherd, proxyd and the resolver may say, and when. Launcherd is as
 * root as we are, but reads the plans of control and talks with the runs;
 * proxyd reads the agents' and the network's bytes. Neither can give a number
 * that was not given to it, answer twice, speak of a sandbox that never was,
 * or reach anybody but control.
 *
 * A late word about a run that has ended is no fault: two messages may cross.
 */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/size.h"
#include "protocol/lookup.h"
#include "supervisor/supervisor.h"

static struct supervisor *
of(void *ctx)
{
	return ((struct child *)ctx)->supervisor;
}

int
dispatch_ready(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct child *child = ctx;
	struct supervisor *s = child->supervisor;
	int r;

	(void)peer;
	(void)msg;
	(void)fds;
	(void)nfds;
	child_ready(child);
	r = child->kind->on_ready(s, child);
	if (r < 0)
		return r;
	service_advance(s);
	return 0;
}

/* To control, which is then given time to read. */
static void
tell_control(struct child *from, enum msg_type type, const void *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = from->supervisor;

	(void)peer_send(service_listener(s), type, msg, fds, nfds);
	child_balance(from, &s->children[CHILD_CONTROL]);
}

/* ------------------------------------------------ probe */

static int
on_probe_row(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct probe_result *probe = &of(ctx)->probe;
	const struct msg_probe_row *row = &msg->probe_row;

	(void)peer;
	(void)fds;
	(void)nfds;
	/* Each row once: a result is never taken back. */
	if (probe->seen[row->row])
		return -EPROTO;
	probe->seen[row->row] = true;
	probe->rows[row->row] = *row;
	return 0;
}

static int
on_probe_done(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);

	(void)fds;
	(void)nfds;
	s->probe.end = msg->probe_done;
	s->probe.done = true;
	peer_set_state(peer, CHILD_PEER_OPEN);
	service_advance(s);
	return 0;
}

/* ------------------------------------------------ look-ups */

static int
on_lookup_answer(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct msg_lookup_answer answer = msg->lookup_answer;
	struct request *request =
	    requests_find(&s->requests, REQUEST_LOOKUP, answer.request);
	bool found = answer.error == 0;

	(void)peer;
	if (request == NULL || request->answered_ms != 0 ||
	    nfds != (found ? 1u : 0u) ||
	    (found &&
		(answer.run_uid != request->run_uid ||
		    memfd_check(fds[0], LOOKUP_BYTES_MAX) < 0))) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	answer.request = request->theirs;
	if (request->orphan) {
		close_all(fds, nfds);
		requests_remove(&s->requests, request);
		return 0;
	}
	/* Only one that succeeded is good for a launch. */
	if (found)
		request->answered_ms = supervisor_now_ms();
	else
		requests_remove(&s->requests, request);
	tell_control(ctx, MSG_lookup_answer, &answer, fds, nfds);
	return 0;
}

/* ------------------------------------------------ launches */

static int
on_launch_made(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct sandbox *sandbox = NULL;
	enum sandbox_found found =
	    sandboxes_find(&s->sandboxes, msg->launch_made.sandbox, &sandbox);

	(void)peer;
	if (found == SANDBOX_LIVE && sandbox->cgroup_fd < 0 &&
	    sandbox->state == SANDBOX_LAUNCHING) {
		sandbox->cgroup_fd = take_fd(&fds[0]);
		sandbox->http_fd = take_fd(&fds[1]);
		sandbox->socks_fd = take_fd(&fds[2]);
		service_egress_open(s, sandbox);
		child_balance(ctx, &s->children[CHILD_PROXYD]);
		return 0;
	}
	close_all(fds, nfds);
	return found == SANDBOX_GONE ? 0 : -EPROTO;
}

/* Ready, but the control that asked is gone: nobody would ever use it. */
static bool
is_orphan(struct supervisor *s, const struct sandbox *sandbox)
{
	return service_listener(s) == NULL ||
	    sandbox->generation != s->children[CHILD_CONTROL].starts;
}

static void
launch_ready(struct supervisor *s, struct peer *launcherd,
    struct sandbox *sandbox, const struct msg_launch_answer *answer)
{
	sandbox->state = SANDBOX_RUNNING;
	sandbox->pid = answer->pid;
	sandbox->landlock_abi = answer->landlock_abi;
	sandbox->limits_unset = answer->limits_unset;
	sandbox->kernel_guard = answer->kernel_guard;
	if (!is_orphan(s, sandbox) && s->phase == PHASE_RUN)
		return;
	sandbox->state = SANDBOX_ENDING;
	(void)PEER_SEND(launcherd, destroy_ask, .sandbox = sandbox->id,
	    .cause = RUN_CAUSE_SERVICE, .grace_ms = 0);
}

static int
on_launch_answer(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct msg_launch_answer answer = msg->launch_answer;
	struct sandbox *sandbox = NULL;
	enum sandbox_found found =
	    sandboxes_find(&s->sandboxes, answer.sandbox, &sandbox);

	(void)fds;
	(void)nfds;
	if (found != SANDBOX_LIVE)
		return found == SANDBOX_GONE ? 0 : -EPROTO;
	/* Answered once, and never before the kill switch is in our hand. */
	if (sandbox->state != SANDBOX_LAUNCHING ||
	    (answer.code == API_OK && sandbox->cgroup_fd < 0))
		return -EPROTO;
	answer.request = sandbox->request;
	if (!is_orphan(s, sandbox))
		tell_control(ctx, MSG_launch_answer, &answer, NULL, 0);
	if (answer.code == API_OK) {
		launch_ready(s, peer, sandbox, &answer);
		return 0;
	}
	(void)sandbox_kill(sandbox);
	if (sandbox->http_fd >= 0)
		(void)PEER_SEND(child_peer(&s->children[CHILD_PROXYD]),
		    egress_close, .sandbox = sandbox->id);
	sandboxes_remove(&s->sandboxes, sandbox);
	service_advance(s);
	return 0;
}

/* ------------------------------------------------ runs */

static int
on_run_ended(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct sandbox *sandbox = NULL;
	enum sandbox_found found =
	    sandboxes_find(&s->sandboxes, msg->run_ended.sandbox, &sandbox);

	(void)peer;
	(void)fds;
	(void)nfds;
	if (found != SANDBOX_LIVE)
		return found == SANDBOX_GONE ? 0 : -EPROTO;
	service_run_ended(s, sandbox, &msg->run_ended);
	child_balance(ctx, &s->children[CHILD_CONTROL]);
	service_advance(s);
	return 0;
}

/* What is said about a run and goes to control as it is. */
static int
relay(void *ctx, enum msg_type type, uint64_t id, const void *msg, int *fds,
    size_t nfds)
{
	struct sandbox *sandbox = NULL;
	enum sandbox_found found =
	    sandboxes_find(&of(ctx)->sandboxes, id, &sandbox);

	if (found == SANDBOX_LIVE)
		tell_control(ctx, type, msg, fds, nfds);
	else
		close_all(fds, nfds);
	return found == SANDBOX_NEVER ? -EPROTO : 0;
}

static int
on_run_notice(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	(void)peer;
	return relay(ctx, MSG_run_notice, msg->run_notice.sandbox,
	    &msg->run_notice, fds, nfds);
}

/* The question behind an answer about a sandbox; NULL: nobody asked. */
static struct request *
asked(struct supervisor *s, enum request_kind kind, uint64_t number,
    uint64_t sandbox)
{
	struct request *request = requests_find(&s->requests, kind, number);

	return request != NULL && request->sandbox == sandbox ? request : NULL;
}

static int
on_freeze_answer(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct msg_freeze_answer answer = msg->freeze_answer;
	struct request *request =
	    asked(s, REQUEST_FREEZE, answer.request, answer.sandbox);
	struct sandbox *sandbox = NULL;

	(void)peer;
	(void)fds;
	(void)nfds;
	if (request == NULL)
		return -EPROTO;
	if (answer.error == 0 &&
	    sandboxes_find(&s->sandboxes, answer.sandbox, &sandbox) ==
		SANDBOX_LIVE)
		sandbox->frozen = answer.frozen == 1;
	answer.request = request->theirs;
	if (!request->orphan)
		tell_control(ctx, MSG_freeze_answer, &answer, NULL, 0);
	requests_remove(&s->requests, request);
	return 0;
}

static int
on_stat_answer(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct msg_stat_answer answer = msg->stat_answer;
	struct request *request =
	    asked(s, REQUEST_STAT, answer.request, answer.sandbox);

	(void)peer;
	(void)fds;
	(void)nfds;
	if (request == NULL)
		return -EPROTO;
	answer.request = request->theirs;
	if (!request->orphan)
		tell_control(ctx, MSG_stat_answer, &answer, NULL, 0);
	requests_remove(&s->requests, request);
	return 0;
}

/* From here on the sandbox has the plan that goes with its rules, also for a
 * control that is started later. */
static void
take_rules(struct sandbox *sandbox, struct request *request)
{
	close_all(&sandbox->plan_fd, 1);
	close_all(&sandbox->guard_fd, 1);
	sandbox->plan_fd = take_fd(&request->plan_fd);
	sandbox->guard_fd = take_fd(&request->guard_fd);
	memcpy(sandbox->digest, request->digest, sizeof(sandbox->digest));
}

static int
on_rules_answer(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct msg_rules_answer answer = msg->rules_answer;
	struct request *request =
	    asked(s, REQUEST_RULES, answer.request, answer.sandbox);
	struct sandbox *sandbox = NULL;
	enum sandbox_found found =
	    sandboxes_find(&s->sandboxes, answer.sandbox, &sandbox);

	(void)peer;
	(void)fds;
	(void)nfds;
	if (request == NULL)
		return found == SANDBOX_GONE ? 0 : -EPROTO;
	if (answer.error == 0 && found == SANDBOX_LIVE)
		take_rules(sandbox, request);
	answer.request = request->theirs;
	if (!request->orphan)
		tell_control(ctx, MSG_rules_answer, &answer, NULL, 0);
	requests_remove(&s->requests, request);
	return 0;
}

/* ------------------------------------------------ commands */

/* One descriptor for each bit of `io`. */
static bool
fds_fit(uint64_t io, size_t nfds)
{
	return (size_t)__builtin_popcountll(io) == nfds;
}

static int
on_exec_answer(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	(void)peer;
	if (!fds_fit(msg->exec_answer.io, nfds)) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	/* Sent before restore_ask was read, so that restore_exec follows; the
	 * control that is to have that did not ask. */
	if (of(ctx)->restores > 0) {
		close_all(fds, nfds);
		return 0;
	}
	return relay(ctx, MSG_exec_answer, msg->exec_answer.sandbox,
	    &msg->exec_answer, fds, nfds);
}

static int
on_exec_exit(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	(void)peer;
	return relay(ctx, MSG_exec_exit, msg->exec_exit.sandbox,
	    &msg->exec_exit, fds, nfds);
}

/* ------------------------------------------------ restore */

/* Only what belongs to the last question reaches control: an earlier one was
 * asked for a control that is gone. */
static int
on_restore_exec(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	struct supervisor *s = of(ctx);

	(void)peer;
	if (s->restores == 0 || !fds_fit(msg->restore_exec.io, nfds)) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	if (s->restores > 1) {
		close_all(fds, nfds);
		return 0;
	}
	return relay(ctx, MSG_restore_exec, msg->restore_exec.sandbox,
	    &msg->restore_exec, fds, nfds);
}

static int
on_restore_done(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	struct supervisor *s = of(ctx);

	(void)peer;
	(void)msg;
	(void)fds;
	(void)nfds;
	if (s->restores == 0)
		return -EPROTO;
	if (--s->restores == 0)
		service_restored(s);
	return 0;
}

/* ------------------------------------------------ violations */

/* While control is away nobody else would record it. */
static int
report(void *ctx, const struct msg_violation *msg)
{
	struct supervisor *s = of(ctx);

	if (service_listener(s) == NULL)
		log_event(EV_VIOLATION, LF_NUM(LK_SANDBOX, msg->sandbox),
		    LF_STR(LK_ACTION, violation_name((unsigned)msg->action)),
		    LF_STR(LK_TARGET, msg->target), LF_NUM(LK_PORT, msg->port),
		    LF_STR(LK_RULE, msg->rule), LF_STR(LK_REASON, msg->reason),
		    LF_NUM(LK_COUNT, msg->count));
	return relay(ctx, MSG_violation, msg->sandbox, msg, NULL, 0);
}

static int
on_violation(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	return report(ctx, &msg->violation);
}

static int
on_denial(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	const struct msg_denial *msg = &any->denial;

	(void)peer;
	(void)fds;
	(void)nfds;
	if (service_listener(of(ctx)) == NULL)
		log_event(EV_VIOLATION, LF_NUM(LK_SANDBOX, msg->sandbox),
		    LF_STR(LK_ACTION, violation_name((unsigned)msg->action)),
		    LF_STR(LK_TARGET, msg->path), LF_STR(LK_RULE, msg->rule),
		    LF_STR(LK_REMEDY, msg->remedy), LF_NUM(LK_PID, msg->pid),
		    LF_STR(LK_EXE, msg->exe), LF_NUM(LK_COUNT, msg->count));
	return relay(ctx, MSG_denial, msg->sandbox, msg, NULL, 0);
}

static int
on_repository(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	(void)peer;
	return relay(ctx, MSG_repository, msg->repository.sandbox,
	    &msg->repository, fds, nfds);
}

/* Proxyd sees the network and cannot know about files. */
static int
on_network_violation(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	if (msg->violation.action != VIOLATION_NETWORK &&
	    msg->violation.action != VIOLATION_DNS)
		return -EPROTO;
	return report(ctx, &msg->violation);
}

/* clang-format off */
#define STARTING (1u << CHILD_PEER_STARTING)
#define SETUP (1u << CHILD_PEER_SETUP)
#define OPEN (1u << CHILD_PEER_OPEN)
static const struct peer_handler launcherd_handlers[] = {
	{ MSG_ready, STARTING, true, dispatch_ready },
	{ MSG_probe_row, SETUP, false, on_probe_row },
	{ MSG_probe_done, SETUP, true, on_probe_done },
	{ MSG_lookup_answer, OPEN, false, on_lookup_answer },
	{ MSG_launch_made, OPEN, false, on_launch_made },
	{ MSG_launch_answer, OPEN, false, on_launch_answer },
	{ MSG_run_ended, OPEN, false, on_run_ended },
	{ MSG_freeze_answer, OPEN, false, on_freeze_answer },
	{ MSG_stat_answer, OPEN, false, on_stat_answer },
	{ MSG_rules_answer, OPEN, false, on_rules_answer },
	{ MSG_run_notice, OPEN, false, on_run_notice },
	{ MSG_exec_answer, OPEN, false, on_exec_answer },
	{ MSG_exec_exit, OPEN, false, on_exec_exit },
	{ MSG_violation, OPEN, false, on_violation },
	{ MSG_denial, OPEN, false, on_denial },
	{ MSG_repository, OPEN, false, on_repository },
	{ MSG_restore_exec, OPEN, false, on_restore_exec },
	{ MSG_restore_done, OPEN, false, on_restore_done },
};
static const struct peer_handler proxyd_handlers[] = {
	{ MSG_ready, STARTING, true, dispatch_ready },
	{ MSG_violation, OPEN, false, on_network_violation },
};
static const struct peer_handler resolver_handlers[] = {
	{ MSG_ready, STARTING, true, dispatch_ready },
};
/* clang-format on */

const struct peer_ops launcherd_ops = {
	.handlers = launcherd_handlers,
	.nhandlers = ARRAY_LEN(launcherd_handlers),
	.on_end = child_on_end,
};
const struct peer_ops proxyd_ops = {
	.handlers = proxyd_handlers,
	.nhandlers = ARRAY_LEN(proxyd_handlers),
	.on_end = child_on_end,
};
const struct peer_ops resolver_ops = {
	.handlers = resolver_handlers,
	.nhandlers = ARRAY_LEN(resolver_handlers),
	.on_end = child_on_end,
};
