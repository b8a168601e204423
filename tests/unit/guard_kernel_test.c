/* launcherd/guard: places by the mounts of a run, and what an event says. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/dfa.h"
#include "launcherd/guard/entries.h"
#include "launcherd/guard/event.h"
#include "protocol/guard.h"
#include "protocol/message.h"

static struct guard guard;
static struct guard_policy policy;
static struct guard_entry_paths paths;
static struct guard_event event;
static struct msg_denial denial;
static char base[] = "/tmp/guard-kernel-XXXXXX";
static int root_fd = -1;

static void
make_guard(const char *glob)
{
	static struct dfa_rule rule;
	const struct dfa_rules in = { .rules = &rule,
		.nrules = 1,
		.nroots = 2,
		.empty_roots = 2 };

	rule = (struct dfa_rule){ glob, DFA_WRITE, 1, DFA_BUILTIN, false };
	memset(&guard, 0, sizeof(guard));
	assert_int_equal(dfa_compile(&in, &guard.dfa, NULL), 0);
	guard.nroots = 2;
	guard.roots[0] = (struct guard_root){ "/work", 5, false };
	guard.roots[1] = (struct guard_root){ "/home/u", 7, true };
	guard.nrules = 1;
	guard.rules[0] = (struct guard_rule){ .text = glob,
		.origin = "test",
		.remedy = "allow it",
		.class = DFA_BUILTIN,
		.glob = glob,
		.mask = DFA_WRITE,
		.roots = 1 };
}

static int
set_up(void **state)
{
	static const char *const dirs[] = { "work", "work/a", "work/a/b",
		"home", "home/u" };
	char path[128];

	(void)state;
	if (mkdtemp(base) == NULL)
		return -1;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", base, dirs[i]);
		if (mkdir(path, 0700) < 0)
			return -1;
	}
	root_fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root_fd < 0 ? -1 : 0;
}

static int
tear_down(void **state)
{
	static const char *const dirs[] = { "work/a/b", "work/a", "work",
		"home/u", "home" };

	(void)state;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (unlinkat(root_fd, dirs[i], AT_REMOVEDIR) < 0)
			return -1;
	(void)close(root_fd);
	guard_entry_paths_free(&paths);
	return rmdir(base);
}

static int
make(const char *mounts)
{
	char why[GUARD_ENTRIES_WHY];

	guard_entry_paths_free(&paths);
	return guard_entries_make(&guard, mounts, root_fd, &policy, &paths,
	    why);
}

static void
a_root_is_its_directory_on_the_device_of_its_mount(void **state)
{
	struct stat st;

	(void)state;
	make_guard("**/.env");
	assert_int_equal(make("1 0 8:1 / / rw - ext4 d rw\n"
			      "2 1 8:2 /host/work /work rw - ext4 e rw\n"),
	    0);
	assert_int_equal(policy.nentries, 1);
	assert_int_equal(policy.entry[0].dev, 8u << 20 | 2);
	assert_int_equal(fstatat(root_fd, "work", &st, 0), 0);
	assert_true(policy.entry[0].ino == st.st_ino);
	assert_int_equal(policy.entry[0].nprefix, 0);
}

static void
a_file_system_below_it_has_its_way_to_the_root(void **state)
{
	(void)state;
	make_guard("/a/b/c");
	assert_int_equal(make("2 1 8:2 /w /work rw - ext4 e rw\n"
			      "3 2 8:3 / /work/a/b rw - ext4 f rw\n"),
	    0);
	assert_int_equal(policy.nentries, 2);
	assert_int_equal(policy.entry[1].nprefix, 2);
	assert_true(policy.entry[1].prefix[0] == dfa_name(&guard.dfa, "b", 1));
	assert_true(policy.entry[1].prefix[1] == dfa_name(&guard.dfa, "a", 1));
	assert_string_equal(paths.path[1], "/work/a/b");
}

static void
what_the_walk_meets_anyway_has_no_entry(void **state)
{
	(void)state;
	make_guard("**/.env");
	/* Bound on itself; read-only; covered by a later one. */
	assert_int_equal(make("2 1 8:2 /w /work rw - ext4 e rw\n"
			      "3 2 8:2 /w/a /work/a rw - ext4 e rw\n"
			      "4 2 0:9 / /work/a/b ro,nosuid - tmpfs t rw\n"
			      "5 1 0:8 / /home/u rw - tmpfs t rw\n"),
	    0);
	assert_int_equal(policy.nentries, 1);
	assert_int_equal(make("2 1 8:2 /w /work rw - ext4 e rw\n"
			      "3 2 8:9 / /work/a rw - ext4 e rw\n"
			      "4 2 8:2 /w/a /work/a rw - ext4 e rw\n"),
	    0);
	assert_int_equal(policy.nentries, 1);
}

static void
another_directory_of_the_same_file_system_has_one(void **state)
{
	(void)state;
	make_guard("**/.env");
	assert_int_equal(make("2 1 8:2 /w /work rw - ext4 e rw\n"
			      "3 2 8:2 /other /work/a rw - ext4 e rw\n"),
	    0);
	assert_int_equal(policy.nentries, 2);
}

static void
a_root_without_a_mount_or_a_directory_is_refused(void **state)
{
	(void)state;
	make_guard("**/.env");
	assert_int_equal(make(""), -EINVAL);
	guard.roots[0] = (struct guard_root){ "/gone", 5, false };
	assert_int_equal(make("1 0 8:1 / / rw - ext4 d rw\n"), -ENOENT);
}

static void
set_event(const char *path, size_t len, const char *exe, size_t exe_len)
{
	memset(&event, 0, sizeof(event));
	memcpy(event.path, path, len);
	event.path_len = (uint32_t)len;
	memcpy(event.exe, exe, exe_len);
	event.exe_len = (uint16_t)exe_len;
	memcpy(event.comm, "0123456789abcdef", sizeof(event.comm));
	event.asked = event.denied = DFA_WRITE;
	event.action = VIOLATION_FILE_CREATE;
	event.pid = 7;
}

static void
an_event_names_place_rule_and_program(void **state)
{
	(void)state;
	make_guard("**/.env");
	assert_int_equal(make("2 1 8:2 /w /work rw - ext4 e rw\n"), 0);
	set_event(".env\0b\0a", 9, "sh\0bin", 7);
	guard_event_denial(&event, &guard, &paths, &denial);
	assert_string_equal(denial.path, "/work/a/b/.env");
	assert_string_equal(denial.exe, "/bin/sh");
	assert_string_equal(denial.rule, "**/.env");
	assert_string_equal(denial.remedy, "allow it");
	assert_int_equal(denial.pid, 7);
	assert_int_equal(denial.count, 1);
}

static void
nothing_in_an_event_is_trusted(void **state)
{
	(void)state;
	make_guard("**/.env");
	assert_int_equal(make("2 1 8:2 /w /work rw - ext4 e rw\n"), 0);
	set_event("x", 1, "y", 1);
	event.path_len = UINT32_MAX;
	event.exe_len = UINT16_MAX;
	event.entry = UINT16_MAX;
	event.action = UINT16_MAX;
	event.rule = 12345;
	guard_event_denial(&event, &guard, &paths, &denial);
	assert_string_equal(denial.path, "");
	assert_string_equal(denial.exe, "0123456789abcdef");
	assert_string_equal(denial.rule, "");
	assert_true(denial.action < VIOLATION_COUNT);
	/* Longer than a message: cut off at the root's side of the leaf. */
	for (size_t i = 0; i + 1 < sizeof(event.path); i += 2)
		memcpy(event.path + i, "a", 2);
	event.path_len = sizeof(event.path);
	guard_event_denial(&event, &guard, &paths, &denial);
	assert_true(strlen(denial.path) < sizeof(denial.path));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_root_is_its_directory_on_the_device_of_its_mount),
		cmocka_unit_test(
		    a_file_system_below_it_has_its_way_to_the_root),
		cmocka_unit_test(what_the_walk_meets_anyway_has_no_entry),
		cmocka_unit_test(
		    another_directory_of_the_same_file_system_has_one),
		cmocka_unit_test(
		    a_root_without_a_mount_or_a_directory_is_refused),
		cmocka_unit_test(an_event_names_place_rule_and_program),
		cmocka_unit_test(nothing_in_an_event_is_trusted),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
