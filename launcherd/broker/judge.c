/*
 * See judge.h. The table comes from control by way of launcherd and is checked
 * before the first walk; what a wrong one can do is to have the wrong rules.
 */
#include "launcherd/broker/judge.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/memfd.h"
#include "launcherd/broker/broker.h"
#include "launcherd/broker/resolve.h"
#include "protocol/guard.h"

/* What was denied last, of the request that is being served. */
static struct {
	struct dfa_verdict verdict;
	unsigned asked;
	size_t dir_len;
	size_t name_len;
	char path[OBJECT_PATH_MAX + NAME_MAX + 2]; /* dir, slash, name */
} last;

/* The rules' texts lie in it. */
static struct memfd_map mapped;

static int
open_table(int fd, struct memfd_map *ret_map, struct guard **ret)
{
	autofree struct guard *guard = malloc(sizeof(*guard));
	struct memfd_map map = { NULL, 0 };
	int r = guard == NULL ? -ENOMEM :
				memfd_open_map(fd, GUARD_BYTES_MAX, &map);

	if (r == 0)
		r = guard_decode(map.data, map.len, guard);
	if (r < 0) {
		memfd_unmap(&map);
		return r;
	}
	*ret_map = map;
	*ret = take_ptr(&guard);
	return 0;
}

int
judge_open(struct broker *b, int fd)
{
	autoclose int table = fd;

	return open_table(table, &mapped, &b->guard);
}

static bool
same_places(const struct guard *a, const struct guard *b)
{
	if (a->nroots != b->nroots || a->new_repositories != b->new_repositories)
		return false;
	for (size_t i = 0; i < a->nroots; i++)
		if (strcmp(a->roots[i].path, b->roots[i].path) != 0 ||
		    a->roots[i].empty != b->roots[i].empty)
			return false;
	return true;
}

int
judge_replace(struct broker *b, int fd)
{
	autoclose int table = fd;
	struct memfd_map map;
	struct guard *guard;
	int r = open_table(table, &map, &guard);

	if (r < 0)
		return r;
	if (!same_places(guard, b->guard)) {
		free(guard);
		memfd_unmap(&map);
		return -EINVAL;
	}
	free(b->guard);
	memfd_unmap(&mapped);
	b->guard = guard;
	mapped = map;
	return 0;
}

bool
judge_guards(const struct broker *b, const char *path, size_t len)
{
	size_t rel;

	return guard_find_root(b->guard, path, len, &rel) >= 0;
}

bool
judge_same_root(const struct broker *b, const struct place *p,
    const struct place *q)
{
	size_t rel;
	int i = guard_find_root(b->guard, p->path, p->len, &rel);
	int j = guard_find_root(b->guard, q->path, q->len, &rel);

	return i >= 0 && i == j;
}

/* ------------------------------------------------ new repositories */

#define REPOSITORIES_MAX 256
#define GIT_DIR ".git"

static struct {
	dev_t dev;
	ino_t ino;
} repositories[REPOSITORIES_MAX];
static size_t nrepositories;

/* By its inode, which a host process cannot fake by a rename. More of them
 * than there is room for are protected like old ones. */
void
judge_made(struct broker *b, const struct place *p)
{
	struct stat st;

	if (!b->guard->new_repositories || nrepositories == REPOSITORIES_MAX ||
	    p->name_len != strlen(GIT_DIR) ||
	    memcmp(p->name, GIT_DIR, p->name_len) != 0 ||
	    fstatat(p->dir, GIT_DIR, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode))
		return;
	repositories[nrepositories].dev = st.st_dev;
	repositories[nrepositories++].ino = st.st_ino;
}

static bool
is_new(const char *path)
{
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	for (size_t i = 0; i < nrepositories; i++)
		if (repositories[i].dev == st.st_dev &&
		    repositories[i].ino == st.st_ino)
			return true;
	return false;
}

/* Whether a directory is a new ".git" or lies in one; canonical path. */
static bool
in_new_repository(const char *dir, size_t len)
{
	char path[PATH_MAX];

	if (nrepositories == 0 || len >= sizeof(path))
		return false;
	memcpy(path, dir, len);
	path[len] = '\0';
	while (len > strlen("/" GIT_DIR)) {
		if (strcmp(path + len - strlen("/" GIT_DIR), "/" GIT_DIR) ==
			0 &&
		    is_new(path))
			return true;
		while (len > 0 && path[len] != '/')
			len--;
		path[len] = '\0';
	}
	return false;
}

/* Whether a rule that is not of git's own set denies it too. */
static bool
others_deny(const struct guard *g, const char *path, size_t len, unsigned mask)
{
	size_t rel;
	int root = guard_find_root(g, path, len, &rel);

	for (size_t i = 0; root >= 0 && i < g->nrules; i++) {
		const struct guard_rule *r = &g->rules[i];

		if (r->class == DFA_GIT || (r->roots & 1u << root) == 0)
			continue;
		if ((dfa_rule_matches(r->glob, r->ignore_case, r->mask,
			 path + rel, len - rel) &
			mask) != 0)
			return true;
	}
	return root < 0;
}

static void
remember(struct dfa_verdict v, unsigned asked, const char *dir, size_t dir_len,
    const char *name, size_t name_len)
{
	size_t at = dir_len;

	last.verdict = v;
	last.asked = asked;
	last.dir_len = dir_len;
	last.name_len = name_len;
	memcpy(last.path, dir, dir_len);
	if (name_len > 0) {
		last.path[at++] = '/';
		memcpy(last.path + at, name, name_len);
		at += name_len;
	}
	last.path[at] = '\0';
}

static bool
denies(struct broker *b, const char *dir, size_t dir_len, const char *name,
    size_t name_len, unsigned mask)
{
	struct dfa_verdict v =
	    guard_judge(b->guard, dir, dir_len, name, name_len, NULL);

	if ((v.mask & mask) == 0)
		return false;
	remember(v, mask, dir, dir_len, name, name_len);
	return !in_new_repository(dir, dir_len) ||
	    others_deny(b->guard, last.path, strlen(last.path), mask);
}

bool
judge_denies(struct broker *b, const struct place *p, unsigned mask)
{
	return denies(b, p->path, p->len, p->name, p->name_len, mask);
}

bool
judge_denies_object(struct broker *b, const struct object *o, unsigned mask)
{
	return denies(b, o->path, o->len, "", 0, mask);
}

int
judge_denied(struct broker *b, struct request *rq, enum violation_action action)
{
	unsigned number =
	    guard_exact_rule(b->guard, last.verdict, last.asked, last.path,
		last.dir_len, last.path + last.dir_len + 1, last.name_len);
	const struct guard_rule *rule = guard_rule(b->guard, number);

	denial_record(b, rq, action, last.path, rule);
	return -EPERM;
}
