/*
 * Tokens become "[redacted]" (SPEC M9, App.8).  Pure, in stockade-control.
 * The text is hostile: every loop moves forward, and what a shape covers is
 * found by one scan to its end.
 */
#include "supervisor/control/redact.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "common/size.h"

/* Input, where in it, and what has been written. */
struct redact {
	const char *in;
	size_t len;
	size_t pos;
	char *out;
	size_t room; /* bytes left, the terminator not counted */
	size_t used;
};

/* A token that is known by how it begins. */
struct shape {
	const char *prefix;
	size_t min; /* bytes that must follow it */
	bool edge; /* only after a byte that is no letter or digit */
};

static const struct shape shapes[] = {
	{ "ghp_", 4, false },
	{ "gho_", 4, false },
	{ "ghs_", 4, false },
	{ "ghu_", 4, false },
	{ "ghr_", 4, false },
	{ "github_pat_", 4, false },
	{ "sk-", 8, true },
	{ "xox", 6, true },
	{ "AKIA", 8, true },
};

static const char *const options[] = { "--token", "--key", "--api-key",
	"--password" };

static bool
is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z');
}

static bool
is_token(char c)
{
	return is_alnum(c) || c == '_' || c == '-';
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool
is_value(char c)
{
	return is_token(c) || (c != '\0' && strchr("._~+/=:", c) != NULL);
}

static bool
starts(const struct redact *r, size_t at, const char *text, bool fold)
{
	size_t n = strlen(text);

	if (at > r->len || r->len - at < n)
		return false;
	return fold ? strncasecmp(r->in + at, text, n) == 0 :
		      memcmp(r->in + at, text, n) == 0;
}

static bool
at_edge(const struct redact *r)
{
	return r->pos == 0 || !is_alnum(r->in[r->pos - 1]);
}

static size_t
skip(const struct redact *r, size_t at, bool (*test)(char))
{
	while (at < r->len && test(r->in[at]))
		at++;
	return at;
}

static void
put(struct redact *r, const char *text, size_t n)
{
	if (n > r->room)
		n = r->room;
	memcpy(r->out + r->used, text, n);
	r->used += n;
	r->room -= n;
}

/* Replace what stands from `from` to `to`; the text before stays. */
static void
replace(struct redact *r, size_t from, size_t to)
{
	put(r, r->in + r->pos, from - r->pos);
	put(r, REDACT_MARK, sizeof(REDACT_MARK) - 1);
	r->pos = to;
}

static bool
try_shape(struct redact *r)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		size_t from = r->pos + strlen(shapes[i].prefix);
		size_t to;

		if (!starts(r, r->pos, shapes[i].prefix, false) ||
		    (shapes[i].edge && !at_edge(r)))
			continue;
		to = skip(r, from, is_token);
		if (to - from < shapes[i].min)
			continue;
		replace(r, r->pos, to);
		return true;
	}
	return false;
}

/* "Bearer X" and "Basic X"; a short word after "Basic" is prose. */
static bool
try_scheme(struct redact *r)
{
	size_t from, to, min;

	if (!at_edge(r))
		return false;
	if (starts(r, r->pos, "bearer", true)) {
		from = r->pos + strlen("bearer");
		min = 1;
	} else if (starts(r, r->pos, "basic", true)) {
		from = r->pos + strlen("basic");
		min = 8;
	} else {
		return false;
	}
	to = skip(r, from, is_blank);
	if (to == from)
		return false;
	from = to;
	to = skip(r, from, is_value);
	if (to - from < min)
		return false;
	replace(r, from, to);
	return true;
}

/* user:pass@ after "://", up to the last '@' before the path. */
static bool
try_userinfo(struct redact *r)
{
	size_t from = r->pos + 3;
	size_t last = 0;
	bool colon = false;

	if (!starts(r, r->pos, "://", false))
		return false;
	for (size_t i = from; i < r->len; i++) {
		char c = r->in[i];

		if (c == '/' || c == '?' || c == '#' || c == '"' || c == '\'' ||
		    (unsigned char)c <= ' ')
			break;
		if (c == '@')
			last = i;
		else if (c == ':' && last == 0)
			colon = true;
	}
	if (last == 0 || !colon)
		return false;
	replace(r, from, last);
	return true;
}

/* The end of an option's value: a quoted text, or up to a blank. */
static size_t
value_end(const struct redact *r, size_t at)
{
	char quote = '\0';

	for (; at < r->len; at++) {
		char c = r->in[at];

		if (quote != '\0') {
			if (c == quote)
				quote = '\0';
		} else if (c == '"' || c == '\'') {
			quote = c;
		} else if ((unsigned char)c <= ' ') {
			break;
		}
	}
	return at;
}

static bool
try_option(struct redact *r)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		size_t from, to;

		if (!at_edge(r) || !starts(r, r->pos, options[i], true))
			continue;
		from = r->pos + strlen(options[i]);
		if (from >= r->len)
			return false;
		if (r->in[from] == '=')
			from++;
		else if (is_blank(r->in[from]))
			from = skip(r, from, is_blank);
		else
			continue;
		to = value_end(r, from);
		if (to == from)
			return false;
		replace(r, from, to);
		return true;
	}
	return false;
}

/* A PEM block up to its last dashes, or to the end of the text. */
static bool
try_pem(struct redact *r)
{
	const char *end, *stop;
	size_t to = r->len;

	if (!starts(r, r->pos, "-----BEGIN ", false))
		return false;
	end = memmem(r->in + r->pos, r->len - r->pos, "-----END ", 9);
	if (end != NULL) {
		size_t after = (size_t)(end - r->in) + 9;

		stop = memmem(r->in + after, r->len - after, "-----", 5);
		if (stop != NULL)
			to = (size_t)(stop - r->in) + 5;
	}
	replace(r, r->pos, to);
	return true;
}

size_t
redact_copy(const char *in, size_t len, char *out, size_t size)
{
	static bool (*const tries[])(struct redact *) = { try_pem, try_option,
		try_shape, try_scheme, try_userinfo };
	struct redact r = { .in = in, .len = len, .out = out };

	if (size == 0)
		return 0;
	r.room = size - 1;
	while (r.pos < r.len && r.room > 0) {
		bool done = false;

		for (size_t i = 0; i < ARRAY_LEN(tries) && !done; i++)
			done = tries[i](&r);
		if (!done)
			put(&r, in + r.pos++, 1);
	}
	out[r.used] = '\0';
	return r.used;
}
