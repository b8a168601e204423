/*
 * launcherd: reads what the probe's programs print. The rows come from inside
 * a sandbox whose confinement is just being tested: bounded, no I/O, and
 * nothing counts as success but the exact form.
 */
#include "launcherd/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"

#define NAME_MAX_BYTES 32

struct line {
	char name[NAME_MAX_BYTES + 1];
	bool ok;
	char detail[PROBE_DETAIL_MAX + 1];
};

/* "name ok|fail detail" */
static bool
read_line(const char *text, size_t len, struct line *ret)
{
	const char *space = memchr(text, ' ', len);
	size_t n;

	if (space == NULL || space == text ||
	    (size_t)(space - text) > NAME_MAX_BYTES ||
	    memchr(text, '\0', len) != NULL)
		return false;
	n = (size_t)(space - text);
	memcpy(ret->name, text, n);
	ret->name[n] = '\0';
	text += n + 1;
	len -= n + 1;
	if (len >= 2 && memcmp(text, "ok", 2) == 0) {
		ret->ok = true;
		n = 2;
	} else if (len >= 4 && memcmp(text, "fail", 4) == 0) {
		ret->ok = false;
		n = 4;
	} else {
		return false;
	}
	text += n;
	len -= n;
	if (len > 0 && *text != ' ')
		return false;
	if (len > 0) {
		text++;
		len--;
	}
	(void)log_clean(ret->detail, sizeof(ret->detail), text, len);
	return true;
}

/* A row is taken once; a second one of the same name makes it false. */
static void
take(struct probe_result *row, const struct line *line)
{
	row->available = line->ok && !row->known;
	row->known = true;
	memcpy(row->detail, line->detail, sizeof(row->detail));
}

static void
take_line(struct probe_result rows[PROBE_ROW_COUNT], const struct line *line,
    struct probe_result *rest)
{
	for (unsigned i = 0; i < PROBE_ROW_COUNT; i++)
		if (i != PROBE_NAMESPACES &&
		    strcmp(line->name, probe_row_name(i)) == 0) {
			take(&rows[i], line);
			return;
		}
	/* Identity, capabilities, files, namespaces: all of them carry the
	 * row `namespaces`; the first that failed is named. */
	if (!rest->known)
		rest->available = true;
	rest->known = true;
	if (rest->available && line->ok &&
	    strcmp(line->name, probe_row_name(PROBE_NAMESPACES)) == 0)
		memcpy(rest->detail, line->detail, sizeof(rest->detail));
	if (!line->ok && rest->available) {
		rest->available = false;
		(void)snprintf(rest->detail, sizeof(rest->detail), "%s: %.*s",
		    line->name, PROBE_DETAIL_MAX - NAME_MAX_BYTES - 2,
		    line->detail);
	}
}

void
probe_parse_rows(const char *text, size_t len,
    struct probe_result rows[PROBE_ROW_COUNT])
{
	struct probe_result found[PROBE_ROW_COUNT];
	struct probe_result rest;
	struct line line;
	unsigned long count = 0;
	bool complete = false;

	memset(found, 0, sizeof(found));
	memset(&rest, 0, sizeof(rest));
	while (len > 0 && !complete) {
		const char *end = memchr(text, '\n', len);
		char closing[32];

		if (end == NULL ||
		    !read_line(text, (size_t)(end - text), &line))
			return;
		(void)snprintf(closing, sizeof(closing), "rows=%lu", count);
		if (strcmp(line.name, "end") == 0) {
			if (!line.ok || strcmp(line.detail, closing) != 0)
				return;
			complete = true;
		} else {
			take_line(found, &line, &rest);
			count++;
		}
		len -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	if (!complete || len > 0)
		return;
	if (rest.known)
		found[PROBE_NAMESPACES] = rest;
	for (unsigned i = 0; i < PROBE_ROW_COUNT; i++)
		if (found[i].known)
			rows[i] = found[i];
}

bool
probe_version_ok(const char *text)
{
	static const char word[] = "bubblewrap ";
	unsigned long major, minor;
	char *end;

	if (strncmp(text, word, sizeof(word) - 1) != 0)
		return false;
	text += sizeof(word) - 1;
	if (*text < '0' || *text > '9')
		return false;
	major = strtoul(text, &end, 10);
	if (*end != '.' || end[1] < '0' || end[1] > '9')
		return false;
	minor = strtoul(end + 1, NULL, 10);
	return major > 0 || minor >= 8;
}
