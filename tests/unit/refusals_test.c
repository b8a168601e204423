/* The run's standard error and what becomes a record (SPEC L4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/control/refusals.h"

struct seen {
	size_t n;
	enum violation_action action;
	char target[REFUSALS_LINE + 1];
	char line[REFUSALS_LINE + 1];
};

static void
see(void *arg, enum violation_action action, const char *target,
    const char *line)
{
	struct seen *seen = arg;

	seen->n++;
	seen->action = action;
	(void)snprintf(seen->target, sizeof(seen->target), "%s", target);
	(void)snprintf(seen->line, sizeof(seen->line), "%s", line);
}

static const struct {
	const char *line;
	enum violation_action action;
	const char *target;
} rows[] = {
	{ "cat: /root/x: Permission denied", VIOLATION_FILE_READ, "/root/x" },
	{ "ls: cannot open directory '/root': Permission denied",
	    VIOLATION_FILE_READ, "/root" },
	{ "cat: secret: Permission denied", VIOLATION_FILE_READ, "secret" },
	{ "mkdir: cannot create directory \xe2\x80\x98/usr/x\xe2\x80\x99: "
	  "Permission denied",
	    VIOLATION_FILE_CREATE, "/usr/x" },
	{ "sh: 1: cannot create /etc/x: Permission denied",
	    VIOLATION_FILE_CREATE, "/etc/x" },
	{ "touch: cannot touch '/a b': Permission denied",
	    VIOLATION_FILE_CREATE, "/a b" },
	{ "rm: cannot remove '/w/.bashrc': Operation not permitted",
	    VIOLATION_FILE_UNLINK, "/w/.bashrc" },
	{ "mv: cannot move '/w/a' to '/w/b': Permission denied",
	    VIOLATION_FILE_RENAME, "/w/a" },
	{ "chmod: changing permissions of '/w/a': Operation not permitted",
	    VIOLATION_FILE_MODE, "/w/a" },
	{ "stockade: /usr/bin/mount: Permission denied", VIOLATION_EXEC,
	    "/usr/bin/mount" },
	{ "bash: line 1: /usr/bin/su: Permission denied", VIOLATION_EXEC,
	    "/usr/bin/su" },
	{ "Error: EPERM: operation not permitted, open '/w/.env'",
	    VIOLATION_FILE_READ, "/w/.env" },
	{ "fatal: Operation not permitted", VIOLATION_FILE_READ, "fatal" },
	{ "/bin/sh: 1: /usr/bin/su: Permission denied", VIOLATION_EXEC,
	    "/usr/bin/su" },
	{ "/x: Permission denied", VIOLATION_FILE_READ, "/x" },
	{ "/usr/bin/cat: a: Permission denied", VIOLATION_FILE_READ, "a" },
	{ "Permission denied", VIOLATION_FILE_READ, "" },
};

static void
refusals_are_found_in_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct refusals r = { 0 };
		struct seen seen = { 0 };

		refusals_feed(&r, (const uint8_t *)rows[i].line,
		    strlen(rows[i].line), see, &seen);
		assert_int_equal(seen.n, 0);
		refusals_end(&r, see, &seen);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.action, rows[i].action);
		assert_string_equal(seen.target, rows[i].target);
		assert_string_equal(seen.line, rows[i].line);
	}
}

static void
other_lines_make_no_record(void **state)
{
	static const char text[] = "all is well\ncat: /x: No such file or "
				   "directory\npermission granted\n\n\n";
	struct refusals r = { 0 };
	struct seen seen = { 0 };

	(void)state;
	refusals_feed(&r, (const uint8_t *)text, sizeof(text) - 1, see, &seen);
	refusals_end(&r, see, &seen);
	assert_int_equal(seen.n, 0);
}

static void
lines_may_come_in_any_pieces(void **state)
{
	static const char text[] = "x\ncat: /a: Permission denied\n"
				   "cat: /b: Permission denied\ny";
	(void)state;
	for (size_t step = 1; step < sizeof(text); step++) {
		struct refusals r = { 0 };
		struct seen seen = { 0 };

		for (size_t at = 0; at < sizeof(text) - 1; at += step)
			refusals_feed(&r, (const uint8_t *)text + at,
			    step < sizeof(text) - 1 - at ?
				step :
				sizeof(text) - 1 - at,
			    see, &seen);
		assert_int_equal(seen.n, 2);
		assert_string_equal(seen.target, "/b");
	}
}

static void
long_lines_and_floods_are_bounded(void **state)
{
	static const char line[] = "/x: Permission denied\n";
	static uint8_t big[100000];
	struct refusals r = { 0 };
	struct seen seen = { 0 };

	(void)state;
	memset(big, 'a', sizeof(big));
	refusals_feed(&r, big, sizeof(big), see, &seen);
	refusals_feed(&r, (const uint8_t *)line, sizeof(line) - 1, see, &seen);
	assert_int_equal(seen.n, 0); /* behind what is searched */
	memset(big, 0, sizeof(big));
	refusals_feed(&r, big, sizeof(big), see, &seen);
	refusals_feed(&r, (const uint8_t *)"\n", 1, see, &seen);
	for (size_t i = 0; i < REFUSALS_MAX + 10; i++)
		refusals_feed(&r, (const uint8_t *)line, sizeof(line) - 1, see,
		    &seen);
	assert_int_equal(seen.n, REFUSALS_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_are_found_in_lines),
		cmocka_unit_test(other_lines_make_no_record),
		cmocka_unit_test(lines_may_come_in_any_pieces),
		cmocka_unit_test(long_lines_and_floods_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
