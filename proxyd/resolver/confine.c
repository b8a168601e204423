/*
 * Confinement of stockade-resolver; see confine.h.  getaddrinfo(3) reads a
 * handful of files, loads modules of nsswitch.conf(5) and speaks DNS or a
 * local resolver's socket; nothing is written and no program is started.
 */
#include "proxyd/resolver/confine.h"

#include <sys/socket.h>

#include <stdint.h>

#include "common/confine.h"
#include "common/landlock.h"
#include "common/size.h"

#define LOW32 UINT32_MAX
#define GET_SECCOMP 21 /* PR_GET_SECCOMP */

/* Directories where files are replaced by rename, so not single files. */
static const struct confine_path paths[] = {
	{ "/etc", LANDLOCK_READ_FILE, false,
	    "hosts, resolv.conf, nsswitch.conf, "
	    "gai.conf, host.conf, services" },
	{ "/usr/lib", LANDLOCK_READ_FILE, false, "modules of nsswitch.conf" },
	{ "/lib", LANDLOCK_READ_FILE, true,
	    "the same on a system with its own /lib" },
	{ "/usr/lib64", LANDLOCK_READ_FILE, true, "the same" },
	{ "/lib64", LANDLOCK_READ_FILE, true, "the same" },
	{ "/run/systemd/resolve", LANDLOCK_READ_FILE, true,
	    "resolv.conf points here" },
	{ "/run/resolvconf", LANDLOCK_READ_FILE, true,
	    "resolv.conf points here" },
	{ "/run/NetworkManager", LANDLOCK_READ_FILE, true,
	    "resolv.conf points here" },
	{ "/run/nscd", LANDLOCK_READ_FILE, true,
	    "answers of the name cache daemon" },
	{ "/mnt/wsl", LANDLOCK_READ_FILE, true,
	    "resolv.conf points here on WSL2" },
	{ "/var/lib/nss_db", LANDLOCK_READ_FILE, true, "databases of nss_db" },
};

static const struct confine_call calls[] = {
	/* The loop and its channels. */
	CONFINE_CALL("epoll_wait", "libevent waits"),
	CONFINE_CALL("epoll_pwait", "libevent waits, where epoll_wait is not"),
	CONFINE_CALL("epoll_ctl", "libevent adds and removes descriptors"),
	CONFINE_CALL("clock_gettime", "time, where there is no vDSO"),
	CONFINE_CALL("gettimeofday", "time, where there is no vDSO"),
	CONFINE_CALL("recvmsg", "messages; netlink answers"),
	CONFINE_CALL("sendmsg", "messages, journal records"),
	CONFINE_CALL("write", "log lines; the eventfd of the answers"),
	CONFINE_CALL("writev", "log lines"),
	CONFINE_CALL("read", "the eventfd, files"),
	CONFINE_CALL("fcntl", "non-blocking descriptors"),
	CONFINE_CALL("rt_sigreturn", "return from a signal handler"),
	CONFINE_CALL("restart_syscall", "the kernel restarts a call"),

	/* getaddrinfo. */
	CONFINE_CALL_IF("socket", 0, LOW32, AF_INET, "DNS, address order"),
	CONFINE_CALL_IF("socket", 0, LOW32, AF_INET6, "DNS, address order"),
	CONFINE_CALL_IF("socket", 0, LOW32, AF_UNIX, "nscd, nss modules"),
	CONFINE_CALL_IF("socket", 0, LOW32, AF_NETLINK, "own addresses"),
	CONFINE_CALL("connect", "to the name server"),
	CONFINE_CALL("bind", "the netlink socket"),
	CONFINE_CALL("getsockname", "source address of a route"),
	CONFINE_CALL("getpeername", "nss modules check a socket"),
	CONFINE_CALL("getsockopt", "nss modules"),
	CONFINE_CALL("setsockopt", "error queue of a DNS socket"),
	CONFINE_CALL("sendto", "questions"),
	CONFINE_CALL("sendmmsg", "both questions at once"),
	CONFINE_CALL("recvfrom", "answers"),
	CONFINE_CALL("poll", "waits for answers"),
	CONFINE_CALL("ppoll", "waits for answers"),
	CONFINE_CALL("ioctl", "size of an answer (FIONREAD)"),
	CONFINE_CALL("shutdown", "nss modules end a conversation"),
	CONFINE_CALL("uname", "nss modules ask for the host's own name"),
	CONFINE_CALL("openat", "files of the paths above"),
	CONFINE_CALL("fstat", "size of a file"),
	CONFINE_CALL("newfstatat", "has a file changed"),
	CONFINE_CALL("stat", "has a file changed"),
	CONFINE_CALL("statx", "has a file changed"),
	CONFINE_CALL("access", "loader of nss modules"),
	CONFINE_CALL("readlink", "loader of nss modules"),
	CONFINE_CALL("lseek", "files of the C library"),
	CONFINE_CALL("pread64", "loader of nss modules"),
	CONFINE_CALL("close", "sockets and files"),
	CONFINE_CALL("geteuid", "nss modules"),
	CONFINE_CALL("getuid", "nss modules"),
	CONFINE_CALL("getpid", "query numbers; abort()"),

	/* Memory and threads; modules are mapped executable. */
	CONFINE_CALL("mmap", "memory, nss modules"),
	CONFINE_CALL("mprotect", "heap growth, nss modules"),
	CONFINE_CALL("munmap", "memory"),
	CONFINE_CALL("mremap", "realloc of large blocks"),
	CONFINE_CALL("madvise", "the heap gives memory back"),
	CONFINE_CALL("brk", "heap"),
	CONFINE_CALL("getrandom", "query numbers"),
	CONFINE_CALL("futex", "the queue's lock"),
	CONFINE_CALL("set_robust_list", "a thread that has just begun"),
	CONFINE_CALL("rseq", "a thread that has just begun"),
	CONFINE_CALL("sched_yield", "locks in the C library"),
	CONFINE_CALL("rt_sigprocmask", "threads; abort()"),
	CONFINE_CALL("rt_sigaction", "abort()"),
	CONFINE_CALL("gettid", "abort()"),
	CONFINE_CALL("tgkill", "abort()"),
	CONFINE_CALL_IF("prctl", 0, LOW32, GET_SECCOMP,
	    "start-up reads back that this filter holds"),
	CONFINE_CALL("exit_group", "end of file on descriptor 3"),
};

int
resolver_confine_files(void)
{
	return confine_landlock(paths, ARRAY_LEN(paths), true);
}

int
resolver_confine_calls(void)
{
	return confine_seccomp(CONFINE_KILL, calls, ARRAY_LEN(calls));
}
