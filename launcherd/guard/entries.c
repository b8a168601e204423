/*
 * See entries.h. A mount below a guarded root needs an entry of its own unless
 * the kernel's walk comes from it to the root anyway: it goes by directory
 * entries of one file system, not by mounts.
 */
#include "launcherd/guard/entries.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "launcherd/guard/event.h"
#include "launcherd/guard/policy.h"
#include "launcherd/mountinfo.h"
#include "protocol/guard.h"

struct making {
	const struct guard *guard;
	const char *mounts;
	int root_fd;
	struct guard_policy *policy;
	struct guard_entry_paths *paths;
	char *why;
	struct mountinfo at; /* the line that is being read */
	struct mountinfo of; /* the mount that holds the root below */
	char root_path[2 * PATH_MAX]; /* of the root in its file system */
};

static int
fail(struct making *m, int error, const char *what, const char *path)
{
	(void)snprintf(m->why, GUARD_ENTRIES_WHY, "%.160s: %s", path, what);
	return error;
}

/* One line after the other; false at the end. */
static bool
next_line(struct making *m, const char **pos)
{
	while (**pos != '\0') {
		size_t len = strcspn(*pos, "\n");
		const char *line = *pos;

		*pos += len + (line[len] == '\n');
		if (mountinfo_read(line, len, &m->at))
			return true;
	}
	return false;
}

/* What follows `dir` and its slash in path, "" for dir itself, NULL: not
 * below it. */
static const char *
below(const char *dir, const char *path)
{
	size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	if (strncmp(dir, path, len) != 0)
		return NULL;
	return path[len] == '/' ? path + len + 1 :
	    path[len] == '\0'   ? path + len :
				  NULL;
}

static void
join(char *out, size_t size, const char *dir, const char *rel)
{
	(void)snprintf(out, size, "%s%s%s", dir,
	    *rel == '\0' || strcmp(dir, "/") == 0 ? "" : "/", rel);
}

static int
inode_of(struct making *m, const char *path, uint64_t *ret)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	autoclose int fd =
	    (int)syscall(SYS_openat2, m->root_fd, path + 1, &how, sizeof(how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(m, -errno, strerror(errno), path);
	*ret = st.st_ino;
	return 0;
}

static int
add(struct making *m, unsigned root, const char *path, const char *rel,
    uint32_t dev)
{
	struct guard_policy *p = m->policy;
	struct guard_entry *e;
	size_t end = strlen(rel), begin;
	int error;

	if (p->nentries == GUARD_ENTRIES)
		return fail(m, -E2BIG,
		    "more file systems below guarded places than 16", path);
	e = &p->entry[p->nentries];
	memset(e, 0, sizeof(*e));
	error = inode_of(m, path, &e->ino);
	if (error < 0)
		return error;
	e->dev = dev;
	e->root = (uint16_t)root;
	for (; end > 0; end = begin > 0 ? begin - 1 : 0) {
		for (begin = end; begin > 0 && rel[begin - 1] != '/';)
			begin--;
		if (e->nprefix == GUARD_PREFIX_MAX ||
		    end - begin > DFA_NAME_MAX)
			return fail(m, -E2BIG,
			    "a file system too deep in a guarded place", path);
		e->prefix[e->nprefix++] =
		    dfa_name(&m->guard->dfa, rel + begin, end - begin);
	}
	m->paths->path[p->nentries] = strdup(path);
	if (m->paths->path[p->nentries] == NULL)
		return fail(m, -ENOMEM, "memory", path);
	p->bloom |= UINT64_C(1) << (e->ino & 63);
	p->nentries++;
	return 0;
}

/* The mount that holds the root: the last one of those with the longest
 * point. */
static int
find_mount(struct making *m, const char *path)
{
	const char *pos = m->mounts;
	size_t best = 0;

	while (next_line(m, &pos)) {
		if (below(m->at.point, path) == NULL ||
		    strlen(m->at.point) < best)
			continue;
		best = strlen(m->at.point);
		m->of = m->at;
	}
	if (best == 0)
		return fail(m, -EINVAL, "no mount holds it", path);
	join(m->root_path, sizeof(m->root_path), m->of.root,
	    below(m->of.point, path));
	return 0;
}

/* Whether a later mount stands on the same point. */
static bool
is_covered(struct making *m, const char *pos)
{
	const struct mountinfo here = m->at;
	bool covered = false;

	while (!covered && next_line(m, &pos))
		covered = strcmp(m->at.point, here.point) == 0;
	m->at = here;
	return covered;
}

static int
add_mounts_below(struct making *m, unsigned root)
{
	const struct guard *g = m->guard;
	const char *path = g->roots[root].path;
	const char *pos = m->mounts;
	char natural[3 * PATH_MAX];

	while (next_line(m, &pos)) {
		const char *point = m->at.point;
		size_t rel;
		int error;

		if (guard_find_root(g, point, strlen(point), &rel) !=
			(int)root ||
		    point[rel] == '\0')
			continue;
		/* Only rules on writing are asked of what cannot be. */
		if (m->at.read_only &&
		    (g->dfa.masks & ~(unsigned)(DFA_WRITE | DFA_MOVE)) == 0)
			continue;
		join(natural, sizeof(natural), m->root_path,
		    below(path, point));
		if ((m->at.dev == m->of.dev &&
			strcmp(m->at.root, natural) == 0) ||
		    is_covered(m, pos))
			continue;
		error = add(m, root, point, point + rel, m->at.dev);
		if (error < 0)
			return error;
	}
	return 0;
}

int
guard_entries_make(const struct guard *guard, const char *mounts, int root_fd,
    struct guard_policy *policy, struct guard_entry_paths *ret_paths,
    char ret_why[GUARD_ENTRIES_WHY])
{
	struct making m = { .guard = guard,
		.mounts = mounts,
		.root_fd = root_fd,
		.policy = policy,
		.paths = ret_paths,
		.why = ret_why };
	int error = 0;

	policy->nentries = 0;
	policy->bloom = 0;
	for (unsigned i = 0; i < guard->nroots && error == 0; i++) {
		const char *path = guard->roots[i].path;

		if (guard->roots[i].empty)
			continue;
		error = find_mount(&m, path);
		if (error == 0)
			error = add(&m, i, path, "", m.of.dev);
		if (error == 0)
			error = add_mounts_below(&m, i);
	}
	return error;
}
