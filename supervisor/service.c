/*
 * The order of things: what is started when, what each daemon is told, what
 * its end means for the others, and the way down. One function, service_
 * advance(), looks at what is there and takes the next step; it is called
 * whenever something has changed, so no event can come in a wrong order.
 */
#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/notify.h"
#include "supervisor/supervisor.h"

static struct child *
child_of(struct supervisor *s, enum child_id id)
{
	return &s->children[id];
}

static struct peer *
peer_of(struct supervisor *s, enum child_id id)
{
	return child_peer(child_of(s, id));
}

static int
dup_of(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* ------------------------------------------------ runs */

struct peer *
service_listener(struct supervisor *s)
{
	return s->fed ? peer_of(s, CHILD_CONTROL) : NULL;
}

void
service_refuse_launch(struct supervisor *s, uint64_t request, unsigned code,
    int error, const char *reason)
{
	struct msg_launch_answer answer = {
		.request = request,
		.code = code,
		.error = (uint64_t)error,
	};
	uint64_t left_out;

	MSG_SET_STR(answer.step, "supervisor");
	MSG_SET_STR(answer.reason, reason);
	if (quota_take(&s->refusals, supervisor_now_ms(), &left_out))
		log_event(EV_LAUNCH_REFUSED, LF_NUM(LK_REQUEST, request),
		    LF_STR(LK_REASON, reason), LF_NUM(LK_COUNT, left_out + 1));
	(void)peer_send(service_listener(s), MSG_launch_answer, &answer, NULL,
	    0);
}

void
service_egress_open(struct supervisor *s, const struct sandbox *sandbox)
{
	struct peer *proxyd = peer_of(s, CHILD_PROXYD);
	const struct msg_egress_open msg = { .sandbox = sandbox->id };
	int fds[3];

	/* Without proxyd the listeners wait; it gets them when it is back. */
	if (proxyd == NULL || sandbox->http_fd < 0)
		return;
	fds[0] = dup_of(sandbox->http_fd);
	fds[1] = dup_of(sandbox->socks_fd);
	fds[2] = dup_of(sandbox->egress_fd);
	if (fds[0] < 0 || fds[1] < 0 || fds[2] < 0) {
		log_event(EV_INTERNAL, LF_NUM(LK_SANDBOX, sandbox->id),
		    LF_STR(LK_REASON, "no descriptor left for the proxy"));
		close_all(fds, 3);
		return;
	}
	(void)peer_send(proxyd, MSG_egress_open, &msg, fds, 3);
}

void
service_run_ended(struct supervisor *s, struct sandbox *sandbox,
    const struct msg_run_ended *msg)
{
	if (sandbox->http_fd >= 0)
		(void)PEER_SEND(peer_of(s, CHILD_PROXYD), egress_close,
		    .sandbox = sandbox->id);
	if (sandbox->state == SANDBOX_LAUNCHING)
		service_refuse_launch(s, sandbox->request, API_HOST_ERROR, 0,
		    "the sandbox ended while it was starting");
	else if (service_listener(s) != NULL)
		(void)peer_send(service_listener(s), MSG_run_ended, msg, NULL,
		    0);
	else /* while control is away nobody else would record it */
		log_event(EV_RUN_ENDED, LF_NUM(LK_SANDBOX, sandbox->id),
		    LF_STR(LK_CAUSE, run_cause_name((unsigned)msg->cause)));
	requests_drop_rules(&s->requests, sandbox->id);
	sandboxes_remove(&s->sandboxes, sandbox);
}

static void
kill_run(void *ctx, struct sandbox *sandbox)
{
	int r = sandbox_kill(sandbox);

	(void)ctx;
	if (r < 0)
		log_event(EV_CGROUP_ERROR, LF_NUM(LK_SANDBOX, sandbox->id),
		    LF_STR(LK_STEP, "cgroup.kill"), LF_NUM(LK_ERRNO, -r));
	else
		log_event(EV_RUN_KILLED, LF_NUM(LK_SANDBOX, sandbox->id),
		    LF_STR(LK_CAUSE, run_cause_name(RUN_CAUSE_SERVICE)));
}

/* Kills what is left of a run and forgets it. */
static void
drop_run(void *ctx, struct sandbox *sandbox)
{
	const struct msg_run_ended msg = {
		.sandbox = sandbox->id,
		.cause = RUN_CAUSE_SERVICE,
	};

	kill_run(ctx, sandbox);
	service_run_ended(ctx, sandbox, &msg);
}

/* ------------------------------------------------ control */

static int
control_ready(struct supervisor *s, struct child *child)
{
	/* It says what it has read before it says that it is ready. */
	if (!s->have_conf)
		return -EPROTO;
	peer_set_state(child->peer, CHILD_PEER_SETUP);
	if (s->runtime_fd < 0 && runtime_open(s) < 0)
		service_stop(s, 1);
	return 0;
}

static void
control_gone(struct supervisor *s, struct child *child)
{
	clients_clear(&s->clients);
	requests_orphan(&s->requests);
	s->fed = false;
	if (s->reloading)
		notify_send("READY=1");
	s->reloading = false;
	/* A start that control refuses (the configuration, --sandbox) is not
	 * tried again; its status says why. */
	if (s->phase == PHASE_START)
		service_stop(s,
		    child->exit_status > 0 &&
			    child->exit_status != CHILD_EXEC_FAILED ?
			child->exit_status :
			1);
}

static void
send_probe(struct supervisor *s, struct peer *control)
{
	for (size_t i = 0; i < PROBE_ROW_COUNT; i++)
		if (s->probe.seen[i])
			(void)peer_send(control, MSG_probe_row,
			    &s->probe.rows[i], NULL, 0);
	(void)peer_send(control, MSG_probe_done, &s->probe.end, NULL, 0);
}

static void
send_run(void *ctx, struct sandbox *sandbox)
{
	struct supervisor *s = ctx;
	struct msg_restore_run msg = {
		.sandbox = sandbox->id,
		.owner_uid = sandbox->owner_uid,
		.run_uid = sandbox->run_uid,
		.frozen = sandbox->frozen,
		.pid = sandbox->pid,
		.landlock_abi = sandbox->landlock_abi,
		.limits_unset = sandbox->limits_unset,
		.kernel_guard = sandbox->kernel_guard,
	};
	int fds[3] = { -1, -1, -1 };
	size_t n = sandbox->guard_fd < 0 ? 2 : 3;

	/* One that its control never heard of is ended when it is ready. */
	if (sandbox->state == SANDBOX_LAUNCHING)
		return;
	msg.plan_digest.len = sizeof(sandbox->digest);
	memcpy(msg.plan_digest.data, sandbox->digest, sizeof(sandbox->digest));
	fds[0] = dup_of(sandbox->plan_fd);
	fds[1] = dup_of(sandbox->egress_fd);
	if (n > 2)
		fds[2] = dup_of(sandbox->guard_fd);
	if (fds[0] < 0 || fds[1] < 0 || (n > 2 && fds[2] < 0)) {
		log_event(EV_INTERNAL, LF_NUM(LK_SANDBOX, sandbox->id),
		    LF_STR(LK_REASON, "no descriptor left to restore it"));
		close_all(fds, n);
		return;
	}
	(void)peer_send(peer_of(s, CHILD_CONTROL), MSG_restore_run, &msg, fds,
	    n);
}

static void
open_control(struct supervisor *s)
{
	struct child *child = child_of(s, CHILD_CONTROL);
	const struct msg_control_open msg = { .generation = child->starts };
	int fd = dup_of(s->listen_fd);

	if (fd < 0 ||
	    peer_send(child_peer(child), MSG_control_open, &msg, &fd, 1) < 0) {
		child_kill(child);
		return;
	}
	peer_set_state(child->peer, CHILD_PEER_OPEN);
	if (s->phase != PHASE_START)
		return;
	s->phase = PHASE_RUN;
	log_event(EV_STARTED, LF_STR(LK_PATH, s->conf.socket_path));
	notify_send("READY=1");
}

void
service_restored(struct supervisor *s)
{
	const struct msg_restore_done msg = {
		.generation = child_of(s, CHILD_CONTROL)->starts,
	};
	struct peer *control = service_listener(s);

	if (control == NULL || peer_state(control) != CHILD_PEER_SETUP)
		return;
	(void)peer_send(control, MSG_restore_done, &msg, NULL, 0);
	open_control(s);
}

/* Rows, and for one that was started again the runs that go on. */
static void
feed_control(struct supervisor *s)
{
	struct child *control = child_of(s, CHILD_CONTROL);
	struct peer *launcherd = peer_of(s, CHILD_LAUNCHERD);

	s->fed = true;
	send_probe(s, control->peer);
	if (control->starts == 1) {
		open_control(s);
		return;
	}
	sandboxes_each(&s->sandboxes, send_run, s);
	if (launcherd == NULL ||
	    PEER_SEND(launcherd, restore_ask, .generation = control->starts) <
		0) {
		service_restored(s);
		return;
	}
	s->restores++;
}

/* ------------------------------------------------ launcherd */

static int
launcherd_ready(struct supervisor *s, struct child *child)
{
	struct msg_launcher_setup msg = {
		.probe = !s->probe.done,
		.allow_userns = s->conf.allow_userns,
		.guard = s->probe.done ? s->probe.end.guard : s->conf.guard,
	};
	int fd = dup_of(s->runtime_fd);

	MSG_SET_STR(msg.instance, s->instance);
	MSG_SET_STR(msg.libexec_dir, s->options.libexec_dir);
	peer_set_state(child->peer,
	    s->probe.done ? CHILD_PEER_OPEN : CHILD_PEER_SETUP);
	if (fd < 0 ||
	    peer_send(child->peer, MSG_launcher_setup, &msg, &fd, 1) < 0)
		child_kill(child);
	return 0;
}

static void
fail_request(void *ctx, const struct request *request)
{
	struct peer *control = service_listener(ctx);
	struct msg_lookup_answer answer = {
		.request = request->theirs,
		.error = EAGAIN,
	};

	if (request->kind == REQUEST_LOOKUP) {
		MSG_SET_STR(answer.reason, "the launcher is restarting");
		(void)peer_send(control, MSG_lookup_answer, &answer, NULL, 0);
	} else if (request->kind == REQUEST_FREEZE) {
		(void)PEER_SEND(control, freeze_answer,
		    .request = request->theirs, .sandbox = request->sandbox,
		    .error = EAGAIN);
	} else if (request->kind == REQUEST_RULES) {
		(void)PEER_SEND(control, rules_answer,
		    .request = request->theirs, .sandbox = request->sandbox,
		    .error = EAGAIN);
	} else {
		(void)PEER_SEND(control, stat_answer,
		    .request = request->theirs, .sandbox = request->sandbox,
		    .error = EAGAIN);
	}
}

/* The probe never stops the service and never counts as success (SPEC A9). */
static void
probe_failed(struct supervisor *s)
{
	memset(&s->probe, 0, sizeof(s->probe));
	MSG_SET_STR(s->probe.end.error, "stockade-launcherd does not start");
	s->probe.done = true;
}

static void
launcherd_gone(struct supervisor *s, struct child *child)
{
	requests_fail(&s->requests, fail_request, s);
	sandboxes_each(&s->sandboxes, drop_run, s);
	if (!s->probe.done) {
		memset(&s->probe, 0, sizeof(s->probe));
		if (child->failures >= PROBE_TRIES)
			probe_failed(s);
	}
	if (s->restores > 0) {
		s->restores = 0;
		service_restored(s);
	}
}

/* ------------------------------------------------ proxyd and resolver */

static void
open_egress(void *ctx, struct sandbox *sandbox)
{
	service_egress_open(ctx, sandbox);
}

/* A new pair for both, since one of them is new. */
static void
link_resolver(struct supervisor *s)
{
	struct peer *proxyd = peer_of(s, CHILD_PROXYD);
	struct peer *resolver = peer_of(s, CHILD_RESOLVER);
	const struct msg_resolver_link msg = { 0 };
	int pair[2];

	if (proxyd == NULL || resolver == NULL)
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		log_event(EV_INTERNAL, LF_STR(LK_STEP, "resolver link"),
		    LF_NUM(LK_ERRNO, errno));
		return;
	}
	(void)peer_send(proxyd, MSG_resolver_link, &msg, &pair[0], 1);
	(void)peer_send(resolver, MSG_resolver_link, &msg, &pair[1], 1);
}

static int
proxyd_ready(struct supervisor *s, struct child *child)
{
	peer_set_state(child->peer, CHILD_PEER_OPEN);
	(void)PEER_SEND(child->peer, proxy_setup,
	    .tunnels_session = s->conf.tunnels_session,
	    .tunnels_all = s->conf.tunnels_all,
	    .tunnel_idle_s = s->conf.tunnel_idle_s);
	link_resolver(s);
	sandboxes_each(&s->sandboxes, open_egress, s);
	return 0;
}

static int
resolver_ready(struct supervisor *s, struct child *child)
{
	peer_set_state(child->peer, CHILD_PEER_OPEN);
	link_resolver(s);
	return 0;
}

static void
helper_gone(struct supervisor *s, struct child *child)
{
	(void)s;
	(void)child;
}

/* clang-format off */
const struct child_kind child_kinds[CHILD_COUNT] = {
	[CHILD_CONTROL] = { "stockade-control", PROC_CONTROL, &control_ops,
	    CHILD_ARGS_CONF, control_ready, control_gone },
	[CHILD_LAUNCHERD] = { "stockade-launcherd", PROC_LAUNCHERD,
	    &launcherd_ops, CHILD_ARGS_NONE, launcherd_ready, launcherd_gone },
	[CHILD_PROXYD] = { "stockade-proxyd", PROC_PROXYD, &proxyd_ops,
	    CHILD_ARGS_ROOT, proxyd_ready, helper_gone },
	[CHILD_RESOLVER] = { "stockade-resolver", PROC_RESOLVER,
	    &resolver_ops, CHILD_ARGS_LEVEL, resolver_ready, helper_gone },
};
/* clang-format on */

/* ------------------------------------------------ start */

void
service_start(struct supervisor *s)
{
	child_start(child_of(s, CHILD_CONTROL));
}

/* True when the start cannot succeed: a program is missing, or a daemon that
 * every run needs does not come up. */
static bool
start_is_hopeless(struct supervisor *s)
{
	for (size_t i = 0; i < CHILD_COUNT; i++) {
		const struct child *child = &s->children[i];

		if (child->failures > 0 &&
		    child->exit_status == CHILD_EXEC_FAILED)
			return true;
		if (i != CHILD_LAUNCHERD && child->failures >= START_TRIES)
			return true;
	}
	return false;
}

static void
start_others(struct supervisor *s)
{
	for (size_t i = 0; i < CHILD_COUNT; i++)
		if (s->children[i].starts == 0)
			child_start(&s->children[i]);
}

static void
start_advance(struct supervisor *s)
{
	if (s->phase == PHASE_START && start_is_hopeless(s)) {
		log_line(LOG_LEVEL_ERR, "a daemon does not start");
		service_stop(s, 1);
		return;
	}
	if (peer_of(s, CHILD_CONTROL) == NULL)
		return;
	start_others(s);
	if (s->fed || !s->probe.done)
		return;
	if (s->phase == PHASE_START &&
	    (peer_of(s, CHILD_PROXYD) == NULL ||
		peer_of(s, CHILD_RESOLVER) == NULL))
		return;
	if (s->listen_fd < 0 && runtime_listen(s) < 0) {
		service_stop(s, 1);
		return;
	}
	feed_control(s);
}

void
service_reload(struct supervisor *s)
{
	char text[64];
	struct peer *control = service_listener(s);

	if (s->phase != PHASE_RUN || s->reloading || control == NULL)
		return;
	s->reloading = true;
	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
	    (unsigned long long)supervisor_now_ms() * 1000);
	notify_send(text);
	(void)PEER_SEND(control, reload_ask, .unused_ = 0);
}

/* ------------------------------------------------ stop */

static void
stop_run(void *ctx, struct sandbox *sandbox)
{
	struct supervisor *s = ctx;

	if (sandbox->state != SANDBOX_LAUNCHING)
		sandbox->state = SANDBOX_ENDING;
	(void)PEER_SEND(peer_of(s, CHILD_LAUNCHERD), destroy_ask,
	    .sandbox = sandbox->id, .cause = RUN_CAUSE_SERVICE,
	    .grace_ms = STOP_GRACE_MS);
}

static void
set_stop_timer(struct supervisor *s, unsigned ms)
{
	const struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	(void)event_add(s->stop_timer, &tv);
}

static void
end_daemons(struct supervisor *s)
{
	(void)event_del(s->stop_timer);
	s->phase = PHASE_STOP_DAEMONS;
	for (size_t i = 0; i < CHILD_COUNT; i++)
		child_end(&s->children[i]);
}

static void
stop_advance(struct supervisor *s)
{
	if (s->phase == PHASE_STOP_RUNS) {
		if (peer_of(s, CHILD_LAUNCHERD) == NULL)
			sandboxes_each(&s->sandboxes, drop_run, s);
		if (s->sandboxes.count > 0)
			return;
		end_daemons(s);
	}
	for (size_t i = 0; i < CHILD_COUNT; i++)
		if (s->children[i].status != CHILD_DOWN)
			return;
	(void)event_base_loopbreak(s->base);
}

/* Launcherd took too long: first the kill by cgroup, then without it. */
static void
stop_late(evutil_socket_t fd, short what, void *arg)
{
	struct supervisor *s = arg;

	(void)fd;
	(void)what;
	if (s->stop_ticks++ == 0) {
		sandboxes_each(&s->sandboxes, kill_run, s);
		set_stop_timer(s, 1000);
		return;
	}
	sandboxes_each(&s->sandboxes, drop_run, s);
	stop_advance(s);
}

void
service_stop(struct supervisor *s, int status)
{
	if (s->phase == PHASE_STOP_RUNS || s->phase == PHASE_STOP_DAEMONS) {
		sandboxes_each(&s->sandboxes, drop_run, s);
		for (size_t i = 0; i < CHILD_COUNT; i++)
			child_kill(&s->children[i]);
		return;
	}
	s->exit_status = status;
	s->phase = PHASE_STOP_RUNS;
	log_event(EV_STOPPING, LF_NUM(LK_STATUS, status),
	    LF_NUM(LK_COUNT, s->sandboxes.count));
	notify_send("STOPPING=1");
	if (s->stop_timer == NULL)
		s->stop_timer = evtimer_new(s->base, stop_late, s);
	sandboxes_each(&s->sandboxes, stop_run, s);
	/* From the loop, since a handler of a daemon that ends may be above. */
	if (s->stop_timer != NULL)
		set_stop_timer(s, STOP_RUNS_MS);
	if (s->sandboxes.count == 0)
		stop_advance(s);
}

void
service_advance(struct supervisor *s)
{
	if (s->phase == PHASE_START || s->phase == PHASE_RUN)
		start_advance(s);
	else
		stop_advance(s);
}
