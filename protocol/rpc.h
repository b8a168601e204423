/*
 * MessagePack-RPC as published, over a stream socket: requests
 * [0, id, method, [map]], answers [1, id, error, result], notifications
 * [2, method, [map]]. Read by stockade-control (bytes of clients) and by
 * clients (bytes of stockade-control). No I/O. What is read is hostile until
 * rpc_unpack() and rpc_check() have both said yes.
 *
 * Order: rpc_scan() walks the bytes without allocating and says where a value
 * ends; rpc_unpack() then builds the object tree of exactly that value, so an
 * allocation is never larger than what was really sent.
 */
#ifndef PROTOCOL_RPC_H
#define PROTOCOL_RPC_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RPC_PROTOCOL 1 /* version that hello names */
#define RPC_MSG_MAX (1u << 20) /* bytes of a message */
#define RPC_DEPTH_MAX 16 /* arrays and maps inside each other */
#define RPC_ITEMS_MAX 65536 /* values, keys included */
#define RPC_KEYS_MAX 1024 /* keys of one map */
#define RPC_KEYS_OPEN_MAX 4096 /* keys of a map and those around it */
#define RPC_STR_MAX (256u << 10)
#define RPC_LABEL_MAX 128
#define RPC_FDS_MAX 3 /* descriptors of one request */

/* ---------------------------------------------------------------- scan */

/* Where a scan stands, so that bytes that come one by one are looked at once.
 * Zero-initialise for a new value. */
struct rpc_scan {
	size_t at;
	uint32_t items;
	uint32_t depth;
	struct {
		uint32_t left; /* values still to come */
		bool map; /* keys at even numbers of left */
	} level[RPC_DEPTH_MAX];
};

/*
 * Looks at data[0..len), which starts with the bytes of the call before. 1: a
 * whole value, *ret_len bytes long, passed every check; 0: more is needed;
 * -EPROTO: longer than RPC_MSG_MAX, too deep, too many values, an extension
 * type, 0xc1, a map key that is no string, a key twice in a map. ret_why (may
 * be NULL) gets a static text.
 */
int rpc_scan(struct rpc_scan *scan, const uint8_t *data, size_t len,
    size_t *ret_len, const char **ret_why);

/* ---------------------------------------------------------------- messages */

enum rpc_type { RPC_REQUEST, RPC_ANSWER, RPC_NOTIFY };

/*
 * One message. Owns its bytes and tree. Every string in it is followed by a
 * NUL (via.str.ptr is a C string once it is known to hold no NUL inside, which
 * rpc_check() makes sure of).
 */
struct rpc_message {
	enum rpc_type type;
	uint32_t id; /* request, answer */
	const char *method; /* request, notification; no NUL inside */
	const msgpack_object *params; /* request, notification: the map */
	const msgpack_object *error; /* answer: a map, or NULL for nil */
	const msgpack_object *result; /* answer: a map, or NULL for nil */
	msgpack_unpacked tree;
	uint8_t *bytes;
};

/*
 * Takes a copy of one value that rpc_scan() has passed. 0, -ENOMEM, or -EPROTO
 * when it is no message of the three forms (then *ret is empty). rpc_done()
 * takes a zeroed or emptied one too.
 */
int rpc_unpack(const uint8_t *data, size_t len, struct rpc_message *ret);
void rpc_done(struct rpc_message *);

/* ---------------------------------------------------------------- maps */

enum rpc_kind {
	RPC_BOOL,
	RPC_UINT, /* integer from 0; min..max */
	RPC_NUM, /* integer or float, not NaN or infinite, min..max */
	RPC_STR, /* min..max bytes, no NUL inside */
	RPC_LABEL, /* as STR, only A-Z a-z 0-9 . _ : @ / - */
	RPC_BIN, /* min..max bytes */
	RPC_STRS, /* array of STR of at most RPC_STR_MAX; min..max of them */
	RPC_DICT, /* map of STR to STR; min..max entries */
	RPC_MAP, /* min..max entries; the handler checks inside */
	RPC_MAPS, /* array of maps; min..max of them */
	RPC_ANY, /* anything; strings in it may hold NUL */
};

struct rpc_param {
	const char *name;
	enum rpc_kind kind;
	bool required;
	uint64_t min;
	uint64_t max;
};

/*
 * Checks a map against its rows: every required one is there, no other is,
 * each has its kind and range. A value of nil counts as absent. 0, or -EINVAL
 * with the field's cleaned name in ret_field and a static text in ret_why.
 */
#define RPC_FIELD_MAX 64
int rpc_check(const msgpack_object *map, const struct rpc_param *rows, size_t n,
    char ret_field[RPC_FIELD_MAX], const char **ret_why);

/* The value of a key, or NULL when absent or nil. `map` may be NULL. */
const msgpack_object *rpc_find(const msgpack_object *map, const char *name);

/*
 * Values of checked maps. Absent or of another type: NULL, `fallback`, an
 * empty span. Strings live as long as the message.
 */
struct rpc_span {
	const uint8_t *data;
	size_t len;
};
const char *rpc_str(const msgpack_object *map, const char *name);
uint64_t
rpc_u64(const msgpack_object *map, const char *name, uint64_t fallback);
double rpc_num(const msgpack_object *map, const char *name, double fallback);
bool rpc_bool(const msgpack_object *map, const char *name, bool fallback);
struct rpc_span rpc_bin(const msgpack_object *map, const char *name);
const msgpack_object *rpc_map(const msgpack_object *map, const char *name);
/* Entries of an array or map, 0 when absent; then the i-th of each form. */
size_t rpc_count(const msgpack_object *map, const char *name);
const char *rpc_str_at(const msgpack_object *map, const char *name, size_t i);
const msgpack_object *
rpc_map_at(const msgpack_object *map, const char *name, size_t i);
/* Key and value of a DICT's i-th entry; false beyond the last. */
bool rpc_pair_at(const msgpack_object *map, const char *name, size_t i,
    const char **ret_key, const char **ret_value);

bool rpc_label_ok(const char *text, size_t len);

/* ---------------------------------------------------------------- writing */

/*
 * A growing buffer. Maps and arrays are opened and closed; entries are counted
 * here. Errors are sticky (no memory, over `max`, deeper than RPC_DEPTH_MAX,
 * unbalanced): check `err` once at the end.
 */
struct rpc_out {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t max; /* 0: RPC_MSG_MAX */
	bool err;
	bool too_long; /* the error is `max` */
	bool nil_after; /* an error is being written */
	unsigned depth;
	struct {
		size_t at; /* of the count in data */
		uint32_t count;
		bool map;
	} open[RPC_DEPTH_MAX];
};

void rpc_out_init(struct rpc_out *);
void rpc_out_done(struct rpc_out *); /* frees; takes a zeroed one */

/* Heads of the three messages; close with rpc_end_message(). After a request
 * or notification head the parameter map is open, after an answer head the
 * result map, after an error head the error map. */
void rpc_begin_request(struct rpc_out *, uint32_t id, const char *method);
void rpc_begin_notify(struct rpc_out *, const char *method);
void rpc_begin_result(struct rpc_out *, uint32_t id);
void rpc_begin_error(struct rpc_out *, uint32_t id);
/* Closes what is open. 0, or -ENOMEM or -EMSGSIZE; then nothing was added. */
int rpc_end_message(struct rpc_out *);

void rpc_put_nil(struct rpc_out *);
void rpc_put_bool(struct rpc_out *, bool);
void rpc_put_u64(struct rpc_out *, uint64_t);
void rpc_put_str(struct rpc_out *, const char *); /* NULL: nil */
void rpc_put_strn(struct rpc_out *, const char *, size_t len);
void rpc_put_bin(struct rpc_out *, const void *, size_t len);
void rpc_put_object(struct rpc_out *, const msgpack_object *); /* a copy */
void rpc_open_map(struct rpc_out *);
void rpc_open_array(struct rpc_out *);
void rpc_close(struct rpc_out *); /* the innermost open one */
void rpc_put_key(struct rpc_out *, const char *);

/* A key with its value, in an open map. */
void rpc_add_bool(struct rpc_out *, const char *key, bool);
void rpc_add_u64(struct rpc_out *, const char *key, uint64_t);
void rpc_add_str(struct rpc_out *, const char *key, const char *);
/* Left out when the text is NULL or empty. */
void rpc_add_text(struct rpc_out *, const char *key, const char *);
/* Names of files and other bytes of a tree or a run: as log_clean() shows them,
 * 4 KiB at most (SPEC L9). A str is UTF-8, and the peer may insist. */
void rpc_add_clean(struct rpc_out *, const char *key, const char *);
void rpc_add_bin(struct rpc_out *, const char *key, const void *, size_t len);
void rpc_add_map(struct rpc_out *, const char *key); /* leaves it open */
void rpc_add_array(struct rpc_out *, const char *key); /* leaves it open */

/* ---------------------------------------------------------------- the table */

enum rpc_event_type {
#define METHOD_BEGIN(id, name, who, errors, doc)
#define PARAM(name, kind, need, min, max, doc)
#define RESULT(name, type, doc)
#define METHOD_END(id)
#define EVENT_BEGIN(id, name, doc) RPC_EVENT_##id,
#define FIELD(name, type, doc)
#define EVENT_END(id)
#include "protocol/methods.def"
#include "protocol/methods_undef.h"
	RPC_EVENT_COUNT
};
/* "stdout", ...; "unknown" beyond the last. The type of a name, or -1. */
const char *rpc_event_name(unsigned);
int rpc_event_find(const char *name);

#endif
