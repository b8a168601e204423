/*
 * Where this process's control groups are mounted: reads the text of
 * /proc/self/mountinfo and /proc/self/cgroup (proc(5), cgroups(7)). No I/O.
 * Both texts are the kernel's, but mount points in them are an
 * administrator's: octal escapes are undone, lengths are bounded.
 */
#ifndef LAUNCHERD_CGROUP_LAYOUT_H
#define LAUNCHERD_CGROUP_LAYOUT_H

#include <limits.h>

enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CONTROLLERS
};

struct cgroup_layout {
	/* Directory of our own cgroup in the cgroup2 tree; never empty. */
	char unified[PATH_MAX];
	/* Mount point of the cgroup2 tree. */
	char unified_top[PATH_MAX];
	/* The same in the v1 tree of a controller; empty: not mounted as v1. */
	char legacy[CGROUP_CONTROLLERS][PATH_MAX];
};

const char *cgroup_controller_name(enum cgroup_controller);

/* 0, -ENOENT when there is no cgroup2 mount that shows our cgroup, -EINVAL
 * when a text is not understood. */
int cgroup_layout_parse(const char *mountinfo, const char *self,
    struct cgroup_layout *ret);

#endif
