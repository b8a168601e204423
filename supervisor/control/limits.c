/*
 * The limits table and the spelling of its values.  Trusts nothing: texts
 * are the operator's configuration, checked here.
 */
#include "supervisor/control/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/size.h"
#include "supervisor/control/conf_value.h"

const struct limit_info limit_table[LIMIT_ROWS] = {
#define LIMIT_SET(id, word, unit, def, min, max, words, announced) \
	[LIMIT_##id] = { word, announced, LIMIT_##unit, def, min, max, \
		LIMIT_##words },
#include "supervisor/control/limits.def"
};

const struct limit_fixed_info limit_fixed_table[] = {
#define LIMIT_FIXED(id, value, announced) { announced, value },
#include "supervisor/control/limits.def"
};
const size_t limit_fixed_rows = ARRAY_LEN(limit_fixed_table);

static const char *const limit_later[] = {
#define LIMIT_LATER(word) word,
#include "supervisor/control/limits.def"
};

int
limit_find(const char *word, bool *ret_later)
{
	*ret_later = false;
	for (int i = 0; i < LIMIT_ROWS; i++)
		if (strcmp(limit_table[i].word, word) == 0)
			return i;
	for (size_t i = 0; i < ARRAY_LEN(limit_later); i++)
		if (strcmp(limit_later[i], word) == 0)
			*ret_later = true;
	return -1;
}

int
limit_parse(enum limit_id id, const char *text, uint64_t *ret_value)
{
	static int (*const readers[])(const char *, uint64_t *) = {
		[LIMIT_COUNT] = value_count,
		[LIMIT_BYTES] = value_bytes,
		[LIMIT_MS] = value_time_ms,
		[LIMIT_MILLI] = value_milli,
	};
	const struct limit_info *row = &limit_table[id];
	uint64_t value;
	int r;

	if (row->words == LIMIT_MAY_NONE && strcmp(text, "none") == 0) {
		*ret_value = LIMIT_NONE;
		return 0;
	}
	if (row->words == LIMIT_MAY_AUTO && strcmp(text, "auto") == 0) {
		*ret_value = LIMIT_AUTO;
		return 0;
	}
	r = readers[row->unit](text, &value);
	if (r < 0)
		return r;
	if (value < row->min || value > row->max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

const char *
limit_value_form(enum limit_id id)
{
	static const char *const forms[][3] = {
		[LIMIT_COUNT] = { "a number is needed",
		    "a number or none is needed",
		    "a number or auto is needed" },
		[LIMIT_BYTES] = { "a size such as 512M is needed",
		    "a size such as 512M or none is needed",
		    "a size such as 512M or auto is needed" },
		[LIMIT_MS] = { "a time such as 30s, 5m or 2h is needed",
		    "a time such as 30s, 5m or 2h, or none is needed",
		    "a time such as 30s, 5m or 2h, or auto is needed" },
		[LIMIT_MILLI] = { "a number such as 1.5 is needed",
		    "a number such as 1.5 or none is needed",
		    "a number such as 1.5 or auto is needed" },
	};
	const struct limit_info *row = &limit_table[id];

	return forms[row->unit][row->words];
}

void
limit_format(enum limit_id id, uint64_t value, char ret_text[LIMIT_TEXT])
{
	limit_format_unit(limit_table[id].unit, value, ret_text);
}

void
limit_format_unit(enum limit_unit unit, uint64_t value,
    char ret_text[LIMIT_TEXT])
{
	if (value == LIMIT_NONE)
		(void)snprintf(ret_text, LIMIT_TEXT, "none");
	else if (value == LIMIT_AUTO)
		(void)snprintf(ret_text, LIMIT_TEXT, "auto");
	else if (unit == LIMIT_BYTES)
		value_format_bytes(value, ret_text, LIMIT_TEXT);
	else if (unit == LIMIT_MS)
		value_format_time_ms(value, ret_text, LIMIT_TEXT);
	else if (unit == LIMIT_MILLI)
		value_format_milli(value, ret_text, LIMIT_TEXT);
	else
		(void)snprintf(ret_text, LIMIT_TEXT, "%llu",
		    (unsigned long long)value);
}
