/*
 * See exec.h. The plan may be anything and the working directory, the program
 * and the search path belong to the run: the child opens them with the run's
 * ids under its confinement, so that a hostile one gains what the run has.
 * init itself opens nothing by a path that the run can change but /dev/ptmx,
 * which lies on a file system the run cannot mount over.
 */
#include "launcherd/init/exec.h"

#include <sys/ioctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/memfd.h"
#include "protocol/plan.h"

#define REPORT_FD 3

extern char **environ;

/* The arrays of one plan at a time; init is single-threaded and a child has
 * its own copy. */
static struct exec_plan plan;

static const char *const step_names[EXEC_STEP_COUNT] = {
	[EXEC_STEP_STDIO] = "stdio",
	[EXEC_STEP_TTY] = "tty",
	[EXEC_STEP_CWD] = "cwd",
	[EXEC_STEP_EXEC] = "exec",
};

const char *
exec_step_name(uint32_t step)
{
	return step_names[step < EXEC_STEP_COUNT ? step : EXEC_STEP_EXEC];
}

static int
pty_settings(int master, uint16_t rows, uint16_t cols)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };
	struct termios t;

	if (rows > 0 && cols > 0 && ioctl(master, TIOCSWINSZ, &size) < 0)
		return -errno;
	if (tcgetattr(master, &t) < 0)
		return -errno;
	/* Erase takes a whole character away; every terminal today is UTF-8. */
	t.c_iflag |= IUTF8;
	return tcsetattr(master, TCSANOW, &t) < 0 ? -errno : 0;
}

/* TIOCGPTPEER opens the other end without a path, ioctl_tty(2). */
static int
pty_open(const struct exec_ask *ask, int *ret_master, int *ret_slave)
{
	autoclose int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	autoclose int slave = -1;
	int unlocked = 0, r;

	if (master < 0)
		return -errno;
	if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	r = pty_settings(master, ask->rows, ask->cols);
	if (r < 0)
		return r;
	*ret_master = take_fd(&master);
	*ret_slave = take_fd(&slave);
	return 0;
}

static _Noreturn void
child_fail(enum exec_step step)
{
	struct exec_report report = { errno, step };
	ssize_t n = write(REPORT_FD, &report, sizeof(report));

	_exit(n == (ssize_t)sizeof(report) ? 127 : 126);
}

/* init has no handlers and ignores nothing (main.c): only the mask is left. */
static void
child_signals(void)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Descriptors 0..2 from `stdio`, which are all above 3, the report on 3, the
 * rest closed: neither the channel nor anything of another command is left.
 */
static void
child_descriptors(const int *stdio, int report)
{
	if (dup3(report, REPORT_FD, O_CLOEXEC) < 0)
		_exit(126);
	for (int i = 0; i < EXEC_STDIO; i++)
		if (dup2(stdio[i], i) < 0)
			child_fail(EXEC_STEP_STDIO);
	if (close_range(REPORT_FD + 1, ~0u, 0) < 0)
		child_fail(EXEC_STEP_STDIO);
}

static _Noreturn void
child_run(const struct exec_ask *ask, const int *stdio, int report)
{
	union {
		const char *const *in;
		char **out;
	} argv = { .in = plan.argv }, env = { .in = plan.env };

	child_descriptors(stdio, report);
	child_signals();
	if (setsid() < 0)
		child_fail(EXEC_STEP_STDIO);
	/* Input may be the tty alone: error output may be the client's own. */
	if (ask->tty && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
		child_fail(EXEC_STEP_TTY);
	if (chdir(plan.cwd) < 0)
		child_fail(EXEC_STEP_CWD);
	environ = env.out;
	(void)execvpe(plan.argv[0], argv.out, env.out);
	child_fail(EXEC_STEP_EXEC);
}

static int
start(const struct exec_ask *ask, const int *stdio, struct exec_child *ret)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		int e = errno;

		close_all(ends, 2);
		return -e;
	}
	if (pid == 0)
		child_run(ask, stdio, ends[1]);
	(void)close(ends[1]);
	ret->pid = pid;
	ret->report = ends[0];
	return 0;
}

int
exec_start(const struct exec_ask *ask, struct exec_child *ret,
    const char **ret_step)
{
	int stdio[EXEC_STDIO] = { ask->stdio[0], ask->stdio[1], ask->stdio[2] };
	autoclose int master = -1, slave = -1;
	const char *field = NULL;
	struct memfd_map map;
	int r;

	*ret_step = "plan";
	r = memfd_open_map(ask->plan_fd, PLAN_BYTES_MAX, &map);
	if (r < 0)
		return r;
	r = exec_plan_decode(map.data, map.len, &plan, &field);
	if (r == 0 && plan.nargv == 0)
		r = -EINVAL;
	if (r == 0 && ask->tty) {
		*ret_step = "tty";
		r = pty_open(ask, &master, &slave);
		stdio[0] = stdio[1] = slave;
		if (stdio[2] < 0)
			stdio[2] = slave;
	}
	if (r == 0) {
		*ret_step = "fork";
		r = start(ask, stdio, ret);
	}
	memfd_unmap(&map);
	if (r == 0)
		ret->master = take_fd(&master);
	return r;
}

int
exec_read_report(int fd, const char **ret_step)
{
	struct exec_report report;
	ssize_t n;

	do {
		n = read(fd, &report, sizeof(report));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*ret_step = "";
	if (n == 0)
		return 0;
	*ret_step = exec_step_name(
	    n == (ssize_t)sizeof(report) ? report.step : EXEC_STEP_EXEC);
	return n == (ssize_t)sizeof(report) && report.error > 0 ? report.error :
								  EIO;
}
