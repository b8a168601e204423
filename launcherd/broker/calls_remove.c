/*
 * unlink, rmdir, truncate: unlink(2), rmdir(2), truncate(2).
 */
#include "launcherd/broker/calls.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "launcherd/broker/broker.h"
#include "launcherd/broker/judge.h"
#include "launcherd/broker/notify.h"
#include "launcherd/broker/resolve.h"

static int
remove_in(struct broker *b, struct request *rq, const struct place *p,
    int flags)
{
	unsigned mask = DFA_WRITE;
	struct stat st;

	if (!p->guarded)
		return ANSWER_CONTINUE;
	/* A link, or a file called .git, may stand for a tree: as in a rename.
	 * What it is, is asked only where that matters. */
	if (judge_denies(b, p, mask | DFA_MOVE | JUDGE_FILE)) {
		if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (!S_ISDIR(st.st_mode))
			mask |= JUDGE_FILE;
		if (S_ISLNK(st.st_mode))
			mask |= DFA_MOVE;
		if (judge_denies(b, p, mask))
			return judge_denied(b, rq, VIOLATION_FILE_UNLINK);
	}
	if (!notify_valid(b, rq->id))
		return ANSWER_GONE;
	return unlinkat(p->dir, p->name, flags) < 0 ? -errno : 0;
}

static int
remove_name(struct broker *b, struct request *rq, int flags)
{
	static struct place place;
	int r;

	place_init(&place);
	r = resolve_argument(b, rq, rq->call->dir, rq->call->path, &place);
	if (r == 0)
		r = remove_in(b, rq, &place, flags);
	place_done(&place);
	return r;
}

int
call_unlink(struct broker *b, struct request *rq)
{
	int extra = rq->call->extra;
	int flags = extra < 0 ? 0 : (int)rq->args[extra];

	/* EINVAL. */
	if ((flags & ~AT_REMOVEDIR) != 0)
		return ANSWER_CONTINUE;
	return remove_name(b, rq, flags);
}

int
call_rmdir(struct broker *b, struct request *rq)
{
	return remove_name(b, rq, AT_REMOVEDIR);
}

/* By the pinned thing: truncate(2) takes a path and no descriptor that was not
 * opened for writing. What is no regular file only says why not. */
static int
truncate_object(struct broker *b, struct request *rq, struct object *obj,
    off_t length)
{
	struct stat st;
	char name[32];

	if (fstat(obj->fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return fifo_truncate(b, rq, &obj->fd, length);
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", obj->fd);
	return truncate(name, length) < 0 ? -errno : 0;
}

static int
truncate_found(struct broker *b, struct request *rq, struct object *obj)
{
	off_t length = (off_t)rq->args[rq->call->extra];

	if (!obj->guarded)
		return ANSWER_CONTINUE;
	if (!obj->unlinked &&
	    judge_denies_object(b, obj, DFA_WRITE | JUDGE_FILE))
		return judge_denied(b, rq, VIOLATION_FILE_DATA);
	if (!notify_valid(b, rq->id))
		return ANSWER_GONE;
	return truncate_object(b, rq, obj, length);
}

int
call_truncate(struct broker *b, struct request *rq)
{
	static struct place place;
	static struct object object;
	int r;

	/* EINVAL. */
	if ((off_t)rq->args[rq->call->extra] < 0)
		return ANSWER_CONTINUE;
	place_init(&place);
	object.fd = -1;
	r = resolve_argument(b, rq, rq->call->dir, rq->call->path, &place);
	/* "file/": can only fail. */
	if (r == 0 && place.slash)
		r = ANSWER_CONTINUE;
	if (r == 0)
		r = resolve_last(b, rq, &place, &object);
	if (r == 0 && !place.guarded)
		r = ANSWER_CONTINUE;
	if (r == 0)
		r = resolve_named(b, &place, &object);
	if (r == 0 || r == RESOLVE_OBJECT)
		r = truncate_found(b, rq, &object);
	place_done(&place);
	object_done(&object);
	return r;
}
