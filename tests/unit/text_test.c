/*
 * Text of others on a terminal: nothing of it drives the terminal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/ctl/text.h"

static void
expect_escaped(const char *in, size_t len, const char *want)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	text_put(f, in, len);
	(void)fclose(f);
	assert_string_equal(text, want);
	free(text);
}

static void
control_bytes_are_escaped(void **state)
{
	(void)state;
	expect_escaped("a\033]0;x\a", 7, "a\\x1b]0;x\\x07");
	expect_escaped("\xe2\x82\xac\xff", 4, "\xe2\x82\xac\\xff");
	expect_escaped("", 0, "");
}

/* Twin: printed as it is, the same text holds the escape byte. */
static void
without_escaping_the_escape_byte_arrives(void **state)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	(void)fprintf(f, "%s", "\033[2J");
	(void)fclose(f);
	assert_non_null(strchr(text, '\033'));
	free(text);
	f = open_memstream(&text, &n);
	(void)fprintf(f, "%s!", text_clean("\033[2J"));
	(void)fclose(f);
	assert_null(strchr(text, '\033'));
	assert_string_equal(text, "\\x1b[2J!");
	free(text);
}

static void
long_text_is_whole_at_every_boundary(void **state)
{
	char in[4000], *text;
	size_t n;

	(void)state;
	for (size_t shift = 0; shift < 4; shift++) {
		FILE *f;
		size_t len = shift;

		memset(in, 'x', shift);
		while (len + 3 <= sizeof(in)) {
			memcpy(in + len, "\xe2\x82\xac", 3);
			len += 3;
		}
		f = open_memstream(&text, &n);
		assert_non_null(f);
		text_put(f, in, len);
		(void)fclose(f);
		assert_int_equal(n, len);
		assert_memory_equal(text, in, len);
		free(text);
	}
	memset(in, 0x80, sizeof(in));
	{
		FILE *f = open_memstream(&text, &n);

		assert_non_null(f);
		text_put(f, in, sizeof(in));
		(void)fclose(f);
		assert_int_equal(n, sizeof(in) * 4);
		free(text);
	}
}

static void
columns_are_as_wide_as_their_text(void **state)
{
	struct text_table table;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	assert_non_null(f);
	text_table_init(&table, 2);
	text_table_add(&table, "a");
	text_table_add(&table, "b");
	text_table_add(&table, "\xe2\x82\xac\xe2\x82\xac");
	text_table_add(&table, "c");
	text_table_print(&table, f);
	(void)fclose(f);
	assert_string_equal(text, "a   b\n\xe2\x82\xac\xe2\x82\xac  c\n");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_bytes_are_escaped),
		cmocka_unit_test(without_escaping_the_escape_byte_arrives),
		cmocka_unit_test(long_text_is_whole_at_every_boundary),
		cmocka_unit_test(columns_are_as_wide_as_their_text),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
