/*
 * Starts bubblewrap for a run, what enters a run beside it, and stockade-lookup
 * for a launch. The child is born in the run's cgroup (clone3,
 * CLONE_INTO_CGROUP, Linux 5.7), so no process of a run is ever outside of it.
 * bwrap(1), clone(2).
 */
#ifndef LAUNCHERD_SPAWN_H
#define LAUNCHERD_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

#include "launcherd/mask_mount.h"

struct cgroup;
struct cgroup_tree;

struct spawn_run {
	const struct cgroup_tree *tree;
	const struct cgroup *cgroup;
	int netns_fd;
	int null_fd; /* standard input and output */
	int error_fd; /* standard error, a pipe */
	int channel_fd; /* becomes descriptor 3 of init */
	int args_fd;
	const int *fds; /* further descriptors that are inherited */
	size_t nfds;
	/* NULL, or called with the child's pidfd while it waits, before it has
	 * done anything; what it returns is spawn_run's failure. */
	int (*arm)(void *ctx, int pidfd);
	void *arm_ctx;
};

struct spawned {
	pid_t pid;
	int pidfd; /* owned by the caller, close-on-exec */
};

/* Descriptors are borrowed; none may be below 4. 0 or -errno. What fails in
 * the child is one line on error_fd and exit status 126. */
int spawn_run(const struct spawn_run *, struct spawned *ret);

/*
 * libexec_fd/stockade-lookup with descriptor 3 = channel_fd, as root with
 * CAP_SETUID and CAP_SETGID alone in every set. 0 or -errno.
 */
int
spawn_lookup(int libexec_fd, int channel_fd, int null_fd, struct spawned *ret);

/* libexec_fd/stockade-guard with these arguments and standard output; as root
 * with launcherd's capabilities. 0 or -errno. */
int spawn_guard(int libexec_fd, const char *verb, const char *dir, int null_fd,
    int out_fd, struct spawned *ret);

struct spawn_broker {
	const struct cgroup_tree *tree;
	const struct cgroup *cgroup;
	int pid_fd; /* the run's namespaces */
	int net_fd;
	int own_pid_fd; /* launcherd's */
	int program_fd; /* O_PATH */
	int channel_fd; /* becomes descriptor 3 */
	int null_fd;
	uid_t uid;
	gid_t gid;
};

/*
 * stockade-broker in the run's cgroup, beside its processes (cgroup_split), and
 * in its pid and network namespace, as its own user with the capabilities of
 * broker_user.h. 0 or -errno; -ENOTRECOVERABLE: our children would be born in
 * the run's pid namespace, the caller must end.
 */
int spawn_broker(const struct spawn_broker *, struct spawned *ret);

struct spawn_masks {
	const struct cgroup_tree *tree;
	const struct cgroup *cgroup;
	int null_fd;
	int error_fd; /* takes the sentence of a failure */
	struct mask_job job;
};

/* The exit status of a child that found another file than the look-up. */
#define SPAWN_MASKS_STALE 3

/*
 * A child in the run's cgroup that mounts the masks and ends: status 0,
 * SPAWN_MASKS_STALE or another one. It stays in our pid namespace, where no
 * process of the run sees it. 0 or -errno.
 */
int spawn_masks(const struct spawn_masks *, struct spawned *ret);

/*
 * Runs bubblewrap with the one argument, standard output and error to out_fd;
 * for the probe. 0 or -errno.
 */
int spawn_bwrap_option(const char *option, int null_fd, int out_fd,
    struct spawned *ret);

/* After the pidfd became readable: reaps. The status of waitpid(2), or -1. */
int spawn_reap(struct spawned *);
/* SIGKILL by pidfd; nothing when it has been reaped. */
void spawn_kill(const struct spawned *);

#endif
