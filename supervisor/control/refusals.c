/*
 * Refusals told by standard error; see refusals.h. A heuristic on purpose: the
 * texts are those of libc, of coreutils and of shells in the C locale, and a
 * line in another language makes no record.
 */
#include "supervisor/control/refusals.h"

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
static const char *const starters[] = { "sh: ", "bash: ", "dash: ", "zsh: ",
	"env: ", "stockade: " };

static enum violation_action
action_of(const char *line)
{
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (strstr(line, actions[i].word) != NULL)
			return actions[i].action;
	for (size_t i = 0; i < ARRAY_LEN(starters); i++)
		if (strncmp(line, starters[i], strlen(starters[i])) == 0)
			return VIOLATION_EXEC;
	return VIOLATION_FILE_READ;
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
		if (*p == '/' && (p == line || strchr(" '\"`(\x98", p[-1]) !=
		    NULL)) {
			p[path_length(p, p < phrase ? phrase :
			    p + strlen(p))] = '\0';
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
	fn(arg, action_of(r->line), target_of(copy, phrase), r->line);
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
