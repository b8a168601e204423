/*
 * See judge.h. The table comes from control by way of launcherd and is checked
 * before the first walk; what a wrong one can do is to have the wrong rules.
 */
#include "launcherd/broker/judge.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/memfd.h"
#include "common/path.h"
#include "launcherd/broker/broker.h"
#include "launcherd/broker/main.h"
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
	int r =
	    guard == NULL ? -ENOMEM : memfd_open_map(fd, GUARD_BYTES_MAX, &map);

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
	if (a->nroots != b->nroots ||
	    a->new_repositories != b->new_repositories)
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

#define GIT_DIR ".git"
#define REPOSITORY_PATH_MAX 4095 /* of a message */

static struct repository {
	dev_t dev;
	ino_t ino; /* 0: forgotten */
	int fd; /* keeps the number from being another directory's */
	char path[REPOSITORY_PATH_MAX + 1];
} repositories[REPOSITORIES_MAX];
static size_t nrepositories;

static bool
is_git_dir(const char *name, size_t len)
{
	return len == strlen(GIT_DIR) && memcmp(name, GIT_DIR, len) == 0;
}

/* The path of a name; false: it is too long. */
static bool
path_of(const struct place *p, char ret[REPOSITORY_PATH_MAX + 1])
{
	int n = snprintf(ret, REPOSITORY_PATH_MAX + 1, "%.*s/%.*s", (int)p->len,
	    p->path, (int)p->name_len, p->name);

	return n > 0 && n <= REPOSITORY_PATH_MAX;
}

/* Nothing may be configured that is not reported: what launcherd cannot take
 * is forgotten, and protected like what was there before. */
static void
tell_repository(const struct broker *b, struct repository *r)
{
	static struct msg_broker_repository msg;

	if (!b->guard->new_repositories || r->ino == 0)
		return;
	memset(&msg, 0, sizeof(msg));
	msg.number = (uint64_t)(r - repositories);
	msg.dev = r->dev;
	msg.ino = r->ino;
	MSG_SET_STR(msg.path, r->path);
	if (!channel_try(MSG_broker_repository, &msg))
		r->ino = 0;
}

/* By its inode, which a host process cannot fake by a rename. More of them
 * than there is room for are protected like old ones. In places without rules
 * nothing is refused and nothing stays. */
void
judge_made(struct broker *b, const struct place *p)
{
	struct repository *r = &repositories[nrepositories];
	struct stat st;
	size_t rel;
	int root;

	if (nrepositories == REPOSITORIES_MAX ||
	    !is_git_dir(p->name, p->name_len))
		return;
	root = guard_find_root(b->guard, p->path, p->len, &rel);
	if (root < 0 || b->guard->roots[root].empty || !path_of(p, r->path))
		return;
	r->fd = openat(p->dir, GIT_DIR,
	    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->fd < 0)
		return;
	if (fstat(r->fd, &st) < 0) {
		(void)close(r->fd);
		return;
	}
	r->dev = st.st_dev;
	r->ino = st.st_ino;
	nrepositories++;
	tell_repository(b, r);
}

/* `path` lies in `from`: where it is now. false: the path is too long. */
static bool
move_path(struct repository *r, const char *from, const char *to)
{
	char path[REPOSITORY_PATH_MAX + 1];
	int n =
	    snprintf(path, sizeof(path), "%s%s", to, r->path + strlen(from));

	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	memcpy(r->path, path, (size_t)n + 1);
	return true;
}

void
judge_moved(struct broker *b, const struct place *from, const struct place *to,
    bool exchanged)
{
	static char was[REPOSITORY_PATH_MAX + 1], is[REPOSITORY_PATH_MAX + 1];
	bool known = path_of(from, was) && path_of(to, is);

	for (size_t i = 0; i < nrepositories && known; i++) {
		struct repository *r = &repositories[i];
		bool moved = path_is_within(r->path, was);
		bool back = !moved && exchanged && path_is_within(r->path, is);

		if (!moved && !back)
			continue;
		if (!move_path(r, moved ? was : is, moved ? is : was))
			r->ino = 0;
		tell_repository(b, r);
	}
}

static bool
is_new(const char *path)
{
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	for (size_t i = 0; i < nrepositories; i++)
		if (repositories[i].ino != 0 &&
		    repositories[i].dev == st.st_dev &&
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

/* Whether the last component is .git, in any letter case, as the rules are. */
static bool
is_git_name(const char *dir, size_t dir_len, const char *name, size_t name_len)
{
	size_t n = strlen(GIT_DIR);

	if (name_len > 0)
		return name_len == n && strncasecmp(name, GIT_DIR, n) == 0;
	return dir_len > n && dir[dir_len - n - 1] == '/' &&
	    strncasecmp(dir + dir_len - n, GIT_DIR, n) == 0;
}

static bool
denies(struct broker *b, const char *dir, size_t dir_len, const char *name,
    size_t name_len, unsigned mask)
{
	struct dfa_verdict v =
	    guard_judge(b->guard, dir, dir_len, name, name_len, NULL);
	unsigned asked = mask & DFA_ALL;

	if ((mask & JUDGE_FILE) != 0 &&
	    is_git_name(dir, dir_len, name, name_len))
		asked |= DFA_MOVE;
	if ((v.mask & asked) == 0)
		return false;
	remember(v, asked, dir, dir_len, name, name_len);
	return !b->guard->new_repositories ||
	    !in_new_repository(dir, dir_len) ||
	    others_deny(b->guard, last.path, strlen(last.path), asked);
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
	struct guard_rule shown;

	/* Its remedy is about new repositories; for one that was there before
	 * control knows another. */
	if (rule != NULL && rule->class == DFA_GIT &&
	    !in_new_repository(last.path, last.dir_len)) {
		shown = *rule;
		shown.remedy = "";
		rule = &shown;
	}
	denial_record(b, rq, action, last.path, rule);
	return -EPERM;
}
