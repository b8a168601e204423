/*
 * open, openat, creat, openat2 for writing: open(2), openat2(2), and fs/open.c
 * for what the kernel makes of their flags.
 *
 * The file is opened by the broker, with the run's rights, relative to the
 * pinned directory and without following a link; the descriptor is handed over.
 */
#include "launcherd/broker/calls.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "launcherd/broker/broker.h"
#include "launcherd/broker/judge.h"
#include "launcherd/broker/notify.h"
#include "launcherd/broker/resolve.h"

/* As the kernel has them, whatever the C library says of large files. */
#if defined(__x86_64__)
#define LARGEFILE 0100000u
#else
#define LARGEFILE 0400000u
#endif
#define TMPFILE 020000000u /* without O_DIRECTORY */
#define VALID_FLAGS \
	((unsigned)(O_RDONLY | O_WRONLY | O_RDWR | O_CREAT | O_EXCL | \
	     O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC | O_DSYNC | \
	     O_ASYNC | O_DIRECT | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | \
	     O_CLOEXEC | O_PATH) | \
	    LARGEFILE | TMPFILE)
#define WRITE_FLAGS \
	((unsigned)(O_WRONLY | O_RDWR | O_CREAT | O_TRUNC) | TMPFILE)
#define HOW_SIZE_MAX 4096u

struct opening {
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;
};

static bool
writes(const struct opening *o)
{
	return (o->flags & WRITE_FLAGS) != 0 && (o->flags & O_PATH) == 0;
}

static bool
creates(const struct opening *o)
{
	return (o->flags & O_CREAT) != 0;
}

/* A new file or nothing: a link in the last place is not followed. */
static bool
exclusive(const struct opening *o)
{
	return creates(o) && (o->flags & O_EXCL) != 0;
}

/* Flags that do not go together. */
static bool
is_odd(const struct opening *o)
{
	if ((o->flags & TMPFILE) != 0)
		return (o->flags & (O_WRONLY | O_RDWR)) == 0 || creates(o);
	return creates(o) && (o->flags & O_DIRECTORY) != 0;
}

/* A new file is no pipe, and nobody has a lease on it. */
static bool
may_wait(const struct opening *o)
{
	return !exclusive(o) && (o->flags & TMPFILE) == 0;
}

static int
open_in(int dir, const char *name, const struct opening *o)
{
	struct open_how how = {
		.flags = o->flags | O_NOCTTY | O_CLOEXEC |
		    (may_wait(o) ? O_NONBLOCK : 0),
		.mode = o->mode,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int
give(struct request *rq, const struct opening *o, int fd)
{
	if (may_wait(o))
		fifo_settle(fd, (int)o->flags);
	rq->fd = fd;
	rq->fd_cloexec = (o->flags & O_CLOEXEC) != 0;
	return ANSWER_FD;
}

/* An open that would wait (a pipe without a reader, a lease). */
static bool
would_wait(const struct opening *o, int error)
{
	return (error == -ENXIO || error == -EAGAIN) &&
	    (o->flags & O_NONBLOCK) == 0;
}

/* ENXIO is also what a socket file and a device that is not there say. */
static int
wait_for(struct broker *b, struct request *rq, const struct opening *o,
    const struct place *p, int error)
{
	int fd = openat(p->dir, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return error;
	if (fstat(fd, &st) < 0 ||
	    !(S_ISFIFO(st.st_mode) ||
		(S_ISREG(st.st_mode) && error == -EAGAIN))) {
		(void)close(fd);
		return error;
	}
	rq->fd_cloexec = (o->flags & O_CLOEXEC) != 0;
	return fifo_wait(b, rq, fd, (int)(o->flags & ~(uint64_t)O_CLOEXEC));
}

/* The mounts of a launch open none; one that a host program adds while the run
 * lives could. Landlock refuses the run what the broker does not open. */
static bool
is_device(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode);
}

/* ------------------------------------------------ an existing thing */

/* The thing itself is pinned: judged by its real name, opened again. */
static int
open_object(struct broker *b, struct request *rq, const struct opening *o,
    struct object *obj)
{
	int fd;

	/* A pipe, a terminal, a place that Landlock grants. */
	if (!obj->guarded || is_device(obj->fd))
		return ANSWER_CONTINUE;
	if (exclusive(o))
		return -EEXIST;
	if (!obj->unlinked &&
	    judge_denies_object(b, obj, DFA_WRITE | JUDGE_FILE))
		return judge_denied(b, rq, VIOLATION_FILE_DATA);
	if (!notify_valid(b, rq->id))
		return ANSWER_GONE;
	fd = fifo_open(b, obj->fd, (int)o->flags);
	if (would_wait(o, fd)) {
		rq->fd_cloexec = (o->flags & O_CLOEXEC) != 0;
		return fifo_wait(b, rq, take_fd(&obj->fd),
		    (int)(o->flags & ~(uint64_t)O_CLOEXEC));
	}
	return fd < 0 ? fd : give(rq, o, fd);
}

/* ------------------------------------------------ a name */

/* What the caller hears of a name that is denied: what it would have heard
 * without the rule, if the call would have failed anyway. */
static int
open_denied(struct broker *b, struct request *rq, const struct opening *o,
    const struct place *p)
{
	struct stat st;
	bool exists = fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0;

	if (!exists && !creates(o))
		return -ENOENT;
	if (exists && exclusive(o))
		return -EEXIST;
	return judge_denied(b, rq,
	    exists ? VIOLATION_FILE_DATA : VIOLATION_FILE_CREATE);
}

/* place is in a guarded root and no link is to be followed in it. */
static int
open_name(struct broker *b, struct request *rq, const struct opening *o,
    const struct place *p)
{
	int fd;

	if (creates(o))
		target_take_umask(b, rq);
	if (!notify_valid(b, rq->id))
		return ANSWER_GONE;
	fd = open_in(p->dir, p->name, o);
	if (fd >= 0 && is_device(fd)) {
		(void)close(fd);
		return ANSWER_CONTINUE;
	}
	if (fd >= 0)
		return give(rq, o, fd);
	return would_wait(o, fd) ? wait_for(b, rq, o, p, fd) : fd;
}

static int
open_place(struct broker *b, struct request *rq, const struct opening *o,
    struct place *p, struct object *obj)
{
	bool follow = !exclusive(o) && (o->flags & O_NOFOLLOW) == 0;

	for (unsigned links = 0; links <= RESOLVE_LINKS_MAX; links++) {
		bool denied;
		int r;

		/* Of a directory: can only fail. */
		if (p->slash)
			return ANSWER_CONTINUE;
		denied =
		    p->guarded && judge_denies(b, p, DFA_WRITE | JUDGE_FILE);
		if (p->guarded && !denied) {
			r = open_name(b, rq, o, p);
			if (r != -ELOOP || !follow)
				return r;
		}
		r = follow ? resolve_link(b, rq, p, obj) : 0;
		if (r == RESOLVE_OBJECT)
			return open_object(b, rq, o, obj);
		if (r == RESOLVE_NEXT)
			continue;
		if (r != 0 || !p->guarded)
			return r != 0 ? r : ANSWER_CONTINUE;
		return denied ? open_denied(b, rq, o, p) : -ELOOP;
	}
	return p->guarded ? -ELOOP : ANSWER_CONTINUE;
}

/* It has no name yet: that is judged when it gets one. */
static int
tmpfile_in(struct broker *b, struct request *rq, const struct opening *o,
    int dir, bool guarded)
{
	int fd;

	if (!guarded)
		return ANSWER_CONTINUE;
	target_take_umask(b, rq);
	if (!notify_valid(b, rq->id))
		return ANSWER_GONE;
	fd = open_in(dir, ".", o);
	return fd < 0 ? fd : give(rq, o, fd);
}

static int
open_tmpfile(struct broker *b, struct request *rq, const struct opening *o,
    const char *path, int dirfd, struct place *p)
{
	int r = resolve_directory(b, rq, dirfd, path, p);

	return r != 0 ? r : tmpfile_in(b, rq, o, p->dir, p->guarded);
}

/* ------------------------------------------------ openat2's restrictions */

/*
 * openat2 with RESOLVE_*: the kernel applies them in a look at the thing, and
 * what it found is judged and opened again.
 */
static int
open_restricted(struct broker *b, struct request *rq, const struct opening *o,
    const char *path, int base, struct place *p, struct object *obj)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC |
		    (o->flags & (O_NOFOLLOW | O_DIRECTORY)),
		.resolve = o->resolve | RESOLVE_NO_MAGICLINKS,
	};
	char parent[PATH_MAX];
	const char *name = strrchr(path, '/');

	if (exclusive(o))
		how.flags |= O_NOFOLLOW;
	obj->fd = (int)syscall(SYS_openat2, base, path, &how, sizeof(how));
	if (obj->fd >= 0 && resolve_object(b, obj) != 0)
		return ANSWER_CONTINUE;
	if (obj->fd >= 0)
		return (o->flags & TMPFILE) != 0 ?
		    tmpfile_in(b, rq, o, obj->fd, obj->guarded) :
		    open_object(b, rq, o, obj);
	if (errno != ENOENT || !creates(o))
		return ANSWER_CONTINUE;
	name = name == NULL ? path : name + 1;
	if (*name == '\0' || strlen(name) > NAME_MAX)
		return ANSWER_CONTINUE;
	memcpy(parent, path, (size_t)(name - path));
	parent[name - path] = '\0';
	how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	p->dir = (int)syscall(SYS_openat2, base,
	    parent[0] == '\0' ? "." : parent, &how, sizeof(how));
	if (p->dir < 0)
		return ANSWER_CONTINUE;
	p->dir_owned = true;
	if (resolve_here(b, p, name) != 0 || !p->guarded)
		return ANSWER_CONTINUE;
	/* A link that points nowhere is not followed: Landlock refuses. */
	if (readlinkat(p->dir, p->name, parent, sizeof(parent)) >= 0)
		return ANSWER_CONTINUE;
	if (judge_denies(b, p, DFA_WRITE | JUDGE_FILE))
		return open_denied(b, rq, o, p);
	return open_name(b, rq, o, p);
}

/* ------------------------------------------------ the calls */

/* Where a path that openat2 restricts begins: an absolute one at the root,
 * unless that is what is restricted. */
static int
restricted_base(struct broker *b, const struct request *rq, int dirfd,
    const struct opening *o, const char *path, struct target_base *ret)
{
	if (path[0] != '/' ||
	    (o->resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH)) != 0)
		return target_base(b, rq, dirfd, ret);
	*ret = (struct target_base){ b->root, false };
	return b->chrooted && !target_has_our_root(b, rq) ? -EXDEV : 0;
}

static int
open_with(struct broker *b, struct request *rq, const struct opening *o,
    const char *path, int dirfd, struct place *p, struct object *obj)
{
	struct target_base base = { -1, false };
	int r;

	if (o->resolve != 0) {
		r = ANSWER_CONTINUE;
		if (restricted_base(b, rq, dirfd, o, path, &base) == 0)
			r = open_restricted(b, rq, o, path, base.fd, p, obj);
		target_base_done(&base);
		return r;
	}
	if ((o->flags & TMPFILE) != 0)
		return open_tmpfile(b, rq, o, path, dirfd, p);
	r = resolve_parent(b, rq, dirfd, path, p);
	return r != 0 ? r : open_place(b, rq, o, p, obj);
}

static int
do_open(struct broker *b, struct request *rq, const struct opening *o)
{
	static char path[PATH_MAX];
	static struct place place;
	static struct object object;
	int dir = rq->call->dir, r;
	int dirfd = dir < 0 ? AT_FDCWD : (int)rq->args[dir];

	if (!writes(o) ||
	    target_string(rq, rq->args[rq->call->path], path, sizeof(path)) < 0)
		return ANSWER_CONTINUE;
	place_init(&place);
	object.fd = -1;
	r = open_with(b, rq, o, path, dirfd, &place, &object);
	/* The kernel looks at the flags first, and says EINVAL. */
	if (r < 0 && is_odd(o))
		r = ANSWER_CONTINUE;
	place_done(&place);
	object_done(&object);
	return r;
}

/* As the kernel does: unknown flags are forgotten, large files permitted. */
static int
open_flags(struct broker *b, struct request *rq, uint64_t flags, uint64_t mode)
{
	struct opening o = { (flags & VALID_FLAGS) | LARGEFILE, mode & ALLPERMS,
		0 };

	if ((o.flags & ((unsigned)O_CREAT | TMPFILE)) == 0)
		o.mode = 0;
	return do_open(b, rq, &o);
}

int
call_open(struct broker *b, struct request *rq)
{
	int flags = rq->call->extra;

	return open_flags(b, rq, (uint32_t)rq->args[flags],
	    (uint32_t)rq->args[flags + 1]);
}

int
call_creat(struct broker *b, struct request *rq)
{
	return open_flags(b, rq, O_CREAT | O_WRONLY | O_TRUNC,
	    (uint32_t)rq->args[rq->call->extra]);
}

/* The struct may have grown: what this program does not know must be zero. */
static int
read_how(struct request *rq, struct opening *ret)
{
	static uint8_t raw[HOW_SIZE_MAX];
	uint64_t size = rq->args[rq->call->extra + 1];
	struct open_how how;

	if (size < sizeof(how) || size > sizeof(raw) ||
	    target_bytes(rq, rq->args[rq->call->extra], raw, (size_t)size) < 0)
		return -EINVAL;
	for (size_t i = sizeof(how); i < size; i++)
		if (raw[i] != 0)
			return -E2BIG;
	memcpy(&how, raw, sizeof(how));
	*ret = (struct opening){ how.flags, how.mode, how.resolve };
	return 0;
}

int
call_openat2(struct broker *b, struct request *rq)
{
	struct opening o;

	/* The kernel finds the same and says it. */
	if (read_how(rq, &o) < 0 || !writes(&o))
		return ANSWER_CONTINUE;
	if ((o.flags & ~(uint64_t)VALID_FLAGS) != 0 ||
	    (o.mode & ~(uint64_t)ALLPERMS) != 0)
		return ANSWER_CONTINUE;
	/* From the cache alone: permitted to fail at any time. */
	if ((o.resolve & RESOLVE_CACHED) != 0)
		return -EAGAIN;
	return do_open(b, rq, &o);
}
