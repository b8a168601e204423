/*
 * Landlock and seccomp; see confine.h. Runs once in each daemon, after it has
 * opened what it needs and before it reads the first byte of another process.
 */
#include "common/confine.h"

#include <sys/prctl.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/landlock.h"
#include "common/size.h"
#include "config.h"

#ifdef ENABLE_SANITIZERS
#include <sanitizer/lsan_interface.h>
#endif

/* ------------------------------------------------ seccomp */

static const struct {
	const char *name;
	int number;
} extra_calls[] = {
#define SYSCALL(name, number) { #name, number },
#include "common/syscalls.def"
#undef SYSCALL
};

#ifdef ENABLE_SANITIZERS
/* What the run-time library of the sanitizers calls on its own, at a report;
 * never permitted in an ordinary build. */
static const char *const sanitizer_calls[] = { "clone", "clone3", "close",
	"exit", "exit_group", "fcntl", "fstat", "futex", "getdents64", "getpid",
	"getppid", "getrlimit", "getrusage", "gettid", "ioctl", "lseek",
	"madvise", "mmap", "mprotect", "mremap", "munmap", "newfstatat",
	"openat", "personality", "prctl", "prlimit64", "process_vm_readv",
	"ptrace", "read", "readlink", "readlinkat", "restart_syscall",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_getaffinity",
	"sched_yield", "set_robust_list", "sigaltstack", "stat", "tgkill",
	"wait4", "write", "writev" };
#endif

static int
call_number(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr != __NR_SCMP_ERROR)
		return nr;
	for (size_t i = 0; i < ARRAY_LEN(extra_calls); i++)
		if (strcmp(extra_calls[i].name, name) == 0)
			return extra_calls[i].number;
	return __NR_SCMP_ERROR;
}

static int
add_call(scmp_filter_ctx ctx, uint32_t action, const struct confine_call *call)
{
	struct scmp_arg_cmp cmp;
	int nr = call_number(call->name);

	if (nr == __NR_SCMP_ERROR)
		return -EINVAL;
	/* A call that this architecture does not have (negative: libseccomp's
	 * pseudo numbers, such as stat on aarch64). */
	if (nr < 0)
		return 0;
	if (call->arg < 0)
		return seccomp_rule_add_array(ctx, action, nr, 0, NULL);
	cmp = SCMP_CMP64((unsigned)call->arg, SCMP_CMP_MASKED_EQ, call->mask,
	    call->value);
	return seccomp_rule_add_array(ctx, action, nr, 1, &cmp);
}

#ifdef ENABLE_SANITIZERS
static bool confined;

/* The leak check at exit traces its own process through /proc, which a confined
 * daemon cannot; a tracer that is killed would be waited for without end. */
__attribute__((visibility("default"))) int
__lsan_is_turned_off(void)
{
	return confined;
}

static int
add_sanitizer(scmp_filter_ctx ctx, enum confine_default mode)
{
	if (mode != CONFINE_KILL)
		return 0;
	confined = true;
	for (size_t i = 0; i < ARRAY_LEN(sanitizer_calls); i++) {
		struct confine_call call =
		    CONFINE_CALL(sanitizer_calls[i], "sanitizer");
		int r = add_call(ctx, SCMP_ACT_ALLOW, &call);

		if (r < 0)
			return r;
	}
	return 0;
}
#else
static int
add_sanitizer(scmp_filter_ctx ctx, enum confine_default mode)
{
	(void)ctx;
	(void)mode;
	return 0;
}
#endif

/*
 * A daemon's own filter kills foreign entry points. A deny-list is inherited
 * by bubblewrap and by every run, whose own filter answers ENOSYS there
 * (SPEC C11), and the kernel lets the harsher answer win: so ENOSYS here too.
 */
static int
set_attributes(scmp_filter_ctx ctx, enum confine_default mode)
{
	uint32_t foreign = mode == CONFINE_KILL ? SCMP_ACT_KILL_PROCESS :
						  SCMP_ACT_ERRNO(ENOSYS);
	int r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, foreign);

	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 1);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	/* A binary tree instead of a list; an older library goes without. */
	if (r == 0)
		(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return r;
}

static int
fill_and_load(scmp_filter_ctx ctx, enum confine_default mode,
    const struct confine_call *calls, size_t n)
{
	uint32_t action =
	    mode == CONFINE_KILL ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM);
	int r = set_attributes(ctx, mode);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_call(ctx, action, &calls[i]);
	if (r == 0)
		r = add_sanitizer(ctx, mode);
	return r < 0 ? r : seccomp_load(ctx);
}

int
confine_seccomp(enum confine_default mode, const struct confine_call *calls,
    size_t n)
{
	uint32_t rest =
	    mode == CONFINE_KILL ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ALLOW;
	scmp_filter_ctx ctx;
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	ctx = seccomp_init(rest);
	if (ctx == NULL)
		return -ENOMEM;
	r = fill_and_load(ctx, mode, calls, n);
	seccomp_release(ctx);
	if (r < 0)
		return r;
	/* Read back: mode 2 means that a filter is in force. */
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 ? 0 : -EPERM;
}

/* ------------------------------------------------ Landlock */

static int
add_path(int ruleset, uint64_t handled, const struct confine_path *path)
{
	uint64_t rights = path->access & handled;
	autoclose int fd = open(path->path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT && path->optional ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rights &= LANDLOCK_OF_FILE;
	/* A rule that grants nothing is refused by the kernel and not needed. */
	return rights == 0 ? 0 : landlock_grant(ruleset, fd, rights);
}

int
confine_landlock(const struct confine_path *paths, size_t n, bool tcp_connect)
{
	unsigned abi = landlock_abi();
	autoclose int ruleset = -1;

	if (abi == 0)
		return -ENOSYS;
	ruleset = landlock_new(abi,
	    LANDLOCK_TCP_BIND | LANDLOCK_SCOPES |
		(tcp_connect ? 0 : LANDLOCK_TCP_CONNECT));
	if (ruleset < 0)
		return ruleset;
	for (size_t i = 0; i < n; i++) {
		int r = add_path(ruleset, landlock_rights(abi), &paths[i]);

		if (r < 0)
			return r;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return landlock_enter(ruleset);
}
