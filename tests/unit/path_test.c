/*
 * Paths of others.
 */
#include <sys/stat.h>

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
#include <stdio.h>

#include <cmocka.h>

#include "common/path.h"
#include "common/size.h"

static char dir[64];

static void
clean_paths_are_told_from_others(void **state)
{
	/* clang-format off */
	static const struct {
		const char *path;
		bool clean;
	} rows[] = {
		{ "/", true }, { "/a", true }, { "/a/b.c/...", true },
		{ "", false }, { "a", false }, { "//", false },
		{ "/a/", false }, { "/a//b", false }, { "/.", false },
		{ "/a/./b", false }, { "/a/..", false }, { "/..", false },
		{ "/..a", true }, { "/a/.b", true },
	};
	/* clang-format on */
	static char longest[4098];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(path_is_clean(rows[i].path), rows[i].clean);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[0] = '/';
	assert_false(path_is_clean(longest));
	longest[4095] = '\0';
	assert_true(path_is_clean(longest));
}

static void
within_means_whole_components(void **state)
{
	(void)state;
	assert_true(path_is_within("/a/b", "/a"));
	assert_true(path_is_within("/a", "/a"));
	assert_true(path_is_within("/a", "/"));
	assert_false(path_is_within("/ab", "/a"));
	assert_false(path_is_within("/", "/a"));
	assert_false(path_is_within("/b/a", "/a"));
}

static void
magic_links_are_not_followed(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(path_open("/proc/self/fd/0", O_PATH), -ELOOP);
	assert_int_equal(path_open("/proc/self/cwd/x", O_PATH), -ELOOP);
	assert_int_equal(path_open("relative", O_PATH), -EINVAL);
	/* The twin: open(2) follows it. */
	fd = open("/proc/self/cwd", O_PATH);
	assert_true(fd >= 0);
	(void)close(fd);
}

static void
ordinary_links_are_followed(void **state)
{
	char link[128];
	int fd;

	(void)state;
	(void)snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink("/dev/null", link), 0);
	fd = path_open(link, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	(void)close(fd);
}

static void
beneath_stays_beneath(void **state)
{
	int base = open(dir, O_PATH | O_DIRECTORY);
	int fd;

	(void)state;
	assert_int_equal(path_open_beneath(base, "..", O_PATH), -EXDEV);
	assert_int_equal(path_open_beneath(base, "/etc", O_PATH), -EXDEV);
	assert_int_equal(path_open_beneath(base, "link", O_RDONLY), -ELOOP);
	assert_int_equal(path_open_beneath(base, "none", O_PATH), -ENOENT);
	/* The twin: openat(2) leaves it. */
	fd = openat(base, "../", O_PATH);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)close(base);
}

static void
a_descriptor_tells_its_path(void **state)
{
	char name[128], got[4096];
	int fd;

	(void)state;
	(void)snprintf(name, sizeof(name), "%s/x (deleted)", dir);
	fd = open(name, O_CREAT | O_RDWR, 0600);
	assert_int_equal(path_of_fd(fd, got, sizeof(got)), 0);
	assert_string_equal(got, name);
	assert_int_equal(path_of_fd(fd, got, 4), -ENAMETOOLONG);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(path_of_fd(fd, got, sizeof(got)), -ENOENT);
	(void)close(fd);
}

static void
a_pipe_has_no_path(void **state)
{
	int pair[2];
	char got[64];

	(void)state;
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(path_of_fd(pair[0], got, sizeof(got)), -ENOENT);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static int
setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "%s", "/tmp/path-test-XXXXXX");
	return mkdtemp(dir) == NULL;
}

static int
teardown(void **state)
{
	char name[128];

	(void)state;
	(void)snprintf(name, sizeof(name), "%s/link", dir);
	(void)unlink(name);
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_paths_are_told_from_others),
		cmocka_unit_test(within_means_whole_components),
		cmocka_unit_test(magic_links_are_not_followed),
		cmocka_unit_test(ordinary_links_are_followed),
		cmocka_unit_test(beneath_stays_beneath),
		cmocka_unit_test(a_descriptor_tells_its_path),
		cmocka_unit_test(a_pipe_has_no_path),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
