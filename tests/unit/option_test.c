/*
 * Option tables of the tool.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "supervisor/ctl/ctl.h"
#include "supervisor/ctl/option.h"

#define ARGS_MAX 8

struct options {
	bool flag;
	const char *text;
	uint64_t size;
	struct option_list list;
};
#define AT(m) offsetof(struct options, m)

static const struct option_row rows[] = {
	{ "--flag", false, option_set_flag, AT(flag), NULL, NULL },
	{ "--text", true, option_set_text, AT(text), NULL, NULL },
	{ "-C", true, option_set_text, AT(text), NULL, NULL },
	{ "--size", true, option_set_size, AT(size), NULL, NULL },
	{ "--add", true, option_add_text, AT(list), NULL, NULL },
	{ "--later", true, NULL, 0, NULL, NULL },
};

void
ctl_say(const char *fmt, ...)
{
	(void)fmt;
}

/* Words of a row behind the command's name. */
static int
read_words(const char *const *words, struct options *into, bool *ret_dashes)
{
	union {
		const char *in[ARGS_MAX + 1];
		char *out[ARGS_MAX + 1];
	} args;
	int n = 1;

	memset(into, 0, sizeof(*into));
	args.in[0] = "run";
	for (; n < ARGS_MAX && words[n - 1] != NULL; n++)
		args.in[n] = words[n - 1];
	args.in[n] = NULL;
	return option_read("run", rows, ARRAY_LEN(rows), into, n, args.out,
	    ret_dashes);
}

static void
options_end_where_the_command_begins(void **state)
{
	static const struct {
		const char *words[ARGS_MAX];
		int end;
		bool dashes;
	} cases[] = {
		{ { NULL }, 1, false },
		{ { "true", NULL }, 1, false },
		{ { "--", "--flag", NULL }, 2, true },
		{ { "--flag", "true", "--flag", NULL }, 2, false },
		{ { "--text", "--", "x", NULL }, 3, false },
		{ { "--flag", "--", "x", NULL }, 3, true },
		{ { "-", NULL }, 1, false },
	};
	struct options o;
	bool dashes;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(read_words(cases[i].words, &o, &dashes),
		    cases[i].end);
		assert_int_equal(dashes, cases[i].dashes);
	}
}

static void
values_stand_apart_or_in_the_word(void **state)
{
	static const char *const cases[][ARGS_MAX] = {
		{ "--text", "v", NULL },
		{ "--text=v", NULL },
		{ "-C", "v", NULL },
		{ "-Cv", NULL },
	};
	static const char *const equals[] = { "--text=a=b", NULL };
	struct options o;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_true(read_words(cases[i], &o, NULL) > 0);
		assert_string_equal(o.text, "v");
	}
	assert_true(read_words(equals, &o, NULL) > 0);
	assert_string_equal(o.text, "a=b");
}

static void
wrong_options_are_refused(void **state)
{
	static const char *const cases[][ARGS_MAX] = {
		{ "--unknown", NULL },
		{ "--flagged", NULL },
		{ "--fla", NULL },
		{ "--text", NULL },
		{ "--text=", NULL },
		{ "--flag=yes", NULL },
		{ "--size", "12Q", NULL },
		{ "--size", "-1", NULL },
		{ "--later", "x", NULL },
		{ "--add=", NULL },
		{ "-x", NULL },
	};
	struct options o;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(read_words(cases[i], &o, NULL), -1);
}

static void
lists_keep_their_order(void **state)
{
	static const char *const words[] = { "--add", "a", "--add=b", "--add",
		"c", NULL };
	struct options o;

	(void)state;
	assert_int_equal(read_words(words, &o, NULL), 6);
	assert_int_equal(o.list.n, 3);
	assert_string_equal(o.list.items[0], "a");
	assert_string_equal(o.list.items[1], "b");
	assert_string_equal(o.list.items[2], "c");
}

static void
numbers_have_digits_only_and_a_range(void **state)
{
	static const struct {
		const char *text;
		bool ok;
	} cases[] = {
		{ "1", true },
		{ "10", true },
		{ "0", false },
		{ "11", false },
		{ "", false },
		{ "+1", false },
		{ "1 ", false },
		{ "0x1", false },
		{ "18446744073709551616", false },
	};
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(option_number(cases[i].text, 1, 10, &n) == 0,
		    cases[i].ok);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_end_where_the_command_begins),
		cmocka_unit_test(values_stand_apart_or_in_the_word),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(lists_keep_their_order),
		cmocka_unit_test(numbers_have_digits_only_and_a_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
