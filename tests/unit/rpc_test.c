/* MessagePack-RPC: what the scan refuses, what is unpacked, what is checked. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "protocol/rpc.h"

struct bytes {
	const char *data;
	size_t len;
};
#define B(text) \
	{ \
		(text), sizeof(text) - 1 \
	}

static int
scan(const void *data, size_t len, size_t *ret_len)
{
	struct rpc_scan s = { 0 };

	return rpc_scan(&s, data, len, ret_len, NULL);
}

static void
hostile_values_are_refused(void **state)
{
	static const struct bytes rows[] = {
		B("\xc1"), B("\xd4\x01\x00"), /* fixext 1 */
		B("\xc7\x00\x01"), /* ext 8 */
		B("\xc9\x00\x00\x00\x01\x01x"), B("\xd8\x01"),
		B("\xdd\x07\xff\xff\xff"), /* claims 134 million */
		B("\xdf\x07\xff\xff\xff"),
		B("\xdb\x7f\xff\xff\xff"), /* 2 GiB string */
		B("\xc6\x00\x20\x00\x00"), /* 2 MiB binary */
		B("\x81\x01\x02"), /* key is no string */
		B("\x81\xc0\x02"),
		B("\x82\xa1"
		  "a"
		  "\x01\xa1"
		  "a"
		  "\x02"), /* twice */
		B("\x82\xa1"
		  "a"
		  "\x01\xd9\x01"
		  "a"
		  "\x02"), /* other form */
		B("\x91\x82\xa1"
		  "a"
		  "\x81\xa1"
		  "b\x01\xa1"
		  "a"
		  "\x02"),
		B("\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91"
		  "\x91\x91\x91"), /* 17 deep */
	};
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(scan(rows[i].data, rows[i].len, &len),
		    -EPROTO);
}

static void
whole_values_are_passed(void **state)
{
	static const struct bytes rows[] = {
		B("\xc0"),
		B("\x7f"),
		B("\xe0"),
		B("\x90"),
		B("\x80"),
		B("\x94\x00\x01\xa4ping\x91\x80"),
		B("\x82\xa1"
		  "a\x81\xa1"
		  "a\x01\xa1"
		  "b\x81\xa1"
		  "a\x02"),
		B("\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91"
		  "\x91\x90"), /* 16 deep */
		B("\xcb\x00\x00\x00\x00\x00\x00\x00\x00"),
		B("\xc4\x03\x00\xff\x00"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t len = 0;

		assert_int_equal(scan(rows[i].data, rows[i].len, &len), 1);
		assert_int_equal(len, rows[i].len);
		for (size_t cut = 0; cut < rows[i].len; cut++)
			assert_int_equal(scan(rows[i].data, cut, &len), 0);
	}
}

static void
bytes_that_come_one_by_one_are_scanned_once(void **state)
{
	static const uint8_t data[] = "\x94\x00\x01\xa4ping\x91\x81\xa1"
				      "a"
				      "\x93\x01\x02\xa3xyz";
	struct rpc_scan s = { 0 };
	size_t len = 0, before = 0;

	(void)state;
	for (size_t n = 0; n < sizeof(data) - 1; n++) {
		assert_int_equal(rpc_scan(&s, data, n, &len, NULL), 0);
		assert_true(s.at >= before);
		before = s.at;
	}
	assert_int_equal(rpc_scan(&s, data, sizeof(data) - 1, &len, NULL), 1);
	assert_int_equal(len, sizeof(data) - 1);
}

static void
what_follows_a_value_is_left(void **state)
{
	size_t len = 0;

	(void)state;
	assert_int_equal(scan("\x91\x01\xc1", 3, &len), 1);
	assert_int_equal(len, 2);
}

/* An array of n arrays is n + 1 values. */
static int
scan_many(uint32_t n)
{
	size_t size = 5 + (size_t)n, len;
	uint8_t *p = malloc(size);
	int r;

	assert_non_null(p);
	memset(p, 0x90, size);
	p[0] = 0xdd;
	for (int i = 0; i < 4; i++)
		p[1 + i] = (uint8_t)(n >> (24 - 8 * i));
	r = scan(p, size, &len);
	free(p);
	return r;
}

static void
values_and_keys_are_counted(void **state)
{
	char map[3 + 4 * 1100];
	size_t len;

	(void)state;
	assert_int_equal(scan_many(RPC_ITEMS_MAX - 1), 1);
	assert_int_equal(scan_many(RPC_ITEMS_MAX), -EPROTO);
	for (unsigned n = RPC_KEYS_MAX; n <= RPC_KEYS_MAX + 1; n++) {
		char *p = map;

		*p++ = (char)0xde;
		*p++ = (char)(n >> 8);
		*p++ = (char)n;
		for (unsigned i = 0; i < n; i++) {
			*p++ = (char)0xa2;
			*p++ = (char)(i >> 8);
			*p++ = (char)i;
			*p++ = 0;
		}
		assert_int_equal(scan(map, (size_t)(p - map), &len),
		    n == RPC_KEYS_MAX ? 1 : -EPROTO);
	}
}

static void
a_message_is_at_most_one_mebibyte(void **state)
{
	uint8_t *p = calloc(1, RPC_MSG_MAX + 1);
	size_t len;

	(void)state;
	assert_non_null(p);
	p[0] = 0xc6;
	p[1] = 0;
	p[2] = 0x0f;
	p[3] = 0xff;
	p[4] = 0xfb; /* 0xffffb + 5 = 2^20 */
	assert_int_equal(scan(p, RPC_MSG_MAX, &len), 1);
	assert_int_equal(len, RPC_MSG_MAX);
	p[4] = 0xfc;
	assert_int_equal(scan(p, 5, &len), -EPROTO);
	free(p);
}

/* The twin: without the scan, the unpacker takes what the scan refuses. */
static void
the_unpacker_alone_takes_them(void **state)
{
	static const struct bytes rows[] = {
		B("\x82\xa1"
		  "a"
		  "\x01\xa1"
		  "a"
		  "\x02"),
		B("\x81\x01\x02"),
		B("\xd4\x01\x00"),
		B("\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91"
		  "\x91\x91\x91\x90"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		msgpack_unpacked u;
		size_t off = 0;

		msgpack_unpacked_init(&u);
		assert_int_equal(msgpack_unpack_next(&u, rows[i].data,
				     rows[i].len, &off),
		    MSGPACK_UNPACK_SUCCESS);
		msgpack_unpacked_destroy(&u);
	}
}

static void
only_three_forms_are_messages(void **state)
{
	static const struct bytes bad[] = {
		B("\xc0"),
		B("\x90"),
		B("\x91\x00"),
		B("\x80"),
		B("\x94\x03\x01\xa4ping\x91\x80"),
		B("\x94\x00\xff\xa4ping\x91\x80"), /* negative id */
		B("\x94\x00\xcf\x00\x00\x00\x01\x00\x00\x00\x00\xa4ping\x91"
		  "\x80"), /* 33-bit id */
		B("\x94\x00\x01\x01\x91\x80"), /* method is a number */
		B("\x94\x00\x01\xa4pi\x00g\x91\x80"),
		B("\x94\x00\x01\xa4ping\x90"), /* no map */
		B("\x94\x00\x01\xa4ping\x92\x80\x80"),
		B("\x94\x00\x01\xa4ping\x91\x90"),
		B("\x94\x00\x01\xa4ping\x80"),
		B("\x93\x00\x01\xa4ping"),
		B("\x94\x01\x01\xc0\xc0"),
		B("\x94\x01\x01\x80\x80"),
		B("\x93\x02\xa1"
		  "e\xc0"),
	};
	struct rpc_message msg;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(rpc_unpack((const uint8_t *)bad[i].data,
				     bad[i].len, &msg),
		    -EPROTO);
}

static void
strings_are_terminated(void **state)
{
	static const char data[] = "\x94\x00\x07\xa3get\x91\x83\xa1"
				   "a\xa2xy"
				   "\xa1"
				   "b\x92\xa1p\xa1q\xa1"
				   "c\x81\xa1k\xa1v";
	struct rpc_message m;
	const char *key, *value;

	(void)state;
	assert_int_equal(rpc_unpack((const uint8_t *)data, sizeof(data) - 1,
			     &m),
	    0);
	assert_int_equal(m.type, RPC_REQUEST);
	assert_int_equal(m.id, 7);
	assert_string_equal(m.method, "get");
	assert_string_equal(rpc_str(m.params, "a"), "xy");
	assert_int_equal(rpc_count(m.params, "b"), 2);
	assert_string_equal(rpc_str_at(m.params, "b", 0), "p");
	assert_string_equal(rpc_str_at(m.params, "b", 1), "q");
	assert_null(rpc_str_at(m.params, "b", 2));
	assert_true(rpc_pair_at(m.params, "c", 0, &key, &value));
	assert_string_equal(key, "k");
	assert_string_equal(value, "v");
	rpc_done(&m);
	rpc_done(&m);
}

static const struct rpc_param params[] = {
	{ "label", RPC_LABEL, true, 1, 128 },
	{ "n", RPC_UINT, false, 1, 10 },
	{ "flag", RPC_BOOL, false, 0, 0 },
	{ "text", RPC_STR, false, 1, 4 },
	{ "list", RPC_STRS, false, 1, 2 },
	{ "dict", RPC_DICT, false, 0, 2 },
	{ "bin", RPC_BIN, false, 0, 4 },
	{ "map", RPC_MAP, false, 0, 1 },
	{ "maps", RPC_MAPS, false, 0, 2 },
	{ "num", RPC_NUM, false, 1, 10 },
};

/* The map is given without its request around it. */
static void
check_field(const struct bytes *map, const char *field)
{
	char data[512] = "\x94\x00\x01\xa1m\x91", got[RPC_FIELD_MAX] = "";
	struct rpc_message m;
	const char *why = NULL;
	int r;

	memcpy(data + 6, map->data, map->len);
	assert_int_equal(rpc_unpack((const uint8_t *)data, 6 + map->len, &m),
	    0);
	r = rpc_check(m.params, params, ARRAY_LEN(params), got, &why);
	rpc_done(&m);
	if (field == NULL) {
		assert_int_equal(r, 0);
		return;
	}
	assert_int_equal(r, -EINVAL);
	assert_string_equal(got, field);
	assert_non_null(why);
}

#define L "\xa5label\xa1x"

static void
parameters_are_checked_by_their_rows(void **state)
{
	static const struct {
		struct bytes map;
		const char *field; /* NULL: it is fine */
	} rows[] = {
		{ B("\x81" L), NULL }, { B("\x80"), "label" },
		{ B("\x81\xa5label\xc0"), "label" },
		{ B("\x81\xa5label\xa0"), "label" },
		{ B("\x81\xa5label\xa1 "), "label" },
		{ B("\x81\xa5label\xa2"
		    "a\x00"),
		    "label" },
		{ B("\x81\xa5label\xc4\x01x"), "label" },
		{ B("\x82" L "\xa4more\x01"), "more" },
		{ B("\x82" L "\xa4more\xc0"), "more" },
		{ B("\x82" L "\xa2\x1b]\x01"), "?]" },
		{ B("\x82" L "\xa1n\x01"), NULL },
		{ B("\x82" L "\xa1n\xc0"), NULL },
		{ B("\x82" L "\xa1n\x00"), "n" },
		{ B("\x82" L "\xa1n\x0b"), "n" },
		{ B("\x82" L "\xa1n\xff"), "n" },
		{ B("\x82" L "\xa1n\xca\x3f\x80\x00\x00"), "n" },
		{ B("\x82" L "\xa4"
		    "flag\xc2"),
		    NULL },
		{ B("\x82" L "\xa4"
		    "flag\x01"),
		    "flag" },
		{ B("\x82" L "\xa4text\xa4"
		    "abcd"),
		    NULL },
		{ B("\x82" L "\xa4text\xa5"
		    "abcde"),
		    "text" },
		{ B("\x82" L "\xa4text\xa3"
		    "a\x00"
		    "b"),
		    "text" },
		{ B("\x82" L "\xa4list\x91\xa0"), NULL },
		{ B("\x82" L "\xa4list\x90"), "list" },
		{ B("\x82" L "\xa4list\x91\x01"), "list" },
		{ B("\x82" L "\xa4list\x91\xa1\x00"), "list" },
		{ B("\x82" L "\xa4list\x93\xa0\xa0\xa0"), "list" },
		{ B("\x82" L "\xa4"
		    "dict\x81\xa1k\xa1v"),
		    NULL },
		{ B("\x82" L "\xa4"
		    "dict\x81\xa1k\x01"),
		    "dict" },
		{ B("\x82" L "\xa4"
		    "dict\x81\xa1\x00\xa1v"),
		    "dict" },
		{ B("\x82" L "\xa3"
		    "bin\xc4\x02\x00\x00"),
		    NULL },
		{ B("\x82" L "\xa3"
		    "bin\xa2xx"),
		    "bin" },
		{ B("\x82" L "\xa3"
		    "bin\xc4\x05xxxxx"),
		    "bin" },
		{ B("\x82" L "\xa3map\x81\xa1k\x01"), NULL },
		{ B("\x82" L "\xa3map\x90"), "map" },
		{ B("\x82" L "\xa4maps\x92\x80\x80"), NULL },
		{ B("\x82" L "\xa4maps\x91\x01"), "maps" },
		{ B("\x82" L "\xa3num\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"),
		    NULL }, /* 1.5 */
		{ B("\x82" L "\xa3num\x02"), NULL },
		{ B("\x82" L "\xa3num\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"),
		    "num" }, /* NaN */
		{ B("\x82" L "\xa3num\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"),
		    "num" }, /* infinite */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_field(&rows[i].map, rows[i].field);
}

static void
what_is_written_reads_back(void **state)
{
	struct rpc_out out;
	struct rpc_message m;
	size_t len = 0;

	(void)state;
	rpc_out_init(&out);
	rpc_begin_notify(&out, "event");
	rpc_add_u64(&out, "seq", UINT64_MAX);
	rpc_add_text(&out, "absent", "");
	rpc_add_array(&out, "list");
	rpc_put_str(&out, "a");
	rpc_open_map(&out);
	rpc_add_bool(&out, "b", true);
	rpc_close(&out);
	rpc_close(&out);
	rpc_add_bin(&out, "data", "\0\1", 2);
	assert_int_equal(rpc_end_message(&out), 0);
	assert_int_equal(scan(out.data, out.len, &len), 1);
	assert_int_equal(len, out.len);
	assert_int_equal(rpc_unpack(out.data, out.len, &m), 0);
	assert_int_equal(m.type, RPC_NOTIFY);
	assert_int_equal(rpc_u64(m.params, "seq", 0), UINT64_MAX);
	assert_null(rpc_find(m.params, "absent"));
	assert_int_equal(rpc_count(m.params, "list"), 2);
	assert_true(rpc_bool(rpc_map_at(m.params, "list", 1), "b", false));
	assert_int_equal(rpc_bin(m.params, "data").len, 2);
	rpc_done(&m);
	rpc_begin_error(&out, 9);
	rpc_add_u64(&out, "code", 2);
	assert_int_equal(rpc_end_message(&out), 0);
	assert_int_equal(rpc_unpack(out.data, out.len, &m), 0);
	assert_int_equal(m.type, RPC_ANSWER);
	assert_null(m.result);
	assert_int_equal(rpc_u64(m.error, "code", 0), 2);
	rpc_done(&m);
	rpc_out_done(&out);
}

static void
an_answer_that_is_too_long_is_no_answer(void **state)
{
	struct rpc_out out;
	static char big[RPC_STR_MAX];

	(void)state;
	rpc_out_init(&out);
	rpc_begin_result(&out, 1);
	rpc_add_array(&out, "rows");
	for (int i = 0; i < 5; i++)
		rpc_put_strn(&out, big, sizeof(big));
	assert_int_equal(rpc_end_message(&out), -EMSGSIZE);
	assert_int_equal(out.len, 0);
	rpc_begin_error(&out, 1);
	assert_int_equal(rpc_end_message(&out), 0);
	rpc_out_done(&out);
}

static void
event_names_are_found(void **state)
{
	(void)state;
	assert_string_equal(rpc_event_name(RPC_EVENT_STDOUT), "stdout");
	assert_string_equal(rpc_event_name(RPC_EVENT_COUNT), "unknown");
	assert_int_equal(rpc_event_find("violation"), RPC_EVENT_VIOLATION);
	assert_int_equal(rpc_event_find("nothing"), -1);
	/* masks of types are 32 bits wide */
	assert_true(RPC_EVENT_COUNT < 32);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_values_are_refused),
		cmocka_unit_test(whole_values_are_passed),
		cmocka_unit_test(bytes_that_come_one_by_one_are_scanned_once),
		cmocka_unit_test(what_follows_a_value_is_left),
		cmocka_unit_test(values_and_keys_are_counted),
		cmocka_unit_test(a_message_is_at_most_one_mebibyte),
		cmocka_unit_test(the_unpacker_alone_takes_them),
		cmocka_unit_test(only_three_forms_are_messages),
		cmocka_unit_test(strings_are_terminated),
		cmocka_unit_test(parameters_are_checked_by_their_rows),
		cmocka_unit_test(what_is_written_reads_back),
		cmocka_unit_test(an_answer_that_is_too_long_is_no_answer),
		cmocka_unit_test(event_names_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
