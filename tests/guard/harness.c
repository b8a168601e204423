/*
 * A guarded run without launcherd, for tests that play it: mount and pid
 * namespaces, the real stockade-broker, and a program under the real Landlock
 * layer and listener filter of launcherd/init/guard.c.
 *
 *	harness -c FD -k FD -B BROKER -u UID -g GID -U UID -G GID
 *	    [-m none|filter|landlock|full] [-b BIND]... [-o READONLY]... [-r ROOT]...
 *	    [-w WRITABLE]... PROGRAM [ARGUMENT]...
 *
 * -c: a SEQPACKET socket to the test. It gets "L" with the listener and
 * answers "G" once the broker is ready; -k: the broker's channel, which the
 * test holds the other end of. -u, -g: the run's ids; -U, -G: the broker's.
 * -m none: no protection at all, the control of a test; filter: the listener
 * without Landlock; landlock: that alone, without a broker. -b: bound onto itself. Exits as PROGRAM does.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/chan.h"
#include "common/size.h"
#include "launcherd/broker_user.h"
#include "launcherd/init/guard.h"

#define CHANNEL 3
#define LIST_MAX 16

struct list {
	const char *rows[LIST_MAX];
	size_t n;
};

static struct options {
	int control;
	int channel;
	const char *broker;
	const char *mode;
	unsigned uid, gid, broker_uid, broker_gid;
	struct list binds, read_only, roots, writable;
} opt = { .control = -1, .channel = -1, .mode = "full" };

static _Noreturn void
die(const char *what)
{
	(void)fprintf(stderr, "harness: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static void
add(struct list *list, const char *row)
{
	if (list->n == LIST_MAX)
		die("too many");
	list->rows[list->n++] = row;
}

static bool
is_mode(const char *mode)
{
	return strcmp(opt.mode, mode) == 0;
}

static void
read_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "+c:k:B:u:g:U:G:m:b:o:r:w:")) != -1) {
		unsigned number =
		    (unsigned)strtoul(optarg ? optarg : "", NULL, 10);

		if (c == 'c')
			opt.control = (int)number;
		else if (c == 'k')
			opt.channel = (int)number;
		else if (c == 'B')
			opt.broker = optarg;
		else if (c == 'u')
			opt.uid = number;
		else if (c == 'g')
			opt.gid = number;
		else if (c == 'U')
			opt.broker_uid = number;
		else if (c == 'G')
			opt.broker_gid = number;
		else if (c == 'm')
			opt.mode = optarg;
		else if (c == 'b')
			add(&opt.binds, optarg);
		else if (c == 'o')
			add(&opt.read_only, optarg);
		else if (c == 'r')
			add(&opt.roots, optarg);
		else if (c == 'w')
			add(&opt.writable, optarg);
		else
			exit(2);
	}
}

static void
make_mounts(void)
{
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("private mounts");
	for (size_t i = 0; i < opt.binds.n; i++)
		if (mount(opt.binds.rows[i], opt.binds.rows[i], NULL, MS_BIND,
			NULL) < 0)
			die(opt.binds.rows[i]);
	for (size_t i = 0; i < opt.read_only.n; i++) {
		const char *p = opt.read_only.rows[i];

		if (mount(p, p, NULL, MS_BIND, NULL) < 0 ||
		    mount(NULL, p, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY,
			NULL) < 0)
			die(p);
	}
	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		die("/proc");
}

static pid_t
start_broker(void)
{
	pid_t pid;
	int program;
	char name[] = "stockade-broker";
	char *const argv[] = { name, NULL };
	char *const env[] = { NULL };

	if (is_mode("none") || is_mode("landlock"))
		return -1;
	pid = fork();
	if (pid != 0)
		return pid;
	program = open(opt.broker, O_RDONLY | O_CLOEXEC);
	if (program < 0)
		die(opt.broker);
	if (program == CHANNEL)
		program = fcntl(program, F_DUPFD_CLOEXEC, CHANNEL + 1);
	if (opt.channel != CHANNEL && dup2(opt.channel, CHANNEL) < 0)
		die("channel");
	if (fcntl(CHANNEL, F_SETFD, 0) < 0)
		die("channel");
	errno = -broker_take_user(opt.broker_uid, opt.broker_gid);
	if (errno != 0)
		die("broker's user");
	(void)syscall(SYS_execveat, program, "", argv, env, AT_EMPTY_PATH);
	die("exec");
}

/* As stockade-init: Landlock, then the listener, which nobody keeps. */
static void
guard(void)
{
	struct guard_places places;
	const char *step = "";
	uint8_t answer[8];
	size_t nfds = 0;
	int fds[CHAN_FDS_MAX], r, fd;

	r = guard_sort_places(opt.writable.rows, opt.writable.n, opt.roots.rows,
	    opt.roots.n, &places);
	errno = -r;
	if (r < 0)
		die("places");
	r = is_mode("filter") ? 0 : guard_landlock(&places, &step);
	errno = -r;
	if (r < 0)
		die(step);
	if (is_mode("landlock"))
		return;
	fd = guard_listener();
	errno = -fd;
	if (fd < 0)
		die("listener");
	if (chan_send_fd(opt.control, "L", 1, &fd, 1) < 0)
		die("control");
	(void)close(fd);
	if (chan_recv_fd(opt.control, answer, sizeof(answer), fds, &nfds) != 1)
		_exit(124);
}

static _Noreturn void
run_program(char **argv)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (setgroups(0, NULL) < 0 ||
	    setresgid(opt.gid, opt.gid, opt.gid) < 0 ||
	    setresuid(opt.uid, opt.uid, opt.uid) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("ids");
	(void)close(opt.channel);
	(void)umask(022);
	if (chdir("/") < 0)
		die("/");
	if (!is_mode("none"))
		guard();
	(void)close(opt.control);
	execvp(argv[0], argv);
	die(argv[0]);
}

/* pid 1: the end of the program is the end of all. */
static _Noreturn void
first_process(char **argv)
{
	pid_t program, pid;
	int status;

	make_mounts();
	(void)start_broker();
	program = fork();
	if (program == 0)
		run_program(argv);
	(void)close(opt.channel);
	(void)close(opt.control);
	while ((pid = wait(&status)) > 0)
		if (pid == program)
			_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
						    WEXITSTATUS(status));
	_exit(125);
}

int
main(int argc, char **argv)
{
	pid_t pid;
	int status;

	read_options(argc, argv);
	if (optind == argc)
		return 2;
	if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC) < 0)
		die("namespaces");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
			die("death signal");
		first_process(argv + optind);
	}
	(void)close(opt.channel);
	(void)close(opt.control);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}
