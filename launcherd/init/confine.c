/*
 * See confine.h. The plan is hostile until it is decoded and stays a wish
 * afterwards: a grant names a path of the view that was built from descriptors
 * opened as the run's user, and Landlock only ever takes rights away. So a
 * wrong plan can make a run poorer, or give it what its user may do anyway.
 */
#include "launcherd/init/confine.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/landlock.h"
#include "common/size.h"
#include "protocol/plan.h"

#include "launcherd/init/run_filter.h"

#define ABI_NEEDED 2 /* REFER: without it no rename crosses a directory */

static const struct grant {
	const char *path;
	uint64_t rights;
	const char *reason;
} grants[] = {
	{ "/", LANDLOCK_READ, "the view is what may be read" },
	{ "/tmp", LANDLOCK_WRITE, "private, SPEC C3" },
	{ "/dev/shm", LANDLOCK_WRITE, "private, SPEC C3" },
	{ "/run/stockade/run", LANDLOCK_WRITE, "private, SPEC C16" },
	{ "/dev", LANDLOCK_WRITE | LANDLOCK_IOCTL_DEV, "null, tty, ptmx, pts" },
	{ "/proc", LANDLOCK_WRITE,
	    "own processes; /proc/sys is a read-only mount" },
};

/* Links are not followed: the targets were resolved when the plan was made,
 * and a link in a mounted tree is the user's to change. */
static int
open_path(const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int
grant(int ruleset, const char *path, uint64_t rights)
{
	autoclose int fd = open_path(path);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rights &= LANDLOCK_OF_FILE;
	return landlock_grant(ruleset, fd, rights);
}

static int
grant_mounts(int ruleset, const struct plan *plan, uint64_t rights)
{
	for (size_t i = 0; i < plan->nmounts; i++) {
		const struct plan_mount *m = &plan->mounts[i];
		int r;

		/* Read-only ones are the mount's word; the read grant on "/"
		 * reaches into them. */
		if (m->read_only)
			continue;
		r = grant(ruleset, m->target, rights);
		if (r < 0)
			return r;
	}
	return 0;
}

int
confine_landlock_run(const struct plan *plan, const char *home,
    unsigned *ret_abi, const char **ret_step)
{
	unsigned abi = landlock_abi();
	uint64_t known = landlock_rights(abi);
	autoclose int ruleset = -1;
	int r;

	if (abi < ABI_NEEDED) {
		*ret_step = abi == 0 ?
		    "landlock: the kernel has none" :
		    "landlock: the kernel lacks the right REFER";
		return -EOPNOTSUPP;
	}
	*ret_step = "landlock";
	ruleset = landlock_new(abi, LANDLOCK_SCOPES);
	if (ruleset < 0)
		return ruleset;
	for (size_t i = 0; i < ARRAY_LEN(grants); i++) {
		r = grant(ruleset, grants[i].path, grants[i].rights & known);
		if (r < 0) {
			*ret_step = "landlock: a private directory";
			return r;
		}
	}
	r = grant(ruleset, home, LANDLOCK_WRITE & known);
	if (r < 0) {
		*ret_step = "landlock: the home directory";
		return r;
	}
	r = grant_mounts(ruleset, plan, LANDLOCK_WRITE & known);
	if (r < 0) {
		*ret_step = "landlock: a writable mount";
		return r;
	}
	*ret_abi = abi;
	return landlock_enter(ruleset);
}

static int
load(const struct sock_filter *filter, size_t n)
{
	/* The kernel copies the program; its type lacks a const. */
	union {
		const struct sock_filter *in;
		struct sock_filter *out;
	} p = { .in = filter };
	struct sock_fprog prog = { (unsigned short)n, p.out };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &prog) < 0)
		return -errno;
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER ?
	    0 :
	    -EPERM;
}

int
confine_seccomp_run(bool userns)
{
	if (userns)
		return load(run_filter_userns, ARRAY_LEN(run_filter_userns));
	return load(run_filter, ARRAY_LEN(run_filter));
}
