/*
 * The guard's table as bytes: round trip; every change of one entry, every
 * cut and every wrong count is either refused or stays inside of the tables;
 * roots and depth.
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

#include "common/memfd.h"
#include "common/size.h"
#include "protocol/guard.h"

static struct guard in, out, changed;
static struct dfa_rule rules[] = {
	{ "**/*.key", DFA_WRITE, 1, DFA_BUILTIN, true },
	{ "**/*.pem", DFA_WRITE, 1, DFA_BUILTIN, true },
	{ "**/.git/hooks/**", DFA_WRITE, 5, DFA_GIT, true },
	{ "/only/here", DFA_WRITE, 4, DFA_SPEC, false },
};

static void
sample(void)
{
	struct dfa_rules list = { .rules = rules,
		.nrules = ARRAY_LEN(rules),
		.nroots = 3,
		.empty_roots = 2 };

	memset(&in, 0, sizeof(in));
	in.new_repositories = true;
	in.nroots = 3;
	in.roots[0] = (struct guard_root){ "/home/u/proj", 12, false };
	in.roots[1] = (struct guard_root){ "/home/u", 7, true };
	in.roots[2] = (struct guard_root){ "/srv", 4, false };
	in.nrules = ARRAY_LEN(rules);
	for (size_t i = 0; i < in.nrules; i++)
		in.rules[i] = (struct guard_rule){ .text = rules[i].glob,
			.origin = "App.7",
			.remedy = "",
			.class = rules[i].class,
			.glob = rules[i].glob,
			.mask = rules[i].mask,
			.roots = rules[i].roots,
			.ignore_case = rules[i].ignore_case };
	in.nexemptions = 2;
	in.exemptions[0] =
	    (struct guard_exemption){ "(?i)**/.env.sample", "App.7", 5 };
	in.exemptions[1] = (struct guard_exemption){ "/t/*.pem", "spec", 0 };
	assert_int_equal(dfa_compile(&list, &in.dfa, NULL), 0);
}

static int
through(const struct guard *from, struct guard *to)
{
	static struct wire_out bytes;

	wire_out_done(&bytes);
	wire_out_init(&bytes);
	guard_encode(from, &bytes);
	assert_false(bytes.err);
	return guard_decode(bytes.data, bytes.len, to);
}

static unsigned
judged(const char *path, const char *name, int *ret_root)
{
	return guard_judge(&out, path, strlen(path), name, strlen(name),
	    ret_root)
	    .mask;
}

static void
a_table_makes_the_round_trip(void **state)
{
	struct wire_out bytes, again;
	struct memfd_map map;
	int fd;

	(void)state;
	sample();
	wire_out_init(&bytes);
	wire_out_init(&again);
	guard_encode(&in, &bytes);
	fd = memfd_seal("guard", bytes.data, bytes.len);
	assert_true(fd >= 0);
	assert_int_equal(memfd_open_map(fd, GUARD_BYTES_MAX, &map), 0);
	assert_int_equal(guard_decode(map.data, map.len, &out), 0);
	guard_encode(&out, &again);
	assert_int_equal(again.len, bytes.len);
	assert_memory_equal(again.data, bytes.data, bytes.len);
	assert_true(out.new_repositories);
	assert_int_equal(out.nexemptions, 2);
	assert_string_equal(out.exemptions[1].text, "/t/*.pem");
	assert_int_equal(out.exemptions[0].roots, 5);
	assert_memory_equal(&out.dfa, &in.dfa, sizeof(in.dfa));
	for (size_t cut = 0; cut < bytes.len; cut++)
		assert_int_equal(guard_decode(bytes.data, cut, &changed),
		    -EPROTO);
	memfd_unmap(&map);
	wire_out_done(&bytes);
	wire_out_done(&again);
}

/* In front of rules that they are not of, too. */
static void
tables_alone_are_checked_as_well(void **state)
{
	struct wire_out bytes;

	(void)state;
	sample();
	wire_out_init(&bytes);
	guard_tables_encode(&in.dfa, &bytes);
	assert_int_equal(guard_tables_decode(bytes.data, bytes.len, 3,
			     in.nrules, &out.dfa),
	    0);
	assert_true(dfa_match(&out.dfa, "x.key", 5, 0).mask != 0);
	assert_int_equal(guard_tables_decode(bytes.data, bytes.len, 3, 1,
			     &out.dfa),
	    -EPROTO);
	assert_int_equal(guard_tables_decode(bytes.data, bytes.len, 2,
			     in.nrules, &out.dfa),
	    -EPROTO);
	for (size_t cut = 0; cut < bytes.len; cut++)
		assert_int_equal(guard_tables_decode(bytes.data, cut, 3,
				     in.nrules, &out.dfa),
		    -EPROTO);
	wire_out_done(&bytes);
}

static void
the_longest_root_decides(void **state)
{
	int root;

	(void)state;
	sample();
	assert_int_equal(through(&in, &out), 0);
	assert_true(judged("/home/u/proj", "x.key", &root) != 0);
	assert_int_equal(root, 0);
	assert_int_equal(judged("/home/u", "x.key", &root), 0);
	assert_int_equal(root, 1);
	assert_int_equal(judged("/home/u/project", "x.key", &root), 0);
	assert_int_equal(root, 1);
	assert_int_equal(judged("/home/user", "x.key", &root), 0);
	assert_int_equal(root, -1);
	assert_true(judged("/srv/only", "here", &root) != 0);
	assert_int_equal(root, 2);
	assert_int_equal(judged("/home/u/proj/only", "here", NULL), 0);
	assert_int_equal(judged("/srv/a/.git/hooks", "", NULL),
	    DFA_WRITE | DFA_MOVE);
	assert_int_equal(judged("/srv/a", ".git", NULL), DFA_MOVE);
	assert_int_equal(judged("/srv/a", "x.key", NULL), 0);
}

static void
an_event_names_the_rule_that_matched(void **state)
{
	struct dfa_verdict v;

	(void)state;
	sample();
	assert_int_equal(through(&in, &out), 0);
	v = guard_judge(&out, "/home/u/proj", 12, "a.PEM", 5, NULL);
	assert_int_equal(guard_exact_rule(&out, v, DFA_WRITE, "/home/u/proj",
			     12, "a.PEM", 5),
	    1);
	v = guard_judge(&out, "/srv", 4, ".git", 4, NULL);
	assert_int_equal(guard_exact_rule(&out, v, DFA_MOVE, "/srv", 4, ".git",
			     4),
	    2);
	assert_null(guard_rule(&out, (unsigned)out.nrules));
	assert_null(guard_rule(&out, DFA_RULE_NONE));
	assert_non_null(guard_rule(&out, DFA_RULE_TOO_DEEP));
}

static void
too_deep_fails_closed(void **state)
{
	char path[2 * 300 + 32] = "/home/u/proj";
	char name[DFA_NAME_MAX + 2];
	size_t base = strlen(path);
	struct dfa_verdict v;

	(void)state;
	sample();
	assert_int_equal(through(&in, &out), 0);
	for (size_t n = 1; n <= 300; n++) {
		(void)strcat(path, "/a");
		v = guard_judge(&out, path, strlen(path), NULL, 0, NULL);
		assert_int_equal(v.mask, n >= DFA_DEPTH_MAX ? DFA_ALL : 0);
		assert_int_equal(v.rule,
		    n >= DFA_DEPTH_MAX ? DFA_RULE_TOO_DEEP : DFA_RULE_NONE);
	}
	path[base] = '\0';
	memset(name, 'n', sizeof(name));
	assert_int_equal(
	    guard_judge(&out, path, base, name, DFA_NAME_MAX, NULL).mask, 0);
	assert_int_equal(
	    guard_judge(&out, path, base, name, DFA_NAME_MAX + 1, NULL).mask,
	    DFA_ALL);
	/* a name with a slash in it is nobody's name */
	assert_int_equal(guard_judge(&out, path, base, "a/b", 3, NULL).mask,
	    DFA_ALL);
	/* no rules, no refusal: private places */
	assert_int_equal(
	    guard_judge(&out, "/home/u", 7, name, DFA_NAME_MAX + 1, NULL).mask,
	    0);
}

/* Whatever was changed: refused, or a walk stays inside (the sanitizer's
 * work; struct guard ends with the table). */
static void
refused_or_harmless(const struct guard *hostile)
{
	if (through(hostile, &out) < 0)
		return;
	(void)judged("/home/u/proj/a/.git/hooks", "x.key", NULL);
	(void)judged("/srv/\xff/only", "here", NULL);
}

static void
every_changed_entry_is_refused_or_harmless(void **state)
{
	static const uint16_t values[] = { 0, 1, 2, 31, 255, 256, 4095, 32768,
		65534, 65535 };
	unsigned refused = 0;

	(void)state;
	sample();
	for (size_t i = 0; i < in.dfa.nnext; i++) {
		changed = in;
		changed.dfa.next[i] = 65535;
		assert_int_equal(through(&changed, &out), -EPROTO);
		changed.dfa.next[i] = (uint16_t)in.dfa.nnext;
		assert_int_equal(through(&changed, &out), -EPROTO);
		changed.dfa.next[i] = (uint16_t)(in.dfa.next[i] + 1);
		refused_or_harmless(&changed);
	}
	for (size_t v = 0; v < ARRAY_LEN(values); v++) {
#define CHANGE(field) \
	do { \
		changed = in; \
		changed.dfa.field = values[v]; \
		refused += through(&changed, &out) < 0; \
		refused_or_harmless(&changed); \
	} while (0)
		CHANGE(start);
		CHANGE(ncls);
		CHANGE(nnames);
		changed = in;
		changed.dfa.cls['k'] = (uint8_t)values[v];
		refused_or_harmless(&changed);
		changed = in;
		changed.dfa.verdict[0].rule = values[v];
		refused_or_harmless(&changed);
		changed.dfa.verdict[0].mask = values[v];
		refused_or_harmless(&changed);
	}
	assert_true(refused >= 3 * (ARRAY_LEN(values) - 1));
}

static void
wrong_roots_and_rules_are_refused(void **state)
{
	static const char *const paths[] = { "", "/", "srv", "/srv/", "/a//b",
		"/a/../b", "/home/u" };

	(void)state;
	sample();
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		changed = in;
		changed.roots[2].path = paths[i];
		assert_int_equal(through(&changed, &out), -EPROTO);
	}
	changed = in;
	changed.nroots = 2; /* the table's rows are wider */
	refused_or_harmless(&changed);
	changed.nroots = 0;
	assert_int_equal(through(&changed, &out), -EPROTO);
	changed = in;
	changed.nrules = 0; /* verdicts name rules */
	assert_int_equal(through(&changed, &out), -EPROTO);
	changed = in;
	changed.rules[0].class = DFA_CLASSES;
	assert_int_equal(through(&changed, &out), -EPROTO);
}

static void
only_pid_1_verifies(void **state)
{
	(void)state;
	assert_true(guard_is_verification(1, "/p/.stockade-verify-0"));
	assert_true(guard_is_verification(1, "/.stockade-verify-"));
	assert_false(guard_is_verification(2, "/p/.stockade-verify-0"));
	assert_false(guard_is_verification(1, "/p/.stockade-verify"));
	assert_false(guard_is_verification(1, "/p/.stockade-verify-0/.env"));
	assert_false(guard_is_verification(1, "/p/x.stockade-verify-0"));
	assert_false(guard_is_verification(1, ".stockade-verify-0"));
	assert_false(guard_is_verification(1, ""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_makes_the_round_trip),
		cmocka_unit_test(tables_alone_are_checked_as_well),
		cmocka_unit_test(the_longest_root_decides),
		cmocka_unit_test(an_event_names_the_rule_that_matched),
		cmocka_unit_test(too_deep_fails_closed),
		cmocka_unit_test(every_changed_entry_is_refused_or_harmless),
		cmocka_unit_test(wrong_roots_and_rules_are_refused),
		cmocka_unit_test(only_pid_1_verifies),
	};

	return cmocka_run_group_tests_name("guard_table", tests, NULL, NULL);
}
