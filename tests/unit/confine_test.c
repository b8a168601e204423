/*
 * Privilege, Landlock and seccomp, each tried in a child of its own. What needs
 * root is left out without it.
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/confine.h"
#include "common/landlock.h"
#include "common/priv.h"
#include "common/proc.h"
#include "common/size.h"

#define CAP(c) (UINT64_C(1) << CAP_##c)

/* Runs fn in a child; its return, or 1000 + the signal that ended it. */
static int
in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

static int
do_drop(void)
{
	const struct priv_user user = { 65534, 65534 };
	const gid_t groups[] = { 5, 6 };

	if (setgroups(2, groups) < 0 || priv_drop(&user) != 0)
		return 1;
	if (getuid() != 65534 || geteuid() != 65534 || getgid() != 65534)
		return 2;
	if (getgroups(0, NULL) != 0 || priv_permitted() != 0)
		return 3;
	if (setuid(0) == 0 || setgid(0) == 0 || chroot("/") == 0)
		return 4;
	return prctl(PR_CAPBSET_READ, CAP_CHOWN, 0, 0, 0) == 0 ? 0 : 5;
}

static void
a_drop_leaves_nothing(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_drop), 0);
}

static int
do_drop_twice(void)
{
	const struct priv_user user = { 65534, 65534 };

	return priv_drop(&user) == 0 && priv_drop(&user) == -EPERM ? 0 : 1;
}

static void
a_drop_without_privilege_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_drop_twice), 0);
}

static int
do_drop_to_root(void)
{
	const struct priv_user user = { 0, 0 };
	const struct priv_user nobody = { (uid_t)-1, 65534 };

	return priv_drop(&user) == -EPERM && priv_drop(&nobody) == -EPERM ? 0 :
									    1;
}

static void
root_is_no_user_to_drop_to(void **state)
{
	struct priv_user user;

	(void)state;
	assert_int_equal(in_child(do_drop_to_root), 0);
	assert_int_equal(priv_lookup_user("root", &user), -EPERM);
	assert_int_equal(priv_lookup_user("no-such-user-x", &user), -ENOENT);
}

/* The twin: changing the effective uid alone can be taken back. */
static int
do_seteuid(void)
{
	return seteuid(65534) == 0 && setuid(0) == 0 && geteuid() == 0 ? 0 : 1;
}

static void
twin_seteuid_alone_is_taken_back(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_seteuid), 0);
}

static int
do_limit(void)
{
	int missing = -1;

	if (priv_limit(CAP(SETUID) | CAP(SETPCAP) | CAP(KILL), &missing) != 0)
		return 1;
	if (priv_permitted() != (CAP(SETUID) | CAP(SETPCAP) | CAP(KILL)))
		return 2;
	if (chroot("/") == 0 || prctl(PR_CAPBSET_READ, CAP_CHOWN, 0, 0, 0) != 0)
		return 3;
	if (priv_limit(CAP(SETUID) | CAP(SYS_ADMIN), &missing) != -EPERM)
		return 4;
	return missing == CAP_SYS_ADMIN ? 0 : 5;
}

static void
a_limit_keeps_exactly_the_list_and_names_what_is_missing(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_limit), 0);
}

static int
do_fs(void)
{
	const gid_t groups[] = { 7777 };
	int fd;

	if (priv_fs_become(65534, 65534, groups, 1) != 0)
		return 1;
	fd = open("/etc/shadow", O_RDONLY);
	if (fd >= 0 || errno != EACCES)
		return 2;
	if (getgroups(0, NULL) != 1 || geteuid() != 0)
		return 3;
	if (priv_fs_restore() != 0 || getgroups(0, NULL) != 0)
		return 4;
	fd = open("/etc/shadow", O_RDONLY); /* the twin */
	if (fd < 0)
		return 5;
	return priv_fs_become(0, 0, NULL, 0) == -EPERM ? 0 : 6;
}

static void
file_system_ids_come_and_go(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_fs), 0);
}

/* clang-format off */
static const struct confine_call calls[] = {
	CONFINE_CALL("exit_group", "the test ends"),
	CONFINE_CALL("exit", "the test ends"),
	CONFINE_CALL("prctl", "the filter is read back"),
	CONFINE_CALL("brk", "libseccomp frees its memory"),
	CONFINE_CALL("munmap", "libseccomp frees its memory"),
	CONFINE_CALL("mseal", "known by number only"),
	CONFINE_CALL_IF("socket", 0, UINT64_MAX, AF_UNIX, "unix only"),
};
/* clang-format on */

static int
do_filter_ok(void)
{
	if (confine_seccomp(CONFINE_KILL, calls, ARRAY_LEN(calls)) != 0)
		return 1;
	return syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0) >= 0 ? 0 : 2;
}

static int
do_filter_arg(void)
{
	if (confine_seccomp(CONFINE_KILL, calls, ARRAY_LEN(calls)) != 0)
		return 1;
	(void)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
	return 0;
}

static int
do_filter_call(void)
{
	if (confine_seccomp(CONFINE_KILL, calls, ARRAY_LEN(calls)) != 0)
		return 1;
	(void)syscall(SYS_chroot, "/");
	return 0;
}

static void
what_is_not_listed_kills(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_filter_ok), 0);
	assert_int_equal(in_child(do_filter_arg), 1000 + SIGSYS);
	assert_int_equal(in_child(do_filter_call), 1000 + SIGSYS);
}

static int
do_unknown(void)
{
	const struct confine_call bad[] = {
		CONFINE_CALL("no_such_call", "none"),
	};

	if (confine_seccomp(CONFINE_KILL, bad, 1) != -EINVAL)
		return 1;
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0 ? 0 : 2;
}

static void
an_unknown_call_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_unknown), 0);
}

#ifdef __x86_64__
/* int 0x80 with the number of the 32-bit getpid. */
static long
foreign_call(void)
{
	long r = 20;

	__asm__ volatile("int $0x80"
			 : "+a"(r)
			 :
			 : "memory", "cc", "r8", "r9", "r10", "r11");
	return r;
}

static int
do_foreign_kill(void)
{
	if (confine_seccomp(CONFINE_KILL, calls, ARRAY_LEN(calls)) != 0)
		return 1;
	(void)foreign_call();
	return 0;
}

static int
do_foreign_list(void)
{
	const struct confine_call deny[] = { CONFINE_CALL("acct", "test") };

	/* The twin: the entry is there without a filter. */
	if (foreign_call() != getpid())
		return 77;
	if (confine_seccomp(CONFINE_DENY_LIST, deny, 1) != 0)
		return 1;
	return foreign_call() == -ENOSYS ? 0 : 2;
}

static int
do_x32(void)
{
	if (confine_seccomp(CONFINE_KILL, calls, ARRAY_LEN(calls)) != 0)
		return 1;
	(void)syscall(0x40000000 | SYS_socket, AF_UNIX, SOCK_STREAM, 0);
	return 0;
}

static void
other_entry_points_are_closed(void **state)
{
	int r;

	(void)state;
	r = in_child(do_foreign_list);
	assert_true(r == 0 || r == 77 || r == 1000 + SIGSEGV);
	if (r == 0)
		assert_int_equal(in_child(do_foreign_kill), 1000 + SIGSYS);
	assert_int_equal(in_child(do_x32), 1000 + SIGSYS);
}
#endif

static int
do_deny_list(void)
{
	const struct confine_call deny[] = { CONFINE_CALL("acct", "test") };

	if (confine_seccomp(CONFINE_DENY_LIST, deny, 1) != 0)
		return 1;
	if (syscall(SYS_acct, "/no/such/file") == 0 || errno != EPERM)
		return 2;
	return access("/", F_OK) == 0 ? 0 : 3;
}

static void
a_deny_list_lets_the_rest_pass(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_deny_list), 0);
}

static int
do_landlock_none(void)
{
	if (confine_landlock(NULL, 0, false) != 0)
		return 1;
	return open("/", O_RDONLY) < 0 && errno == EACCES ? 0 : 2;
}

static int
do_landlock_paths(void)
{
	const struct confine_path paths[] = {
		{ "/usr",
		    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
		    false, "test" },
		{ "/dev/null",
		    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
			LANDLOCK_ACCESS_FS_WRITE_FILE,
		    false, "test" },
		{ "/no/such/path", LANDLOCK_ACCESS_FS_READ_FILE, true, "test" },
	};

	if (confine_landlock(paths, 3, true) != 0)
		return 1;
	if (open("/usr", O_RDONLY) < 0 || open("/dev/null", O_RDWR) < 0)
		return 2;
	if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES)
		return 3;
	return open("/usr/x", O_CREAT | O_WRONLY, 0600) < 0 ? 0 : 4;
}

static int
do_landlock_missing(void)
{
	const struct confine_path path = { "/no/such/path",
		LANDLOCK_ACCESS_FS_READ_FILE, false, "test" };

	return confine_landlock(&path, 1, true) == -ENOENT ? 0 : 1;
}

static int
do_landlock_net(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	/* The twin: port 0 of loopback may be bound. */
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (const struct sockaddr *)&sin, sizeof(sin)) != 0)
		return 77;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (confine_landlock(NULL, 0, false) != 0)
		return 1;
	if (bind(fd, (const struct sockaddr *)&sin, sizeof(sin)) == 0 ||
	    errno != EACCES)
		return 2;
	sin.sin_port = htons(1);
	return connect(fd, (const struct sockaddr *)&sin, sizeof(sin)) < 0 &&
		errno == EACCES ?
	    0 :
	    3;
}

static void
landlock_leaves_what_is_listed(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_landlock_none), 0);
	assert_int_equal(in_child(do_landlock_paths), 0);
	assert_int_equal(in_child(do_landlock_missing), 0);
	if (landlock_abi() >= 4)
		assert_int_equal(in_child(do_landlock_net), 0);
}

static char empty[64];

static int
do_chroot_empty(void)
{
	char file[96];
	int fd;

	(void)snprintf(file, sizeof(file), "%s/x", empty);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	if (fd < 0 || proc_chroot_empty(empty) != -ENOTEMPTY)
		return 1;
	if (unlink(file) != 0 || chmod(empty, 0777) != 0 ||
	    proc_chroot_empty(empty) != -EPERM)
		return 2;
	if (chmod(empty, 0755) != 0 || proc_chroot_empty(empty) != 0)
		return 3;
	return access("/usr", F_OK) < 0 && errno == ENOENT ? 0 : 4;
}

static void
only_an_empty_directory_of_root_is_a_new_root(void **state)
{
	(void)state;
	(void)snprintf(empty, sizeof(empty), "/tmp/confine-test-XXXXXX");
	assert_non_null(mkdtemp(empty));
	assert_int_equal(in_child(do_chroot_empty), 0);
	assert_int_equal(rmdir(empty), 0);
}

static int
do_bind(void)
{
	if (proc_bind_to_parent(getppid() + 1) != -ESRCH)
		return 1;
	if (proc_bind_to_parent(getppid()) != 0)
		return 2;
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : 3;
}

static void
a_parent_that_is_gone_is_noticed(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_bind), 0);
}

static int
do_begin(void)
{
	(void)close(PROC_CHANNEL_FD);
	proc_begin("stockade-test", PROC_CHANNEL_FD + 1);
	return 0;
}

static void
a_daemon_started_by_hand_ends(void **state)
{
	(void)state;
	assert_int_equal(in_child(do_begin), 125);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_listed_kills),
		cmocka_unit_test(an_unknown_call_is_an_error),
#ifdef __x86_64__
		cmocka_unit_test(other_entry_points_are_closed),
#endif
		cmocka_unit_test(a_deny_list_lets_the_rest_pass),
		cmocka_unit_test(landlock_leaves_what_is_listed),
		cmocka_unit_test(root_is_no_user_to_drop_to),
		cmocka_unit_test(a_parent_that_is_gone_is_noticed),
		cmocka_unit_test(a_daemon_started_by_hand_ends),
		/* As root only. */
		cmocka_unit_test(a_drop_leaves_nothing),
		cmocka_unit_test(a_drop_without_privilege_is_an_error),
		cmocka_unit_test(twin_seteuid_alone_is_taken_back),
		cmocka_unit_test(
		    a_limit_keeps_exactly_the_list_and_names_what_is_missing),
		cmocka_unit_test(file_system_ids_come_and_go),
		cmocka_unit_test(only_an_empty_directory_of_root_is_a_new_root),
	};

	return _cmocka_run_group_tests("confine", tests,
	    ARRAY_LEN(tests) - (geteuid() == 0 ? 0 : 6), NULL, NULL);
}
