/*
 * egress_make.c: baseline, configuration and spec become lists with origins, in
 * an order that does not depend on theirs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "protocol/egress.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/egress_make.h"
#include "supervisor/control/lists.h"
#include "supervisor/control/spec.h"

static struct conf *
conf_of(const char *text)
{
	struct conf_errors errors = { 0 };
	struct conf *conf = NULL;

	assert_int_equal(conf_parse("test", text, strlen(text), NULL, NULL,
			     &conf, &errors),
	    0);
	conf_errors_done(&errors);
	return conf;
}

static bool
is(const struct wire_view *view, const char *text)
{
	return view->len == strlen(text) &&
	    memcmp(view->data, text, view->len) == 0;
}

/* The origin of the rule, or NULL. */
static const struct egress_rule *
find(const struct egress_rule *rules, size_t n, const char *pattern,
    uint64_t port)
{
	for (size_t i = 0; i < n; i++)
		if (is(&rules[i].pattern, pattern) && rules[i].port == port)
			return &rules[i];
	return NULL;
}

static int
make(const char *conf_text, const char **hosts, size_t n, bool network,
    struct pool *pool, struct egress_lists **ret, struct spec_fault *fault)
{
	struct conf *conf = conf_of(conf_text);
	struct spec spec = { 0 };
	int r;

	spec.network = network;
	spec.egress_allow.items = hosts;
	spec.egress_allow.n = n;
	r = egress_make(&spec, conf, pool, ret, fault);
	conf_free(conf);
	return r;
}

static void
the_baseline_has_its_ports(void **state)
{
	struct pool pool = { NULL };
	struct egress_lists *lists;
	struct spec_fault fault;

	(void)state;
	assert_int_equal(make("", NULL, 0, true, &pool, &lists, &fault), 0);
	assert_non_null(find(lists->allow, lists->nallow, "github.com", 0));
	assert_non_null(find(lists->allow, lists->nallow, "github.com", 22));
	assert_null(find(lists->allow, lists->nallow, "pypi.org", 22));
	assert_null(find(lists->allow, lists->nallow, "ssh.github.com", 0));
	assert_non_null(
	    find(lists->allow, lists->nallow, "ssh.github.com", 22));
	assert_int_equal(lists->ndeny, lists_deny_rows);
	assert_int_equal(lists->tunnels_max, 1024);
	pool_done(&pool);
}

static void
the_network_off_allows_nothing(void **state)
{
	const char *hosts[] = { "example.com" };
	struct pool pool = { NULL };
	struct egress_lists *lists;
	struct spec_fault fault;

	(void)state;
	assert_int_equal(make("allow host \"a.example.com\"\n", hosts, 1, false,
			     &pool, &lists, &fault),
	    0);
	assert_false(lists->network);
	assert_int_equal(lists->nallow, 0);
	pool_done(&pool);
}

static void
rules_carry_their_origin(void **state)
{
	const char *hosts[] = { "b.example.com:8443", "C.Example.com." };
	struct pool pool = { NULL };
	struct egress_lists *lists;
	const struct egress_rule *rule;
	struct spec_fault fault;

	(void)state;
	assert_int_equal(
	    make("\nallow host \"a.example.com\" port 99\n"
		 "deny host \"d.example.com\"\nbaseline except \"pypi.org\"\n",
		hosts, 2, true, &pool, &lists, &fault),
	    0);
	rule = find(lists->allow, lists->nallow, "a.example.com", 99);
	assert_non_null(rule);
	assert_true(is(&rule->origin, "configuration line 2"));
	rule = find(lists->allow, lists->nallow, "b.example.com", 8443);
	assert_non_null(rule);
	assert_true(is(&rule->origin, "spec"));
	assert_non_null(find(lists->allow, lists->nallow, "c.example.com", 0));
	assert_null(find(lists->allow, lists->nallow, "pypi.org", 0));
	rule = find(lists->deny, lists->ndeny, "d.example.com", 0);
	assert_non_null(rule);
	assert_true(is(&rule->origin, "configuration line 3"));
	pool_done(&pool);
}

static void
equal_sets_give_equal_bytes(void **state)
{
	const char *one[] = { "a.example.com", "*.b.example.com", "c.net:1" };
	const char *two[] = { "c.net:1", "a.example.com", "*.b.example.com",
		"a.example.com" };
	struct pool pool = { NULL };
	struct egress_lists *la, *lb;
	struct wire_out a, b;
	struct spec_fault fault;

	(void)state;
	assert_int_equal(make("", one, 3, true, &pool, &la, &fault), 0);
	assert_int_equal(make("", two, 4, true, &pool, &lb, &fault), 0);
	wire_out_init(&a);
	wire_out_init(&b);
	egress_lists_encode(la, &a);
	egress_lists_encode(lb, &b);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	wire_out_done(&a);
	wire_out_done(&b);
	pool_done(&pool);
}

static void
what_is_no_pattern_is_refused(void **state)
{
	static const char *const bad[] = { "*", "a*.example.com", "*.com",
		"*.*.example.com", "ex ample.com", "example.com:0",
		"example.com:65536", "example.com:", "example.com:http",
		"0x7f000001", "127.1", "a/b", "user@example.com", "..",
		"2001:db8::1", "ex%00.com" };
	struct egress_lists *lists;
	struct spec_fault fault;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *hosts[] = { bad[i] };
		struct pool pool = { NULL };

		if (make("", hosts, 1, true, &pool, &lists, &fault) == 0)
			fail_msg("%s was accepted", bad[i]);
		assert_int_equal(fault.code, API_BAD_PARAMS);
		assert_string_equal(fault.field, "egressAllowlist");
		pool_done(&pool);
	}
}

static void
the_operator_may_forbid_additions(void **state)
{
	const char *hosts[] = { "example.com" };
	struct pool pool = { NULL };
	struct egress_lists *lists;
	struct spec_fault fault;

	(void)state;
	assert_int_not_equal(make("egress additions off\n", hosts, 1, true,
				 &pool, &lists, &fault),
	    0);
	assert_int_equal(make("egress additions off\n", NULL, 0, true, &pool,
			     &lists, &fault),
	    0);
	pool_done(&pool);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_baseline_has_its_ports),
		cmocka_unit_test(the_network_off_allows_nothing),
		cmocka_unit_test(rules_carry_their_origin),
		cmocka_unit_test(equal_sets_give_equal_bytes),
		cmocka_unit_test(what_is_no_pattern_is_refused),
		cmocka_unit_test(the_operator_may_forbid_additions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
