/*
 * Git directories that are not called .git, and what git's configuration makes
 * git run or read besides (SPEC J8). A `.git` file and a configuration may be
 * an earlier run's work and name any path: what they name is looked at, told,
 * and counts where it lies in the run's view, which is control's to say. No
 * git is started: a configuration can make it run programs.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "common/size.h"
#include "launcherd/lookup/git_config.h"
#include "launcherd/lookup/scan_private.h"

#define GITFILE_MARK "gitdir: "

/* What one configuration with its includes says. */
struct settings {
	struct scan *s;
	size_t depth;
	const char *file; /* the one being read */
	size_t nhooks;
	const char *hooks[SCAN_HOOKS_MAX];
	const char *worktree; /* core.worktree, or NULL */
};

static void read_config(struct settings *set, const char *path);

static void
stopped(struct scan *s, uint64_t why)
{
	s->results->stopped |= why;
}

/* `dir` + `name`, or an absolute `name`; false: too long. */
static bool
join(const char *dir, const char *name, char ret[SCAN_PATH_MAX + 1])
{
	int n = *name == '/' ?
	    snprintf(ret, SCAN_PATH_MAX + 1, "%s", name) :
	    snprintf(ret, SCAN_PATH_MAX + 1, "%s/%s", dir, name);

	return n > 0 && n <= SCAN_PATH_MAX;
}

/* Reads a regular file: its length, -EFBIG when it is longer than `size`. */
static ssize_t
read_file(const char *path, char *buf, size_t size)
{
	autoclose int fd = path_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? fd : lookup_read(fd, buf, size);
}

/* A file of one line: its text without the end of the line. 0 or -errno. */
static int
read_line(const char *path, char ret[SCAN_PATH_MAX + 1])
{
	ssize_t len = read_file(path, ret, SCAN_PATH_MAX);

	if (len < 0)
		return (int)len;
	while (len > 0 && (ret[len - 1] == '\n' || ret[len - 1] == '\r'))
		len--;
	ret[len] = '\0';
	return memchr(ret, '\0', (size_t)len) != NULL ? -EINVAL : 0;
}

/* --- configuration ------------------------------------------------------ */

/* A path as git expands it; false: none that we know. */
static bool
expand(const struct scan *s, const char *dir, const char *value,
    char ret[SCAN_PATH_MAX + 1])
{
	if (*value == '\0' || strncmp(value, "%(", 2) == 0)
		return false;
	if (*value == '~')
		return value[1] == '/' && join(s->home, value + 2, ret);
	return join(dir, value, ret);
}

static void
include(struct settings *set, const char *value)
{
	char dir[SCAN_PATH_MAX + 1], path[SCAN_PATH_MAX + 1];
	const char *file = set->file, *slash = strrchr(file, '/');

	(void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - file), file);
	if (!expand(set->s, dir, value, path))
		return;
	scan_target(set->s, path);
	if (set->depth >= SCAN_INCLUDES_MAX) {
		stopped(set->s, LOOKUP_STOP_GIT);
		return;
	}
	set->depth++;
	read_config(set, path);
	set->depth--;
	set->file = file;
}

static void
keep_hooks(struct settings *set, const char *value)
{
	const char *kept = scan_keep(set->s, value);

	if (kept != NULL && set->nhooks < SCAN_HOOKS_MAX)
		set->hooks[set->nhooks++] = kept;
	else
		stopped(set->s, LOOKUP_STOP_GIT);
}

static int
on_entry(void *arg, const struct git_config_entry *e)
{
	struct settings *set = arg;

	if (e->value == NULL || e->too_long)
		return 0;
	/* Conditions of includeIf change with the branch: all of them. */
	if ((strcmp(e->section, "include") == 0 ||
		strcmp(e->section, "includeif") == 0) &&
	    strcmp(e->key, "path") == 0)
		include(set, e->value);
	else if (strcmp(e->section, "core") == 0 &&
	    strcmp(e->key, "hookspath") == 0)
		keep_hooks(set, e->value);
	else if (strcmp(e->section, "core") == 0 &&
	    strcmp(e->key, "worktree") == 0)
		set->worktree = scan_keep(set->s, e->value);
	return 0;
}

static void
read_config(struct settings *set, const char *path)
{
	struct scan *s = set->s;
	autofree char *text = NULL;
	ssize_t len;

	s->ticks = 0; /* one file is much work: look at the clock */
	if (s->git.nconfigs++ >= SCAN_CONFIGS_MAX || !scan_step(s)) {
		stopped(s, LOOKUP_STOP_GIT);
		return;
	}
	text = malloc(SCAN_CONFIG_BYTES);
	if (text == NULL) {
		stopped(s, LOOKUP_STOP_CONFIG);
		return;
	}
	len = read_file(path, text, SCAN_CONFIG_BYTES);
	set->file = path;
	if (len >= 0 ? git_config_parse(text, (size_t)len, on_entry, set) < 0 :
		       len != -ENOENT && len != -ENOTDIR)
		stopped(s, LOOKUP_STOP_CONFIG);
}

/* Where hooks are looked for: relative paths begin where hooks are run. */
static void
tell_hooks(struct scan *s, const char *const *hooks, size_t n, const char *dir)
{
	char path[SCAN_PATH_MAX + 1];

	for (size_t i = 0; i < n; i++)
		if (expand(s, dir, hooks[i], path))
			scan_target(s, path);
}

static bool
is_relative(const char *value)
{
	return *value != '/' && *value != '~';
}

void
scan_git_global(struct scan *s)
{
	static const char *const names[] = { "/.gitconfig",
		"/.config/git/config" };
	struct settings set = { .s = s };
	char path[SCAN_PATH_MAX + 1];

	read_config(&set, "/etc/gitconfig");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int n = snprintf(path, sizeof(path), "%s%s", s->home, names[i]);

		if (*s->home == '/' && n > 0 && (size_t)n < sizeof(path))
			read_config(&set, path);
	}
	for (size_t i = 0; i < set.nhooks; i++)
		if (is_relative(set.hooks[i]))
			s->git.hooks[s->git.nhooks++] = set.hooks[i];
		else
			tell_hooks(s, &set.hooks[i], 1, s->home);
}

/* --- directories -------------------------------------------------------- */

void
scan_git_add(struct scan *s, const char *path, const char *worktree)
{
	struct scan_git *git = &s->git;
	char resolved[SCAN_PATH_MAX + 1];
	enum lookup_kind kind;

	if (scan_resolve(path, resolved, &kind) < 0 ||
	    (kind != LOOKUP_DIR && kind != LOOKUP_NONE))
		return;
	scan_way(s, path);
	for (size_t i = 0; i < git->ndirs; i++)
		if (strcmp(git->dirs[i].path, resolved) == 0) {
			if (git->dirs[i].worktree == NULL && worktree != NULL)
				git->dirs[i].worktree = scan_keep(s, worktree);
			return;
		}
	if (git->ndirs == SCAN_GIT_MAX) {
		stopped(s, LOOKUP_STOP_GIT);
		return;
	}
	git->dirs[git->ndirs] = (struct scan_git_dir){
		.path = scan_keep(s, resolved),
		.worktree = worktree == NULL ? NULL : scan_keep(s, worktree),
		.exists = kind == LOOKUP_DIR,
	};
	git->ndirs += git->dirs[git->ndirs].path != NULL;
}

/* "gitdir: PATH" (gitrepository-layout(5)); git refuses everything else. */
static void
read_gitfile(struct scan *s, const char *path, const char *dir)
{
	char line[SCAN_PATH_MAX + 1], to[SCAN_PATH_MAX + 1];

	scan_target(s, path);
	if (read_line(path, line) < 0 ||
	    strncmp(line, GITFILE_MARK, sizeof(GITFILE_MARK) - 1) != 0)
		return;
	if (join(dir, line + sizeof(GITFILE_MARK) - 1, to))
		scan_git_add(s, to, dir);
}

void
scan_git_entry(struct scan *s, const char *dir)
{
	char path[SCAN_PATH_MAX + 1], resolved[SCAN_PATH_MAX + 1];
	enum lookup_kind kind;

	if (!join(strcmp(dir, "/") == 0 ? "" : dir, ".git", path) ||
	    scan_resolve(path, resolved, &kind) < 0)
		return;
	if (kind == LOOKUP_FILE)
		read_gitfile(s, resolved, dir);
	else
		scan_git_add(s, path, dir);
}

static bool
is_dot_git(const char *path)
{
	size_t len = strlen(path);

	return len >= 5 && strcmp(path + len - 5, "/.git") == 0;
}

/* A linked work tree has its hooks and configuration in another directory. */
static void
follow_commondir(struct scan *s, const struct scan_git_dir *d)
{
	char path[SCAN_PATH_MAX + 1], line[SCAN_PATH_MAX + 1],
	    to[SCAN_PATH_MAX + 1];

	if (join(d->path, "commondir", path) && read_line(path, line) == 0 &&
	    join(d->path, line, to))
		scan_git_add(s, to, d->worktree);
}

static int
finish_dir(struct scan *s, size_t i)
{
	static const char *const files[] = { "config", "config.worktree" };
	const struct scan_git_dir *d = &s->git.dirs[i];
	struct settings set = { .s = s };
	char path[SCAN_PATH_MAX + 1], tree[SCAN_PATH_MAX + 1];
	const char *dir = d->worktree != NULL ? d->worktree : d->path;

	if (!is_dot_git(d->path))
		scan_found(s, LOOKUP_GIT, d->path,
		    d->exists ? LOOKUP_DIR : LOOKUP_NONE);
	if (!d->exists)
		return 0;
	follow_commondir(s, d);
	for (size_t k = 0; k < ARRAY_LEN(files); k++)
		if (join(d->path, files[k], path))
			read_config(&set, path);
	if (d->worktree == NULL && set.worktree != NULL &&
	    expand(s, d->path, set.worktree, tree))
		dir = tree;
	tell_hooks(s, set.hooks, set.nhooks, dir);
	tell_hooks(s, s->git.hooks, s->git.nhooks, dir);
	return is_dot_git(d->path) || !scan_in_roots(s, d->path) ?
	    0 :
	    scan_git_tree(s, d->path);
}

int
scan_git_finish(struct scan *s)
{
	int r = 0;

	/* The list grows. */
	for (size_t i = 0; i < s->git.ndirs && r == 0; i++)
		r = finish_dir(s, i);
	return r;
}
