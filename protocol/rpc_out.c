/*
 * Writing MessagePack-RPC: a growing buffer in which maps and arrays are
 * opened and closed and counted here, so that no count can be wrong. The
 * count of an open one is written when it is closed, in the 32-bit form.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/size.h"
#include "protocol/rpc.h"

#define OUT_FIRST 512 /* bytes of the first allocation */

/* msgpack-c's packer writes through this. Errors are sticky. */
static int
out_write(void *arg, const char *data, size_t len)
{
	struct rpc_out *out = arg;
	size_t need, max = out->max != 0 ? out->max : RPC_MSG_MAX;
	uint8_t *p;

	if (out->err)
		return -1;
	if (!size_add(out->len, len, &need) || need > max) {
		out->err = true;
		out->too_long = true;
		return -1;
	}
	if (need > out->cap) {
		size_t cap = out->cap == 0 ? OUT_FIRST : out->cap;

		while (cap < need)
			cap *= 2;
		p = realloc(out->data, cap);
		if (p == NULL) {
			out->err = true;
			return -1;
		}
		out->data = p;
		out->cap = cap;
	}
	memcpy(out->data + out->len, data, len);
	out->len = need;
	return 0;
}

static msgpack_packer
packer(struct rpc_out *out)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, out_write);
	return pk;
}

/* A value goes into what is open: an array counts it, a map counts keys. */
static void
count_value(struct rpc_out *out)
{
	if (out->depth > 0 && !out->open[out->depth - 1].map)
		out->open[out->depth - 1].count++;
}

void
rpc_out_init(struct rpc_out *out)
{
	memset(out, 0, sizeof(*out));
}

void
rpc_out_done(struct rpc_out *out)
{
	free(out->data);
	memset(out, 0, sizeof(*out));
}

static void
open_level(struct rpc_out *out, bool map)
{
	const uint8_t head[5] = { map ? 0xdf : 0xdd, 0, 0, 0, 0 };

	count_value(out);
	if (out->depth == RPC_DEPTH_MAX)
		out->err = true;
	if (out_write(out, (const char *)head, sizeof(head)) != 0)
		return;
	out->open[out->depth].at = out->len - 4;
	out->open[out->depth].count = 0;
	out->open[out->depth].map = map;
	out->depth++;
}

void
rpc_open_map(struct rpc_out *out)
{
	open_level(out, true);
}

void
rpc_open_array(struct rpc_out *out)
{
	open_level(out, false);
}

void
rpc_close(struct rpc_out *out)
{
	uint32_t count;
	uint8_t *p;

	if (out->depth == 0)
		out->err = true;
	if (out->err)
		return;
	out->depth--;
	count = out->open[out->depth].count;
	p = out->data + out->open[out->depth].at;
	p[0] = (uint8_t)(count >> 24);
	p[1] = (uint8_t)(count >> 16);
	p[2] = (uint8_t)(count >> 8);
	p[3] = (uint8_t)count;
}

void
rpc_put_key(struct rpc_out *out, const char *key)
{
	if (out->depth == 0 || !out->open[out->depth - 1].map) {
		out->err = true;
		return;
	}
	out->open[out->depth - 1].count++;
	rpc_put_strn(out, key, strlen(key));
}

void
rpc_put_nil(struct rpc_out *out)
{
	msgpack_packer pk = packer(out);

	count_value(out);
	(void)msgpack_pack_nil(&pk);
}

void
rpc_put_bool(struct rpc_out *out, bool value)
{
	msgpack_packer pk = packer(out);

	count_value(out);
	(void)(value ? msgpack_pack_true(&pk) : msgpack_pack_false(&pk));
}

void
rpc_put_u64(struct rpc_out *out, uint64_t value)
{
	msgpack_packer pk = packer(out);

	count_value(out);
	(void)msgpack_pack_uint64(&pk, value);
}

void
rpc_put_strn(struct rpc_out *out, const char *text, size_t len)
{
	msgpack_packer pk = packer(out);

	count_value(out);
	(void)msgpack_pack_str(&pk, len);
	(void)msgpack_pack_str_body(&pk, text, len);
}

void
rpc_put_str(struct rpc_out *out, const char *text)
{
	if (text == NULL)
		rpc_put_nil(out);
	else
		rpc_put_strn(out, text, strlen(text));
}

void
rpc_put_bin(struct rpc_out *out, const void *data, size_t len)
{
	msgpack_packer pk = packer(out);

	count_value(out);
	(void)msgpack_pack_bin(&pk, len);
	(void)msgpack_pack_bin_body(&pk, data, len);
}

void
rpc_put_object(struct rpc_out *out, const msgpack_object *o)
{
	msgpack_packer pk = packer(out);

	count_value(out);
	(void)msgpack_pack_object(&pk, *o);
}

void
rpc_add_bool(struct rpc_out *out, const char *key, bool value)
{
	rpc_put_key(out, key);
	rpc_put_bool(out, value);
}

void
rpc_add_u64(struct rpc_out *out, const char *key, uint64_t value)
{
	rpc_put_key(out, key);
	rpc_put_u64(out, value);
}

void
rpc_add_str(struct rpc_out *out, const char *key, const char *text)
{
	rpc_put_key(out, key);
	rpc_put_str(out, text);
}

void
rpc_add_clean(struct rpc_out *out, const char *key, const char *text)
{
	char clean[4096 + 1];

	(void)log_clean(clean, sizeof(clean), text, strlen(text));
	rpc_add_str(out, key, clean);
}

void
rpc_add_text(struct rpc_out *out, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		rpc_add_str(out, key, text);
}

void
rpc_add_bin(struct rpc_out *out, const char *key, const void *data, size_t len)
{
	rpc_put_key(out, key);
	rpc_put_bin(out, data, len);
}

void
rpc_add_map(struct rpc_out *out, const char *key)
{
	rpc_put_key(out, key);
	rpc_open_map(out);
}

void
rpc_add_array(struct rpc_out *out, const char *key)
{
	rpc_put_key(out, key);
	rpc_open_array(out);
}

/* ---------------------------------------------------------------- messages */

/* An array of n values whose count is known: [type, ...]. */
static void
begin(struct rpc_out *out, uint32_t n, enum rpc_type type)
{
	msgpack_packer pk = packer(out);

	out->len = 0;
	out->err = false;
	out->too_long = false;
	out->nil_after = false;
	out->depth = 0;
	(void)msgpack_pack_array(&pk, n);
	(void)msgpack_pack_uint8(&pk, (uint8_t)type);
}

static void
begin_params(struct rpc_out *out, const char *method)
{
	msgpack_packer pk = packer(out);

	rpc_put_str(out, method);
	(void)msgpack_pack_array(&pk, 1);
	rpc_open_map(out);
}

void
rpc_begin_request(struct rpc_out *out, uint32_t id, const char *method)
{
	begin(out, 4, RPC_REQUEST);
	rpc_put_u64(out, id);
	begin_params(out, method);
}

void
rpc_begin_notify(struct rpc_out *out, const char *method)
{
	begin(out, 3, RPC_NOTIFY);
	begin_params(out, method);
}

void
rpc_begin_result(struct rpc_out *out, uint32_t id)
{
	begin(out, 4, RPC_ANSWER);
	rpc_put_u64(out, id);
	rpc_put_nil(out);
	rpc_open_map(out);
}

/* The nil result behind the error map is written by rpc_end_message(). */
void
rpc_begin_error(struct rpc_out *out, uint32_t id)
{
	begin(out, 4, RPC_ANSWER);
	rpc_put_u64(out, id);
	rpc_open_map(out);
	out->nil_after = true;
}

int
rpc_end_message(struct rpc_out *out)
{
	while (out->depth > 0 && !out->err)
		rpc_close(out);
	if (out->nil_after)
		rpc_put_nil(out);
	out->nil_after = false;
	if (!out->err)
		return 0;
	out->len = 0;
	out->depth = 0;
	return out->too_long ? -EMSGSIZE : -ENOMEM;
}
