/*
 * Refusals told by standard error; see refusals.h. A heuristic on purpose: the
 * texts are those of libc, of coreutils and of shells in the C locale, and a
 * line in another language makes no record.
 */
#include "supervisor/control/refusals.h"

#include <stdbool.h>
#include <string.h>

#include "common/size.h"

static const char *const phrases[] = { "Permission denied",
	"Operation not permitted", "EPERM" };

/* Words of the line, the first that is found decides; else it is a read. */
static const struct {
	const char *word;
	enum violation_action action;
} actions[] = {
	{ "cannot remove", VIOLATION_FILE_UNLINK },
	{ "unlink", VIOLATION_FILE_UNLINK },
	{ "cannot move", VIOLATION_FILE_RENAME },
	{ "rename", VIOLATION_FILE_RENAME },
	{ "link", VIOLATION_FILE_LINK },
	{ "changing ", VIOLATION_FILE_MODE },
	{ "chmod", VIOLATION_FILE_MODE },
	{ "chown", VIOLATION_FILE_MODE },
	{ "cannot create", VIOLATION_FILE_CREATE },
	{ "mkdir", VIOLATION_FILE_CREATE },
	{ "cannot touch", VIOLATION_FILE_CREATE },
	{ "writing", VIOLATION_FILE_DATA },
	{ "truncat", VIOLATION_FILE_DATA },
	{ "exec", VIOLATION_EXEC },
};

/* Who says only the name of what it could not start. */
static const char *const starters[] = { "sh", "bash", "dash", "zsh", "env",
	"stockade" };

/* "program: " at the beginning, if that is not all before the phrase: the
 * bytes of it. */
static size_t
speaker_length(const char *line, const char *phrase)
{
	const char *colon = strstr(line, ": ");

	if (colon == NULL || colon + 2 >= phrase ||
	    memchr(line, ' ', (size_t)(colon - line)) != NULL)
		return 0;
	return (size_t)(colon - line) + 2;
}

static bool
starts_programs(const char *line, size_t speaker)
{
	const char *name = line, *p;
	size_t n;

	if (speaker < 2)
		return false;
	for (p = line; p < line + speaker - 2; p++)
		if (*p == '/')
			name = p + 1;
	n = (size_t)(p - name);
	for (size_t i = 0; i < ARRAY_LEN(starters); i++)
		if (strlen(starters[i]) == n &&
		    strncmp(name, starters[i], n) == 0)
			return true;
	return false;
}

static enum violation_action
action_of(const char *line, size_t speaker)
{
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (strstr(line, actions[i].word) != NULL)
			return actions[i].action;
	return starts_programs(line, speaker) ? VIOLATION_EXEC :
						VIOLATION_FILE_READ;
}

/* Where a path ends: a quote, or a colon or blank behind it. */
static size_t
path_length(const char *path, const char *end)
{
	static const char *const ends[] = { ": ", "'", "\"", "`",
		"\xe2\x80\x99" };
	size_t n = (size_t)(end - path);
	const char *at;

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		at = strstr(path, ends[i]);
		if (at != NULL && (size_t)(at - path) < n)
			n = (size_t)(at - path);
	}
	return n;
}

/* The first absolute path, or the words before the phrase; `line` is cut where
 * the target ends. */
static const char *
target_of(char *line, char *phrase)
{
	char *from = line, *last;

	for (char *p = line; *p != '\0'; p++)
		if (*p == '/' &&
		    (p == line || strchr(" '\"`(\x98", p[-1]) != NULL)) {
			p[path_length(p, p < phrase ? phrase : p + strlen(p))] =
			    '\0';
			return p;
		}
	while (phrase > line && strchr(" :([", phrase[-1]) != NULL)
		phrase--;
	*phrase = '\0';
	last = strrchr(line, ':');
	if (last != NULL && last[1] == ' ' && last[2] != '\0')
		from = last + 2;
	return from;
}

static void
end_line(struct refusals *r, refusals_fn *fn, void *arg)
{
	char copy[REFUSALS_LINE + 1];
	char *phrase = NULL;
	size_t speaker;

	r->line[r->len] = '\0';
	if (r->found < REFUSALS_MAX) {
		memcpy(copy, r->line, r->len + 1);
		for (size_t i = 0; i < ARRAY_LEN(phrases) && phrase == NULL;
		     i++)
			phrase = strstr(copy, phrases[i]);
	}
	r->len = 0;
	if (phrase == NULL)
		return;
	r->found++;
	speaker = speaker_length(copy, phrase);
	fn(arg, action_of(r->line, speaker), target_of(copy + speaker, phrase),
	    r->line);
}

void
refusals_feed(struct refusals *r, const uint8_t *data, size_t len,
    refusals_fn *fn, void *arg)
{
	const uint8_t *end;
	size_t n, room;

	while (len > 0 && r->found < REFUSALS_MAX) {
		end = memchr(data, '\n', len);
		n = end == NULL ? len : (size_t)(end - data);
		room = REFUSALS_LINE - r->len;
		memcpy(r->line + r->len, data, n < room ? n : room);
		r->len += n < room ? n : room;
		if (end == NULL)
			return;
		end_line(r, fn, arg);
		data += n + 1;
		len -= n + 1;
	}
}

void
refusals_end(struct refusals *r, refusals_fn *fn, void *arg)
{
	if (r->len > 0)
		end_line(r, fn, arg);
}
