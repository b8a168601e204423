/*
 * The tool's JSON: well-formed and free of control characters, whatever the
 * service or a run sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <msgpack.h>

#include "common/size.h"
#include "supervisor/ctl/json.h"

static char *text;
static size_t text_len;

static FILE *
open_text(struct json *j)
{
	FILE *f = open_memstream(&text, &text_len);

	assert_non_null(f);
	json_init(j, f);
	return f;
}

static void
expect(FILE *f, const char *want)
{
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text, want);
	free(text);
	text = NULL;
}

static void
objects_and_arrays_nest(void **state)
{
	struct json j;
	FILE *f = open_text(&j);

	(void)state;
	json_open_object(&j);
	json_add_str(&j, "a", "b");
	json_key(&j, "list");
	json_open_array(&j);
	json_uint(&j, UINT64_MAX);
	json_int(&j, INT64_MIN);
	json_open_array(&j);
	json_close(&j);
	json_open_object(&j);
	json_close(&j);
	json_null(&j);
	json_double(&j, 1.5);
	json_double(&j, (double)NAN);
	json_close(&j);
	json_add_bool(&j, "t", true);
	json_add_uint(&j, "n", 0);
	json_add_str(&j, "none", NULL);
	json_close(&j);
	assert_int_equal(json_end(&j), 0);
	json_str(&j, "second line");
	assert_int_equal(json_end(&j), 0);
	expect(f,
	    "{\"a\":\"b\",\"list\":[18446744073709551615,"
	    "-9223372036854775808,[],{},null,1.5,null],\"t\":true,\"n\":0,"
	    "\"none\":null}\n\"second line\"\n");
}

static void
text_cannot_act_on_a_terminal(void **state)
{
	static const struct {
		const char *in;
		size_t len;
		const char *want;
	} rows[] = {
		{ "a\"\\\b\f\n\r\t", 8, "\"a\\\"\\\\\\b\\f\\n\\r\\t\"\n" },
		{ "\033[2J", 4, "\"\\u001b[2J\"\n" },
		{ "\0x", 2, "\"\\u0000x\"\n" },
		{ "\x7f", 1, "\"\\u007f\"\n" },
		{ "\xc2\x9b"
		  "31m",
		    5, "\"\\u009b31m\"\n" },
		{ "\x9b", 1, "\"\\ufffd\"\n" },
		{ "\xff\xfe", 2, "\"\\ufffd\\ufffd\"\n" },
		{ "\xc0\xaf", 2, "\"\\ufffd\\ufffd\"\n" },
		{ "\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"\n" },
		{ "\xe2\x82", 2, "\"\\ufffd\\ufffd\"\n" },
		{ "\xe2\x82\xac", 3, "\"\xe2\x82\xac\"\n" },
		{ "\xf0\x9f\x98\x80", 4, "\"\xf0\x9f\x98\x80\"\n" },
		{ "\xf5\x80\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct json j;
		FILE *f = open_text(&j);

		json_strn(&j, rows[i].in, rows[i].len);
		assert_int_equal(json_end(&j), 0);
		expect(f, rows[i].want);
	}
}

static void
bytes_are_text_or_base64(void **state)
{
	static const struct {
		const char *in;
		size_t len;
		const char *want;
	} rows[] = {
		{ "plain", 5, "\"plain\"\n" },
		{ "", 0, "\"\"\n" },
		{ "\xff", 1, "{\"base64\":\"/w==\"}\n" },
		{ "\xff\xfe", 2, "{\"base64\":\"//4=\"}\n" },
		{ "\xff\xfe\xfd", 3, "{\"base64\":\"//79\"}\n" },
		{ "a\xe2\x82", 3, "{\"base64\":\"YeKC\"}\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct json j;
		FILE *f = open_text(&j);

		json_bin(&j, rows[i].in, rows[i].len);
		assert_int_equal(json_end(&j), 0);
		expect(f, rows[i].want);
	}
}

static msgpack_object
string(const char *s)
{
	msgpack_object o = { .type = MSGPACK_OBJECT_STR };

	o.via.str.ptr = s;
	o.via.str.size = (uint32_t)strlen(s);
	return o;
}

static void
a_message_is_written_as_it_is(void **state)
{
	msgpack_object bin = { .type = MSGPACK_OBJECT_BIN };
	msgpack_object neg = { .type = MSGPACK_OBJECT_NEGATIVE_INTEGER };
	msgpack_object map = { .type = MSGPACK_OBJECT_MAP };
	msgpack_object array = { .type = MSGPACK_OBJECT_ARRAY };
	msgpack_object_kv pairs[2];
	msgpack_object items[2];
	struct json j;
	FILE *f = open_text(&j);

	(void)state;
	bin.via.bin.ptr = "\xff";
	bin.via.bin.size = 1;
	neg.via.i64 = -5;
	items[0] = bin;
	items[1] = neg;
	array.via.array.ptr = items;
	array.via.array.size = 2;
	pairs[0].key = string("a\n");
	pairs[0].val = array;
	pairs[1].key = string("b");
	pairs[1].val = string("c");
	map.via.map.ptr = pairs;
	map.via.map.size = 2;
	json_object(&j, &map);
	assert_int_equal(json_end(&j), 0);
	json_object(&j, NULL);
	assert_int_equal(json_end(&j), 0);
	expect(f,
	    "{\"a\\n\":[{\"base64\":\"/w==\"},-5],\"b\":\"c\"}\n"
	    "null\n");
}

static void
what_json_cannot_say_is_an_error_but_well_formed(void **state)
{
	msgpack_object ext = { .type = MSGPACK_OBJECT_EXT };
	msgpack_object map = { .type = MSGPACK_OBJECT_MAP };
	msgpack_object deep[JSON_DEPTH_MAX + 8];
	msgpack_object_kv pair;
	struct json j;
	FILE *f = open_text(&j);

	(void)state;
	json_object(&j, &ext);
	assert_int_equal(json_end(&j), -EINVAL);
	pair.key = (msgpack_object){ .type = MSGPACK_OBJECT_NIL };
	pair.val = string("x");
	map.via.map.ptr = &pair;
	map.via.map.size = 1;
	json_object(&j, &map);
	assert_int_equal(json_end(&j), -EINVAL);
	expect(f, "null\n{}\n");

	f = open_text(&j);
	for (size_t i = 0; i < ARRAY_LEN(deep); i++) {
		deep[i].type = MSGPACK_OBJECT_ARRAY;
		deep[i].via.array.ptr = &deep[i + 1];
		deep[i].via.array.size = i + 1 < ARRAY_LEN(deep);
	}
	json_object(&j, &deep[0]);
	assert_int_equal(json_end(&j), -EINVAL);
	assert_int_equal(fclose(f), 0);
	assert_non_null(strstr(text, "[null]"));
	free(text);
}

static void
wrong_use_is_told_at_the_end(void **state)
{
	struct json j;
	FILE *f = open_text(&j);

	(void)state;
	json_open_object(&j);
	json_str(&j, "no key");
	json_close(&j);
	assert_int_equal(json_end(&j), -EINVAL);
	json_str(&j, "one");
	json_str(&j, "two");
	assert_int_equal(json_end(&j), -EINVAL);
	assert_int_equal(json_end(&j), -EINVAL);
	json_close(&j);
	json_null(&j);
	assert_int_equal(json_end(&j), -EINVAL);
	(void)fclose(f);
	free(text);
}

static void
a_full_disk_is_told(void **state)
{
	FILE *f = fopen("/dev/full", "w");
	struct json j;

	(void)state;
	if (f == NULL)
		skip();
	json_init(&j, f);
	json_str(&j, "x");
	assert_int_equal(json_end(&j), -ENOSPC);
	(void)fclose(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_and_arrays_nest),
		cmocka_unit_test(text_cannot_act_on_a_terminal),
		cmocka_unit_test(bytes_are_text_or_base64),
		cmocka_unit_test(a_message_is_written_as_it_is),
		cmocka_unit_test(
		    what_json_cannot_say_is_an_error_but_well_formed),
		cmocka_unit_test(wrong_use_is_told_at_the_end),
		cmocka_unit_test(a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
