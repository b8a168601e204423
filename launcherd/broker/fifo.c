/* See fifo.h. */
#include "launcherd/broker/fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "launcherd/broker/broker.h"
#include "launcherd/broker/notify.h"

#define ERESTARTNOINTR 513 /* the kernel's linux/errno.h */

/* What F_SETFL can set; the rest stays as it was opened. */
#define SETTABLE (O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME)

void
fifo_settle(int fd, int flags)
{
	if ((flags & O_NONBLOCK) == 0)
		(void)fcntl(fd, F_SETFL, flags & SETTABLE);
}

int
fifo_open(const struct broker *b, int object, int flags)
{
	char name[16];
	int fd;

	(void)snprintf(name, sizeof(name), "%d", object);
	flags &= ~(O_CREAT | O_EXCL | O_NOFOLLOW);
	fd =
	    openat(b->self_fd, name, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	fifo_settle(fd, flags);
	return fd;
}

static int
wait_for(struct broker *b, const struct fifo *f)
{
	if (b->fifos.n == FIFOS_MAX) {
		(void)close(f->object);
		return -ENFILE;
	}
	b->fifos.rows[b->fifos.n++] = *f;
	return ANSWER_LATER;
}

int
fifo_wait(struct broker *b, const struct request *rq, int object, int flags)
{
	struct fifo f = { rq->id, object, flags, rq->fd_cloexec, -1 };

	return wait_for(b, &f);
}

/* Takes fd. Nobody has a lease on what is open for writing. */
static int
cut(int fd, int64_t length)
{
	int r = ftruncate(fd, length) < 0 ? -errno : 0;

	(void)close(fd);
	return r;
}

/* By an open, which does not wait for the holder of a lease: truncate(2) does,
 * and with it all other callers would. */
int
fifo_truncate(struct broker *b, const struct request *rq, int *object,
    int64_t length)
{
	struct fifo f = { rq->id, -1, O_WRONLY, false, length };
	int fd = fifo_open(b, *object, f.flags);

	if (fd == -EAGAIN) {
		f.object = take_fd(object);
		return wait_for(b, &f);
	}
	return fd < 0 ? fd : cut(fd, length);
}

/*
 * False: it goes on waiting. A caller that waits for us cannot be frozen, and
 * the one it waits for may be: so it is let go, and its call begins again when
 * it is thawed. The kernel does that with the answer ERESTARTNOINTR where a
 * signal is pending, as one is for whoever has been told to freeze, until it
 * has been through the kernel's exit; nothing of it reaches the program.
 */
static bool
finish(struct broker *b, const struct fifo *f)
{
	int fd;

	if (!notify_valid(b, f->id))
		return true;
	if (b->freezing) {
		notify_answer(b, f->id, 0, -ERESTARTNOINTR);
		return true;
	}
	fd = fifo_open(b, f->object, f->flags);
	if (fd == -ENXIO || fd == -EAGAIN)
		return false;
	if (fd >= 0 && f->length >= 0)
		notify_answer(b, f->id, 0, cut(fd, f->length));
	else if (fd < 0)
		notify_answer(b, f->id, 0, fd);
	else
		notify_fd(b, f->id, fd, f->cloexec);
	return true;
}

void
fifo_tick(struct broker *b)
{
	for (size_t i = 0; i < b->fifos.n;) {
		struct fifo *f = &b->fifos.rows[i];

		if (!finish(b, f)) {
			i++;
			continue;
		}
		(void)close(f->object);
		*f = b->fifos.rows[--b->fifos.n];
	}
}
