/* See target.h. Sources: proc(5), process_vm_readv(2), pidfd_getfd(2). */
#include "launcherd/broker/target.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "launcherd/broker/broker.h"
#include "launcherd/broker/notify.h"

#define FIRST_BYTES 256 /* nearly every path; the rest page by page */
#define PAGE 4096u
#define SETTLE_MS 1000
#define STATUS_BYTES 4096
#define UMASK_UNKNOWN 077
#define PIDFD_OF_THREAD O_EXCL /* PIDFD_THREAD, Linux 6.9 */

void
target_init(struct target_cache *cache)
{
	memset(cache, 0, sizeof(*cache));
	for (size_t i = 0; i < TARGETS_MAX; i++)
		cache->rows[i].pidfd = cache->rows[i].cwd = -1;
}

static int64_t
now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* What can be read at once, up to the end of a page; 0 is a fault. */
static ssize_t
read_some(const struct request *rq, uint64_t address, void *buf, size_t len)
{
	size_t page = PAGE - (size_t)(address % PAGE);
	struct iovec here = { buf, len < page ? len : page };
	struct iovec there;
	ssize_t n;

	memset(&there, 0, sizeof(there));
	/* A pointer of the other process: a number to us. */
	memcpy(&there.iov_base, &address, sizeof(there.iov_base));
	there.iov_len = here.iov_len;
	n = process_vm_readv(rq->tid, &here, 1, &there, 1, 0);
	return n < 0 ? -errno : n == 0 ? -EFAULT : n;
}

ptrdiff_t
target_string(const struct request *rq, uint64_t address, char *buf,
    size_t size)
{
	size_t len = 0, want = FIRST_BYTES;

	while (len < size) {
		size_t room = size - len;
		ssize_t n = read_some(rq, address + len, buf + len,
		    want < room ? want : room);
		const char *end;

		if (n < 0)
			return n;
		end = memchr(buf + len, '\0', (size_t)n);
		if (end != NULL)
			return end - buf;
		len += (size_t)n;
		want = PAGE;
	}
	return -ENAMETOOLONG;
}

int
target_bytes(const struct request *rq, uint64_t address, void *buf, size_t len)
{
	for (size_t got = 0; got < len;) {
		ssize_t n =
		    read_some(rq, address + got, (char *)buf + got, len - got);

		if (n < 0)
			return (int)n;
		got += (size_t)n;
	}
	return 0;
}

static int
open_proc(const struct broker *b, pid_t tid, const char *what, int flags)
{
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), "%d/%s", tid, what);
	fd = openat(b->proc, name, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* ------------------------------------------------ what is remembered */

static void
forget(struct target *t)
{
	if (t->pidfd >= 0)
		(void)close(t->pidfd);
	if (t->cwd >= 0)
		(void)close(t->cwd);
	t->pidfd = t->cwd = -1;
	t->tid = 0;
}

static bool
alive(const struct target *t)
{
	struct pollfd p = { t->pidfd, POLLIN, 0 };

	return poll(&p, 1, 0) == 0;
}

/* Once in a request is often enough: nobody gets the number while the caller
 * waits, and that it waits is what notify_valid() finds. */
static struct target *
find(struct broker *b, const struct request *rq)
{
	for (size_t i = 0; i < TARGETS_MAX; i++) {
		struct target *t = &b->targets.rows[i];

		if (t->tid != rq->tid || t->pidfd < 0)
			continue;
		if (t->seen != rq->id && !alive(t)) {
			forget(t);
			return NULL;
		}
		t->seen = rq->id;
		t->used = ++b->targets.clock;
		return t;
	}
	return NULL;
}

/* A row for the caller, the least used one being given up; NULL when its end
 * could not be noticed. */
static struct target *
make_row(struct broker *b, const struct request *rq)
{
	struct target *t = &b->targets.rows[0];
	long pidfd = syscall(SYS_pidfd_open, rq->tid, PIDFD_OF_THREAD);

	/* Older kernels: of a process's first thread only. */
	if (pidfd < 0 && errno == EINVAL)
		pidfd = syscall(SYS_pidfd_open, rq->tid, 0);
	if (pidfd < 0)
		return NULL;
	for (size_t i = 0; i < TARGETS_MAX; i++)
		if (b->targets.rows[i].used < t->used)
			t = &b->targets.rows[i];
	forget(t);
	*t = (struct target){ rq->tid, (int)pidfd, -1, -1, false, rq->id,
		++b->targets.clock };
	/* Before it is filled, so that it is filled from this thread. */
	if (!notify_valid(b, rq->id)) {
		forget(t);
		return NULL;
	}
	return t;
}

static bool
may_remember(const struct broker *b, const struct request *rq,
    const struct target *t)
{
	return b->targets.changer == 0 || b->targets.changer == rq->tid ||
	    t->single || now_ms() - b->targets.changed_ms > SETTLE_MS;
}

void
target_changes(struct broker *b, const struct request *rq)
{
	for (size_t i = 0; i < TARGETS_MAX; i++) {
		struct target *t = &b->targets.rows[i];

		if (t->cwd >= 0)
			(void)close(t->cwd);
		t->cwd = -1;
		t->umask = -1;
	}
	b->targets.changer = rq->tid;
	b->targets.changed_ms = now_ms();
}

/* ------------------------------------------------ directories, descriptors */

static int
working_directory(struct broker *b, const struct request *rq,
    struct target_base *ret)
{
	struct target *t = find(b, rq);
	int fd;

	if (t != NULL && t->cwd >= 0) {
		*ret = (struct target_base){ t->cwd, false };
		return 0;
	}
	if (t == NULL)
		t = make_row(b, rq);
	fd = open_proc(b, rq->tid, "cwd", O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	*ret = (struct target_base){ fd, true };
	if (t != NULL && may_remember(b, rq, t)) {
		t->cwd = fd;
		ret->owned = false;
	}
	return 0;
}

int
target_base(struct broker *b, const struct request *rq, int dirfd,
    struct target_base *ret)
{
	char what[32];
	int fd;

	if (dirfd == AT_FDCWD)
		return working_directory(b, rq, ret);
	if (dirfd < 0)
		return -EBADF;
	(void)snprintf(what, sizeof(what), "fd/%d", dirfd);
	fd = open_proc(b, rq->tid, what, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	*ret = (struct target_base){ fd, true };
	return 0;
}

void
target_base_done(struct target_base *base)
{
	if (base->owned && base->fd >= 0)
		(void)close(base->fd);
	*base = (struct target_base){ -1, false };
}

int
target_fd(const struct broker *b, const struct request *rq, int fd)
{
	char what[32];

	if (fd < 0)
		return -EBADF;
	(void)snprintf(what, sizeof(what), "fd/%d", fd);
	return open_proc(b, rq->tid, what, O_PATH);
}

int
target_socket(const struct broker *b, struct request *rq, int fd)
{
	autoclose int pidfd =
	    (int)syscall(SYS_pidfd_open, rq->tid, PIDFD_OF_THREAD);
	long got;

	/* Older kernels: the process's. A thread with descriptors of its own
	 * gets a wrong one there, but none of anybody else. */
	if (pidfd < 0 && errno == EINVAL)
		pidfd = (int)syscall(SYS_pidfd_open, target_tgid(b, rq), 0);
	if (pidfd < 0)
		return -errno;
	got = syscall(SYS_pidfd_getfd, pidfd, fd, 0u);
	return got < 0 ? -errno : (int)got;
}

bool
target_has_our_root(const struct broker *b, const struct request *rq)
{
	autoclose int fd = open_proc(b, rq->tid, "root", O_PATH);
	struct stat theirs, ours;

	return fd >= 0 && fstat(fd, &theirs) == 0 &&
	    fstat(b->root, &ours) == 0 && theirs.st_dev == ours.st_dev &&
	    theirs.st_ino == ours.st_ino;
}

/* ------------------------------------------------ /proc/TID/status */

struct status {
	pid_t tgid;
	int umask;
	long threads;
};

static long
number_after(const char *text, const char *key, int base)
{
	const char *at = strstr(text, key);

	return at == NULL ? -1 : strtol(at + strlen(key), NULL, base);
}

/* The first line, Name:, is the program's own text; control bytes in it are
 * escaped by the kernel, so no line of ours can be forged. */
static int
read_status(const struct broker *b, const struct request *rq,
    struct status *ret)
{
	static char text[STATUS_BYTES];
	autoclose int fd = open_proc(b, rq->tid, "status", O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -ESRCH;
	text[n] = '\0';
	ret->tgid = (pid_t)number_after(text, "\nTgid:", 10);
	ret->umask = (int)number_after(text, "\nUmask:", 8);
	ret->threads = number_after(text, "\nThreads:", 10);
	return 0;
}

pid_t
target_tgid(const struct broker *b, struct request *rq)
{
	struct status st;

	if (rq->tgid == 0 && read_status(b, rq, &st) == 0 && st.tgid > 0)
		rq->tgid = st.tgid;
	return rq->tgid;
}

static int
umask_of(struct broker *b, struct request *rq)
{
	struct target *t = find(b, rq);
	struct status st;

	if (t != NULL && t->umask >= 0)
		return t->umask;
	if (t == NULL)
		t = make_row(b, rq);
	if (read_status(b, rq, &st) < 0 || st.umask < 0)
		return UMASK_UNKNOWN;
	if (st.tgid > 0)
		rq->tgid = st.tgid;
	if (t != NULL) {
		t->single = st.threads == 1;
		if (may_remember(b, rq, t))
			t->umask = st.umask;
	}
	return st.umask;
}

void
target_take_umask(struct broker *b, struct request *rq)
{
	mode_t mask = (mode_t)umask_of(b, rq);

	if (mask != b->umask)
		(void)umask(mask);
	b->umask = mask;
}

void
target_exe(const struct broker *b, struct request *rq, char *buf, size_t size)
{
	char name[32];
	ssize_t n;

	(void)snprintf(name, sizeof(name), "%d/exe", rq->tid);
	n = readlinkat(b->proc, name, buf, size - 1);
	buf[n < 0 ? 0 : n] = '\0';
}
