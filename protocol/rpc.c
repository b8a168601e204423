/*
 * Reading MessagePack-RPC: scan, unpack, checked access. No I/O; the bytes are
 * hostile. Writing is in rpc_out.c. Source: the msgpack and MessagePack-RPC
 * specifications as published.
 *
 * Why a scan of our own comes first: msgpack_unpack_next() allocates for the
 * count that an array header claims (five bytes ask for gigabytes), passes a
 * key that stands twice in a map, and knows no limit but a depth of 32.
 */
#include "protocol/rpc.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

/* ---------------------------------------------------------------- scan */

enum form {
	FORM_BAD,
	FORM_PLAIN, /* `fixed` bytes after the first */
	FORM_STR,
	FORM_BIN,
	FORM_ARRAY,
	FORM_MAP,
};

/* What a first byte announces: `fixed` bytes follow that are the value of a
 * plain one, or the length or count of another. */
struct head {
	enum form form;
	unsigned fixed;
	uint32_t value; /* of the header, or of the fixed bytes */
	size_t size; /* of the header */
};

struct row {
	uint8_t first;
	enum form form;
	unsigned fixed;
};

/* 0xc0..0xdf; extension types (0xc7..0xc9, 0xd4..0xd8) and 0xc1 are bad. */
static const struct row rows[] = {
	{ 0xc0, FORM_PLAIN, 0 },
	{ 0xc2, FORM_PLAIN, 0 },
	{ 0xc3, FORM_PLAIN, 0 },
	{ 0xc4, FORM_BIN, 1 },
	{ 0xc5, FORM_BIN, 2 },
	{ 0xc6, FORM_BIN, 4 },
	{ 0xca, FORM_PLAIN, 4 },
	{ 0xcb, FORM_PLAIN, 8 },
	{ 0xcc, FORM_PLAIN, 1 },
	{ 0xcd, FORM_PLAIN, 2 },
	{ 0xce, FORM_PLAIN, 4 },
	{ 0xcf, FORM_PLAIN, 8 },
	{ 0xd0, FORM_PLAIN, 1 },
	{ 0xd1, FORM_PLAIN, 2 },
	{ 0xd2, FORM_PLAIN, 4 },
	{ 0xd3, FORM_PLAIN, 8 },
	{ 0xd9, FORM_STR, 1 },
	{ 0xda, FORM_STR, 2 },
	{ 0xdb, FORM_STR, 4 },
	{ 0xdc, FORM_ARRAY, 2 },
	{ 0xdd, FORM_ARRAY, 4 },
	{ 0xde, FORM_MAP, 2 },
	{ 0xdf, FORM_MAP, 4 },
};

static struct head
head_short(uint8_t first)
{
	struct head h = { FORM_BAD, 0, 0, 1 };

	if (first <= 0x7f || first >= 0xe0) {
		h.form = FORM_PLAIN;
	} else if (first <= 0x8f) {
		h.form = FORM_MAP;
		h.value = first & 0x0fu;
	} else if (first <= 0x9f) {
		h.form = FORM_ARRAY;
		h.value = first & 0x0fu;
	} else if (first <= 0xbf) {
		h.form = FORM_STR;
		h.value = first & 0x1fu;
	}
	return h;
}

/* Reads the header at p; false when it is not complete. */
static bool
head_read(const uint8_t *p, size_t left, struct head *ret)
{
	struct head h;

	if (left == 0)
		return false;
	h = head_short(p[0]);
	for (size_t i = 0; h.form == FORM_BAD && i < ARRAY_LEN(rows); i++) {
		if (rows[i].first != p[0])
			continue;
		h.form = rows[i].form;
		h.fixed = rows[i].fixed;
		h.size = 1 + h.fixed;
	}
	if (h.size > left)
		return false;
	if (h.form != FORM_PLAIN)
		for (unsigned i = 0; i < h.fixed; i++)
			h.value = h.value << 8 | p[1 + i];
	*ret = h;
	return true;
}

/* Bytes of the value's own data behind its header. */
static size_t
head_data(const struct head *h)
{
	return h->form == FORM_STR || h->form == FORM_BIN ? h->value : 0;
}

static bool
scan_expects_key(const struct rpc_scan *s)
{
	return s->depth > 0 && s->level[s->depth - 1].map &&
	    s->level[s->depth - 1].left % 2 == 0;
}

/* One value was passed: closes what is complete. */
static void
scan_value_done(struct rpc_scan *s)
{
	while (s->depth > 0) {
		if (--s->level[s->depth - 1].left > 0)
			return;
		s->depth--;
	}
}

/* Enters an array or map, or passes an empty one. */
static const char *
scan_enter(struct rpc_scan *s, const struct head *h)
{
	bool map = h->form == FORM_MAP;

	if (h->value > RPC_ITEMS_MAX || (map && h->value > RPC_KEYS_MAX))
		return "too many values";
	if (s->depth == RPC_DEPTH_MAX)
		return "too deep";
	if (h->value == 0) {
		scan_value_done(s);
		return NULL;
	}
	s->level[s->depth].left = map ? h->value * 2 : h->value;
	s->level[s->depth].map = map;
	s->items += s->level[s->depth].left;
	s->depth++;
	return s->items > RPC_ITEMS_MAX ? "too many values" : NULL;
}

/*
 * The keys of every map: each once. A second walk over a value that is known
 * to be well-formed. The keys of the map being read and of those around it are
 * on a stack; a hash is compared before the bytes, and the counts bound the
 * work: at most RPC_ITEMS_MAX / 2 keys, each against RPC_KEYS_MAX others.
 */
struct keys {
	const uint8_t *data;
	size_t n;
	struct {
		uint32_t hash;
		uint32_t at; /* of the header in data */
	} key[RPC_KEYS_OPEN_MAX];
	size_t first[RPC_DEPTH_MAX]; /* key of each level */
};

static bool
key_equal(const uint8_t *data, uint32_t a, uint32_t b)
{
	struct head ha, hb;

	(void)head_read(data + a, SIZE_MAX, &ha);
	(void)head_read(data + b, SIZE_MAX, &hb);
	return ha.value == hb.value &&
	    memcmp(data + a + ha.size, data + b + hb.size, ha.value) == 0;
}

/* FNV-1a; only a filter before key_equal(). */
static uint32_t
key_hash(const uint8_t *p, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static const char *
keys_add(struct keys *k, size_t level, size_t at, const struct head *h)
{
	uint32_t hash = key_hash(k->data + at + h->size, h->value);

	if (k->n == RPC_KEYS_OPEN_MAX)
		return "too many keys";
	for (size_t i = k->first[level]; i < k->n; i++)
		if (k->key[i].hash == hash &&
		    key_equal(k->data, k->key[i].at, (uint32_t)at))
			return "a key stands twice in a map";
	k->key[k->n].hash = hash;
	k->key[k->n].at = (uint32_t)at;
	k->n++;
	return NULL;
}

static const char *
scan_keys(const uint8_t *data, size_t len)
{
	struct rpc_scan s = { .items = 1 };
	struct keys k;
	const char *why = NULL;

	k.data = data;
	k.n = 0;
	while (s.at < len && why == NULL) {
		struct head h;
		unsigned before = s.depth;

		(void)head_read(data + s.at, len - s.at, &h);
		if (scan_expects_key(&s))
			why = keys_add(&k, s.depth - 1, s.at, &h);
		s.at += h.size + head_data(&h);
		if (h.form == FORM_ARRAY || h.form == FORM_MAP)
			(void)scan_enter(&s, &h);
		else
			scan_value_done(&s);
		if (s.depth > before)
			k.first[before] = k.n;
		else if (s.depth < before)
			k.n = k.first[s.depth];
	}
	return why;
}

static int
scan_refuse(const char *why, const char **ret_why)
{
	if (ret_why != NULL)
		*ret_why = why;
	return -EPROTO;
}

/* What is wrong with the value whose header is h, before its data came. */
static const char *
scan_judge(const struct rpc_scan *s, const struct head *h)
{
	if (h->form == FORM_BAD)
		return "a type that is not used here";
	if (scan_expects_key(s) && h->form != FORM_STR)
		return "a map key that is no string";
	if (h->size + head_data(h) > RPC_MSG_MAX - s->at)
		return "too long";
	return NULL;
}

int
rpc_scan(struct rpc_scan *s, const uint8_t *data, size_t len, size_t *ret_len,
    const char **ret_why)
{
	const char *why;

	if (s->items == 0)
		s->items = 1;
	do {
		struct head h;

		if (s->at >= RPC_MSG_MAX)
			return scan_refuse("too long", ret_why);
		if (!head_read(data + s->at, len - s->at, &h))
			return 0;
		why = scan_judge(s, &h);
		if (why != NULL)
			return scan_refuse(why, ret_why);
		if (h.size + head_data(&h) > len - s->at)
			return 0;
		s->at += h.size + head_data(&h);
		if (h.form == FORM_ARRAY || h.form == FORM_MAP)
			why = scan_enter(s, &h);
		else
			scan_value_done(s);
		if (why != NULL)
			return scan_refuse(why, ret_why);
	} while (s->depth > 0);
	why = scan_keys(data, s->at);
	if (why != NULL)
		return scan_refuse(why, ret_why);
	*ret_len = s->at;
	return 1;
}

/* ---------------------------------------------------------------- unpack */

/*
 * Puts a NUL behind a string. The unpacker leaves strings in our copy of the
 * bytes, and each has at least one header byte in front that nobody reads any
 * more: the string moves there by one. Children come after their parents in
 * the bytes and nothing overlaps, so every string is moved once.
 */
static void
terminate(msgpack_object *o)
{
	char *to;

	/* the unpacker gives an empty one a stale pointer (4.0.0) */
	if (o->via.str.size == 0) {
		o->via.str.ptr = "";
		return;
	}
	to = (char *)(uintptr_t)o->via.str.ptr - 1;
	memmove(to, o->via.str.ptr, o->via.str.size);
	to[o->via.str.size] = '\0';
	o->via.str.ptr = to;
}

/* Recursion is bounded by RPC_DEPTH_MAX. */
static void
terminate_all(msgpack_object *o)
{
	if (o->type == MSGPACK_OBJECT_STR) {
		terminate(o);
	} else if (o->type == MSGPACK_OBJECT_ARRAY) {
		for (uint32_t i = 0; i < o->via.array.size; i++)
			terminate_all(&o->via.array.ptr[i]);
	} else if (o->type == MSGPACK_OBJECT_MAP) {
		for (uint32_t i = 0; i < o->via.map.size; i++) {
			terminate_all(&o->via.map.ptr[i].key);
			terminate_all(&o->via.map.ptr[i].val);
		}
	}
}

static bool
object_uint(const msgpack_object *o, uint64_t max, uint64_t *ret)
{
	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER || o->via.u64 > max)
		return false;
	*ret = o->via.u64;
	return true;
}

/* A string without a NUL inside. */
static bool
object_text(const msgpack_object *o)
{
	return o->type == MSGPACK_OBJECT_STR &&
	    memchr(o->via.str.ptr, '\0', o->via.str.size) == NULL;
}

/* method and [map] */
static bool
read_call(const msgpack_object *o, struct rpc_message *m)
{
	if (!object_text(&o[0]) || o[1].type != MSGPACK_OBJECT_ARRAY ||
	    o[1].via.array.size != 1 ||
	    o[1].via.array.ptr[0].type != MSGPACK_OBJECT_MAP)
		return false;
	m->method = o[0].via.str.ptr;
	m->params = &o[1].via.array.ptr[0];
	return true;
}

/* error and result: a map or nil, not both of one kind. */
static bool
read_answer(const msgpack_object *o, struct rpc_message *m)
{
	for (int i = 0; i < 2; i++)
		if (o[i].type != MSGPACK_OBJECT_NIL &&
		    o[i].type != MSGPACK_OBJECT_MAP)
			return false;
	m->error = o[0].type == MSGPACK_OBJECT_MAP ? &o[0] : NULL;
	m->result = o[1].type == MSGPACK_OBJECT_MAP ? &o[1] : NULL;
	return (m->error == NULL) != (m->result == NULL);
}

static bool
read_message(const msgpack_object *o, struct rpc_message *m)
{
	static const uint32_t sizes[] = { 4, 4, 3 };
	const msgpack_object *part;
	uint64_t type, id;

	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size == 0)
		return false;
	part = o->via.array.ptr;
	if (!object_uint(&part[0], RPC_NOTIFY, &type) ||
	    o->via.array.size != sizes[type])
		return false;
	m->type = (enum rpc_type)type;
	if (type == RPC_NOTIFY)
		return read_call(&part[1], m);
	if (!object_uint(&part[1], UINT32_MAX, &id))
		return false;
	m->id = (uint32_t)id;
	return type == RPC_REQUEST ? read_call(&part[2], m) :
				     read_answer(&part[2], m);
}

int
rpc_unpack(const uint8_t *data, size_t len, struct rpc_message *ret)
{
	msgpack_unpack_return st;
	size_t off = 0;

	memset(ret, 0, sizeof(*ret));
	ret->bytes = malloc(len == 0 ? 1 : len);
	if (ret->bytes == NULL)
		return -ENOMEM;
	memcpy(ret->bytes, data, len);
	msgpack_unpacked_init(&ret->tree);
	st = msgpack_unpack_next(&ret->tree, (const char *)ret->bytes, len,
	    &off);
	if (st == MSGPACK_UNPACK_NOMEM_ERROR) {
		rpc_done(ret);
		return -ENOMEM;
	}
	if (st != MSGPACK_UNPACK_SUCCESS || off != len) {
		rpc_done(ret);
		return -EPROTO;
	}
	terminate_all(&ret->tree.data);
	if (!read_message(&ret->tree.data, ret)) {
		rpc_done(ret);
		return -EPROTO;
	}
	return 0;
}

void
rpc_done(struct rpc_message *m)
{
	if (m->bytes == NULL)
		return;
	msgpack_unpacked_destroy(&m->tree);
	free(m->bytes);
	memset(m, 0, sizeof(*m));
}

/* ---------------------------------------------------------------- checks */

bool
rpc_label_ok(const char *text, size_t len)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@/-";

	if (len == 0 || len > RPC_LABEL_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] == '\0' || strchr(letters, text[i]) == NULL)
			return false;
	return true;
}

static const char *
check_range(uint64_t value, const struct rpc_param *row)
{
	if (value < row->min || value > row->max)
		return "is out of range";
	return NULL;
}

static const char *
check_bool(const msgpack_object *o, const struct rpc_param *row)
{
	(void)row;
	return o->type == MSGPACK_OBJECT_BOOLEAN ? NULL : "is not a boolean";
}

static const char *
check_uint(const msgpack_object *o, const struct rpc_param *row)
{
	uint64_t value;

	if (!object_uint(o, UINT64_MAX, &value))
		return "is not a non-negative integer";
	return check_range(value, row);
}

static const char *
check_num(const msgpack_object *o, const struct rpc_param *row)
{
	if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
		return check_range(o->via.u64, row);
	if (o->type != MSGPACK_OBJECT_FLOAT32 &&
	    o->type != MSGPACK_OBJECT_FLOAT64)
		return "is not a number";
	/* written so that a NaN is refused */
	if (!(o->via.f64 >= (double)row->min && o->via.f64 <= (double)row->max))
		return "is out of range";
	return NULL;
}

static const char *
check_str(const msgpack_object *o, const struct rpc_param *row)
{
	if (o->type != MSGPACK_OBJECT_STR)
		return "is not a string";
	if (!object_text(o))
		return "has a NUL inside";
	if (o->via.str.size < row->min)
		return "is empty or too short";
	return o->via.str.size > row->max ? "is too long" : NULL;
}

static const char *
check_label(const msgpack_object *o, const struct rpc_param *row)
{
	const char *why = check_str(o, row);

	if (why == NULL && !rpc_label_ok(o->via.str.ptr, o->via.str.size))
		why = "is not a label of A-Z a-z 0-9 . _ : @ / -";
	return why;
}

static const char *
check_bin(const msgpack_object *o, const struct rpc_param *row)
{
	if (o->type != MSGPACK_OBJECT_BIN)
		return "is not binary";
	return check_range(o->via.bin.size, row);
}

static const struct rpc_param any_text = { "", RPC_STR, true, 0, RPC_STR_MAX };

static const char *
check_strs(const msgpack_object *o, const struct rpc_param *row)
{
	if (o->type != MSGPACK_OBJECT_ARRAY)
		return "is not an array";
	for (uint32_t i = 0; i < o->via.array.size; i++)
		if (check_str(&o->via.array.ptr[i], &any_text) != NULL)
			return "has an entry that is no string";
	return check_range(o->via.array.size, row);
}

static const char *
check_dict(const msgpack_object *o, const struct rpc_param *row)
{
	if (o->type != MSGPACK_OBJECT_MAP)
		return "is not a map";
	for (uint32_t i = 0; i < o->via.map.size; i++)
		if (check_str(&o->via.map.ptr[i].key, &any_text) != NULL ||
		    check_str(&o->via.map.ptr[i].val, &any_text) != NULL)
			return "has an entry that is no string";
	return check_range(o->via.map.size, row);
}

static const char *
check_map(const msgpack_object *o, const struct rpc_param *row)
{
	if (o->type != MSGPACK_OBJECT_MAP)
		return "is not a map";
	return check_range(o->via.map.size, row);
}

static const char *
check_maps(const msgpack_object *o, const struct rpc_param *row)
{
	if (o->type != MSGPACK_OBJECT_ARRAY)
		return "is not an array";
	for (uint32_t i = 0; i < o->via.array.size; i++)
		if (o->via.array.ptr[i].type != MSGPACK_OBJECT_MAP)
			return "has an entry that is no map";
	return check_range(o->via.array.size, row);
}

static const char *
check_any(const msgpack_object *o, const struct rpc_param *row)
{
	(void)o;
	(void)row;
	return NULL;
}

static const char *(*const checks[])(const msgpack_object *,
    const struct rpc_param *) = {
	[RPC_BOOL] = check_bool,
	[RPC_UINT] = check_uint,
	[RPC_NUM] = check_num,
	[RPC_STR] = check_str,
	[RPC_LABEL] = check_label,
	[RPC_BIN] = check_bin,
	[RPC_STRS] = check_strs,
	[RPC_DICT] = check_dict,
	[RPC_MAP] = check_map,
	[RPC_MAPS] = check_maps,
	[RPC_ANY] = check_any,
};

/* A key that a client chose, as far as it may be shown. */
static void
set_field(char ret[RPC_FIELD_MAX], const char *name, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < RPC_FIELD_MAX - 1; i++)
		ret[n++] = (name[i] > ' ' && name[i] < 0x7f) ? name[i] : '?';
	ret[n] = '\0';
}

static const struct rpc_param *
find_row(const msgpack_object *key, const struct rpc_param *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(table[i].name) == key->via.str.size &&
		    memcmp(table[i].name, key->via.str.ptr,
			key->via.str.size) == 0)
			return &table[i];
	return NULL;
}

static int
check_refuse(char ret_field[RPC_FIELD_MAX], const char **ret_why,
    const char *name, size_t len, const char *why)
{
	set_field(ret_field, name, len);
	*ret_why = why;
	return -EINVAL;
}

int
rpc_check(const msgpack_object *map, const struct rpc_param *table, size_t n,
    char ret_field[RPC_FIELD_MAX], const char **ret_why)
{
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object *key = &map->via.map.ptr[i].key;
		const msgpack_object *val = &map->via.map.ptr[i].val;
		const struct rpc_param *row = find_row(key, table, n);
		const char *why = NULL;

		if (row == NULL)
			why = "is not known here";
		else if (val->type != MSGPACK_OBJECT_NIL)
			why = checks[row->kind](val, row);
		if (why != NULL)
			return check_refuse(ret_field, ret_why,
			    key->via.str.ptr, key->via.str.size, why);
	}
	for (size_t i = 0; i < n; i++)
		if (table[i].required && rpc_find(map, table[i].name) == NULL)
			return check_refuse(ret_field, ret_why, table[i].name,
			    strlen(table[i].name), "is missing");
	return 0;
}

/* ---------------------------------------------------------------- access */

const msgpack_object *
rpc_find(const msgpack_object *map, const char *name)
{
	size_t len = strlen(name);

	if (map == NULL || map->type != MSGPACK_OBJECT_MAP)
		return NULL;
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];

		if (kv->key.via.str.size == len &&
		    memcmp(kv->key.via.str.ptr, name, len) == 0)
			return kv->val.type == MSGPACK_OBJECT_NIL ? NULL :
								    &kv->val;
	}
	return NULL;
}

/* The value when it has that type. */
static const msgpack_object *
find_typed(const msgpack_object *map, const char *name,
    msgpack_object_type type)
{
	const msgpack_object *o = rpc_find(map, name);

	return o != NULL && o->type == type ? o : NULL;
}

const char *
rpc_str(const msgpack_object *map, const char *name)
{
	const msgpack_object *o = find_typed(map, name, MSGPACK_OBJECT_STR);

	return o != NULL ? o->via.str.ptr : NULL;
}

uint64_t
rpc_u64(const msgpack_object *map, const char *name, uint64_t fallback)
{
	const msgpack_object *o =
	    find_typed(map, name, MSGPACK_OBJECT_POSITIVE_INTEGER);

	return o != NULL ? o->via.u64 : fallback;
}

double
rpc_num(const msgpack_object *map, const char *name, double fallback)
{
	const msgpack_object *o = rpc_find(map, name);

	if (o == NULL)
		return fallback;
	if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
		return (double)o->via.u64;
	if (o->type == MSGPACK_OBJECT_FLOAT32 ||
	    o->type == MSGPACK_OBJECT_FLOAT64)
		return o->via.f64;
	return fallback;
}

bool
rpc_bool(const msgpack_object *map, const char *name, bool fallback)
{
	const msgpack_object *o = find_typed(map, name, MSGPACK_OBJECT_BOOLEAN);

	return o != NULL ? o->via.boolean : fallback;
}

struct rpc_span
rpc_bin(const msgpack_object *map, const char *name)
{
	const msgpack_object *o = find_typed(map, name, MSGPACK_OBJECT_BIN);

	if (o == NULL)
		return (struct rpc_span){ NULL, 0 };
	return (struct rpc_span){ (const uint8_t *)o->via.bin.ptr,
		o->via.bin.size };
}

const msgpack_object *
rpc_map(const msgpack_object *map, const char *name)
{
	return find_typed(map, name, MSGPACK_OBJECT_MAP);
}

size_t
rpc_count(const msgpack_object *map, const char *name)
{
	const msgpack_object *o = rpc_find(map, name);

	if (o != NULL && o->type == MSGPACK_OBJECT_ARRAY)
		return o->via.array.size;
	if (o != NULL && o->type == MSGPACK_OBJECT_MAP)
		return o->via.map.size;
	return 0;
}

/* The i-th entry of an array when it has that type. */
static const msgpack_object *
entry_typed(const msgpack_object *map, const char *name, size_t i,
    msgpack_object_type type)
{
	const msgpack_object *o = find_typed(map, name, MSGPACK_OBJECT_ARRAY);

	if (o == NULL || i >= o->via.array.size ||
	    o->via.array.ptr[i].type != type)
		return NULL;
	return &o->via.array.ptr[i];
}

const char *
rpc_str_at(const msgpack_object *map, const char *name, size_t i)
{
	const msgpack_object *o = entry_typed(map, name, i, MSGPACK_OBJECT_STR);

	return o != NULL ? o->via.str.ptr : NULL;
}

const msgpack_object *
rpc_map_at(const msgpack_object *map, const char *name, size_t i)
{
	return entry_typed(map, name, i, MSGPACK_OBJECT_MAP);
}

bool
rpc_pair_at(const msgpack_object *map, const char *name, size_t i,
    const char **ret_key, const char **ret_value)
{
	const msgpack_object *o = find_typed(map, name, MSGPACK_OBJECT_MAP);
	const msgpack_object_kv *kv;

	if (o == NULL || i >= o->via.map.size)
		return false;
	kv = &o->via.map.ptr[i];
	if (kv->val.type != MSGPACK_OBJECT_STR)
		return false;
	*ret_key = kv->key.via.str.ptr;
	*ret_value = kv->val.via.str.ptr;
	return true;
}

/* ---------------------------------------------------------------- events */

static const char *const event_names[RPC_EVENT_COUNT] = {
#define METHOD_BEGIN(id, name, who, errors, doc)
#define PARAM(name, kind, need, min, max, doc)
#define RESULT(name, type, doc)
#define METHOD_END(id)
#define EVENT_BEGIN(id, name, doc) [RPC_EVENT_##id] = (name),
#define FIELD(name, type, doc)
#define EVENT_END(id)
#include "protocol/methods.def"
#include "protocol/methods_undef.h"
};

const char *
rpc_event_name(unsigned type)
{
	return type < RPC_EVENT_COUNT ? event_names[type] : "unknown";
}

int
rpc_event_find(const char *name)
{
	for (int i = 0; i < RPC_EVENT_COUNT; i++)
		if (strcmp(event_names[i], name) == 0)
			return i;
	return -1;
}
