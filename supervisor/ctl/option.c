/* See option.h. In stockadectl; the arguments are its caller's own. */
#include "supervisor/ctl/option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/size.h"
#include "supervisor/ctl/ctl.h"
#include "supervisor/ctl/units.h"

static const char *about_arguments = "";
static const char *about_what = "";

void
option_about(const char *arguments, const char *what)
{
	about_arguments = arguments;
	about_what = what;
}

/* Rows of parts that are not built are not told. */
static void
help(const char *command, const struct option_row *rows, size_t n)
{
	(void)printf("usage: stockadectl %s%s%s\n%s\n\n", command,
	    about_arguments[0] == '\0' ? "" : " ", about_arguments, about_what);
	for (size_t i = 0; i < n; i++) {
		const char *arg = rows[i].arg == NULL ? "" : rows[i].arg;
		int width = 22 - (int)strlen(rows[i].name);

		if (rows[i].fn != NULL)
			(void)printf("  %s %-*s %s\n", rows[i].name,
			    width < 0 ? 0 : width, arg,
			    rows[i].what == NULL ? "" : rows[i].what);
	}
	(void)printf("  -h, --help %12s print this\n\nSee stockadectl(1).\n",
	    "");
	exit(fflush(stdout) == 0 ? CTL_OK : CTL_FAILED);
}

static void
wrong(const char *command, const char *option, const char *why)
{
	char clean[256];

	(void)log_clean(clean, sizeof(clean), option, strlen(option));
	ctl_say("%s: %s: %s", command, clean, why);
}

/* The row of an argument, and its value when it stands in the same word. */
static const struct option_row *
find(const struct option_row *rows, size_t n, const char *arg,
    const char **ret_value)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(rows[i].name);
		bool is_long = rows[i].name[1] == '-';

		*ret_value = NULL;
		if (strncmp(arg, rows[i].name, len) != 0)
			continue;
		if (arg[len] == '\0')
			return &rows[i];
		if (is_long ? arg[len] != '=' : !rows[i].value)
			continue;
		*ret_value = arg + len + (is_long ? 1 : 0);
		return &rows[i];
	}
	return NULL;
}

static int
read_one(const char *command, const struct option_row *row, void *into,
    const char *value)
{
	const char *why;

	if (row->fn == NULL)
		why = "not in this version";
	else if (row->value && value == NULL)
		why = "a value is missing";
	else if (!row->value && value != NULL)
		why = "takes no value";
	else
		why = row->fn((char *)into + row->offset, value);
	if (why == NULL)
		return 0;
	wrong(command, row->name, why);
	return -1;
}

int
option_read(const char *command, const struct option_row *rows, size_t n,
    void *into, int argc, char **argv, bool *ret_dashes)
{
	int i;

	if (ret_dashes != NULL)
		*ret_dashes = false;
	for (i = 1; i < argc; i++) {
		const struct option_row *row;
		const char *value;

		if (strcmp(argv[i], "--") == 0) {
			if (ret_dashes != NULL)
				*ret_dashes = true;
			return i + 1;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0')
			break;
		row = find(rows, n, argv[i], &value);
		if (row == NULL &&
		    (strcmp(argv[i], "--help") == 0 ||
			strcmp(argv[i], "-h") == 0))
			help(command, rows, n);
		if (row == NULL) {
			wrong(command, argv[i],
			    "no such option; see stockadectl(1)");
			return -1;
		}
		if (row->value && value == NULL && i + 1 < argc)
			value = argv[++i];
		if (read_one(command, row, into, value) < 0)
			return -1;
	}
	return i;
}

int
option_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (text[0] == '\0')
		return -EINVAL;
	for (const char *p = text; *p != '\0'; p++) {
		if (*p < '0' || *p > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return -ERANGE;
	}
	if (n < min || n > max)
		return -ERANGE;
	*ret = n;
	return 0;
}

const char *
option_set_flag(void *place, const char *value)
{
	(void)value;
	*(bool *)place = true;
	return NULL;
}

const char *
option_set_text(void *place, const char *value)
{
	*(const char **)place = value;
	return value[0] == '\0' ? "is empty" : NULL;
}

const char *
option_set_size(void *place, const char *value)
{
	return units_size(value, place) < 0 ?
	    "a size is expected, such as 512M or 2G" :
	    NULL;
}

const char *
option_set_time(void *place, const char *value)
{
	return units_time(value, place) < 0 ?
	    "a time is expected, such as 90s, 5m or 1h" :
	    NULL;
}

const char *
option_set_count(void *place, const char *value)
{
	return units_count(value, place) < 0 ? "a number is expected" : NULL;
}

const char *
option_set_decimal(void *place, const char *value)
{
	return units_decimal(value, place) < 0 ?
	    "a number is expected, such as 2 or 1.5" :
	    NULL;
}

const char *
option_add_text(void *place, const char *value)
{
	struct option_list *list = place;

	if (value[0] == '\0')
		return "is empty";
	if (list->n == OPTION_LIST_MAX)
		return "given too often";
	list->items[list->n++] = value;
	return NULL;
}
