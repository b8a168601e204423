/*
 * Violation records: merging, keeping, cleaning. The test is the stream that
 * events go to, and the clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/violations.h"

static uint64_t now_ms = 1000;
static size_t nevents;
static struct rpc_out written;

uint64_t
control_clock_ms(void)
{
	return now_ms;
}

uint64_t
control_time_ms(void)
{
	return 1000000 + now_ms;
}

const char *
events_source_session(const struct events_source *src)
{
	(void)src;
	return "s1";
}

uid_t
events_source_owner(const struct events_source *src)
{
	(void)src;
	return 1000;
}

struct rpc_out *
events_begin(struct events_source *src, enum rpc_event_type type,
    const char *exec_id)
{
	(void)src;
	assert_int_equal(type, RPC_EVENT_VIOLATION);
	assert_null(exec_id);
	rpc_begin_notify(&written, "event");
	return &written;
}

void
events_end(struct events_source *src)
{
	(void)src;
	assert_int_equal(rpc_end_message(&written), 0);
	nevents++;
}

/* The event that was written last. */
static void
last_event(struct rpc_message *ret)
{
	assert_int_equal(rpc_unpack(written.data, written.len, ret), 0);
}

static uint64_t
last_count(void)
{
	struct rpc_message m;
	uint64_t count;

	last_event(&m);
	count = rpc_u64(m.params, "count", 0);
	rpc_done(&m);
	return count;
}

static struct event_base *base;

static int
set_up(void **state)
{
	base = event_base_new();
	nevents = 0;
	*state = violations_new(base, NULL);
	return *state == NULL;
}

static int
tear_down(void **state)
{
	violations_free(*state);
	event_base_free(base);
	rpc_out_done(&written);
	return 0;
}

static void
record(struct violations *v, const char *target)
{
	const struct violation in = { .action = VIOLATION_NETWORK,
		.target = target,
		.port = 443,
		.reason = "host_not_allowed" };

	violations_record(v, &in);
}

static void
equal_ones_within_five_seconds_are_one_record(void **state)
{
	struct violations *v = *state;

	for (int i = 0; i < 10; i++)
		record(v, "example.com");
	assert_int_equal(nevents, 1);
	assert_int_equal(last_count(), 1);
	assert_int_equal(violations_total(v), 1);
	now_ms += VIOLATIONS_MERGE_MS;
	record(v, "example.org");
	/* the nine that were held back, then the new one */
	assert_int_equal(nevents, 3);
	assert_int_equal(violations_total(v), 2);
	record(v, "example.com");
	assert_int_equal(nevents, 4);
	assert_int_equal(violations_total(v), 3);
}

static void
a_flush_tells_what_was_held_back(void **state)
{
	struct violations *v = *state;

	record(v, "a.example");
	record(v, "a.example");
	record(v, "a.example");
	violations_flush(v);
	assert_int_equal(nevents, 2);
	assert_int_equal(last_count(), 2);
	violations_flush(v);
	assert_int_equal(nevents, 2);
}

static void
different_ports_are_different(void **state)
{
	struct violation in = { .action = VIOLATION_NETWORK,
		.target = "a",
		.port = 80 };

	violations_record(*state, &in);
	in.port = 81;
	violations_record(*state, &in);
	in.action = VIOLATION_DNS;
	violations_record(*state, &in);
	assert_int_equal(nevents, 3);
}

static void
the_merge_table_has_512_places(void **state)
{
	struct violations *v = *state;
	char name[32];

	record(v, "first");
	record(v, "first");
	for (int i = 0; i < VIOLATIONS_MERGE_MAX - 1; i++) {
		(void)snprintf(name, sizeof(name), "host%d", i);
		record(v, name);
	}
	assert_int_equal(nevents, VIOLATIONS_MERGE_MAX);
	/* one more pushes the first out, which tells its count */
	record(v, "last");
	assert_int_equal(nevents, VIOLATIONS_MERGE_MAX + 2);
}

static void
the_newest_thousand_are_kept(void **state)
{
	struct violations *v = *state;
	struct rpc_out out;
	struct rpc_message m;
	char name[32];

	for (int i = 0; i < VIOLATIONS_KEPT + 5; i++) {
		(void)snprintf(name, sizeof(name), "host%d", i);
		record(v, name);
	}
	assert_int_equal(violations_total(v), VIOLATIONS_KEPT);
	rpc_out_init(&out);
	rpc_begin_result(&out, 1);
	rpc_add_array(&out, "rows");
	assert_int_equal(violations_put_rows(v, 0, 3, &out), 3);
	assert_int_equal(rpc_end_message(&out), 0);
	assert_int_equal(rpc_unpack(out.data, out.len, &m), 0);
	assert_int_equal(rpc_count(m.result, "rows"), 3);
	(void)snprintf(name, sizeof(name), "host%d", VIOLATIONS_KEPT + 4);
	assert_string_equal(rpc_str(rpc_map_at(m.result, "rows", 2), "target"),
	    name);
	rpc_done(&m);
	rpc_out_done(&out);
}

static void
texts_are_cleaned_redacted_and_cut(void **state)
{
	static char longer[3 * VIOLATIONS_TEXT_MAX];
	struct violation in = { .action = VIOLATION_FILE_CREATE,
		.target = "/w/\x1b[2J\nx",
		.raw = longer,
		.rule = "ghp_0123456789abcdefghijABCDEFGHIJ012345" };
	struct rpc_message m;

	memset(longer, 'x', sizeof(longer) - 1);
	violations_record(*state, &in);
	last_event(&m);
	assert_string_equal(rpc_str(m.params, "target"), "/w/\\x1b[2J\\x0ax");
	assert_string_equal(rpc_str(m.params, "rule"), "[redacted]");
	assert_true(strlen(rpc_str(m.params, "raw")) <= VIOLATIONS_TEXT_MAX);
	assert_string_equal(rpc_str(m.params, "summary"),
	    "[sandbox] denied file-write-create on /w/\\x1b[2J\\x0ax");
	assert_string_equal(rpc_str(m.params, "action"), "file-write-create");
	rpc_done(&m);
}

static void
a_count_does_not_wrap(void **state)
{
	struct violation in = { .action = VIOLATION_DNS,
		.target = "a",
		.count = UINT64_MAX };

	violations_record(*state, &in);
	violations_record(*state, &in);
	violations_flush(*state);
	assert_int_equal(nevents, 1);
	assert_int_equal(last_count(), UINT64_MAX);
}

static void
one_without_a_target_is_no_fault(void **state)
{
	struct violation in = { .action = VIOLATION_EXEC };

	violations_record(*state, &in);
	assert_int_equal(nevents, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(equal_ones_within_five_seconds_are_one_record),
		TEST(a_flush_tells_what_was_held_back),
		TEST(different_ports_are_different),
		TEST(the_merge_table_has_512_places),
		TEST(the_newest_thousand_are_kept),
		TEST(texts_are_cleaned_redacted_and_cut),
		TEST(a_count_does_not_wrap),
		TEST(one_without_a_target_is_no_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
