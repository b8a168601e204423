/*
 * The caller's terminal and the relay to a run's pty; see tty.h. The bytes are
 * passed on unread: what a run writes to a terminal that it was given acts on
 * that terminal, as with ssh. It cannot push input back, because its pty is its
 * own (SPEC Y5).
 */
#include "supervisor/ctl/tty.h"

#include <sys/ioctl.h>
#include <sys/signalfd.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/size.h"

#define BUFFER 16384
/* A pipe that polls writable takes so much without blocking (pipe(7)). */
#define WRITE_MAX 4096
/* After the end of the run: a pty holds 64 KiB, then its writers wait; one that
 * outlives the run must not keep us. */
#define DRAIN_MAX (256 * 1024)
/* How often a background process looks whether it has the terminal again:
 * shells do not tell one that was running all the time. */
#define BACKGROUND_MS 300

/* ------------------------------------------------ size */

int
tty_size_get(int fd, struct tty_size *ret)
{
	struct winsize ws;

	if (ioctl(fd, TIOCGWINSZ, &ws) < 0)
		return -errno;
	ret->rows = ws.ws_row != 0 ? ws.ws_row : 24;
	ret->cols = ws.ws_col != 0 ? ws.ws_col : 80;
	return 0;
}

int
tty_size_set(int fd, const struct tty_size *size)
{
	struct winsize ws;

	if (size->rows > UINT16_MAX || size->cols > UINT16_MAX)
		return -EINVAL;
	memset(&ws, 0, sizeof(ws));
	ws.ws_row = (unsigned short)size->rows;
	ws.ws_col = (unsigned short)size->cols;
	return ioctl(fd, TIOCSWINSZ, &ws) < 0 ? -errno : 0;
}

/* ------------------------------------------------ raw mode */

/* A signal handler reads these: they are complete before `raw` is set. */
static struct termios saved;
static volatile sig_atomic_t raw_fd = -1;
static volatile sig_atomic_t raw;
static bool hooked;

static bool
in_background(int fd)
{
	pid_t group = tcgetpgrp(fd);

	/* A terminal that is not our controlling one has no say. */
	return group > 0 && group != getpgrp();
}

/* All calls here are async-signal-safe (signal-safety(7)). */
void
tty_restore(void)
{
	int error = errno;

	if (raw && !in_background(raw_fd)) {
		raw = 0;
		/* Not TCSADRAIN, which waits for a terminal that is stuck. */
		(void)tcsetattr(raw_fd, TCSANOW, &saved);
	}
	errno = error;
}

static void
on_fatal(int signal)
{
	tty_restore();
	/* SA_RESETHAND put the default back; it is blocked until we return. */
	(void)raise(signal);
}

static void
hook(void)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM,
		SIGPIPE, SIGALRM, SIGXCPU, SIGXFSZ, SIGUSR1, SIGUSR2, SIGABRT,
		SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	struct sigaction old, act;

	memset(&act, 0, sizeof(act));
	act.sa_handler = on_fatal;
	act.sa_flags = (int)SA_RESETHAND;
	(void)sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL)
			(void)sigaction(signals[i], &act, NULL);
	hooked = atexit(tty_restore) == 0;
}

int
tty_raw(int fd)
{
	struct termios now;

	if (raw)
		return raw_fd == fd ? 0 : -EBUSY;
	if (tcgetattr(fd, &now) < 0)
		return -errno;
	if (in_background(fd))
		return -EAGAIN;
	if (!hooked)
		hook();
	if (!hooked)
		return -ENOMEM;
	saved = now;
	raw_fd = fd;
	cfmakeraw(&now);
	/* Before the change: a signal in between restores what still is. */
	raw = 1;
	if (tcsetattr(fd, TCSANOW, &now) < 0) {
		int error = -errno;

		raw = 0;
		return error;
	}
	return 0;
}

/* ------------------------------------------------ relay */

struct buffer {
	char data[BUFFER];
	size_t start;
	size_t end;
};

struct relay {
	const struct tty_relay *t;
	struct buffer to_run;
	struct buffer to_user;
	int signals;
	bool was_raw;
	bool eof; /* of in; end of input is not typed yet */
	bool in_done;
	bool hung_up; /* nothing more comes from the pty */
	bool over; /* the run has ended */
	char last; /* typed into the pty */
	size_t drained;
};

static size_t
held(const struct buffer *b)
{
	return b->end - b->start;
}

/* 1: bytes came; 0: end of file; -EAGAIN; -errno. Call with room only. */
static int
fill(struct buffer *b, int fd)
{
	ssize_t n;

	if (b->start == b->end)
		b->start = b->end = 0;
	n = read(fd, b->data + b->end, sizeof(b->data) - b->end);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	b->end += (size_t)n;
	return n > 0;
}

static bool
has_room(const struct buffer *b)
{
	return b->start == b->end || b->end < sizeof(b->data);
}

/* 0, -EAGAIN or -errno. */
static int
drain(struct buffer *b, int fd)
{
	size_t len = held(b) < WRITE_MAX ? held(b) : WRITE_MAX;
	ssize_t n = write(fd, b->data + b->start, len);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	b->start += (size_t)n;
	return 0;
}

/* End of input for a program that reads lines: VEOF ends a line that has begun,
 * and a second one is the end itself. A raw pty knows no end of input. */
static void
type_eof(struct relay *r)
{
	struct buffer *b = &r->to_run;
	struct termios now;

	r->eof = false;
	r->in_done = true;
	if (tcgetattr(r->t->master, &now) < 0 || !(now.c_lflag & ICANON))
		return;
	b->start = b->end = 0;
	if (r->last != '\n')
		b->data[b->end++] = (char)now.c_cc[VEOF];
	b->data[b->end++] = (char)now.c_cc[VEOF];
}

static void
read_in(struct relay *r)
{
	int got = fill(&r->to_run, r->t->in);

	/* EIO: the terminal is gone; SIGHUP tells the rest. */
	if (got == 0 || (got < 0 && got != -EAGAIN))
		r->eof = true;
}

static void
read_master(struct relay *r)
{
	size_t before = held(&r->to_user);
	int got = fill(&r->to_user, r->t->master);

	if (got > 0 && r->over)
		r->drained += held(&r->to_user) - before;
	/* EIO: the last user has closed it and all was read (pty(7)). */
	if (got == 0 || (got < 0 && got != -EAGAIN))
		r->hung_up = true;
	/* The kernel has moved all written bytes here before EAGAIN. */
	if (r->over && (got == -EAGAIN || r->drained >= DRAIN_MAX))
		r->hung_up = true;
}

static void
write_master(struct relay *r)
{
	char last = r->to_run.data[r->to_run.start];
	size_t start = r->to_run.start;
	int error = drain(&r->to_run, r->t->master);

	if (error != 0 && error != -EAGAIN) {
		/* Nobody reads it any more; what it wrote is still read. */
		r->to_run.start = r->to_run.end;
		r->in_done = true;
		return;
	}
	if (r->to_run.start != start)
		last = r->to_run.data[r->to_run.start - 1];
	r->last = last;
}

/* ------------------------------------------------ signals */

static void
send_size(const struct relay *r)
{
	struct tty_size size;

	if (r->t->in < 0 || tty_size_get(r->t->in, &size) != 0)
		return;
	(void)tty_size_set(r->t->master, &size);
	if (r->t->on_resize != NULL)
		r->t->on_resize(r->t->arg, &size);
}

static void
make_raw_again(const struct relay *r)
{
	if (r->was_raw && !raw)
		(void)tty_raw(raw_fd);
}

static void
take_winch(struct relay *r, int signal)
{
	(void)signal;
	send_size(r);
}

/* The shell has set the terminal to its own liking meanwhile, so raw mode is
 * made anew: at once, or when the terminal is ours again. */
static void
take_continue(struct relay *r, int signal)
{
	(void)signal;
	if (raw && in_background(raw_fd))
		raw = 0;
	tty_restore();
	make_raw_again(r);
	send_size(r);
	if (r->t->on_continue != NULL)
		r->t->on_continue(r->t->arg);
}

/* The signal itself, let through with its default effect: the kernel drops it
 * where nobody could continue us (an orphaned process group), which SIGSTOP
 * does not spare. So we go on behind it with or without a stop. */
static void
take_stop(struct relay *r, int signal)
{
	const struct timespec none = { 0, 0 };
	struct sigaction act, old;
	sigset_t set;

	if (r->t->on_stop != NULL)
		r->t->on_stop(r->t->arg);
	tty_restore();
	memset(&act, 0, sizeof(act));
	act.sa_handler = SIG_DFL;
	(void)sigaction(signal, &act, &old);
	(void)raise(signal);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, signal);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)sigaction(signal, &old, NULL);
	/* The SIGCONT that woke us is answered here. */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCONT);
	(void)sigtimedwait(&set, NULL, &none);
	take_continue(r, SIGCONT);
}

static void
take_other(struct relay *r, int signal)
{
	struct sigaction act;
	sigset_t set;

	if (r->t->on_signal != NULL) {
		r->t->on_signal(r->t->arg, signal);
		return;
	}
	tty_restore();
	memset(&act, 0, sizeof(act));
	act.sa_handler = SIG_DFL;
	(void)sigaction(signal, &act, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, signal);
	(void)raise(signal);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static const struct {
	int signal;
	void (*take)(struct relay *, int signal);
} signal_rows[] = {
	{ SIGWINCH, take_winch },
	{ SIGTSTP, take_stop },
	{ SIGCONT, take_continue },
	{ SIGINT, take_other },
	{ SIGTERM, take_other },
	{ SIGHUP, take_other },
	{ SIGQUIT, take_other },
};

/* nohup(1) and the like: a blocked signal comes although it is ignored. */
static bool
is_ignored(int signal)
{
	struct sigaction act;

	return sigaction(signal, NULL, &act) == 0 &&
	    !(act.sa_flags & SA_SIGINFO) && act.sa_handler == SIG_IGN;
}

static void
read_signals(struct relay *r)
{
	struct signalfd_siginfo info;

	while (read(r->signals, &info, sizeof(info)) == sizeof(info))
		for (size_t i = 0; i < ARRAY_LEN(signal_rows); i++)
			if (signal_rows[i].signal == (int)info.ssi_signo &&
			    !is_ignored(signal_rows[i].signal))
				signal_rows[i].take(r, signal_rows[i].signal);
}

/* ------------------------------------------------ loop */

enum { AT_IN, AT_OUT, AT_MASTER, AT_WAKE, AT_SIGNALS, AT_COUNT };

static void
choose(const struct relay *r, bool background, struct pollfd p[AT_COUNT])
{
	const struct tty_relay *t = r->t;
	bool read_it = !r->in_done && !r->eof && !r->over && !background &&
	    has_room(&r->to_run);
	short master = 0;

	if (!r->hung_up && has_room(&r->to_user))
		master |= POLLIN;
	if (!r->hung_up && !r->over && held(&r->to_run) > 0)
		master |= POLLOUT;
	p[AT_IN] = (struct pollfd){ read_it ? t->in : -1, POLLIN, 0 };
	p[AT_OUT] =
	    (struct pollfd){ held(&r->to_user) > 0 ? t->out : -1, POLLOUT, 0 };
	p[AT_MASTER] =
	    (struct pollfd){ master != 0 ? t->master : -1, master, 0 };
	p[AT_WAKE] = (struct pollfd){ r->over ? -1 : t->wake, POLLIN, 0 };
	p[AT_SIGNALS] = (struct pollfd){ r->signals, POLLIN, 0 };
}

static int
serve(struct relay *r, const struct pollfd p[AT_COUNT])
{
	const struct tty_relay *t = r->t;
	int error;

	if (p[AT_SIGNALS].revents != 0)
		read_signals(r);
	if (p[AT_OUT].revents != 0) {
		error = drain(&r->to_user, t->out);
		if (error != 0 && error != -EAGAIN)
			return error;
	}
	if (p[AT_MASTER].revents & POLLOUT)
		write_master(r);
	/* Hang-up is told by read(2), after the last byte. */
	if ((p[AT_MASTER].revents & (POLLIN | POLLHUP | POLLERR)) &&
	    has_room(&r->to_user))
		read_master(r);
	if (p[AT_IN].revents != 0)
		read_in(r);
	if (r->eof && held(&r->to_run) == 0)
		type_eof(r);
	if (p[AT_WAKE].revents != 0) {
		error = t->on_wake(t->arg);
		if (error < 0)
			return error;
		r->over = error > 0;
		/* Somebody may have opened the pty again after a hang-up. */
		if (r->over)
			r->hung_up = false;
	}
	return 0;
}

/* A run that has only closed its terminal goes on, and its end is told by the
 * service. */
static bool
is_done(const struct relay *r)
{
	return r->hung_up && held(&r->to_user) == 0 &&
	    (r->over || r->t->wake < 0);
}

static int
loop(struct relay *r)
{
	const struct tty_relay *t = r->t;
	struct pollfd p[AT_COUNT];
	int error = 0;

	while (error == 0 && !is_done(r)) {
		bool background =
		    t->in >= 0 && isatty(t->in) && in_background(t->in);
		int timeout = background ? BACKGROUND_MS : -1;

		if (!background)
			make_raw_again(r);
		/* Do not wait for what a finished run will never write. */
		if (r->over && has_room(&r->to_user) && !r->hung_up) {
			read_master(r);
			timeout = 0;
		}
		choose(r, background, p);
		if (poll(p, AT_COUNT, timeout) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		error = serve(r, p);
	}
	return error;
}

int
tty_relay(const struct tty_relay *t)
{
	autofree struct relay *r = calloc(1, sizeof(*r));
	autoclose int signals = -1;
	sigset_t set, before;
	int flags, error;

	if (r == NULL)
		return -ENOMEM;
	if (t->wake >= 0 && t->on_wake == NULL)
		return -EINVAL;
	flags = fcntl(t->master, F_GETFL);
	if (flags < 0 || fcntl(t->master, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signal_rows); i++)
		(void)sigaddset(&set, signal_rows[i].signal);
	/* SIGPIPE too: a closed `out` is an error to return. */
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return -errno;
	(void)sigaddset(&set, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &set, &before) < 0)
		return -errno;
	r->t = t;
	r->signals = signals;
	r->was_raw = raw != 0;
	r->in_done = t->in < 0;
	r->last = '\n';
	/* A change before the signals were blocked has told nobody. */
	send_size(r);
	error = loop(r);
	if (error == -EPIPE && !sigismember(&before, SIGPIPE)) {
		/* Ours alone: it must not come when it is let in again. */
		sigset_t pipe_only;
		const struct timespec none = { 0, 0 };

		(void)sigemptyset(&pipe_only);
		(void)sigaddset(&pipe_only, SIGPIPE);
		while (
		    sigtimedwait(&pipe_only, NULL, &none) < 0 && errno == EINTR)
			continue;
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return error;
}
