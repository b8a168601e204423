/*
 * See guard.h. The places come from the plan and stay a wish: a wrong list can
 * make a run poorer, or leave a root to Landlock's refusal; a grant that would
 * reach into a guarded root is refused here once more.
 */
#include "launcherd/init/guard.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/landlock.h"
#include "common/size.h"

#include "launcherd/init/guard_filter.h"

#define ABI_NEEDED 2 /* REFER: without it no rename crosses a directory */
#define WAIT_KILLABLE (1u << 5) /* Linux 5.19 */

/* What exists there is judged by the mounts and its mode; nothing is made. */
static const char *const existing[] = { "/dev", "/proc", "/sys" };

/* The rights to write that this kernel knows. */
static uint64_t
handled(unsigned abi)
{
	return landlock_rights(abi) &
	    (LANDLOCK_WRITE | LANDLOCK_MAKE_CHAR | LANDLOCK_MAKE_BLOCK);
}

/* Links are not followed: the paths were resolved when the plan was made. */
static int
grant(int ruleset, const char *path, uint64_t rights)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	autoclose int fd =
	    (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rights &= LANDLOCK_OF_FILE;
	return landlock_grant(ruleset, fd, rights);
}

static int
grant_all(int ruleset, const struct guard_places *places, uint64_t rights)
{
	int r;

	for (size_t i = 0; i < places->ngranted; i++) {
		r = grant(ruleset, places->granted[i], rights & LANDLOCK_WRITE);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_LEN(existing); i++) {
		r = grant(ruleset, existing[i],
		    rights & (LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE));
		/* A run has no /sys. */
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

int
guard_landlock(const struct guard_places *places, const char **ret_step)
{
	unsigned abi = landlock_abi();
	autoclose int ruleset = -1;
	int r;

	if (abi < ABI_NEEDED) {
		*ret_step = abi == 0 ?
		    "landlock: the kernel has none" :
		    "landlock: the kernel lacks the right REFER";
		return -EOPNOTSUPP;
	}
	*ret_step = "guard: a writable place holds a guarded one";
	r = guard_check_places(places, NULL);
	if (r < 0)
		return r;
	*ret_step = "guard: landlock";
	ruleset = landlock_new_rights(handled(abi));
	if (ruleset < 0)
		return ruleset;
	*ret_step = "guard: a writable place";
	r = grant_all(ruleset, places, handled(abi));
	if (r < 0)
		return r;
	*ret_step = "guard: landlock";
	return landlock_enter(ruleset);
}

int
guard_listener(void)
{
	/* The kernel copies the program; its type lacks a const. */
	union {
		const struct sock_filter *in;
		struct sock_filter *out;
	} p = { .in = guard_filter };
	struct sock_fprog prog = { ARRAY_LEN(guard_filter), p.out };
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	    (unsigned)SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE, &prog);

	return fd < 0 ? -errno : (int)fd;
}
