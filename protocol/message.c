/*
 * The tables made from messages.def and the decoder over them. Runs in every
 * process, root ones included: it reads bytes that another process, possibly
 * taken over, has written. No allocation, no I/O; wire.h does the bounds.
 */
#include "protocol/message.h"

#include <errno.h>
#include <string.h>

#include "common/size.h"
#include "protocol/wire.h"

/* How many fields each message has. */
enum {
#define MSG_BEGIN(n, c, from, to, lo, hi) NFIELDS_##n = 0
#define FIELD_U64(f, min, max) +1
#define FIELD_STR(f, min, max) +1
#define FIELD_BIN(f, min, max) +1
#define MSG_END(n) ,
#include "protocol/messages.def"
#include "protocol/message_undef.h"
	NFIELDS_END_
};

/* clang-format off */
/* One function a message, so that offsetof() can name its struct; the array
 * ends with an entry of its own, since C has no empty arrays. */
#define MSG_BEGIN(n, c, from, to, lo, hi) \
	static const struct msg_field *fields_##n(void) \
	{ \
		typedef struct msg_##n this_msg; \
		static const struct msg_field fields[] = {
#define FIELD_U64(f, min, max) \
	{ #f, MSG_U64, offsetof(this_msg, f), (min), (max) },
#define FIELD_STR(f, min, max) \
	{ #f, MSG_STR, offsetof(this_msg, f), (min), (max) },
#define FIELD_BIN(f, min, max) \
	{ #f, MSG_BIN, offsetof(this_msg, f), (min), (max) },
#define MSG_END(n) \
			{ NULL, MSG_U64, sizeof(this_msg), 0, 0 } }; \
		return fields; \
	}
#include "protocol/messages.def"
#include "protocol/message_undef.h"

const struct msg_info msg_table[MSG_TYPE_COUNT] = {
#define MSG_BEGIN(n, c, from, to, lo, hi) \
	{ #n, (c), (from), (to), (lo), (hi), sizeof(struct msg_##n), \
	    NFIELDS_##n, fields_##n },
#define FIELD_U64(f, min, max)
#define FIELD_STR(f, min, max)
#define FIELD_BIN(f, min, max)
#define MSG_END(n)
#include "protocol/messages.def"
#include "protocol/message_undef.h"
};
/* clang-format on */

const char *
msg_name(unsigned type)
{
	return type < MSG_TYPE_COUNT ? msg_table[type].name : "unknown";
}

const char *
proc_name(enum proc proc)
{
	static const char *const names[] = { "supervisor", "control",
		"launcherd", "proxyd", "resolver", "lookup", "init", "broker" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if ((unsigned)proc == 1u << i)
			return names[i];
	return "unknown";
}

void
msg_set_str(char *dst, size_t size, const char *src)
{
	size_t len = strnlen(src, size - 1);

	memcpy(dst, src, len);
	dst[len] = '\0';
}

static void
decode_field(struct wire *w, const struct msg_field *field, uint8_t *msg)
{
	struct wire_view view;
	uint64_t value;
	uint16_t len;

	if (field->kind == MSG_U64) {
		value = wire_u64(w, field->min, field->max);
		memcpy(msg + field->offset, &value, sizeof(value));
		return;
	}
	if (field->kind == MSG_STR)
		view = wire_str(w, (size_t)field->min, (size_t)field->max);
	else
		view = wire_bin(w, (size_t)field->min, (size_t)field->max);
	if (w->err)
		return;
	if (field->kind == MSG_BIN) {
		len = (uint16_t)view.len;
		memcpy(msg + field->offset, &len, sizeof(len));
		msg += sizeof(len);
	}
	/* The struct was zeroed: a string's NUL is there. */
	if (view.len > 0)
		memcpy(msg + field->offset, view.data, view.len);
}

static const struct msg_info *
find_code(uint64_t code)
{
	for (size_t i = 0; i < MSG_TYPE_COUNT; i++)
		if (msg_table[i].code == code)
			return &msg_table[i];
	return NULL;
}

/* The one place that says whether this type may pass here. */
static const char *
check_route(const struct msg_info *info, size_t nfds, enum proc from,
    enum proc to)
{
	if ((info->from & (unsigned)from) == 0)
		return "wrong sender";
	if ((info->to & (unsigned)to) == 0)
		return "wrong receiver";
	if (nfds < info->min_fds || nfds > info->max_fds)
		return "wrong number of descriptors";
	return NULL;
}

int
msg_decode(const void *data, size_t len, size_t nfds, enum proc from,
    enum proc to, union msg_any *ret, const char **ret_why)
{
	const struct msg_info *info = NULL;
	const struct msg_field *fields;
	const char *why;
	struct wire w;
	size_t n;

	wire_init(&w, data, len);
	n = wire_array(&w, 1, 32);
	if (!w.err)
		info = find_code(wire_u64(&w, 0, UINT16_MAX));
	if (w.err || info == NULL)
		why = "unknown message";
	else if (n != info->nfields + 1)
		why = "wrong number of fields";
	else
		why = check_route(info, nfds, from, to);
	if (why == NULL) {
		memset(ret, 0, info->size);
		fields = info->fields();
		for (size_t i = 0; i < info->nfields; i++)
			decode_field(&w, &fields[i], (uint8_t *)ret);
		if (!wire_done(&w))
			why = "malformed field";
	}
	if (ret_why != NULL)
		*ret_why = why;
	return why == NULL ? (int)(info - msg_table) : -EPROTO;
}
