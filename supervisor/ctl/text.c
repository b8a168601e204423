/* Output for people, with text that others wrote; see text.h. */
#include "supervisor/ctl/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "protocol/rpc.h"

#define CLEAN_MAX 1024
#define CLEAN_BUFFERS 4
#define BLOCK 1024 /* bytes cleaned at once; each may become four */

static char *
next_buffer(void)
{
	static char buffers[CLEAN_BUFFERS][CLEAN_MAX];
	static unsigned next;

	return buffers[next++ % CLEAN_BUFFERS];
}

const char *
text_clean(const char *raw)
{
	char *buf = next_buffer();

	if (raw == NULL)
		raw = "";
	(void)log_clean(buf, CLEAN_MAX, raw, strlen(raw));
	return buf;
}

/* How many of at most BLOCK bytes to take so that no UTF-8 character is cut:
 * bytes of a character that goes on beyond them are left for the next block. */
static size_t
block_length(const char *text, size_t len)
{
	size_t n = len < BLOCK ? len : BLOCK;
	size_t back = 0;

	if (n == len)
		return n;
	while (back < 3 && (text[n - back] & 0xc0) == 0x80)
		back++;
	/* Four bytes of continuation are no character: take them as they are. */
	return (text[n - back] & 0xc0) == 0x80 ? n : n - back;
}

void
text_put(FILE *to, const char *text, size_t len)
{
	char clean[BLOCK * 4 + 1];

	while (len > 0) {
		size_t n = block_length(text, len);

		(void)log_clean(clean, sizeof(clean), text, n);
		(void)fputs(clean, to);
		text += n;
		len -= n;
	}
}

const char *
text_of(const msgpack_object *map, const char *key, const char *fallback)
{
	const msgpack_object *v = rpc_find(map, key);
	char *buf;

	if (v == NULL)
		return fallback;
	if (v->type == MSGPACK_OBJECT_STR) {
		buf = next_buffer();
		(void)log_clean(buf, CLEAN_MAX, v->via.str.ptr,
		    v->via.str.size);
		return buf;
	}
	if (v->type == MSGPACK_OBJECT_BOOLEAN)
		return v->via.boolean ? "yes" : "no";
	if (v->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return fallback;
	buf = next_buffer();
	(void)snprintf(buf, CLEAN_MAX, "%" PRIu64, v->via.u64);
	return buf;
}

/* ---------------------------------------------------------------- tables */

void
text_table_init(struct text_table *t, size_t ncolumns)
{
	memset(t, 0, sizeof(*t));
	t->ncolumns = ncolumns;
}

/* Out of memory: the cell is left out, and with it the row's order; the tool
 * is about to fail anyway. */
void
text_table_add(struct text_table *t, const char *cell)
{
	if (t->ncells == t->room) {
		size_t room = t->room == 0 ? 64 : t->room * 2;
		char **more = realloc(t->cells, room * sizeof(*more));

		if (more == NULL)
			return;
		t->cells = more;
		t->room = room;
	}
	t->cells[t->ncells++] = strdup(cell);
}

/* Columns of a terminal: continuation bytes take none. */
static size_t
width_of(const char *s)
{
	size_t n = 0;

	for (; s != NULL && *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

void
text_table_print(struct text_table *t, FILE *to)
{
	size_t width[TEXT_COLUMNS_MAX] = { 0 };

	for (size_t i = 0; i < t->ncells; i++) {
		size_t w = width_of(t->cells[i]);

		if (w > width[i % t->ncolumns])
			width[i % t->ncolumns] = w;
	}
	for (size_t i = 0; i < t->ncells; i++) {
		size_t column = i % t->ncolumns, w = width_of(t->cells[i]);

		(void)fputs(t->cells[i] == NULL ? "" : t->cells[i], to);
		if (column + 1 == t->ncolumns || i + 1 == t->ncells)
			(void)putc('\n', to);
		else
			for (; w < width[column] + 2; w++)
				(void)putc(' ', to);
		free(t->cells[i]);
	}
	free(t->cells);
	memset(t, 0, sizeof(*t));
}

/* ---------------------------------------------------------------- trees */

static bool
is_branch(const msgpack_object *v)
{
	return (v->type == MSGPACK_OBJECT_MAP && v->via.map.size > 0) ||
	    (v->type == MSGPACK_OBJECT_ARRAY && v->via.array.size > 0);
}

static void
put_leaf(FILE *to, const msgpack_object *v)
{
	if (v->type == MSGPACK_OBJECT_STR || v->type == MSGPACK_OBJECT_BIN) {
		text_put(to, v->via.str.ptr, v->via.str.size);
		(void)putc('\n', to);
	} else if (v->type == MSGPACK_OBJECT_BOOLEAN) {
		(void)fprintf(to, "%s\n", v->via.boolean ? "yes" : "no");
	} else if (v->type == MSGPACK_OBJECT_POSITIVE_INTEGER) {
		(void)fprintf(to, "%" PRIu64 "\n", v->via.u64);
	} else if (v->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
		(void)fprintf(to, "%" PRId64 "\n", v->via.i64);
	} else if (v->type == MSGPACK_OBJECT_FLOAT32 ||
	    v->type == MSGPACK_OBJECT_FLOAT64) {
		(void)fprintf(to, "%g\n", v->via.f64);
	} else {
		(void)fputs("-\n", to);
	}
}

/* Depth is bounded by the reader, RPC_DEPTH_MAX. */
void
text_tree(FILE *to, const msgpack_object *v, unsigned indent)
{
	bool map = v->type == MSGPACK_OBJECT_MAP;
	uint32_t n = map ? v->via.map.size : v->via.array.size;

	if (!is_branch(v)) {
		put_leaf(to, v);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		const msgpack_object *item =
		    map ? &v->via.map.ptr[i].val : &v->via.array.ptr[i];

		(void)fprintf(to, "%*s", (int)(indent * 2), "");
		if (map)
			(void)fprintf(to, "%s:",
			    text_clean(v->via.map.ptr[i].key.via.str.ptr));
		else
			(void)putc('-', to);
		if (is_branch(item)) {
			(void)putc('\n', to);
			text_tree(to, item, indent + 1);
		} else {
			(void)putc(' ', to);
			put_leaf(to, item);
		}
	}
}
