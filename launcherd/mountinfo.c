/*
 * launcherd: one line of /proc/self/mountinfo. The text is the kernel's, but
 * the paths in it are an administrator's or, through FUSE, a user's. Pure.
 */
#include "launcherd/mountinfo.h"

#include <string.h>

/* One field of mountinfo with its octal escapes undone. */
static bool
unescape(const char *field, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; n++) {
		unsigned value = (unsigned char)field[i];

		if (n + 1 >= size)
			return false;
		if (field[i] == '\\' && len - i >= 4) {
			value = 0;
			for (size_t k = 1; k <= 3; k++) {
				if (field[i + k] < '0' || field[i + k] > '7')
					return false;
				value =
				    value * 8 + (unsigned)(field[i + k] - '0');
			}
			i += 4;
		} else {
			i++;
		}
		if (value == 0 || value > 255)
			return false;
		out[n] = (char)value;
	}
	out[n] = '\0';
	return true;
}

/* Digits up to `end`; false for none, or for too many. */
static bool
number(const char *p, const char *end, uint32_t max, uint32_t *ret)
{
	uint32_t n = 0;

	if (p == end)
		return false;
	for (; p < end; p++) {
		if (*p < '0' || *p > '9' || n > max / 10)
			return false;
		n = n * 10 + (uint32_t)(*p - '0');
	}
	*ret = n;
	return n <= max;
}

static bool
device(const char *field, size_t len, uint32_t *ret)
{
	const char *colon = memchr(field, ':', len);
	uint32_t major, minor;

	if (colon == NULL || !number(field, colon, 0xfff, &major) ||
	    !number(colon + 1, field + len, 0xfffff, &minor))
		return false;
	*ret = major << 20 | minor;
	return true;
}

bool
mountinfo_read(const char *line, size_t len, struct mountinfo *ret)
{
	const char *end = line + len;
	const char *fields[6];
	size_t lens[6];
	const char *p = line;
	const char *dash;

	for (size_t i = 0; i < 6; i++) {
		const char *space = memchr(p, ' ', (size_t)(end - p));

		if (space == NULL)
			return false;
		fields[i] = p;
		lens[i] = (size_t)(space - p);
		p = space + 1;
	}
	/* The optional fields may be none. */
	p--;
	dash = memmem(p, (size_t)(end - p), " - ", 3);
	if (dash == NULL)
		return false;
	p = dash + 3;
	dash = memchr(p, ' ', (size_t)(end - p));
	if (dash == NULL || (size_t)(dash - p) >= sizeof(ret->type))
		return false;
	memcpy(ret->type, p, (size_t)(dash - p));
	ret->type[dash - p] = '\0';
	p = memchr(dash + 1, ' ', (size_t)(end - dash - 1));
	if (p == NULL)
		return false;
	ret->options = p + 1;
	ret->options_len = (size_t)(end - p - 1);
	ret->read_only = lens[5] >= 2 && memcmp(fields[5], "ro", 2) == 0 &&
	    (lens[5] == 2 || fields[5][2] == ',');
	return device(fields[2], lens[2], &ret->dev) &&
	    unescape(fields[3], lens[3], ret->root, sizeof(ret->root)) &&
	    unescape(fields[4], lens[4], ret->point, sizeof(ret->point));
}
