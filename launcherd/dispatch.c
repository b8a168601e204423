/*
 * launcherd: which message of the supervisor is permitted when, and who
 * handles it. The supervisor is trusted to have checked who may ask; every
 * number and size is checked all the same.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/proc.h"
#include "launcherd/broker_run.h"
#include "launcherd/cgroup.h"
#include "launcherd/exec.h"
#include "launcherd/guard/kernel.h"
#include "launcherd/launcherd.h"
#include "launcherd/probe.h"
#include "launcherd/view.h"
#include "protocol/cause.h"
#include "protocol/message.h"

static void
on_view(evutil_socket_t fd, short what, void *arg)
{
	struct launcherd *l = arg;

	(void)fd;
	(void)what;
	view_changed(l->view);
}

static int
open_programs(struct launcherd *l, const char *libexec_dir)
{
	l->libexec_fd = open(libexec_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (l->libexec_fd < 0)
		return -errno;
	l->init_fd = openat(l->libexec_fd, "stockade-init", O_PATH | O_CLOEXEC);
	if (l->init_fd < 0)
		return -errno;
	/* Without it runs with name rules are refused. */
	l->broker_fd =
	    openat(l->libexec_fd, "stockade-broker", O_PATH | O_CLOEXEC);
	l->connect_fd =
	    openat(l->libexec_fd, "stockade-connect", O_PATH | O_CLOEXEC);
	return 0;
}

static int
open_view(struct launcherd *l, int runtime_fd)
{
	int error = view_open(runtime_fd, &l->view);

	if (error < 0)
		return error;
	l->view_event = event_new(l->base, view_watch_fd(l->view),
	    EV_READ | EV_PERSIST, on_view, l);
	if (l->view_event == NULL || event_add(l->view_event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

/* Without a usable cgroup tree the daemon stays, so that the probe can say so;
 * launches are refused. */
static void
open_cgroups(struct launcherd *l, const char *instance)
{
	unsigned removed = 0;

	l->cgroup_error = cgroup_tree_open(instance, &l->cgroups, &removed);
	if (l->cgroup_error < 0) {
		l->cgroups = NULL;
		log_event(EV_CGROUP_ERROR, LF_STR(LK_ACTION, "open"),
		    LF_NUM(LK_ERRNO, -l->cgroup_error));
	}
	if (removed > 0)
		log_event(EV_LEFTOVER_REMOVED, LF_NUM(LK_COUNT, removed));
}

/* After the cgroups: what an earlier process has labelled is dead. */
static int
open_guard(struct launcherd *l, const struct msg_launcher_setup *msg)
{
	enum guard_mechanism guard =
	    msg->probe != 0 ? l->guard_choice : l->guard;
	int error;

	/* A restart keeps to what was found; with `auto` nothing was. */
	kernel_guard_open(l, msg->instance,
	    guard == GUARD_BPF_LSM || (guard == GUARD_AUTO && msg->probe != 0));
	error = launcherd_confine_bpf(l->kernel != NULL);
	if (error < 0)
		log_line(LOG_LEVEL_ERR, "stockade-launcherd: seccomp: %s",
		    strerror(-error));
	return error;
}

static int
on_setup(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	const struct msg_launcher_setup *msg = &any->launcher_setup;
	struct launcherd *l = ctx;
	int error;

	if (strspn(msg->instance, "abcdefghijklmnopqrstuvwxyz0123456789-") !=
	    strlen(msg->instance)) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	peer_set_state(peer, LAUNCHERD_RUNNING);
	l->allow_userns = msg->allow_userns != 0;
	if (msg->probe != 0)
		l->guard_choice = (enum guard_mechanism)msg->guard;
	else
		l->guard = (enum guard_mechanism)msg->guard;
	error = open_programs(l, msg->libexec_dir);
	if (error < 0)
		log_line(LOG_LEVEL_ERR,
		    "stockade-launcherd: programs in %s: "
		    "%s",
		    msg->libexec_dir, strerror(-error));
	if (error == 0) {
		error = open_view(l, fds[0]);
		if (error < 0)
			log_line(LOG_LEVEL_ERR,
			    "stockade-launcherd: runtime "
			    "directory: %s",
			    strerror(-error));
	}
	close_all(fds, nfds);
	if (error < 0) {
		/* Nothing can be launched: the supervisor shows it and tries
		 * again. */
		l->status = 1;
		(void)event_base_loopbreak(l->base);
		return 0;
	}
	open_cgroups(l, msg->instance);
	if (open_guard(l, msg) < 0) {
		l->status = 1;
		(void)event_base_loopbreak(l->base);
		return 0;
	}
	if (msg->probe != 0)
		probe_start(l);
	return 0;
}

static int
on_lookup_start(void *ctx, struct peer *peer, const union msg_any *any,
    int *fds, size_t nfds)
{
	(void)peer;
	(void)nfds;
	lookup_start(ctx, &any->lookup_start, take_fd(&fds[0]));
	return 0;
}

/*
 * Who asks: the supervisor, for a client that may have this uid. The ids are
 * those of the look-up of the same request; without one there is no launch.
 */
static int
on_launch_start(void *ctx, struct peer *peer, const union msg_any *any,
    int *fds, size_t nfds)
{
	const struct msg_launch_start *msg = &any->launch_start;
	struct launcherd *l = ctx;
	struct run_order order = { .sandbox = msg->sandbox,
		.request = msg->request };
	struct lookup_ids ids;
	int error = -EEXIST;

	(void)peer;
	if (run_find(l, msg->sandbox) == NULL)
		error =
		    lookup_take_ids(l, msg->request, (uid_t)msg->run_uid, &ids);
	if (error < 0) {
		close_all(fds, nfds);
		(void)PEER_SEND(l->supervisor, launch_answer,
		    .request = msg->request, .sandbox = msg->sandbox,
		    .code = API_LOOKUP_FAILED, .error = (uint64_t)-error,
		    .step = "user",
		    .reason = "there is no fresh look-up of this user");
		return 0;
	}
	if (proc_descriptors_left() < FDS_FOR_LAUNCH) {
		close_all(fds, nfds);
		(void)PEER_SEND(l->supervisor, launch_answer,
		    .request = msg->request, .sandbox = msg->sandbox,
		    .code = API_HOST_ERROR, .error = EMFILE,
		    .step = "descriptors",
		    .reason = "stockade-launcherd has no free descriptors");
		return 0;
	}
	order.user =
	    (struct source_user){ ids.uid, ids.gid, ids.ngroups, ids.groups };
	run_launch(l, &order, take_fd(&fds[0]),
	    nfds > 1 ? take_fd(&fds[1]) : -1);
	return 0;
}

static int
on_destroy(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	run_destroy(ctx, &any->destroy_ask);
	return 0;
}

static int
on_freeze(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	run_freeze(ctx, &any->freeze_ask);
	return 0;
}

static int
on_stat(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	run_stat(ctx, &any->stat_ask);
	return 0;
}

static int
on_rules(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	const struct msg_rules_start *msg = &any->rules_start;
	struct launcherd *l = ctx;
	struct run *run = run_find(l, msg->sandbox);
	int error = run == NULL ? -ESRCH : 0;

	(void)peer;
	if (error == 0)
		error = guarding_replace(run->guarding, msg->request,
		    take_fd(&fds[0]));
	close_all(fds, nfds);
	if (error < 0)
		(void)PEER_SEND(l->supervisor, rules_answer,
		    .request = msg->request, .sandbox = msg->sandbox,
		    .error = (uint64_t)-error);
	return 0;
}

static int
on_exec(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	(void)peer;
	return exec_ask(ctx, &any->exec_ask, fds, nfds);
}

static int
on_exec_signal(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	exec_send_signal(ctx, &any->exec_signal);
	return 0;
}

static int
on_exec_resize(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	exec_resize(ctx, &any->exec_resize);
	return 0;
}

static int
on_exec_eof(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	exec_eof(ctx, any->exec_eof.sandbox, any->exec_eof.exec);
	return 0;
}

static int
on_restore(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	exec_restore(ctx, any->restore_ask.generation);
	return 0;
}

/* End of file: the supervisor is gone and every run with it (SPEC A22). */
static void
on_end(void *ctx, struct peer *peer, enum chan_end why, const char *text)
{
	struct launcherd *l = ctx;

	(void)peer;
	(void)text;
	if (why != CHAN_END_EOF)
		l->status = 1;
	(void)event_base_loopbreak(l->base);
}

#define WAITING (1u << LAUNCHERD_WAITING)
#define RUNNING (1u << LAUNCHERD_RUNNING)

static const struct peer_handler handlers[] = {
	{ MSG_launcher_setup, WAITING, true, on_setup },
	{ MSG_lookup_start, RUNNING, false, on_lookup_start },
	{ MSG_launch_start, RUNNING, false, on_launch_start },
	{ MSG_destroy_ask, RUNNING, false, on_destroy },
	{ MSG_freeze_ask, RUNNING, false, on_freeze },
	{ MSG_stat_ask, RUNNING, false, on_stat },
	{ MSG_rules_start, RUNNING, false, on_rules },
	{ MSG_exec_ask, RUNNING, false, on_exec },
	{ MSG_exec_signal, RUNNING, false, on_exec_signal },
	{ MSG_exec_resize, RUNNING, false, on_exec_resize },
	{ MSG_exec_eof, RUNNING, false, on_exec_eof },
	{ MSG_restore_ask, RUNNING, false, on_restore },
};

const struct peer_ops launcherd_peer_ops = {
	handlers,
	sizeof(handlers) / sizeof(handlers[0]),
	on_end,
};
