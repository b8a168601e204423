/*
 * Log records: hostile values stay inside their field.
 */
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

#include "common/log.h"
#include "common/size.h"

/* clang-format off */
static const struct {
	const char *in;
	size_t len;
	const char *out;
} cleaned[] = {
	{ "plain text", 10, "plain text" },
	{ "a\nb", 3, "a\\x0ab" },
	{ "\x1b[31m", 5, "\\x1b[31m" },
	{ "a\0b", 3, "a\\x00b" },
	{ "\x7f", 1, "\\x7f" },
	{ "gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f" },
	{ "\xe2\x82\xac", 3, "\xe2\x82\xac" },
	{ "\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80" },
	{ "\xc2\x9b" "31m", 5, "\\xc2\\x9b31m" },	/* C1: CSI */
	{ "\xc0\xaf", 2, "\\xc0\\xaf" },		/* overlong */
	{ "\xe0\x80\xaf", 3, "\\xe0\\x80\\xaf" },
	{ "\xed\xa0\x80", 3, "\\xed\\xa0\\x80" },	/* surrogate */
	{ "\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80" },
	{ "\xe2\x82", 2, "\\xe2\\x82" },		/* cut */
	{ "", 0, "" },
};
/* clang-format on */

static void
outside_text_is_cleaned(void **state)
{
	char buf[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cleaned); i++) {
		size_t n =
		    log_clean(buf, sizeof(buf), cleaned[i].in, cleaned[i].len);

		assert_string_equal(buf, cleaned[i].out);
		assert_int_equal(n, strlen(buf));
	}
}

static void
a_cut_never_splits_a_character(void **state)
{
	char buf[8];

	(void)state;
	assert_int_equal(log_clean(buf, 6, "abc\xe2\x82\xac", 6), 3);
	assert_string_equal(buf, "abc");
	assert_int_equal(log_clean(buf, 6, "ab\x01", 3), 2);
	assert_int_equal(log_clean(buf, 1, "ab", 2), 0);
	assert_int_equal(log_clean(NULL, 0, "ab", 2), 0);
}

/* Runs one record with standard error in a file and returns the text. */
static void
capture(char *buf, size_t size, const struct log_field *fields, size_t n,
    enum log_event_id event)
{
	int file = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	int saved = dup(STDERR_FILENO);
	ssize_t len;

	assert_true(file >= 0);
	(void)dup2(file, STDERR_FILENO);
	log_record(event, fields, n);
	(void)dup2(saved, STDERR_FILENO);
	(void)close(saved);
	len = pread(file, buf, size - 1, 0);
	assert_true(len >= 0);
	buf[len] = '\0';
	(void)close(file);
}

static void
a_value_begins_no_new_field_and_no_new_line(void **state)
{
	char buf[4096];
	const struct log_field fields[] = {
		LF_STR(LK_HOST, "evil\nPRIORITY=0 STOCKADE_RULE=\"x\""),
		LF_NUM(LK_PORT, 443),
	};

	(void)state;
	log_init("test", LOG_LEVEL_INFO);
	assert_int_equal(log_fd(), -1);
	capture(buf, sizeof(buf), fields, 2, EV_EGRESS_DENIED);
	assert_string_equal(buf,
	    "PRIORITY=5 MESSAGE=\"connection refused\" "
	    "STOCKADE_PROC=test STOCKADE_EVENT=EGRESS_DENIED "
	    "STOCKADE_HOST=\"evil\\x0aPRIORITY=0 STOCKADE_RULE=\\\"x\\\"\" "
	    "STOCKADE_PORT=443\n");
}

static void
the_level_filters(void **state)
{
	char buf[256];
	const struct log_field field = LF_NUM(LK_PORT, 1);

	(void)state;
	log_set_level(LOG_LEVEL_WARNING);
	capture(buf, sizeof(buf), &field, 1, EV_EGRESS_DENIED);
	assert_string_equal(buf, "");
	capture(buf, sizeof(buf), &field, 1, EV_INTERNAL);
	assert_string_not_equal(buf, "");
	log_set_level(LOG_LEVEL_INFO);
}

static void
many_long_values_fit_in_one_record(void **state)
{
	static char value[8192];
	static char buf[1 << 17];
	struct log_field fields[24];

	(void)state;
	memset(value, '\\', sizeof(value) - 1);
	for (size_t i = 0; i < 24; i++)
		fields[i] = (struct log_field)LF_STR(LK_TARGET, value);
	capture(buf, sizeof(buf), fields, 24, EV_VIOLATION);
	assert_true(strlen(buf) <= 65536);
	assert_ptr_equal(strchr(buf, '\n'), buf + strlen(buf) - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outside_text_is_cleaned),
		cmocka_unit_test(a_cut_never_splits_a_character),
		cmocka_unit_test(a_value_begins_no_new_field_and_no_new_line),
		cmocka_unit_test(the_level_filters),
		cmocka_unit_test(many_long_values_fit_in_one_record),
	};

	(void)unsetenv("JOURNAL_STREAM");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
