/*
 * The terminal helper with pty pairs: settings come back in every way a process
 * can end, and every byte arrives both ways.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/size.h"
#include "supervisor/ctl/tty.h"

#define LOAD 300000

static void
open_pair(int *ret_master, int *ret_slave)
{
	assert_int_equal(openpty(ret_master, ret_slave, NULL, NULL, NULL), 0);
}

/* For children too, which have no assertions. */
static void
tell(int fd, char c)
{
	if (write(fd, &c, 1) != 1)
		_exit(7);
}

static bool
is_raw(int fd)
{
	struct termios now;

	assert_int_equal(tcgetattr(fd, &now), 0);
	return !(now.c_lflag & ICANON) && !(now.c_lflag & ISIG);
}

static int
wait_for(pid_t pid, int options)
{
	int status;

	assert_int_equal(waitpid(pid, &status, options), pid);
	return status;
}

static void
set_raw(int fd)
{
	struct termios now;

	(void)tcgetattr(fd, &now);
	cfmakeraw(&now);
	(void)tcsetattr(fd, TCSANOW, &now);
}

/* ------------------------------------------------ raw mode */

/* A child that makes the terminal raw, tells so, and ends by a signal, by
 * exit(3) (0) or by _exit(2) (-1). */
static bool
raw_after(int end)
{
	int master, slave, told[2];
	struct termios before, after;
	char c;
	pid_t pid;

	open_pair(&master, &slave);
	assert_int_equal(tcgetattr(slave, &before), 0);
	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (tty_raw(slave) != 0 || !is_raw(slave))
			_exit(9);
		tell(told[1], 'r');
		if (end > 0)
			(void)raise(end);
		if (end < 0)
			_exit(0);
		exit(0);
	}
	assert_int_equal(read(told[0], &c, 1), 1);
	{
		int status = wait_for(pid, 0);

		if (end > 0)
			assert_true(
			    WIFSIGNALED(status) && WTERMSIG(status) == end);
		else
			assert_true(
			    WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	assert_int_equal(tcgetattr(slave, &after), 0);
	(void)close(master);
	(void)close(slave);
	(void)close(told[0]);
	(void)close(told[1]);
	return after.c_lflag != before.c_lflag ||
	    after.c_iflag != before.c_iflag || after.c_oflag != before.c_oflag;
}

static void
the_terminal_is_restored_by_exit_and_signals(void **state)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM,
		SIGPIPE, SIGALRM, SIGUSR1, SIGXCPU };

	(void)state;
	assert_false(raw_after(0));
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		assert_false(raw_after(signals[i]));
}

/* Twin: what cannot be caught leaves it raw, so the test would see it. */
static void
only_kill_and_underscore_exit_leave_it_raw(void **state)
{
	(void)state;
	assert_true(raw_after(SIGKILL));
	assert_true(raw_after(-1));
}

static void
raw_and_restore_can_be_repeated(void **state)
{
	int master, slave, other_master, other, file;

	(void)state;
	open_pair(&master, &slave);
	open_pair(&other_master, &other);
	tty_restore();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tty_raw(slave), 0);
		assert_int_equal(tty_raw(slave), 0);
		assert_int_equal(tty_raw(other), -EBUSY);
		assert_true(is_raw(slave));
		tty_restore();
		tty_restore();
		assert_false(is_raw(slave));
	}
	file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(tty_raw(file), -ENOTTY);
	(void)close(file);
	(void)close(master);
	(void)close(slave);
	(void)close(other_master);
	(void)close(other);
}

static void
sizes_pass(void **state)
{
	const struct tty_size set = { 50, 132 }, wide = { 70000, 1 };
	struct tty_size got;
	int master, slave;

	(void)state;
	open_pair(&master, &slave);
	assert_int_equal(tty_size_get(slave, &got), 0);
	assert_int_equal(got.rows, 24);
	assert_int_equal(got.cols, 80);
	assert_int_equal(tty_size_set(master, &set), 0);
	assert_int_equal(tty_size_set(master, &wide), -EINVAL);
	assert_int_equal(tty_size_get(slave, &got), 0);
	assert_int_equal(got.rows, 50);
	assert_int_equal(got.cols, 132);
	(void)close(master);
	(void)close(slave);
}

/* ------------------------------------------------ relay */

static char
pattern(size_t i)
{
	return (char)(i * 7 + i / 251);
}

static int
pattern_file(void)
{
	int fd = memfd_create("pattern", MFD_CLOEXEC);
	char *p = malloc(LOAD);

	assert_true(fd >= 0 && p != NULL);
	for (size_t i = 0; i < LOAD; i++)
		p[i] = pattern(i);
	assert_int_equal(write(fd, p, LOAD), LOAD);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	free(p);
	return fd;
}

/* The run: reads all, checks it, then writes all and ends. */
_Noreturn static void
run_both_ways(int slave)
{
	char c[4096];
	size_t got = 0;

	while (got < LOAD) {
		ssize_t n = read(slave, c, sizeof(c));

		if (n <= 0)
			_exit(2);
		for (ssize_t i = 0; i < n; i++)
			if (c[i] != pattern(got++))
				_exit(3);
	}
	for (size_t done = 0; done < LOAD;) {
		size_t n = LOAD - done < sizeof(c) ? LOAD - done : sizeof(c);
		ssize_t w;

		for (size_t i = 0; i < n; i++)
			c[i] = pattern(done + i);
		w = write(slave, c, n);
		if (w <= 0)
			_exit(4);
		done += (size_t)w;
	}
	_exit(0);
}

static void
every_byte_arrives_both_ways(void **state)
{
	int master, slave, in, out;
	struct tty_relay relay;
	char *p;
	pid_t pid;

	(void)state;
	open_pair(&master, &slave);
	set_raw(slave);
	in = pattern_file();
	out = memfd_create("out", MFD_CLOEXEC);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(master);
		run_both_ways(slave);
	}
	(void)close(slave);
	relay = (struct tty_relay){ .in = in,
		.out = out,
		.master = master,
		.wake = -1 };
	assert_int_equal(tty_relay(&relay), 0);
	assert_int_equal(WEXITSTATUS(wait_for(pid, 0)), 0);
	assert_int_equal(lseek(out, 0, SEEK_END), LOAD);
	p = mmap(NULL, LOAD, PROT_READ, MAP_SHARED, out, 0);
	assert_true(p != MAP_FAILED);
	for (size_t i = 0; i < LOAD; i++)
		if (p[i] != pattern(i))
			fail_msg("byte %zu differs", i);
	(void)munmap(p, LOAD);
	(void)close(in);
	(void)close(out);
	(void)close(master);
}

/* What `program` makes of the input in a pty of default settings. */
static void
converse(const char *input, const char *want)
{
	int master, slave, out, feed[2];
	struct termios now;
	struct tty_relay relay;
	char text[256];
	ssize_t n;
	pid_t pid;

	open_pair(&master, &slave);
	assert_int_equal(tcgetattr(slave, &now), 0);
	now.c_lflag &= ~(tcflag_t)ECHO;
	assert_int_equal(tcsetattr(slave, TCSANOW, &now), 0);
	assert_int_equal(pipe(feed), 0);
	assert_int_equal(write(feed[1], input, strlen(input)),
	    (ssize_t)strlen(input));
	(void)close(feed[1]);
	out = memfd_create("out", MFD_CLOEXEC);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(master);
		(void)dup2(slave, 0);
		(void)dup2(slave, 1);
		(void)close(slave);
		(void)execlp("cat", "cat", (char *)NULL);
		_exit(127);
	}
	(void)close(slave);
	relay = (struct tty_relay){ .in = feed[0],
		.out = out,
		.master = master,
		.wake = -1 };
	assert_int_equal(tty_relay(&relay), 0);
	assert_int_equal(wait_for(pid, 0), 0);
	n = pread(out, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	assert_string_equal(text, want);
	(void)close(feed[0]);
	(void)close(out);
	(void)close(master);
}

static void
end_of_file_is_typed(void **state)
{
	(void)state;
	converse("line\n", "line\r\n");
	converse("half", "half");
	converse("", "");
}

static void
a_closed_output_is_an_error(void **state)
{
	int master, slave, out[2];
	struct tty_relay relay;

	(void)state;
	open_pair(&master, &slave);
	assert_int_equal(pipe(out), 0);
	(void)close(out[0]);
	assert_int_equal(write(slave, "x", 1), 1);
	relay = (struct tty_relay){ .in = -1,
		.out = out[1],
		.master = master,
		.wake = -1 };
	assert_int_equal(tty_relay(&relay), -EPIPE);
	(void)close(out[1]);
	(void)close(master);
	(void)close(slave);
}

/* ------------------------------------------------ the service's side */

struct seen {
	int wake;
	int calls;
	int end_at; /* answer 1 at this call */
	int send; /* this signal to ourselves at the first */
	unsigned resized;
	unsigned rows;
	int signal;
	int report; /* descriptor: a letter for each callback */
};

static int
on_wake(void *arg)
{
	struct seen *s = arg;
	char c;

	if (read(s->wake, &c, 1) != 1)
		return -EIO;
	s->calls++;
	if (s->calls == 1 && s->send != 0)
		(void)kill(getpid(), s->send);
	return c == 'q' ? 1 : c == 'e' ? -ECONNRESET : 0;
}

static void
on_resize(void *arg, const struct tty_size *size)
{
	struct seen *s = arg;

	s->resized++;
	s->rows = size->rows;
	if (s->report > 0)
		tell(s->report, 'w');
}

static void
on_signal(void *arg, int signal)
{
	struct seen *s = arg;

	s->signal = signal;
	if (s->report > 0)
		tell(s->report, 's');
}

static void
on_stop(void *arg)
{
	const struct seen *s = arg;

	tell(s->report, 't');
}

static void
on_continue(void *arg)
{
	const struct seen *s = arg;

	tell(s->report, 'c');
}

struct stage {
	int master, slave; /* of the run */
	int term, user; /* our terminal: what the person has, ours */
	int wake[2], report[2];
	struct seen seen;
	struct tty_relay relay;
};

static void
stage_open(struct stage *g)
{
	memset(g, 0, sizeof(*g));
	open_pair(&g->master, &g->slave);
	open_pair(&g->term, &g->user);
	assert_int_equal(pipe(g->wake), 0);
	assert_int_equal(pipe(g->report), 0);
	g->seen.wake = g->wake[0];
	g->seen.report = g->report[1];
	g->relay = (struct tty_relay){ .in = g->user,
		.out = g->user,
		.master = g->master,
		.wake = g->wake[0],
		.on_wake = on_wake,
		.on_resize = on_resize,
		.on_signal = on_signal,
		.on_stop = on_stop,
		.on_continue = on_continue,
		.arg = &g->seen };
}

static void
stage_close(struct stage *g)
{
	int fds[] = { g->master, g->slave, g->term, g->user, g->wake[0],
		g->wake[1], g->report[0], g->report[1] };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		(void)close(fds[i]);
}

/* The next letter, or 0 after five seconds. */
static char
letter(const struct stage *g)
{
	struct pollfd p = { g->report[0], POLLIN, 0 };
	char c = 0;

	if (poll(&p, 1, 5000) != 1 || read(g->report[0], &c, 1) != 1)
		return 0;
	return c;
}

static pid_t
start_relay(struct stage *g)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int error;

		/* A group of our own, so that it is not orphaned. */
		(void)setpgid(0, 0);
		(void)close(g->slave);
		if (tty_raw(g->user) != 0)
			_exit(9);
		error = tty_relay(&g->relay);
		tty_restore();
		_exit(error == 0 ? 0 : 8);
	}
	return pid;
}

static void
the_end_of_the_run_ends_the_relay_after_its_last_byte(void **state)
{
	struct stage g;
	char text[64];
	ssize_t n;
	int out;

	(void)state;
	stage_open(&g);
	out = memfd_create("out", MFD_CLOEXEC);
	g.relay.out = out;
	set_raw(g.slave);
	/* Written before the end, and the pty stays open in another hand. */
	assert_int_equal(write(g.slave, "last words", 10), 10);
	assert_int_equal(write(g.wake[1], "q", 1), 1);
	assert_int_equal(tty_relay(&g.relay), 0);
	n = pread(out, text, sizeof(text), 0);
	assert_int_equal(n, 10);
	assert_memory_equal(text, "last words", 10);
	assert_int_equal(write(g.wake[1], "e", 1), 1);
	assert_int_equal(tty_relay(&g.relay), -ECONNRESET);
	(void)close(out);
	stage_close(&g);
}

static void
a_hang_up_waits_for_the_end_that_the_service_tells(void **state)
{
	struct stage g;
	pid_t pid;
	int status;

	(void)state;
	stage_open(&g);
	pid = start_relay(&g);
	assert_int_equal(letter(&g), 'w');
	(void)close(g.slave);
	g.slave = -1;
	assert_int_equal(kill(pid, SIGWINCH), 0);
	assert_int_equal(letter(&g), 'w');
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(write(g.wake[1], "q", 1), 1);
	assert_int_equal(wait_for(pid, 0), 0);
	stage_close(&g);
}

static void
a_new_size_reaches_the_run(void **state)
{
	const struct tty_size size = { 33, 77 };
	struct tty_size got;
	struct stage g;

	(void)state;
	stage_open(&g);
	assert_int_equal(tty_size_set(g.term, &size), 0);
	g.seen.send = SIGWINCH;
	assert_int_equal(write(g.wake[1], "xq", 2), 2);
	assert_int_equal(tty_relay(&g.relay), 0);
	assert_int_equal(g.seen.resized, 2);
	assert_int_equal(g.seen.rows, 33);
	assert_int_equal(tty_size_get(g.slave, &got), 0);
	assert_int_equal(got.cols, 77);
	stage_close(&g);
}

static void
signals_go_to_the_callback_and_ignored_ones_nowhere(void **state)
{
	struct stage g;
	sigset_t before, after;

	(void)state;
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &before), 0);
	stage_open(&g);
	g.seen.send = SIGTERM;
	assert_int_equal(write(g.wake[1], "xq", 2), 2);
	assert_int_equal(tty_relay(&g.relay), 0);
	assert_int_equal(g.seen.signal, SIGTERM);
	stage_close(&g);
	stage_open(&g);
	(void)signal(SIGHUP, SIG_IGN);
	g.seen.send = SIGHUP;
	assert_int_equal(write(g.wake[1], "xq", 2), 2);
	assert_int_equal(tty_relay(&g.relay), 0);
	(void)signal(SIGHUP, SIG_DFL);
	assert_int_equal(g.seen.signal, 0);
	stage_close(&g);
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &after), 0);
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&before, i),
		    sigismember(&after, i));
}

static void
without_a_callback_a_signal_takes_effect(void **state)
{
	struct stage g;
	int status;
	pid_t pid;

	(void)state;
	stage_open(&g);
	g.relay.on_signal = NULL;
	pid = start_relay(&g);
	assert_int_equal(letter(&g), 'w');
	assert_true(is_raw(g.user));
	assert_int_equal(kill(pid, SIGTERM), 0);
	status = wait_for(pid, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_false(is_raw(g.user));
	stage_close(&g);
}

/* Twice: by SIGTSTP, then by SIGSTOP, with the settings changed meanwhile. */
static void
a_stop_gives_the_terminal_back_and_takes_it_again(void **state)
{
	struct stage g;
	int status;
	pid_t pid;

	(void)state;
	stage_open(&g);
	pid = start_relay(&g);
	assert_int_equal(letter(&g), 'w');
	assert_int_equal(kill(pid, SIGTSTP), 0);
	status = wait_for(pid, WUNTRACED);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
	assert_int_equal(letter(&g), 't');
	assert_false(is_raw(g.user));
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(letter(&g), 'w');
	assert_int_equal(letter(&g), 'c');
	assert_true(is_raw(g.user));
	assert_int_equal(kill(pid, SIGSTOP), 0);
	status = wait_for(pid, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	{
		struct termios sane;

		assert_int_equal(tcgetattr(g.user, &sane), 0);
		sane.c_lflag |= ICANON | ISIG;
		assert_int_equal(tcsetattr(g.user, TCSANOW, &sane), 0);
	}
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(letter(&g), 'w');
	assert_int_equal(letter(&g), 'c');
	assert_true(is_raw(g.user));
	assert_int_equal(write(g.wake[1], "q", 1), 1);
	assert_int_equal(wait_for(pid, 0), 0);
	assert_false(is_raw(g.user));
	stage_close(&g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_terminal_is_restored_by_exit_and_signals),
		cmocka_unit_test(only_kill_and_underscore_exit_leave_it_raw),
		cmocka_unit_test(raw_and_restore_can_be_repeated),
		cmocka_unit_test(sizes_pass),
		cmocka_unit_test(every_byte_arrives_both_ways),
		cmocka_unit_test(end_of_file_is_typed),
		cmocka_unit_test(a_closed_output_is_an_error),
		cmocka_unit_test(
		    the_end_of_the_run_ends_the_relay_after_its_last_byte),
		cmocka_unit_test(
		    a_hang_up_waits_for_the_end_that_the_service_tells),
		cmocka_unit_test(a_new_size_reaches_the_run),
		cmocka_unit_test(
		    signals_go_to_the_callback_and_ignored_ones_nowhere),
		cmocka_unit_test(without_a_callback_a_signal_takes_effect),
		cmocka_unit_test(
		    a_stop_gives_the_terminal_back_and_takes_it_again),
	};

	/* nohup(1) and a shell's "&" ignore these. */
	(void)signal(SIGHUP, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGQUIT, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
