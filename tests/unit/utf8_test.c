/*
 * UTF-8: every code point, compared with an encoder, and what is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "common/utf8.h"

/* The encoding by the table of RFC 3629, section 3; also of what is none. */
static size_t
encode(uint32_t c, unsigned char out[4])
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; c >>= 6)
		out[i] = (unsigned char)(0x80 | (c & 0x3f));
	out[0] = (unsigned char)(first[n] | c);
	return n;
}

static void
every_code_point_has_its_length(void **state)
{
	unsigned char text[4];

	(void)state;
	for (uint32_t c = 0; c < 0x200000; c++) {
		bool character = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
		size_t n = encode(c, text);

		assert_int_equal(utf8_length(text, n), character ? n : 0);
		if (n > 1)
			assert_int_equal(utf8_length(text, n - 1), 0);
	}
}

static void
control_characters_are_the_two_rows(void **state)
{
	unsigned char text[4];

	(void)state;
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		size_t n = encode(c, text);
		bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);

		assert_int_equal(utf8_is_control(text, n), control);
	}
}

/* clang-format off */
static const struct {
	const char *text;
	size_t len;
	bool valid;
} texts[] = {
	{ "", 0, true },
	{ "plain", 5, true },
	{ "a\0b", 3, true },
	{ "gr\xc3\xbc\xc3\x9f", 6, true },
	{ "\x80", 1, false },			/* continuation alone */
	{ "\xc0\xaf", 2, false },		/* overlong */
	{ "\xe0\x80\xaf", 3, false },
	{ "\xf0\x80\x80\xaf", 4, false },
	{ "\xed\xa0\x80", 3, false },		/* surrogate */
	{ "\xf4\x90\x80\x80", 4, false },	/* above U+10FFFF */
	{ "\xf8\x88\x80\x80\x80", 5, false },
	{ "\xff", 1, false },
	{ "a\xc3", 2, false },			/* cut */
	{ "\xc3" "a", 2, false },
	{ "\xe2\x82" "a", 3, false },
};
/* clang-format on */

static void
text_is_valid_or_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(utf8_valid(texts[i].text, texts[i].len),
		    texts[i].valid);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point_has_its_length),
		cmocka_unit_test(control_characters_are_the_two_rows),
		cmocka_unit_test(text_is_valid_or_not),
	};

	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
