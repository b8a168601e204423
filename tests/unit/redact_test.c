/* Tokens of the shapes in SPEC App.8 do not survive; other text does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "supervisor/control/redact.h"

struct row {
	const char *in;
	const char *out;
};

static void
check(const struct row *rows, size_t n)
{
	char out[512];

	for (size_t i = 0; i < n; i++) {
		size_t len = redact_copy(rows[i].in, strlen(rows[i].in), out,
		    sizeof(out));

		assert_string_equal(out, rows[i].out);
		assert_int_equal(len, strlen(out));
	}
}

static void
tokens_are_replaced(void **state)
{
	static const struct row rows[] = {
		{ "ghp_abcdEFGH1234", "[redacted]" },
		{ "x=ghs_0123456789;", "x=[redacted];" },
		{ "github_pat_11AB_cd", "[redacted]" },
		{ "key sk-ant-api03-abcdef end", "key [redacted] end" },
		{ "xoxb-12-34-abcdef", "[redacted]" },
		{ "AKIAIOSFODNN7EXAMPLE", "[redacted]" },
		{ "gho_aaaa ghu_bbbb ghr_cccc",
		    "[redacted] [redacted] [redacted]" },
		{ "xghp_abcdEFGH1234", "x[redacted]" },
	};

	(void)state;
	check(rows, ARRAY_LEN(rows));
}

static void
header_and_url_values_are_replaced(void **state)
{
	static const struct row rows[] = {
		{ "Authorization: Bearer abc.def-1",
		    "Authorization: Bearer [redacted]" },
		{ "authorization: bearer  x",
		    "authorization: bearer  "
		    "[redacted]" },
		{ "Basic dXNlcjpwYXNz", "Basic [redacted]" },
		{ "https://user:pa:ss@host/x", "https://[redacted]@host/x" },
		{ "https://u:p@x@host/", "https://[redacted]@host/" },
		{ "ssh://git@github.com/a", "ssh://git@github.com/a" },
		{ "https://host/a:b@c", "https://host/a:b@c" },
	};

	(void)state;
	check(rows, ARRAY_LEN(rows));
}

static void
option_values_are_replaced(void **state)
{
	static const struct row rows[] = {
		{ "cmd --token abc next", "cmd --token [redacted] next" },
		{ "cmd --token=abc", "cmd --token=[redacted]" },
		{ "--password 'a b c' x", "--password [redacted] x" },
		{ "--API-KEY=\"a b\"", "--API-KEY=[redacted]" },
		{ "--key k1", "--key [redacted]" },
		{ "--keyfile k1", "--keyfile k1" },
		{ "--token", "--token" },
		{ "--password 'open end", "--password [redacted]" },
	};

	(void)state;
	check(rows, ARRAY_LEN(rows));
}

static void
pem_blocks_are_replaced(void **state)
{
	static const struct row rows[] = {
		{ "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n"
		  "-----END RSA PRIVATE KEY-----\nb",
		    "a\n[redacted]\nb" },
		{ "-----BEGIN X-----\ncut off", "[redacted]" },
		{ "-----BEGIN X-----\n-----END X", "[redacted]" },
	};

	(void)state;
	check(rows, ARRAY_LEN(rows));
}

static void
ordinary_text_is_left_alone(void **state)
{
	static const struct row rows[] = {
		{ "", "" },
		{ "risk-free task-management", "risk-free task-management" },
		{ "sk-short", "sk-short" },
		{ "Basic isolation of runs", "Basic [redacted] of runs" },
		{ "a basic test", "a basic test" },
		{ "xoxo", "xoxo" },
		{ "ghp_", "ghp_" },
		{ "http://example.com:80/", "http://example.com:80/" },
	};

	(void)state;
	check(rows, ARRAY_LEN(rows));
}

static void
a_full_buffer_cuts_without_a_token(void **state)
{
	static const char in[] = "ab ghp_abcdEFGH1234 cd";
	char out[64];

	(void)state;
	for (size_t size = 0; size <= sizeof(out); size++) {
		size_t len;

		memset(out, 'Z', sizeof(out));
		len = redact_copy(in, sizeof(in) - 1, out, size);
		if (size == 0)
			continue;
		assert_true(len < size);
		assert_int_equal(out[len], '\0');
		assert_null(strstr(out, "ghp_"));
	}
}

static void
an_embedded_nul_does_not_end_the_text(void **state)
{
	static const char in[] = "a\0ghp_abcdEFGH1234";
	char out[64];
	size_t len = redact_copy(in, sizeof(in) - 1, out, sizeof(out));

	(void)state;
	assert_int_equal(len, 2 + sizeof(REDACT_MARK) - 1);
	assert_memory_equal(out, "a\0" REDACT_MARK, len);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_replaced),
		cmocka_unit_test(header_and_url_values_are_replaced),
		cmocka_unit_test(option_values_are_replaced),
		cmocka_unit_test(pem_blocks_are_replaced),
		cmocka_unit_test(ordinary_text_is_left_alone),
		cmocka_unit_test(a_full_buffer_cuts_without_a_token),
		cmocka_unit_test(an_embedded_nul_does_not_end_the_text),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
