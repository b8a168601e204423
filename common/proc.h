/*
 * The child side of start-up, one order for every daemon (CONVENTIONS,
 * "A process's main"). A daemon is started by stockaded with fork and exec:
 * descriptor 3 is the channel, descriptors the table of the daemon names
 * follow, everything above is closed here.
 */
#ifndef COMMON_PROC_H
#define COMMON_PROC_H

#include <sys/types.h>

#define PROC_CHANNEL_FD 3

/*
 * First call of a daemon's main: umask 077, closes every descriptor from
 * `first_free` up, checks that descriptor 3 is a SEQPACKET socket, ignores
 * SIGPIPE, resets other signals. Exits 125 with a line on standard error when
 * the program was started by hand.
 */
void proc_begin(const char *name, int first_free);

/*
 * After the change of uid (which clears it): PR_SET_PDEATHSIG SIGKILL, then
 * compares getppid() with the parent named in `parent`, 0 to skip;
 * PR_SET_DUMPABLE 0. Returns 0 or -errno; -ESRCH when the parent is gone.
 */
int proc_bind_to_parent(pid_t parent);

/* PR_SET_DUMPABLE 0, RLIMIT_CORE 0. Returns 0 or -errno. */
int proc_undumpable(void);

/* RLIMIT_NOFILE soft = hard. Returns the resulting limit. */
unsigned long proc_raise_nofile(void);

/*
 * How many descriptors can still be opened, counted from the lowest free one:
 * the kernel gives out the lowest, so below it all are taken. A daemon refuses
 * work while fewer than a reserve are left, since a message whose descriptors
 * find no place arrives cut (MSG_CTRUNC) and ends its channel. 0 on any error.
 */
unsigned long proc_descriptors_left(void);

/*
 * Chroot to an empty directory: `dir` must be owned by root, not writable by
 * others, and empty; chdir("/"). Returns 0 or -errno (-ENOTEMPTY, -EPERM).
 */
int proc_chroot_empty(const char *dir);

/* Reports a broken start on standard error and the log, exits 1. Never for
 * anything that received bytes can cause. */
void proc_fatal(const char *fmt, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

#endif
