/*
 * Plan, exec plan, look-up and egress lists: round trip, and what a hostile
 * control could write.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "protocol/egress.h"
#include "protocol/lookup.h"
#include "protocol/plan.h"

static struct plan in, out;

static void
sample(struct plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	plan->session = (struct wire_view){ (const uint8_t *)"\x80", 1 };
	plan->home = "/home/u";
	plan->cwd = "/home/u/proj";
	plan->hostname = "sandbox";
	plan->limits.memory_bytes = 1u << 30;
	plan->limits.named = PLAN_LIMIT_PIDS;
	plan->nmounts = 1;
	plan->mounts[0] = (struct plan_mount){ "/data/proj", "/home/u/proj",
		PLAN_DIR, false, 5, 77 };
	plan->nmasks = 2;
	plan->masks[0] = (struct plan_mask){ "/home/u/proj/.bashrc",
		PLAN_MASK_READ_ONLY, PLAN_FILE, false, false };
	plan->masks[1] = (struct plan_mask){ "/usr/bin/sudo", PLAN_MASK_NO_FILE,
		PLAN_FILE, true, false };
	plan->nfiles = 1;
	plan->files[0] = (struct plan_file){ "/etc/passwd",
		{ (const uint8_t *)"u:x:1:1::/:", 11 } };
}

static int
through(const struct plan *plan, struct plan *ret, const char **ret_field,
    struct wire_out *bytes)
{
	wire_out_init(bytes);
	plan_encode(plan, bytes);
	assert_false(bytes->err);
	return plan_decode(bytes->data, bytes->len, ret, ret_field);
}

static void
a_plan_makes_the_round_trip(void **state)
{
	struct wire_out bytes, again;
	const char *field = NULL;

	(void)state;
	sample(&in);
	assert_int_equal(through(&in, &out, &field, &bytes), 0);
	assert_string_equal(out.mounts[0].source, "/data/proj");
	assert_int_equal(out.mounts[0].ino, 77);
	assert_int_equal(out.masks[1].how, PLAN_MASK_NO_FILE);
	assert_int_equal(out.files[0].content.len, 11);
	assert_int_equal(out.limits.named, PLAN_LIMIT_PIDS);
	wire_out_init(&again);
	plan_encode(&out, &again);
	assert_int_equal(again.len, bytes.len);
	assert_memory_equal(again.data, bytes.data, bytes.len);
	for (size_t cut = 0; cut < bytes.len; cut++)
		assert_int_equal(plan_decode(bytes.data, cut, &out, &field),
		    -EPROTO);
	wire_out_done(&again);
	wire_out_done(&bytes);
}

static void
a_guarded_plan_makes_the_round_trip(void **state)
{
	struct wire_out bytes;
	const char *field = NULL;

	(void)state;
	sample(&in);
	in.nroots = 2;
	in.roots[0] = (struct plan_root){ "/home/u/proj", false };
	in.roots[1] = (struct plan_root){ "/home/u", true };
	assert_int_equal(through(&in, &out, &field, &bytes), 0);
	assert_int_equal(out.nroots, 2);
	assert_string_equal(out.roots[0].path, "/home/u/proj");
	assert_false(out.roots[0].empty);
	assert_true(out.roots[1].empty);
	for (size_t cut = 0; cut < bytes.len; cut++)
		assert_int_equal(plan_decode(bytes.data, cut, &out, &field),
		    -EPROTO);
	wire_out_done(&bytes);
	in.roots[1].path = "/";
	field = NULL;
	assert_int_equal(through(&in, &out, &field, &bytes), -EPROTO);
	assert_string_equal(field, "roots");
	assert_int_equal(out.nroots, 0);
	wire_out_done(&bytes);
}

static void
refused(const char *wanted)
{
	struct wire_out bytes;
	const char *field = NULL;

	assert_int_equal(through(&in, &out, &field, &bytes), -EPROTO);
	assert_string_equal(field, wanted);
	wire_out_done(&bytes);
}

static void
a_target_in_the_fixed_view_is_refused(void **state)
{
	static const char *const targets[] = { "/", "/etc", "/etc/shadow",
		"/proc", "/proc/sys", "/sys/fs", "/dev/mem", "/run",
		"/run/stockade/init", "/usr", "/usr/bin", "/tmp", "/var/tmp",
		"/root", "/boot", "/home" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		sample(&in);
		in.nmasks = 0;
		in.mounts[0].target = targets[i];
		refused("mounts");
	}
}

static void
an_unclean_path_is_refused(void **state)
{
	static const char *const paths[] = { "", "proj", "/a/../b", "/a//b",
		"/a/./b", "/a/" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		sample(&in);
		in.mounts[0].source = paths[i];
		refused("mounts");
		sample(&in);
		in.cwd = paths[i];
		refused("head");
	}
}

static void
a_mask_outside_every_mount_is_refused(void **state)
{
	(void)state;
	sample(&in);
	in.masks[0].path = "/home/u/other/.bashrc";
	refused("masks");
	sample(&in);
	in.masks[0].path = "/home/u/proj2"; /* a name, not a component */
	refused("masks");
	sample(&in);
	in.masks[1].path = "/etc/passwd"; /* system, but not below /usr */
	refused("masks");
	sample(&in);
	in.masks[1].how = PLAN_MASK_READ_ONLY;
	refused("masks");
	sample(&in);
	in.masks[0].how = PLAN_MASK_EMPTY_DIR; /* of a file */
	refused("masks");
}

static void
a_file_outside_etc_is_refused(void **state)
{
	(void)state;
	sample(&in);
	in.files[0].path = "/usr/bin/env";
	refused("files");
	sample(&in);
	in.files[0].path = "/etc";
	refused("files");
}

static void
a_command_makes_the_round_trip(void **state)
{
	static struct exec_plan a, b;
	struct wire_out bytes;
	const char *field = NULL;

	(void)state;
	a = (struct exec_plan){ .cwd = "/tmp", .nargv = 2, .nenv = 1 };
	a.argv[0] = "sh";
	a.argv[1] = "";
	a.env[0] = "A==b";
	wire_out_init(&bytes);
	exec_plan_encode(&a, &bytes);
	assert_int_equal(exec_plan_decode(bytes.data, bytes.len, &b, &field),
	    0);
	assert_string_equal(b.env[0], "A==b");
	assert_null(b.argv[2]);
	wire_out_done(&bytes);
}

static void
a_command_without_a_name_is_refused(void **state)
{
	static const char *const envs[] = { "=x", "novalue", "A B=x", "A\n=x" };
	static struct exec_plan a, b;
	struct wire_out bytes;
	const char *field = NULL;

	(void)state;
	a = (struct exec_plan){ .cwd = "/tmp", .nargv = 1 };
	a.argv[0] = "";
	wire_out_init(&bytes);
	exec_plan_encode(&a, &bytes);
	assert_int_equal(exec_plan_decode(bytes.data, bytes.len, &b, &field),
	    -EPROTO);
	assert_string_equal(field, "argv");
	wire_out_done(&bytes);
	for (size_t i = 0; i < ARRAY_LEN(envs); i++) {
		a.argv[0] = "sh";
		a.nenv = 1;
		a.env[0] = envs[i];
		field = NULL;
		wire_out_init(&bytes);
		exec_plan_encode(&a, &bytes);
		assert_int_equal(exec_plan_decode(bytes.data, bytes.len, &b,
				     &field),
		    -EPROTO);
		assert_string_equal(field, "env");
		wire_out_done(&bytes);
	}
}

static void
what_was_found_is_not_policy(void **state)
{
	static struct plan before, after;
	struct wire_out a, b, policy;
	const char *field;

	(void)state;
	sample(&before);
	wire_out_init(&a);
	plan_encode(&before, &a);
	before.masks[2] = (struct plan_mask){ "/home/u/proj/.env",
		PLAN_MASK_READ_ONLY, PLAN_FILE, false, true };
	before.nmasks = 3;
	wire_out_init(&policy);
	plan_encode_policy(&before, &policy);
	assert_int_equal(policy.len, a.len);
	assert_memory_equal(policy.data, a.data, a.len);
	wire_out_init(&b);
	plan_encode(&before, &b);
	assert_int_equal(plan_decode(b.data, b.len, &after, &field), 0);
	assert_int_equal(after.nmasks, 3);
	assert_true(after.masks[2].found && !after.masks[1].found);
	wire_out_done(&policy);
	wire_out_done(&a);
	wire_out_done(&b);
}

static int
try_found(struct lookup_results *r, struct lookup_found found)
{
	static struct lookup_results again;
	struct wire_out bytes;
	int ret;

	r->nfound = 1;
	r->found[0] = found;
	wire_out_init(&bytes);
	lookup_results_encode(r, &bytes);
	ret = lookup_results_decode(bytes.data, bytes.len, &again);
	if (ret == 0)
		assert_string_equal(again.found[0].path, found.path);
	wire_out_done(&bytes);
	return ret;
}

static void
findings_are_checked(void **state)
{
	static struct lookup_results r;

	(void)state;
	r.nresults = 1;
	r.results[0] =
	    (struct lookup_result){ .literal = "/a", .resolved = "/a" };
	assert_int_equal(try_found(&r,
			     (struct lookup_found){ LOOKUP_NAME, "/a/.env",
				 LOOKUP_FILE, LOOKUP_NO_ITEM, "" }),
	    0);
	assert_int_equal(try_found(&r,
			     (struct lookup_found){ LOOKUP_LINK, "/a/x",
				 LOOKUP_FILE, 0, "/a/.env" }),
	    0);
	assert_int_equal(try_found(&r,
			     (struct lookup_found){ LOOKUP_LINK, "/a/x",
				 LOOKUP_FILE, 1, "/a/.env" }),
	    -EPROTO);
	assert_int_equal(try_found(&r,
			     (struct lookup_found){ LOOKUP_LINK, "/a/x",
				 LOOKUP_FILE, 0, "" }),
	    -EPROTO);
	assert_int_equal(try_found(&r,
			     (struct lookup_found){ LOOKUP_NAME, "/a/../b",
				 LOOKUP_FILE, LOOKUP_NO_ITEM, "" }),
	    -EPROTO);
	assert_int_equal(try_found(&r,
			     (struct lookup_found){ LOOKUP_NAME, "/a/b",
				 LOOKUP_FILE, LOOKUP_NO_ITEM, "/c" }),
	    -EPROTO);
	r.stopped = LOOKUP_STOP_ALL + 1;
	assert_int_equal(try_found(&r,
			     (struct lookup_found){ LOOKUP_SOCK, "/a/s",
				 LOOKUP_SOCKET, LOOKUP_NO_ITEM, "" }),
	    -EPROTO);
}

static void
a_lookup_makes_the_round_trip(void **state)
{
	static struct lookup_question q, q2;
	static struct lookup_results r, r2;
	struct wire_out bytes;

	(void)state;
	q.nitems = 2;
	q.items[0].path = "~/.ssh";
	q.items[1].path = "/a";
	q.items[1].use = LOOKUP_USE_WRITABLE;
	q.scan.entries_max = 7;
	q.scan.nrules = 1;
	q.scan.rules[0] =
	    (struct dfa_rule){ "**/.env", DFA_WRITE, 1, DFA_SPEC, true };
	q.scan.nexemptions = 1;
	q.scan.exemptions[0].glob = "**/x";
	q.scan.table = (struct wire_view){ (const uint8_t *)"table", 5 };
	wire_out_init(&bytes);
	lookup_question_encode(&q, &bytes);
	assert_int_equal(lookup_question_decode(bytes.data, bytes.len, &q2), 0);
	assert_string_equal(q2.items[0].path, "~/.ssh");
	assert_int_equal(q2.items[1].use, LOOKUP_USE_WRITABLE);
	assert_int_equal(q2.scan.entries_max, 7);
	assert_string_equal(q2.scan.rules[0].glob, "**/.env");
	assert_int_equal(q2.scan.rules[0].class, DFA_SPEC);
	assert_string_equal(q2.scan.exemptions[0].glob, "**/x");
	assert_int_equal(q2.scan.table.len, 5);
	wire_out_done(&bytes);
	q.scan.rules[0].roots = 4; /* there are two */
	wire_out_init(&bytes);
	lookup_question_encode(&q, &bytes);
	assert_int_equal(lookup_question_decode(bytes.data, bytes.len, &q2),
	    -EPROTO);
	q.scan.rules[0].roots = 1;
	wire_out_done(&bytes);
	q.items[1].path = "relative";
	wire_out_init(&bytes);
	lookup_question_encode(&q, &bytes);
	assert_int_equal(lookup_question_decode(bytes.data, bytes.len, &q2),
	    -EPROTO);
	wire_out_done(&bytes);
	r.nresults = 1;
	r.results[0] = (struct lookup_result){ .literal = "/a",
		.resolved = "/b",
		.kind = LOOKUP_DIR,
		.readable = true };
	wire_out_init(&bytes);
	lookup_results_encode(&r, &bytes);
	assert_int_equal(lookup_results_decode(bytes.data, bytes.len, &r2), 0);
	assert_string_equal(r2.results[0].resolved, "/b");
	wire_out_done(&bytes);
	r.results[0].resolved = ""; /* found, but where? */
	wire_out_init(&bytes);
	lookup_results_encode(&r, &bytes);
	assert_int_equal(lookup_results_decode(bytes.data, bytes.len, &r2),
	    -EPROTO);
	wire_out_done(&bytes);
}

static struct wire_view
text(const char *s)
{
	return (struct wire_view){ (const uint8_t *)s, strlen(s) };
}

static void
egress_lists_make_the_round_trip(void **state)
{
	static struct egress_lists a, b;
	struct wire_out bytes;

	(void)state;
	a.network = true;
	a.tunnels_max = 7;
	a.nallow = 1;
	a.allow[0] =
	    (struct egress_rule){ text("*.example.com"), text("baseline"), 0 };
	a.ndeny = 1;
	a.deny[0] = (struct egress_rule){ text("sentry.io"), text("fixed"), 0 };
	a.nprivate = 1;
	a.private_[0] = (struct egress_private){ text("10.0.0.0/8"),
		text("a.example.com") };
	wire_out_init(&bytes);
	egress_lists_encode(&a, &bytes);
	assert_int_equal(egress_lists_decode(bytes.data, bytes.len, &b), 0);
	assert_int_equal(b.nallow, 1);
	assert_memory_equal(b.private_[0].host.data, "a.example.com", 13);
	for (size_t cut = 0; cut < bytes.len; cut++)
		assert_int_equal(egress_lists_decode(bytes.data, cut, &b),
		    -EPROTO);
	wire_out_done(&bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_makes_the_round_trip),
		cmocka_unit_test(a_guarded_plan_makes_the_round_trip),
		cmocka_unit_test(a_target_in_the_fixed_view_is_refused),
		cmocka_unit_test(an_unclean_path_is_refused),
		cmocka_unit_test(a_mask_outside_every_mount_is_refused),
		cmocka_unit_test(a_file_outside_etc_is_refused),
		cmocka_unit_test(a_command_makes_the_round_trip),
		cmocka_unit_test(a_command_without_a_name_is_refused),
		cmocka_unit_test(a_lookup_makes_the_round_trip),
		cmocka_unit_test(what_was_found_is_not_policy),
		cmocka_unit_test(findings_are_checked),
		cmocka_unit_test(egress_lists_make_the_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
