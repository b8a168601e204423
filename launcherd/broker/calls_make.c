/*
 * mkdir, mknod, symlink: mkdir(2), mknod(2), symlink(2). The broker makes the
 * name in the pinned directory with the caller's umask.
 */
#include "launcherd/broker/calls.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <unistd.h>

#include "launcherd/broker/broker.h"
#include "launcherd/broker/judge.h"
#include "launcherd/broker/notify.h"
#include "launcherd/broker/resolve.h"

/* A call that makes one name; `text` is a link's, `device` a node's. */
struct making {
	unsigned mask;
	int (*fn)(const struct place *, const struct making *);
	mode_t mode;
	dev_t device;
	const char *text;
};

/* Of no driver (admin-guide/devices.txt: major 0 is unnamed), and no whiteout,
 * which is 0, 0 and needs no CAP_MKNOD. */
#define NO_DEVICE makedev(0, 1)

static int
make_directory(const struct place *p, const struct making *m)
{
	return mkdirat(p->dir, p->name, m->mode);
}

static int
make_node(const struct place *p, const struct making *m)
{
	return mknodat(p->dir, p->name, m->mode, m->device);
}

static int
make_link(const struct place *p, const struct making *m)
{
	return symlinkat(m->text, p->dir, p->name);
}

static int
make_in(struct broker *b, struct request *rq, const struct making *m,
    const struct place *p)
{
	struct stat st;

	if (!p->guarded)
		return ANSWER_CONTINUE;
	if (judge_denies(b, p,
		m->fn == make_directory ? m->mask : m->mask | JUDGE_FILE)) {
		/* It would have failed anyway, and programs go on at this. */
		if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return -EEXIST;
		return judge_denied(b, rq, VIOLATION_FILE_CREATE);
	}
	target_take_umask(b, rq);
	if (!notify_valid(b, rq->id))
		return ANSWER_GONE;
	if (m->fn(p, m) < 0)
		return -errno;
	judge_made(b, p);
	return 0;
}

static int
make_name(struct broker *b, struct request *rq, const struct making *m)
{
	static struct place place;
	int r;

	place_init(&place);
	r = resolve_argument(b, rq, rq->call->dir, rq->call->path, &place);
	if (r == 0)
		r = make_in(b, rq, m, &place);
	place_done(&place);
	return r;
}

int
call_mkdir(struct broker *b, struct request *rq)
{
	struct making m = { DFA_WRITE, make_directory,
		(mode_t)rq->args[rq->call->extra] & ALLPERMS, 0, NULL };

	return make_name(b, rq, &m);
}

int
call_mknod(struct broker *b, struct request *rq)
{
	mode_t mode = (mode_t)rq->args[rq->call->extra];
	struct making m = { DFA_WRITE, make_node, mode, 0, NULL };

	/* No device is ever made, for want of CAP_MKNOD: this asks the kernel
	 * what else is wrong. A whiteout is none, and anybody's to make. */
	if (S_ISBLK(mode) ||
	    (S_ISCHR(mode) && (unsigned)rq->args[rq->call->extra + 1] != 0))
		m.device = NO_DEVICE;
	return make_name(b, rq, &m);
}

/* A link may stand for a directory: rules about what is below hold, too. */
int
call_symlink(struct broker *b, struct request *rq)
{
	static char text[PATH_MAX];
	struct making m = { DFA_WRITE | DFA_MOVE, make_link, 0, 0, text };

	if (target_string(rq, rq->args[rq->call->extra], text, sizeof(text)) <
	    0)
		return ANSWER_CONTINUE;
	return make_name(b, rq, &m);
}
