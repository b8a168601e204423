/*
 * link, linkat: link(2).
 *
 * A hard link is one more name for a file, which could then be written by that
 * name: so the file's own name is judged as well, and a file from where the run
 * may not write gets no name in a guarded root.
 */
#include "launcherd/broker/calls.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcherd/broker/broker.h"
#include "launcherd/broker/judge.h"
#include "launcherd/broker/notify.h"
#include "launcherd/broker/resolve.h"

#define KNOWN (AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)

/* The thing that gets the new name. */
static int
find_source(struct broker *b, struct request *rq, int flags, struct object *ret)
{
	static char path[PATH_MAX];
	static struct place place;
	const struct call *c = rq->call;
	int dirfd = c->dir < 0 ? AT_FDCWD : (int)rq->args[c->dir];
	int r;

	if (target_string(rq, rq->args[c->path], path, sizeof(path)) < 0)
		return ANSWER_CONTINUE;
	if (path[0] == '\0') {
		if ((flags & AT_EMPTY_PATH) == 0)
			return ANSWER_CONTINUE;
		ret->fd = target_fd(b, rq, dirfd);
		return ret->fd < 0 ? ANSWER_CONTINUE : resolve_object(b, ret);
	}
	place_init(&place);
	r = resolve_parent(b, rq, dirfd, path, &place);
	/* A directory: can only fail. */
	if (r == 0 && place.slash)
		r = ANSWER_CONTINUE;
	if (r == 0 && (flags & AT_SYMLINK_FOLLOW) != 0)
		r = resolve_last(b, rq, &place, ret);
	if (r == 0)
		r = resolve_named(b, &place, ret);
	place_done(&place);
	return r == RESOLVE_OBJECT ? 0 : r;
}

static int
link_object(struct broker *b, struct request *rq, const struct object *from,
    const struct place *to)
{
	char name[32];
	unsigned mask = DFA_WRITE | JUDGE_FILE;
	struct stat st, other;

	if (fstat(from->fd, &st) < 0)
		return -errno;
	if (fstatat(to->dir, to->name, &other, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	/* A file without a name was made by O_TMPFILE, on this mount or the
	 * kernel refuses. */
	if (!from->guarded && !from->unlinked)
		return -EXDEV;
	if (!from->unlinked &&
	    judge_denies_object(b, from, DFA_WRITE | DFA_READ | JUDGE_FILE))
		return judge_denied(b, rq, VIOLATION_FILE_LINK);
	if (S_ISLNK(st.st_mode))
		mask |= DFA_MOVE;
	if (judge_denies(b, to, mask))
		return judge_denied(b, rq, VIOLATION_FILE_LINK);
	if (!notify_valid(b, rq->id))
		return ANSWER_GONE;
	(void)snprintf(name, sizeof(name), "%d", from->fd);
	return linkat(b->self_fd, name, to->dir, to->name, AT_SYMLINK_FOLLOW) <
		0 ?
	    -errno :
	    0;
}

int
call_link(struct broker *b, struct request *rq)
{
	static struct object from;
	static struct place to;
	const struct call *c = rq->call;
	int flags = c->extra < 0 ? 0 : (int)rq->args[c->extra];
	int r;

	if ((flags & ~KNOWN) != 0)
		return ANSWER_CONTINUE;
	place_init(&to);
	from.fd = -1;
	r = find_source(b, rq, flags, &from);
	if (r == 0)
		r = resolve_argument(b, rq, c->dir2, c->path2, &to);
	/* "name/" is no name for a file: can only fail. */
	if (r == 0 && (!to.guarded || to.slash))
		r = ANSWER_CONTINUE;
	if (r == 0)
		r = link_object(b, rq, &from, &to);
	place_done(&to);
	object_done(&from);
	return r;
}
