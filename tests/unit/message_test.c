/*
 * Every message of the table: round trip at both ends of every range, and each
 * way of breaking the rules, made from the table itself.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "protocol/message.h"

/* Fills a message with the least or the greatest value of every field. */
static void
fill(const struct msg_info *info, union msg_any *msg, bool most)
{
	const struct msg_field *fields = info->fields();
	uint8_t *base = (uint8_t *)msg;

	memset(msg, 0, sizeof(*msg));
	for (size_t i = 0; i < info->nfields; i++) {
		const struct msg_field *f = &fields[i];
		uint64_t value = most ? f->max : f->min;
		uint16_t len = (uint16_t)value;

		if (f->kind == MSG_U64)
			memcpy(base + f->offset, &value, sizeof(value));
		else if (f->kind == MSG_STR)
			memset(base + f->offset, 'x', (size_t)value);
		else {
			memcpy(base + f->offset, &len, sizeof(len));
			memset(base + f->offset + sizeof(len), 0x80, len);
		}
	}
}

static enum proc
lowest(unsigned mask)
{
	return (enum proc)(mask & (0u - mask));
}

static ptrdiff_t
encode(size_t type, const union msg_any *msg, uint8_t *buf, size_t size)
{
	const struct msg_info *info = &msg_table[type];

	return msg_encode((enum msg_type)type, msg, lowest(info->from),
	    lowest(info->to), info->min_fds, buf, size);
}

static int
decode(size_t type, const uint8_t *buf, size_t len, union msg_any *ret)
{
	const struct msg_info *info = &msg_table[type];

	return msg_decode(buf, len, info->min_fds, lowest(info->from),
	    lowest(info->to), ret, NULL);
}

static void
every_message_makes_the_round_trip(void **state)
{
	union msg_any in, out;
	uint8_t buf[MSG_SIZE_MAX];

	(void)state;
	for (size_t type = 0; type < MSG_TYPE_COUNT; type++) {
		for (int most = 0; most <= 1; most++) {
			ptrdiff_t len;

			fill(&msg_table[type], &in, most != 0);
			len = encode(type, &in, buf, sizeof(buf));
			assert_true(len > 0);
			memset(&out, 0xff, sizeof(out));
			assert_int_equal(decode(type, buf, (size_t)len, &out),
			    type);
			assert_memory_equal(&in, &out, msg_table[type].size);
		}
	}
}

static void
every_cut_and_every_extra_byte_is_refused(void **state)
{
	union msg_any in, out;
	uint8_t buf[MSG_SIZE_MAX];

	(void)state;
	for (size_t type = 0; type < MSG_TYPE_COUNT; type++) {
		ptrdiff_t len;

		fill(&msg_table[type], &in, true);
		len = encode(type, &in, buf, sizeof(buf) - 1);
		for (size_t cut = 0; cut < (size_t)len; cut++)
			assert_int_equal(decode(type, buf, cut, &out), -EPROTO);
		buf[len] = 0;
		assert_int_equal(decode(type, buf, (size_t)len + 1, &out),
		    -EPROTO);
	}
}

static void
wrong_sender_is_refused(void **state)
{
	union msg_any in, out;
	uint8_t buf[MSG_SIZE_MAX];
	const char *why;

	(void)state;
	for (size_t type = 0; type < MSG_TYPE_COUNT; type++) {
		const struct msg_info *info = &msg_table[type];
		ptrdiff_t len;

		fill(info, &in, false);
		len = encode(type, &in, buf, sizeof(buf));
		for (unsigned p = 1; p <= PROC_BROKER; p <<= 1) {
			int from = msg_decode(buf, (size_t)len, info->min_fds,
			    (enum proc)p, lowest(info->to), &out, &why);
			int to = msg_decode(buf, (size_t)len, info->min_fds,
			    lowest(info->from), (enum proc)p, &out, NULL);

			assert_int_equal(from,
			    (info->from & p) != 0 ? (int)type : -EPROTO);
			assert_int_equal(to,
			    (info->to & p) != 0 ? (int)type : -EPROTO);
		}
	}
}

static void
wrong_number_of_descriptors_is_refused(void **state)
{
	union msg_any in, out;
	uint8_t buf[MSG_SIZE_MAX];

	(void)state;
	for (size_t type = 0; type < MSG_TYPE_COUNT; type++) {
		const struct msg_info *info = &msg_table[type];
		ptrdiff_t len;

		fill(info, &in, false);
		len = encode(type, &in, buf, sizeof(buf));
		for (size_t n = 0; n <= 8; n++) {
			bool fits = n >= info->min_fds && n <= info->max_fds;

			assert_int_equal(msg_decode(buf, (size_t)len, n,
					     lowest(info->from),
					     lowest(info->to), &out, NULL),
			    fits ? (int)type : -EPROTO);
		}
	}
}

/* One past each end of every range: the encoder refuses to write it. */
static void
out_of_range_is_refused_by_the_encoder(void **state)
{
	union msg_any msg;
	uint8_t buf[MSG_SIZE_MAX];

	(void)state;
	for (size_t type = 0; type < MSG_TYPE_COUNT; type++) {
		const struct msg_field *fields = msg_table[type].fields();

		for (size_t i = 0; i < msg_table[type].nfields; i++) {
			const struct msg_field *f = &fields[i];
			uint64_t value = f->max + 1;
			uint16_t len = (uint16_t)(f->max + 1);

			if (f->max == UINT64_MAX)
				continue;
			fill(&msg_table[type], &msg, false);
			if (f->kind == MSG_U64)
				memcpy((uint8_t *)&msg + f->offset, &value,
				    sizeof(value));
			else if (f->kind == MSG_BIN)
				memcpy((uint8_t *)&msg + f->offset, &len,
				    sizeof(len));
			else
				continue;
			assert_int_equal(encode(type, &msg, buf, sizeof(buf)),
			    -EINVAL);
		}
	}
}

/* And the decoder, for bytes that no encoder of ours would write. */
static void
out_of_range_is_refused_by_the_decoder(void **state)
{
	/* client_gone with client 0; exec_resize with 1001 rows. */
	static const uint8_t zero[] = { 0x92, 0xcd, 0x01, 0x05, 0x00 };
	static const uint8_t one[] = { 0x92, 0xcd, 0x01, 0x05, 0x01 };
	static const uint8_t rows[] = { 0x95, 0xcd, 0x05, 0x05, 1, 1, 0xcd,
		0x03, 0xe9, 1 };
	union msg_any out;

	(void)state;
	assert_int_equal(decode(MSG_client_gone, zero, sizeof(zero), &out),
	    -EPROTO);
	assert_int_equal(decode(MSG_client_gone, one, sizeof(one), &out),
	    MSG_client_gone);
	assert_int_equal(decode(MSG_exec_resize, rows, sizeof(rows), &out),
	    -EPROTO);
}

static void
codes_are_unique(void **state)
{
	(void)state;
	for (size_t i = 0; i < MSG_TYPE_COUNT; i++) {
		assert_true(msg_table[i].from != 0 && msg_table[i].to != 0);
		for (size_t k = i + 1; k < MSG_TYPE_COUNT; k++)
			assert_int_not_equal(msg_table[i].code,
			    msg_table[k].code);
	}
}

static void
a_long_text_is_cut(void **state)
{
	struct msg_init_failed msg;
	char text[2 * sizeof(msg.step)];

	(void)state;
	memset(&msg, 0xff, sizeof(msg));
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	MSG_SET_STR(msg.step, text);
	assert_int_equal(strlen(msg.step), sizeof(msg.step) - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_makes_the_round_trip),
		cmocka_unit_test(every_cut_and_every_extra_byte_is_refused),
		cmocka_unit_test(wrong_sender_is_refused),
		cmocka_unit_test(wrong_number_of_descriptors_is_refused),
		cmocka_unit_test(out_of_range_is_refused_by_the_encoder),
		cmocka_unit_test(out_of_range_is_refused_by_the_decoder),
		cmocka_unit_test(codes_are_unique),
		cmocka_unit_test(a_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
