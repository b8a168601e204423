/*
 * Walking a table of name rules, and checking one that comes from outside.
 * Runs in the broker for every write of a run: no allocation, no recursion;
 * each byte is one load. Every index is made of entries that dfa_check() has
 * bounded, and is cut to the 65,536 entries that there are besides.
 */
#include "common/dfa.h"

#include <errno.h>

static const struct dfa_verdict verdict_none = { 0, DFA_RULE_NONE };
static const struct dfa_verdict verdict_too_deep = { DFA_ALL,
	DFA_RULE_TOO_DEEP };

static uint16_t
entry(const struct dfa *dfa, unsigned index)
{
	return dfa->next[index % DFA_NEXT_MAX];
}

void
dfa_walk_start(const struct dfa *dfa, struct dfa_walk *walk)
{
	walk->state = dfa->start;
	walk->depth = 0;
	walk->too_deep = false;
}

void
dfa_walk_name(const struct dfa *dfa, struct dfa_walk *walk, const char *name,
    size_t len)
{
	uint16_t state = 0, class;

	/* A name that the kernel would not take, and a path that a BPF program
	 * could not follow to its root, are refused rather than judged. */
	if (len == 0 || len > DFA_NAME_MAX || walk->depth + 1 >= DFA_DEPTH_MAX)
		walk->too_deep = true;
	if (walk->too_deep)
		return;
	walk->depth++;
	for (size_t i = len; i-- > 0;) {
		if (name[i] == '/')
			walk->too_deep = true;
		state = entry(dfa, state + dfa->cls[(unsigned char)name[i]]);
	}
	class = entry(dfa, state + (unsigned)dfa->ncls);
	walk->state = entry(dfa, walk->state + (unsigned)class);
}

void
dfa_walk_path(const struct dfa *dfa, struct dfa_walk *walk, const char *path,
    size_t len)
{
	size_t end = len, begin;

	while (end > 0 && !walk->too_deep) {
		if (path[end - 1] == '/') {
			end--;
			continue;
		}
		for (begin = end; begin > 0 && path[begin - 1] != '/';)
			begin--;
		dfa_walk_name(dfa, walk, path + begin, end - begin);
		end = begin;
	}
}

struct dfa_verdict
dfa_walk_end(const struct dfa *dfa, const struct dfa_walk *walk, unsigned root)
{
	uint16_t number;

	if (root >= dfa->nroots || root >= DFA_ROOTS_MAX)
		return verdict_too_deep;
	if ((dfa->empty_roots & (1u << root)) != 0)
		return verdict_none;
	if (walk->too_deep)
		return verdict_too_deep;
	number = entry(dfa, walk->state + (unsigned)dfa->nnames + root);
	if (number == 0)
		return verdict_none;
	if (number > dfa->nverdicts || number > DFA_VERDICTS_MAX)
		return verdict_too_deep;
	return dfa->verdict[number - 1];
}

struct dfa_verdict
dfa_match(const struct dfa *dfa, const char *path, size_t len, unsigned root)
{
	struct dfa_walk walk;

	dfa_walk_start(dfa, &walk);
	dfa_walk_path(dfa, &walk, path, len);
	return dfa_walk_end(dfa, &walk, root);
}

/* --- check -------------------------------------------------------------- */

static bool
check_verdicts(const struct dfa *dfa, size_t nrules)
{
	unsigned masks = 0;

	for (size_t i = 0; i < dfa->nverdicts; i++) {
		const struct dfa_verdict *v = &dfa->verdict[i];

		if (v->mask == 0 || (v->mask & ~DFA_ALL) != 0 ||
		    v->rule >= nrules)
			return false;
		masks |= v->mask;
	}
	return masks == dfa->masks;
}

/*
 * Rows of `to` entries that are rows of the same table, and `out` entries of at
 * most `out_max`.
 */
static bool
check_rows(const struct dfa *dfa, uint32_t from, uint32_t end, unsigned to,
    unsigned out, unsigned out_max)
{
	unsigned width = to + out;

	if (end <= from || (end - from) % width != 0)
		return false;
	for (uint32_t row = from; row < end; row += width) {
		for (unsigned k = 0; k < to; k++) {
			uint32_t next = dfa->next[row + k];

			if (next < from || next >= end ||
			    (next - from) % width != 0)
				return false;
		}
		for (unsigned k = to; k < width; k++)
			if (dfa->next[row + k] > out_max)
				return false;
	}
	return true;
}

int
dfa_check(const struct dfa *dfa, size_t nrules)
{
	unsigned roots;

	if (dfa->nroots < 1 || dfa->nroots > DFA_ROOTS_MAX ||
	    nrules > DFA_RULES_MAX || dfa->nverdicts > DFA_VERDICTS_MAX ||
	    dfa->nnext > DFA_NEXT_MAX)
		return -EPROTO;
	roots = (1u << dfa->nroots) - 1;
	if ((dfa->empty_roots & ~roots) != 0)
		return -EPROTO;
	if (dfa->ncls < 1 || dfa->ncls > 256 || dfa->nnames < 1)
		return -EPROTO;
	for (size_t i = 0; i < 256; i++)
		if (dfa->cls[i] >= dfa->ncls)
			return -EPROTO;
	if (!check_verdicts(dfa, nrules) ||
	    !check_rows(dfa, 0, dfa->start, dfa->ncls, 1, dfa->nnames - 1u) ||
	    !check_rows(dfa, dfa->start, dfa->nnext, dfa->nnames, dfa->nroots,
		dfa->nverdicts))
		return -EPROTO;
	return 0;
}
