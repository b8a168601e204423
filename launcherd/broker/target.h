/*
 * What a request's caller has: memory, descriptors, working directory, umask.
 *
 * A thread may have its own of each, so everything is asked by thread id, never
 * by process id. Nothing here is true for longer than until notify_valid() is
 * asked afterwards.
 */
#ifndef BROKER_TARGET_H
#define BROKER_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct broker;
struct request;

#define TARGETS_MAX 16

/* What is remembered of a thread; fd -1: not in use. */
struct target {
	pid_t tid;
	int pidfd; /* ended: the number may be another's by now */
	int cwd; /* -1: not known */
	int umask; /* -1: not known */
	bool single; /* of a process with one thread, when it was asked */
	uint64_t seen; /* the request in which it was alive */
	uint64_t used;
};

/*
 * Emptied at every trapped umask, chdir, fchdir and chroot of anybody, because
 * tasks may share what these change. The caller makes its change a little
 * later; until then (SETTLE_MS) nothing is remembered for tasks that may share
 * it with that caller.
 */
struct target_cache {
	struct target rows[TARGETS_MAX];
	uint64_t clock;
	pid_t changer;
	int64_t changed_ms;
};

/* A directory: fd is closed by target_base_done() if it is owned. */
struct target_base {
	int fd;
	bool owned;
};

void target_init(struct target_cache *);

/* Copies a string of at most size - 1 bytes with its NUL. Length or -errno
 * (-EFAULT, -ENAMETOOLONG, -EPERM, -ESRCH). */
ptrdiff_t
target_string(const struct request *, uint64_t address, char *buf, size_t size);
/* Exactly len bytes: 0 or -errno. */
int
target_bytes(const struct request *, uint64_t address, void *buf, size_t len);

/* Where a relative path of the call begins: dirfd or, with AT_FDCWD, the
 * working directory. -errno when that is no directory. */
int target_base(struct broker *, const struct request *, int dirfd,
    struct target_base *ret);
void target_base_done(struct target_base *);

/* O_PATH descriptor of what the caller has open as `fd`; -errno. */
int target_fd(const struct broker *, const struct request *, int fd);

/* The socket itself; -errno. */
int target_socket(const struct broker *, struct request *, int fd);

/* Process id of the caller's process, 0 when it is gone. */
pid_t target_tgid(const struct broker *, struct request *);

/* Sets the broker's umask to the caller's; to 077 when it cannot be told. */
void target_take_umask(struct broker *, struct request *);

/* Whether the caller's root directory is the run's. */
bool target_has_our_root(const struct broker *, const struct request *);

/* The program's path as the kernel tells it; empty when unknown. */
void
target_exe(const struct broker *, struct request *, char *buf, size_t size);

/* A call that changes umask, working directory or root was trapped. */
void target_changes(struct broker *, const struct request *);

#endif
