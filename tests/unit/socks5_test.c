/*
 * SOCKS5 readers: every split of the bytes is read the same, every shape that
 * is not RFC 1928 is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "common/size.h"
#include "proxyd/socks5.h"

static void
greetings_are_read_at_any_split(void **state)
{
	static const uint8_t data[] = { 5, 3, 1, 2, 0, 99 };
	bool none = false;
	size_t len;

	(void)state;
	for (len = 0; len < 5; len++)
		assert_int_equal(socks5_read_greeting(data, len, &none), 0);
	assert_int_equal(socks5_read_greeting(data, 5, &none), 5);
	assert_true(none);
	assert_int_equal(socks5_read_greeting(data, 6, &none), 5);
}

static void
no_common_method_is_seen(void **state)
{
	static const uint8_t pass[] = { 5, 1, 2 }, empty[] = { 5, 0 };
	bool none = true;

	(void)state;
	assert_int_equal(socks5_read_greeting(pass, 3, &none), 3);
	assert_false(none);
	none = true;
	assert_int_equal(socks5_read_greeting(empty, 2, &none), 2);
	assert_false(none);
}

static void
other_versions_are_refused_at_the_first_byte(void **state)
{
	static const uint8_t versions[] = { 0, 4, 6, 'G', 0xff };
	struct socks5_request req;
	bool none;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(versions); i++) {
		assert_int_equal(socks5_read_greeting(&versions[i], 1, &none),
		    -EPROTO);
		assert_int_equal(socks5_read_request(&versions[i], 1, &req),
		    -EPROTO);
	}
}

static void
requests_are_read_at_any_split(void **state)
{
	static const struct {
		uint8_t data[32];
		size_t len;
		enum socks5_kind kind;
		size_t host_len;
	} rows[] = {
		{ { 5, 1, 0, 1, 1, 2, 3, 4, 1, 187 }, 10, SOCKS5_IPV4, 4 },
		{ { 5, 1, 0, 3, 3, 'a', '.', 'b', 1, 187 }, 10, SOCKS5_NAME,
		    3 },
		{ { 5, 1, 0, 3, 0, 1, 187 }, 7, SOCKS5_NAME, 0 },
		{ { 5, 1, 0, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
		      15, 16, 1, 187 },
		    22, SOCKS5_IPV6, 16 },
	};
	struct socks5_request req;
	size_t i, len;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		for (len = 0; len < rows[i].len; len++)
			assert_int_equal(socks5_read_request(rows[i].data, len,
					     &req),
			    0);
		assert_int_equal(socks5_read_request(rows[i].data,
				     sizeof(rows[i].data), &req),
		    rows[i].len);
		assert_int_equal(req.refuse, SOCKS5_OK);
		assert_int_equal(req.kind, rows[i].kind);
		assert_int_equal(req.host_len, rows[i].host_len);
		assert_int_equal(req.port, 443);
	}
}

static void
bind_and_udp_are_refused(void **state)
{
	uint8_t data[] = { 5, 2, 0, 1, 1, 2, 3, 4, 1, 187 };
	struct socks5_request req;

	(void)state;
	assert_int_equal(socks5_read_request(data, sizeof(data), &req), 10);
	assert_int_equal(req.refuse, SOCKS5_BAD_COMMAND);
	data[1] = 3;
	assert_int_equal(socks5_read_request(data, sizeof(data), &req), 10);
	assert_int_equal(req.refuse, SOCKS5_BAD_COMMAND);
	data[1] = 1;
	assert_int_equal(socks5_read_request(data, sizeof(data), &req), 10);
	assert_int_equal(req.refuse, SOCKS5_OK);
}

static void
unknown_address_types_and_reserved_bits_are_refused(void **state)
{
	uint8_t data[] = { 5, 1, 0, 2, 1, 2, 3, 4, 1, 187 };
	struct socks5_request req;

	(void)state;
	assert_int_equal(socks5_read_request(data, sizeof(data), &req), 4);
	assert_int_equal(req.refuse, SOCKS5_BAD_ADDRESS);
	data[3] = 1;
	data[2] = 1;
	assert_int_equal(socks5_read_request(data, sizeof(data), &req),
	    -EPROTO);
}

static void
replies_are_ten_bytes(void **state)
{
	static const uint8_t want[] = { 5, 2, 0, 1, 0, 0, 0, 0, 0, 0 };
	uint8_t got[SOCKS5_REPLY_SIZE];

	(void)state;
	socks5_write_reply(SOCKS5_NOT_ALLOWED, got);
	assert_memory_equal(got, want, sizeof(want));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greetings_are_read_at_any_split),
		cmocka_unit_test(no_common_method_is_seen),
		cmocka_unit_test(other_versions_are_refused_at_the_first_byte),
		cmocka_unit_test(requests_are_read_at_any_split),
		cmocka_unit_test(bind_and_udp_are_refused),
		cmocka_unit_test(
		    unknown_address_types_and_reserved_bits_are_refused),
		cmocka_unit_test(replies_are_ten_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
