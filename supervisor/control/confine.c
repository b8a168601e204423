/*
 * What stockade-control keeps of the system after start-up: its channel, the
 * client socket, descriptors that are passed to it, and reading beneath the
 * configuration's directory. Nothing else: no path, no new socket, no process.
 */
#include "common/confine.h"
#include "common/landlock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/priv.h"
#include "common/proc.h"
#include "common/size.h"
#include "supervisor/control/control.h"

static const struct confine_call calls[] = {
	CONFINE_CALL("read", "output of runs, configuration, libevent"),
	CONFINE_CALL("pread64", "stdio on the configuration"),
	CONFINE_CALL("lseek", "stdio on the configuration, memfds"),
	CONFINE_CALL("write", "input of runs, memfds, standard error"),
	CONFINE_CALL("writev", "stdio on standard error"),
	CONFINE_CALL("recvmsg", "channel and clients, with descriptors"),
	CONFINE_CALL("sendmsg", "channel and log, with descriptors"),
	CONFINE_CALL("sendto", "send(2) to clients and log"),
	CONFINE_CALL("accept4", "clients"),
	CONFINE_CALL("accept", "the C library's accept4 where it is missing"),
	CONFINE_CALL("getsockopt", "SO_TYPE of a descriptor on the channel"),
	CONFINE_CALL("close", "everything"),
	CONFINE_CALL("fcntl", "F_DUPFD_CLOEXEC, non-blocking, seals"),
	CONFINE_CALL("fstat", "configuration, passed descriptors"),
	CONFINE_CALL("newfstatat", "fstat(3) of the C library"),
	CONFINE_CALL_IF("openat", 2, O_ACCMODE | O_CREAT, O_RDONLY,
	    "configuration at reload; Landlock says where"),
	CONFINE_CALL("openat2", "configuration at reload; Landlock says where"),
	CONFINE_CALL("memfd_create", "questions and plans"),
	CONFINE_CALL("ftruncate", "memfds"),
	CONFINE_CALL("mmap", "malloc, sealed memfds"),
	CONFINE_CALL("mremap", "realloc"),
	CONFINE_CALL("munmap", "free, sealed memfds"),
	CONFINE_CALL("mprotect", "malloc arenas"),
	CONFINE_CALL("madvise", "malloc"),
	CONFINE_CALL("brk", "malloc"),
	CONFINE_CALL("epoll_ctl", "event loop"),
	CONFINE_CALL("epoll_wait", "event loop"),
	CONFINE_CALL("epoll_pwait", "event loop where epoll_wait is missing"),
	CONFINE_CALL("epoll_pwait2", "event loop of newer libraries"),
	CONFINE_CALL("clock_gettime", "event loop where the vdso is missing"),
	CONFINE_CALL("gettimeofday", "event loop where the vdso is missing"),
	CONFINE_CALL("time", "where the vdso is missing"),
	CONFINE_CALL("getrandom", "hash seeds of the C library, digests"),
	CONFINE_CALL("sysinfo", "half of the memory as a limit"),
	CONFINE_CALL("futex", "the C library's locks"),
	CONFINE_CALL("rt_sigreturn", "end of a signal handler"),
	CONFINE_CALL("rt_sigprocmask", "abort(3)"),
	CONFINE_CALL("rt_sigaction", "abort(3)"),
	CONFINE_CALL("getpid", "abort(3), log"),
	CONFINE_CALL("gettid", "abort(3)"),
	CONFINE_CALL("tgkill", "abort(3); Landlock scopes it where it can"),
	CONFINE_CALL("restart_syscall", "a stopped and continued wait"),
	CONFINE_CALL_IF("prctl", 0, UINT64_MAX, PR_GET_SECCOMP,
	    "confine_seccomp reads back that the filter is in force"),
	CONFINE_CALL("exit", "end"),
	CONFINE_CALL("exit_group", "end"),
};

/*
 * An empty root: a directory that is made for it and removed while it is the
 * root, so that nothing can ever be created in it.
 */
static void
enter_empty_root(void)
{
	char path[] = "/run/stockade-empty-XXXXXX";
	autoclose int parent = open("/run", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (parent < 0 || mkdtemp(path) == NULL || chmod(path, 0711) != 0)
		proc_fatal("cannot make an empty root below /run");
	r = proc_chroot_empty(path);
	if (unlinkat(parent, path + sizeof("/run/") - 1, AT_REMOVEDIR) != 0 ||
	    r != 0)
		proc_fatal("cannot enter an empty root: %s", strerror(-r));
}

/*
 * Landlock is told of the configuration's directory by ".": it lies outside
 * the root, and a path to it does not exist any more.
 */
static void
confine_files(void)
{
	const struct confine_path paths[] = {
		{ ".", LANDLOCK_READ_FILE | LANDLOCK_READ_DIR, false,
		    "configuration" },
	};
	int r;

	if (fchdir(CONTROL_CONF_FD) != 0)
		proc_fatal("descriptor %d is not the configuration's "
			   "directory",
		    CONTROL_CONF_FD);
	r = confine_landlock(paths, ARRAY_LEN(paths), false);
	if (r != 0)
		proc_fatal("Landlock: %s", strerror(-r));
	if (chdir("/") != 0)
		proc_fatal("cannot leave the configuration's directory");
}

void
control_confine(const struct priv_user *user, int parent)
{
	int r;

	(void)proc_raise_nofile();
	enter_empty_root();
	priv_enter(user, parent);
	confine_files();
	r = confine_seccomp(CONFINE_KILL, calls, ARRAY_LEN(calls));
	if (r != 0)
		proc_fatal("seccomp: %s", strerror(-r));
}
