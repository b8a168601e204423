/*
 * See mask_mount.h. The targets are names in the user's own trees, which other
 * processes of that user may be changing at this moment; the run itself has no
 * process yet. Nothing is made there, and no link is followed.
 *
 * Why the run cannot undo it: no process of it has a capability, and in a user
 * namespace of its own, where the plan permits one, the kernel locks every
 * mount it inherits to its place and its flags (mount_namespaces(7)).
 */
#include "launcherd/mask_mount.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "common/priv.h"
#include "common/size.h"
#include "protocol/plan.h"

/* Not in the headers of every libc that we build with. */
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
/* umount2(2); its header does not go with <linux/mount.h>. */
#define MNT_DETACH 2

/* A directory of the view that nobody looks into before the run is ready. */
#define COPY_AT "/run/stockade/run"

/* A file of ours that lies over a path: its mount, and whether it has a place
 * in the run's view yet. */
struct cover {
	int fd; /* -1: this kind shows the path itself */
	bool used;
};

struct masker {
	int root; /* of the run's view */
	int copy; /* of the view, without masks; see copy_view() */
	struct cover covers[PLAN_MASK_PINNED + 1]; /* by enum plan_mask_how */
};

static int
fail(char *reason, int error, const char *step)
{
	(void)snprintf(reason, SOURCE_REASON_MAX, "%s: %s", step,
	    strerror(-error));
	return error;
}

/* A target in the view or in its copy. A name that is gone, or leads through a
 * link now, was replaced. */
static int
open_target(int root, const struct source_mask *m)
{
	int fd = path_open_beneath(root, m->target + 1, O_PATH);

	return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? -ESTALE : fd;
}

/* The same, when it is what the look-up saw. */
static int
open_seen(int root, const struct source_mask *m)
{
	autoclose int fd = open_target(root, m);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == m->dev && st.st_ino == m->ino &&
		(st.st_mode & S_IFMT) == m->type ?
	    take_fd(&fd) :
	    -ESTALE;
}

/* A mount of its own that shows what `fd` shows; attached nowhere. */
static int
clone_at(int fd, bool with_below)
{
	long tree = syscall(SYS_open_tree, fd, "",
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH |
		(with_below ? AT_RECURSIVE : 0));

	return tree < 0 ? -errno : (int)tree;
}

/* Private: a file system that the host mounts below later would come along, and
 * it would be writable. */
static int
set_flags(int tree, enum plan_mask_how how)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE,
	};

	if (how != PLAN_MASK_PINNED)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	return syscall(SYS_mount_setattr, tree, "",
		   AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0 ?
	    -errno :
	    0;
}

/*
 * What is bound on itself is taken from a copy of the view, made before the
 * first mask: a clone takes as long as its mount has mounts on it, and the copy
 * gets none. It lies over the run's private directory until leave_copy().
 * Private as well: a mount of the host would change it.
 */
static int
copy_view(struct masker *k)
{
	const struct mount_attr attr = { .propagation = MS_PRIVATE };
	autoclose int at = path_open_beneath(k->root, &COPY_AT[1], O_PATH);
	autoclose int tree = clone_at(k->root, true);

	if (at < 0 || tree < 0)
		return at < 0 ? at : tree;
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
		&attr, sizeof(attr)) < 0 ||
	    syscall(SYS_move_mount, tree, "", at, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	k->copy = take_fd(&tree);
	return 0;
}

/* The run must not find it: a launch that cannot remove it fails. */
static int
leave_copy(const struct masker *k)
{
	if (k->copy < 0 || syscall(SYS_umount2, COPY_AT, MNT_DETACH) == 0)
		return 0;
	return -errno;
}

static int
clone_self(const struct masker *k, const struct source_mask *m)
{
	autoclose int fd = open_seen(k->copy, m);
	autoclose int tree = fd < 0 ? fd : clone_at(fd, S_ISDIR(m->type));
	int r = tree < 0 ? tree : set_flags(tree, (enum plan_mask_how)m->how);

	return r < 0 ? r : take_fd(&tree);
}

/*
 * The mount for one mask, with its flags. A cover's first one is the one that
 * was carried in: only what is attached in a namespace can be cloned there
 * (until Linux 6.15).
 */
static int
make_tree(const struct masker *k, const struct source_mask *m)
{
	const struct cover *c = &k->covers[m->how];

	if (c->fd < 0)
		return clone_self(k, m);
	if (c->used)
		return clone_at(c->fd, false);
	return fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
}

static int
mount_id(int fd, uint64_t *ret)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
		return -errno;
	if ((st.stx_mask & STATX_MNT_ID) == 0)
		return -EOPNOTSUPP;
	*ret = st.stx_mnt_id;
	return 0;
}

/* Whether the name leads to this mount: the directory that was looked up may
 * have been moved away before the mount was on it. */
static int
check_place(const struct masker *k, const struct source_mask *m, int tree)
{
	autoclose int fd = open_target(k->root, m);
	uint64_t wanted, found;
	int r = fd < 0 ? fd : mount_id(fd, &found);

	if (r == 0)
		r = mount_id(tree, &wanted);
	if (r < 0)
		return r;
	return wanted == found ? 0 : -ESTALE;
}

static int
mount_one(struct masker *k, const struct source_mask *m)
{
	autoclose int target = open_seen(k->root, m);
	autoclose int tree = -1;

	if (target < 0)
		return target;
	tree = make_tree(k, m);
	if (tree < 0)
		return tree;
	if (syscall(SYS_move_mount, tree, "", target, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	k->covers[m->how].used = true;
	return check_place(k, m, tree);
}

static int
mount_some(struct masker *k, const struct mask_job *job, bool system,
    char *reason)
{
	for (size_t i = 0; i < job->nmasks; i++) {
		const struct source_mask *m = &job->masks[i];
		int r = m->system == system ? mount_one(k, m) : 0;

		/* As in source.c: what is there now is judged by its name. */
		if (r == -ESTALE && m->found)
			continue;
		if (r < 0)
			return source_refuse(reason, r, "protected path",
			    m->target,
			    r == -ESTALE ?
				"was replaced since it was looked up" :
				NULL);
	}
	return 0;
}

/* The covers are of our own mount namespace and are carried over detached. */
static int
enter(struct masker *k, const struct mask_job *job, char *reason)
{
	struct cover *dir = &k->covers[PLAN_MASK_EMPTY_DIR];
	struct cover *file = &k->covers[PLAN_MASK_NO_FILE];
	int r;

	dir->fd = clone_at(job->empty_fd, false);
	file->fd = clone_at(job->denied_fd, false);
	r = dir->fd < 0 ? dir->fd : file->fd;
	if (r >= 0)
		r = set_flags(dir->fd, PLAN_MASK_EMPTY_DIR);
	if (r >= 0)
		r = set_flags(file->fd, PLAN_MASK_NO_FILE);
	if (r < 0)
		return fail(reason, r, "covers");
	if (setns(job->mnt_fd, CLONE_NEWNS) < 0)
		return fail(reason, -errno, "mount namespace");
	k->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (k->root < 0)
		return fail(reason, -errno, "view");
	for (size_t i = 0; i < job->nmasks; i++)
		if (k->covers[job->masks[i].how].fd < 0) {
			r = copy_view(k);
			return r < 0 ? fail(reason, r, "copy of the view") : 0;
		}
	return 0;
}

/*
 * Who asks: control, through a plan whose paths were opened as the run's user.
 * System masks lie in the host's own /usr and take root's right to look; the
 * others are looked up with the user's ids, as they were the first time, so
 * that a hostile plan reaches nothing that its user could not. A hostile tree
 * can make the launch fail, by a name that changes between the two looks.
 */
int
mask_mount(const struct mask_job *job, char ret_reason[SOURCE_REASON_MAX])
{
	const struct source_user *u = &job->user;
	struct masker k = { .root = -1, .copy = -1 };
	int missing, r;

	for (size_t i = 0; i < ARRAY_LEN(k.covers); i++)
		k.covers[i].fd = -1;
	r = enter(&k, job, ret_reason);
	if (r == 0)
		r = mount_some(&k, job, true, ret_reason);
	if (r < 0)
		return r;
	r = priv_fs_become(u->uid, u->gid, u->groups, u->ngroups);
	if (r == 0)
		r = priv_limit(UINT64_C(1) << CAP_SYS_ADMIN, &missing);
	if (r < 0)
		return fail(ret_reason, r, "ids of the run");
	r = mount_some(&k, job, false, ret_reason);
	if (r < 0)
		return r;
	r = leave_copy(&k);
	return r < 0 ? fail(ret_reason, r, "copy of the view") : 0;
}
