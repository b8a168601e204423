/*
 * Bounded reader of canonical msgpack, used by every decoder that root or an
 * unprivileged daemon runs on bytes of another process (messages, plan,
 * look-up, egress lists). No allocation; strings are views into the buffer.
 * Errors are sticky: after the first one every getter returns zero or an empty
 * view, and `err` stays set, so a decoder checks once at its end (and before
 * it trusts a count). Source: the published msgpack specification; shortest
 * form only.
 *
 * Text fields are encoded as `str`. wire_str refuses NUL inside. A view is not
 * NUL-terminated; wire_cstr instead expects the terminating NUL to be part of
 * a `bin` and returns a C string that lives as long as the buffer (sealed
 * memfd maps).
 */
#ifndef PROTOCOL_WIRE_H
#define PROTOCOL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire {
	const uint8_t *p;
	const uint8_t *end;
	bool err;
};

struct wire_view {
	const uint8_t *data;
	size_t len;
};

void wire_init(struct wire *, const void *data, size_t len);
uint64_t wire_u64(struct wire *, uint64_t min, uint64_t max);
bool wire_bool(struct wire *);
struct wire_view wire_str(struct wire *, size_t min, size_t max);
struct wire_view wire_bin(struct wire *, size_t min, size_t max);
const char *wire_cstr(struct wire *, size_t min, size_t max);
/* Element count of an array header. */
size_t wire_array(struct wire *, size_t min, size_t max);
/* True when no error happened and every byte was read. */
bool wire_done(const struct wire *);
void wire_fail(struct wire *);

/*
 * Writer: a growing buffer on msgpack-c's inline packer. Sticky error (out of
 * memory, over WIRE_OUT_MAX). wire_out_done() frees; the buffer is wiped first
 * since plans carry environment values.
 */
#define WIRE_OUT_MAX (8u << 20)
struct wire_out {
	uint8_t *data;
	size_t len;
	size_t cap;
	bool err;
};
void wire_out_init(struct wire_out *);
void wire_out_done(struct wire_out *);
void wire_put_u64(struct wire_out *, uint64_t);
void wire_put_bool(struct wire_out *, bool);
void wire_put_str(struct wire_out *, const char *, size_t len);
void wire_put_bin(struct wire_out *, const void *, size_t len);
void wire_put_cstr(struct wire_out *, const char *); /* bin with its NUL */
void wire_put_array(struct wire_out *, size_t n);

#endif
