/*
 * Refusals told by standard error; see refusals.h. A heuristic on purpose: the
 * texts are those of libc, of coreutils and of shells in the C locale, and a
 * line in another language makes no record.
 */
#include "supervisor/control/refusals.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/path.h"
#include "common/size.h"
#include "protocol/plan.h"

#define WORDS_MAX 8 /* of a line are compared with a plan */

static const struct {
	const char *text;
	enum refusal_kind kind;
} phrases[] = {
	{ "Permission denied", REFUSAL_DENIED },
	{ "Operation not permitted", REFUSAL_DENIED },
	{ "EPERM", REFUSAL_DENIED },
	{ "Read-only file system", REFUSAL_READ_ONLY },
	{ "EROFS", REFUSAL_READ_ONLY },
	{ "Device or resource busy", REFUSAL_BUSY },
	{ "EBUSY", REFUSAL_BUSY },
};

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
action_of(enum refusal_kind kind, const char *line, size_t speaker)
{
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (strstr(line, actions[i].word) != NULL)
			return actions[i].action;
	/* Reading and starting fail in neither way. */
	if (kind != REFUSAL_DENIED)
		return VIOLATION_FILE_DATA;
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
	enum refusal_kind kind = REFUSAL_DENIED;
	char *phrase = NULL;
	size_t speaker, *count;

	r->line[r->len] = '\0';
	memcpy(copy, r->line, r->len + 1);
	r->len = 0;
	for (size_t i = 0; i < ARRAY_LEN(phrases) && phrase == NULL; i++) {
		phrase = strstr(copy, phrases[i].text);
		kind = phrases[i].kind;
	}
	count = kind == REFUSAL_DENIED ? &r->found : &r->doubtful;
	if (phrase == NULL || *count >= REFUSALS_MAX)
		return;
	(*count)++;
	speaker = speaker_length(copy, phrase);
	fn(arg, kind, action_of(kind, r->line, speaker),
	    target_of(copy + speaker, phrase), r->line);
}

void
refusals_feed(struct refusals *r, const uint8_t *data, size_t len,
    refusals_fn *fn, void *arg)
{
	const uint8_t *end;
	size_t n, room;

	while (len > 0 &&
	    (r->found < REFUSALS_MAX || r->doubtful < REFUSALS_MAX)) {
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

/* ------------------------------------------------ against a plan */

/*
 * What a comparison costs is bounded: REFUSALS_MAX lines of a command, of each
 * WORDS_MAX words, with PLAN_MASKS_MAX masks.
 */
struct match {
	const struct plan *plan;
	enum refusal_kind kind;
	struct refusal_place *ret;
};

static bool
matches_mask(const struct match *m, const struct plan_mask *mask,
    const char *path)
{
	if (m->kind == REFUSAL_BUSY)
		return strcmp(path, mask->path) == 0;
	return mask->how != PLAN_MASK_PINNED &&
	    path_is_within(path, mask->path);
}

const char *
refusals_mask_remedy(const char *mask)
{
	const char *base = strrchr(mask, '/') + 1;

	if (strstr(mask, "/.git/") != NULL &&
	    (strcmp(base, "config") == 0 ||
		strcmp(base, "config.worktree") == 0))
		return "git -c NAME=VALUE, or set it outside the run";
	return "a change outside the run";
}

static void
tell_mask(const struct match *m, const char *mask)
{
	m->ret->rule = "protected path";
	m->ret->remedy = refusals_mask_remedy(mask);
}

/* The path is in ret->path. */
static bool
match_path(const struct match *m)
{
	const struct plan *plan = m->plan;
	const char *path = m->ret->path;
	const struct plan_mount *mount = NULL;

	if (!path_is_clean(path))
		return false;
	for (size_t i = 0; i < plan->nmasks; i++)
		if (matches_mask(m, &plan->masks[i], path)) {
			tell_mask(m, plan->masks[i].path);
			return true;
		}
	for (size_t i = 0; i < plan->nmounts; i++)
		if (path_is_within(path, plan->mounts[i].target))
			mount = &plan->mounts[i]; /* a later one lies on it */
	if (m->kind == REFUSAL_BUSY || mount == NULL || !mount->read_only)
		return false;
	m->ret->rule = "read-only mount";
	m->ret->remedy = "a writable mount, or a change outside the run";
	return true;
}

/* Whether a mask ends as the word begins: ".git/hooks/x" lies in
 * "/w/.git/hooks". One component alone is too little to tell. */
static bool
match_end(const struct match *m, const char *word)
{
	const char *end = strchr(word, '/');

	for (size_t tries = 0; end != NULL && tries < WORDS_MAX; tries++) {
		size_t n;

		if (end[0] == '\0' || end[1] == '\0')
			return false;
		end += 1 + strcspn(end + 1, "/");
		n = (size_t)(end - word);
		if (m->kind == REFUSAL_BUSY && *end != '\0')
			continue;
		for (size_t i = 0; i < m->plan->nmasks; i++) {
			const char *mask = m->plan->masks[i].path;
			size_t len = strlen(mask);

			if (m->kind != REFUSAL_BUSY &&
			    m->plan->masks[i].how == PLAN_MASK_PINNED)
				continue;
			if (len <= n || mask[len - n - 1] != '/' ||
			    memcmp(mask + len - n, word, n) != 0)
				continue;
			(void)snprintf(m->ret->path, REFUSALS_PATH, "%s%s",
			    mask, end);
			/* Fails if what follows is not clean, and would again
			 * with each mask. */
			return match_path(m);
		}
	}
	return false;
}

static bool
match_word(const struct match *m, const char *text, size_t n)
{
	char word[REFUSALS_LINE + 1];
	const char *dir = m->plan->cwd, *rest = word;

	while (n > 1 && text[n - 1] == '/')
		n--;
	if (n == 0 || n >= sizeof(word))
		return false;
	memcpy(word, text, n);
	word[n] = '\0';
	if (word[0] == '/') {
		(void)snprintf(m->ret->path, REFUSALS_PATH, "%s", word);
		return match_path(m);
	}
	if (strncmp(word, "~/", 2) == 0)
		dir = m->plan->home;
	if (strncmp(word, "~/", 2) == 0 || strncmp(word, "./", 2) == 0)
		rest = word + 2;
	if (dir == NULL ||
	    snprintf(m->ret->path, REFUSALS_PATH, "%s/%s",
		strcmp(dir, "/") == 0 ? "" : dir, rest) >= REFUSALS_PATH)
		return false;
	return match_path(m) || match_end(m, rest);
}

/* Absolute paths, and what is in quotes. */
static bool
match_marked(const struct match *m, const char *line)
{
	size_t tries = 0;

	for (const char *p = line; *p != '\0' && tries < WORDS_MAX; p++) {
		bool quoted = p > line && strchr("'\"`\x98", p[-1]) != NULL;
		bool begins = p == line || strchr(" (", p[-1]) != NULL;
		size_t n = path_length(p, p + strlen(p));

		if (n == 0 || (!quoted && (!begins || *p != '/')))
			continue;
		tries++;
		if (match_word(m, p, n) ||
		    (!quoted && match_word(m, p, strcspn(p, " :,)"))))
			return true;
	}
	return false;
}

bool
refusals_place(const struct plan *plan, enum refusal_kind kind,
    const char *line, struct refusal_place *ret)
{
	const struct match m = { plan, kind, ret };
	const char *end = NULL, *from;

	if (match_marked(&m, line))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(phrases) && end == NULL; i++)
		if (phrases[i].kind == kind)
			end = strstr(line, phrases[i].text);
	/* The word before the phrase: "config file .git/config: Device ..." */
	while (end != NULL && end > line && strchr(" :", end[-1]) != NULL)
		end--;
	for (from = end; from != NULL && from > line && from[-1] != ' ';)
		from--;
	return from != NULL && match_word(&m, from, (size_t)(end - from));
}
