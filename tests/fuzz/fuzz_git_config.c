/* git_config_parse(): what is told, written out again, is told again. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcherd/lookup/git_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct out {
	char *text;
	size_t len;
	size_t n;
};

static void
put(struct out *o, char c)
{
	o->text[o->len++] = c;
}

static void
put_quoted(struct out *o, const char *value)
{
	put(o, '"');
	for (; *value != '\0'; value++) {
		const char *escaped = strchr("\tt\bb\nn\\\\\"\"", *value);

		if (escaped != NULL && strchr("\t\b\n\\\"", *value) != NULL) {
			put(o, '\\');
			put(o,
			    escaped[*value == '\\' || *value == '"' ? 0 : 1]);
		} else {
			put(o, *value);
		}
	}
	put(o, '"');
}

static void
put_text(struct out *o, const char *s)
{
	while (*s != '\0')
		put(o, *s++);
}

static int
write_entry(void *arg, const struct git_config_entry *e)
{
	struct out *o = arg;

	if (e->section == NULL || e->key == NULL || *e->key == '\0' ||
	    strlen(e->section) > GIT_CONFIG_NAME_MAX ||
	    strlen(e->key) > GIT_CONFIG_NAME_MAX ||
	    (e->value != NULL && strlen(e->value) > GIT_CONFIG_VALUE_MAX))
		abort();
	if (++o->n > 64)
		return 1;
	/* An entry before any section, or behind "[.x]", has an empty one. */
	put_text(o, "[");
	put_text(o, *e->section == '\0' ? "." : e->section);
	put_text(o, "]\n");
	put_text(o, e->key);
	if (e->value != NULL) {
		put_text(o, "=");
		put_quoted(o, e->value);
	}
	put_text(o, "\n");
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* 64 entries of two names and a value, escaped. */
	static char one[1u << 20], two[1u << 20];
	struct out a = { .text = one }, b = { .text = two };
	char *copy = malloc(size + 1);
	int r;

	if (copy == NULL)
		return 0;
	memcpy(copy, data, size);
	r = git_config_parse(copy, size, write_entry, &a);
	if (r == 0 &&
	    (git_config_parse(one, a.len, write_entry, &b) != 0 ||
		b.len != a.len || memcmp(one, two, a.len) != 0))
		abort();
	free(copy);
	return 0;
}
