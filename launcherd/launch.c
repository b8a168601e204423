/*
 * launcherd: makes a run. The plan is control's word and hostile until it is
 * decoded; after that its paths are opened with the run's ids only, and no
 * field of it grants an id. Nothing here waits.
 */
#include "launcherd/launch.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/size.h"
#include "launcherd/broker_run.h"
#include "launcherd/bwrap_args.h"
#include "launcherd/launcherd.h"
#include "launcherd/masking.h"
#include "launcherd/view.h"
#include "protocol/plan.h"

#define FD_FLOOR 4 /* 0..3 are given new meanings in the child */
#define HOME_MAX 1024 /* of init_setup */

/* Everything that lives as long as one launch_make. */
struct launch {
	struct run *run;
	struct launcherd *l;
	const struct run_order *order;
	int plan_fd;
	int guard_fd;
	struct memfd_map map;
	struct plan *plan;
	struct sources sources;
	size_t nfiles;
	int *file_fds;
	struct bwrap_args args;
	int args_fd;
	int info_write; /* for bubblewrap; -1: nobody asks */
	struct netns netns;
	int channel; /* our end */
	int child_channel;
	int error_write;
};

void
run_fail(struct run *run, unsigned code, int error, const char *step,
    const char *reason)
{
	struct run_failure *f;

	if (run->failure != NULL)
		return;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return; /* the answer then says `internal` */
	f->code = code;
	f->error = error < 0 ? -error : error;
	(void)snprintf(f->step, sizeof(f->step), "%s", step);
	(void)log_clean(f->reason, sizeof(f->reason), reason, strlen(reason));
	run->failure = f;
}

/* A failure whose reason is the system's. */
static int
failed(struct launch *la, int error, const char *step)
{
	run_fail(la->run, API_HOST_ERROR, error, step, strerror(-error));
	return error;
}

/* ---------------------------------------------------------------- steps */

static int
step_plan(struct launch *la)
{
	const char *field = "";
	char reason[128];
	int error = memfd_open_map(la->plan_fd, PLAN_BYTES_MAX, &la->map);

	if (error < 0)
		return failed(la, error, "plan");
	la->plan = malloc(sizeof(*la->plan));
	if (la->plan == NULL)
		return failed(la, -ENOMEM, "plan");
	error = plan_decode(la->map.data, la->map.len, la->plan, &field);
	if (error < 0) {
		(void)snprintf(reason, sizeof(reason),
		    "the plan is not valid in its part %s", field);
		run_fail(la->run, API_BAD_PARAMS, error, "plan", reason);
		return error;
	}
	if (strlen(la->plan->home) > HOME_MAX) {
		run_fail(la->run, API_BAD_PARAMS, -ENAMETOOLONG, "plan",
		    "the home directory's path is too long");
		return -ENAMETOOLONG;
	}
	if (la->plan->userns && !la->l->allow_userns) {
		run_fail(la->run, API_FORBIDDEN, -EPERM, "plan",
		    "user namespaces are not permitted by the configuration");
		return -EPERM;
	}
	return 0;
}

static int
step_guard(struct launch *la)
{
	return guarding_make(la->run, la->plan, &la->order->user,
	    take_fd(&la->guard_fd));
}

static int
step_sources(struct launch *la)
{
	char reason[SOURCE_REASON_MAX] = "";
	int error = la->order->probe != NULL && la->plan->nmounts == 1 ?
	    sources_take(la->order->scratch_fd, &la->sources) :
	    sources_open(la->plan, &la->order->user, &la->sources, reason);

	if (error == -ENOTRECOVERABLE)
		launcherd_panic(la->l, "own ids could not be taken back");
	if (error < 0 && reason[0] == '\0')
		return failed(la, error, "mounts");
	if (error < 0)
		run_fail(la->run, API_BAD_PATH, error, "mounts", reason);
	return error;
}

/* Generated files: a memfd each, read by bubblewrap once. */
static int
step_files(struct launch *la)
{
	const struct plan *plan = la->plan;

	la->file_fds = calloc(plan->nfiles + 1, sizeof(int));
	if (la->file_fds == NULL)
		return failed(la, -ENOMEM, "files");
	for (size_t i = 0; i < plan->nfiles; i++) {
		const struct wire_view *c = &plan->files[i].content;
		int fd = memfd_create("file", MFD_CLOEXEC);

		if (fd < 0)
			return failed(la, -errno, "files");
		la->file_fds[la->nfiles++] = fd;
		if (pwrite(fd, c->data, c->len, 0) != (ssize_t)c->len)
			return failed(la, -EIO, "files");
	}
	return 0;
}

static int
step_masks(struct launch *la)
{
	int error = masking_make(la->run, &la->sources, &la->order->user);

	return error < 0 ? failed(la, error, "masks") : 0;
}

/* Links at the root of the view, as the host has them (merged /usr or not). */
static const char *const root_names[] = { "/bin", "/sbin", "/lib", "/lib32",
	"/lib64", "/libx32" };

/* Not in a namespace: they would tell the keys of the user, outside, by name.
 * Absent on a kernel without keys. */
static const char *const proc_names[] = { "/proc/keys", "/proc/key-users" };

struct root_layout {
	const char *hidden[ARRAY_LEN(proc_names) + 1];
	char text[ARRAY_LEN(root_names)][64];
	const char *links[2 * ARRAY_LEN(root_names) + 1];
	const char *binds[ARRAY_LEN(root_names) + 1];
};

static void
read_root(struct root_layout *ret)
{
	size_t nlinks = 0, nbinds = 0, nhidden = 0;

	for (size_t i = 0; i < ARRAY_LEN(root_names); i++) {
		ssize_t n = readlink(root_names[i], ret->text[i],
		    sizeof(ret->text[i]) - 1);
		struct stat st;

		if (n > 0 && (size_t)n < sizeof(ret->text[i]) - 1) {
			ret->text[i][n] = '\0';
			ret->links[nlinks++] = root_names[i];
			ret->links[nlinks++] = ret->text[i];
		} else if (stat(root_names[i], &st) == 0 &&
		    S_ISDIR(st.st_mode)) {
			ret->binds[nbinds++] = root_names[i];
		}
	}
	ret->links[nlinks] = NULL;
	ret->binds[nbinds] = NULL;
	for (size_t i = 0; i < ARRAY_LEN(proc_names); i++)
		if (access(proc_names[i], F_OK) == 0)
			ret->hidden[nhidden++] = proc_names[i];
	ret->hidden[nhidden] = NULL;
}

static int
build_args(struct launch *la, struct bwrap_input *in)
{
	const char *why = NULL;
	int error = bwrap_args_build(in, &la->args, &why);

	if (error == -EPERM || error == -E2BIG) {
		run_fail(la->run, API_BAD_PATH, error, "mounts", why);
		return error;
	}
	if (error < 0)
		return failed(la, error, "arguments");
	la->args_fd = memfd_seal("arguments", la->args.data, la->args.len);
	if (la->args_fd < 0)
		return failed(la, la->args_fd, "arguments");
	/* Bubblewrap reads from where the writing ended otherwise. */
	if (lseek(la->args_fd, 0, SEEK_SET) != 0)
		return failed(la, -errno, "arguments");
	return 0;
}

/* The broker is started while bubblewrap goes on with its mounts. */
static int
step_broker(struct launch *la)
{
	int info[2];

	if (!guarding_has_broker(la->run->guarding))
		return 0;
	if (pipe2(info, O_CLOEXEC) < 0)
		return failed(la, -errno, "guard");
	la->info_write = info[1];
	return guarding_expect(la->run, info[0]);
}

static int
step_args(struct launch *la)
{
	struct root_layout *root = malloc(sizeof(*root));
	struct bwrap_input in = {
		.plan = la->plan,
		.sources = &la->sources,
		.file_fds = la->file_fds,
		.init_fd = la->l->init_fd,
		.connect_fd = la->l->connect_fd,
		.info_fd = la->info_write,
	};
	int error;

	if (root == NULL)
		return failed(la, -ENOMEM, "arguments");
	la->run->etc = view_tree_get(la->l->view);
	if (la->run->etc == NULL) {
		free(root);
		return failed(la, -EIO, "view");
	}
	read_root(root);
	in.root_links = root->links;
	in.root_binds = root->binds;
	in.proc_hidden = root->hidden;
	in.etc = la->run->etc;
	in.etc_fd = la->run->etc->fd;
	error = build_args(la, &in);
	free(root);
	return error;
}

static int
step_cgroup(struct launch *la)
{
	const struct plan_limits *p = &la->plan->limits;
	const struct cgroup_limits limits = { p->memory_bytes, p->pids,
		p->cpu_milli };
	char name[24];
	unsigned unset = 0;
	int error;

	if (la->l->cgroups == NULL) {
		run_fail(la->run, API_UNAVAILABLE, la->l->cgroup_error,
		    "cgroup",
		    "this host has no cgroup tree that can be "
		    "killed and frozen");
		return la->l->cgroup_error;
	}
	if (la->order->probe != NULL)
		(void)snprintf(name, sizeof(name), "probe");
	else
		(void)snprintf(name, sizeof(name), "%" PRIu64,
		    la->order->sandbox);
	error = cgroup_make(la->l->cgroups, name, &limits, &la->run->cgroup,
	    &unset);
	if (error < 0)
		return failed(la, error, "cgroup");
	la->run->has_cgroup = true;
	if (guarding_has_broker(la->run->guarding))
		error = cgroup_split(&la->run->cgroup);
	if (error < 0)
		return failed(la, error, "cgroup");
	la->run->limits_unset = unset;
	if ((unset & (unsigned)p->named) != 0) {
		run_fail(la->run, API_UNAVAILABLE, -EOPNOTSUPP, "cgroup",
		    "a limit of the spec cannot be set: the host has no "
		    "cgroup controller for it");
		return -EOPNOTSUPP;
	}
	error = run_watch(la->run);
	return error < 0 ? failed(la, error, "cgroup") : 0;
}

static int
make_netns(struct launcherd *l, struct netns *ret)
{
	int error = netns_make(&l->home, ret);

	if (error == -ENOTRECOVERABLE)
		launcherd_panic(l, "own network namespace was lost");
	return error;
}

static void
on_spare_timer(evutil_socket_t fd, short what, void *arg)
{
	struct launcherd *l = arg;

	(void)fd;
	(void)what;
	/* Without one the next launch makes its own. */
	if (l->spare.fd < 0)
		(void)make_netns(l, &l->spare);
}

void
launch_prepare(struct launcherd *l, long ms)
{
	const struct timeval when = { 0, ms * 1000 };

	if (l->spare_timer == NULL)
		l->spare_timer = evtimer_new(l->base, on_spare_timer, l);
	if (l->spare_timer != NULL && l->spare.fd < 0)
		(void)evtimer_add(l->spare_timer, &when);
}

void
launch_unprepare(struct launcherd *l)
{
	if (l->spare_timer != NULL)
		event_free(l->spare_timer);
	l->spare_timer = NULL;
	netns_close(&l->spare);
}

static int
step_netns(struct launch *la)
{
	struct launcherd *l = la->l;
	int error = 0;

	if (l->spare.fd >= 0) {
		la->netns = l->spare;
		l->spare = (struct netns){ -1, -1, -1 };
	} else {
		error = make_netns(l, &la->netns);
	}
	return error < 0 ? failed(la, error, "network namespace") : 0;
}

/* The supervisor gets the cgroup and the listeners before any process is. */
static int
step_made(struct launch *la)
{
	struct msg_launch_made msg = { .sandbox = la->order->sandbox };
	int fds[3] = { -1, -1, -1 };

	if (la->order->probe != NULL)
		return 0;
	fds[0] = fcntl(la->run->cgroup.fd, F_DUPFD_CLOEXEC, FD_FLOOR);
	if (fds[0] < 0)
		return failed(la, -errno, "cgroup");
	fds[1] = take_fd(&la->netns.http_fd);
	fds[2] = take_fd(&la->netns.socks_fd);
	(void)peer_send(la->l->supervisor, MSG_launch_made, &msg, fds, 3);
	return 0;
}

static int
step_channel(struct launch *la)
{
	int pair[2];
	int errors[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return failed(la, -errno, "channel");
	la->channel = pair[0];
	la->child_channel = pair[1];
	if (pipe2(errors, O_CLOEXEC | O_NONBLOCK) < 0)
		return failed(la, -errno, "channel");
	la->run->error_fd = errors[0];
	la->error_write = errors[1];
	return 0;
}

static int
step_spawn(struct launch *la)
{
	const struct spawn_run spawn = {
		.tree = la->l->cgroups,
		.cgroup = &la->run->cgroup,
		.netns_fd = la->netns.fd,
		.null_fd = la->l->null_fd,
		.error_fd = la->error_write,
		.channel_fd = la->child_channel,
		.args_fd = la->args_fd,
		.fds = la->args.fds,
		.nfds = la->args.nfds,
		.arm =
		    guarding_kernel(la->run->guarding) ? guarding_label : NULL,
		.arm_ctx = la->run->guarding,
	};
	int error = spawn_run(&spawn, &la->run->bwrap);

	if (error < 0)
		return failed(la, error, "bubblewrap");
	la->run->pid = la->run->bwrap.pid;
	return 0;
}

/* init reads it when it is there. The ids are the look-up's. */
static int
step_setup(struct launch *la)
{
	const struct source_user *user = &la->order->user;
	uint8_t buf[MSG_SIZE_MAX];
	struct msg_init_setup *msg = calloc(1, sizeof(*msg));
	ptrdiff_t len;
	int error;

	if (msg == NULL)
		return failed(la, -ENOMEM, "init");
	msg->uid = user->uid;
	msg->gid = user->gid;
	msg->groups.len = (uint16_t)(user->ngroups * sizeof(uint32_t));
	for (size_t i = 0; i < user->ngroups; i++) {
		uint32_t group = user->groups[i];

		memcpy(msg->groups.data + i * sizeof(group), &group,
		    sizeof(group));
	}
	MSG_SET_STR(msg->home, la->plan->home);
	msg->userns = la->plan->userns;
	msg->kernel = guarding_kernel(la->run->guarding);
	len = msg_encode(MSG_init_setup, msg, PROC_LAUNCHERD, PROC_INIT, 1, buf,
	    sizeof(buf));
	free(msg);
	if (len < 0)
		return failed(la, (int)len, "init");
	error = chan_send_fd(la->channel, buf, (size_t)len, &la->plan_fd, 1);
	return error < 0 ? failed(la, error, "init") : 0;
}

/* In this order: what can be refused comes before what is made; every step
 * leaves what it made in *launch or *run. */
static int (*const steps[])(struct launch *) = {
	step_plan,
	step_guard,
	step_sources,
	step_files,
	step_masks,
	step_broker,
	step_args,
	step_cgroup,
	step_netns,
	step_made,
	step_channel,
	step_spawn,
	step_setup,
};

static void
launch_done(struct launch *la)
{
	memfd_unmap(&la->map);
	close_all(&la->guard_fd, 1);
	free(la->plan);
	sources_close(&la->sources);
	close_all(la->file_fds, la->nfiles);
	free(la->file_fds);
	bwrap_args_done(&la->args);
	close_all(&la->args_fd, 1);
	close_all(&la->info_write, 1);
	netns_close(&la->netns);
	close_all(&la->channel, 1);
	close_all(&la->child_channel, 1);
	close_all(&la->error_write, 1);
}

int
launch_make(struct run *run, const struct run_order *order, int plan_fd,
    int guard_fd, int *ret_channel)
{
	struct launch la = {
		.run = run,
		.l = run->l,
		.order = order,
		.plan_fd = plan_fd,
		.guard_fd = guard_fd,
		.args_fd = -1,
		.info_write = -1,
		.netns = { -1, -1, -1 },
		.channel = -1,
		.child_channel = -1,
		.error_write = -1,
	};
	int error = 0;

	for (size_t i = 0; i < ARRAY_LEN(steps) && error == 0; i++)
		error = steps[i](&la);
	if (error == 0)
		*ret_channel = take_fd(&la.channel);
	launch_done(&la);
	return error;
}
