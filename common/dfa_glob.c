/*
 * Reads a pattern of SPEC D8. Patterns come from clients: one pass, storage
 * bounded by the pattern's length, and what two readers could understand
 * differently is refused.
 */
#include "common/dfa_glob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/dfa.h"

static void
set_add(struct dfa_set *set, unsigned char byte)
{
	if (byte != '/' && byte != 0)
		set->bits[byte >> 6] |= (uint64_t)1 << (byte & 63);
}

/* The other case of every ASCII letter; other bytes have none. */
static void
set_fold(struct dfa_set *set)
{
	for (unsigned char low = 'a'; low <= 'z'; low++) {
		unsigned char up = (unsigned char)(low - 'a' + 'A');

		if (dfa_set_has(set, low))
			set_add(set, up);
		else if (dfa_set_has(set, up))
			set_add(set, low);
	}
}

/* The ']' of the class that begins at text[0] == '[', or NULL. One that
 * stands first is a member. */
static const char *
class_end(const char *text, const char *end)
{
	if (end - text < 3)
		return NULL;
	return memchr(text + 2, ']', (size_t)(end - text - 2));
}

/* Members between the brackets. NULL, or why not. */
static const char *
read_class(const char *p, const char *end, struct dfa_set *set)
{
	if ((*p == '!' || *p == '^') && end - p > 1)
		return "a class has no negation";
	while (p < end) {
		unsigned char low = (unsigned char)*p, high = low;

		if (end - p >= 3 && p[1] == '-') {
			high = (unsigned char)p[2];
			p += 2;
		}
		if (high < low)
			return "a range of a class goes backwards";
		for (unsigned byte = low; byte <= high; byte++)
			set_add(set, (unsigned char)byte);
		p++;
	}
	return NULL;
}

/* Every byte of a name. */
static void
set_fill(struct dfa_set *set)
{
	for (unsigned byte = 1; byte < 256; byte++)
		set_add(set, (unsigned char)byte);
}

/* One atom at *p, which moves behind it. */
static const char *
read_atom(const char **p, const char *end, bool ignore_case,
    struct dfa_atom *atom)
{
	const char *close, *why;

	memset(atom, 0, sizeof(*atom));
	if (**p == '*') {
		atom->star = true;
		while (*p < end && **p == '*')
			(*p)++;
		return NULL;
	}
	close = **p == '[' ? class_end(*p, end) : NULL;
	if (close != NULL) {
		why = read_class(*p + 1, close, &atom->set);
		if (why != NULL)
			return why;
		*p = close + 1;
	} else if (**p == '?') {
		set_fill(&atom->set);
		(*p)++;
	} else {
		set_add(&atom->set, (unsigned char)**p);
		(*p)++;
	}
	if (ignore_case)
		set_fold(&atom->set);
	return NULL;
}

/* One component, of which the storage has room for every byte. */
static const char *
read_part(const char *p, const char *end, bool ignore_case,
    struct dfa_glob *glob)
{
	struct dfa_part *part = &glob->parts[glob->nparts];
	size_t len = (size_t)(end - p), bytes = 0;
	const char *why;

	if (len == 0)
		return "an empty component";
	if (strncmp(p, "..", len) == 0 && len <= 2)
		return "a component \".\" or \"..\"";
	if (len == 2 && strncmp(p, "**", len) == 0) {
		if (glob->nparts > 0 && part[-1].any)
			return NULL;
		*part = (struct dfa_part){ .any = true };
		glob->nparts++;
		return NULL;
	}
	*part = (struct dfa_part){ .first = glob->natoms };
	while (p < end) {
		struct dfa_atom *atom = &glob->atoms[glob->natoms];

		why = read_atom(&p, end, ignore_case, atom);
		if (why != NULL)
			return why;
		bytes += !atom->star;
		glob->natoms++;
		part->natoms++;
	}
	/* A lone star is a name, which the root itself has not. */
	if (bytes == 0) {
		struct dfa_atom *atom = &glob->atoms[glob->natoms++];

		memset(atom, 0, sizeof(*atom));
		set_fill(&atom->set);
		part->natoms++;
	}
	if (bytes > DFA_NAME_MAX)
		return "a component longer than a name can be";
	glob->nparts++;
	return NULL;
}

static const char *
read_parts(const char *text, size_t len, bool ignore_case,
    struct dfa_glob *glob)
{
	const char *p = text, *end = text + len, *slash, *why;

	if (*p == '/')
		p++;
	else
		glob->parts[glob->nparts++] = (struct dfa_part){ .any = true };
	for (;;) {
		slash = memchr(p, '/', (size_t)(end - p));
		why = read_part(p, slash == NULL ? end : slash, ignore_case,
		    glob);
		if (why != NULL || slash == NULL)
			return why;
		p = slash + 1;
	}
}

int
dfa_glob_parse(const char *text, bool ignore_case, struct dfa_glob *ret,
    const char **ret_why)
{
	struct dfa_glob glob = { 0 };
	size_t len = strnlen(text, DFA_GLOB_MAX + 1);
	const char *why;

	if (len == 0 || len > DFA_GLOB_MAX) {
		*ret_why =
		    len == 0 ? "an empty pattern" : "the pattern is too long";
		return -EINVAL;
	}
	/* A part takes a byte and a slash, but for the last; and `any`. An atom
	 * takes a byte, and a lone star is two. */
	glob.parts = calloc(len / 2 + 2, sizeof(*glob.parts));
	glob.atoms = calloc(len + len / 2 + 1, sizeof(*glob.atoms));
	if (glob.parts == NULL || glob.atoms == NULL) {
		dfa_glob_done(&glob);
		return -ENOMEM;
	}
	why = read_parts(text, len, ignore_case, &glob);
	if (why != NULL) {
		dfa_glob_done(&glob);
		*ret_why = why;
		return -EINVAL;
	}
	*ret = glob;
	return 0;
}

void
dfa_glob_done(struct dfa_glob *glob)
{
	free(glob->parts);
	free(glob->atoms);
	*glob = (struct dfa_glob){ 0 };
}

bool
dfa_glob_part_matches(const struct dfa_glob *glob, size_t number,
    const char *name, size_t len)
{
	const struct dfa_part *part = &glob->parts[number];
	const struct dfa_atom *atoms = glob->atoms + part->first;
	size_t a = 0, i = 0, star = SIZE_MAX, star_i = 0;

	while (i < len) {
		if (a < part->natoms && atoms[a].star) {
			star = a++;
			star_i = i;
		} else if (a < part->natoms &&
		    dfa_set_has(&atoms[a].set, (unsigned char)name[i])) {
			a++;
			i++;
		} else if (star != SIZE_MAX) { /* the star takes one more */
			a = star + 1;
			i = ++star_i;
		} else {
			return false;
		}
	}
	while (a < part->natoms && atoms[a].star)
		a++;
	return a == part->natoms;
}

const char *
dfa_glob_why(const char *text)
{
	struct dfa_glob glob;
	const char *why = "no memory";

	if (dfa_glob_parse(text, false, &glob, &why) < 0)
		return why;
	dfa_glob_done(&glob);
	return NULL;
}
