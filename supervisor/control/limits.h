/*
 * The limits of SPEC AB as numbers and as a table.  Rows: limits.def.
 * Data only, no I/O.
 */
#ifndef SUPERVISOR_CONTROL_LIMITS_H
#define SUPERVISOR_CONTROL_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_NONE UINT64_MAX /* no limit: "x > limit" is never true */
#define LIMIT_AUTO (UINT64_MAX - 1) /* computed from the host */
#define LIMIT_TEXT 32 /* buffer of a formatted value */

/* Adjustable rows: LIMIT_EXECS ... index conf->limits[]. */
enum limit_id {
#define LIMIT_SET(id, word, unit, def, min, max, words, announced) LIMIT_##id,
#include "supervisor/control/limits.def"
	LIMIT_ROWS
};

/* Rows that are fixed: LIMIT_FIXED_CALLS ... */
enum limit_fixed_value {
#define LIMIT_FIXED(id, value, announced) LIMIT_FIXED_##id = (int)(value),
#include "supervisor/control/limits.def"
	LIMIT_FIXED_END_
};

enum limit_unit {
	LIMIT_COUNT,
	LIMIT_BYTES,
	LIMIT_MS, /* milliseconds */
	LIMIT_MILLI /* thousandths, e.g. 1.5 cpus is 1500 */
};

/* What may stand in place of a number. */
enum limit_words { LIMIT_NO_WORD, LIMIT_MAY_NONE, LIMIT_MAY_AUTO };

struct limit_info {
	const char *word; /* in the configuration */
	const char *announced; /* field of hello's limits, or NULL */
	enum limit_unit unit;
	uint64_t def;
	uint64_t min;
	uint64_t max;
	enum limit_words words;
};

struct limit_fixed_info {
	const char *announced; /* or NULL */
	uint64_t value;
};

extern const struct limit_info limit_table[LIMIT_ROWS];
extern const struct limit_fixed_info limit_fixed_table[];
extern const size_t limit_fixed_rows;

/* The row of a word, or -1; *ret_later says that the row is not built. */
int limit_find(const char *word, bool *ret_later);

/*
 * Read one value: digits with K M G for bytes, s m h for times, a decimal
 * point for thousandths, `none` and `auto` where the row has them.
 * 0, -EINVAL for the form, -ERANGE outside min..max.
 */
int limit_parse(enum limit_id id, const char *text, uint64_t *ret_value);

/* What a row's value looks like, for an error. */
const char *limit_value_form(enum limit_id id);

/* The shortest text that limit_parse() reads back to the same. */
void limit_format(enum limit_id id, uint64_t value, char ret_text[LIMIT_TEXT]);
void limit_format_unit(enum limit_unit unit, uint64_t value,
    char ret_text[LIMIT_TEXT]);

#endif
