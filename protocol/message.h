/*
 * Internal messages: structs, codes, decoder and encoder made from
 * messages.def. A message is one packet: a msgpack array of the code and the
 * fields in order. One encoding per value (shortest integer, shortest string
 * header); unknown code, wrong sender or receiver, missing or extra field,
 * range, embedded NUL in a string, wrong count of descriptors, trailing byte:
 * all are errors. The decoder allocates nothing.
 */
#ifndef PROTOCOL_MESSAGE_H
#define PROTOCOL_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/cause.h"

enum proc {
	PROC_SUPERVISOR = 1 << 0,
	PROC_CONTROL = 1 << 1,
	PROC_LAUNCHERD = 1 << 2,
	PROC_PROXYD = 1 << 3,
	PROC_RESOLVER = 1 << 4,
	PROC_LOOKUP = 1 << 5,
	PROC_INIT = 1 << 6,
	PROC_BROKER = 1 << 7,
};
const char *proc_name(enum proc);

/* enum msg_type: MSG_ready, MSG_conf_service, ... numbered from 0 in the order
 * of the table; the wire code is messages.def's. */
enum msg_type {
#define MSG_BEGIN(n, c, from, to, lo, hi) MSG_##n,
#define FIELD_U64(f, min, max)
#define FIELD_STR(f, min, max)
#define FIELD_BIN(f, min, max)
#define MSG_END(n)
#include "protocol/messages.def"
#include "protocol/message_undef.h"
	MSG_TYPE_COUNT
};

/* clang-format off */
/* struct msg_ready, ...: U64 is a uint64_t; STR is char[max + 1], always
 * NUL-terminated; BIN is a length and bytes. */
#define MSG_BEGIN(n, c, from, to, lo, hi) struct msg_##n { \
	uint8_t unused_;
#define FIELD_U64(f, min, max) uint64_t f;
#define FIELD_STR(f, min, max) char f[(max) + 1];
#define FIELD_BIN(f, min, max) struct { uint16_t len; uint8_t data[max]; } f;
#define MSG_END(n) };
#include "protocol/messages.def"
#include "protocol/message_undef.h"
/* clang-format on */

union msg_any {
#define MSG_BEGIN(n, c, from, to, lo, hi) struct msg_##n n;
#define FIELD_U64(f, min, max)
#define FIELD_STR(f, min, max)
#define FIELD_BIN(f, min, max)
#define MSG_END(n)
#include "protocol/messages.def"
#include "protocol/message_undef.h"
};

/* Longest encoding of any message in bytes. */
#define MSG_SIZE_MAX 8192

/* Trace name, or "unknown". */
const char *msg_name(unsigned type);

/*
 * Decodes one packet that `from` sent to `to` with `nfds` descriptors. On
 * success returns the type and fills *ret; otherwise -EPROTO and *ret is
 * undefined. `ret_why` (may be NULL) gets a static text naming the rule that
 * was broken.
 */
int msg_decode(const void *data, size_t len, size_t nfds, enum proc from,
    enum proc to, union msg_any *ret, const char **ret_why);

/*
 * Encodes `msg` (a struct msg_<type>) into buf[size]. Returns the length, or
 * -EINVAL when a field is out of its range or `from`/`to`/`nfds` do not fit:
 * our own bug, the caller logs EV_INTERNAL. (encode.c)
 */
ptrdiff_t msg_encode(enum msg_type type, const void *msg, enum proc from,
    enum proc to, size_t nfds, void *buf, size_t size);

/* Table description, for tests, the manual and the fuzzer's dictionary. */
enum msg_field_kind { MSG_U64, MSG_STR, MSG_BIN };
struct msg_field {
	const char *name;
	enum msg_field_kind kind;
	size_t offset;
	uint64_t min;
	uint64_t max;
};
struct msg_info {
	const char *name;
	unsigned code;
	unsigned from;
	unsigned to;
	unsigned min_fds;
	unsigned max_fds;
	size_t size;
	size_t nfields;
	const struct msg_field *(*fields)(void);
};
extern const struct msg_info msg_table[MSG_TYPE_COUNT];

/* Copies text into a message's string field, cutting at its size. */
#define MSG_SET_STR(dst, src) msg_set_str((dst), sizeof(dst), (src))
void msg_set_str(char *dst, size_t size, const char *src);

#endif
