/*
 * The caller's terminal, and the bytes between it and a run's pty (SPEC Y5).
 *
 * How to use it: get `master` of the run's pty, tty_size_get(0, &size) for
 * sandbox.exec's rows and cols; then tty_raw(0), tty_relay(&relay), in any case
 * tty_restore(). `wake` is the connection to the service: on_wake reads it and
 * returns 1 when the run's `exit` event has come. on_signal sends the signal
 * with sandbox.signal, on_resize with sandbox.resize; on_stop and on_continue
 * send TSTP and CONT.
 *
 * Block nothing yourself: tty_relay() blocks INT TERM HUP QUIT WINCH TSTP CONT
 * while it runs and reads them from a descriptor, so no callback runs in a
 * signal handler. No descriptor of the caller is made non-blocking: they are
 * shared with the shell.
 */
#ifndef SUPERVISOR_CTL_TTY_H
#define SUPERVISOR_CTL_TTY_H

#include <stdbool.h>

struct tty_size {
	unsigned rows;
	unsigned cols;
};

/* 0 or -errno (-ENOTTY). A size of 0 x 0 is told as 24 x 80. */
int tty_size_get(int fd, struct tty_size *ret);
int tty_size_set(int fd, const struct tty_size *);

/*
 * Makes the terminal raw (cfmakeraw(3)) and remembers how it was. From the
 * first call on it is restored by exit(3) and before the process dies by any
 * signal whose disposition was the default (HUP INT QUIT TERM PIPE ALRM XCPU
 * XFSZ USR1 USR2 ABRT BUS FPE ILL SEGV SYS TRAP); only SIGKILL and _exit(2)
 * leave it raw. One terminal for each process. 0, -ENOTTY, -EBUSY (another one
 * is raw), -EAGAIN (we are in the background: nothing was changed), -errno.
 */
int tty_raw(int fd);

/* As it was; may be called at any time, twice, from a signal handler. Does
 * nothing while another process group has the terminal. */
void tty_restore(void);

struct tty_relay {
	int in; /* -1: nothing is read */
	int out; /* always there */
	int master; /* made non-blocking here; stays the caller's */
	int wake; /* -1: none. Polled for reading */
	/* 0: go on; 1: the run is over, what it wrote is still passed on;
	 * negative: tty_relay() ends with it. NULL only when wake is -1. */
	int (*on_wake)(void *arg);
	/* Called at the start, with a new size, and after SIGCONT, when `in`
	 * is a terminal. The pty's own size is set before. May be NULL. */
	void (*on_resize)(void *arg, const struct tty_size *);
	/* INT TERM HUP QUIT. NULL: the terminal is restored and the signal
	 * takes its default effect. */
	void (*on_signal)(void *arg, int signal);
	/* SIGTSTP: before we stop / after we go on. May be NULL. */
	void (*on_stop)(void *arg);
	void (*on_continue)(void *arg);
	void *arg;
};

/*
 * Passes every byte both ways until on_wake says that the run is over (without
 * `wake`: until the pty hangs up, EIO: its last user is gone); all that the run
 * wrote until then is written to `out` first. At end of file of `in`, end of
 * input is typed into a pty that is in canonical mode. SIGTSTP stops this
 * process with the terminal restored; after SIGCONT it is raw again if it was.
 * Signals that the caller ignores (nohup) are not passed.
 *
 * 0; -EPIPE when `out` is closed; -errno; what on_wake returned below 0.
 */
int tty_relay(const struct tty_relay *);

#endif
