/*
 * The bounded reader: one encoding per value, sticky errors, never past the
 * end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "protocol/wire.h"

static struct wire
reader(const void *data, size_t len)
{
	struct wire w;

	wire_init(&w, data, len);
	return w;
}

static void
shortest_integers_are_read(void **state)
{
	static const struct {
		uint8_t bytes[9];
		size_t len;
		uint64_t value;
	} rows[] = {
		{ { 0x00 }, 1, 0 },
		{ { 0x7f }, 1, 127 },
		{ { 0xcc, 0x80 }, 2, 128 },
		{ { 0xcd, 0x01, 0x00 }, 3, 256 },
		{ { 0xce, 0, 1, 0, 0 }, 5, 65536 },
		{ { 0xcf, 0, 0, 0, 1, 0, 0, 0, 0 }, 9, 4294967296 },
		{ { 0xcf, 255, 255, 255, 255, 255, 255, 255, 255 }, 9,
		    UINT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire w = reader(rows[i].bytes, rows[i].len);

		assert_int_equal(wire_u64(&w, 0, UINT64_MAX), rows[i].value);
		assert_true(wire_done(&w));
	}
}

static void
overlong_and_foreign_integers_are_refused(void **state)
{
	static const struct {
		uint8_t bytes[9];
		size_t len;
	} rows[] = {
		{ { 0xcc, 0x7f }, 2 },
		{ { 0xcd, 0x00, 0xff }, 3 },
		{ { 0xce, 0, 0, 0xff, 0xff }, 5 },
		{ { 0xcf, 0, 0, 0, 0, 1, 0, 0, 0 }, 9 },
		{ { 0xd0, 0x01 }, 2 }, /* int8 */
		{ { 0xff }, 1 }, /* -1 */
		{ { 0xc0 }, 1 }, /* nil */
		{ { 0xca, 0, 0, 0, 0 }, 5 }, /* float */
		{ { 0xcd, 0x01 }, 2 }, /* cut */
		{ { 0 }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire w = reader(rows[i].bytes, rows[i].len);

		assert_int_equal(wire_u64(&w, 0, UINT64_MAX), 0);
		assert_true(w.err);
		assert_false(wire_done(&w));
	}
}

static void
a_range_is_kept(void **state)
{
	struct wire w = reader("\x05", 1);

	(void)state;
	assert_int_equal(wire_u64(&w, 6, 7), 0);
	assert_true(w.err);
	w = reader("\x05", 1);
	assert_int_equal(wire_u64(&w, 5, 5), 5);
	assert_true(wire_done(&w));
}

static void
strings_are_bounded(void **state)
{
	struct wire w = reader("\xa3"
			       "abc",
	    4);
	struct wire_view v = wire_str(&w, 0, 3);

	(void)state;
	assert_true(wire_done(&w));
	assert_memory_equal(v.data, "abc", 3);
	w = reader("\xa3"
		   "abc",
	    4);
	assert_int_equal(wire_str(&w, 0, 2).len, 0);
	assert_true(w.err);
	w = reader("\xa3"
		   "ab",
	    3); /* lying length */
	(void)wire_str(&w, 0, 9);
	assert_true(w.err);
	w = reader("\xa3"
		   "a\0c",
	    4); /* NUL inside */
	(void)wire_str(&w, 0, 9);
	assert_true(w.err);
	w = reader("\xd9\x03"
		   "abc",
	    5); /* overlong header */
	(void)wire_str(&w, 0, 9);
	assert_true(w.err);
	w = reader("\xc4\x03"
		   "abc",
	    5); /* bin for str */
	(void)wire_str(&w, 0, 9);
	assert_true(w.err);
	w = reader("\xdb\xff\xff\xff\xff", 5);
	(void)wire_str(&w, 0, SIZE_MAX);
	assert_true(w.err);
}

static void
c_strings_end_where_they_say(void **state)
{
	struct wire w = reader("\xc4\x03"
			       "ab\0",
	    5);

	(void)state;
	assert_string_equal(wire_cstr(&w, 0, 2), "ab");
	assert_true(wire_done(&w));
	w = reader("\xc4\x03"
		   "a\0\0",
	    5);
	assert_string_equal(wire_cstr(&w, 0, 9), "");
	assert_true(w.err);
	w = reader("\xc4\x03"
		   "abc",
	    5);
	assert_string_equal(wire_cstr(&w, 0, 9), "");
	assert_true(w.err);
	w = reader("\xc4\x00", 2);
	assert_string_equal(wire_cstr(&w, 0, 9), "");
	assert_true(w.err);
}

static void
errors_are_sticky(void **state)
{
	struct wire w = reader("\xc0\x05\xa1"
			       "a",
	    4);

	(void)state;
	(void)wire_u64(&w, 0, 9);
	assert_true(w.err);
	assert_int_equal(wire_u64(&w, 0, 9), 0);
	assert_int_equal(wire_str(&w, 0, 9).len, 0);
	assert_int_equal(wire_array(&w, 0, 9), 0);
	assert_false(wire_bool(&w));
	assert_false(wire_done(&w));
}

static void
what_is_written_is_read_back(void **state)
{
	static const uint64_t numbers[] = { 0, 127, 128, 255, 256, 65535, 65536,
		UINT32_MAX, (uint64_t)UINT32_MAX + 1, UINT64_MAX };
	char big[70000];
	struct wire_out out;
	struct wire w;

	(void)state;
	memset(big, 'x', sizeof(big));
	wire_out_init(&out);
	wire_put_array(&out, 20);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		wire_put_u64(&out, numbers[i]);
	wire_put_bool(&out, true);
	wire_put_str(&out, big, sizeof(big));
	wire_put_bin(&out, big, 300);
	wire_put_cstr(&out, "path");
	assert_false(out.err);
	wire_init(&w, out.data, out.len);
	assert_int_equal(wire_array(&w, 0, 99), 20);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		assert_int_equal(wire_u64(&w, 0, UINT64_MAX), numbers[i]);
	assert_true(wire_bool(&w));
	assert_int_equal(wire_str(&w, 0, sizeof(big)).len, sizeof(big));
	assert_int_equal(wire_bin(&w, 0, 300).len, 300);
	assert_string_equal(wire_cstr(&w, 0, 300), "path");
	assert_true(wire_done(&w));
	wire_out_done(&out);
}

static void
the_writer_has_a_limit(void **state)
{
	static char megabyte[1 << 20];
	struct wire_out out;

	(void)state;
	wire_out_init(&out);
	for (int i = 0; i < 9; i++)
		wire_put_bin(&out, megabyte, sizeof(megabyte));
	assert_true(out.err);
	assert_true(out.len <= WIRE_OUT_MAX);
	wire_out_done(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shortest_integers_are_read),
		cmocka_unit_test(overlong_and_foreign_integers_are_refused),
		cmocka_unit_test(a_range_is_kept),
		cmocka_unit_test(strings_are_bounded),
		cmocka_unit_test(c_strings_end_where_they_say),
		cmocka_unit_test(errors_are_sticky),
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(the_writer_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
