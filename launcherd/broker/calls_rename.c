/*
 * rename, renameat, renameat2: rename(2).
 *
 * Both ends are names that change what they stand for, so both are judged. A
 * directory or a symbolic link takes along what is below it: then the rules
 * that name an ancestor hold as well, else a tree could be prepared under
 * another name and moved into its place.
 */
#include "launcherd/broker/calls.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcherd/broker/broker.h"
#include "launcherd/broker/judge.h"
#include "launcherd/broker/notify.h"
#include "launcherd/broker/resolve.h"

#define KNOWN ((unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))

/* 0 when there is none. Without the slash, which would follow a link. */
static mode_t
type_of(const struct place *p)
{
	char name[NAME_MAX + 1];
	struct stat st;

	memcpy(name, p->name, p->name_len);
	name[p->name_len] = '\0';
	if (fstatat(p->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return st.st_mode & S_IFMT;
}

static bool
is_tree(mode_t type)
{
	return S_ISDIR(type) || S_ISLNK(type);
}

static int
rename_between(struct broker *b, struct request *rq, const struct place *from,
    const struct place *to, unsigned flags)
{
	mode_t old = type_of(from), new = type_of(to);
	unsigned mask = DFA_WRITE;

	/* It would have failed anyway. */
	if (old == 0 || ((flags & RENAME_EXCHANGE) != 0 && new == 0))
		return -ENOENT;
	if ((flags & RENAME_NOREPLACE) != 0 && new != 0)
		return -EEXIST;
	if (!S_ISDIR(old) || ((flags & RENAME_EXCHANGE) != 0 && !S_ISDIR(new)))
		mask |= JUDGE_FILE;
	if (is_tree(old) || ((flags & RENAME_EXCHANGE) != 0 && is_tree(new)))
		mask |= DFA_MOVE;
	if (judge_denies(b, to, mask) || judge_denies(b, from, mask))
		return judge_denied(b, rq, VIOLATION_FILE_RENAME);
	if (!notify_valid(b, rq->id))
		return ANSWER_GONE;
	/* The C library's makes it a renameat when there are no flags. */
	if (syscall(SYS_renameat2, from->dir, from->name, to->dir, to->name,
		flags) < 0)
		return -errno;
	judge_moved(b, from, to, (flags & RENAME_EXCHANGE) != 0);
	return 0;
}

int
call_rename(struct broker *b, struct request *rq)
{
	static struct place from, to;
	const struct call *c = rq->call;
	unsigned flags = c->extra < 0 ? 0 : (unsigned)rq->args[c->extra];
	int r;

	/* EINVAL, or a whiteout, which is a device. */
	if ((flags & ~KNOWN) != 0 || flags == KNOWN)
		return ANSWER_CONTINUE;
	place_init(&from);
	place_init(&to);
	r = resolve_argument(b, rq, c->dir, c->path, &from);
	if (r == 0)
		r = resolve_argument(b, rq, c->dir2, c->path2, &to);
	if (r == 0 && !from.guarded && !to.guarded)
		r = ANSWER_CONTINUE;
	/* Between a guarded root and elsewhere nothing moves: the broker acts
	 * in guarded roots alone, and other roots have other rules. */
	if (r == 0 && !judge_same_root(b, &from, &to))
		r = -EXDEV;
	if (r == 0)
		r = rename_between(b, rq, &from, &to, flags);
	place_done(&from);
	place_done(&to);
	return r;
}
