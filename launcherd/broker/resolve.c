/*
 * See resolve.h. The quick way is one openat2() that follows no magic link,
 * and getcwd() in what it found. What /proc/self means differs between the
 * broker and its caller, so a path that the quick way cannot do, or that ends
 * in the broker's own /proc directory, is walked component by component.
 */
#include "launcherd/broker/resolve.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/size.h"
#include "launcherd/broker/broker.h"
#include "launcherd/broker/judge.h"

#define DELETED " (deleted)"
#define PROC "/proc"
#define WALK_END 32 /* no enum answer */

/* A walk in progress: `rest` is what is still to do below dir. */
struct walk {
	struct broker *b;
	struct request *rq;
	int dir;
	unsigned links;
	char rest[2 * PATH_MAX];
};

void
place_init(struct place *p)
{
	p->dir = -1;
	p->dir_owned = false;
	p->slash = false;
	p->guarded = false;
	p->len = p->name_len = 0;
	p->path[0] = p->name[0] = '\0';
}

void
place_done(struct place *p)
{
	if (p->dir_owned && p->dir >= 0)
		(void)close(p->dir);
	p->dir = -1;
	p->dir_owned = false;
}

void
object_done(struct object *o)
{
	if (o->fd >= 0)
		(void)close(o->fd);
	o->fd = -1;
}

static int
open_at(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_PATH | O_CLOEXEC,
		.resolve = resolve };
	long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* Goes from the working directory to the one above; the name of the former in
 * it. False: it has none. */
static bool
step_up(char name[static NAME_MAX + 1])
{
	int parent = open("..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = parent < 0 ? NULL : fdopendir(parent);
	struct stat here, other;
	struct dirent *row;
	bool found = false;

	if (dir == NULL && parent >= 0)
		(void)close(parent);
	if (dir == NULL)
		return false;
	if (fstatat(AT_FDCWD, ".", &here, 0) < 0)
		here.st_ino = 0;
	while (!found && (row = readdir(dir)) != NULL) {
		if (row->d_ino != here.st_ino ||
		    fstatat(parent, row->d_name, &other, AT_SYMLINK_NOFOLLOW) <
			0 ||
		    other.st_ino != here.st_ino || other.st_dev != here.st_dev)
			continue;
		(void)snprintf(name, NAME_MAX + 1, "%s", row->d_name);
		found = fchdir(parent) == 0;
	}
	(void)closedir(dir);
	return found;
}

/*
 * The kernel gives no name of more than PATH_MAX bytes. So it is asked for that
 * of the nearest ancestor that has one, and each name below is looked up by its
 * number. What the run may not list gets none.
 */
static size_t
name_long(char *ret, size_t size)
{
	static char below[PLACE_PATH_MAX];
	size_t at = sizeof(below) - 1;
	char name[NAME_MAX + 1];
	long n;

	do {
		size_t len;

		if (!step_up(name))
			return 0;
		len = strlen(name);
		if (at < len + 1)
			return 0;
		at -= len;
		memcpy(below + at, name, len);
		below[--at] = '/';
		n = syscall(SYS_getcwd, ret, size);
	} while (n < 0 && errno == ENAMETOOLONG);
	if (n < 2 || ret[0] != '/' || (size_t)n + sizeof(below) - 1 - at > size)
		return 0;
	memcpy(ret + n - 1, below + at, sizeof(below) - at);
	return (size_t)n - 1 + sizeof(below) - 1 - at;
}

/* The path of a directory; 0 when it has none any more. It becomes the
 * broker's working directory, which nothing else depends on. */
static size_t
name_directory(int dir, char *ret, size_t size)
{
	long n;

	if (fchdir(dir) < 0)
		return 0;
	n = syscall(SYS_getcwd, ret, size);
	if (n < 0 && errno == ENAMETOOLONG)
		return name_long(ret, size);
	return n < 2 || ret[0] != '/' ? 0 : (size_t)n - 1;
}

/* path is /proc/<number>, or below it. */
static bool
is_process(const char *path, pid_t number)
{
	char text[32];
	int n = snprintf(text, sizeof(text), PROC "/%d", number);

	return number > 0 && strncmp(path, text, (size_t)n) == 0 &&
	    (path[n] == '\0' || path[n] == '/');
}

/* ------------------------------------------------ the slow way */

static void
go_to(struct walk *w, int fd)
{
	(void)close(w->dir);
	w->dir = fd;
}

/* What is left begins at the root: a path or a link that does. */
static int
walk_root(struct walk *w)
{
	int fd;

	if (w->rest[0] != '/')
		return 0;
	fd = fcntl(w->b->root, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	go_to(w, fd);
	return 0;
}

/* Puts a link's text before what is left. */
static int
push(struct walk *w, const char *text)
{
	size_t len = strlen(text), left = strlen(w->rest);

	if (++w->links > RESOLVE_LINKS_MAX)
		return -ELOOP;
	if (len == 0)
		return -ENOENT;
	if (len + 1 + left >= sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + len + 1, w->rest, left + 1);
	memcpy(w->rest, text, len);
	w->rest[len] = '/';
	return walk_root(w);
}

/*
 * Kernel interfaces that a host program mounts in a guarded root while the run
 * lives; launcherd refuses those that are there before. The broker may trace
 * processes and the run may not: it acts on none of them, and Landlock refuses.
 */
static bool
is_of_kernel(int fd)
{
	static const unsigned long magics[] = {
#define PSEUDO_FS(magic, name) magic,
#include "launcherd/pseudo_fs.def"
#undef PSEUDO_FS
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(magics); i++)
		if ((unsigned long)fs.f_type == magics[i] &&
		    magics[i] != TMPFS_MAGIC)
			return true;
	return false;
}

/* fd's path lies in a guarded root, and the broker may act on it. */
static bool
guards(const struct broker *b, int fd, const char *path, size_t len)
{
	return judge_guards(b, path, len) && !is_of_kernel(fd);
}

static bool
on_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* What "self" and "thread-self" in /proc itself are to the caller. */
static bool
own_link(struct broker *b, struct request *rq, const char *dir,
    const char *name, char *ret, size_t size)
{
	pid_t tgid;

	if (strcmp(dir, PROC) != 0)
		return false;
	tgid = target_tgid(b, rq);
	if (strcmp(name, "self") == 0)
		(void)snprintf(ret, size, "%d", tgid);
	else if (strcmp(name, "thread-self") == 0)
		(void)snprintf(ret, size, "%d/task/%d", tgid, rq->tid);
	else
		return false;
	return true;
}

/* Below the caller's own /proc directory. */
static bool
is_own(struct broker *b, struct request *rq, const char *path)
{
	return is_process(path, target_tgid(b, rq)) ||
	    is_process(path, rq->tid);
}

/* The component `name`, a link, whose own descriptor is fd. */
static int
walk_link(struct walk *w, int fd, const char *name)
{
	char dir[PATH_MAX], text[PATH_MAX];
	ssize_t n;

	if (on_proc(fd)) {
		if (name_directory(w->dir, dir, sizeof(dir)) == 0)
			return ANSWER_CONTINUE;
		if (own_link(w->b, w->rq, dir, name, text, sizeof(text)))
			return push(w, text);
		if (strcmp(dir, PROC) != 0) {
			int to;

			if (!is_own(w->b, w->rq, dir))
				return ANSWER_CONTINUE;
			if (++w->links > RESOLVE_LINKS_MAX)
				return -ELOOP;
			to = open_at(w->dir, name, O_DIRECTORY, 0);
			if (to < 0)
				return to;
			go_to(w, to);
			return 0;
		}
	}
	n = readlinkat(fd, "", text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return push(w, text);
}

static int
walk_component(struct walk *w, const char *name)
{
	autoclose int fd = open_at(w->dir, name, O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return walk_link(w, fd, name);
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	go_to(w, take_fd(&fd));
	return 0;
}

/* One step: WALK_END when nothing is left. */
static int
walk_step(struct walk *w)
{
	char name[NAME_MAX + 1];
	size_t slashes = strspn(w->rest, "/"), len;

	if (slashes > 0) {
		memmove(w->rest, w->rest + slashes,
		    strlen(w->rest + slashes) + 1);
		return 0;
	}
	len = strcspn(w->rest, "/");
	if (len == 0)
		return WALK_END;
	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, w->rest, len);
	name[len] = '\0';
	memmove(w->rest, w->rest + len, strlen(w->rest + len) + 1);
	return walk_component(w, name);
}

/* A failure is the caller's if it happens in a guarded root; else the kernel
 * says it better. */
static int
walk_failed(struct walk *w, int error)
{
	static char dir[PLACE_PATH_MAX];
	size_t len = name_directory(w->dir, dir, sizeof(dir));

	if (len > 0 && judge_guards(w->b, dir, len))
		return error;
	return ANSWER_CONTINUE;
}

/* The directory `path` in *ret_fd, or as resolve_parent(). */
static int
walk_directory(struct broker *b, struct request *rq, int base, const char *path,
    int *ret_fd)
{
	static struct walk w;
	int r;

	w.b = b;
	w.rq = rq;
	w.links = 0;
	w.dir = fcntl(base, F_DUPFD_CLOEXEC, 0);
	if (w.dir < 0)
		return ANSWER_CONTINUE;
	(void)snprintf(w.rest, sizeof(w.rest), "%s", path);
	r = walk_root(&w);
	while (r == 0)
		r = walk_step(&w);
	if (r == WALK_END) {
		*ret_fd = w.dir;
		return 0;
	}
	if (r < 0)
		r = walk_failed(&w, r);
	(void)close(w.dir);
	return r;
}

/* ------------------------------------------------ the quick way */

static int
pin_directory(struct broker *b, struct request *rq, int base, const char *path,
    struct place *ret)
{
	int fd = open_at(base, path, O_DIRECTORY, RESOLVE_NO_MAGICLINKS);
	int r;

	if (fd >= 0) {
		ret->dir = fd;
		ret->dir_owned = true;
		ret->len = name_directory(fd, ret->path, sizeof(ret->path));
		if (ret->len == 0)
			return ANSWER_CONTINUE;
		if (!is_process(ret->path, b->self))
			return 0;
		place_done(ret);
	}
	r = walk_directory(b, rq, base, path, &fd);
	if (r != 0)
		return r;
	ret->dir = fd;
	ret->dir_owned = true;
	ret->len = name_directory(fd, ret->path, sizeof(ret->path));
	return ret->len == 0 ? ANSWER_CONTINUE : 0;
}

/* Cuts the last component off. False when it is none that could be made,
 * removed or opened for writing: empty, ".", "..", "/", too long. */
static bool
split(const char *path, char *parent, struct place *ret)
{
	size_t len = strlen(path), start;

	while (len > 0 && path[len - 1] == '/')
		len--;
	ret->slash = path[len] == '/';
	start = len;
	while (start > 0 && path[start - 1] != '/')
		start--;
	ret->name_len = len - start;
	if (ret->name_len == 0 || ret->name_len > NAME_MAX)
		return false;
	memcpy(ret->name, path + start, ret->name_len);
	ret->name[ret->name_len] = '\0';
	if (strcmp(ret->name, ".") == 0 || strcmp(ret->name, "..") == 0)
		return false;
	if (ret->slash)
		memcpy(ret->name + ret->name_len, "/", 2);
	memcpy(parent, path, start);
	parent[start] = '\0';
	return true;
}

/* base is borrowed and may become ret->dir. */
static int
parent_below(struct broker *b, struct request *rq, int base, const char *path,
    struct place *ret)
{
	static char parent[PATH_MAX];
	int r;

	if (!split(path, parent, ret))
		return ANSWER_CONTINUE;
	if (parent[0] == '\0') {
		ret->dir = base;
		ret->dir_owned = false;
		ret->len = name_directory(base, ret->path, sizeof(ret->path));
		if (ret->len == 0)
			return ANSWER_CONTINUE;
	} else {
		r = pin_directory(b, rq, base, parent, ret);
		if (r != 0)
			return r;
	}
	ret->guarded = guards(b, ret->dir, ret->path, ret->len);
	return 0;
}

/* Where the path begins. */
static int
begin(struct broker *b, struct request *rq, int dirfd, const char *path,
    struct target_base *ret)
{
	if (path[0] != '/')
		return target_base(b, rq, dirfd, ret) < 0 ? ANSWER_CONTINUE : 0;
	if (b->chrooted && !target_has_our_root(b, rq))
		return ANSWER_CONTINUE;
	*ret = (struct target_base){ b->root, false };
	return 0;
}

int
resolve_parent(struct broker *b, struct request *rq, int dirfd,
    const char *path, struct place *ret)
{
	struct target_base base;
	int r = begin(b, rq, dirfd, path, &base);

	if (r != 0)
		return r;
	r = parent_below(b, rq, base.fd, path, ret);
	if (r == 0 && ret->dir == base.fd)
		ret->dir_owned = base.owned;
	else
		target_base_done(&base);
	return r;
}

int
resolve_argument(struct broker *b, struct request *rq, int dir_arg,
    int path_arg, struct place *ret)
{
	static char path[PATH_MAX];
	int dirfd = dir_arg < 0 ? AT_FDCWD : (int)rq->args[dir_arg];

	/* The kernel says EFAULT or ENAMETOOLONG itself. */
	if (target_string(rq, rq->args[path_arg], path, sizeof(path)) < 0)
		return ANSWER_CONTINUE;
	return resolve_parent(b, rq, dirfd, path, ret);
}

int
resolve_here(struct broker *b, struct place *ret, const char *name)
{
	char parent[PATH_MAX];

	if (!split(name, parent, ret) || parent[0] != '\0')
		return ANSWER_CONTINUE;
	ret->len = name_directory(ret->dir, ret->path, sizeof(ret->path));
	if (ret->len == 0)
		return ANSWER_CONTINUE;
	ret->guarded = guards(b, ret->dir, ret->path, ret->len);
	return 0;
}

int
resolve_directory(struct broker *b, struct request *rq, int dirfd,
    const char *path, struct place *ret)
{
	struct target_base base;
	int r;

	if (path[0] == '\0')
		return ANSWER_CONTINUE;
	r = begin(b, rq, dirfd, path, &base);
	if (r != 0)
		return r;
	r = pin_directory(b, rq, base.fd, path, ret);
	target_base_done(&base);
	if (r == 0)
		ret->guarded = guards(b, ret->dir, ret->path, ret->len);
	return r;
}

/* ------------------------------------------------ links in the last place */

int
resolve_named(const struct broker *b, const struct place *p, struct object *ret)
{
	struct stat st;

	ret->fd = openat(p->dir, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (ret->fd < 0 || fstat(ret->fd, &st) < 0)
		return -errno;
	memcpy(ret->path, p->path, p->len);
	ret->path[p->len] = '/';
	memcpy(ret->path + p->len + 1, p->name, p->name_len);
	ret->len = p->len + 1 + p->name_len;
	ret->path[ret->len] = '\0';
	ret->unlinked = st.st_nlink == 0;
	ret->guarded = guards(b, ret->fd, ret->path, ret->len);
	return 0;
}

int
resolve_object(const struct broker *b, struct object *ret)
{
	char name[16];
	struct stat st, named;
	ssize_t n;

	(void)snprintf(name, sizeof(name), "%d", ret->fd);
	n = readlinkat(b->self_fd, name, ret->path, sizeof(ret->path) - 1);
	if (n <= 0 || ret->path[0] != '/' || fstat(ret->fd, &st) < 0)
		return ANSWER_CONTINUE;
	ret->path[n] = '\0';
	ret->len = (size_t)n;
	ret->unlinked = st.st_nlink == 0;
	/* Of a hard link that was removed while others are left: the name that
	 * it was opened by counts. A file that is really called so is judged by
	 * the shorter name as well as it would be by its own: the rest of a
	 * name that ends in this cannot be matched by less. */
	if (ret->len > strlen(DELETED) &&
	    strcmp(ret->path + ret->len - strlen(DELETED), DELETED) == 0 &&
	    (fstatat(AT_FDCWD, ret->path, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		named.st_dev != st.st_dev || named.st_ino != st.st_ino))
		ret->path[ret->len -= strlen(DELETED)] = '\0';
	ret->guarded = guards(b, ret->fd, ret->path, ret->len);
	return 0;
}

/* A link in a /proc directory: only the caller's own are followed. */
static int
proc_link(struct broker *b, struct request *rq, struct place *place,
    struct object *ret)
{
	if (!is_own(b, rq, place->path))
		return ANSWER_CONTINUE;
	ret->fd = open_at(place->dir, place->name, 0, 0);
	if (ret->fd < 0)
		return ANSWER_CONTINUE;
	if (resolve_object(b, ret) != 0) {
		object_done(ret);
		return ANSWER_CONTINUE;
	}
	return RESOLVE_OBJECT;
}

int
resolve_link(struct broker *b, struct request *rq, struct place *place,
    struct object *ret)
{
	char text[PATH_MAX];
	struct place next;
	struct target_base base = { place->dir, false };
	ssize_t n = readlinkat(place->dir, place->name, text, sizeof(text) - 1);
	int r;

	if (n < 0)
		return 0;
	text[n] = '\0';
	if (strncmp(place->path, PROC "/", strlen(PROC "/")) == 0)
		return proc_link(b, rq, place, ret);
	/* /proc/self and the like are directories in the end. */
	if (strcmp(place->path, PROC) == 0)
		return ANSWER_CONTINUE;
	place_init(&next);
	if (text[0] == '/') {
		r = begin(b, rq, AT_FDCWD, text, &base);
		if (r != 0)
			return r;
	}
	r = parent_below(b, rq, base.fd, text, &next);
	if (r != 0) {
		place_done(&next);
		return r;
	}
	if (next.dir == place->dir)
		next.dir_owned = place->dir_owned;
	else
		place_done(place);
	*place = next;
	return RESOLVE_NEXT;
}

int
resolve_last(struct broker *b, struct request *rq, struct place *place,
    struct object *ret)
{
	for (unsigned links = 0; links <= RESOLVE_LINKS_MAX; links++) {
		int r = resolve_link(b, rq, place, ret);

		if (r != RESOLVE_NEXT)
			return r;
		/* "file/" is wrong for what is no directory. */
		if (place->slash)
			return ANSWER_CONTINUE;
	}
	return place->guarded ? -ELOOP : ANSWER_CONTINUE;
}
