/*
 * See verify.h. Runs with the ids of the run and under all of its confinement.
 * The trees belong to the run's user and are hostile: a name is tried by one
 * call that makes nothing where something is and follows no last link.
 */
#include "launcherd/init/verify.h"

#include <sys/random.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/path.h"
#include "launcherd/mountinfo.h"
#include "protocol/guard.h"

static int
failed(int error, const char *what, const char *place,
    char ret_step[VERIFY_STEP_MAX])
{
	char clean[VERIFY_STEP_MAX / 2];

	(void)log_clean(clean, sizeof(clean), place, strlen(place));
	(void)snprintf(ret_step, VERIFY_STEP_MAX, "guard: %s %s", what, clean);
	return error;
}

/*
 * Whether the guard says no. By path: pid 1 is not dumpable, so the broker
 * cannot look into its descriptors. Landlock alone says EACCES, which proves
 * nothing about the rules, and so does a directory that is not the user's.
 */
static int
try(const char *place, const char *name, bool may_be_gone,
    char ret_step[VERIFY_STEP_MAX])
{
	char path[PATH_MAX];
	autoclose int made = -1;
	int error;

	if (snprintf(path, sizeof(path), "%s/%s", place, name) >=
	    (int)sizeof(path))
		return failed(-ENAMETOOLONG, "cannot be tried in", place,
		    ret_step);
	made = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	error = made < 0 ? errno : EEXIST;
	if (made >= 0) {
		(void)unlink(path);
		return failed(-error, "a protected name could be made in",
		    place, ret_step);
	}
	if (error == EPERM || error == EROFS ||
	    (error == EACCES && access(place, W_OK) < 0) ||
	    ((error == ENOENT || error == ENOTDIR) && may_be_gone))
		return 0;
	return failed(-error, "cannot be tried in", place, ret_step);
}

static bool
is_below(const char *path, char *const *places, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (path_is_within(path, places[i]) &&
		    strcmp(path, places[i]) != 0)
			return true;
	return false;
}

/* A mount on a file, or one that another covers, holds no new name. Read line
 * by line: a run may have 16384 masks, each of them a mount with two paths. */
static int
try_mounts(char *const *places, size_t n, const char *name,
    char ret_step[VERIFY_STEP_MAX])
{
	static const char mounts[] = "/proc/self/mountinfo";
	autofree char *line = NULL;
	struct mountinfo mount;
	FILE *f = fopen(mounts, "re");
	size_t size = 0;
	ssize_t len;
	int r = 0;

	if (f == NULL)
		return failed(-errno, "cannot be read:", mounts, ret_step);
	while (r == 0 && (len = getline(&line, &size, f)) > 0)
		if (!mountinfo_read(line, strcspn(line, "\n"), &mount))
			r = failed(-EIO, "cannot be read:", mounts, ret_step);
		else if (!mount.read_only && is_below(mount.point, places, n))
			r = try(mount.point, name, true, ret_step);
	/* An end that is none could hide a mount. */
	if (r == 0 && !feof(f))
		r = failed(-EIO, "cannot be read:", mounts, ret_step);
	(void)fclose(f);
	return r;
}

int
verify_guard(char *const *places, size_t n, char ret_step[VERIFY_STEP_MAX])
{
	char name[sizeof(GUARD_VERIFY_PREFIX) + 16];
	uint64_t number;
	int r = 0;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return failed(-EIO, "no name can be drawn:", "getrandom",
		    ret_step);
	(void)snprintf(name, sizeof(name), "%s%016" PRIx64, GUARD_VERIFY_PREFIX,
	    number);
	for (size_t i = 0; i < n && r == 0; i++)
		r = try(places[i], name, false, ret_step);
	return r < 0 ? r : try_mounts(places, n, name, ret_step);
}
