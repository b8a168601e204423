/*
 * One pattern against one path, without a table: forwards, with the last star
 * (of a component) and the last ** (of the path) as the only places to go back
 * to, which is enough for these patterns. Work is at most the product of the
 * two lengths at each level.
 */
#include "common/dfa.h"

#include <string.h>

struct text {
	const char *at;
	size_t len;
};

static unsigned char
fold(unsigned char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte | 0x20) : byte;
}

static bool
in_range(unsigned char byte, unsigned char low, unsigned char high,
    bool fold_it)
{
	unsigned char other = byte;

	if (fold_it && fold(byte) >= 'a' && fold(byte) <= 'z')
		other = byte ^ 0x20;
	return (byte >= low && byte <= high) || (other >= low && other <= high);
}

/* The first atom of a component against one byte; *ret_used: its length. */
static bool
atom_takes(const char *glob, size_t len, unsigned char byte, bool fold_it,
    size_t *ret_used)
{
	const char *close = NULL;
	bool found = false;

	*ret_used = 1;
	if (*glob == '?')
		return true;
	if (*glob == '[' && len >= 3)
		close = memchr(glob + 2, ']', len - 2);
	if (close == NULL)
		return in_range(byte, (unsigned char)*glob,
		    (unsigned char)*glob, fold_it);
	*ret_used = (size_t)(close - glob) + 1;
	for (const char *p = glob + 1; p < close; p++) {
		unsigned char low = (unsigned char)*p, high = low;

		if (close - p >= 3 && p[1] == '-') {
			high = (unsigned char)p[2];
			p += 2;
		}
		found |= in_range(byte, low, high, fold_it);
	}
	return found;
}

static bool
name_matches(struct text glob, struct text name, bool fold_it)
{
	size_t g = 0, n = 0, star = SIZE_MAX, star_n = 0, used;

	while (n < name.len) {
		if (g < glob.len && glob.at[g] == '*') {
			star = ++g;
			star_n = n;
		} else if (g < glob.len &&
		    atom_takes(glob.at + g, glob.len - g,
			(unsigned char)name.at[n], fold_it, &used)) {
			g += used;
			n++;
		} else if (star != SIZE_MAX) { /* the star takes one more */
			g = star;
			n = ++star_n;
		} else {
			return false;
		}
	}
	while (g < glob.len && glob.at[g] == '*')
		g++;
	return g == glob.len;
}

/* The component at *p, which moves behind it and its slash. */
static struct text
take_part(struct text *p)
{
	const char *slash = memchr(p->at, '/', p->len);
	struct text part = { p->at, p->len };

	if (slash != NULL)
		part.len = (size_t)(slash - p->at);
	p->at += part.len + (slash != NULL);
	p->len -= part.len + (slash != NULL);
	return part;
}

static bool
is_any(struct text part)
{
	return part.len == 2 && memcmp(part.at, "**", 2) == 0;
}

static bool
path_matches(struct text glob, bool floating, struct text path, bool fold_it)
{
	struct text any = { NULL, 0 }, any_path = path, rest, left;

	if (floating)
		any = glob;
	while (path.len > 0) {
		rest = glob;
		left = path;
		if (glob.len > 0 && is_any(take_part(&rest))) {
			glob = any = rest;
			any_path = path;
			floating = true;
			continue;
		}
		rest = glob;
		if (glob.len > 0 &&
		    name_matches(take_part(&rest), take_part(&left), fold_it)) {
			glob = rest;
			path = left;
		} else if (floating) { /* ** takes one more */
			(void)take_part(&any_path);
			glob = any;
			path = any_path;
		} else {
			return false;
		}
	}
	while (glob.len > 0)
		if (!is_any(take_part(&glob)))
			return false;
	return true;
}

/* Whether a proper prefix of the pattern, that is more than ** alone and ends
 * before more than that, is the path. */
static bool
prefix_matches(struct text glob, bool floating, struct text path, bool fold_it)
{
	struct text rest = glob, next, prefix;
	bool lone = true, any;

	while (rest.len > 0) {
		struct text part = take_part(&rest);

		any = is_any(part);
		lone &= any;
		if (rest.len == 0 || lone)
			continue;
		next = rest;
		if (any && is_any(take_part(&next)))
			continue;
		prefix = (struct text){ glob.at,
			(size_t)(part.at + part.len - glob.at) };
		if (path_matches(prefix, floating, path, fold_it))
			return true;
	}
	return false;
}

uint16_t
dfa_rule_matches(const char *glob, bool ignore_case, uint16_t mask,
    const char *path, size_t len)
{
	bool floating = *glob != '/';
	struct text g = { glob + !floating, strlen(glob) - !floating };
	struct text p = { path, len };
	bool write = (mask & DFA_WRITE) != 0;

	if (path_matches(g, floating, p, ignore_case))
		return (uint16_t)(mask | (write ? DFA_MOVE : 0));
	if (write && prefix_matches(g, floating, p, ignore_case))
		return DFA_MOVE;
	return 0;
}
