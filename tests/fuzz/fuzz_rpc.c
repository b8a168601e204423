/*
 * A client's bytes. Properties: scanning in two pieces finds what scanning the
 * whole finds; what the scan passes, the unpacker takes to the last byte; no
 * string of an unpacked request lies outside the copy or lacks its NUL (a
 * sanitizer sees it); checking it against any row never fails but with a
 * field's name. The first byte says where to cut.
 */
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "protocol/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static const struct rpc_param rows[] = {
	{ "sessionId", RPC_LABEL, true, 1, 128 },
	{ "argv", RPC_STRS, false, 1, 4096 },
	{ "env", RPC_DICT, false, 0, 256 },
	{ "data", RPC_BIN, false, 0, 1024 },
	{ "tty", RPC_BOOL, false, 0, 0 },
	{ "rows", RPC_UINT, false, 1, 1000 },
	{ "cpus", RPC_NUM, false, 0, 64 },
	{ "spec", RPC_MAP, false, 0, 64 },
	{ "bindMounts", RPC_MAPS, false, 0, 64 },
	{ "stdin", RPC_ANY, false, 0, 0 },
};

static void
expect(int holds)
{
	if (!holds)
		abort();
}

/* Reads every string as a C string. */
static size_t
touch(const msgpack_object *o)
{
	size_t n = 0;

	if (o->type == MSGPACK_OBJECT_STR) {
		expect(o->via.str.ptr[o->via.str.size] == '\0');
		n = strlen(o->via.str.ptr);
		expect(n <= o->via.str.size);
	} else if (o->type == MSGPACK_OBJECT_ARRAY) {
		for (uint32_t i = 0; i < o->via.array.size; i++)
			n += touch(&o->via.array.ptr[i]);
	} else if (o->type == MSGPACK_OBJECT_MAP) {
		for (uint32_t i = 0; i < o->via.map.size; i++)
			n += touch(&o->via.map.ptr[i].key) +
			    touch(&o->via.map.ptr[i].val);
	}
	return n;
}

static void
check_request(const struct rpc_message *m)
{
	char field[RPC_FIELD_MAX] = "";
	const char *why = NULL;

	expect(m->params->type == MSGPACK_OBJECT_MAP);
	if (rpc_check(m->params, rows, ARRAY_LEN(rows), field, &why) != 0) {
		expect(why != NULL && strlen(field) < RPC_FIELD_MAX);
		return;
	}
	expect(rpc_str(m->params, "sessionId") != NULL);
	for (size_t i = 0; i < rpc_count(m->params, "argv"); i++)
		expect(rpc_str_at(m->params, "argv", i) != NULL);
}

/* The unpacker's own view of the bytes that the scan passed. */
static void
check_unpacker(const uint8_t *data, size_t len)
{
	msgpack_unpacked u;
	size_t off = 0;

	msgpack_unpacked_init(&u);
	expect(msgpack_unpack_next(&u, (const char *)data, len, &off) ==
	    MSGPACK_UNPACK_SUCCESS);
	expect(off == len);
	msgpack_unpacked_destroy(&u);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rpc_scan one = { 0 }, two = { 0 };
	size_t got = 0, again = 0, cut;
	struct rpc_message m;
	int r, s;

	if (len < 1)
		return 0;
	cut = data[0];
	data++;
	len--;
	if (cut > len)
		cut = len;
	r = rpc_scan(&one, data, len, &got, NULL);
	s = rpc_scan(&two, data, cut, &again, NULL);
	if (s == 0)
		s = rpc_scan(&two, data, len, &again, NULL);
	expect(r == s && got == again);
	if (r != 1)
		return 0;
	expect(got <= len && got > 0);
	check_unpacker(data, got);
	if (rpc_unpack(data, got, &m) != 0)
		return 0;
	if (m.type != RPC_ANSWER) {
		(void)touch(m.params);
		check_request(&m);
	}
	rpc_done(&m);
	return 0;
}
