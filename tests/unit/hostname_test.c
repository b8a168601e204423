/*
 * Names and patterns (SPEC H1..H8, facts of network 4.3).  Each refusal has a
 * twin: the same text to the C library, which accepts it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>

#include "common/hostname.h"
#include "common/size.h"

static void
names_are_normalised(void **state)
{
	static const struct {
		const char *raw;
		const char *text;
		enum hostname_kind kind;
	} rows[] = {
		{ "example.com", "example.com", HOSTNAME_NAME },
		{ "EXAMPLE.Com.", "example.com", HOSTNAME_NAME },
		{ "_dmarc.s3.example.com", "_dmarc.s3.example.com",
		    HOSTNAME_NAME },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example",
		    HOSTNAME_NAME },
		{ "3com.com", "3com.com", HOSTNAME_NAME },
		{ "1.2.3.x4", "1.2.3.x4", HOSTNAME_NAME },
		{ "localhost", "localhost", HOSTNAME_NAME },
		{ "127.0.0.1", "127.0.0.1", HOSTNAME_IPV4 },
		{ "127.0.0.1.", "127.0.0.1", HOSTNAME_IPV4 },
		{ "[::1]", "[::1]", HOSTNAME_IPV6 },
		{ "[2001:DB8:0:0::1]", "[2001:db8::1]", HOSTNAME_IPV6 },
		{ "[::ffff:127.0.0.1]", "127.0.0.1", HOSTNAME_IPV4 },
		{ "[::ffff:7f00:1]", "127.0.0.1", HOSTNAME_IPV4 },
	};
	struct hostname host, again;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(hostname_parse(rows[i].raw,
				     strlen(rows[i].raw), &host, NULL),
		    0);
		assert_string_equal(host.text, rows[i].text);
		assert_int_equal(host.kind, rows[i].kind);
		assert_int_equal(hostname_parse(host.text, strlen(host.text),
				     &again, NULL),
		    0);
		assert_memory_equal(&host, &again, sizeof(host));
	}
}

#define S(text) text, sizeof(text) - 1

static void
bad_names_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *raw;
		size_t len;
		enum hostname_fault fault;
	} rows[] = {
		{ S(""), HOSTNAME_EMPTY },
		{ S("."), HOSTNAME_EMPTY },
		{ S("a..b"), HOSTNAME_EMPTY_LABEL },
		{ S(".a.b"), HOSTNAME_EMPTY_LABEL },
		{ S("a.b.."), HOSTNAME_EMPTY_LABEL },
		{ S("a\0b.com"), HOSTNAME_BAD_BYTE },
		{ S("a.com\0"), HOSTNAME_BAD_BYTE },
		{ S("a b.com"), HOSTNAME_BAD_BYTE },
		{ S(" a.com"), HOSTNAME_BAD_BYTE },
		{ S("a.com\r"), HOSTNAME_BAD_BYTE },
		{ S("a\n.com"), HOSTNAME_BAD_BYTE },
		{ S("a\x7f.com"), HOSTNAME_BAD_BYTE },
		{ S("a%2e.com"), HOSTNAME_BAD_BYTE },
		{ S("a/b.com"), HOSTNAME_BAD_BYTE },
		{ S("a\\b.com"), HOSTNAME_BAD_BYTE },
		{ S("u@a.com"), HOSTNAME_BAD_BYTE },
		{ S("a#b.com"), HOSTNAME_BAD_BYTE },
		{ S("a:b.com"), HOSTNAME_BAD_BYTE },
		{ S("*.com"), HOSTNAME_BAD_BYTE },
		{ S("b\xc3\xbc"
		    "cher.example"),
		    HOSTNAME_NOT_ASCII },
		{ S("::1"), HOSTNAME_BAD_BYTE },
		{ S("[::1"), HOSTNAME_BAD_IPV6 },
		{ S("[::1]x"), HOSTNAME_BAD_IPV6 },
		{ S("[]"), HOSTNAME_BAD_IPV6 },
		{ S("[fe80::1%eth0]"), HOSTNAME_BAD_IPV6 },
		{ S("[127.0.0.1]"), HOSTNAME_BAD_IPV6 },
		{ S("[::1\0]"), HOSTNAME_BAD_IPV6 },
	};
	enum hostname_fault fault;
	struct hostname host;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		fault = HOSTNAME_OK;
		assert_int_equal(hostname_parse(rows[i].raw, rows[i].len, &host,
				     &fault),
		    -EINVAL);
		assert_int_equal(fault, rows[i].fault);
		assert_true(strlen(hostname_why(fault)) > 0);
	}
}

static void
lengths_are_limited(void **state)
{
	char label63[64], name[300];
	enum hostname_fault fault;
	struct hostname host;

	(void)state;
	memset(label63, 'a', 63);
	label63[63] = '\0';
	(void)snprintf(name, sizeof(name), "%s.com", label63);
	assert_int_equal(hostname_parse(name, strlen(name), &host, NULL), 0);
	(void)snprintf(name, sizeof(name), "a%s.com", label63);
	assert_int_equal(hostname_parse(name, strlen(name), &host, &fault),
	    -EINVAL);
	assert_int_equal(fault, HOSTNAME_LONG_LABEL);
	(void)snprintf(name, sizeof(name), "%s.%s.%s.%.61s", label63, label63,
	    label63, label63);
	assert_int_equal(strlen(name), 253);
	assert_int_equal(hostname_parse(name, 253, &host, NULL), 0);
	name[253] = '.';
	assert_int_equal(hostname_parse(name, 254, &host, NULL), 0);
	name[253] = 'a';
	assert_int_equal(hostname_parse(name, 254, &host, &fault), -EINVAL);
	assert_int_equal(fault, HOSTNAME_TOO_LONG);
}

/* glibc takes them all for an address; without this rule a name list would
 * be passed by writing 127.0.0.1 differently. */
static void
numeric_spellings_are_refused(void **state)
{
	static const char *const rows[] = {
		"127.1",
		"0x7f.1",
		"0177.0.0.1",
		"2130706433",
		"017700000001",
		"0x7f000001",
		"0",
		"0xa9fea9fe",
		"2852039166",
		"127.0.1",
		"127.0.0.01",
		"127.0.0.0x1",
		"0X7F.1",
	};
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	enum hostname_fault fault;
	struct addrinfo *ai;
	struct hostname host;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(hostname_parse(rows[i], strlen(rows[i]), &host,
				     &fault),
		    -EINVAL);
		assert_int_equal(fault, HOSTNAME_NUMERIC);
		ai = NULL;
		assert_int_equal(getaddrinfo(rows[i], NULL, &hints, &ai), 0);
		freeaddrinfo(ai);
	}
	assert_int_equal(hostname_parse("256.1.1.1", 9, &host, NULL), -EINVAL);
	assert_int_equal(hostname_parse("a.123", 5, &host, NULL), -EINVAL);
	assert_int_equal(hostname_parse("a.0xyz", 6, &host, NULL), -EINVAL);
	assert_int_equal(hostname_parse("1.2.3.4.5", 9, &host, NULL), -EINVAL);
}

static void
patterns_are_read(void **state)
{
	static const struct {
		const char *raw;
		const char *text;
	} rows[] = {
		{ "example.com", "example.com" },
		{ "  EXAMPLE.com. \t", "example.com" },
		{ "*.Example.com", "*.example.com" },
		{ "bedrock.*.amazonaws.com", "bedrock.*.amazonaws.com" },
		{ "169.254.169.254", "169.254.169.254" },
		{ "[FD00:EC2::254]", "[fd00:ec2::254]" },
		{ "metadata", "metadata" },
	};
	char text[HOSTNAME_MAX + 1], again[HOSTNAME_MAX + 1];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(hostname_pattern_parse(rows[i].raw,
				     strlen(rows[i].raw), text, NULL),
		    0);
		assert_string_equal(text, rows[i].text);
		assert_int_equal(hostname_pattern_parse(text, strlen(text),
				     again, NULL),
		    0);
		assert_string_equal(text, again);
	}
}

static void
other_pattern_shapes_are_refused(void **state)
{
	static const struct {
		const char *raw;
		enum hostname_fault fault;
	} rows[] = {
		{ "", HOSTNAME_EMPTY },
		{ "   ", HOSTNAME_EMPTY },
		{ "*", HOSTNAME_BARE_STAR },
		{ "**", HOSTNAME_TWO_STARS },
		{ "*.*.com", HOSTNAME_TWO_STARS },
		{ "a.*.b.*.c", HOSTNAME_TWO_STARS },
		{ "a*.example.com", HOSTNAME_STAR_IN_LABEL },
		{ "*a.example.com", HOSTNAME_STAR_IN_LABEL },
		{ "a.b*c.com", HOSTNAME_STAR_IN_LABEL },
		{ "*com", HOSTNAME_STAR_IN_LABEL },
		{ "*.com", HOSTNAME_STAR_TOP },
		{ "example.*", HOSTNAME_STAR_LAST },
		{ "*..com", HOSTNAME_EMPTY_LABEL },
		{ "*.1.2", HOSTNAME_NUMERIC },
		{ "127.1", HOSTNAME_NUMERIC },
		{ "a b.com", HOSTNAME_BAD_BYTE },
		{ "*.b\xc3\xbc"
		  "cher.example",
		    HOSTNAME_NOT_ASCII },
	};
	char text[HOSTNAME_MAX + 1];
	enum hostname_fault fault;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(hostname_pattern_parse(rows[i].raw,
				     strlen(rows[i].raw), text, &fault),
		    -EINVAL);
		assert_int_equal(fault, rows[i].fault);
	}
}

static void
labels_are_compared_whole(void **state)
{
	static const struct {
		const char *pattern;
		const char *host;
		bool allow;
		bool deny;
	} rows[] = {
		{ "example.com", "example.com", true, true },
		{ "example.com", "a.example.com", false, true },
		{ "example.com", "evilexample.com", false, false },
		{ "example.com", "example.com.evil.net", false, false },
		{ "example.com", "com", false, false },
		{ "*.example.com", "a.example.com", true, true },
		{ "*.example.com", "a.b.example.com", true, true },
		{ "*.example.com", "example.com", false, false },
		{ "*.example.com", "evilexample.com", false, false },
		{ "*.example.com", "example.com.evil.net", false, false },
		{ "b.*.aws.com", "b.us-east-1.aws.com", true, true },
		{ "b.*.aws.com", "b.evil.attacker.aws.com", false, false },
		{ "b.*.aws.com", "b.aws.com", false, false },
		{ "b.*.aws.com", "x.b.us.aws.com", false, true },
		{ "b.*.aws.com", "xb.us.aws.com", false, false },
		{ "", "example.com", false, false },
		{ "example.com", "", false, false },
		{ "", "", false, false },
		{ "metadata", "metadata", true, true },
		{ "metadata", "metadata.x", false, false },
		{ "1.2.3.4", "1.2.3.4", true, true },
		{ "[::1]", "[::1]", true, true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(hostname_pattern_match(rows[i].pattern,
				     rows[i].host),
		    rows[i].allow);
		assert_int_equal(hostname_deny_match(rows[i].pattern,
				     rows[i].host),
		    rows[i].deny);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_normalised),
		cmocka_unit_test(bad_names_are_refused_with_the_reason),
		cmocka_unit_test(lengths_are_limited),
		cmocka_unit_test(numeric_spellings_are_refused),
		cmocka_unit_test(patterns_are_read),
		cmocka_unit_test(other_pattern_shapes_are_refused),
		cmocka_unit_test(labels_are_compared_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
