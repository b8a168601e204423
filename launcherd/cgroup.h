/*
 * Control groups of the runs: limits, freeze, kill, counters (cgroups(7),
 * Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of the kernel).
 *
 * An instance has one directory, `stockade-<instance>`, below launcherd's own
 * cgroup in the cgroup2 tree, and in a hybrid layout one in each v1 tree of a
 * controller. A run is `run-<number>` in it. The cgroup2 directory kills and
 * freezes (Linux 5.14 and 5.2; it needs no controller), v1 directories only
 * limit. Names are ours: nothing of a client is part of one.
 *
 * Where a process of ours serves the others of a run, those are in a cgroup2
 * directory of their own, `processes` below the run's. It has no controllers:
 * limits, counters, kill and the end are the run's directory's as before.
 */
#ifndef LAUNCHERD_CGROUP_H
#define LAUNCHERD_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcherd/cgroup_layout.h"

#define CGROUP_NAME_MAX 40

struct cgroup_tree;

struct cgroup_limits {
	uint64_t memory_bytes; /* 0: none, here and below */
	uint64_t pids;
	uint64_t cpu_milli; /* 1000: one processor */
};

struct cgroup {
	char name[CGROUP_NAME_MAX];
	int fd; /* cgroup2 directory */
	unsigned legacy; /* mask of 1u << controller: v1 directory made */
	bool split; /* cgroup_split() */
};

/*
 * Finds the layout, makes the instance's directories, kills and removes what
 * an earlier launcherd of the same instance left (counted in *ret_removed).
 * -ENOENT: no cgroup2 tree; -EOPNOTSUPP: it cannot kill or freeze; -EBUSY:
 * leftovers that do not end; -errno. Blocks for at most two seconds, only when
 * there are leftovers.
 */
int cgroup_tree_open(const char *instance, struct cgroup_tree **ret,
    unsigned *ret_removed);
/* Removes the instance's directories if they are empty; NULL is fine. */
void cgroup_tree_close(struct cgroup_tree *);
/* Whether limits of this controller can be set. */
bool cgroup_tree_has(const struct cgroup_tree *, enum cgroup_controller);
/* Kills everything of the instance at once and waits up to timeout_ms for it
 * to be gone; for the end of the process. */
void cgroup_tree_kill(struct cgroup_tree *, int timeout_ms);

/*
 * Makes `name` with limits. A limit without a controller is left out and its
 * bit (1u << controller, the same as PLAN_LIMIT_*) set in *ret_unset. 0 or
 * -errno with nothing left.
 */
int cgroup_make(struct cgroup_tree *, const char *name,
    const struct cgroup_limits *, struct cgroup *ret, unsigned *ret_unset);
/* Puts what will be started in the run apart from what serves it; before the
 * first process. 0 or -errno, the same as it was. */
int cgroup_split(struct cgroup *);
/* The directory that the run's processes are started in: descriptor, or
 * -errno. */
int cgroup_processes(const struct cgroup *);
/* Closes the descriptor; the directories stay. */
void cgroup_close(struct cgroup *);
/* 0; -EBUSY: not empty yet, try again after a notification. Absent
 * directories are fine. */
int cgroup_remove(struct cgroup_tree *, const struct cgroup *);

/* In the single-threaded child, which is in the cgroup2 directory already
 * (CLONE_INTO_CGROUP): enters the v1 directories. 0 or -errno. */
int cgroup_join_legacy(const struct cgroup_tree *, const struct cgroup *);

/* Kills all, frozen ones too. Works on a descriptor alone. */
int cgroup_kill(int cgroup_fd);
int cgroup_freeze(int cgroup_fd, bool frozen);

/*
 * A caller that waits for an answer of what serves it (seccomp, WAIT_KILLABLE)
 * cannot be frozen: the run's processes are frozen first and what serves them
 * last, and thawed the other way round. Takes the step that is possible now. 1:
 * all is as wanted; 0: call again when one of the watched files has changed;
 * -errno.
 */
int cgroup_freeze_step(const struct cgroup *, bool frozen);

struct cgroup_state {
	bool populated;
	bool frozen;
};
int cgroup_state(int cgroup_fd, struct cgroup_state *ret);

struct cgroup_use {
	uint64_t memory_bytes; /* 0: unknown, here and below */
	uint64_t memory_peak;
	uint64_t memory_limit;
	uint64_t pids;
	uint64_t oom_kills;
	uint64_t forks_refused;
};
void cgroup_use(const struct cgroup_tree *, const struct cgroup *,
    struct cgroup_use *ret);
/* Refused forks are not notified: the run's pids are counted in v1, where a
 * watch of pids.events stays silent. */
bool cgroup_pids_silent(const struct cgroup *);

/*
 * Paths to watch by inotify(7) for changes, relative to nothing: written as
 * /proc/self/fd/N/FILE. The kernel tells IN_MODIFY for cgroup.events,
 * memory.events (cgroup2) and pids.events (both). Returns the count, at most
 * CGROUP_WATCHES; each path[i] is CGROUP_WATCH_PATH bytes.
 */
#define CGROUP_WATCHES 4
#define CGROUP_WATCH_PATH 96
size_t cgroup_watch_paths(const struct cgroup_tree *, const struct cgroup *,
    char paths[CGROUP_WATCHES][CGROUP_WATCH_PATH]);

/*
 * v1 memory has no file that notifies: an eventfd is registered with
 * memory.oom_control. Sets *ret_fd to it (owned by the caller), -1 where it is
 * not needed. 0 or -errno.
 */
int cgroup_oom_eventfd(const struct cgroup_tree *, const struct cgroup *,
    int *ret_fd);

#endif
