/*
 * Numbers, sizes, times, paths and names as the configuration writes them.
 * Runs in stockade-control.  The text is the operator's, but a slip in it
 * must become an error, never another value.
 */
#include "supervisor/control/conf_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/size.h"

#define VALUE_PATH_MAX 4095
#define VALUE_ACCOUNT_MAX 32
#define VALUE_COMPONENT_MAX 255

struct value_unit {
	char letter;
	uint64_t factor;
};

static const struct value_unit units_bytes[] = {
	{ 'G', UINT64_C(1) << 30 },
	{ 'M', UINT64_C(1) << 20 },
	{ 'K', UINT64_C(1) << 10 },
};

static const struct value_unit units_time[] = {
	{ 'h', UINT64_C(3600) * 1000 },
	{ 'm', UINT64_C(60) * 1000 },
	{ 's', 1000 },
};

/* Digits at *text; the rest is left for the caller. */
static int
read_digits(const char **text, uint64_t *ret)
{
	const char *p = *text;
	uint64_t value = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	*text = p;
	*ret = value;
	return 0;
}

/* The factor of a unit letter that ends the text, or 0. */
static uint64_t
unit_factor(const struct value_unit *units, size_t n, const char *text)
{
	if (text[0] == '\0' || text[1] != '\0')
		return 0;
	for (size_t i = 0; i < n; i++)
		if (units[i].letter == text[0])
			return units[i].factor;
	return 0;
}

static int
read_with_unit(const struct value_unit *units, size_t n, bool required,
    const char *text, uint64_t *ret)
{
	uint64_t value, factor = 1;
	int r;

	r = read_digits(&text, &value);
	if (r < 0)
		return r;
	if (*text != '\0' || required) {
		factor = unit_factor(units, n, text);
		if (factor == 0)
			return -EINVAL;
	}
	if (__builtin_mul_overflow(value, factor, &value))
		return -ERANGE;
	*ret = value;
	return 0;
}

int
value_count(const char *text, uint64_t *ret)
{
	return read_with_unit(NULL, 0, false, text, ret);
}

int
value_bytes(const char *text, uint64_t *ret)
{
	return read_with_unit(units_bytes, ARRAY_LEN(units_bytes), false, text,
	    ret);
}

int
value_time_ms(const char *text, uint64_t *ret)
{
	return read_with_unit(units_time, ARRAY_LEN(units_time), true, text,
	    ret);
}

int
value_milli(const char *text, uint64_t *ret)
{
	uint64_t value, part = 0;
	uint64_t scale = 100;
	int r;

	r = read_digits(&text, &value);
	if (r < 0)
		return r;
	if (*text == '.') {
		text++;
		if (*text == '\0')
			return -EINVAL;
		for (; *text >= '0' && *text <= '9' && scale > 0; text++) {
			part += (uint64_t)(*text - '0') * scale;
			scale /= 10;
		}
	}
	if (*text != '\0')
		return -EINVAL;
	if (__builtin_mul_overflow(value, 1000, &value) ||
	    __builtin_add_overflow(value, part, &value))
		return -ERANGE;
	*ret = value;
	return 0;
}

int
value_port(const char *text, uint16_t *ret)
{
	uint64_t value;
	int r;

	r = value_count(text, &value);
	if (r < 0)
		return r;
	if (value < 1 || value > UINT16_MAX)
		return -ERANGE;
	*ret = (uint16_t)value;
	return 0;
}

int
value_switch(const char *text, bool *ret)
{
	if (strcmp(text, "on") == 0)
		*ret = true;
	else if (strcmp(text, "off") == 0)
		*ret = false;
	else
		return -EINVAL;
	return 0;
}

static void
format_with_unit(const struct value_unit *units, size_t n, uint64_t value,
    char *out, size_t size)
{
	for (size_t i = 0; i < n; i++) {
		if (value == 0 || value % units[i].factor != 0)
			continue;
		(void)snprintf(out, size, "%" PRIu64 "%c",
		    value / units[i].factor, units[i].letter);
		return;
	}
	(void)snprintf(out, size, "%" PRIu64, value);
}

void
value_format_bytes(uint64_t value, char *out, size_t size)
{
	format_with_unit(units_bytes, ARRAY_LEN(units_bytes), value, out, size);
}

void
value_format_time_ms(uint64_t value, char *out, size_t size)
{
	format_with_unit(units_time, ARRAY_LEN(units_time), value, out, size);
}

void
value_format_milli(uint64_t value, char *out, size_t size)
{
	unsigned part = (unsigned)(value % 1000);

	if (part == 0)
		(void)snprintf(out, size, "%" PRIu64, value / 1000);
	else if (part % 100 == 0)
		(void)snprintf(out, size, "%" PRIu64 ".%u", value / 1000,
		    part / 100);
	else if (part % 10 == 0)
		(void)snprintf(out, size, "%" PRIu64 ".%02u", value / 1000,
		    part / 10);
	else
		(void)snprintf(out, size, "%" PRIu64 ".%03u", value / 1000,
		    part);
}

/* "" after a slash at the end is the root directory itself. */
static const char *
components_why(const char *p)
{
	size_t n;

	while (*p != '\0') {
		n = strcspn(p, "/");
		if (n == 0)
			return "the path has an empty component";
		if ((n == 1 && p[0] == '.') ||
		    (n == 2 && p[0] == '.' && p[1] == '.'))
			return "the path has a component \".\" or \"..\"";
		p += n;
		if (*p == '/' && *++p == '\0')
			return "the path has an empty component";
	}
	return NULL;
}

const char *
value_path_why(const char *path, bool home)
{
	if (strlen(path) > VALUE_PATH_MAX)
		return "the path is longer than 4095 bytes";
	if (path[0] == '/')
		return components_why(path + 1);
	if (home && path[0] == '~' && path[1] == '/' && path[2] != '\0')
		return components_why(path + 2);
	return home ? "the path must begin with / or ~/" :
		      "the path must begin with /";
}

bool
value_path_is_pattern(const char *path)
{
	return strpbrk(path, "*?") != NULL;
}

bool
value_path_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return path[0] == '/';
	return strncmp(path, dir, n) == 0 &&
	    (path[n] == '\0' || path[n] == '/');
}

bool
value_account_ok(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > VALUE_ACCOUNT_MAX)
		return false;
	if (strspn(name,
		"abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != n)
		return false;
	/* a leading digit could be read as a number, "-" as an option */
	return strchr("0123456789.-", name[0]) == NULL;
}

bool
value_component_ok(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > VALUE_COMPONENT_MAX)
		return false;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (name[i] == '/' || (unsigned char)name[i] < 0x20 ||
		    name[i] == 0x7f)
			return false;
	return true;
}
