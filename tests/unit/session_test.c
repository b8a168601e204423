/*
 * The moves between a session's states (SPEC K3), and the facts that outlive
 * stockade-control in the plan.
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
#include "supervisor/control/session.h"

static bool
expected(enum session_state from, enum session_state to)
{
	static const enum session_state moves[][2] = {
		{ SESSION_CREATED, SESSION_WARM },
		{ SESSION_WARM, SESSION_ACTIVE },
		{ SESSION_ACTIVE, SESSION_WARM },
		{ SESSION_WARM, SESSION_SUSPENDED },
		{ SESSION_ACTIVE, SESSION_SUSPENDED },
		{ SESSION_SUSPENDED, SESSION_WARM },
		{ SESSION_SUSPENDED, SESSION_ACTIVE },
		{ SESSION_CREATED, SESSION_ERROR },
		{ SESSION_WARM, SESSION_ERROR },
		{ SESSION_ACTIVE, SESSION_ERROR },
		{ SESSION_SUSPENDED, SESSION_ERROR },
		{ SESSION_CREATED, SESSION_DESTROYED },
		{ SESSION_WARM, SESSION_DESTROYED },
		{ SESSION_ACTIVE, SESSION_DESTROYED },
		{ SESSION_SUSPENDED, SESSION_DESTROYED },
		{ SESSION_ERROR, SESSION_DESTROYED },
	};

	for (size_t i = 0; i < ARRAY_LEN(moves); i++)
		if (moves[i][0] == from && moves[i][1] == to)
			return true;
	return false;
}

static void
every_other_move_is_refused(void **state)
{
	(void)state;
	for (int from = 0; from < SESSION_STATES; from++)
		for (int to = 0; to < SESSION_STATES; to++)
			assert_int_equal(
			    session_move_permitted((enum session_state)from,
				(enum session_state)to),
			    expected((enum session_state)from,
				(enum session_state)to));
	assert_false(session_move_permitted(SESSION_STATES, SESSION_WARM));
	assert_false(session_move_permitted(SESSION_WARM, SESSION_STATES));
}

static void
states_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < SESSION_STATES; i++)
		assert_int_equal(session_state_find(
				     session_state_name((enum session_state)i)),
		    i);
	assert_int_equal(session_state_find("unknown"), -1);
}

static const uint8_t digest[32] = { 1, 2, 3 };

static void
fill(struct session_facts *f)
{
	memset(f, 0, sizeof(*f));
	f->session_id = "s";
	f->mode = SPEC_PLAN;
	f->network = true;
	f->egress_digest = (struct wire_view){ digest, sizeof(digest) };
	f->user = "user";
	f->shell = "/bin/sh";
	f->uid = 1000;
	f->gid = 1000;
	f->ca_bundle = "";
	f->nenv = 1;
	f->env[0].name = "A";
	f->env[0].value = "1";
	f->workspace_id = "w";
	f->agent_id = f->space_id = f->conversation_id = "";
	f->run_id = "r";
	f->acting_user = f->adapter = "";
	f->gone_ms = 10000;
	f->created_ms = 7;
	f->scan_gaps = "out of time";
}

static void
facts_come_back(void **state)
{
	struct session_facts in, out;
	struct wire_out bytes;

	(void)state;
	fill(&in);
	wire_out_init(&bytes);
	session_facts_encode(&in, &bytes);
	assert_false(bytes.err);
	assert_int_equal(session_facts_decode(bytes.data, bytes.len, &out), 0);
	assert_string_equal(out.session_id, "s");
	assert_int_equal(out.mode, SPEC_PLAN);
	assert_int_equal(out.nenv, 1);
	assert_string_equal(out.env[0].value, "1");
	assert_string_equal(out.run_id, "r");
	assert_int_equal(out.created_ms, 7);
	assert_string_equal(out.scan_gaps, "out of time");
	for (size_t n = 0; n < bytes.len; n++)
		assert_int_not_equal(session_facts_decode(bytes.data, n, &out),
		    0);
	wire_out_done(&bytes);
}

static void
labels_are_not_in_the_policy(void **state)
{
	struct session_facts a, b;
	struct wire_out pa, pb;

	(void)state;
	fill(&a);
	fill(&b);
	b.run_id = "another";
	b.created_ms = 9;
	b.detach = true;
	b.scan_gaps = "";
	wire_out_init(&pa);
	wire_out_init(&pb);
	session_facts_encode_policy(&a, &pa);
	session_facts_encode_policy(&b, &pb);
	assert_int_equal(pa.len, pb.len);
	assert_memory_equal(pa.data, pb.data, pa.len);
	wire_out_done(&pb);
	b.network = false;
	wire_out_init(&pb);
	session_facts_encode_policy(&b, &pb);
	assert_memory_not_equal(pa.data, pb.data, pa.len);
	wire_out_done(&pa);
	wire_out_done(&pb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_other_move_is_refused),
		cmocka_unit_test(states_have_names),
		cmocka_unit_test(facts_come_back),
		cmocka_unit_test(labels_are_not_in_the_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
