/*
 * The tool's JSON. What is written comes from the service and, through it, from
 * runs: the output is well-formed and free of control characters whatever the
 * input is. See json.h.
 */
#include "supervisor/ctl/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/size.h"
#include "common/utf8.h"

void
json_init(struct json *j, FILE *out)
{
	memset(j, 0, sizeof(*j));
	j->out = out;
}

static void
fail(struct json *j, int error)
{
	if (j->err == 0)
		j->err = error;
}

static void
put(struct json *j, const char *text)
{
	if (fputs(text, j->out) == EOF)
		fail(j, errno != 0 ? -errno : -EIO);
}

/* Whether a value may be written here; writes the comma. A second value at the
 * top, or one without its key, is a fault of the caller's. */
static bool
begin_value(struct json *j)
{
	if (j->depth == 0) {
		if (j->level[0].any) {
			fail(j, -EINVAL);
			return false;
		}
		j->level[0].any = true;
		return true;
	}
	if (j->level[j->depth].object) {
		if (!j->after_key) {
			fail(j, -EINVAL);
			return false;
		}
		j->after_key = false;
		return true;
	}
	if (j->level[j->depth].any)
		put(j, ",");
	j->level[j->depth].any = true;
	return true;
}

static void
open_level(struct json *j, bool object)
{
	/* Level 0 is the line itself. */
	if (j->depth + 1 >= JSON_DEPTH_MAX) {
		json_null(j);
		fail(j, -EINVAL);
		return;
	}
	if (!begin_value(j))
		return;
	j->depth++;
	j->level[j->depth].object = object;
	j->level[j->depth].any = false;
	put(j, object ? "{" : "[");
}

void
json_open_object(struct json *j)
{
	open_level(j, true);
}

void
json_open_array(struct json *j)
{
	open_level(j, false);
}

void
json_close(struct json *j)
{
	if (j->depth == 0) {
		fail(j, -EINVAL);
		return;
	}
	if (j->after_key) {
		json_null(j);
		fail(j, -EINVAL);
	}
	put(j, j->level[j->depth].object ? "}" : "]");
	j->depth--;
}

/* ------------------------------------------------ strings */

static void
put_character(struct json *j, const unsigned char *p, size_t n)
{
	static const char plain[] = "\"\\\b\f\n\r\t";
	static const char letters[] = "\"\\bfnrt";
	const char *at = NULL;
	char text[8];

	if (n == 1 && p[0] != '\0')
		at = strchr(plain, p[0]);
	if (at != NULL) {
		text[0] = '\\';
		text[1] = letters[at - plain];
		text[2] = '\0';
		put(j, text);
	} else if (utf8_is_control(p, n)) {
		(void)snprintf(text, sizeof(text), "\\u%04x", p[n - 1]);
		put(j, text);
	} else {
		memcpy(text, p, n);
		text[n] = '\0';
		put(j, text);
	}
}

static void
put_string(struct json *j, const unsigned char *p, size_t len)
{
	size_t n;

	put(j, "\"");
	for (size_t i = 0; i < len; i += n) {
		n = utf8_length(p + i, len - i);
		if (n == 0) {
			put(j, "\\ufffd");
			n = 1;
		} else {
			put_character(j, p + i, n);
		}
	}
	put(j, "\"");
}

void
json_key(struct json *j, const char *key)
{
	if (j->depth == 0 || !j->level[j->depth].object || j->after_key) {
		fail(j, -EINVAL);
		return;
	}
	if (j->level[j->depth].any)
		put(j, ",");
	j->level[j->depth].any = true;
	put_string(j, (const unsigned char *)key, strlen(key));
	put(j, ":");
	j->after_key = true;
}

void
json_strn(struct json *j, const char *text, size_t len)
{
	if (begin_value(j))
		put_string(j, (const unsigned char *)text, len);
}

void
json_str(struct json *j, const char *text)
{
	if (text == NULL)
		json_null(j);
	else
		json_strn(j, text, strlen(text));
}

/* ------------------------------------------------ the other values */

void
json_null(struct json *j)
{
	if (begin_value(j))
		put(j, "null");
}

void
json_bool(struct json *j, bool value)
{
	if (begin_value(j))
		put(j, value ? "true" : "false");
}

void
json_int(struct json *j, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	if (begin_value(j))
		put(j, text);
}

void
json_uint(struct json *j, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	if (begin_value(j))
		put(j, text);
}

void
json_double(struct json *j, double value)
{
	char text[40];
	char *comma;

	if (!isfinite(value)) {
		json_null(j);
		return;
	}
	(void)snprintf(text, sizeof(text), "%.15g", value);
	/* JSON has a point whatever the locale has. */
	comma = strchr(text, ',');
	if (comma != NULL)
		*comma = '.';
	if (begin_value(j))
		put(j, text);
}

/* RFC 4648, section 4. */
static void
put_base64(struct json *j, const unsigned char *p, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";

	put(j, "\"");
	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		unsigned bits = (unsigned)p[i] << 16;
		char text[5];

		if (n > 1)
			bits |= (unsigned)p[i + 1] << 8;
		if (n > 2)
			bits |= p[i + 2];
		text[0] = digits[bits >> 18];
		text[1] = digits[(bits >> 12) & 63];
		text[2] = n > 1 ? digits[(bits >> 6) & 63] : '=';
		text[3] = n > 2 ? digits[bits & 63] : '=';
		text[4] = '\0';
		put(j, text);
	}
	put(j, "\"");
}

void
json_bin(struct json *j, const void *data, size_t len)
{
	if (utf8_valid(data, len)) {
		json_strn(j, data, len);
		return;
	}
	json_open_object(j);
	json_key(j, "base64");
	if (begin_value(j))
		put_base64(j, data, len);
	json_close(j);
}

/* ------------------------------------------------ msgpack */

static void
put_map(struct json *j, const msgpack_object_map *map)
{
	unsigned depth = j->depth;

	json_open_object(j);
	if (j->depth == depth)
		return; /* too deep */
	for (uint32_t i = 0; i < map->size; i++) {
		const msgpack_object *key = &map->ptr[i].key;

		if (key->type != MSGPACK_OBJECT_STR) {
			fail(j, -EINVAL);
			continue;
		}
		if (j->level[j->depth].any)
			put(j, ",");
		j->level[j->depth].any = true;
		put_string(j, (const unsigned char *)key->via.str.ptr,
		    key->via.str.size);
		put(j, ":");
		j->after_key = true;
		json_object(j, &map->ptr[i].val);
	}
	json_close(j);
}

static void
put_array(struct json *j, const msgpack_object_array *array)
{
	unsigned depth = j->depth;

	json_open_array(j);
	if (j->depth == depth)
		return;
	for (uint32_t i = 0; i < array->size; i++)
		json_object(j, &array->ptr[i]);
	json_close(j);
}

static void
put_nil(struct json *j, const msgpack_object *o)
{
	(void)o;
	json_null(j);
}

static void
put_boolean(struct json *j, const msgpack_object *o)
{
	json_bool(j, o->via.boolean);
}

static void
put_positive(struct json *j, const msgpack_object *o)
{
	json_uint(j, o->via.u64);
}

static void
put_negative(struct json *j, const msgpack_object *o)
{
	json_int(j, o->via.i64);
}

static void
put_float(struct json *j, const msgpack_object *o)
{
	json_double(j, o->via.f64);
}

static void
put_str(struct json *j, const msgpack_object *o)
{
	json_strn(j, o->via.str.ptr, o->via.str.size);
}

static void
put_bin(struct json *j, const msgpack_object *o)
{
	json_bin(j, o->via.bin.ptr, o->via.bin.size);
}

static void
put_array_object(struct json *j, const msgpack_object *o)
{
	put_array(j, &o->via.array);
}

static void
put_map_object(struct json *j, const msgpack_object *o)
{
	put_map(j, &o->via.map);
}

void
json_object(struct json *j, const msgpack_object *o)
{
	static const struct {
		msgpack_object_type type;
		void (*write)(struct json *, const msgpack_object *);
	} rows[] = {
		{ MSGPACK_OBJECT_NIL, put_nil },
		{ MSGPACK_OBJECT_BOOLEAN, put_boolean },
		{ MSGPACK_OBJECT_POSITIVE_INTEGER, put_positive },
		{ MSGPACK_OBJECT_NEGATIVE_INTEGER, put_negative },
		{ MSGPACK_OBJECT_FLOAT32, put_float },
		{ MSGPACK_OBJECT_FLOAT64, put_float },
		{ MSGPACK_OBJECT_STR, put_str },
		{ MSGPACK_OBJECT_BIN, put_bin },
		{ MSGPACK_OBJECT_ARRAY, put_array_object },
		{ MSGPACK_OBJECT_MAP, put_map_object },
	};

	if (o == NULL) {
		json_null(j);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].type == o->type) {
			rows[i].write(j, o);
			return;
		}
	}
	json_null(j);
	fail(j, -EINVAL);
}

/* ------------------------------------------------ pairs, the end */

void
json_add_str(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_str(j, text);
}

void
json_add_uint(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_uint(j, value);
}

void
json_add_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_bool(j, value);
}

int
json_end(struct json *j)
{
	int error;

	if (j->depth != 0 || !j->level[0].any)
		fail(j, -EINVAL);
	put(j, "\n");
	if (fflush(j->out) != 0)
		fail(j, errno != 0 ? -errno : -EIO);
	error = j->err;
	json_init(j, j->out);
	return error;
}
