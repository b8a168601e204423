/*
 * The context of stockade-broker and of one request, shared by its modules.
 *
 * The broker is one thread: it takes a trapped system call of the run, judges
 * the names in it and performs it by descriptors that it has pinned, or lets
 * the kernel go on with it. Whoever makes the calls is hostile and may change
 * the memory that a call points to, its descriptors and its directories at any
 * moment: so everything is read once, and what was judged is what is acted on.
 * Letting go on (ANSWER_CONTINUE) is never a permission: the kernel reads the
 * path again, and Landlock refuses every write in a guarded root then.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcherd/broker/denial.h"
#include "launcherd/broker/fifo.h"
#include "launcherd/broker/target.h"

struct broker;
struct guard;
struct request;

/*
 * What a call's handler returns: 0 or one of these, or -errno for the caller.
 */
enum answer {
	ANSWER_DONE = 0,
	ANSWER_CONTINUE = 1, /* the kernel does the call itself */
	ANSWER_FD = 2, /* rq->fd is handed over, and closed */
	ANSWER_LATER = 3, /* waits in fifo.c */
	ANSWER_GONE = 4 /* the caller is dead or interrupted */
};

/* One row of calls.def: which arguments are what, -1 for none. */
struct call {
	const char *name;
	int nr;
	int (*fn)(struct broker *, struct request *);
	int dir; /* descriptor of a directory, else the working directory */
	int path;
	int dir2;
	int path2;
	int extra; /* flags, mode, length: the handler knows */
};

struct request {
	uint64_t id;
	pid_t tid;
	pid_t tgid; /* 0 until target_tgid() */
	uint64_t args[6];
	const struct call *call;
	int fd; /* ANSWER_FD */
	bool fd_cloexec;
};

struct broker {
	int listener;
	int root; /* "/", O_PATH */
	int proc; /* "/proc", O_PATH */
	int self_fd; /* "/proc/self/fd", O_PATH: reopening by number */
	pid_t self;
	mode_t umask; /* what umask(2) was set to last */
	bool chrooted; /* a process of the run has asked for chroot(2) */
	struct guard *guard;
	struct target_cache targets;
	struct denials denials;
	struct fifos fifos;
	bool freezing; /* the run's processes are; see fifo.c */
};

#endif
