/* The argument vector for bubblewrap, from plans made by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "launcherd/bwrap_args.h"
#include "launcherd/source.h"
#include "launcherd/view.h"
#include "protocol/plan.h"

static struct plan plan;
static struct sources sources;
static int mount_fds[PLAN_MOUNTS_MAX];
static int file_fds[] = { 61, 62, 63 };
static char path_certs[] = "/etc/ssl/certs";
static char link_certs[] = "/run/stockade/etc/ssl/certs";
static char path_shells[] = "/etc/shells";
static char link_shells[] = "/run/stockade/etc/shells";
static struct view_entry entries[] = {
	{ path_certs, link_certs },
	{ path_shells, link_shells },
};
static struct view_tree tree = { .fd = 20, .nentries = 2, .entries = entries };
static const char *const root_links[] = { "/bin", "usr/bin", NULL };
static const char *const root_binds[] = { "/lib64", NULL };
static struct bwrap_args args;
static const char *why;

static void
add_mount(const char *target, bool read_only)
{
	plan.mounts[plan.nmounts] = (struct plan_mount){ .source = target,
		.target = target,
		.kind = PLAN_DIR,
		.read_only = read_only };
	mount_fds[plan.nmounts] = 100 + (int)plan.nmounts;
	plan.nmounts++;
}

static int
build(void)
{
	const struct bwrap_input in = {
		.plan = &plan,
		.sources = &sources,
		.etc = &tree,
		.file_fds = file_fds,
		.init_fd = 21,
		.info_fd = 24,
		.connect_fd = 22,
		.etc_fd = 20,
		.root_links = root_links,
		.root_binds = root_binds,
	};

	sources.nmounts = plan.nmounts;
	sources.mounts = mount_fds;
	return bwrap_args_build(&in, &args, &why);
}

static int
setup(void **state)
{
	(void)state;
	memset(&plan, 0, sizeof(plan));
	memset(&sources, 0, sizeof(sources));
	plan.home = "/home/u";
	plan.cwd = "/home/u";
	plan.hostname = "box";
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	bwrap_args_done(&args);
	return 0;
}

/* Position of the words (separated by spaces) in the vector, or -1. */
static long
find(const char *words)
{
	char joined[4096];
	size_t n = strlen(words);

	assert_true(n < sizeof(joined));
	for (size_t i = 0; i <= n; i++)
		joined[i] = words[i] == ' ' ? '\0' : words[i];
	for (size_t at = 0; at + n + 1 <= args.len; at++)
		if ((at == 0 || args.data[at - 1] == '\0') &&
		    memcmp(args.data + at, joined, n + 1) == 0)
			return (long)at;
	return -1;
}

static bool
has_fd(int fd)
{
	for (size_t i = 0; i < args.nfds; i++)
		if (args.fds[i] == fd)
			return true;
	return false;
}

static void
fixed_view(void **state)
{
	static const char *const words[] = {
		"--unshare-pid",
		"--unshare-ipc",
		"--unshare-uts",
		"--unshare-cgroup",
		"--hostname box",
		"--as-pid-1",
		"--die-with-parent",
		"--new-session",
		"--clearenv",
		"--cap-drop ALL --cap-add CAP_SETUID",
		"--ro-bind /usr /usr",
		"--symlink usr/bin /bin",
		"--ro-bind /lib64 /lib64",
		"--proc /proc --ro-bind /proc/sys /proc/sys",
		"--dev /dev",
		"--perms 1777 --tmpfs /tmp",
		"--perms 0755 --tmpfs /run",
		"--perms 0700 --dir /run/stockade/run",
		"--ro-bind-fd 21 /run/stockade/init",
		"--ro-bind-fd 22 /run/stockade/connect",
		"--ro-bind-fd 20 /run/stockade/etc",
		("--perms 0755 --dir /etc/ssl --symlink "
		 "/run/stockade/etc/ssl/certs /etc/ssl/certs"),
		"--perms 0755 --dir /home --perms 0700 --tmpfs /home/u",
		"--remount-ro / --chdir /",
	};

	(void)state;
	assert_int_equal(build(), 0);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (find(words[i]) < 0)
			fail_msg("missing: %s", words[i]);
	assert_int_equal(find("--unshare-net"), -1);
	assert_int_equal(find("--unshare-user"), -1);
	assert_true(find("--info-fd 24") >= 0);
	assert_true(has_fd(20) && has_fd(21) && has_fd(22) && has_fd(24));
	assert_int_equal(args.nfds, 4);
}

static void
sizes_are_given_where_there_is_a_limit(void **state)
{
	(void)state;
	plan.limits.tmp_bytes = 11;
	plan.limits.shm_bytes = 22;
	plan.limits.home_bytes = 33;
	assert_int_equal(build(), 0);
	assert_true(find("--perms 1777 --size 11 --tmpfs /tmp") >= 0);
	assert_true(find("--perms 1777 --size 22 --tmpfs /dev/shm") >= 0);
	assert_true(find("--perms 0700 --size 33 --tmpfs /home/u") >= 0);
}

static void
parents_are_made_once_and_not_inside_mounts(void **state)
{
	long first;

	(void)state;
	add_mount("/home/u/a/b", false);
	add_mount("/home/u/a/c", true);
	add_mount("/home/u/a/b/inner/x", true);
	add_mount("/tmp/w", false);
	assert_int_equal(build(), 0);
	first = find("--perms 0755 --dir /home/u/a --bind-fd 100 /home/u/a/b");
	assert_true(first > find("--tmpfs /home/u"));
	assert_true(find("--ro-bind-fd 101 /home/u/a/c --ro-bind-fd 102 "
			 "/home/u/a/b/inner/x --bind-fd 103 /tmp/w") > first);
	assert_int_equal(find("--dir /tmp"), -1);
	assert_int_equal(find("--dir /home/u/a/b/inner"), -1);
}

static void
name_with_a_common_beginning_is_no_parent(void **state)
{
	(void)state;
	add_mount("/home/u/a", false);
	add_mount("/home/u/ab/c", false);
	assert_int_equal(build(), 0);
	assert_true(find("--dir /home/u/ab --bind-fd 101 /home/u/ab/c") >= 0);
}

/* They are mounted later, by launcherd. */
static void
masks_are_not_bubblewraps(void **state)
{
	static char target[] = "/home/u/a/.ssh";
	static struct source_mask mask = { .target = target,
		.how = PLAN_MASK_EMPTY_DIR };

	(void)state;
	add_mount("/home/u/a", false);
	sources.nmasks = 1;
	sources.masks = &mask;
	assert_int_equal(build(), 0);
	assert_int_equal(find(target), -1);
}

static void
generated_file_wins_over_the_hosts(void **state)
{
	(void)state;
	plan.nfiles = 2;
	plan.files[0].path = "/etc/shells";
	plan.files[1].path = "/etc/claude-code/managed-settings.json";
	assert_int_equal(build(), 0);
	assert_int_equal(find("--symlink /run/stockade/etc/shells"), -1);
	assert_true(find("--perms 0444 --file 61 /etc/shells --perms 0755 "
			 "--dir /etc/claude-code --perms 0444 --file 62 "
			 "/etc/claude-code/managed-settings.json") >= 0);
}

static void
generated_file_below_a_link_is_refused(void **state)
{
	(void)state;
	plan.nfiles = 1;
	plan.files[0].path = "/etc/ssl/certs/x.pem";
	assert_int_equal(build(), -EPERM);
}

static void
targets_of_the_fixed_view_are_refused(void **state)
{
	static const char *const targets[] = { "/", "/usr", "/usr/local/x",
		"/etc", "/etc/x", "/proc/1", "/sys", "/dev/null", "/run",
		"/run/stockade/init", "/bin/sh", "/sbin", "/lib/x", "/lib64/x",
		"/tmp", "/home", "/var", "/var/tmp" };
	static const char *const permitted[] = { "/usrx", "/tmp/x", "/home/x",
		"/var/lib/x", "/opt/x", "/srv" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		(void)setup(NULL);
		add_mount(targets[i], true);
		assert_int_equal(build(), -EPERM);
		assert_null(args.data);
		(void)setup(NULL);
		plan.home = targets[i];
		assert_int_equal(build(), -EPERM);
	}
	for (size_t i = 0; i < ARRAY_LEN(permitted); i++) {
		(void)setup(NULL);
		add_mount(permitted[i], true);
		assert_int_equal(build(), 0);
		bwrap_args_done(&args);
	}
}

static void
mount_that_hides_the_home_is_refused(void **state)
{
	(void)state;
	plan.home = "/srv/h/u";
	add_mount("/srv/h", false);
	assert_int_equal(build(), -EPERM);
	(void)setup(NULL);
	add_mount("/home/u", false); /* the home itself: permitted */
	assert_int_equal(build(), 0);
	assert_int_equal(find("--tmpfs /home/u"), -1);
	assert_true(find("--bind-fd 100 /home/u") >= 0);
}

/* Each mount with as many parents of its own as its path can hold. */
static void
more_than_bubblewrap_takes_is_refused(void **state)
{
	static char targets[PLAN_MOUNTS_MAX][64];

	(void)state;
	for (unsigned i = 0; i < PLAN_MOUNTS_MAX; i++) {
		(void)snprintf(targets[i], sizeof(targets[i]),
		    "/srv/%u/a/b/c/d/e/f", i);
		add_mount(targets[i], false);
	}
	assert_int_equal(build(), -E2BIG);
	plan.nmounts = 256;
	assert_int_equal(build(), 0);
	assert_true(args.count <= BWRAP_ARGS_MAX);
}

static void
equal_input_gives_equal_text(void **state)
{
	char *first;
	size_t len;

	(void)state;
	add_mount("/home/u/a", false);
	assert_int_equal(build(), 0);
	len = args.len;
	first = malloc(len);
	assert_non_null(first);
	memcpy(first, args.data, len);
	bwrap_args_done(&args);
	assert_int_equal(build(), 0);
	assert_int_equal(args.len, len);
	assert_memory_equal(args.data, first, len);
	free(first);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fixed_view),
		TEST(sizes_are_given_where_there_is_a_limit),
		TEST(parents_are_made_once_and_not_inside_mounts),
		TEST(name_with_a_common_beginning_is_no_parent),
		TEST(masks_are_not_bubblewraps),
		TEST(generated_file_wins_over_the_hosts),
		TEST(generated_file_below_a_link_is_refused),
		TEST(targets_of_the_fixed_view_are_refused),
		TEST(mount_that_hides_the_home_is_refused),
		TEST(more_than_bubblewrap_takes_is_refused),
		TEST(equal_input_gives_equal_text),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
