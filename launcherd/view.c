/*
 * launcherd: the prepared part of the view. What is copied belongs to the
 * host's administrator; counts, depth and sizes are bounded all the same,
 * since a mistake there must not fill the runtime directory.
 */
#include "launcherd/view.h"

#include <sys/inotify.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/size.h"

#define VIEW_DIR "view"
#define SCRATCH_DIR "scratch"
#define DEPTH_MAX 8
#define ENTRIES_MAX 256
#define FILES_MAX 20000
#define BYTES_MAX (64u << 20)
#define WATCH_MASK \
	(IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | \
	    IN_CLOSE_WRITE | IN_ATTRIB)

static const char *const etc_names[] = {
#define ETC_ENTRY(name) name,
#include "launcherd/etc.def"
};

struct view {
	int dir_fd; /* the directory VIEW_DIR */
	int runtime_fd;
	int etc_fd; /* the host's /etc */
	int empty_fd;
	int denied_fd;
	int watch_fd;
	int etc_wd; /* watch of /etc itself */
	unsigned made; /* number of the last copy */
	bool stale;
	struct view_tree *tree;
};

/* What one copy may still use. */
struct budget {
	unsigned files;
	size_t bytes;
};

/* ---------------------------------------------------------------- removing */

static void remove_below(int dirfd, unsigned depth);

static void
remove_entry(int dirfd, const char *name, unsigned depth)
{
	int fd;

	if (unlinkat(dirfd, name, 0) == 0)
		return;
	fd = openat(dirfd, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	remove_below(fd, depth + 1);
	(void)close(fd);
	(void)unlinkat(dirfd, name, AT_REMOVEDIR);
}

/* Only ever called on our own directory; links in it are not followed. */
static void
remove_below(int dirfd, unsigned depth)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (dir == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	while (depth <= DEPTH_MAX + 2 && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			remove_entry(dirfd, entry->d_name, depth);
	(void)closedir(dir);
}

/* ---------------------------------------------------------------- copying */

static int copy_dir(struct view *, int from, int to, unsigned depth,
    const char *where, struct budget *);

static int
copy_bytes(int in, int out, struct budget *budget)
{
	char buf[16384];
	ssize_t n;

	while ((n = read(in, buf, sizeof(buf))) > 0) {
		if (budget->bytes < (size_t)n)
			return -EFBIG;
		budget->bytes -= (size_t)n;
		if (write(out, buf, (size_t)n) != n)
			return -EIO;
	}
	return n < 0 ? -errno : 0;
}

/* A file that not everybody may read is left out: the run could not have read
 * it through a bind either, and no secret leaves its place. */
static int
copy_file(int from, const char *name, int to, const struct stat *st,
    struct budget *budget)
{
	autoclose int in = -1;
	autoclose int out = -1;
	struct stat now;

	if ((st->st_mode & S_IROTH) == 0)
		return 0;
	in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (in < 0 || fstat(in, &now) < 0 || !S_ISREG(now.st_mode) ||
	    (now.st_mode & S_IROTH) == 0)
		return 0;
	out = openat(to, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	if (fchmod(out, now.st_mode & 0555) < 0)
		return -errno;
	return copy_bytes(in, out, budget);
}

/*
 * The text of a relative link is made absolute: the copy lies elsewhere, so a
 * text that climbs out of it would lead astray. Works on the text alone;
 * `where` is the absolute directory of the link on the host.
 */
static bool
absolute_text(const char *where, const char *text, char *out, size_t size)
{
	size_t len = strlen(where);

	if (text[0] == '/')
		return snprintf(out, size, "%s", text) < (int)size;
	if (len >= size)
		return false;
	memcpy(out, where, len + 1);
	for (const char *p = text; *p != '\0';) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			char *slash = strrchr(out, '/');

			if (slash != NULL)
				*slash = '\0';
			len = strlen(out);
		} else if (n > 0 && !(n == 1 && p[0] == '.')) {
			if (len + n + 2 > size)
				return false;
			out[len++] = '/';
			memcpy(out + len, p, n);
			len += n;
			out[len] = '\0';
		}
		p += n;
		p += strspn(p, "/");
	}
	return out[0] != '\0';
}

static int
read_link(int dirfd, const char *name, const char *where, char *out,
    size_t size)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(dirfd, name, text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	if ((size_t)n >= sizeof(text) - 1)
		return -ENAMETOOLONG;
	text[n] = '\0';
	return absolute_text(where, text, out, size) ? 0 : -ENAMETOOLONG;
}

static int
copy_entry(struct view *view, int from, const char *name, int to,
    unsigned depth, const char *where, struct budget *budget)
{
	char text[PATH_MAX];
	struct stat st;
	int error;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone meanwhile */
	if (budget->files-- == 0)
		return -EFBIG;
	if (S_ISLNK(st.st_mode)) {
		error = read_link(from, name, where, text, sizeof(text));
		if (error < 0)
			return 0;
		return symlinkat(text, to, name) < 0 ? -errno : 0;
	}
	if (S_ISREG(st.st_mode))
		return copy_file(from, name, to, &st, budget);
	if (S_ISDIR(st.st_mode) && (st.st_mode & S_IXOTH) != 0 &&
	    depth < DEPTH_MAX) {
		autoclose int in = openat(from, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		autoclose int out = -1;

		if (in < 0)
			return 0;
		if (mkdirat(to, name, 0755) < 0)
			return -errno;
		out = openat(to, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (out < 0 || fchmod(out, 0755) < 0 ||
		    snprintf(text, sizeof(text), "%s/%s", where, name) >=
			(int)sizeof(text))
			return -EIO;
		return copy_dir(view, in, out, depth + 1, text, budget);
	}
	return 0;
}

static int
copy_dir(struct view *view, int from, int to, unsigned depth, const char *where,
    struct budget *budget)
{
	int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int error = 0;

	if (dir == NULL) {
		error = -errno;
		if (fd >= 0)
			(void)close(fd);
		return error;
	}
	(void)inotify_add_watch(view->watch_fd, where, WATCH_MASK);
	while (error == 0 && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			error = copy_entry(view, from, entry->d_name, to, depth,
			    where, budget);
	(void)closedir(dir);
	return error;
}

/* ---------------------------------------------------------------- a tree */

static void
tree_free(struct view *view, struct view_tree *tree)
{
	char name[32];

	if (tree == NULL)
		return;
	(void)snprintf(name, sizeof(name), "etc.%u", tree->number);
	if (tree->fd >= 0)
		(void)close(tree->fd);
	remove_entry(view->dir_fd, name, 0);
	for (size_t i = 0; i < tree->nentries; i++) {
		free(tree->entries[i].path);
		free(tree->entries[i].link);
	}
	free(tree->entries);
	free(tree);
}

static int
add_entry(struct view_tree *tree, const char *path, const char *link)
{
	struct view_entry *e = &tree->entries[tree->nentries];

	if (tree->nentries == ENTRIES_MAX)
		return -EFBIG;
	e->path = strdup(path);
	e->link = strdup(link);
	tree->nentries++; /* tree_free takes half an entry too */
	return e->path == NULL || e->link == NULL ? -ENOMEM : 0;
}

/* One name of the host's /etc directory or of its subdirectory `sub`. */
static int
add_name(struct view *view, struct view_tree *tree, int from, int to,
    const char *sub, const char *name, struct budget *budget)
{
	char path[NAME_MAX * 2 + 10];
	char text[PATH_MAX];
	char where[NAME_MAX + 8];
	struct stat st;
	int error;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	(void)snprintf(where, sizeof(where), "/etc%s%s",
	    sub[0] != '\0' ? "/" : "", sub);
	(void)snprintf(path, sizeof(path), "%s/%s", where, name);
	if (S_ISLNK(st.st_mode)) {
		error = read_link(from, name, where, text, sizeof(text));
		return error < 0 ? 0 : add_entry(tree, path, text);
	}
	error = copy_entry(view, from, name, to, 0, where, budget);
	if (error < 0)
		return error;
	if (fstatat(to, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* not for everybody */
	(void)snprintf(text, sizeof(text), VIEW_ETC_INSIDE "%s",
	    path + strlen("/etc"));
	return add_entry(tree, path, text);
}

static int
add_pattern(struct view *view, struct view_tree *tree, const char *pattern,
    struct budget *budget)
{
	int fd = openat(view->etc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int error = 0;

	if (dir == NULL) {
		error = -errno;
		if (fd >= 0)
			(void)close(fd);
		return error;
	}
	while (error == 0 && (entry = readdir(dir)) != NULL)
		if (fnmatch(pattern, entry->d_name, FNM_PERIOD) == 0)
			error = add_name(view, tree, view->etc_fd, tree->fd, "",
			    entry->d_name, budget);
	(void)closedir(dir);
	return error;
}

/* "ssl/certs": the directory in between is made, not copied. */
static int
add_below(struct view *view, struct view_tree *tree, const char *sub,
    const char *name, struct budget *budget)
{
	autoclose int from = openat(view->etc_fd, sub,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	autoclose int to = -1;
	char where[NAME_MAX + 8];

	if (from < 0)
		return 0;
	if (mkdirat(tree->fd, sub, 0755) < 0 && errno != EEXIST)
		return -errno;
	to = openat(tree->fd, sub,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0 || fchmod(to, 0755) < 0)
		return -EIO;
	(void)snprintf(where, sizeof(where), "/etc/%s", sub);
	(void)inotify_add_watch(view->watch_fd, where, WATCH_MASK);
	return add_name(view, tree, from, to, sub, name, budget);
}

static int
add_entries(struct view *view, struct view_tree *tree)
{
	struct budget budget = { FILES_MAX, BYTES_MAX };
	int error = 0;

	for (size_t i = 0; i < ARRAY_LEN(etc_names) && error == 0; i++) {
		const char *slash = strchr(etc_names[i], '/');
		char sub[NAME_MAX + 1];

		if (strchr(etc_names[i], '*') != NULL) {
			error = add_pattern(view, tree, etc_names[i], &budget);
		} else if (slash != NULL) {
			(void)snprintf(sub, sizeof(sub), "%.*s",
			    (int)(slash - etc_names[i]), etc_names[i]);
			error = add_below(view, tree, sub, slash + 1, &budget);
		} else {
			error = add_name(view, tree, view->etc_fd, tree->fd, "",
			    etc_names[i], &budget);
		}
	}
	return error;
}

static struct view_tree *
tree_make(struct view *view)
{
	struct view_tree *tree = calloc(1, sizeof(*tree));
	char name[32];

	if (tree == NULL)
		return NULL;
	tree->fd = -1;
	tree->refs = 1;
	tree->number = ++view->made;
	tree->entries = calloc(ENTRIES_MAX, sizeof(*tree->entries));
	(void)snprintf(name, sizeof(name), "etc.%u", tree->number);
	if (tree->entries == NULL || mkdirat(view->dir_fd, name, 0755) < 0)
		goto fail;
	tree->fd =
	    openat(view->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree->fd < 0 || fchmod(tree->fd, 0755) < 0 ||
	    add_entries(view, tree) < 0)
		goto fail;
	return tree;
fail:
	tree_free(view, tree);
	return NULL;
}

struct view_tree *
view_tree_get(struct view *view)
{
	if (view->tree == NULL || view->stale) {
		struct view_tree *fresh;

		view->stale = false;
		fresh = tree_make(view);
		if (fresh == NULL) {
			view->stale = true;
			return NULL;
		}
		view_tree_put(view, view->tree);
		view->tree = fresh;
	}
	view->tree->refs++;
	return view->tree;
}

void
view_tree_put(struct view *view, struct view_tree *tree)
{
	if (tree != NULL && --tree->refs == 0)
		tree_free(view, tree);
}

/* ---------------------------------------------------------------- watching */

static bool
is_listed(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(etc_names); i++)
		if (fnmatch(etc_names[i], name, 0) == 0)
			return true;
	return false;
}

/* Changes in /etc itself count only for listed names: passwd and its locks
 * change often. */
void
view_changed(struct view *view)
{
	char buf[8192] __attribute__((aligned(8)));
	ssize_t n;

	while ((n = read(view->watch_fd, buf, sizeof(buf))) > 0) {
		for (char *p = buf; p < buf + n;) {
			const struct inotify_event *e =
			    (const struct inotify_event *)(const void *)p;

			if ((e->mask & IN_IGNORED) == 0 &&
			    (e->wd != view->etc_wd || e->len == 0 ||
				is_listed(e->name)))
				view->stale = true;
			p += sizeof(*e) + e->len;
		}
	}
}

/* ---------------------------------------------------------------- all */

int
view_watch_fd(const struct view *view)
{
	return view->watch_fd;
}

int
view_empty_fd(const struct view *view)
{
	return view->empty_fd;
}

int
view_denied_fd(const struct view *view)
{
	return view->denied_fd;
}

int
view_scratch(const struct view *view)
{
	autoclose int own = -1;
	autoclose int tree = -1;

	view_scratch_done(view);
	/* Nobody else gets through the first one. */
	if (mkdirat(view->dir_fd, SCRATCH_DIR, 0700) < 0)
		return -errno;
	own = openat(view->dir_fd, SCRATCH_DIR,
	    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (own < 0 || mkdirat(own, "tree", 0700) < 0)
		return -errno;
	tree = openat(own, "tree",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree < 0 || fchmod(tree, 0777) < 0)
		return -errno;
	return take_fd(&tree);
}

void
view_scratch_done(const struct view *view)
{
	remove_entry(view->dir_fd, SCRATCH_DIR, 0);
}

static int
make_fixed(struct view *view)
{
	autoclose int made = -1;

	if (mkdirat(view->dir_fd, "empty", 0555) < 0)
		return -errno;
	view->empty_fd =
	    openat(view->dir_fd, "empty", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (view->empty_fd < 0 || fchmodat(view->dir_fd, "empty", 0555, 0) < 0)
		return -errno;
	made = openat(view->dir_fd, "denied",
	    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	if (made < 0)
		return -errno;
	view->denied_fd = openat(view->dir_fd, "denied", O_PATH | O_CLOEXEC);
	return view->denied_fd < 0 ? -errno : 0;
}

static int
open_dirs(struct view *view, int runtime_fd)
{
	view->runtime_fd = fcntl(runtime_fd, F_DUPFD_CLOEXEC, 4);
	if (view->runtime_fd < 0)
		return -errno;
	remove_entry(view->runtime_fd, VIEW_DIR, 0);
	if (mkdirat(view->runtime_fd, VIEW_DIR, 0755) < 0)
		return -errno;
	view->dir_fd = openat(view->runtime_fd, VIEW_DIR,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (view->dir_fd < 0 || fchmod(view->dir_fd, 0755) < 0)
		return -errno;
	view->etc_fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	view->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (view->etc_fd < 0 || view->watch_fd < 0)
		return -errno;
	view->etc_wd = inotify_add_watch(view->watch_fd, "/etc", WATCH_MASK);
	return 0;
}

int
view_open(int runtime_fd, struct view **ret)
{
	struct view *view = calloc(1, sizeof(*view));
	int error;

	if (view == NULL)
		return -ENOMEM;
	view->runtime_fd = view->dir_fd = view->etc_fd = view->empty_fd = -1;
	view->denied_fd = view->watch_fd = -1;
	error = open_dirs(view, runtime_fd);
	if (error == 0)
		error = make_fixed(view);
	if (error < 0) {
		view_close(view);
		return error;
	}
	*ret = view;
	return 0;
}

void
view_close(struct view *view)
{
	int *fds[] = { &view->dir_fd, &view->etc_fd, &view->empty_fd,
		&view->denied_fd, &view->watch_fd, &view->runtime_fd };

	if (view == NULL)
		return;
	if (view->dir_fd >= 0)
		tree_free(view, view->tree);
	if (view->runtime_fd >= 0)
		remove_entry(view->runtime_fd, VIEW_DIR, 0);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close_all(fds[i], 1);
	free(view);
}
