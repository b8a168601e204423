/*
 * launcherd: the runs' state table; see run.h. Messages from stockade-init are
 * those of a process with the run's uid and hostile: each is accepted in its
 * state only, and a broken rule ends the run.
 */
#include "launcherd/run.h"

#include <sys/inotify.h>
#include <sys/wait.h>

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "launcherd/broker_run.h"
#include "launcherd/exec.h"
#include "launcherd/guard/kernel.h"
#include "launcherd/inspect.h"
#include "launcherd/launch.h"
#include "launcherd/launcherd.h"
#include "launcherd/masking.h"
#include "launcherd/probe.h"
#include "launcherd/view.h"
#include "protocol/cause.h"
#include "protocol/message.h"

#define LAUNCH_TIMEOUT_MS 10000
#define FREEZE_TIMEOUT_MS 5000
/* Between the end of init and the exit of bubblewrap, which tells how. */
#define EXIT_WAIT_MS 1000
/* A killed run that does not become empty: a process in the kernel. */
#define KILL_REPORT_MS 5000
#define REMOVE_FIRST_MS 2
/* For the next launch, after one is ready: its first command goes first. */
#define PREPARE_MS 10
#define PREPARE_END_MS 2 /* after one: who waits for its end goes first */
#define PIDS_POLL_MS 1000
#define TRIM_EVERY 64 /* runs */
#define REMOVE_TRIES 10

enum init_state { INIT_STARTING, INIT_UP };

static void
set_timer(struct event *timer, long ms)
{
	const struct timeval tv = { ms / 1000, (ms % 1000) * 1000 };

	if (timer != NULL)
		(void)evtimer_add(timer, &tv);
}

static void
clear_event(struct event **event)
{
	if (*event != NULL)
		event_free(*event);
	*event = NULL;
}

struct run *
run_find(struct launcherd *l, uint64_t sandbox)
{
	struct run *run;

	TAILQ_FOREACH (run, &l->runs.list, entry)
		if (run->sandbox == sandbox && run->probe == NULL)
			return run;
	return NULL;
}

static void
set_cause(struct run *run, unsigned cause)
{
	if (run->cause_known)
		return;
	run->cause_known = true;
	run->cause = cause;
}

/* ---------------------------------------------------------------- ending */

static void
run_free(struct run *run)
{
	exec_free_all(run);
	clear_event(&run->exit_event);
	clear_event(&run->oom_event);
	clear_event(&run->timer);
	clear_event(&run->freeze_timer);
	peer_free(run->init);
	inspect_free(run->inspection);
	guarding_free(run->guarding);
	masking_free(run->masking);
	close_all(&run->error_fd, 1);
	close_all(&run->oom_fd, 1);
	close_all(&run->bwrap.pidfd, 1);
	if (run->has_cgroup)
		cgroup_close(&run->cgroup);
	if (run->etc != NULL)
		view_tree_put(run->l->view, run->etc);
	free(run->failure);
	free(run);
}

static void
send_failure(struct run *run)
{
	struct msg_launch_answer msg = {
		.request = run->request,
		.sandbox = run->sandbox,
		.code = API_INTERNAL,
	};
	const struct run_failure *f = run->failure;

	if (f != NULL) {
		msg.code = f->code;
		msg.error = (uint64_t)f->error;
		MSG_SET_STR(msg.step, f->step);
		MSG_SET_STR(msg.reason, f->reason);
	}
	(void)peer_send(run->l->supervisor, MSG_launch_answer, &msg, NULL, 0);
}

static void
prepare(struct launcherd *l, long ms)
{
	lookups_prepare(l, ms);
	launch_prepare(l, ms);
}

/* The last message, once nothing is left. */
static void
run_gone(struct run *run)
{
	struct launcherd *l = run->l;

	TAILQ_REMOVE(&l->runs.list, run, entry);
	l->runs.count--;
	guarding_drain(run->guarding);
	if (run->probe != NULL) {
		probe_run_gone(run->probe, run->failure);
	} else if (!run->was_ready) {
		send_failure(run);
	} else {
		(void)PEER_SEND(l->supervisor, run_ended,
		    .sandbox = run->sandbox, .cause = run->cause,
		    .limit = run->limit, .peak = run->peak);
		prepare(l, PREPARE_END_MS);
	}
	run_free(run);
	/* The probe has found another mechanism, or none. */
	if (l->probe == NULL && l->guard != GUARD_BPF_LSM)
		kernel_guard_close(l, true);
	/* What many runs leave lies between what goes on living. */
	if (++l->runs.gone % TRIM_EVERY == 0)
		(void)malloc_trim(0);
}

/*
 * Removes the directories. The kernel may still be taking the last process
 * apart when it says "empty" (EBUSY): tried again a few times, by timer.
 */
static void
run_remove(struct run *run)
{
	int error = 0;

	if (run->has_cgroup)
		error = cgroup_remove(run->l->cgroups, &run->cgroup);
	if (error == -EBUSY && run->remove_tries < REMOVE_TRIES) {
		set_timer(run->timer, REMOVE_FIRST_MS << run->remove_tries++);
		return;
	}
	if (error < 0)
		log_event(EV_CGROUP_ERROR, LF_NUM(LK_SANDBOX, run->sandbox),
		    LF_STR(LK_ACTION, "remove"), LF_NUM(LK_ERRNO, -error));
	run_gone(run);
}

/* Once, when nothing of the run can write any more. */
static bool
must_inspect(struct run *run)
{
	if (run->inspected || !run->was_ready ||
	    guarding_repositories(run->guarding) == 0)
		return false;
	run->inspected = true;
	(void)evtimer_del(run->timer);
	return true;
}

/* Takes the step that is possible now: called after everything that may have
 * been the last thing to wait for. May free the run. */
void
run_advance(struct run *run)
{
	struct cgroup_state state;

	if (run->state == RUN_REMOVING) {
		run_remove(run);
		return;
	}
	if (run->state != RUN_KILLED || run->bwrap.pid > 0 ||
	    guarding_alive(run->guarding) || masking_alive(run->masking) ||
	    inspect_alive(run->inspection))
		return;
	if (run->has_cgroup) {
		int error = cgroup_state(run->cgroup.fd, &state);

		if (error == 0 && state.populated)
			return;
		if (error < 0 && error != -ENODEV)
			log_event(EV_CGROUP_ERROR,
			    LF_NUM(LK_SANDBOX, run->sandbox),
			    LF_STR(LK_ACTION, "state"),
			    LF_NUM(LK_ERRNO, -error));
	}
	if (must_inspect(run)) {
		inspect_start(run);
		if (inspect_alive(run->inspection))
			return;
	}
	run->state = RUN_REMOVING;
	run_remove(run);
}

static void
answer_freeze(struct run *run, int error)
{
	if (!run->freezing)
		return;
	run->freezing = false;
	(void)evtimer_del(run->freeze_timer);
	if (error == 0)
		run->frozen = run->freeze_want;
	(void)PEER_SEND(run->l->supervisor, freeze_answer,
	    .request = run->freeze_request, .sandbox = run->sandbox,
	    .frozen = run->frozen, .error = (uint64_t)error);
}

/* A broker is told before a process of the run executes again. */
static int
thaw(struct run *run)
{
	if (!run->has_cgroup)
		return 1;
	guarding_freeze(run->guarding, false);
	return cgroup_freeze_step(&run->cgroup, false);
}

/* Takes the step towards what was asked for that is possible now. */
static void
step_freeze(struct run *run)
{
	int r;

	if (!run->freezing)
		return;
	r = cgroup_freeze_step(&run->cgroup, run->freeze_want);
	if (r != 0)
		answer_freeze(run, r < 0 ? -r : 0);
}

/* No process of the run may go on from here; reaches frozen ones. */
static void
run_kill_now(struct run *run)
{
	int error;

	if (run->state == RUN_KILLED || run->state == RUN_REMOVING)
		return;
	run->state = RUN_KILLED;
	answer_freeze(run, ECANCELED);
	set_timer(run->timer, KILL_REPORT_MS);
	if (!run->has_cgroup)
		return;
	error = cgroup_kill(run->cgroup.fd);
	if (error < 0) {
		log_event(EV_CGROUP_ERROR, LF_NUM(LK_SANDBOX, run->sandbox),
		    LF_STR(LK_ACTION, "kill"), LF_NUM(LK_ERRNO, -error));
		spawn_kill(&run->bwrap);
	}
}

void
run_kill(struct run *run, unsigned cause)
{
	set_cause(run, cause);
	run_kill_now(run);
}

bool
run_check_oom(struct run *run)
{
	struct cgroup_use use;

	if (run->cause_known)
		return run->cause == RUN_CAUSE_OOM;
	if (!run->has_cgroup)
		return false;
	cgroup_use(run->l->cgroups, &run->cgroup, &use);
	if (use.oom_kills == 0)
		return false;
	run->limit = use.memory_limit;
	run->peak = use.memory_peak;
	run_fail(run, API_HOST_ERROR, ENOMEM, "memory",
	    "the memory limit was exceeded");
	run_kill(run, RUN_CAUSE_OOM);
	return true;
}

/* ---------------------------------------------------------------- bubblewrap */

/* What bubblewrap printed, for the reason of a failed start; it may quote a
 * path of the plan, so it is cleaned by run_fail. */
static void
fail_by_bwrap(struct run *run, int status)
{
	char text[768];
	char reason[RUN_REASON_MAX];
	ssize_t n = run->error_fd < 0 ?
	    -1 :
	    read(run->error_fd, text, sizeof(text) - 1);

	if (n < 0)
		n = 0;
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	if (n > 0)
		(void)snprintf(reason, sizeof(reason), "%s", text);
	else if (WIFSIGNALED(status))
		(void)snprintf(reason, sizeof(reason),
		    "bubblewrap was killed by signal %d", WTERMSIG(status));
	else
		(void)snprintf(reason, sizeof(reason),
		    "bubblewrap ended with status %d", WEXITSTATUS(status));
	run_fail(run, API_HOST_ERROR, EIO, "bubblewrap", reason);
}

static void
on_exit_event(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	int status;

	(void)fd;
	(void)what;
	clear_event(&run->exit_event);
	status = spawn_reap(&run->bwrap);
	run_check_pids(run);
	if (!run_check_oom(run)) {
		if (run->state == RUN_STARTING)
			fail_by_bwrap(run, status);
		run_kill(run,
		    status != -1 && WIFEXITED(status) &&
			    WEXITSTATUS(status) == 0 ?
			RUN_CAUSE_EXIT :
			RUN_CAUSE_SERVICE);
	}
	run_advance(run);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;

	(void)fd;
	(void)what;
	switch (run->state) {
	case RUN_STARTING:
		run_fail(run, API_TIMEOUT, ETIMEDOUT, "init",
		    "the sandbox was not ready within 10 s");
		run_kill(run, RUN_CAUSE_SERVICE);
		break;
	case RUN_READY: /* init is gone, bubblewrap did not follow */
		if (run_check_oom(run))
			break;
		guarding_report(run);
		run_kill(run, RUN_CAUSE_SERVICE);
		break;
	case RUN_STOPPING:
		run_kill_now(run);
		break;
	case RUN_KILLED:
		log_event(EV_CGROUP_ERROR, LF_NUM(LK_SANDBOX, run->sandbox),
		    LF_STR(LK_ACTION, "a killed run has processes left"));
		set_timer(run->timer, KILL_REPORT_MS);
		break;
	case RUN_REMOVING:
		break;
	}
	run_advance(run);
}

static void
on_oom_event(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) < 0)
		return;
	(void)run_check_oom(run);
	run_advance(run);
}

/* ---------------------------------------------------------------- init */

void
run_ready(struct run *run)
{
	run->state = RUN_READY;
	run->was_ready = true;
	(void)evtimer_del(run->timer);
	close_all(&run->error_fd, 1);
	if (run->probe != NULL) {
		probe_run_ready(run->probe, run);
		return;
	}
	(void)PEER_SEND(run->l->supervisor, launch_answer,
	    .request = run->request, .sandbox = run->sandbox,
	    .pid = (uint64_t)run->pid, .landlock_abi = run->landlock_abi,
	    .limits_unset = run->limits_unset,
	    .kernel_guard = guarding_kernel(run->guarding));
	prepare(run->l, PREPARE_MS);
}

static int
on_init_ready(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct run *run = ctx;

	(void)fds;
	(void)nfds;
	if (run->guarding != NULL && !guarding_ready(run->guarding))
		return -EPROTO;
	peer_set_state(peer, INIT_UP);
	/* Too late: it is being taken down already. */
	if (run->state != RUN_STARTING)
		return 0;
	run->landlock_abi = (unsigned)msg->init_ready.landlock_abi;
	run->init_ready = true;
	if (run->guarding == NULL && masking_start(run) < 0)
		run_kill(run, RUN_CAUSE_SERVICE);
	else if (run->masking == NULL)
		run_ready(run);
	return 0;
}

static int
on_init_listener(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	struct run *run = ctx;
	int error;

	(void)peer;
	(void)msg;
	if (run->guarding == NULL || run->state != RUN_STARTING ||
	    guarding_kernel(run->guarding) != (nfds == 0)) {
		close_all(fds, nfds);
		return run->guarding == NULL || run->state == RUN_STARTING ?
		    -EPROTO :
		    0;
	}
	/* They go on side by side; the broker opens nothing yet. */
	error = guarding_start(run, nfds > 0 ? take_fd(&fds[0]) : -1);
	if (error == 0)
		error = masking_start(run);
	if (error < 0)
		run_kill(run, RUN_CAUSE_SERVICE);
	else if (guarding_kernel(run->guarding))
		guarding_go(run);
	return 0;
}

static int
on_init_failed(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct run *run = ctx;
	char reason[RUN_REASON_MAX];
	bool guard;

	(void)peer;
	(void)fds;
	(void)nfds;
	(void)snprintf(reason, sizeof(reason), "%s: %s", msg->init_failed.step,
	    strerror((int)msg->init_failed.error));
	/* SPEC D2: what the host lacks for the name rules. */
	guard = run->guarding != NULL &&
	    strncmp(msg->init_failed.step, "guard", 5) == 0;
	run_fail(run, guard ? API_GUARD_UNAVAILABLE : API_HOST_ERROR,
	    (int)msg->init_failed.error, guard ? "guard" : "init", reason);
	run_kill(run, RUN_CAUSE_SERVICE);
	return 0;
}

static int
on_init_exec_answer(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	(void)peer;
	return exec_init_answer(ctx, &msg->init_exec_answer, fds, nfds);
}

static int
on_init_exit(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	return exec_init_exit(ctx, &msg->init_exit);
}

/*
 * End of file: init has ended, the kernel ends the others, and bubblewrap's
 * exit says how. Anything else is a broken rule: the run's uid speaks there,
 * so the run is over.
 */
static void
on_init_end(void *ctx, struct peer *peer, enum chan_end why, const char *text)
{
	struct run *run = ctx;

	(void)text;
	run->init = NULL;
	peer_free(peer);
	if (why != CHAN_END_EOF) {
		run_fail(run, API_INTERNAL, EPROTO, "init",
		    "stockade-init broke the message rules");
		run_kill(run, RUN_CAUSE_SERVICE);
	} else if (run->state != RUN_KILLED && run->state != RUN_REMOVING) {
		set_timer(run->timer, EXIT_WAIT_MS);
	}
	run_advance(run);
}

static const struct peer_handler init_handlers[] = {
	{ MSG_init_ready, 1u << INIT_STARTING, true, on_init_ready },
	{ MSG_init_listener, 1u << INIT_STARTING, true, on_init_listener },
	{ MSG_init_failed, 1u << INIT_STARTING, true, on_init_failed },
	{ MSG_init_exec_answer, 1u << INIT_UP, false, on_init_exec_answer },
	{ MSG_init_exit, 1u << INIT_UP, false, on_init_exit },
};
static const struct peer_ops init_ops = {
	init_handlers,
	sizeof(init_handlers) / sizeof(init_handlers[0]),
	on_init_end,
};

/* ---------------------------------------------------------------- watching */

void
run_check_pids(struct run *run)
{
	struct cgroup_use use;
	struct msg_run_notice msg = { .sandbox = run->sandbox,
		.code = RUN_NOTICE_PID_LIMIT };

	if (run->pids_noticed || run->probe != NULL || !run->has_cgroup)
		return;
	cgroup_use(run->l->cgroups, &run->cgroup, &use);
	if (use.forks_refused == 0)
		return;
	run->pids_noticed = true;
	MSG_SET_STR(msg.detail, "the limit of processes was reached");
	(void)peer_send(run->l->supervisor, MSG_run_notice, &msg, NULL, 0);
}

static bool
is_polled(const struct run *run)
{
	return run->nexecs > 0 && run->has_cgroup && !run->pids_noticed &&
	    run->probe == NULL && run->state < RUN_KILLED &&
	    cgroup_pids_silent(&run->cgroup);
}

static void
on_pids_timer(evutil_socket_t fd, short what, void *arg)
{
	struct launcherd *l = arg;
	struct run *run;
	bool more = false;

	(void)fd;
	(void)what;
	TAILQ_FOREACH (run, &l->runs.list, entry) {
		if (is_polled(run))
			run_check_pids(run);
		more = more || is_polled(run);
	}
	if (more)
		set_timer(l->runs.pids_timer, PIDS_POLL_MS);
}

void
run_poll_pids(struct run *run)
{
	struct launcherd *l = run->l;

	if (!is_polled(run))
		return;
	if (l->runs.pids_timer == NULL)
		l->runs.pids_timer = evtimer_new(l->base, on_pids_timer, l);
	if (l->runs.pids_timer != NULL &&
	    !evtimer_pending(l->runs.pids_timer, NULL))
		set_timer(l->runs.pids_timer, PIDS_POLL_MS);
}

/* Something about the run's cgroup changed; the kernel does not say what. */
static void
run_changed(struct run *run)
{
	if (run->state < RUN_KILLED) {
		run_check_pids(run);
		(void)run_check_oom(run);
	}
	step_freeze(run);
	run_advance(run);
}

static struct run *
find_watch(struct launcherd *l, int wd)
{
	struct run *run;

	TAILQ_FOREACH (run, &l->runs.list, entry)
		for (size_t i = 0; i < run->nwatches; i++)
			if (run->watches[i] == wd)
				return run;
	return NULL;
}

static void
on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct launcherd *l = arg;
	char buf[4096] __attribute__((aligned(8)));
	ssize_t n;

	(void)what;
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (char *p = buf; p < buf + n;) {
			const struct inotify_event *e =
			    (const struct inotify_event *)(const void *)p;
			struct run *run = find_watch(l, e->wd);

			if (run != NULL && (e->mask & IN_IGNORED) == 0)
				run_changed(run);
			else if ((e->mask & IN_Q_OVERFLOW) != 0)
				log_event(EV_CGROUP_ERROR,
				    LF_STR(LK_ACTION,
					"notifications were lost"));
			p += sizeof(*e) + e->len;
		}
	}
}

/* The watches must stand before the first process: then no change is missed. */
int
run_watch(struct run *run)
{
	char paths[CGROUP_WATCHES][CGROUP_WATCH_PATH];
	struct launcherd *l = run->l;
	size_t n = cgroup_watch_paths(l->cgroups, &run->cgroup, paths);
	int error;

	for (size_t i = 0; i < n; i++) {
		int wd =
		    inotify_add_watch(l->runs.watch_fd, paths[i], IN_MODIFY);

		if (wd < 0)
			return -errno;
		run->watches[run->nwatches++] = wd;
	}
	error = cgroup_oom_eventfd(l->cgroups, &run->cgroup, &run->oom_fd);
	if (error < 0 || run->oom_fd < 0)
		return error;
	run->oom_event = event_new(l->base, run->oom_fd, EV_READ | EV_PERSIST,
	    on_oom_event, run);
	if (run->oom_event == NULL || event_add(run->oom_event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

int
runs_init(struct launcherd *l)
{
	struct runs *runs = &l->runs;

	TAILQ_INIT(&runs->list);
	TAILQ_INIT(&runs->ended);
	runs->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (runs->watch_fd < 0)
		return -errno;
	runs->watch_event = event_new(l->base, runs->watch_fd,
	    EV_READ | EV_PERSIST, on_watch, l);
	if (runs->watch_event == NULL || event_add(runs->watch_event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void
runs_done(struct launcherd *l)
{
	struct run *run;

	while ((run = TAILQ_FIRST(&l->runs.list)) != NULL) {
		TAILQ_REMOVE(&l->runs.list, run, entry);
		run_free(run);
	}
	clear_event(&l->runs.watch_event);
	clear_event(&l->runs.ended_timer);
	clear_event(&l->runs.pids_timer);
	close_all(&l->runs.watch_fd, 1);
}

/* ---------------------------------------------------------------- starting */

static void on_freeze_timer(evutil_socket_t, short, void *);

static struct run *
run_new(struct launcherd *l, const struct run_order *order)
{
	struct run *run = calloc(1, sizeof(*run));

	if (run == NULL)
		return NULL;
	run->l = l;
	run->sandbox = order->sandbox;
	run->request = order->request;
	run->probe = order->probe;
	run->error_fd = run->oom_fd = run->bwrap.pidfd = run->cgroup.fd = -1;
	TAILQ_INIT(&run->execs);
	run->timer = evtimer_new(l->base, on_timer, run);
	run->freeze_timer = evtimer_new(l->base, on_freeze_timer, run);
	if (run->timer == NULL || run->freeze_timer == NULL) {
		run_free(run);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&l->runs.list, run, entry);
	l->runs.count++;
	return run;
}

static int
attach(struct run *run, int channel)
{
	run->init = peer_new(run->l->base, channel, PROC_LAUNCHERD, PROC_INIT,
	    &init_ops, run);
	run->exit_event = event_new(run->l->base, run->bwrap.pidfd, EV_READ,
	    on_exit_event, run);
	if (run->init == NULL || run->exit_event == NULL ||
	    event_add(run->exit_event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

/* Without the event nobody would reap: here it is killed and waited for, which
 * takes as long as a kill. */
static void
abandon(struct run *run)
{
	spawn_kill(&run->bwrap);
	if (run->bwrap.pid > 0)
		(void)waitpid(run->bwrap.pid, NULL, 0);
	run->bwrap.pid = 0;
}

void
run_end_soon(struct run *run, long ms)
{
	set_timer(run->timer, ms);
}

void
run_launch(struct launcherd *l, const struct run_order *order, int plan_fd,
    int guard_fd)
{
	struct run *run = NULL;
	int channel = -1;
	int error;

	if (l->runs.count < RUNS_MAX)
		run = run_new(l, order);
	if (run == NULL) {
		close_all(&plan_fd, 1);
		close_all(&guard_fd, 1);
		if (order->probe != NULL)
			probe_run_gone(order->probe, NULL);
		else
			(void)PEER_SEND(l->supervisor, launch_answer,
			    .request = order->request,
			    .sandbox = order->sandbox, .code = API_LIMIT,
			    .error = EAGAIN, .step = "start",
			    .reason = "no more runs can be started");
		return;
	}
	set_timer(run->timer, LAUNCH_TIMEOUT_MS);
	error = launch_make(run, order, plan_fd, guard_fd, &channel);
	close_all(&plan_fd, 1);
	if (error == 0) {
		error = attach(run, channel);
		if (error < 0)
			abandon(run);
	} else {
		if (run->bwrap.pid > 0)
			abandon(run);
	}
	if (error == 0)
		return;
	run_fail(run, API_HOST_ERROR, error, "start", strerror(-error));
	run_kill(run, RUN_CAUSE_SERVICE);
	run_advance(run);
}

/* ---------------------------------------------------------------- requests */

void
run_stop_init(struct run *run)
{
	if (run->state == RUN_STOPPING && run->init != NULL)
		(void)PEER_SEND(run->init, init_stop, .unused_ = 0);
}

void
run_destroy(struct launcherd *l, const struct msg_destroy_ask *msg)
{
	struct run *run = run_find(l, msg->sandbox);

	if (run == NULL)
		return; /* ended already; run_ended was sent */
	set_cause(run, (unsigned)msg->cause);
	run_fail(run, API_GONE, ECANCELED, "start",
	    "destroyed while it was starting");
	if (msg->grace_ms == 0 || run->state == RUN_STARTING ||
	    run->init == NULL) {
		run_kill_now(run);
		run_advance(run);
		return;
	}
	if (run->state != RUN_READY)
		return;
	run->state = RUN_STOPPING;
	/* A frozen process would not see the signal. */
	answer_freeze(run, ECANCELED);
	(void)thaw(run);
	set_timer(run->timer, (long)msg->grace_ms);
	if (!guarding_flush(run->guarding))
		run_stop_init(run);
}

static void
on_freeze_timer(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;

	(void)fd;
	(void)what;
	/* A process that cannot be frozen: let all of them go on. */
	if (run->freezing && run->freeze_want)
		(void)thaw(run);
	answer_freeze(run, ETIMEDOUT);
}

static void
refuse_freeze(struct launcherd *l, const struct msg_freeze_ask *msg, int error)
{
	(void)PEER_SEND(l->supervisor, freeze_answer, .request = msg->request,
	    .sandbox = msg->sandbox, .frozen = !msg->frozen,
	    .error = (uint64_t)error);
}

void
run_freeze(struct launcherd *l, const struct msg_freeze_ask *msg)
{
	struct run *run = run_find(l, msg->sandbox);

	if (run == NULL || run->state != RUN_READY) {
		refuse_freeze(l, msg, run == NULL ? ENOENT : EBUSY);
		return;
	}
	if (run->freezing) {
		refuse_freeze(l, msg, EBUSY);
		return;
	}
	run->freezing = true;
	run->freeze_want = msg->frozen != 0;
	run->freeze_request = msg->request;
	set_timer(run->freeze_timer, FREEZE_TIMEOUT_MS);
	if (!run->freeze_want)
		guarding_freeze(run->guarding, false);
	step_freeze(run);
	/* Not all can be frozen yet: some may wait for the broker. */
	if (run->freezing && run->freeze_want)
		guarding_freeze(run->guarding, true);
}

void
run_stat(struct launcherd *l, const struct msg_stat_ask *msg)
{
	struct run *run = run_find(l, msg->sandbox);
	struct msg_stat_answer answer = { .request = msg->request,
		.sandbox = msg->sandbox };
	struct cgroup_use use;

	if (run == NULL || !run->has_cgroup) {
		answer.error = ENOENT;
	} else {
		cgroup_use(l->cgroups, &run->cgroup, &use);
		answer.memory_bytes = use.memory_bytes;
		answer.pids = use.pids;
	}
	(void)peer_send(l->supervisor, MSG_stat_answer, &answer, NULL, 0);
}
