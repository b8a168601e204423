/*
 * Verdicts, their texts, and the address check of a session.
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

#include "common/size.h"
#include "proxyd/decide.h"

static struct hostname
host_of(const char *text)
{
	struct hostname host;

	assert_int_equal(hostname_parse(text, strlen(text), &host, NULL), 0);
	return host;
}

static void
allow(struct decide_lists *lists, const char *pattern, uint16_t port)
{
	assert_int_equal(decide_lists_allow(lists, pattern, strlen(pattern),
			     port, "spec", 4),
	    0);
}

static void
deny(struct decide_lists *lists, const char *pattern)
{
	assert_int_equal(decide_lists_deny(lists, pattern, strlen(pattern),
			     "baseline", 8),
	    0);
}

static enum decide_reason
judge(struct decide_lists *lists, const char *name, uint16_t port)
{
	struct hostname host = host_of(name);
	struct decide_verdict verdict;

	decide_target(lists, &host, port, &verdict);
	return verdict.reason;
}

static void
an_empty_list_allows_nothing(void **state)
{
	struct decide_lists *lists = decide_lists_new(true);

	(void)state;
	assert_int_equal(judge(lists, "github.com", 443),
	    DECIDE_host_not_allowed);
	assert_int_equal(judge(lists, "8.8.8.8", 443), DECIDE_ip_literal);
	allow(lists, "github.com", 0);
	assert_int_equal(judge(lists, "github.com", 443), DECIDE_ALLOWED);
	decide_lists_free(lists);
}

static void
network_off_refuses_what_is_listed(void **state)
{
	struct decide_lists *lists = decide_lists_new(false);

	(void)state;
	allow(lists, "github.com", 0);
	assert_int_equal(judge(lists, "github.com", 443), DECIDE_network_off);
	decide_lists_free(lists);
}

static void
deny_wins_over_every_allow(void **state)
{
	struct decide_lists *lists = decide_lists_new(true);

	(void)state;
	allow(lists, "*.sentry.io", 0);
	allow(lists, "o1.sentry.io", 443);
	allow(lists, "169.254.169.254", 80);
	assert_int_equal(judge(lists, "o1.sentry.io", 443), DECIDE_ALLOWED);
	assert_int_equal(judge(lists, "169.254.169.254", 80), DECIDE_ALLOWED);
	deny(lists, "sentry.io");
	deny(lists, "169.254.169.254");
	assert_int_equal(judge(lists, "o1.sentry.io", 443), DECIDE_host_denied);
	assert_int_equal(judge(lists, "sentry.io", 443), DECIDE_host_denied);
	assert_int_equal(judge(lists, "169.254.169.254", 80),
	    DECIDE_host_denied);
	assert_int_equal(judge(lists, "[::ffff:169.254.169.254]", 80),
	    DECIDE_host_denied);
	assert_int_equal(judge(lists, "notsentry.io", 443),
	    DECIDE_host_not_allowed);
	decide_lists_free(lists);
}

static void
ports_are_those_of_the_rule(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
		enum decide_reason reason;
	} rows[] = {
		{ "github.com", 443, DECIDE_ALLOWED },
		{ "github.com", 80, DECIDE_ALLOWED },
		{ "github.com", 22, DECIDE_ALLOWED },
		{ "github.com", 8080, DECIDE_port_not_allowed },
		{ "github.com", 0, DECIDE_port_not_allowed },
		{ "npmjs.org", 22, DECIDE_port_not_allowed },
		{ "npmjs.org", 443, DECIDE_ALLOWED },
		{ "ssh.github.com", 22, DECIDE_ALLOWED },
		{ "ssh.github.com", 443, DECIDE_port_not_allowed },
		{ "api.github.com", 443, DECIDE_ALLOWED },
		{ "api.github.com", 22, DECIDE_port_not_allowed },
		{ "db.corp.test", 5432, DECIDE_ALLOWED },
		{ "db.corp.test", 443, DECIDE_port_not_allowed },
		{ "one.corp.test", 8443, DECIDE_ALLOWED },
		{ "one.corp.test", 443, DECIDE_ALLOWED },
	};
	struct decide_lists *lists = decide_lists_new(true);
	size_t i;

	(void)state;
	allow(lists, "*.github.com", 0);
	allow(lists, "ssh.github.com", 22);
	allow(lists, "github.com", 0);
	allow(lists, "github.com", 22);
	allow(lists, "npmjs.org", 0);
	allow(lists, "db.corp.test", 5432);
	allow(lists, "*.corp.test", 8443);
	allow(lists, "one.corp.test", 0);
	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (judge(lists, rows[i].host, rows[i].port) != rows[i].reason)
			fail_msg("%s:%u", rows[i].host, rows[i].port);
	decide_lists_free(lists);
}

static void
names_of_one_label_are_not_completed(void **state)
{
	struct decide_lists *lists = decide_lists_new(true);

	(void)state;
	allow(lists, "intranet", 0);
	assert_int_equal(judge(lists, "intranet", 443), DECIDE_bad_name);
	decide_lists_free(lists);
}

static void
patterns_are_checked_again(void **state)
{
	static const char *const bad[] = { "", "*", "*.com", "A.com", "a.com.",
		" a.com", "a..b", "127.1", "a b.com", "*.*.a.com" };
	struct decide_lists *lists = decide_lists_new(true);
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(decide_lists_allow(lists, bad[i],
				     strlen(bad[i]), 0, "x", 1),
		    -EINVAL);
		assert_int_equal(decide_lists_private(lists, "10.0.0.0/8", 10,
				     bad[i], strlen(bad[i])),
		    -EINVAL);
	}
	assert_int_equal(decide_lists_private(lists, "10.0.0.1/8", 10, "a.com",
			     5),
	    -EINVAL);
	decide_lists_free(lists);
}

static bool
reach(struct decide_lists *lists, const char *name, const char *address,
    bool own)
{
	struct hostname host = host_of(name);
	struct hostname_addr addr = { .family = 6 };

	if (inet_pton(AF_INET, address, addr.bytes) == 1)
		addr.family = 4;
	else
		assert_int_equal(inet_pton(AF_INET6, address, addr.bytes), 1);
	return decide_address(lists, &host, &addr, own);
}

static void
private_addresses_need_a_permission_for_the_name(void **state)
{
	struct decide_lists *lists = decide_lists_new(true);

	(void)state;
	assert_true(reach(lists, "a.test", "93.184.216.34", false));
	assert_false(reach(lists, "a.test", "93.184.216.34", true));
	assert_false(reach(lists, "a.test", "10.0.0.1", false));
	assert_int_equal(decide_lists_private(lists, "10.0.0.0/8", 10,
			     "*.corp.test", 11),
	    0);
	assert_int_equal(decide_lists_private(lists, "127.0.0.0/8", 11,
			     "*.corp.test", 11),
	    0);
	assert_int_equal(decide_lists_private(lists, "169.254.0.0/16", 14,
			     "*.corp.test", 11),
	    0);
	assert_int_equal(decide_lists_private(lists, "::/0", 4, "*.corp.test",
			     11),
	    0);
	assert_true(reach(lists, "a.corp.test", "10.0.0.1", false));
	assert_true(reach(lists, "a.corp.test", "10.0.0.1", true));
	assert_false(reach(lists, "a.test", "10.0.0.1", false));
	assert_false(reach(lists, "a.corp.test", "192.168.0.1", false));
	assert_true(reach(lists, "a.corp.test", "169.254.1.1", false));
	assert_false(reach(lists, "a.corp.test", "169.254.169.254", false));
	assert_false(reach(lists, "a.corp.test", "127.0.0.1", false));
	assert_false(reach(lists, "a.corp.test", "::1", false));
	assert_false(reach(lists, "a.corp.test", "fd00:ec2::254", false));
	assert_true(reach(lists, "a.corp.test", "fd00::1", false));
	decide_lists_free(lists);
}

static void
texts_are_those_of_the_specification(void **state)
{
	static const struct {
		enum decide_reason reason;
		const char *code;
		const char *phrase;
	} rows[] = {
		{ DECIDE_host_not_allowed, "host_not_allowed",
		    "example.com is not on the allow list" },
		{ DECIDE_host_denied, "host_denied",
		    "example.com is on the deny list" },
		{ DECIDE_network_off, "network_off",
		    "the network is off for this run" },
		{ DECIDE_port_not_allowed, "port_not_allowed",
		    "port 25 of example.com is not allowed" },
		{ DECIDE_private_address, "private_address",
		    "example.com resolves to a private address" },
		{ DECIDE_never_address, "private_address",
		    "example.com resolves to a private address" },
		{ DECIDE_ip_literal, "ip_literal",
		    "address example.com is not on the allow list" },
		{ DECIDE_bad_name, "bad_name", "the host name is not valid" },
		{ DECIDE_limit, "limit", "too many connections" },
	};
	char phrase[DECIDE_PHRASE_MAX + 1];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_string_equal(decide_reason_code(rows[i].reason),
		    rows[i].code);
		decide_phrase(rows[i].reason, "example.com", 25, phrase);
		assert_string_equal(phrase, rows[i].phrase);
	}
}

static void
long_names_are_cut_in_the_middle(void **state)
{
	char host[HOSTNAME_MAX + 1], phrase[DECIDE_PHRASE_MAX + 1];
	char remedy[DECIDE_TEXT_MAX + 1];

	(void)state;
	memset(host, 'a', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	memcpy(host, "start.", 6);
	memcpy(host + sizeof(host) - 5, ".end", 4);
	decide_phrase(DECIDE_host_not_allowed, host, 443, phrase);
	assert_int_equal(strlen(phrase), DECIDE_PHRASE_MAX);
	assert_memory_equal(phrase, "start.", 6);
	assert_non_null(strstr(phrase, "..."));
	assert_non_null(strstr(phrase, ".end is not on the allow list"));
	decide_remedy_text(DECIDE_port_not_allowed, host, 65535, remedy);
	assert_true(strlen(remedy) <= DECIDE_TEXT_MAX);
	assert_non_null(strstr(remedy, "\" port 65535"));
}

static void
only_what_helps_is_a_remedy(void **state)
{
	const struct decide_verdict never = { DECIDE_never_address, "", "" };
	char text[DECIDE_TEXT_MAX + 1];

	(void)state;
	decide_remedy_text(DECIDE_private_address, "a.corp", 443, text);
	assert_string_equal(text,
	    "permit private { ADDRESS } for { \"a.corp\" }");
	decide_remedy_text(never.reason, "a.corp", 443, text);
	assert_string_equal(text, "");
	decide_rule_text(&never, "a.corp", 443, text);
	assert_non_null(strstr(text, "cannot be permitted"));
}

static void
the_rule_is_named(void **state)
{
	struct decide_lists *lists = decide_lists_new(true);
	struct hostname host = host_of("a.sentry.io");
	struct decide_verdict verdict;
	char text[DECIDE_TEXT_MAX + 1];

	(void)state;
	deny(lists, "*.sentry.io");
	decide_target(lists, &host, 443, &verdict);
	decide_rule_text(&verdict, host.text, 443, text);
	assert_string_equal(text, "deny \"*.sentry.io\" (baseline)");
	decide_remedy_text(verdict.reason, host.text, 443, text);
	assert_string_equal(text, "");
	decide_lists_free(lists);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_list_allows_nothing),
		cmocka_unit_test(network_off_refuses_what_is_listed),
		cmocka_unit_test(deny_wins_over_every_allow),
		cmocka_unit_test(ports_are_those_of_the_rule),
		cmocka_unit_test(names_of_one_label_are_not_completed),
		cmocka_unit_test(patterns_are_checked_again),
		cmocka_unit_test(
		    private_addresses_need_a_permission_for_the_name),
		cmocka_unit_test(texts_are_those_of_the_specification),
		cmocka_unit_test(long_names_are_cut_in_the_middle),
		cmocka_unit_test(only_what_helps_is_a_remedy),
		cmocka_unit_test(the_rule_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
