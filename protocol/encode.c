/*
 * The encoder of internal messages, on msgpack-c's inline packer: a process
 * that only encodes loads no library for it. What it is given is our own;
 * ranges are checked all the same, so that a bug here is an error here and not
 * a broken rule over there.
 */
#include "protocol/message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <msgpack/pack.h>

struct out {
	uint8_t *buf;
	size_t size;
	size_t len;
};

static int
out_write(void *ctx, const char *data, size_t len)
{
	struct out *out = ctx;

	if (len > out->size - out->len)
		return -1;
	memcpy(out->buf + out->len, data, len);
	out->len += len;
	return 0;
}

static bool
encode_u64(msgpack_packer *pk, const struct msg_field *field,
    const uint8_t *msg)
{
	uint64_t value;

	memcpy(&value, msg + field->offset, sizeof(value));
	return value >= field->min && value <= field->max &&
	    msgpack_pack_uint64(pk, value) == 0;
}

static bool
encode_str(msgpack_packer *pk, const struct msg_field *field,
    const uint8_t *msg)
{
	const char *s = (const char *)msg + field->offset;
	size_t len = strnlen(s, field->max + 1);

	return len >= field->min && len <= field->max &&
	    msgpack_pack_str(pk, len) == 0 &&
	    (len == 0 || msgpack_pack_str_body(pk, s, len) == 0);
}

static bool
encode_bin(msgpack_packer *pk, const struct msg_field *field,
    const uint8_t *msg)
{
	uint16_t len;

	memcpy(&len, msg + field->offset, sizeof(len));
	return len >= field->min && len <= field->max &&
	    msgpack_pack_bin(pk, len) == 0 &&
	    (len == 0 ||
		msgpack_pack_bin_body(pk, msg + field->offset + sizeof(len),
		    len) == 0);
}

ptrdiff_t
msg_encode(enum msg_type type, const void *msg, enum proc from, enum proc to,
    size_t nfds, void *buf, size_t size)
{
	static bool (*const encode[])(msgpack_packer *,
	    const struct msg_field *, const uint8_t *) = {
		[MSG_U64] = encode_u64,
		[MSG_STR] = encode_str,
		[MSG_BIN] = encode_bin,
	};
	const struct msg_info *info = &msg_table[type];
	const struct msg_field *fields = info->fields();
	struct out out = { buf, size, 0 };
	msgpack_packer pk;

	if ((info->from & (unsigned)from) == 0 ||
	    (info->to & (unsigned)to) == 0 || nfds < info->min_fds ||
	    nfds > info->max_fds)
		return -EINVAL;
	msgpack_packer_init(&pk, &out, out_write);
	if (msgpack_pack_array(&pk, info->nfields + 1) != 0 ||
	    msgpack_pack_uint64(&pk, info->code) != 0)
		return -EINVAL;
	for (size_t i = 0; i < info->nfields; i++)
		if (!encode[fields[i].kind](&pk, &fields[i], msg))
			return -EINVAL;
	return (ptrdiff_t)out.len;
}
