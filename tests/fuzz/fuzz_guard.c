/*
 * The guard's table as the broker reads it. Properties: what is decoded is
 * encoded to the same bytes, and no path makes a walk leave the tables (the
 * sanitizer sees it) or gives a verdict that names no rule. The paths walked
 * are fixed ones and the input itself.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define CHECK(x) \
	do { \
		if (!(x)) \
			abort(); \
	} while (0)

static void
check_verdict(const struct guard *guard, struct dfa_verdict v)
{
	if (v.mask == 0)
		CHECK(v.rule == DFA_RULE_NONE);
	else
		CHECK((v.mask & ~DFA_ALL) == 0 &&
		    guard_rule(guard, v.rule) != NULL);
}

static void
walk(const struct guard *guard, const char *path, size_t len)
{
	struct dfa_verdict v;
	int root;

	for (unsigned i = 0; i < DFA_ROOTS_MAX + 1; i++)
		check_verdict(guard, dfa_match(&guard->dfa, path, len, i));
	v = guard_judge(guard, path, len, "x.key", 5, &root);
	check_verdict(guard, v);
	CHECK(root < (int)guard->nroots);
	for (size_t i = 0; i < guard->nroots; i++) {
		v = guard_judge(guard, guard->roots[i].path,
		    guard->roots[i].len, "x", 1, &root);
		check_verdict(guard, v);
		CHECK(root >= 0);
		(void)guard_exact_rule(guard, v, DFA_ALL, guard->roots[i].path,
		    guard->roots[i].len, "x", 1);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct guard guard;
	struct wire_out out;

	if (guard_tables_decode(data, len, 1, 1, &guard.dfa) == 0) {
		wire_out_init(&out);
		guard_tables_encode(&guard.dfa, &out);
		CHECK(!out.err && out.len == len &&
		    memcmp(out.data, data, len) == 0);
		wire_out_done(&out);
		(void)dfa_match(&guard.dfa, "a/x", 3, 0);
	}
	if (guard_decode(data, len, &guard) < 0)
		return 0;
	wire_out_init(&out);
	guard_encode(&guard, &out);
	CHECK(!out.err && out.len == len && memcmp(out.data, data, len) == 0);
	wire_out_done(&out);
	walk(&guard, "a/.git/hooks/x", 14);
	walk(&guard, "/home/u/proj/.env", 17);
	walk(&guard, "", 0);
	walk(&guard, (const char *)data, len);
	return 0;
}
