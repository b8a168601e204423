/*
 * Landlock and seccomp, last step of start-up. Profiles live with each daemon
 * in its confine.c: a table whose every row has a reason. Fails closed: a
 * return other than 0 ends the daemon, unless said otherwise.
 */
#ifndef COMMON_CONFINE_H
#define COMMON_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A permitted system call; arg < 0: any arguments. Else
 * (args[arg] & mask) == value is required. */
struct confine_call {
	const char *name; /* libseccomp's name, or common/syscalls.def */
	const char *reason;
	int arg; /* -1 or 0..5 */
	uint64_t mask;
	uint64_t value;
};
/* clang-format off */
#define CONFINE_CALL(n, why) { (n), (why), -1, 0, 0 }
#define CONFINE_CALL_IF(n, a, m, v, why) { (n), (why), (a), (m), (v) }
/* clang-format on */

enum confine_default {
	CONFINE_KILL, /* what is not listed kills the process */
	CONFINE_DENY_LIST, /* what is listed gets EPERM, the rest passes */
};

/*
 * Loads the filter for all threads (TSYNC). Other entry points (32-bit, x32)
 * are killed by CONFINE_KILL and get ENOSYS from CONFINE_DENY_LIST, which runs
 * inherit (SPEC C11). Needs no_new_privs, which it sets. In sanitizer builds
 * the sanitizer's calls are added. 0 or -errno; an unknown name is -EINVAL.
 */
int confine_seccomp(enum confine_default, const struct confine_call *calls,
    size_t n);

/* A path beneath which access is granted. Access bits are those of
 * common/landlock.h; rights the kernel does not know are left out. A
 * missing path is skipped when `optional`. */
struct confine_path {
	const char *path;
	uint64_t access;
	bool optional;
	const char *reason;
};

/*
 * Restricts the process to `paths` (n may be 0: no file system at all) and,
 * on kernels that have it, no TCP bind, no abstract sockets and signals to the
 * outside. `tcp_connect` leaves TCP connect open. Returns 0, or -ENOSYS when
 * the kernel has no Landlock, or -errno.
 */
int
confine_landlock(const struct confine_path *paths, size_t n, bool tcp_connect);

#endif
