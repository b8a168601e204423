/*
 * Text for people. What came from outside (a run, a host, the service) passes
 * text_clean() or text_put(): control bytes as \xNN, so that it cannot move the
 * cursor, set a title or answer a query (SPEC Y15).
 */
#ifndef CTL_TEXT_H
#define CTL_TEXT_H

#include <msgpack.h>
#include <stddef.h>
#include <stdio.h>

/* A cleaned copy in a buffer that lives until the fourth call after. NULL
 * gives "". At most 1 KiB. */
const char *text_clean(const char *raw);
/* Writes it cleaned; any length, and no character is cut. */
void text_put(FILE *to, const char *raw, size_t len);

/* The cleaned text of a key of a map, `fallback` when absent. Numbers too. */
const char *
text_of(const msgpack_object *map, const char *key, const char *fallback);

/* A table: text is kept until it is printed with columns as wide as needed;
 * the last column is not padded. */
#define TEXT_COLUMNS_MAX 12
struct text_table {
	size_t ncolumns;
	size_t ncells;
	size_t room;
	char **cells;
};
void text_table_init(struct text_table *, size_t ncolumns);
void text_table_add(struct text_table *, const char *cell);
void text_table_print(struct text_table *, FILE *to); /* and frees */

/* A value as indented "key: value" lines. */
void text_tree(FILE *to, const msgpack_object *value, unsigned indent);

#endif
