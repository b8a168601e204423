/* Numbers of the command line and their short forms; see units.h. */
#include "supervisor/ctl/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/size.h"

struct unit {
	char letter;
	uint64_t factor;
};

/* Digits at *p, which is moved behind them. Not strtoull(3): it takes blanks,
 * signs and "-1". */
static int
read_digits(const char **p, uint64_t *ret)
{
	const char *s = *p;
	uint64_t value = 0;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
			return -ERANGE;
	*p = s;
	*ret = value;
	return 0;
}

/* The row whose letter is the rest of the text, or the first for none. */
static int
read_unit(const char *text, const struct unit *units, size_t n, uint64_t bare,
    uint64_t *ret)
{
	uint64_t value, factor = bare;
	const char *p = text;
	bool known = false;
	int error;

	error = read_digits(&p, &value);
	if (error != 0 && error != -ERANGE)
		return error;
	if (error != 0)
		while (*p >= '0' && *p <= '9')
			p++;
	for (size_t i = 0; i < n; i++) {
		if (p[0] == units[i].letter && p[1] == '\0') {
			factor = units[i].factor;
			known = true;
		}
	}
	if (*p != '\0' && !known)
		return -EINVAL;
	if (error != 0 || __builtin_mul_overflow(value, factor, &value))
		return -ERANGE;
	if (value == 0)
		return -EINVAL;
	*ret = value;
	return 0;
}

int
units_size(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ 'K', 1u << 10 },
		{ 'M', 1u << 20 },
		{ 'G', 1u << 30 },
	};

	return read_unit(text, units, ARRAY_LEN(units), 1, ret_bytes);
}

int
units_time(const char *text, uint64_t *ret_ms)
{
	static const struct unit units[] = {
		{ 's', 1000 },
		{ 'm', 60 * 1000 },
		{ 'h', 60 * 60 * 1000 },
	};

	return read_unit(text, units, ARRAY_LEN(units), 1000, ret_ms);
}

int
units_count(const char *text, uint64_t *ret)
{
	return read_unit(text, NULL, 0, 1, ret);
}

int
units_decimal(const char *text, double *ret)
{
	uint64_t whole, part = 0, scale = 1;
	const char *p = text;
	int error;

	error = read_digits(&p, &whole);
	if (error != 0)
		return error;
	/* Beyond 2^32 the thousandths would be lost in a double. */
	if (whole > UINT32_MAX)
		return -ERANGE;
	if (*p == '.') {
		const char *first = ++p;

		error = read_digits(&p, &part);
		if (error != 0 || p - first > 3)
			return -EINVAL;
		for (; first < p; first++)
			scale *= 10;
	}
	if (*p != '\0' || (whole == 0 && part == 0))
		return -EINVAL;
	*ret = (double)whole + (double)part / (double)scale;
	return 0;
}

const char *
units_size_text(uint64_t bytes, char ret[UNITS_TEXT])
{
	static const char letters[] = "KMGTPE";
	uint64_t unit = 1024, tenths;
	size_t i = 0;

	if (bytes < 1024) {
		(void)snprintf(ret, UNITS_TEXT, "%" PRIu64, bytes);
		return ret;
	}
	while (i + 1 < sizeof(letters) - 1 && bytes / unit >= 1024) {
		unit *= 1024;
		i++;
	}
	/* The rest is below 2^60, so ten of it fit. */
	tenths = bytes % unit * 10 / unit;
	if (bytes / unit < 10 && tenths > 0)
		(void)snprintf(ret, UNITS_TEXT, "%" PRIu64 ".%" PRIu64 "%c",
		    bytes / unit, tenths, letters[i]);
	else
		(void)snprintf(ret, UNITS_TEXT, "%" PRIu64 "%c", bytes / unit,
		    letters[i]);
	return ret;
}

const char *
units_age_text(uint64_t ms, char ret[UNITS_TEXT])
{
	uint64_t s = ms / 1000;

	if (s < 60)
		(void)snprintf(ret, UNITS_TEXT, "%" PRIu64 "s", s);
	else if (s < 60 * 60)
		(void)snprintf(ret, UNITS_TEXT, "%" PRIu64 "m", s / 60);
	else if (s < 24 * 60 * 60)
		(void)snprintf(ret, UNITS_TEXT, "%" PRIu64 "h%02" PRIu64 "m",
		    s / 3600, s / 60 % 60);
	else
		(void)snprintf(ret, UNITS_TEXT, "%" PRIu64 "d%02" PRIu64 "h",
		    s / 86400, s / 3600 % 24);
	return ret;
}
