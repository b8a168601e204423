/*
 * stockade-launcherd: starts sandboxes and ends them. Started by stockaded as
 * root with descriptor 3 = channel; keeps the capabilities of SPEC A21 and no
 * network of its own (it opens no socket but loopback ones in namespaces that
 * it makes). It trusts the supervisor's records to come from the supervisor,
 * and nothing in a plan.
 */
#include <sys/prctl.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/priv.h"
#include "common/proc.h"
#include "common/size.h"
#include "launcherd/cgroup.h"
#include "launcherd/guard/kernel.h"
#include "launcherd/launch.h"
#include "launcherd/launcherd.h"
#include "launcherd/probe.h"
#include "launcherd/view.h"
#include "protocol/message.h"

#define KILL_WAIT_MS 1500

/* SPEC A21, each with its use. */
static const struct cap_row {
	unsigned cap;
	const char *name;
	const char *reason;
} cap_rows[] = {
	{ CAP_SYS_ADMIN, "SYS_ADMIN", "namespaces, mounts, setns" },
	{ CAP_SETUID, "SETUID", "the run's ids, by init and lookup" },
	{ CAP_SETGID, "SETGID", "the run's groups" },
	{ CAP_SETPCAP, "SETPCAP", "bounding sets of children" },
	{ CAP_CHOWN, "CHOWN", "a run's home, by init" },
	{ CAP_NET_ADMIN, "NET_ADMIN", "loopback up in a run's namespace" },
	{ CAP_NET_BIND_SERVICE, "NET_BIND_SERVICE", "ports inside" },
	{ CAP_KILL, "KILL", "look-ups that take too long" },
	{ CAP_SYS_PTRACE, "SYS_PTRACE", "namespaces of a run's processes" },
	{ CAP_SYS_CHROOT, "SYS_CHROOT", "setns into a mount namespace" },
	{ CAP_DAC_READ_SEARCH, "DAC_READ_SEARCH",
	    "mount sources below "
	    "directories of others, after they were opened as the user" },
};

void
launcherd_panic(struct launcherd *l, const char *why)
{
	log_event(EV_INTERNAL, LF_STR(LK_REASON, why));
	if (l->cgroups != NULL)
		cgroup_tree_kill(l->cgroups, 0);
	_exit(1);
}

static void
limit_capabilities(void)
{
	uint64_t caps = 0;
	int missing = -1;

	for (size_t i = 0; i < ARRAY_LEN(cap_rows); i++)
		caps |= UINT64_C(1) << cap_rows[i].cap;
	if (priv_limit(caps, &missing) == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(cap_rows); i++)
		if ((int)cap_rows[i].cap == missing)
			proc_fatal("capability CAP_%s is missing (%s)",
			    cap_rows[i].name, cap_rows[i].reason);
	proc_fatal("the capabilities could not be limited");
}

static void
on_term(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)event_base_loopbreak(arg);
}

/* From here on nothing is opened by a path that was not given at set-up. */
static void
open_own(struct launcherd *l)
{
	int error = netns_home_open(&l->home);

	if (error < 0)
		proc_fatal("network namespace: %s", strerror(-error));
	l->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (l->null_fd < 0)
		proc_fatal("/dev/null: %s", strerror(errno));
	l->base = event_base_new();
	if (l->base == NULL)
		proc_fatal("no event loop");
	error = lookups_init(l);
	if (error == 0)
		error = runs_init(l);
	if (error < 0)
		proc_fatal("watching: %s", strerror(-error));
}

static void
start(struct launcherd *l)
{
	int error;

	proc_begin("stockade-launcherd", PROC_CHANNEL_FD + 1);
	log_init("stockade-launcherd", LOG_LEVEL_INFO);
	(void)proc_raise_nofile();
	if (chdir("/") < 0)
		proc_fatal("chdir: %s", strerror(errno));
	open_own(l);
	/* NSS, before anything is given up. Without this user runs with name
	 * rules are refused, others are not. */
	if (priv_lookup_user(BROKER_USER, &l->broker_user) < 0)
		l->broker_user = (struct priv_user){ 0, 0 };
	limit_capabilities();
	/* No PDEATHSIG: end of file on descriptor 3 ends the runs first. */
	error = proc_undumpable();
	if (error < 0)
		proc_fatal("non-dumpable: %s", strerror(-error));
	error = launcherd_confine();
	if (error < 0)
		proc_fatal("seccomp: %s", strerror(-error));
}

static void
serve(struct launcherd *l)
{
	struct event *term = evsignal_new(l->base, SIGTERM, on_term, l->base);

	if (term == NULL || event_add(term, NULL) < 0)
		proc_fatal("no signal event");
	l->supervisor = peer_new(l->base, PROC_CHANNEL_FD, PROC_LAUNCHERD,
	    PROC_SUPERVISOR, &launcherd_peer_ops, l);
	if (l->supervisor == NULL)
		proc_fatal("no channel");
	(void)PEER_SEND(l->supervisor, ready, .unused_ = 0);
	log_event(EV_STARTED, LF_NUM(LK_PID, getpid()));
	(void)event_base_dispatch(l->base);
	event_free(term);
}

/* No run outlives this process, however it was asked to end. */
static void
finish(struct launcherd *l)
{
	/* Nobody reaps any more, and a run's init waits for its broker. */
	(void)signal(SIGCHLD, SIG_IGN);
	if (l->cgroups != NULL)
		cgroup_tree_kill(l->cgroups, KILL_WAIT_MS);
	lookups_done(l);
	runs_done(l);
	kernel_guard_close(l, true);
	probe_free(l->probe);
	if (l->view_event != NULL)
		event_free(l->view_event);
	view_close(l->view);
	cgroup_tree_close(l->cgroups);
	peer_free(l->supervisor);
	launch_unprepare(l);
	netns_home_close(&l->home);
	close_all(&l->init_fd, 1);
	close_all(&l->connect_fd, 1);
	close_all(&l->broker_fd, 1);
	close_all(&l->libexec_fd, 1);
	close_all(&l->null_fd, 1);
	event_base_free(l->base);
}

int
main(int argc, char **argv)
{
	static struct launcherd l = { .null_fd = -1,
		.libexec_fd = -1,
		.init_fd = -1,
		.broker_fd = -1,
		.connect_fd = -1,
		.home = { .fd = -1 },
		.spare = { -1, -1, -1 } };

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		(void)printf("stockade-launcherd %s\n", PACKAGE_VERSION);
		return 0;
	}
	if (argc != 1) {
		(void)fprintf(stderr,
		    "usage: stockade-launcherd [--version]\n");
		return 2;
	}
	start(&l);
	serve(&l);
	finish(&l);
	return l.status;
}
