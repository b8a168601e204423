/*
 * See judge.h. The table comes from control by way of launcherd and is checked
 * before the first walk; what a wrong one can do is to have the wrong rules.
 */
#include "launcherd/broker/judge.h"

#include <errno.h>
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
	char path[PATH_MAX + NAME_MAX + 2]; /* dir, slash, name */
} last;

int
judge_open(struct broker *b, int fd)
{
	autoclose int table = fd;
	/* Never unmapped: the rules' texts lie in it. */
	static struct memfd_map map;
	int r = memfd_open_map(table, GUARD_BYTES_MAX, &map);

	if (r < 0)
		return r;
	b->guard = malloc(sizeof(*b->guard));
	if (b->guard == NULL)
		return -ENOMEM;
	return guard_decode(map.data, map.len, b->guard);
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
	if (dir_len < PATH_MAX && name_len <= NAME_MAX)
		remember(v, mask, dir, dir_len, name, name_len);
	return true;
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
