/*
 * launcherd: bind sources and masks, opened with the run's ids. Paths are
 * control's and hostile; what the paths lead to is the user's and hostile.
 * Every path is resolved once, by the kernel, into an O_PATH descriptor;
 * nothing is opened by name a second time.
 */
#include "launcherd/source.h"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/path.h"
#include "common/priv.h"
#include "common/size.h"
#include "launcherd/mountinfo.h"
#include "launcherd/proctext.h"
#include "protocol/plan.h"

#define SYSTEM_ROOT "/usr"

/* SPEC I15: never as a whole, by whatever spelling it was reached. */
static const char *const never_whole[] = { "/", "/bin", "/boot", "/dev", "/etc",
	"/home", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root",
	"/run", "/sbin", "/sys", "/tmp", "/usr", "/var", "/var/tmp" };

/* Never at all: what appears there is the kernel's or the services'. */
static const char *const never_below[] = { "/dev", "/proc", "/sys" };

/* A bind is recursive, so none may be mounted below a source either. */
static const struct pseudo_fs {
	unsigned long magic;
	const char *name;
} pseudo_fs[] = {
#define PSEUDO_FS(m, n) { m, n },
#include "launcherd/pseudo_fs.def"
#undef PSEUDO_FS
};

int
source_refuse(char *reason, int error, const char *what, const char *path,
    const char *why)
{
	char clean[SOURCE_REASON_MAX / 2];

	(void)log_clean(clean, sizeof(clean), path, strlen(path));
	(void)snprintf(reason, SOURCE_REASON_MAX, "%s %s: %s", what, clean,
	    why != NULL ? why : strerror(-error));
	return error;
}

/* NULL, or why this is never mounted. */
static const char *
forbidden_place(int fd, const char *real)
{
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_LEN(never_whole); i++)
		if (strcmp(real, never_whole[i]) == 0)
			return "this directory is never mounted as a whole";
	for (size_t i = 0; i < ARRAY_LEN(never_below); i++)
		if (path_is_within(real, never_below[i]))
			return "nothing below this directory is ever mounted";
	if (fstatfs(fd, &fs) < 0)
		return "its file system cannot be told";
	for (size_t i = 0; i < ARRAY_LEN(pseudo_fs); i++)
		if (pseudo_fs[i].magic != TMPFS_MAGIC &&
		    (unsigned long)fs.f_type == pseudo_fs[i].magic)
			return "it lies in a file system of the kernel";
	return NULL;
}

static bool
is_pseudo(const char *type)
{
	for (size_t i = 0; i < ARRAY_LEN(pseudo_fs); i++)
		if (strcmp(type, pseudo_fs[i].name) == 0)
			return true;
	return false;
}

/* The same for what is mounted below the sources, in one pass over all mounts.
 * Our own table is the one that bubblewrap will clone. */
static int
check_below(const struct plan *plan, char *const *reals, char *reason)
{
	autofree char *text = proctext_read("/proc/self/mountinfo");
	struct mountinfo mount;

	if (text == NULL)
		return -EIO;
	for (const char *line = text; *line != '\0';) {
		size_t len = strcspn(line, "\n");

		if (mountinfo_read(line, len, &mount) && is_pseudo(mount.type))
			for (size_t i = 0; i < plan->nmounts; i++)
				if (path_is_within(mount.point, reals[i]))
					return source_refuse(reason, -EPERM,
					    "mount source",
					    plan->mounts[i].source,
					    "a file "
					    "system of the kernel is mounted "
					    "below it");
		line += len + (line[len] == '\n');
	}
	return 0;
}

static bool
kind_fits(mode_t mode, enum plan_kind kind)
{
	if (kind == PLAN_DIR)
		return S_ISDIR(mode);
	/* A socket is mounted when unixSockets lists it. */
	return S_ISREG(mode) || S_ISSOCK(mode);
}

static const char *
kind_text(enum plan_kind kind)
{
	return kind == PLAN_DIR ? "is not a directory" :
				  "is not a regular file";
}

/*
 * The mount that decides about `path`: the longest target that holds it, the
 * last one of equal length, among the first `n`. NULL when there is none.
 */
static const struct plan_mount *
mount_of(const struct plan *plan, size_t n, const char *path)
{
	const struct plan_mount *best = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct plan_mount *m = &plan->mounts[i];

		if (path_is_within(path, m->target) &&
		    (best == NULL || strlen(m->target) >= strlen(best->target)))
			best = m;
	}
	return best;
}

/* What follows `dir` in `path`, without the slash; "" when they are equal. */
static const char *
rest_of(const char *path, const char *dir)
{
	const char *rest = path + strlen(dir);

	return *rest == '/' ? rest + 1 : rest;
}

/* A mount over the parent of an earlier one would hide that (SPEC C17). */
static int
check_order(const struct plan *plan, size_t i, char *reason)
{
	const char *target = plan->mounts[i].target;

	for (size_t k = 0; k < i; k++)
		if (path_is_within(plan->mounts[k].target, target) &&
		    strcmp(plan->mounts[k].target, target) != 0)
			return source_refuse(reason, -EINVAL, "mount point",
			    target, "comes after one below it");
	return 0;
}

/*
 * A mount inside another one: its mount point must be there already, or
 * bubblewrap would make it in the user's own tree (SPEC C19).
 */
static int
check_point(const struct plan *plan, const struct sources *s, size_t i,
    char *reason)
{
	const struct plan_mount *m = &plan->mounts[i];
	const struct plan_mount *outer = mount_of(plan, i, m->target);
	autoclose int fd = -1;
	const char *rest;
	struct stat st;

	if (outer == NULL)
		return 0;
	rest = rest_of(m->target, outer->target);
	if (*rest == '\0')
		return 0;
	fd = path_open_beneath(s->mounts[outer - plan->mounts], rest, O_PATH);
	if (fd < 0)
		return source_refuse(reason, fd, "mount point", m->target,
		    NULL);
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!kind_fits(st.st_mode, m->kind))
		return source_refuse(reason, -ESTALE, "mount point", m->target,
		    kind_text(m->kind));
	return 0;
}

static int
open_mount(const struct plan *plan, struct sources *s, size_t i, char *reason)
{
	const struct plan_mount *m = &plan->mounts[i];
	autoclose int fd = path_open(m->source, O_PATH);
	char real[PLAN_PATH_MAX + 1];
	const char *why;
	struct stat st;
	int error;

	if (fd < 0)
		return source_refuse(reason, fd, "mount source", m->source,
		    NULL);
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!kind_fits(st.st_mode, m->kind))
		return source_refuse(reason, -ESTALE, "mount source", m->source,
		    kind_text(m->kind));
	if (m->ino != 0 &&
	    (m->ino != (uint64_t)st.st_ino || m->dev != (uint64_t)st.st_dev))
		return source_refuse(reason, -ESTALE, "mount source", m->source,
		    "was replaced since it was looked up");
	error = path_of_fd(fd, real, sizeof(real));
	if (error < 0)
		return source_refuse(reason, error, "mount source", m->source,
		    "has no path any more");
	why = forbidden_place(fd, real);
	if (why != NULL)
		return source_refuse(reason, -EPERM, "mount source", m->source,
		    why);
	error = check_order(plan, i, reason);
	if (error == 0)
		error = check_point(plan, s, i, reason);
	if (error < 0)
		return error;
	s->reals[i] = strdup(real);
	if (s->reals[i] == NULL)
		return -ENOMEM;
	s->mounts[i] = take_fd(&fd);
	s->nmounts = i + 1;
	return 0;
}

/* Looks at what a mask is for and remembers it; refuses another kind. Takes
 * the descriptor, or the error of opening it. */
static int
look_at_masked(const struct plan_mask *mask, int opened,
    struct source_mask *ret, char *reason)
{
	autoclose int fd = opened;
	struct stat st;

	if (fd == -ELOOP)
		return source_refuse(reason, -ESTALE, "protected path",
		    mask->path, "was replaced since it was looked up");
	if (fd < 0)
		return source_refuse(reason, fd, "protected path", mask->path,
		    NULL);
	if (fstat(fd, &st) < 0)
		return -errno;
	/* SPEC C18: a rule of the wrong type refuses the launch. */
	if ((mask->kind == PLAN_DIR) != S_ISDIR(st.st_mode))
		return source_refuse(reason, -ESTALE, "protected path",
		    mask->path,
		    mask->kind == PLAN_DIR ? "is not a directory" :
					     "is a directory");
	*ret = (struct source_mask){ .how = (int)mask->how,
		.system = mask->system,
		.found = mask->found,
		.type = st.st_mode & S_IFMT,
		.dev = st.st_dev,
		.ino = st.st_ino };
	return 0;
}

/* What lies at `rest` in a mount, or the mount's own root. */
static int
open_in(int mount_fd, const char *rest)
{
	int fd;

	if (*rest != '\0')
		return path_open_beneath(mount_fd, rest, O_PATH);
	fd = fcntl(mount_fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* The file of a mask that the start scan found is not there any more, or is
 * something else. The tree is in use, and this is no reason to refuse: what is
 * made there now is judged by its name, as everything that comes later is. */
static bool
is_past(const struct plan_mask *mask, int error)
{
	return mask->found &&
	    (error == -ENOENT || error == -ENOTDIR || error == -ESTALE);
}

/*
 * A mask of a path in a mount, looked up in what was opened for the mount and
 * not by its path, which may lead elsewhere by now. control has resolved the
 * links that were there; one that is there now was put there since.
 */
static int
add_mask(const struct plan *plan, struct sources *s,
    const struct plan_mask *mask, char *reason)
{
	const struct plan_mount *outer =
	    mount_of(plan, plan->nmounts, mask->path);
	struct source_mask *m = &s->masks[s->nmasks];
	const char *rest;
	int error;

	if (outer == NULL)
		return source_refuse(reason, -EINVAL, "protected path",
		    mask->path, "lies in no mount");
	/* A pin is writable. */
	if (mask->how == PLAN_MASK_PINNED && outer->read_only)
		return source_refuse(reason, -ESTALE, "protected path",
		    mask->path, "lies in a read-only mount");
	rest = rest_of(mask->path, outer->target);
	error = look_at_masked(mask,
	    open_in(s->mounts[outer - plan->mounts], rest), m, reason);
	if (is_past(mask, error)) {
		reason[0] = '\0';
		return 0;
	}
	if (error < 0)
		return error;
	m->target = strdup(mask->path);
	if (m->target == NULL)
		return -ENOMEM;
	s->nmasks++;
	return 0;
}

/*
 * A program below /usr that is not to be executed (SPEC J10). Looked at with
 * our own ids: it is covered by a file of ours.
 */
static int
add_system_mask(struct sources *s, const struct plan_mask *mask, char *reason)
{
	struct source_mask *m = &s->masks[s->nmasks];
	autoclose int fd = path_open(mask->path, O_PATH);
	char real[PLAN_PATH_MAX + 1];
	int error = fd < 0 ? 0 : path_of_fd(fd, real, sizeof(real));

	if (error < 0)
		return source_refuse(reason, error, "protected path",
		    mask->path, "has no path any more");
	error = look_at_masked(mask, take_fd(&fd), m, reason);
	if (error < 0)
		return error;
	if (!path_is_within(real, SYSTEM_ROOT))
		return source_refuse(reason, -EPERM, "protected path",
		    mask->path, "leads out of " SYSTEM_ROOT);
	m->target = strdup(real);
	if (m->target == NULL)
		return -ENOMEM;
	s->nmasks++;
	return 0;
}

/* Of two masks of one path, the one that denies more comes first, then the one
 * that may not be left out. */
static int
compare_masks(const void *pa, const void *pb)
{
	const struct source_mask *a = pa;
	const struct source_mask *b = pb;
	int order = path_compare(a->target, b->target);

	if (order != 0)
		return order;
	return a->how != b->how ? a->how - b->how : a->found - b->found;
}

/*
 * A bind over a directory hides what was bound below it before, so a mask of a
 * parent must come first, whatever the order of the plan (SPEC C17). What lies
 * in a directory that appears empty needs no mask, and has no place for one.
 * What lies in a read-only one is not pinned: it would be writable again.
 */
static void
order_masks(struct sources *s)
{
	const char *last = NULL;
	const char *empty = NULL;
	const char *fixed = NULL;
	size_t kept = 0;

	qsort(s->masks, s->nmasks, sizeof(*s->masks), compare_masks);
	for (size_t i = 0; i < s->nmasks; i++) {
		struct source_mask *m = &s->masks[i];

		if ((last != NULL && strcmp(last, m->target) == 0) ||
		    (empty != NULL && path_is_within(m->target, empty)) ||
		    (m->how == PLAN_MASK_PINNED && fixed != NULL &&
			path_is_within(m->target, fixed))) {
			free(m->target);
			continue;
		}
		last = m->target;
		if (m->how == PLAN_MASK_EMPTY_DIR)
			empty = m->target;
		if (m->how == PLAN_MASK_READ_ONLY &&
		    (fixed == NULL || !path_is_within(m->target, fixed)))
			fixed = m->target;
		s->masks[kept++] = *m;
	}
	s->nmasks = kept;
}

static int
open_as_user(const struct plan *plan, struct sources *s, char *reason)
{
	int error = 0;

	for (size_t i = 0; i < plan->nmounts && error == 0; i++)
		error = open_mount(plan, s, i, reason);
	if (error == 0)
		error = check_below(plan, s->reals, reason);
	for (size_t i = 0; i < plan->nmasks && error == 0; i++)
		if (!plan->masks[i].system)
			error = add_mask(plan, s, &plan->masks[i], reason);
	return error;
}

/*
 * Who asks: control, through a launch that the supervisor admitted for this
 * user. The paths are opened with the user's file-system ids and groups and
 * without DAC_READ_SEARCH, so a hostile plan reaches nothing that its user
 * could not. launcherd is single-threaded: nothing else runs meanwhile.
 */
int
sources_open(const struct plan *plan, const struct source_user *user,
    struct sources *ret, char ret_reason[SOURCE_REASON_MAX])
{
	struct sources s = { 0 };
	int error;

	ret_reason[0] = '\0';
	s.mounts = calloc(plan->nmounts + 1, sizeof(*s.mounts));
	s.masks = calloc(plan->nmasks + 1, sizeof(*s.masks));
	s.reals = calloc(plan->nmounts + 1, sizeof(*s.reals));
	error = s.mounts == NULL || s.masks == NULL || s.reals == NULL ?
	    -ENOMEM :
	    priv_fs_become(user->uid, user->gid, user->groups, user->ngroups);
	if (error == 0) {
		error = open_as_user(plan, &s, ret_reason);
		if (priv_fs_restore() < 0)
			error = -ENOTRECOVERABLE;
	}
	for (size_t i = 0; i < plan->nmasks && error == 0; i++)
		if (plan->masks[i].system)
			error =
			    add_system_mask(&s, &plan->masks[i], ret_reason);
	if (error < 0) {
		sources_close(&s);
		return error;
	}
	order_masks(&s);
	*ret = s;
	return 0;
}

void
source_masks_free(struct source_mask *masks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(masks[i].target);
	free(masks);
}

int
sources_take(int fd, struct sources *ret)
{
	struct sources s = { 0 };
	char real[PLAN_PATH_MAX + 1];
	int error = path_of_fd(fd, real, sizeof(real));

	s.mounts = calloc(1, sizeof(*s.mounts));
	s.masks = calloc(1, sizeof(*s.masks));
	s.reals = calloc(2, sizeof(*s.reals));
	if (error == 0 &&
	    (s.mounts == NULL || s.masks == NULL || s.reals == NULL))
		error = -ENOMEM;
	if (error == 0) {
		s.mounts[0] = fcntl(fd, F_DUPFD_CLOEXEC, 4);
		s.reals[0] = strdup(real);
		s.nmounts = s.mounts[0] >= 0;
		if (s.mounts[0] < 0 || s.reals[0] == NULL)
			error = -ENOMEM;
	}
	if (error < 0)
		sources_close(&s);
	else
		*ret = s;
	return error;
}

void
sources_close(struct sources *s)
{
	close_all(s->mounts, s->nmounts);
	for (size_t i = 0; s->reals != NULL && s->reals[i] != NULL; i++)
		free(s->reals[i]);
	free(s->reals);
	source_masks_free(s->masks, s->nmasks);
	free(s->mounts);
	memset(s, 0, sizeof(*s));
}
