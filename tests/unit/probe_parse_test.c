/* What the probe's programs print, and the group list of a run. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "common/size.h"
#include "launcherd/lookups.h"
#include "launcherd/probe.h"

static struct probe_result rows[PROBE_ROW_COUNT];

static void
parse(const char *text)
{
	memset(rows, 0, sizeof(rows));
	probe_parse_rows(text, strlen(text), rows);
}

static void
complete_text_fills_the_rows(void **state)
{
	(void)state;
	parse("identity ok uid 65534\nseccomp ok allow-list\n"
	      "landlock fail not there\nend ok rows=3\n");
	assert_true(rows[PROBE_SECCOMP].available);
	assert_string_equal(rows[PROBE_SECCOMP].detail, "allow-list");
	assert_true(rows[PROBE_LANDLOCK].known);
	assert_false(rows[PROBE_LANDLOCK].available);
	assert_true(rows[PROBE_NAMESPACES].available);
	assert_false(rows[PROBE_USERNS].known);
}

static void
first_failed_part_is_named_by_namespaces(void **state)
{
	(void)state;
	parse("identity ok\nfiles.read fail /etc/shadow\nfiles.create fail x\n"
	      "namespaces ok pid 2\nend ok rows=4\n");
	assert_false(rows[PROBE_NAMESPACES].available);
	assert_string_equal(rows[PROBE_NAMESPACES].detail,
	    "files.read: /etc/shadow");
}

static void
anything_but_the_exact_form_counts_as_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"seccomp ok x\n",
		"seccomp ok x\nend ok rows=2\n",
		"seccomp ok x\nend ok rows=01\n",
		"seccomp ok x\nend fail rows=1\n",
		"seccomp ok x\nend ok rows=1\nseccomp ok y\n",
		"seccomp ok x\nend ok rows=1",
		"seccomp okay x\nend ok rows=1\n",
		"seccomp yes x\nend ok rows=1\n",
		" ok x\nend ok rows=1\n",
		"seccomp\nend ok rows=1\n",
		"seccomp ok x\nend ok rows=1\n\n",
		"a-name-that-is-much-longer-than-any-row ok\nend ok rows=1\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		parse(texts[i]);
		for (size_t k = 0; k < PROBE_ROW_COUNT; k++)
			assert_false(rows[k].known || rows[k].available);
	}
}

static void
nul_does_not_end_a_name(void **state)
{
	static const char text[] = "seccomp ok x\nend\0x ok rows=1\n";

	(void)state;
	memset(rows, 0, sizeof(rows));
	probe_parse_rows(text, sizeof(text) - 1, rows);
	assert_false(rows[PROBE_SECCOMP].known);
}

static void
row_that_comes_twice_is_false(void **state)
{
	(void)state;
	parse("seccomp ok x\nseccomp ok x\nend ok rows=2\n");
	assert_true(rows[PROBE_SECCOMP].known);
	assert_false(rows[PROBE_SECCOMP].available);
	parse("seccomp fail x\nseccomp ok x\nend ok rows=2\n");
	assert_false(rows[PROBE_SECCOMP].available);
}

static void
detail_is_cleaned_and_cut(void **state)
{
	char text[1200];

	(void)state;
	parse("seccomp fail a\033[2Jb\nend ok rows=1\n");
	assert_null(strchr(rows[PROBE_SECCOMP].detail, '\033'));
	memset(text, 'x', sizeof(text));
	memcpy(text, "seccomp fail ", 13);
	memcpy(text + 1000, "\nend ok rows=1\n", 16);
	parse(text);
	assert_true(rows[PROBE_SECCOMP].known);
	assert_true(strlen(rows[PROBE_SECCOMP].detail) <= PROBE_DETAIL_MAX);
}

static void
versions(void **state)
{
	static const struct {
		const char *text;
		bool ok;
	} table[] = {
		{ "bubblewrap 0.8.0\n", true },
		{ "bubblewrap 0.8.0", true },
		{ "bubblewrap 0.11.0\n", true },
		{ "bubblewrap 1.0\n", true },
		{ "bubblewrap 0.7.9\n", false },
		{ "bubblewrap 0\n", false },
		{ "bubblewrap 0.\n", false },
		{ "bubblewrap x.9\n", false },
		{ "bubblewrap -1.9\n", false },
		{ "bwrap 0.8.0\n", false },
		{ "", false },
		{ "bubblewrap ", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(probe_version_ok(table[i].text), table[i].ok);
}

static int
groups_of(const uint32_t *raw, size_t n, gid_t ret[LOOKUP_GROUPS_MAX])
{
	return lookup_groups((const uint8_t *)raw, n * sizeof(*raw), 50, 60,
	    ret);
}

static void
service_groups_and_repeats_are_left_out(void **state)
{
	static const uint32_t raw[] = { 7, 50, 8, 7, 60, 9, UINT32_MAX, 50 };
	static gid_t got[LOOKUP_GROUPS_MAX];

	(void)state;
	assert_int_equal(groups_of(raw, ARRAY_LEN(raw), got), 3);
	assert_int_equal(got[0], 7);
	assert_int_equal(got[1], 8);
	assert_int_equal(got[2], 9);
	assert_int_equal(groups_of(raw, 0, got), 0);
	assert_int_equal(lookup_groups((const uint8_t *)raw, 6, 0, 0, got),
	    -EINVAL);
}

static void
too_many_groups(void **state)
{
	static uint32_t raw[LOOKUP_GROUPS_MAX + 1];
	static gid_t got[LOOKUP_GROUPS_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(raw); i++)
		raw[i] = (uint32_t)i + 100;
	assert_int_equal(groups_of(raw, ARRAY_LEN(raw), got), -E2BIG);
	assert_int_equal(groups_of(raw, LOOKUP_GROUPS_MAX, got),
	    LOOKUP_GROUPS_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_text_fills_the_rows),
		cmocka_unit_test(first_failed_part_is_named_by_namespaces),
		cmocka_unit_test(anything_but_the_exact_form_counts_as_nothing),
		cmocka_unit_test(nul_does_not_end_a_name),
		cmocka_unit_test(row_that_comes_twice_is_false),
		cmocka_unit_test(detail_is_cleaned_and_cut),
		cmocka_unit_test(versions),
		cmocka_unit_test(service_groups_and_repeats_are_left_out),
		cmocka_unit_test(too_many_groups),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
