/*
 * See repository.h. Nothing is followed out of the directory: a link is told
 * as a link, since git would follow it. No git is started.
 */
#include "launcherd/lookup/repository.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "common/size.h"
#include "launcherd/lookup/git_config.h"
#include "launcherd/lookup/resolve.h"
#include "protocol/cause.h"
#include "protocol/message.h"

#define CONFIG_BYTES (256u << 10)
#define ENTRIES_MAX 4096 /* of directories, in all */
#define DEPTH_MAX 8 /* of modules in modules */
#define SAMPLE ".sample"

/* What makes git run a program, or read another configuration that may: git
 * 2.39, and what its documentation of 2.50 adds. key NULL: any. */
static const struct {
	const char *section;
	const char *key;
} running[] = {
	{ "alias", NULL },
	{ "browser", NULL },
	{ "core", "alternaterefscommand" },
	{ "core", "askpass" },
	{ "core", "editor" },
	{ "core", "fsmonitor" },
	{ "core", "gitproxy" },
	{ "core", "hookspath" },
	{ "core", "pager" },
	{ "core", "sshcommand" },
	{ "core", "worktree" },
	{ "credential", "helper" },
	{ "diff", "command" },
	{ "diff", "external" },
	{ "diff", "textconv" },
	{ "difftool", NULL },
	{ "extensions", "worktreeconfig" },
	{ "filter", NULL },
	{ "gpg", "defaultkeycommand" },
	{ "gpg", "program" },
	{ "guitool", NULL },
	{ "hook", NULL },
	{ "imap", "tunnel" },
	{ "include", "path" },
	{ "includeif", "path" },
	{ "init", "templatedir" },
	{ "instaweb", NULL },
	{ "interactive", "difffilter" },
	{ "lfs", NULL },
	{ "man", NULL },
	{ "merge", "driver" },
	{ "mergetool", NULL },
	{ "pager", NULL },
	{ "protocol", NULL },
	{ "remote", "proxy" },
	{ "remote", "receivepack" },
	{ "remote", "uploadpack" },
	{ "remote", "vcs" },
	{ "sendemail", NULL },
	{ "sequence", "editor" },
	{ "submodule", "update" },
	{ "svn", NULL },
	{ "tar", "command" },
	{ "trailer", NULL },
	{ "uploadpack", "packobjectshook" },
	{ "web", "browser" },
};

struct look {
	struct msg_inspect_answer *ret;
	size_t used; /* of ret->programs */
	size_t entries;
	bool full;
	bool broken; /* something could not be read */
	const char *where; /* "" or "modules/x/" */
};

static bool
is_told(const char *list, const char *name, size_t len)
{
	for (const char *at = list; (at = strstr(at, name)) != NULL; at++)
		if ((at == list || at[-1] == ' ') &&
		    (at[len] == '\0' || at[len] == ','))
			return true;
	return false;
}

/* Adds a name once; text of the run, cleaned where it is shown. */
static void
tell(struct look *k, const char *a, const char *b, const char *c)
{
	static const char more[] = ", and more";
	char name[sizeof(k->ret->programs)];
	char *list = k->ret->programs;
	size_t len =
	    (size_t)snprintf(name, sizeof(name), "%s%s%s%s", k->where, a, b, c);
	const char *between = k->used == 0 ? "" : ", ";

	if (k->full || (len < sizeof(name) && is_told(list, name, len)))
		return;
	if (k->used + strlen(between) + len + sizeof(more) >
	    sizeof(k->ret->programs)) {
		(void)stpcpy(list + k->used, more);
		k->full = true;
		return;
	}
	k->used =
	    (size_t)(stpcpy(stpcpy(list + k->used, between), name) - list);
}

/* ------------------------------------------------ configuration */

/* A URL of these is a command line, or names one. */
static bool
is_running_url(const struct git_config_entry *e)
{
	return (strcmp(e->key, "url") == 0 || strcmp(e->key, "pushurl") == 0) &&
	    (e->value == NULL || strstr(e->value, "::") != NULL ||
		e->value[0] == '-');
}

static int
on_entry(void *arg, const struct git_config_entry *e)
{
	struct look *k = arg;

	if (is_running_url(e))
		tell(k, e->section, ".", e->key);
	for (size_t i = 0; i < ARRAY_LEN(running); i++)
		if (strcmp(e->section, running[i].section) == 0 &&
		    (running[i].key == NULL ||
			strcmp(e->key, running[i].key) == 0))
			tell(k, e->section, ".", e->key);
	return 0;
}

/* Length, or -errno; -EFBIG. */
static ssize_t
read_file(int dir, const char *name, char *buf, size_t size)
{
	autoclose int fd =
	    path_open_beneath(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? fd : lookup_read(fd, buf, size);
}

static void
look_config(struct look *k, int dir, const char *name)
{
	autofree char *text = malloc(CONFIG_BYTES);
	ssize_t len =
	    text == NULL ? -ENOMEM : read_file(dir, name, text, CONFIG_BYTES);

	if (len == -ENOENT)
		return;
	if (len == -ELOOP)
		tell(k, name, " (a link)", "");
	else if (len < 0 ||
	    git_config_parse(text, (size_t)len, on_entry, k) != 0)
		k->broken = true;
}

/* ------------------------------------------------ hooks */

typedef void entry_fn(struct look *, int dir, const char *name, unsigned depth);

/* Calls fn for each name in dir/name. */
static void
each(struct look *k, int dir, const char *name, entry_fn *fn, unsigned depth)
{
	int fd =
	    path_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	struct dirent *e;
	DIR *d;

	if (fd < 0) {
		if (fd == -ELOOP || fd == -ENOTDIR)
			tell(k, name, " (a link)", "");
		else if (fd != -ENOENT)
			k->broken = true;
		return;
	}
	d = fdopendir(fd);
	if (d == NULL) {
		(void)close(fd);
		k->broken = true;
		return;
	}
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (++k->entries > ENTRIES_MAX) {
			k->broken = true;
			break;
		}
		fn(k, fd, e->d_name, depth);
	}
	(void)closedir(d);
}

static void
look_hook(struct look *k, int dir, const char *name, unsigned depth)
{
	size_t len = strlen(name), n = strlen(SAMPLE);
	struct stat st;

	(void)depth;
	if (len > n && strcmp(name + len - n, SAMPLE) == 0)
		return;
	/* Without the right to execute git does not run it. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISLNK(st.st_mode) && (st.st_mode & 0111) == 0))
		return;
	tell(k, "hooks/", name, "");
}

/* ------------------------------------------------ a git directory */

static void look_dir(struct look *, int dir, unsigned depth);

/* modules/NAME, whose name may have slashes: what has a HEAD is one. */
static void
look_module(struct look *k, int parent, const char *name, unsigned depth)
{
	autoclose int dir =
	    path_open_beneath(parent, name, O_PATH | O_DIRECTORY);
	const char *before = k->where;
	char where[256];
	struct stat st;

	if (dir == -ELOOP)
		tell(k, "modules/", name, " (a link)");
	if (depth == DEPTH_MAX)
		k->broken = true;
	if (dir < 0 || depth == DEPTH_MAX)
		return;
	(void)snprintf(where, sizeof(where), "%smodules/%s/", before, name);
	k->where = where;
	if (fstatat(dir, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	    fstatat(dir, "config", &st, AT_SYMLINK_NOFOLLOW) == 0)
		look_dir(k, dir, depth + 1);
	else
		each(k, dir, ".", look_module, depth + 1);
	k->where = before;
}

static void
look_worktree(struct look *k, int parent, const char *name, unsigned depth)
{
	autoclose int dir =
	    path_open_beneath(parent, name, O_PATH | O_DIRECTORY);

	(void)depth;
	if (dir >= 0)
		look_config(k, dir, "config.worktree");
}

static void
look_dir(struct look *k, int dir, unsigned depth)
{
	struct stat st;

	look_config(k, dir, "config");
	look_config(k, dir, "config.worktree");
	/* It is another directory whose configuration and hooks git takes. */
	if (fstatat(dir, "commondir", &st, AT_SYMLINK_NOFOLLOW) == 0)
		tell(k, "commondir", "", "");
	each(k, dir, "hooks", look_hook, depth);
	each(k, dir, "worktrees", look_worktree, depth);
	each(k, dir, "modules", look_module, depth);
}

void
repository_look(const char *path, uint64_t dev, uint64_t ino,
    struct msg_inspect_answer *ret)
{
	autoclose int dir = path_open(path, O_PATH | O_DIRECTORY);
	struct look k = { .ret = ret, .where = "" };
	struct stat st;

	memset(ret, 0, sizeof(*ret));
	ret->state = REPOSITORY_GONE;
	if (dir < 0 || fstat(dir, &st) < 0 || st.st_dev != dev ||
	    st.st_ino != ino)
		return;
	look_dir(&k, dir, 0);
	ret->state = k.broken ? REPOSITORY_UNREADABLE : REPOSITORY_FOUND;
}
