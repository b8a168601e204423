/* Where our control groups are: texts of the kernel in all the layouts. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "launcherd/cgroup_layout.h"
#include "launcherd/mountinfo.h"

static struct cgroup_layout layout;

static void
pure_cgroup2(void **state)
{
	(void)state;
	assert_int_equal(
	    cgroup_layout_parse(
		"29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 "
		"rw,nsdelegate\n",
		"0::/system.slice/stockaded.service\n", &layout),
	    0);
	assert_string_equal(layout.unified,
	    "/sys/fs/cgroup/system.slice/stockaded.service");
	assert_string_equal(layout.unified_top, "/sys/fs/cgroup");
	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++)
		assert_string_equal(layout.legacy[i], "");
}

static void
hybrid(void **state)
{
	(void)state;
	assert_int_equal(
	    cgroup_layout_parse(
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
		"rw,cpu,cpuacct\n"
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup "
		"rw,memory\n"
		"39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
		"40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup "
		"rw,name=systemd\n"
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		"9:name=systemd:/s\n8:pids:/p/q\n4:memory:/m:x\n"
		"1:cpuacct,cpu:/\n0::/\n",
		&layout),
	    0);
	assert_string_equal(layout.unified, "/sys/fs/cgroup/unified");
	assert_string_equal(layout.legacy[CGROUP_MEMORY],
	    "/sys/fs/cgroup/memory/m:x");
	assert_string_equal(layout.legacy[CGROUP_PIDS],
	    "/sys/fs/cgroup/pids/p/q");
	assert_string_equal(layout.legacy[CGROUP_CPU],
	    "/sys/fs/cgroup/cpu,cpuacct");
}

static void
container_sees_its_own_part(void **state)
{
	(void)state;
	assert_int_equal(
	    cgroup_layout_parse(
		"41 31 0:38 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"0::/box/inner\n", &layout),
	    0);
	assert_string_equal(layout.unified, "/sys/fs/cgroup/inner");
	assert_int_equal(
	    cgroup_layout_parse(
		"41 31 0:38 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"0::/box\n", &layout),
	    0);
	assert_string_equal(layout.unified, "/sys/fs/cgroup");
}

static void
mount_that_does_not_show_us_is_not_used(void **state)
{
	static const char *const selves[] = { "0::/other\n", "0::/boxer\n",
		"0::/../x\n", "1:memory:/box\n", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(selves); i++)
		assert_int_equal(
		    cgroup_layout_parse(
			"41 31 0:38 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			selves[i], &layout),
		    -ENOENT);
}

static void
first_usable_mount_is_taken(void **state)
{
	(void)state;
	assert_int_equal(
	    cgroup_layout_parse("41 31 0:38 /else /a rw - cgroup2 cgroup2 rw\n"
				"42 31 0:38 / /b rw - cgroup2 cgroup2 rw\n"
				"43 31 0:38 / /c rw - cgroup2 cgroup2 rw\n",
		"0::/x\n", &layout),
	    0);
	assert_string_equal(layout.unified, "/b/x");
}

static void
a_file_system_called_cgroup2_elsewhere_is_none(void **state)
{
	(void)state;
	assert_int_equal(
	    cgroup_layout_parse(
		"41 31 0:38 / /home/u/-\\040cgroup2 rw - fuse.x cgroup2 rw,memory\n",
		"0::/x\n", &layout),
	    -ENOENT);
}

static void
mountinfo_lines(void **state)
{
	static const struct {
		const char *line;
		const char *point; /* NULL: refused */
	} rows[] = {
		{ "1 2 0:3 / /a rw - tmpfs x rw", "/a" },
		{ "1 2 0:3 / /a\\040b\\134c rw shared:1 master:2 - t x rw",
		    "/a b\\c" },
		{ "1 2 0:3 / /a\\04 rw - t x rw", "/a\\04" },
		{ "1 2 0:3 / /a\\000b rw - t x rw", NULL },
		{ "1 2 0:3 / /a\\777b rw - t x rw", NULL },
		{ "1 2 0:3 / /a\\089b rw - t x rw", NULL },
		{ "1 2 0:3 / /a rw", NULL },
		{ "1 2 0:3 / /a rw - t", NULL },
		{ "1 2 0:3 / /a rw - t x", NULL },
		{ "1 2 0:3 /", NULL },
		{ "", NULL },
		{ "1 2 0:3 / /a rw - a-type-of-more-than-thirty-two-bytes x rw",
		    NULL },
	};
	static struct mountinfo m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool ok =
		    mountinfo_read(rows[i].line, strlen(rows[i].line), &m);

		assert_int_equal(ok, rows[i].point != NULL);
		if (ok)
			assert_string_equal(m.point, rows[i].point);
	}
}

static void
mountinfo_path_that_is_too_long_is_refused(void **state)
{
	static struct mountinfo m;
	char *line = malloc(10000);
	size_t n;

	(void)state;
	assert_non_null(line);
	memcpy(line, "1 2 0:3 / ", 10);
	memset(line + 10, 'x', 5000);
	n = 5010;
	memcpy(line + n, " rw - t x rw", 13);
	assert_false(mountinfo_read(line, n + 12, &m));
	free(line);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pure_cgroup2),
		cmocka_unit_test(hybrid),
		cmocka_unit_test(container_sees_its_own_part),
		cmocka_unit_test(mount_that_does_not_show_us_is_not_used),
		cmocka_unit_test(first_usable_mount_is_taken),
		cmocka_unit_test(
		    a_file_system_called_cgroup2_elsewhere_is_none),
		cmocka_unit_test(mountinfo_lines),
		cmocka_unit_test(mountinfo_path_that_is_too_long_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
