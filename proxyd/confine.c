/*
 * Confinement of stockade-proxyd; see confine.h.  No file system at all, no
 * new programs, no listening, no sockets but TCP: whoever takes this process
 * over can connect out, which is its work, and read what passes through it.
 */
#include "proxyd/confine.h"

#include <sys/socket.h>

#include <stdint.h>

#include "common/confine.h"
#include "common/size.h"

#define LOW32 UINT32_MAX
#define GET_SECCOMP 21 /* PR_GET_SECCOMP */

static const struct confine_call calls[] = {
	/* The loop. */
	CONFINE_CALL("epoll_wait", "libevent waits"),
	CONFINE_CALL("epoll_pwait", "libevent waits, where epoll_wait is not"),
	CONFINE_CALL("epoll_ctl", "libevent adds and removes descriptors"),
	CONFINE_CALL("clock_gettime", "time, where there is no vDSO"),
	CONFINE_CALL("gettimeofday", "libevent's time, without vDSO"),
	CONFINE_CALL("rt_sigreturn", "return from a signal handler"),
	CONFINE_CALL("restart_syscall", "the kernel restarts a call"),

	/* Connections. */
	CONFINE_CALL("accept4", "clients on the sessions' listeners"),
	CONFINE_CALL_IF("socket", 0, LOW32, AF_INET, "upstream, IPv4"),
	CONFINE_CALL_IF("socket", 0, LOW32, AF_INET6, "upstream, IPv6"),
	CONFINE_CALL("connect", "to the checked address"),
	CONFINE_CALL("getsockopt", "result of connect, type of a listener"),
	CONFINE_CALL("setsockopt", "no delay, keep-alive, linger"),
	CONFINE_CALL("recvfrom", "bytes of both sides"),
	CONFINE_CALL("sendto", "bytes to both sides; address dump"),
	CONFINE_CALL("shutdown", "end of file to one side"),
	CONFINE_CALL("close", "connections that end"),

	/* Channels and log. */
	CONFINE_CALL("recvmsg", "messages with descriptors"),
	CONFINE_CALL("sendmsg", "messages, journal records"),
	CONFINE_CALL("write", "log lines on standard error"),
	CONFINE_CALL("writev", "log lines on standard error"),
	CONFINE_CALL("fcntl",
	    "non-blocking listeners, seals of a memfd, "
	    "reserve descriptor"),
	CONFINE_CALL("fstat", "size of a memfd"),
	CONFINE_CALL("newfstatat", "size of a memfd, newer C library"),

	/* Memory. */
	CONFINE_CALL_IF("mmap", 2, 4 /* PROT_EXEC */, 0,
	    "memory, lists in a memfd; never executable"),
	CONFINE_CALL_IF("mprotect", 2, 4 /* PROT_EXEC */, 0, "heap growth"),
	CONFINE_CALL("munmap", "memory"),
	CONFINE_CALL("mremap", "realloc of large blocks"),
	CONFINE_CALL("madvise", "the heap gives memory back"),
	CONFINE_CALL("brk", "heap"),
	CONFINE_CALL("getrandom", "the C library seeds its heap"),
	CONFINE_CALL("futex", "locks in the C library"),

	/* The end. */
	CONFINE_CALL_IF("prctl", 0, LOW32, GET_SECCOMP,
	    "start-up reads back that this filter holds"),
	CONFINE_CALL("exit_group", "end of file on descriptor 3"),
	CONFINE_CALL("getpid", "abort() names the process"),
	CONFINE_CALL("gettid", "abort() names the thread"),
	CONFINE_CALL("tgkill", "abort()"),
	CONFINE_CALL("rt_sigprocmask", "abort(); libevent's dispatch"),
	CONFINE_CALL("rt_sigaction", "abort()"),
};

int
proxyd_confine(void)
{
	int r = confine_landlock(NULL, 0, true);

	if (r < 0)
		return r;
	return confine_seccomp(CONFINE_KILL, calls, ARRAY_LEN(calls));
}
