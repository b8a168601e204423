/*
 * Streaming JSON (RFC 8259) to a stdio stream; nothing is kept but where the
 * writer stands.
 *
 * How to use it: json_init(&j, stdout); then one value, made of the calls
 * below (json_open_object(&j); json_key(&j, "pid"); json_uint(&j, pid); ...;
 * json_close(&j);), then json_end(&j), which writes the newline, flushes and
 * returns the first error. For streams of one value per line: json_end() after
 * each, then the next value with the same writer. Answers and events are
 * written whole by json_object(&j, msg.result).
 *
 * Text comes from runs and hosts: control characters (C0, DEL, C1) are written
 * as \u00XX, so that nothing acts on a terminal; broken UTF-8 as \ufffd, one
 * for each byte.
 */
#ifndef SUPERVISOR_CTL_JSON_H
#define SUPERVISOR_CTL_JSON_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 64

struct json {
	FILE *out;
	unsigned depth;
	int err; /* first error, sticky: -EINVAL, -EIO, ... */
	bool after_key; /* a key is written, its value is not */
	struct {
		bool object;
		bool any; /* holds something already */
	} level[JSON_DEPTH_MAX];
};

/* Borrows the stream. */
void json_init(struct json *, FILE *out);

void json_open_object(struct json *);
void json_open_array(struct json *);
void json_close(struct json *); /* the innermost open one */
void json_key(struct json *, const char *);

void json_null(struct json *);
void json_bool(struct json *, bool);
void json_int(struct json *, int64_t);
void json_uint(struct json *, uint64_t);
void json_double(struct json *, double); /* not finite: null */
void json_str(struct json *, const char *); /* NULL: null */
void json_strn(struct json *, const char *, size_t len);

/* Bytes: a string when they are UTF-8 as a whole, else the object
 * {"base64": "..."}, so that nothing is lost. A piece of output that was cut
 * within a character is therefore an object, too. */
void json_bin(struct json *, const void *, size_t len);

/* A value as it came: maps, arrays, strings, bytes (as json_bin()), numbers.
 * A map key that is no string or an extension type is error -EINVAL, with the
 * output still well-formed (null). */
void json_object(struct json *, const msgpack_object *);

/* A key with its value, in an open object. */
void json_add_str(struct json *, const char *key, const char *);
void json_add_uint(struct json *, const char *key, uint64_t);
void json_add_bool(struct json *, const char *key, bool);

/* Ends a line: newline, flush. 0; -EINVAL when something is still open or was
 * used wrongly; -errno of the stream. The writer is ready for the next value.
 */
int json_end(struct json *);

#endif
