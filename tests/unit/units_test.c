/* Sizes, times and counts of the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "common/size.h"
#include "supervisor/ctl/units.h"

struct row {
	const char *text;
	int error;
	uint64_t value;
};

static void
check(const struct row *rows, size_t n, int (*fn)(const char *, uint64_t *))
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = 77;
		int error = fn(rows[i].text, &value);

		if (error != rows[i].error)
			fail_msg("%s: %d", rows[i].text, error);
		assert_int_equal(value, error == 0 ? rows[i].value : 77);
	}
}

static void
sizes_take_k_m_g(void **state)
{
	static const struct row rows[] = {
		{ "1", 0, 1 },
		{ "900", 0, 900 },
		{ "4K", 0, 4096 },
		{ "512M", 0, 512ull << 20 },
		{ "3G", 0, 3ull << 30 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "17179869184G", -ERANGE, 0 },
		{ "99999999999999999999G", -ERANGE, 0 },
		{ "99999999999999999999X", -EINVAL, 0 },
		{ "0", -EINVAL, 0 },
		{ "0G", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "K", -EINVAL, 0 },
		{ "1k", -EINVAL, 0 },
		{ "1T", -EINVAL, 0 },
		{ "1KB", -EINVAL, 0 },
		{ "1 K", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1.5G", -EINVAL, 0 },
		{ "1s", -EINVAL, 0 },
	};

	(void)state;
	check(rows, ARRAY_LEN(rows), units_size);
}

static void
times_take_s_m_h(void **state)
{
	static const struct row rows[] = {
		{ "5", 0, 5000 },
		{ "5s", 0, 5000 },
		{ "10m", 0, 600000 },
		{ "2h", 0, 7200000 },
		{ "18446744073709551s", 0, 18446744073709551000ull },
		{ "18446744073709552s", -ERANGE, 0 },
		{ "5S", -EINVAL, 0 },
		{ "5d", -EINVAL, 0 },
		{ "5ms", -EINVAL, 0 },
		{ "1h30m", -EINVAL, 0 },
		{ "0s", -EINVAL, 0 },
		{ "5M", -EINVAL, 0 },
	};

	(void)state;
	check(rows, ARRAY_LEN(rows), units_time);
}

static void
counts_take_digits_only(void **state)
{
	static const struct row rows[] = {
		{ "64", 0, 64 },
		{ "64K", -EINVAL, 0 },
		{ "6 4", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
	};

	(void)state;
	check(rows, ARRAY_LEN(rows), units_count);
}

static void
decimals_have_three_places(void **state)
{
	static const struct {
		const char *text;
		int error;
		double value;
	} rows[] = {
		{ "2", 0, 2.0 },
		{ "1.5", 0, 1.5 },
		{ "0.125", 0, 0.125 },
		{ "0.1255", -EINVAL, 0 },
		{ "0.0", -EINVAL, 0 },
		{ ".5", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ "1,5", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
		{ "4294967296", -ERANGE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double value = -1;
		int error = units_decimal(rows[i].text, &value);

		if (error != rows[i].error ||
		    (error == 0 &&
			(value < rows[i].value || value > rows[i].value)))
			fail_msg("%s: %d %f", rows[i].text, error, value);
	}
}

static void
sizes_and_ages_are_short(void **state)
{
	char text[UNITS_TEXT];

	(void)state;
	assert_string_equal(units_size_text(0, text), "0");
	assert_string_equal(units_size_text(1023, text), "1023");
	assert_string_equal(units_size_text(1024, text), "1K");
	assert_string_equal(units_size_text(1536, text), "1.5K");
	assert_string_equal(units_size_text(512ull << 20, text), "512M");
	assert_string_equal(units_size_text((2ull << 30) - 1, text), "1.9G");
	assert_string_equal(units_size_text(UINT64_MAX, text), "15E");
	assert_string_equal(units_age_text(59999, text), "59s");
	assert_string_equal(units_age_text(720000, text), "12m");
	assert_string_equal(units_age_text(11100000, text), "3h05m");
	assert_string_equal(units_age_text(187200000, text), "2d04h");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_take_k_m_g),
		cmocka_unit_test(times_take_s_m_h),
		cmocka_unit_test(counts_take_digits_only),
		cmocka_unit_test(decimals_have_three_places),
		cmocka_unit_test(sizes_and_ages_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
