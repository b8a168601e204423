/*
 * Owners of the private directories; see setup.h. Runs as root with CAP_CHOWN
 * before any process of the run exists. The mounted trees are the user's and
 * may hold anything, links included: a chown that reached into one would hand
 * out files of others. So every step from HOME on is made by openat2 with
 * RESOLVE_NO_XDEV and RESOLVE_NO_SYMLINKS, and the first component that is a
 * mount ends the walk.
 */
#include "launcherd/init/setup.h"

#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "launcherd/init/ids.h"
#include "protocol/plan.h"

#define RUN_DIR "/run/stockade/run"

static int
open_dir(int at, const char *path, uint64_t resolve)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = resolve | RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, at, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int
give(int fd, const struct ids *ids)
{
	return fchownat(fd, "", ids->uid, ids->gid, AT_EMPTY_PATH) < 0 ?
	    -errno :
	    0;
}

/* The directories from HOME down to, not including, the mount at `target`. */
static int
give_between(int home_fd, const char *below, const struct ids *ids)
{
	autoclose int dir = -1;
	const char *p = below;

	while (strchr(p, '/') != NULL) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(p, "/");
		int fd, r;

		if (len >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, p, len);
		name[len] = '\0';
		fd = open_dir(dir < 0 ? home_fd : dir, name,
		    RESOLVE_BENEATH | RESOLVE_NO_XDEV);
		/* A mount: what follows is the user's own tree. */
		if (fd == -EXDEV)
			return 0;
		if (fd < 0)
			return fd;
		if (dir >= 0)
			(void)close(dir);
		dir = fd;
		r = give(fd, ids);
		if (r < 0)
			return r;
		p += len + 1;
	}
	return 0;
}

static int
give_run_dir(const struct ids *ids)
{
	autoclose int fd = open_dir(AT_FDCWD, RUN_DIR, 0);

	return fd < 0 ? fd : give(fd, ids);
}

int
setup_owners(const struct plan *plan, const char *home, const struct ids *ids)
{
	size_t home_len = strlen(home);
	autoclose int fd = -1;
	int r = give_run_dir(ids);

	if (r < 0)
		return r;
	/* HOME may itself be a mounted tree: then nothing below is ours. */
	for (size_t i = 0; i < plan->nmounts; i++)
		if (path_is_within(home, plan->mounts[i].target))
			return 0;
	fd = open_dir(AT_FDCWD, home, 0);
	if (fd < 0)
		return fd;
	for (size_t i = 0; i < plan->nmounts; i++) {
		const char *target = plan->mounts[i].target;

		if (!path_is_within(target, home))
			continue;
		r = give_between(fd, target + home_len + 1, ids);
		if (r < 0)
			return r;
	}
	/* Last: once it is the user's and 0700, root cannot search it. */
	return give(fd, ids);
}
