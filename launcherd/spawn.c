/*
 * launcherd: children. Between clone and exec the child only makes system
 * calls on descriptors that were opened before; the plan's text never is an
 * argument or an environment variable.
 */
#include "launcherd/spawn.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

#include "common/cleanup.h"
#include "common/priv.h"
#include "common/proc.h"
#include "launcherd/broker_user.h"
#include "launcherd/cgroup.h"

#define INIT_INSIDE "/run/stockade/init"
#define SPAWN_FAILED 126

/* The environment of every child; bubblewrap clears it once more. */
static char env_path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
static char *const child_env[] = { env_path, NULL };

/* fork with a pidfd, and into a cgroup unless cgroup_fd is -1. 0 in the
 * child. */
static int
clone_child(int cgroup_fd, struct spawned *ret)
{
	struct clone_args args;
	int pidfd = -1;
	long pid;

	memset(&args, 0, sizeof(args));
	args.flags = CLONE_PIDFD;
	args.pidfd = (uint64_t)(uintptr_t)&pidfd;
	args.exit_signal = SIGCHLD;
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)(unsigned)cgroup_fd;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return -errno;
	if (pid == 0)
		return 0;
	ret->pid = (pid_t)pid;
	ret->pidfd = pidfd;
	return 1;
}

static void __attribute__((noreturn)) child_fail(const char *step, int error)
{
	(void)dprintf(STDERR_FILENO, "%s: %s\n", step, strerror(-error));
	_exit(SPAWN_FAILED);
}

static void
default_signals(void)
{
	struct sigaction act;
	sigset_t none;

	memset(&act, 0, sizeof(act));
	act.sa_handler = SIG_DFL;
	(void)sigaction(SIGPIPE, &act, NULL);
	(void)sigaction(SIGTERM, &act, NULL);
	(void)sigaction(SIGCHLD, &act, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Descriptors 0, 1, 2 and 3; the last one replaces our own channel to the
 * supervisor, which the child must not have. */
static void
child_stdio(int null_fd, int out_fd, int err_fd, int channel_fd)
{
	if (dup2(err_fd, STDERR_FILENO) < 0)
		_exit(SPAWN_FAILED);
	if (dup2(null_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0)
		child_fail("stdio", -errno);
	if (channel_fd >= 0 && dup2(channel_fd, PROC_CHANNEL_FD) < 0)
		child_fail("channel", -errno);
}

static void __attribute__((noreturn)) run_child(const struct spawn_run *in)
{
	char number[16];
	char name[] = "bwrap", option[] = "--args", end[] = "--";
	char init[] = INIT_INSIDE;
	char *const argv[] = { name, option, number, end, init, NULL };
	int error;

	child_stdio(in->null_fd, in->null_fd, in->error_fd, in->channel_fd);
	error = cgroup_join_legacy(in->tree, in->cgroup);
	if (error < 0)
		child_fail("cgroup", error);
	if (setns(in->netns_fd, CLONE_NEWNET) < 0)
		child_fail("network namespace", -errno);
	(void)umask(022);
	default_signals();
	if (fcntl(in->args_fd, F_SETFD, 0) < 0)
		child_fail("arguments", -errno);
	for (size_t i = 0; i < in->nfds; i++)
		if (fcntl(in->fds[i], F_SETFD, 0) < 0)
			child_fail("descriptors", -errno);
	(void)snprintf(number, sizeof(number), "%d", in->args_fd);
	execve(BWRAP_PATH, argv, child_env);
	child_fail(BWRAP_PATH, -errno);
}

/* The child goes on when it has read a byte; the end of the pipe ends it. */
int
spawn_run(const struct spawn_run *in, struct spawned *ret)
{
	autoclose int cgroup = cgroup_processes(in->cgroup);
	int go[2] = { -1, -1 }, r, error = 0;
	char byte = 0;

	if (cgroup < 0)
		return cgroup;
	if (in->arm != NULL && pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	r = clone_child(cgroup, ret);
	if (r == 0) {
		close_all(&go[1], 1);
		if (in->arm != NULL && read(go[0], &byte, 1) != 1)
			_exit(SPAWN_FAILED);
		run_child(in);
	}
	if (r > 0 && in->arm != NULL) {
		error = in->arm(in->arm_ctx, ret->pidfd);
		if (error == 0 && write(go[1], &byte, 1) != 1)
			error = -EIO;
	}
	close_all(go, 2);
	if (error < 0) {
		spawn_kill(ret);
		(void)waitpid(ret->pid, NULL, 0);
		ret->pid = 0;
		close_all(&ret->pidfd, 1);
	}
	return r < 0 ? r : error;
}

static void __attribute__((noreturn)) guard_child(int libexec_fd,
    const char *verb, const char *dir, int null_fd, int out_fd)
{
	char name[] = "stockade-guard", word[16], where[128];
	char *const argv[] = { name, word, where, NULL };

	(void)snprintf(word, sizeof(word), "%s", verb);
	(void)snprintf(where, sizeof(where), "%s", dir);
	child_stdio(null_fd, out_fd, null_fd, null_fd);
	default_signals();
	(void)syscall(SYS_execveat, libexec_fd, "stockade-guard", argv,
	    child_env, 0);
	_exit(SPAWN_FAILED);
}

int
spawn_guard(int libexec_fd, const char *verb, const char *dir, int null_fd,
    int out_fd, struct spawned *ret)
{
	int r = clone_child(-1, ret);

	if (r == 0)
		guard_child(libexec_fd, verb, dir, null_fd, out_fd);
	return r < 0 ? r : 0;
}

/*
 * Who asks: the supervisor, for a launch. The child is root for the time of
 * one NSS look-up and may do nothing but change its ids; it reads the question
 * after it has taken the run's.
 */
static void __attribute__((noreturn))
lookup_child(int libexec_fd, int channel_fd, int null_fd)
{
	char name[] = "stockade-lookup";
	char *const argv[] = { name, NULL };
	const uint64_t caps =
	    UINT64_C(1) << CAP_SETUID | UINT64_C(1) << CAP_SETGID;
	int missing;

	if (dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		_exit(SPAWN_FAILED);
	if (dup2(channel_fd, PROC_CHANNEL_FD) < 0)
		child_fail("channel", -errno);
	default_signals();
	if (priv_limit(caps, &missing) < 0)
		_exit(SPAWN_FAILED);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		_exit(SPAWN_FAILED);
	(void)syscall(SYS_execveat, libexec_fd, "stockade-lookup", argv,
	    child_env, 0);
	child_fail("stockade-lookup", -errno);
}

int
spawn_lookup(int libexec_fd, int channel_fd, int null_fd, struct spawned *ret)
{
	int r = clone_child(-1, ret);

	if (r == 0)
		lookup_child(libexec_fd, channel_fd, null_fd);
	return r < 0 ? r : 0;
}

/* Everything here is inside the run already, but nothing of the run executes
 * yet: its init waits. */
static void __attribute__((noreturn))
broker_child(const struct spawn_broker *in)
{
	char name[] = "stockade-broker", empty[] = "";
	char *const argv[] = { name, NULL };

	child_stdio(in->null_fd, in->null_fd, in->null_fd, in->channel_fd);
	if (cgroup_join_legacy(in->tree, in->cgroup) < 0 ||
	    setns(in->net_fd, CLONE_NEWNET) < 0 || chdir("/") < 0)
		_exit(SPAWN_FAILED);
	default_signals();
	if (broker_take_user(in->uid, in->gid) < 0)
		_exit(SPAWN_FAILED);
	(void)syscall(SYS_execveat, in->program_fd, empty, argv, child_env,
	    AT_EMPTY_PATH);
	_exit(SPAWN_FAILED);
}

/* A namespace of processes is entered by the next child, not by oneself. */
int
spawn_broker(const struct spawn_broker *in, struct spawned *ret)
{
	int r;

	if (setns(in->pid_fd, CLONE_NEWPID) < 0)
		return -errno;
	r = clone_child(in->cgroup->fd, ret);
	if (r == 0)
		broker_child(in);
	if (setns(in->own_pid_fd, CLONE_NEWPID) < 0)
		return -ENOTRECOVERABLE;
	return r < 0 ? r : 0;
}

static void __attribute__((noreturn)) masks_child(const struct spawn_masks *in)
{
	char reason[SOURCE_REASON_MAX];
	int error;

	child_stdio(in->null_fd, in->null_fd, in->error_fd, in->null_fd);
	default_signals();
	error = cgroup_join_legacy(in->tree, in->cgroup);
	if (error < 0)
		child_fail("cgroup", error);
	error = mask_mount(&in->job, reason);
	if (error == 0)
		_exit(0);
	(void)dprintf(STDERR_FILENO, "%s", reason);
	_exit(error == -ESTALE ? SPAWN_MASKS_STALE : SPAWN_FAILED);
}

int
spawn_masks(const struct spawn_masks *in, struct spawned *ret)
{
	int r = clone_child(in->cgroup->fd, ret);

	if (r == 0)
		masks_child(in);
	return r < 0 ? r : 0;
}

int
spawn_bwrap_option(const char *option, int null_fd, int out_fd,
    struct spawned *ret)
{
	char name[] = "bwrap";
	char word[32];
	char *const argv[] = { name, word, NULL };
	int r = clone_child(-1, ret);

	if (r != 0)
		return r < 0 ? r : 0;
	(void)snprintf(word, sizeof(word), "%s", option);
	child_stdio(null_fd, out_fd, out_fd, -1);
	(void)close(PROC_CHANNEL_FD);
	default_signals();
	execve(BWRAP_PATH, argv, child_env);
	_exit(SPAWN_FAILED);
}

int
spawn_reap(struct spawned *child)
{
	int status = -1;

	if (child->pid <= 0)
		return -1;
	if (waitpid(child->pid, &status, WNOHANG) != child->pid)
		return -1;
	(void)close(child->pidfd);
	child->pid = 0;
	child->pidfd = -1;
	return status;
}

void
spawn_kill(const struct spawned *child)
{
	if (child->pid > 0)
		(void)syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL,
		    NULL, 0);
}
