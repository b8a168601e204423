/*
 * See broker_run.h. The broker has a uid of its own and is hostile once a run
 * has made it so: its messages are accepted in their state only, and say no
 * more than that something was refused in its own run.
 */
#include "launcherd/broker_run.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "launcherd/guard/kernel.h"
#include "launcherd/inside.h"
#include "launcherd/launch.h"
#include "launcherd/launcherd.h"
#include "launcherd/mechanism.h"
#include "launcherd/probe.h"
#include "protocol/cause.h"
#include "protocol/guard.h"
#include "protocol/message.h"
#include "protocol/places.h"
#include "protocol/plan.h"

/* What ended with the run's init is seen after init's own end. */
#define END_WAIT_MS 20
#define BROKER_ENDED "stockade-broker ended while the run was starting"

enum broker_state { BROKER_STARTING, BROKER_UP };

/* Tables that a broker was sent and did not answer for. A frozen one answers
 * none. */
#define REPLACING_MAX 4

struct guarding {
	struct run *run;
	struct kernel_run *kernel; /* NULL: a broker */
	bool mounted; /* init waits; kernel only */
	int table_fd;
	struct spawned child;
	struct event *exit_event;
	int info_fd;
	struct event *info_event;
	bool started;
	bool armed; /* it has the listener */
	struct peer *peer;
	bool ready;
	bool flushing; /* asked, not answered */
	bool lost; /* ended before the run did */
	struct msg_broker_setup setup; /* ids of the run */
	struct msg_inspect_begin inspect; /* the same */
	size_t nrepositories;
	struct repository repositories[REPOSITORIES_MAX];
	size_t nreplacing; /* oldest first */
	uint64_t replacing[REPLACING_MAX];
};

bool
guarding_kernel(const struct guarding *g)
{
	return g != NULL && g->kernel != NULL;
}

bool
guarding_has_broker(const struct guarding *g)
{
	return g != NULL && g->kernel == NULL;
}

int
guarding_label(void *guarding, int pidfd)
{
	const struct guarding *g = guarding;

	return kernel_run_label(g->kernel, pidfd);
}

bool
guarding_passes(const struct guarding *g, const int *fds, size_t nfds)
{
	for (size_t i = 0; guarding_kernel(g) && i < nfds; i++)
		if (!kernel_run_passes(g->kernel, fds[i]))
			return false;
	return true;
}

void
guarding_drain(struct guarding *g)
{
	if (guarding_kernel(g))
		kernel_run_flush(g->kernel);
}

bool
guarding_ready(const struct guarding *g)
{
	return g->ready;
}

bool
guarding_alive(const struct guarding *g)
{
	return g != NULL && (g->child.pid > 0 || g->peer != NULL);
}

static void
stop_expecting(struct guarding *g)
{
	if (g->info_event != NULL)
		event_free(g->info_event);
	g->info_event = NULL;
	close_all(&g->info_fd, 1);
}

void
guarding_free(struct guarding *g)
{
	if (g == NULL)
		return;
	if (g->exit_event != NULL)
		event_free(g->exit_event);
	stop_expecting(g);
	peer_free(g->peer);
	kernel_run_free(g->kernel);
	for (size_t i = 0; i < g->nrepositories; i++)
		free(g->repositories[i].path);
	close_all(&g->table_fd, 1);
	close_all(&g->child.pidfd, 1);
	free(g);
}

static int
failed(struct run *run, int error, const char *what)
{
	char reason[160];

	(void)snprintf(reason, sizeof(reason), "%s: %s", what,
	    strerror(-error));
	run_fail(run, API_GUARD_UNAVAILABLE, error, "guard", reason);
	return error;
}

/* ---------------------------------------------------------------- the plan */

static int
check(struct run *run, const struct plan *plan, int guard_fd)
{
	const struct launcherd *l = run->l;
	char why[MECHANISM_WHY_MAX];
	struct guard_places places;
	ptrdiff_t size;
	int error;

	if ((plan->nroots > 0) != (guard_fd >= 0)) {
		run_fail(run, API_BAD_PARAMS, -EPROTO, "guard",
		    "a plan with guarded places and a table of rules come "
		    "together");
		return -EPROTO;
	}
	if (guard_fd < 0)
		return 0;
	error = guard_check_plan(plan, &places);
	if (error < 0) {
		run_fail(run, API_BAD_PARAMS, error, "guard",
		    "the plan's guarded places are not those of its mounts");
		return error;
	}
	size = memfd_check(guard_fd, GUARD_BYTES_MAX);
	if (size < 0)
		return failed(run, (int)size, "the table of rules");
	if (mechanism_check(l, l->guard, why) < 0) {
		run_fail(run, API_GUARD_UNAVAILABLE, -ENOTSUP, "guard", why);
		return -ENOTSUP;
	}
	return 0;
}

/* What the kernel cannot do for this run, a broker does, if it can. */
static int
choose(struct guarding *g, const struct source_user *user)
{
	struct run *run = g->run;
	char why[MECHANISM_WHY_MAX];
	int error = -EOPNOTSUPP;

	if (run->l->guard == GUARD_BPF_LSM) {
		error = kernel_run_make(run, g->table_fd, &g->kernel);
		if (error == 0 || error != -EOPNOTSUPP)
			return error < 0 ? failed(run, error, "bpf-lsm") : 0;
		if (mechanism_check(run->l, GUARD_BROKER, why) < 0) {
			run_fail(run, API_GUARD_UNAVAILABLE, error, "guard",
			    why);
			return error;
		}
	}
	if (run->l->broker_user.uid == user->uid)
		return failed(run, -EPERM, "a run of the broker's own user");
	return 0;
}

int
guarding_make(struct run *run, const struct plan *plan,
    const struct source_user *user, int guard_fd)
{
	autoclose int table = guard_fd;
	int error = check(run, plan, table);
	struct guarding *g;

	if (error < 0 || table < 0)
		return error;
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return failed(run, -ENOMEM, "memory");
	g->run = run;
	g->child.pidfd = g->info_fd = -1;
	g->table_fd = take_fd(&table);
	g->setup.uid = user->uid;
	g->setup.gid = user->gid;
	g->setup.groups.len = (uint16_t)(user->ngroups * sizeof(uint32_t));
	for (size_t i = 0; i < user->ngroups; i++) {
		uint32_t group = user->groups[i];

		memcpy(g->setup.groups.data + i * sizeof(group), &group,
		    sizeof(group));
	}
	g->inspect.uid = g->setup.uid;
	g->inspect.gid = g->setup.gid;
	g->inspect.groups.len = g->setup.groups.len;
	memcpy(g->inspect.groups.data, g->setup.groups.data,
	    g->setup.groups.len);
	run->guarding = g;
	return choose(g, user);
}

/* ---------------------------------------------------------------- the end */

void
guarding_report(struct run *run)
{
	struct msg_run_notice msg = { .sandbox = run->sandbox,
		.code = RUN_NOTICE_GUARD_LOST };

	if (run->guarding == NULL || !run->guarding->lost)
		return;
	run->guarding->lost = false;
	MSG_SET_STR(msg.detail,
	    "stockade-broker has ended; the run cannot go on without it");
	(void)peer_send(run->l->supervisor, MSG_run_notice, &msg, NULL, 0);
}

/* ---------------------------------------------------------------- other rules */

static void
answer_rules(const struct guarding *g, uint64_t request, uint64_t error)
{
	(void)PEER_SEND(g->run->l->supervisor, rules_answer, .request = request,
	    .sandbox = g->run->sandbox, .error = error);
}

static void
fail_rules(struct guarding *g)
{
	for (size_t i = 0; i < g->nreplacing; i++)
		answer_rules(g, g->replacing[i], ESRCH);
	g->nreplacing = 0;
}

int
guarding_replace(struct guarding *g, uint64_t request, int table_fd)
{
	const struct msg_broker_rules msg = { .request = request };
	autoclose int table = table_fd;
	ptrdiff_t size = memfd_check(table, GUARD_BYTES_MAX);
	int fd;

	if (size < 0)
		return (int)size;
	if (guarding_kernel(g) && g->ready) {
		int error = kernel_run_replace(g->kernel, table);

		if (error == 0)
			answer_rules(g, request, 0);
		return error;
	}
	if (g == NULL || g->peer == NULL || !g->ready)
		return -ESRCH;
	if (g->nreplacing == REPLACING_MAX)
		return -EBUSY;
	g->replacing[g->nreplacing++] = request;
	fd = take_fd(&table);
	if (peer_send(g->peer, MSG_broker_rules, &msg, &fd, 1) < 0)
		fail_rules(g);
	return 0;
}

static int
on_rules_answer(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_broker_rules_answer *m = &msg->broker_rules_answer;
	struct guarding *g = ctx;

	(void)peer;
	(void)fds;
	(void)nfds;
	if (g->nreplacing == 0 || g->replacing[0] != m->request)
		return -EPROTO;
	g->nreplacing--;
	memmove(g->replacing, g->replacing + 1,
	    g->nreplacing * sizeof(g->replacing[0]));
	answer_rules(g, m->request, m->error);
	return 0;
}

/* ---------------------------------------------------------------- the stop */

void
guarding_freeze(struct guarding *g, bool frozen)
{
	if (g != NULL && g->peer != NULL && g->ready)
		(void)PEER_SEND(g->peer, broker_freeze, .frozen = frozen);
}

bool
guarding_flush(struct guarding *g)
{
	static const struct msg_broker_flush msg;

	if (g == NULL || g->peer == NULL || !g->ready || g->flushing)
		return false;
	g->flushing = peer_send(g->peer, MSG_broker_flush, &msg, NULL, 0) == 0;
	return g->flushing;
}

static int
on_flushed(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct guarding *g = ctx;

	(void)peer;
	(void)msg;
	(void)fds;
	(void)nfds;
	if (!g->flushing)
		return -EPROTO;
	g->flushing = false;
	run_stop_init(g->run);
	return 0;
}

/* ---------------------------------------------------------------- repositories */

size_t
guarding_repositories(const struct guarding *g)
{
	return g == NULL ? 0 : g->nrepositories;
}

const struct repository *
guarding_repository(const struct guarding *g, size_t i)
{
	return &g->repositories[i];
}

const struct msg_inspect_begin *
guarding_inspect(const struct guarding *g)
{
	return &g->inspect;
}

/* A hostile broker can name any path: it is looked at as the run's user. */
static int
on_repository(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	const struct msg_broker_repository *m = &msg->broker_repository;
	struct guarding *g = ctx;
	struct repository *r = &g->repositories[m->number];
	char *path;

	(void)peer;
	(void)fds;
	(void)nfds;
	if (m->number > g->nrepositories)
		return -EPROTO;
	path = strdup(m->path);
	if (path == NULL)
		return -ENOMEM;
	if (m->number == g->nrepositories)
		g->nrepositories++;
	free(r->path);
	*r = (struct repository){ m->dev, m->ino, path };
	return 0;
}

/* ---------------------------------------------------------------- its end */

/*
 * The run's end takes its broker along, and init's channel is closed before:
 * so a short wait tells whether the broker went first. Nothing that is guarded
 * can be written meanwhile.
 */
static void
lost(struct guarding *g, const char *why)
{
	struct run *run = g->run;

	/* With bubblewrap, as a rule, which says why; if not, init asks. */
	if (!g->armed)
		return;
	if (run->state == RUN_STARTING) {
		run_fail(run, API_GUARD_UNAVAILABLE, -EIO, "guard", why);
		run_kill(run, RUN_CAUSE_SERVICE);
	} else if (run->state == RUN_READY && run->init != NULL && !g->lost) {
		g->lost = true;
		run_end_soon(run, END_WAIT_MS);
	}
}

static void
on_exit_event(evutil_socket_t fd, short what, void *arg)
{
	struct guarding *g = arg;

	(void)fd;
	(void)what;
	event_free(g->exit_event);
	g->exit_event = NULL;
	(void)spawn_reap(&g->child);
	/* What it said before its end is read first, by its channel's end. */
	run_advance(g->run);
}

static void
on_end(void *ctx, struct peer *peer, enum chan_end why, const char *text)
{
	struct guarding *g = ctx;
	struct run *run = g->run;

	(void)text;
	g->peer = NULL;
	peer_free(peer);
	fail_rules(g);
	if (why != CHAN_END_EOF)
		spawn_kill(&g->child);
	lost(g,
	    why != CHAN_END_EOF ? "stockade-broker broke the message rules" :
				  BROKER_ENDED);
	run_advance(run);
}

/* ---------------------------------------------------------------- messages */

/* 0, or -errno with the run's end. */
static int
arm_kernel(struct guarding *g)
{
	struct run *run = g->run;
	char why[KERNEL_WHY_MAX];
	int error = kernel_run_arm(g->kernel, why);

	if (error < 0) {
		run_fail(run, API_GUARD_UNAVAILABLE, error, "guard", why);
		run_kill(run, RUN_CAUSE_SERVICE);
		return error;
	}
	close_all(&g->table_fd, 1);
	g->ready = true;
	return 0;
}

void
guarding_go(struct run *run)
{
	struct guarding *g = run->guarding;

	if (guarding_kernel(g) && run->state == RUN_STARTING &&
	    run->masking == NULL && g->mounted && !g->ready &&
	    arm_kernel(g) < 0)
		return;
	if (run->state == RUN_STARTING && run->masking == NULL &&
	    run->guarding != NULL && run->guarding->ready)
		(void)PEER_SEND(run->init, init_go, .unused_ = 0);
}

static int
on_ready(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct guarding *g = ctx;

	(void)msg;
	(void)fds;
	(void)nfds;
	peer_set_state(peer, BROKER_UP);
	close_all(&g->table_fd, 1);
	g->ready = true;
	guarding_go(g->run);
	return 0;
}

static int
on_failed(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct guarding *g = ctx;
	char what[128];

	(void)peer;
	(void)fds;
	(void)nfds;
	(void)snprintf(what, sizeof(what), "stockade-broker: %s",
	    msg->broker_failed.step);
	(void)failed(g->run, -(int)msg->broker_failed.error, what);
	if (g->run->state == RUN_STARTING)
		run_kill(g->run, RUN_CAUSE_SERVICE);
	return 0;
}

static int
on_denial(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	static struct msg_denial msg;
	const struct msg_broker_denial *m = &any->broker_denial;
	struct guarding *g = ctx;

	(void)peer;
	(void)fds;
	(void)nfds;
	/* What init tries before anything runs (SPEC D16) is no violation. */
	if (guard_is_verification(m->pid, m->path))
		return 0;
	if (g->run->probe != NULL) {
		probe_denial(g->run->probe, m->count);
		return 0;
	}
	memset(&msg, 0, sizeof(msg));
	msg.sandbox = g->run->sandbox;
	msg.action = m->action;
	MSG_SET_STR(msg.path, m->path);
	MSG_SET_STR(msg.rule, m->rule);
	MSG_SET_STR(msg.remedy, m->remedy);
	msg.pid = m->pid;
	MSG_SET_STR(msg.exe, m->exe);
	msg.count = m->count;
	(void)peer_send(g->run->l->supervisor, MSG_denial, &msg, NULL, 0);
	return 0;
}

static const struct peer_handler handlers[] = {
	{ MSG_broker_ready, 1u << BROKER_STARTING, true, on_ready },
	{ MSG_broker_failed, 1u << BROKER_STARTING, true, on_failed },
	{ MSG_broker_denial, 1u << BROKER_UP, false, on_denial },
	{ MSG_broker_rules_answer, 1u << BROKER_UP, false, on_rules_answer },
	{ MSG_broker_repository, 1u << BROKER_UP, false, on_repository },
	{ MSG_broker_flushed, 1u << BROKER_UP, false, on_flushed },
};
static const struct peer_ops ops = {
	handlers,
	sizeof(handlers) / sizeof(handlers[0]),
	on_end,
};

/* ---------------------------------------------------------------- the start */

static int
spawn_in(struct guarding *g, int proc_fd, int channel_fd)
{
	const struct launcherd *l = g->run->l;
	autoclose int pid = inside_namespace(proc_fd, "pid");
	autoclose int net = inside_namespace(proc_fd, "net");
	autoclose int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	const struct spawn_broker in = {
		.tree = l->cgroups,
		.cgroup = &g->run->cgroup,
		.pid_fd = pid,
		.net_fd = net,
		.own_pid_fd = own,
		.program_fd = l->broker_fd,
		.channel_fd = channel_fd,
		.null_fd = l->null_fd,
		.uid = l->broker_user.uid,
		.gid = l->broker_user.gid,
	};

	if (pid < 0 || net < 0 || own < 0)
		return -ESRCH;
	return spawn_broker(&in, &g->child);
}

/* The child, its channel and the watch of its end. */
static int
start(struct guarding *g)
{
	struct launcherd *l = g->run->l;
	autoclose int proc_fd = inside_open(g->run);
	autoclose int child_end = -1;
	int pair[2], error;

	if (proc_fd < 0)
		return proc_fd;
	g->started = true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	child_end = pair[1];
	g->peer =
	    peer_new(l->base, pair[0], PROC_LAUNCHERD, PROC_BROKER, &ops, g);
	if (g->peer == NULL)
		return -ENOMEM;
	error = spawn_in(g, proc_fd, child_end);
	if (error == -ENOTRECOVERABLE)
		launcherd_panic(l, "own pid namespace was lost");
	if (error < 0)
		return error;
	g->exit_event =
	    event_new(l->base, g->child.pidfd, EV_READ, on_exit_event, g);
	if (g->exit_event != NULL && event_add(g->exit_event, NULL) == 0)
		return 0;
	/* Nobody would reap it. */
	spawn_kill(&g->child);
	(void)waitpid(g->child.pid, NULL, 0);
	g->child.pid = 0;
	return -ENOMEM;
}

static int
start_failed(struct run *run, int error)
{
	if (error == -ECHILD) {
		run_fail(run, API_GUARD_UNAVAILABLE, error, "guard",
		    BROKER_ENDED);
		return error;
	}
	return failed(run, error, "stockade-broker cannot be started");
}

/* Or bubblewrap has ended, which is seen by its own end. It may be writing
 * still: the pipe stays until init is there. */
static void
on_info(evutil_socket_t fd, short what, void *arg)
{
	struct guarding *g = arg;
	int error;

	(void)fd;
	(void)what;
	event_free(g->info_event);
	g->info_event = NULL;
	if (g->run->state != RUN_STARTING || g->started)
		return;
	error = start(g);
	if (error < 0 && g->started) {
		(void)start_failed(g->run, error);
		run_kill(g->run, RUN_CAUSE_SERVICE);
		run_advance(g->run);
	}
}

int
guarding_expect(struct run *run, int info_fd)
{
	struct guarding *g = run->guarding;

	g->info_fd = info_fd;
	g->info_event = event_new(run->l->base, info_fd, EV_READ, on_info, g);
	if (g->info_event != NULL && event_add(g->info_event, NULL) == 0)
		return 0;
	return start_failed(run, -ENOMEM);
}

/* The broker waits, or is started now; it may have ended since. */
static int
set_up(struct guarding *g)
{
	autoclose int proc_fd = inside_open(g->run);
	int fds[2] = { -1, -1 };
	int error = proc_fd < 0 ? proc_fd : 0;

	if (error == 0 && !g->started)
		error = start(g);
	if (error == 0 && g->peer == NULL)
		error = -ECHILD;
	if (error < 0)
		return error;
	fds[0] = fcntl(g->table_fd, F_DUPFD_CLOEXEC, 4);
	if (fds[0] < 0)
		return -errno;
	fds[1] = inside_namespace(proc_fd, "mnt");
	if (fds[1] < 0) {
		close_all(fds, 1);
		return fds[1];
	}
	(void)peer_send(g->peer, MSG_broker_setup, &g->setup, fds, 2);
	return 0;
}

int
guarding_start(struct run *run, int listener_fd)
{
	struct guarding *g = run->guarding;
	static const struct msg_broker_listen listen;
	int listener = listener_fd, error;

	if (g->kernel != NULL) {
		g->mounted = true;
		return 0;
	}
	stop_expecting(g);
	error = set_up(g);
	if (error < 0) {
		close_all(&listener, 1);
		return start_failed(run, error);
	}
	g->armed = true;
	/* Sent, or closed: in both cases ours is gone. */
	(void)peer_send(g->peer, MSG_broker_listen, &listen, &listener, 1);
	return 0;
}
