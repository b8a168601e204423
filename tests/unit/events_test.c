/*
 * Event streams: numbers without gaps, replay, overrun, back-pressure, who
 * sees what. The test is the connection: it takes bytes as fast as it likes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "supervisor/control/client.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/violations.h"

/* A connection: what was sent waits until the test takes it. */
struct client {
	struct caller who;
	struct events_reader *reader;
	uint8_t *bytes;
	size_t len;
	size_t at;
};

uint64_t
control_clock_ms(void)
{
	return 1;
}

uint64_t
control_time_ms(void)
{
	return 1700000000000;
}

bool
caller_may_see(const struct caller *who, uid_t uid)
{
	return who == NULL || who->is_operator || who->uid == uid;
}

const struct caller *
client_caller(const struct client *c)
{
	return &c->who;
}

void
client_send(struct client *c, const void *data, size_t len)
{
	c->bytes = realloc(c->bytes, c->len + len);
	assert_non_null(c->bytes);
	memcpy(c->bytes + c->len, data, len);
	c->len += len;
}

size_t
client_pending(const struct client *c)
{
	return c->len - c->at;
}

void
client_set_reader(struct client *c, struct events_reader *reader)
{
	c->reader = reader;
}

struct events_reader *
client_reader(const struct client *c)
{
	return c->reader;
}

static struct control control;
static struct events *events;
static struct client clients[3]; /* of uid 1, of uid 2, operator */
static unsigned rooms;

static void
on_room(void *arg)
{
	(void)arg;
	rooms++;
}

static int
set_up(void **state)
{
	(void)state;
	memset(clients, 0, sizeof(clients));
	rooms = 0;
	control.base = event_base_new();
	for (unsigned i = 0; i < 3; i++)
		clients[i].who = (struct caller){ 11 + i, 1 + i, i == 2 };
	return events_new(&control, &events);
}

static int
tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		events_reader_free(clients[i].reader);
		free(clients[i].bytes);
	}
	events_free(events);
	event_base_free(control.base);
	return 0;
}

static void
turn(void)
{
	for (int i = 0; i < 5; i++)
		(void)event_base_loop(control.base, EVLOOP_NONBLOCK);
}

/* Takes one message; false when none waits. */
static bool
take(struct client *c, struct rpc_message *ret)
{
	struct rpc_scan scan = { 0 };
	size_t len;

	if (c->at == c->len)
		return false;
	assert_int_equal(rpc_scan(&scan, c->bytes + c->at, c->len - c->at, &len,
			     NULL),
	    1);
	assert_int_equal(rpc_unpack(c->bytes + c->at, len, ret), 0);
	c->at += len;
	return true;
}

/* The connection becomes free, as when its socket took everything. */
static void
drain(struct client *c)
{
	c->at = c->len;
	if (c->reader != NULL)
		events_reader_ready(c->reader);
	turn();
}

/* seq of the next event, 0 when there is none; its type in ret_type. */
static uint64_t
take_seq(struct client *c, int *ret_type)
{
	struct rpc_message m;
	uint64_t seq;

	if (!take(c, &m))
		return 0;
	seq = rpc_u64(m.params, "seq", 0);
	if (ret_type != NULL)
		*ret_type = rpc_event_find(rpc_str(m.params, "type"));
	rpc_done(&m);
	return seq;
}

static struct events_source *
source_new(const char *id, uid_t owner)
{
	struct events_source *src =
	    events_source_new(events, id, owner, false, on_room, NULL);

	assert_non_null(src);
	return src;
}

static int
subscribe(struct client *c, struct events_source *src, uint32_t types,
    uint64_t since, uint64_t *ret_next)
{
	uint64_t number, next = 0;
	int r = events_subscribe(events, c, src, types, since, &number, &next);

	if (ret_next != NULL)
		*ret_next = next;
	return r;
}

static void
emit_data(struct events_source *src, size_t len)
{
	static uint8_t data[EVENTS_CHUNK];

	rpc_add_bin(events_begin(src, RPC_EVENT_STDOUT, "e1"), "data", data,
	    len);
	events_end(src);
}

static void
numbers_start_at_one_and_have_no_gap(void **state)
{
	struct events_source *src = source_new("s", 1);
	struct rpc_message m;

	(void)state;
	assert_int_equal(subscribe(&clients[0], src, 0, 0, NULL), 0);
	events_emit(src, RPC_EVENT_STARTING, NULL);
	events_emit(src, RPC_EVENT_READY, NULL);
	emit_data(src, 3);
	turn();
	assert_true(take(&clients[0], &m));
	assert_string_equal(m.method, "event");
	assert_int_equal(rpc_u64(m.params, "seq", 0), 1);
	assert_int_equal(rpc_u64(m.params, "time", 0), 1700000000000);
	assert_string_equal(rpc_str(m.params, "sessionId"), "s");
	assert_string_equal(rpc_str(m.params, "type"), "starting");
	assert_null(rpc_str(m.params, "execId"));
	rpc_done(&m);
	assert_int_equal(take_seq(&clients[0], NULL), 2);
	assert_true(take(&clients[0], &m));
	assert_int_equal(rpc_u64(m.params, "seq", 0), 3);
	assert_string_equal(rpc_str(m.params, "execId"), "e1");
	rpc_done(&m);
	assert_false(take(&clients[0], &m));
}

static void
nothing_is_written_before_the_answer(void **state)
{
	struct events_source *src = source_new("s", 1);

	(void)state;
	events_emit(src, RPC_EVENT_STARTING, NULL);
	assert_int_equal(subscribe(&clients[0], src, 0, 1, NULL), 0);
	assert_int_equal(clients[0].len, 0);
	turn();
	assert_int_equal(take_seq(&clients[0], NULL), 1);
}

static void
since_replays_without_gap_or_repeat(void **state)
{
	struct events_source *src = source_new("s", 1);
	uint64_t next;

	(void)state;
	for (int i = 0; i < 10; i++)
		events_emit(src, RPC_EVENT_NOTICE, NULL);
	assert_int_equal(subscribe(&clients[0], src, 0, 4, &next), 0);
	assert_int_equal(next, 4);
	events_emit(src, RPC_EVENT_NOTICE, NULL);
	turn();
	for (uint64_t seq = 4; seq <= 11; seq++)
		assert_int_equal(take_seq(&clients[0], NULL), seq);
	assert_int_equal(take_seq(&clients[0], NULL), 0);
	assert_int_equal(subscribe(&clients[1], src, 0, 12, &next), 0);
	assert_int_equal(subscribe(&clients[1], src, 0, 13, &next), -ESTALE);
}

static void
what_is_no_longer_kept_is_gone(void **state)
{
	struct events_source *src = source_new("s", 1);

	(void)state;
	for (int i = 0; i < EVENTS_REPLAY + 3; i++)
		events_emit(src, RPC_EVENT_NOTICE, NULL);
	assert_int_equal(subscribe(&clients[0], src, 0, 3, NULL), -ESTALE);
	assert_int_equal(subscribe(&clients[0], src, 0, 4, NULL), 0);
}

static void
a_restored_stream_answers_gone(void **state)
{
	struct events_source *src =
	    events_source_new(events, "s", 1, true, NULL, NULL);
	uint64_t next;

	(void)state;
	assert_non_null(src);
	assert_int_equal(subscribe(&clients[0], src, 0, 5, NULL), -ESTALE);
	assert_int_equal(subscribe(&clients[0], src, 0, 0, &next), 0);
	assert_true(next > 1 && next < UINT64_C(1) << 53);
	assert_int_equal(subscribe(&clients[0], src, 0, next, NULL), 0);
}

static void
a_client_that_takes_nothing_gets_one_overrun(void **state)
{
	struct events_source *src = source_new("s", 1);
	struct rpc_message m;
	uint64_t seq, last = 0;
	unsigned overruns = 0;

	(void)state;
	assert_int_equal(subscribe(&clients[0], src, 0, 0, NULL), 0);
	for (int i = 0; i < 200; i++) {
		emit_data(src, EVENTS_CHUNK);
		turn();
	}
	/* what was copied is bounded, whatever was emitted */
	assert_true(
	    client_pending(&clients[0]) < CLIENT_OUT_HIGH + 2 * EVENTS_CHUNK);
	for (;;) {
		if (!take(&clients[0], &m)) {
			drain(&clients[0]);
			if (!take(&clients[0], &m))
				break;
		}
		seq = rpc_u64(m.params, "seq", 0);
		if (strcmp(rpc_str(m.params, "type"), "overrun") == 0) {
			overruns++;
			assert_int_equal(rpc_u64(m.params, "first", 0),
			    last + 1);
			assert_int_equal(rpc_u64(m.params, "last", 0), seq);
		} else {
			assert_int_equal(seq, last + 1);
		}
		last = seq;
		rpc_done(&m);
		if (client_pending(&clients[0]) == 0)
			drain(&clients[0]);
	}
	assert_int_equal(last, 200);
	assert_int_equal(overruns, 1);
}

static void
the_backlog_is_the_subscribers_own(void **state)
{
	struct events_source *src = source_new("s", 1);

	(void)state;
	assert_int_equal(events_backlog(src, 11), 0);
	assert_int_equal(subscribe(&clients[0], src, 0, 0, NULL), 0);
	for (int i = 0; i < 10; i++) {
		emit_data(src, EVENTS_CHUNK);
		turn();
	}
	assert_true(events_backlog(src, 11) > 4 * EVENTS_CHUNK);
	assert_int_equal(events_backlog(src, 12), 0);
	rooms = 0;
	drain(&clients[0]);
	drain(&clients[0]);
	assert_int_equal(events_backlog(src, 11), 0);
	assert_true(rooms > 0);
}

static void
an_end_of_subscription_makes_room(void **state)
{
	struct events_source *src = source_new("s", 1);

	(void)state;
	assert_int_equal(subscribe(&clients[0], src, 0, 0, NULL), 0);
	for (int i = 0; i < 10; i++)
		emit_data(src, EVENTS_CHUNK);
	turn();
	assert_true(events_backlog(src, 11) > 0);
	rooms = 0;
	assert_int_equal(events_unsubscribe(&clients[0], 1), 0);
	assert_int_equal(events_unsubscribe(&clients[0], 1), -ENOENT);
	turn();
	assert_true(rooms > 0);
	assert_int_equal(events_backlog(src, 11), 0);
}

static void
only_the_types_asked_for_are_sent(void **state)
{
	struct events_source *src = source_new("s", 1);
	int type;

	(void)state;
	assert_int_equal(subscribe(&clients[0], src, 1u << RPC_EVENT_EXIT, 0,
			     NULL),
	    0);
	emit_data(src, 5);
	events_emit(src, RPC_EVENT_EXIT, "e1");
	turn();
	assert_int_equal(take_seq(&clients[0], &type), 2);
	assert_int_equal(type, RPC_EVENT_EXIT);
	assert_int_equal(take_seq(&clients[0], NULL), 0);
}

static void
subscriptions_that_overlap_send_once_and_in_order(void **state)
{
	struct events_source *src = source_new("s", 1);
	struct client *c = &clients[0];

	(void)state;
	assert_int_equal(subscribe(c, NULL, 0, 0, NULL), 0);
	assert_int_equal(subscribe(c, src, 1u << RPC_EVENT_EXIT, 0, NULL), 0);
	assert_int_equal(subscribe(c, src, 0, 0, NULL), 0);
	for (int i = 0; i < 200; i++)
		emit_data(src, 10);
	events_emit(src, RPC_EVENT_EXIT, "e1");
	turn();
	for (uint64_t seq = 1; seq <= 201; seq++)
		assert_int_equal(take_seq(c, NULL), seq);
	assert_int_equal(take_seq(c, NULL), 0);
	/* one of them ends, the others go on */
	assert_int_equal(events_unsubscribe(c, 1), 0);
	assert_int_equal(events_unsubscribe(c, 3), 0);
	emit_data(src, 10);
	events_emit(src, RPC_EVENT_EXIT, "e2");
	turn();
	assert_int_equal(take_seq(c, NULL), 203);
	assert_int_equal(take_seq(c, NULL), 0);
}

static void
a_replay_beside_a_live_subscription_is_in_order(void **state)
{
	struct events_source *src = source_new("s", 1);
	struct client *c = &clients[0];
	uint64_t next;

	(void)state;
	assert_int_equal(subscribe(c, src, 1u << RPC_EVENT_EXIT, 0, NULL), 0);
	emit_data(src, 10);
	events_emit(src, RPC_EVENT_EXIT, "e1");
	emit_data(src, 10);
	turn();
	assert_int_equal(take_seq(c, NULL), 2);
	assert_int_equal(subscribe(c, src, 1u << RPC_EVENT_STDOUT, 1, &next),
	    0);
	assert_int_equal(next, 1);
	events_emit(src, RPC_EVENT_EXIT, "e2");
	emit_data(src, 10);
	turn();
	/* 2 was sent to the first one and is not asked for by the second */
	assert_int_equal(take_seq(c, NULL), 1);
	assert_int_equal(take_seq(c, NULL), 3);
	assert_int_equal(take_seq(c, NULL), 4);
	assert_int_equal(take_seq(c, NULL), 5);
	assert_int_equal(take_seq(c, NULL), 0);
}

static void
all_means_ones_own(void **state)
{
	struct events_source *first = source_new("a", 1), *second;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(subscribe(&clients[i], NULL, 0, 0, NULL), 0);
	second = source_new("b", 2);
	events_emit(first, RPC_EVENT_STARTING, NULL);
	events_emit(second, RPC_EVENT_STARTING, NULL);
	turn();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(take_seq(&clients[i], NULL), 1);
		assert_int_equal(take_seq(&clients[i], NULL), i == 2 ? 1 : 0);
	}
}

static void
a_closed_stream_is_read_to_its_end(void **state)
{
	struct events_source *src = source_new("s", 1);

	(void)state;
	assert_int_equal(subscribe(&clients[0], src, 0, 0, NULL), 0);
	for (int i = 0; i < 12; i++)
		emit_data(src, EVENTS_CHUNK);
	events_emit(src, RPC_EVENT_STATE, NULL);
	turn();
	events_source_close(src);
	for (uint64_t seq = 1; seq <= 13; seq++) {
		uint64_t got = take_seq(&clients[0], NULL);

		if (got == 0) {
			drain(&clients[0]);
			got = take_seq(&clients[0], NULL);
		}
		assert_int_equal(got, seq);
	}
}

static void
ended_sessions_do_not_pile_up_for_who_does_not_read(void **state)
{
	size_t most = 0;

	(void)state;
	assert_int_equal(subscribe(&clients[0], NULL, 0, 0, NULL), 0);
	for (int n = 0; n < 40; n++) {
		struct events_source *src = source_new("s", 1);

		for (int i = 0; i < 16; i++)
			emit_data(src, EVENTS_CHUNK);
		turn();
		events_source_close(src);
		if (client_pending(&clients[0]) > most)
			most = client_pending(&clients[0]);
	}
	/* overruns only, once EVENTS_QUEUE is full */
	assert_true(most < CLIENT_OUT_HIGH + 2 * EVENTS_CHUNK + 40 * 128);
}

static void
subscriptions_are_counted(void **state)
{
	struct events_source *src = source_new("s", 1);

	(void)state;
	for (int i = 0; i < EVENTS_SUBSCRIPTIONS_MAX; i++)
		assert_int_equal(subscribe(&clients[0], src, 0, 0, NULL), 0);
	assert_int_equal(subscribe(&clients[0], src, 0, 0, NULL), -ENOSPC);
}

static void
count_one(void *arg, struct events_source *src)
{
	(void)src;
	++*(int *)arg;
}

static void
each_shows_what_may_be_seen(void **state)
{
	int n = 0;

	(void)state;
	(void)source_new("a", 1);
	(void)source_new("b", 2);
	events_each(events, &clients[0].who, count_one, &n);
	assert_int_equal(n, 1);
	events_each(events, &clients[2].who, count_one, &n);
	assert_int_equal(n, 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers_start_at_one_and_have_no_gap),
		TEST(nothing_is_written_before_the_answer),
		TEST(since_replays_without_gap_or_repeat),
		TEST(what_is_no_longer_kept_is_gone),
		TEST(a_restored_stream_answers_gone),
		TEST(a_client_that_takes_nothing_gets_one_overrun),
		TEST(the_backlog_is_the_subscribers_own),
		TEST(an_end_of_subscription_makes_room),
		TEST(only_the_types_asked_for_are_sent),
		TEST(subscriptions_that_overlap_send_once_and_in_order),
		TEST(a_replay_beside_a_live_subscription_is_in_order),
		TEST(all_means_ones_own),
		TEST(a_closed_stream_is_read_to_its_end),
		TEST(ended_sessions_do_not_pile_up_for_who_does_not_read),
		TEST(subscriptions_are_counted),
		TEST(each_shows_what_may_be_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
