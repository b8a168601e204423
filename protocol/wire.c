/*
 * The bounded reader and the writer of wire.h. Runs in every process; trusts
 * no byte. The reader touches memory only between p and end.
 */
#include "protocol/wire.h"

#include <stdlib.h>
#include <string.h>

#include <msgpack/pack.h>

/* First bytes of the msgpack formats that are accepted. */
enum {
	MP_FIXARRAY = 0x90,
	MP_FIXSTR = 0xa0,
	MP_FALSE = 0xc2,
	MP_TRUE = 0xc3,
	MP_BIN8 = 0xc4,
	MP_UINT8 = 0xcc,
	MP_STR8 = 0xd9,
	MP_ARRAY16 = 0xdc,
};

void
wire_init(struct wire *w, const void *data, size_t len)
{
	w->p = data;
	w->end = w->p + len;
	w->err = false;
}

void
wire_fail(struct wire *w)
{
	w->err = true;
}

bool
wire_done(const struct wire *w)
{
	return !w->err && w->p == w->end;
}

static size_t
wire_left(const struct wire *w)
{
	return (size_t)(w->end - w->p);
}

/* Reads a big-endian number of `n` bytes, 1 to 8. */
static uint64_t
wire_number(struct wire *w, size_t n)
{
	uint64_t value = 0;

	if (w->err || wire_left(w) < n) {
		w->err = true;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		value = value << 8 | w->p[i];
	w->p += n;
	return value;
}

/*
 * A header of the form <first + k> followed by a number of width << k bytes:
 * k counts from 0 to `widths` - 1. Values below `floor` would have had a
 * shorter form and are refused.
 */
static uint64_t
wire_sized(struct wire *w, uint8_t tag, uint8_t first, size_t width,
    size_t widths, uint64_t floor)
{
	size_t k = (size_t)tag - first;
	uint64_t value;

	if (tag < first || k >= widths) {
		w->err = true;
		return 0;
	}
	value = wire_number(w, width << k);
	if (k > 0)
		floor = (uint64_t)1 << (8 * (width << (k - 1)));
	if (value < floor)
		w->err = true;
	return w->err ? 0 : value;
}

uint64_t
wire_u64(struct wire *w, uint64_t min, uint64_t max)
{
	uint8_t tag = (uint8_t)wire_number(w, 1);
	uint64_t value;

	if (w->err)
		return 0;
	value = tag < 0x80 ? tag : wire_sized(w, tag, MP_UINT8, 1, 4, 0x80);
	if (value < min || value > max)
		w->err = true;
	return w->err ? 0 : value;
}

bool
wire_bool(struct wire *w)
{
	uint8_t tag = (uint8_t)wire_number(w, 1);

	if (tag != MP_TRUE && tag != MP_FALSE)
		w->err = true;
	return !w->err && tag == MP_TRUE;
}

/* The body of a string or binary whose length was read. */
static struct wire_view
wire_body(struct wire *w, uint64_t len, size_t min, size_t max)
{
	struct wire_view view = { NULL, 0 };

	if (w->err || len < min || len > max || len > wire_left(w)) {
		w->err = true;
		return view;
	}
	view.data = w->p;
	view.len = (size_t)len;
	w->p += view.len;
	return view;
}

struct wire_view
wire_str(struct wire *w, size_t min, size_t max)
{
	uint8_t tag = (uint8_t)wire_number(w, 1);
	struct wire_view view;
	uint64_t len = 0;

	if (!w->err && (tag & 0xe0) == MP_FIXSTR)
		len = tag & 0x1f;
	else if (!w->err)
		len = wire_sized(w, tag, MP_STR8, 1, 3, 0x20);
	view = wire_body(w, len, min, max);
	if (view.len > 0 && memchr(view.data, '\0', view.len) != NULL) {
		w->err = true;
		return (struct wire_view){ NULL, 0 };
	}
	return view;
}

struct wire_view
wire_bin(struct wire *w, size_t min, size_t max)
{
	uint8_t tag = (uint8_t)wire_number(w, 1);
	uint64_t len = w->err ? 0 : wire_sized(w, tag, MP_BIN8, 1, 3, 0);

	return wire_body(w, len, min, max);
}

const char *
wire_cstr(struct wire *w, size_t min, size_t max)
{
	struct wire_view view = wire_bin(w, min + 1, max + 1);

	if (w->err ||
	    memchr(view.data, '\0', view.len) != view.data + view.len - 1) {
		w->err = true;
		return "";
	}
	return (const char *)view.data;
}

size_t
wire_array(struct wire *w, size_t min, size_t max)
{
	uint8_t tag = (uint8_t)wire_number(w, 1);
	uint64_t n = 0;

	if (!w->err && (tag & 0xf0) == MP_FIXARRAY)
		n = tag & 0x0f;
	else if (!w->err)
		n = wire_sized(w, tag, MP_ARRAY16, 2, 2, 0x10);
	if (n < min || n > max)
		w->err = true;
	return w->err ? 0 : (size_t)n;
}

void
wire_out_init(struct wire_out *out)
{
	memset(out, 0, sizeof(*out));
}

void
wire_out_done(struct wire_out *out)
{
	if (out->data != NULL)
		explicit_bzero(out->data, out->cap);
	free(out->data);
	wire_out_init(out);
}

/* Grows by copying by hand: realloc would leave the old bytes unwiped. */
static bool
wire_out_grow(struct wire_out *out, size_t need)
{
	size_t cap = out->cap > 0 ? out->cap : 1024;
	uint8_t *data;

	while (cap < need)
		cap *= 2;
	if ((data = malloc(cap)) == NULL)
		return false;
	if (out->data != NULL) {
		memcpy(data, out->data, out->len);
		explicit_bzero(out->data, out->cap);
		free(out->data);
	}
	out->data = data;
	out->cap = cap;
	return true;
}

/* msgpack_packer_write. */
static int
wire_out_write(void *ctx, const char *buf, size_t len)
{
	struct wire_out *out = ctx;

	if (out->err || len > WIRE_OUT_MAX - out->len ||
	    (out->len + len > out->cap &&
		!wire_out_grow(out, out->len + len))) {
		out->err = true;
		return -1;
	}
	memcpy(out->data + out->len, buf, len);
	out->len += len;
	return 0;
}

static msgpack_packer
wire_packer(struct wire_out *out)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, wire_out_write);
	return pk;
}

void
wire_put_u64(struct wire_out *out, uint64_t value)
{
	msgpack_packer pk = wire_packer(out);

	(void)msgpack_pack_uint64(&pk, value);
}

void
wire_put_bool(struct wire_out *out, bool value)
{
	msgpack_packer pk = wire_packer(out);

	(void)(value ? msgpack_pack_true(&pk) : msgpack_pack_false(&pk));
}

void
wire_put_str(struct wire_out *out, const char *s, size_t len)
{
	msgpack_packer pk = wire_packer(out);

	(void)msgpack_pack_str(&pk, len);
	if (len > 0)
		(void)msgpack_pack_str_body(&pk, s, len);
}

void
wire_put_bin(struct wire_out *out, const void *data, size_t len)
{
	msgpack_packer pk = wire_packer(out);

	(void)msgpack_pack_bin(&pk, len);
	if (len > 0)
		(void)msgpack_pack_bin_body(&pk, data, len);
}

void
wire_put_cstr(struct wire_out *out, const char *s)
{
	wire_put_bin(out, s, strlen(s) + 1);
}

void
wire_put_array(struct wire_out *out, size_t n)
{
	msgpack_packer pk = wire_packer(out);

	(void)msgpack_pack_array(&pk, n);
}
