/* The run's standard error and what becomes a record (SPEC L4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/plan.h"
#include "supervisor/control/refusals.h"

struct seen {
	size_t n;
	enum refusal_kind kind;
	enum violation_action action;
	char target[REFUSALS_LINE + 1];
	char line[REFUSALS_LINE + 1];
};

static void
see(void *arg, enum refusal_kind kind, enum violation_action action,
    const char *target, const char *line)
{
	struct seen *seen = arg;

	seen->n++;
	seen->kind = kind;
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

static struct plan plan = { .home = "/home/u",
	.cwd = "/w/sub",
	.nmounts = 3,
	.mounts = { { .target = "/w" }, { .target = "/ro", .read_only = true },
	    { .target = "/ro/rw" } },
	.nmasks = 6,
	.masks = { { .path = "/home/u/.claude/settings.json",
		       .how = PLAN_MASK_READ_ONLY },
	    { .path = "/w/.git", .how = PLAN_MASK_PINNED },
	    { .path = "/w/.git/config", .how = PLAN_MASK_READ_ONLY },
	    { .path = "/w/.git/hooks", .how = PLAN_MASK_READ_ONLY },
	    { .path = "/w/sub/.bashrc", .how = PLAN_MASK_READ_ONLY },
	    { .path = "/w/a b", .how = PLAN_MASK_READ_ONLY } } };

/* path NULL: no record */
static const struct {
	const char *line;
	enum violation_action action;
	const char *path;
	const char *remedy;
} places[] = {
	{ "error: could not write config file .git/config: Device or resource "
	  "busy",
	    VIOLATION_FILE_DATA, "/w/.git/config", "git -c" },
	{ "fatal: cannot create .git/hooks/x: Read-only file system",
	    VIOLATION_FILE_CREATE, "/w/.git/hooks/x", "outside the run" },
	{ "bash: line 1: /home/u/.claude/settings.json: Read-only file system",
	    VIOLATION_FILE_DATA, "/home/u/.claude/settings.json", "outside" },
	{ "~/.claude/settings.json: Read-only file system", VIOLATION_FILE_DATA,
	    "/home/u/.claude/settings.json", "outside the run" },
	{ "touch: cannot touch '/ro/x': Read-only file system",
	    VIOLATION_FILE_CREATE, "/ro/x", "writable mount" },
	{ "OSError: [Errno 30] Read-only file system: '/ro/x'",
	    VIOLATION_FILE_DATA, "/ro/x", "writable mount" },
	{ "Error: EROFS: read-only file system, open '/w/sub/.bashrc'",
	    VIOLATION_FILE_DATA, "/w/sub/.bashrc", "outside the run" },
	{ "Error: EBUSY: resource busy or locked, rename '/w/x' -> "
	  "'/w/.git/config'",
	    VIOLATION_FILE_RENAME, "/w/.git/config", "git -c" },
	{ "rm: cannot remove '.bashrc': Device or resource busy",
	    VIOLATION_FILE_UNLINK, "/w/sub/.bashrc", "outside the run" },
	{ "sh: 1: cannot create ./.bashrc: Read-only file system",
	    VIOLATION_FILE_CREATE, "/w/sub/.bashrc", "outside the run" },
	{ "mv: cannot move '/w/.git' to '/w/g': Device or resource busy",
	    VIOLATION_FILE_RENAME, "/w/.git", "outside the run" },
	{ "tee: '/w/a b': Read-only file system", VIOLATION_FILE_DATA, "/w/a b",
	    "outside the run" },
	{ "touch: cannot touch '/ro/rw/x': Read-only file system", 0, NULL,
	    NULL },
	{ "touch: cannot touch '/usr/x': Read-only file system", 0, NULL,
	    NULL },
	{ "touch: cannot touch '/w/.git/x': Read-only file system", 0, NULL,
	    NULL },
	{ "touch: cannot touch 'config': Read-only file system", 0, NULL,
	    NULL },
	{ "umount: /mnt: Device or resource busy", 0, NULL, NULL },
	{ "rm: cannot remove '/w/.git/hooks/x': Device or resource busy", 0,
	    NULL, NULL },
	{ "rm: cannot remove '/ro': Device or resource busy", 0, NULL, NULL },
	{ "x/../.git/config: Device or resource busy", 0, NULL, NULL },
	{ ".git/: Device or resource busy", 0, NULL, NULL },
	{ "Device or resource busy", 0, NULL, NULL },
	{ "/: Read-only file system", 0, NULL, NULL },
	{ "' ' //// \"\"\" EROFS", 0, NULL, NULL },
};

static void
what_a_plan_keeps_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		static struct refusal_place place;
		struct refusals r = { 0 };
		struct seen seen = { 0 };
		bool is;

		refusals_feed(&r, (const uint8_t *)places[i].line,
		    strlen(places[i].line), see, &seen);
		refusals_end(&r, see, &seen);
		assert_int_equal(seen.n, 1);
		assert_int_not_equal(seen.kind, REFUSAL_DENIED);
		is = refusals_place(&plan, seen.kind, seen.line, &place);
		if (is != (places[i].path != NULL))
			fail_msg("%s", places[i].line);
		if (!is)
			continue;
		assert_int_equal(seen.action, places[i].action);
		assert_string_equal(place.path, places[i].path);
		assert_non_null(strstr(place.remedy, places[i].remedy));
	}
}

/* They do not use up what the certain ones may have. */
static void
doubtful_lines_are_bounded_apart(void **state)
{
	static const char line[] = "/x: Device or resource busy\n";
	static const char last[] = "/y: Permission denied\n";
	struct refusals r = { 0 };
	struct seen seen = { 0 };

	(void)state;
	for (size_t i = 0; i < REFUSALS_MAX + 10; i++)
		refusals_feed(&r, (const uint8_t *)line, sizeof(line) - 1, see,
		    &seen);
	assert_int_equal(seen.n, REFUSALS_MAX);
	refusals_feed(&r, (const uint8_t *)last, sizeof(last) - 1, see, &seen);
	assert_int_equal(seen.n, REFUSALS_MAX + 1);
	assert_string_equal(seen.target, "/y");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_are_found_in_lines),
		cmocka_unit_test(other_lines_make_no_record),
		cmocka_unit_test(lines_may_come_in_any_pieces),
		cmocka_unit_test(long_lines_and_floods_are_bounded),
		cmocka_unit_test(what_a_plan_keeps_is_told),
		cmocka_unit_test(doubtful_lines_are_bounded_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
