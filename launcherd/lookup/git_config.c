/*
 * See git_config.h. No recursion; every buffer has its end checked in put().
 */
#include "launcherd/lookup/git_config.h"

#include <errno.h>
#include <string.h>

#define END (-1)

struct buffer {
	char text[GIT_CONFIG_VALUE_MAX + 1];
	size_t len;
	size_t max;
	bool cut;
};

struct reader {
	const char *at;
	const char *end;
	struct buffer section;
	struct buffer key;
	struct buffer value;
};

static void
empty(struct buffer *b, size_t max)
{
	b->len = 0;
	b->max = max;
	b->cut = false;
	b->text[0] = '\0';
}

static void
put(struct buffer *b, int c)
{
	if (b->len == b->max) {
		b->cut = true;
		return;
	}
	b->text[b->len++] = (char)c;
	b->text[b->len] = '\0';
}

/* The next byte; CR LF is LF. */
static int
next(struct reader *r)
{
	if (r->at < r->end && *r->at == '\r' && r->end - r->at > 1 &&
	    r->at[1] == '\n')
		r->at++;
	return r->at < r->end ? (unsigned char)*r->at++ : END;
}

static bool
is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_name(int c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}

static int
lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

static bool
is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static void
skip_line(struct reader *r)
{
	int c;

	do
		c = next(r);
	while (c != '\n' && c != END);
}

/* Behind the name of a section: blanks, "subsection", ']'. */
static int
read_subsection(struct reader *r, int c)
{
	while (is_blank(c))
		c = next(r);
	if (c != '"')
		return -EINVAL;
	for (c = next(r); c != '"'; c = next(r)) {
		if (c == '\\')
			c = next(r);
		if (c == '\n' || c == '\0' || c == END)
			return -EINVAL;
	}
	return next(r) == ']' ? 0 : -EINVAL;
}

/* Behind '['. "[a.b]" is section a, as old versions wrote [a "b"]. */
static int
read_section(struct reader *r)
{
	bool dotted = false;
	int c;

	empty(&r->section, GIT_CONFIG_NAME_MAX);
	for (c = next(r); is_name(c) || c == '.'; c = next(r)) {
		dotted |= c == '.';
		if (!dotted)
			put(&r->section, lower(c));
	}
	if (r->section.cut || (r->section.len == 0 && !dotted))
		return -EINVAL;
	return c == ']' ? 0 : read_subsection(r, c);
}

/* Behind a backslash in a value; END: a line that goes on. */
static int
escaped(struct reader *r)
{
	static const char from[] = "tbn\\\"", to[] = "\t\b\n\\\"";
	int c = next(r);
	const char *p = c == END || c == '\0' ? NULL : strchr(from, c);

	if (c == '\n')
		return END;
	return p != NULL ? to[p - from] : 0;
}

/*
 * Behind '='. Blanks in the middle count when something follows them; a '#' or
 * ';' outside of quotes ends the value.
 */
static int
read_value(struct reader *r)
{
	bool quoted = false;
	size_t kept = 0;
	int c;

	empty(&r->value, GIT_CONFIG_VALUE_MAX);
	for (c = next(r); c != '\n' && c != END; c = next(r)) {
		if (c == '\0')
			return -EINVAL;
		if (!quoted && (c == '#' || c == ';')) {
			skip_line(r);
			break;
		}
		if (!quoted && is_blank(c)) {
			if (r->value.len > 0)
				put(&r->value, c);
			continue;
		}
		if (c == '"') {
			quoted = !quoted;
			kept = r->value.len;
			continue;
		}
		if (c == '\\') {
			c = escaped(r);
			if (c == 0)
				return -EINVAL;
			if (c == END)
				continue;
		}
		put(&r->value, c);
		kept = r->value.len;
	}
	if (quoted)
		return -EINVAL;
	r->value.len = kept;
	r->value.text[kept] = '\0';
	return 0;
}

/* A line that begins with a letter. */
static int
read_entry(struct reader *r, int c, git_config_fn *fn, void *arg)
{
	struct git_config_entry e = { r->section.text, r->key.text, NULL,
		false };

	empty(&r->key, GIT_CONFIG_NAME_MAX);
	for (; is_name(c); c = next(r))
		put(&r->key, lower(c));
	while (is_blank(c))
		c = next(r);
	if (r->key.cut ||
	    (c != '=' && c != '\n' && c != END && c != '#' && c != ';'))
		return -EINVAL;
	if (c == '#' || c == ';')
		skip_line(r);
	if (c == '=') {
		int error = read_value(r);

		if (error < 0)
			return error;
		e.value = r->value.text;
		e.too_long = r->value.cut;
	}
	return fn(arg, &e);
}

int
git_config_parse(const char *data, size_t len, git_config_fn *fn, void *arg)
{
	static const char mark[] = "\xef\xbb\xbf"; /* UTF-8's */
	struct reader r = { .at = data, .end = data + len };
	int c, ret = 0;

	empty(&r.section, GIT_CONFIG_NAME_MAX);
	if (len >= sizeof(mark) - 1 &&
	    memcmp(data, mark, sizeof(mark) - 1) == 0)
		r.at += sizeof(mark) - 1;
	while (ret == 0 && (c = next(&r)) != END) {
		if (c == '\n' || is_blank(c))
			continue;
		if (c == '#' || c == ';')
			skip_line(&r);
		else if (c == '[')
			ret = read_section(&r);
		else if (is_letter(c))
			ret = read_entry(&r, c, fn, arg);
		else
			ret = -EINVAL;
	}
	return ret;
}
