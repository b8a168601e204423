/*
 * spec.c: what is read, what is refused, and that each field of a part that is
 * not built is refused where it would have an effect.
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
#include "protocol/rpc.h"
#include "supervisor/control/limits.h"
#include "supervisor/control/spec.h"

/* A map {"s": {...}} as bytes, so that its object tree can be had. */
struct made {
	struct rpc_out out;
	struct rpc_message msg;
	const msgpack_object *map;
};

static void
begin(struct made *m, bool complete)
{
	memset(m, 0, sizeof(*m));
	rpc_out_init(&m->out);
	rpc_begin_request(&m->out, 1, "x");
	rpc_add_map(&m->out, "spec");
	if (!complete)
		return;
	rpc_add_str(&m->out, "sessionId", "s");
	rpc_add_str(&m->out, "workspaceId", "w");
	rpc_add_array(&m->out, "bindMounts");
	rpc_close(&m->out);
}

static void
done(struct made *m)
{
	rpc_close(&m->out);
	assert_int_equal(rpc_end_message(&m->out), 0);
	assert_int_equal(rpc_unpack(m->out.data, m->out.len, &m->msg), 0);
	m->map = rpc_map(m->msg.params, "spec");
	assert_non_null(m->map);
}

static void
drop(struct made *m)
{
	rpc_done(&m->msg);
	rpc_out_done(&m->out);
}

static void
refused(struct made *m, enum api_error code, const char *field)
{
	struct spec *spec = NULL;
	struct spec_fault fault;

	done(m);
	assert_int_equal(spec_parse(m->map, &spec, &fault), -22);
	assert_null(spec);
	assert_int_equal(fault.code, code);
	assert_string_equal(fault.field, field);
	assert_true(fault.text[0] != '\0');
	drop(m);
}

static struct spec *
accepted(struct made *m)
{
	struct spec *spec = NULL;
	struct spec_fault fault = { 0 };

	done(m);
	if (spec_parse(m->map, &spec, &fault) != 0)
		fail_msg("%s: %s", fault.field, fault.text);
	drop(m);
	return spec;
}

static void
defaults_are_those_of_the_specification(void **state)
{
	struct made m;
	struct spec *spec;

	(void)state;
	begin(&m, true);
	spec = accepted(&m);
	assert_true(spec->network);
	assert_int_equal(spec->mode, SPEC_CHAT);
	assert_int_equal(spec->gone_ms, 10000);
	assert_false(spec->detach);
	assert_false(spec->has_idle);
	assert_null(spec->user);
	assert_int_equal(spec->nmounts, 0);
	spec_free(spec);
}

static void
required_fields_are_required(void **state)
{
	static const char *const names[] = { "sessionId", "workspaceId",
		"bindMounts" };
	struct made m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		begin(&m, false);
		if (i != 0)
			rpc_add_str(&m.out, "sessionId", "s");
		if (i != 1)
			rpc_add_str(&m.out, "workspaceId", "w");
		if (i != 2) {
			rpc_add_array(&m.out, "bindMounts");
			rpc_close(&m.out);
		}
		refused(&m, API_BAD_PARAMS, names[i]);
	}
}

static void
unknown_fields_are_named(void **state)
{
	struct made m;

	(void)state;
	begin(&m, true);
	rpc_add_bool(&m.out, "surprise", true);
	refused(&m, API_BAD_PARAMS, "surprise");
}

struct text_row {
	const char *field;
	const char *value;
	enum api_error code;
};
static const struct text_row text_rows[] = {
	{ "mode", "chat", API_OK },
	{ "mode", "orchestrate", API_OK },
	{ "mode", "Chat", API_BAD_PARAMS },
	{ "mode", "", API_BAD_PARAMS },
	{ "guestWorkdir", "/a/b", API_OK },
	{ "guestWorkdir", "a", API_BAD_PARAMS },
	{ "guestWorkdir", "/a/../b", API_BAD_PARAMS },
	{ "guestWorkdir", "/..", API_BAD_PARAMS },
	{ "agentId", "a:b@c/d-e_f.g", API_OK },
	{ "agentId", "a b", API_BAD_PARAMS },
	{ "credentials", "auto", API_OK },
	{ "credentials", "all", API_BAD_PARAMS },
	{ "newRepositories", "deny", API_OK },
	{ "newRepositories", "allow", API_OK },
	{ "newRepositories", "x", API_BAD_PARAMS },
	{ "networkEnabled", "yes", API_BAD_PARAMS },
	{ "limits", "x", API_BAD_PARAMS },
	{ "env", "x", API_BAD_PARAMS },
	{ "user", "line\nbreak", API_BAD_PARAMS },
	{ "detach", "true", API_BAD_PARAMS },
	{ "nameExemptions", "x", API_BAD_PARAMS },
};

static void
texts_are_checked(void **state)
{
	struct made m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(text_rows); i++) {
		begin(&m, true);
		rpc_add_str(&m.out, text_rows[i].field, text_rows[i].value);
		if (text_rows[i].code == API_OK)
			spec_free(accepted(&m));
		else
			refused(&m, text_rows[i].code, text_rows[i].field);
	}
}

static void
parts_that_are_not_built_are_refused_unless_empty(void **state)
{
	static const char *const names[] = { "unixSockets", "loopbackPorts" };
	struct made m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		for (int full = 0; full < 2; full++) {
			begin(&m, true);
			rpc_add_array(&m.out, names[i]);
			if (full)
				rpc_put_str(&m.out, "x");
			rpc_close(&m.out);
			if (full)
				refused(&m, API_UNSUPPORTED, names[i]);
			else
				spec_free(accepted(&m));
		}
}

static void
deny_patterns_are_not_silently_literal(void **state)
{
	static const char *const paths[] = { "/a/*", "/a/?", "/**/x" };
	struct made m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		begin(&m, true);
		rpc_add_array(&m.out, "denyRead");
		rpc_put_str(&m.out, paths[i]);
		rpc_close(&m.out);
		refused(&m, API_UNSUPPORTED, "denyRead");
	}
}

static void
counts_are_limited(void **state)
{
	struct made m;

	(void)state;
	for (size_t n = 16; n <= 17; n++) {
		begin(&m, true);
		rpc_add_array(&m.out, "runnerStateDirs");
		for (size_t i = 0; i < n; i++)
			rpc_put_str(&m.out, "/a");
		rpc_close(&m.out);
		if (n == LIMIT_FIXED_STATE_DIRS)
			spec_free(accepted(&m));
		else
			refused(&m, API_BAD_PARAMS, "runnerStateDirs");
	}
}

static void
limits_are_read_by_name_and_range(void **state)
{
	struct made m;
	struct spec *spec;

	(void)state;
	begin(&m, true);
	rpc_add_map(&m.out, "limits");
	rpc_add_u64(&m.out, "memoryBytes", 64 << 20);
	rpc_add_u64(&m.out, "cpus", 2);
	rpc_close(&m.out);
	spec = accepted(&m);
	assert_int_equal(spec->limits.memory_bytes, 64 << 20);
	assert_int_equal(spec->limits.cpu_milli, 2000);
	spec_free(spec);
	begin(&m, true);
	rpc_add_map(&m.out, "limits");
	rpc_add_u64(&m.out, "egressBytes", 1);
	rpc_close(&m.out);
	refused(&m, API_UNSUPPORTED, "limits");
	begin(&m, true);
	rpc_add_map(&m.out, "limits");
	rpc_add_u64(&m.out, "pids", 0);
	rpc_close(&m.out);
	refused(&m, API_BAD_PARAMS, "limits");
}

static void
an_environment_is_bounded(void **state)
{
	static char big[33000];
	struct made m;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	begin(&m, true);
	rpc_add_map(&m.out, "env");
	rpc_add_str(&m.out, "A", big);
	rpc_close(&m.out);
	refused(&m, API_BAD_PARAMS, "env");
	big[32768] = '\0';
	begin(&m, true);
	rpc_add_map(&m.out, "env");
	for (char name[] = "A"; name[0] < 'A' + 9; name[0]++)
		rpc_add_str(&m.out, name, big);
	rpc_close(&m.out);
	refused(&m, API_BAD_PARAMS, "env");
}

struct path_row {
	const char *raw;
	const char *clean; /* NULL: refused */
};
static const struct path_row path_rows[] = {
	{ "/", "/" },
	{ "/a", "/a" },
	{ "/a/", "/a" },
	{ "//a///b//", "/a/b" },
	{ "/a/./b/.", "/a/b" },
	{ "/.", "/" },
	{ "/a/..", NULL },
	{ "/../a", NULL },
	{ "a", NULL },
	{ "", NULL },
	{ "./a", NULL },
	{ "~/a", NULL },
	{ "/...", "/..." },
	{ "/a..b", "/a..b" },
};

static void
paths_become_clean_or_are_refused(void **state)
{
	static char longest[LIMIT_FIXED_PATH + 2];
	struct pool pool = { NULL };
	const char *clean;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(path_rows); i++) {
		clean = spec_path_clean(&pool, path_rows[i].raw,
		    strlen(path_rows[i].raw));
		if (path_rows[i].clean == NULL)
			assert_null(clean);
		else
			assert_string_equal(clean, path_rows[i].clean);
	}
	assert_null(spec_path_clean(&pool, "/a\0b", 4));
	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	assert_non_null(spec_path_clean(&pool, longest, LIMIT_FIXED_PATH));
	assert_null(spec_path_clean(&pool, longest, LIMIT_FIXED_PATH + 1));
	pool_done(&pool);
}

static void
labels_are_checked(void **state)
{
	char text[LIMIT_FIXED_LABEL + 1];

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_true(spec_label_ok(text, LIMIT_FIXED_LABEL));
	assert_false(spec_label_ok(text, LIMIT_FIXED_LABEL + 1));
	assert_false(spec_label_ok("", 0));
	assert_false(spec_label_ok("a\0b", 3));
	assert_false(spec_label_ok("\xc3\xa4", 2));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_of_the_specification),
		cmocka_unit_test(required_fields_are_required),
		cmocka_unit_test(unknown_fields_are_named),
		cmocka_unit_test(texts_are_checked),
		cmocka_unit_test(
		    parts_that_are_not_built_are_refused_unless_empty),
		cmocka_unit_test(deny_patterns_are_not_silently_literal),
		cmocka_unit_test(counts_are_limited),
		cmocka_unit_test(limits_are_read_by_name_and_range),
		cmocka_unit_test(an_environment_is_bounded),
		cmocka_unit_test(paths_become_clean_or_are_refused),
		cmocka_unit_test(labels_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
