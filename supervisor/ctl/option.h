/*
 * Option tables: each subcommand declares its options once. Long options take
 * "--name value" and "--name=value", short ones "-C value" and "-Cvalue".
 * Options end at "--" or at the first argument that is none. Every table
 * without rows of these names takes --help and -h.
 */
#ifndef CTL_OPTION_H
#define CTL_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option_row;

/* Stores a value (NULL for a flag) at `place`. Returns NULL, or why it is
 * wrong (static text). */
typedef const char *option_fn(void *place, const char *value);

struct option_row {
	const char *name; /* with its dashes */
	bool value; /* takes one */
	option_fn *fn; /* NULL: known, but not in this version */
	size_t offset; /* of the place, in the struct given */
	const char *arg; /* of the value, for people; NULL without one */
	const char *what; /* it does, one line */
};

/*
 * Reads the options of argv[1..]. Returns the index of the first argument that
 * is no option (behind "--"), or -1 after saying what is wrong.
 * ret_dashes (may be NULL): whether "--" ended the options. --help and -h
 * print the table on standard output and exit(3), status 0.
 */
int option_read(const char *command, const struct option_row *rows, size_t n,
    void *into, int argc, char **argv, bool *ret_dashes);

/* What --help prints in front of the table: the arguments behind the command,
 * and what it does. Borrowed. */
void option_about(const char *arguments, const char *what);

/* Decimal, min..max. 0, -EINVAL, -ERANGE. */
int option_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* Usual places: bool, const char *, uint64_t (three), double. */
option_fn option_set_flag;
option_fn option_set_text;
option_fn option_set_size;
option_fn option_set_time;
option_fn option_set_count;
option_fn option_set_decimal;

/* A list that grows; values are borrowed. */
#define OPTION_LIST_MAX 256
struct option_list {
	size_t n;
	const char *items[OPTION_LIST_MAX];
};
option_fn option_add_text;

#endif
