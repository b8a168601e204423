/*
 * The child side of start-up; see proc.h. Runs before any byte of another
 * process is read, except that the parent chose descriptors and arguments.
 */
#include "common/proc.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"

#define EXIT_BY_HAND 125

static const char *proc_title;

static bool
is_channel(int fd)
{
	socklen_t size = sizeof(int);
	int type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
	    type == SOCK_SEQPACKET;
}

static void
reset_signals(void)
{
	struct sigaction act;
	sigset_t none;

	memset(&act, 0, sizeof(act));
	act.sa_handler = SIG_DFL;
	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &act, NULL);
	act.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &act, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void
proc_begin(const char *name, int first_free)
{
	proc_title = name;
	(void)umask(077);
	if (!is_channel(PROC_CHANNEL_FD)) {
		(void)dprintf(STDERR_FILENO,
		    "%s: started by stockaded, not by hand\n", name);
		exit(EXIT_BY_HAND);
	}
	(void)fcntl(PROC_CHANNEL_FD, F_SETFD, FD_CLOEXEC);
	if (close_range((unsigned)first_free, ~0u, 0) < 0)
		proc_fatal("close_range: %s", strerror(errno));
	reset_signals();
}

int
proc_undumpable(void)
{
	const struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &none) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : -EPERM;
}

int
proc_bind_to_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	/* It may have died before the signal was asked for. */
	if (parent != 0 && getppid() != parent)
		return -ESRCH;
	return proc_undumpable();
}

unsigned long
proc_raise_nofile(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	return limit.rlim_cur;
}

unsigned long
proc_descriptors_left(void)
{
	struct rlimit limit;
	int lowest = fcntl(PROC_CHANNEL_FD, F_DUPFD_CLOEXEC, 0);

	if (lowest < 0)
		return 0;
	(void)close(lowest);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    limit.rlim_cur <= (rlim_t)lowest)
		return 0;
	return limit.rlim_cur - (rlim_t)lowest;
}

/* 0 when the directory has no entry; takes fd. */
static int
check_empty(int fd)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	if (dir == NULL) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	errno = 0;
	while (r == 0 && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			r = -ENOTEMPTY;
	if (r == 0 && errno != 0)
		r = -errno;
	(void)closedir(dir);
	return r;
}

int
proc_chroot_empty(const char *dir)
{
	autoclose int fd =
	    open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int copy, r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != 0 || (st.st_mode & 022) != 0)
		return -EPERM;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -errno;
	r = check_empty(copy);
	if (r < 0)
		return r;
	if (fchdir(fd) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

void
proc_fatal(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* With the journal, standard error is the journal too: once is enough. */
	if (log_fd() >= 0)
		log_line(LOG_LEVEL_ERR, "%s", text);
	else
		(void)dprintf(STDERR_FILENO, "%s: %s\n",
		    proc_title != NULL ? proc_title :
					 program_invocation_short_name,
		    text);
	exit(1);
}
