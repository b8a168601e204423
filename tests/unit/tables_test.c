/*
 * Kept tables: compiled once for equal rules, and never taken for others.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "supervisor/control/tables.h"

static unsigned compiled;
static const struct dfa *dfa;
static const bool *aside;

int __real_dfa_compile_some(const struct dfa_rules *, struct dfa *, bool *,
    size_t *);
int __wrap_dfa_compile_some(const struct dfa_rules *, struct dfa *, bool *,
    size_t *);

int
__wrap_dfa_compile_some(const struct dfa_rules *in, struct dfa *ret,
    bool *ret_aside, size_t *ret_bad)
{
	compiled++;
	return __real_dfa_compile_some(in, ret, ret_aside, ret_bad);
}

static unsigned
denied(const char *path)
{
	return dfa_match(dfa, path, strlen(path), 0).mask;
}

/* How often it was compiled for that. */
static unsigned
make(const struct dfa_rules *in)
{
	unsigned before = compiled;

	assert_int_equal(tables_compile(in, &dfa, &aside, NULL), 0);
	return compiled - before;
}

static void
equal_rules_are_compiled_once(void **state)
{
	char glob[] = "**/*.key";
	struct dfa_rule rule = { glob, DFA_WRITE, 1, DFA_BUILTIN, true };
	const struct dfa_rules in = { .rules = &rule,
		.nrules = 1,
		.nroots = 1 };
	static struct dfa copy;

	(void)state;
	assert_int_equal(make(&in), 1);
	assert_true(denied("a/x.KEY") != 0);
	assert_int_equal(make(&in), 0);
	assert_true(denied("a/x.KEY") != 0);
	assert_false(aside[0]);
	memset(&copy, 0xff, sizeof(copy));
	tables_copy(&copy, dfa);
	assert_int_equal(dfa_check(&copy, 1), 0);
	assert_true(dfa_match(&copy, "x.key", 5, 0).mask != 0);
	memcpy(glob, "**/*.pem", sizeof(glob)); /* nothing borrows the old */
	assert_int_equal(make(&in), 1);
	assert_int_equal(denied("x.key"), 0);
	assert_true(denied("x.pem") != 0);
}

/* Each thing that the compiler reads makes other rules. */
static void
other_rules_are_others(void **state)
{
	static const struct dfa_rule first = { "**/*.key", DFA_WRITE, 1,
		DFA_BUILTIN, false };
	static const struct dfa_exemption lifts[] = { { "/a.key", 1, false },
		{ "/b.key", 1, false }, { "/a.key", 3, false },
		{ "/a.key", 1, true } };
	struct dfa_rule rule = first;
	struct dfa_rules in = { .rules = &rule, .nrules = 1, .nroots = 2 };

	(void)state;
	assert_int_equal(make(&in), 1);
	rule.mask = DFA_EXEC;
	assert_int_equal(make(&in), 1);
	rule = first;
	rule.roots = 3;
	assert_int_equal(make(&in), 1);
	rule = first;
	rule.class = DFA_SPEC;
	assert_int_equal(make(&in), 1);
	rule = first;
	rule.ignore_case = true;
	assert_int_equal(make(&in), 1);
	rule = first;
	in.empty_roots = 2;
	assert_int_equal(make(&in), 1);
	in.empty_roots = 0;
	in.nroots = 1;
	assert_int_equal(make(&in), 1);
	in.nroots = 2;
	assert_int_equal(make(&in), 0);
	in.nexemptions = 1;
	for (size_t i = 0; i < ARRAY_LEN(lifts); i++) {
		in.exemptions = &lifts[i];
		assert_int_equal(make(&in), 1);
		assert_int_equal(denied("a.key") == 0, i != 1);
	}
}

static void
a_bad_pattern_leaves_nothing(void **state)
{
	struct dfa_rule rule = { "a//b", DFA_WRITE, 1, DFA_SPEC, false };
	const struct dfa_rules in = { .rules = &rule,
		.nrules = 1,
		.nroots = 1 };
	size_t bad = 9;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(tables_compile(&in, &dfa, &aside, &bad),
		    -EINVAL);
	assert_int_equal(bad, 0);
}

static void
the_oldest_one_goes(void **state)
{
	char glob[16];
	struct dfa_rule rule = { glob, DFA_WRITE, 1, DFA_SPEC, false };
	const struct dfa_rules in = { .rules = &rule,
		.nrules = 1,
		.nroots = 1 };

	(void)state;
	for (unsigned i = 0; i < TABLES_KEPT_MAX + 1; i++) {
		(void)snprintf(glob, sizeof(glob), "/f%u", i);
		assert_int_equal(make(&in), 1);
		(void)snprintf(glob, sizeof(glob), "/f0");
		assert_int_equal(make(&in), 0);
	}
	(void)snprintf(glob, sizeof(glob), "/f2");
	assert_int_equal(make(&in), 0);
	(void)snprintf(glob, sizeof(glob), "/f1");
	assert_int_equal(make(&in), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_rules_are_compiled_once),
		cmocka_unit_test(other_rules_are_others),
		cmocka_unit_test(a_bad_pattern_leaves_nothing),
		cmocka_unit_test(the_oldest_one_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
