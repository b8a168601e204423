/*
 * What control keeps of start scans.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/control/seen.h"

static struct seen_list all;
static uint8_t key[2 * SEEN_KEPT_MAX][SEEN_KEY];

static struct wire_view
bytes(const char *text)
{
	return (struct wire_view){ (const uint8_t *)text, strlen(text) };
}

static void
has(uint64_t uid, size_t k, const char *text)
{
	struct wire_view v = seen_find(&all, uid, key[k]);

	assert_int_equal(v.len, strlen(text));
	if (v.len > 0)
		assert_memory_equal(v.data, text, v.len);
}

static void
nobody_gets_what_another_user_told(void **state)
{
	(void)state;
	seen_keep(&all, 1, key[0], bytes("one"));
	has(1, 0, "one");
	has(2, 0, "");
	has(1, 1, "");
	seen_keep(&all, 1, key[0], bytes("more"));
	has(1, 0, "more");
	seen_keep(&all, 1, key[0], bytes(""));
	has(1, 0, "");
	seen_done(&all);
}

static void
the_oldest_goes(void **state)
{
	(void)state;
	for (size_t i = 0; i < SEEN_KEPT_MAX; i++)
		seen_keep(&all, 1, key[i], bytes("x"));
	has(1, 0, "x");
	seen_keep(&all, 1, key[SEEN_KEPT_MAX], bytes("y"));
	has(1, 0, "x");
	has(1, 1, "");
	has(1, SEEN_KEPT_MAX, "y");
	seen_done(&all);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_gets_what_another_user_told),
		cmocka_unit_test(the_oldest_goes),
	};

	for (size_t i = 0; i < 2 * SEEN_KEPT_MAX; i++)
		key[i][0] = (uint8_t)i;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
