/*
 * Walking a table of name rules, and checking one that comes from outside.
 * Runs in the broker for every write of a run: no allocation, no recursion;
 * each step is one load from a table of 65,536 entries by a 16-bit state plus
 * a class below 272, kept inside by dfa_check() and once more by the index
 * type (the sum is masked).
 */
#include "common/dfa.h"

#include <errno.h>

#include "common/size.h"

static const struct dfa_verdict verdict_none = { 0, DFA_RULE_NONE };
static const struct dfa_verdict verdict_too_deep = { DFA_ALL,
	DFA_RULE_TOO_DEEP };

static uint16_t
step(const struct dfa *dfa, uint16_t state, unsigned symbol)
{
	return dfa->next[(uint16_t)(state + dfa->cls[symbol])];
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
	uint16_t state = walk->state;

	/* A name that the kernel would not take, and a path that a BPF program
	 * could not follow to its root, are refused rather than judged. */
	if (len == 0 || len > DFA_NAME_MAX || walk->depth + 1 >= DFA_DEPTH_MAX)
		walk->too_deep = true;
	if (walk->too_deep)
		return;
	if (walk->depth++ > 0)
		state = step(dfa, state, '/');
	for (size_t i = len; i-- > 0;) {
		if (name[i] == '/')
			walk->too_deep = true;
		state = step(dfa, state, (unsigned char)name[i]);
	}
	walk->state = state;
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
	number = step(dfa, walk->state, 256 + root);
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

/* Classes in range, and none that a byte and a root share. */
static bool
check_classes(const struct dfa *dfa, bool ret_root[DFA_SYMBOLS])
{
	bool byte[DFA_SYMBOLS] = { false };
	size_t i;

	for (i = 0; i < DFA_SYMBOLS; i++) {
		if (dfa->cls[i] >= dfa->ncls)
			return false;
		ret_root[i] = false;
	}
	for (i = 0; i < 256; i++)
		byte[dfa->cls[i]] = true;
	for (i = 0; i < DFA_ROOTS_MAX; i++) {
		uint16_t class = dfa->cls[256 + i];

		if (i >= dfa->nroots) {
			if (class != 0)
				return false;
			continue;
		}
		if (byte[class])
			return false;
		ret_root[class] = true;
	}
	return true;
}

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

static bool
check_next(const struct dfa *dfa, const bool root_class[DFA_SYMBOLS])
{
	unsigned class = 0;

	for (uint32_t i = 0; i < dfa->nnext; i++) {
		uint16_t to = dfa->next[i];

		if (i < dfa->ncls && to != 0)
			return false;
		if (root_class[class]) {
			if (to > dfa->nverdicts)
				return false;
		} else if (to >= dfa->nnext || to % dfa->ncls != 0) {
			return false;
		}
		if (++class == dfa->ncls)
			class = 0;
	}
	return true;
}

int
dfa_check(const struct dfa *dfa, size_t nrules)
{
	bool root_class[DFA_SYMBOLS];
	unsigned roots;

	if (dfa->nroots < 1 || dfa->nroots > DFA_ROOTS_MAX ||
	    nrules > DFA_RULES_MAX || dfa->nverdicts > DFA_VERDICTS_MAX)
		return -EPROTO;
	roots = (1u << dfa->nroots) - 1;
	if ((dfa->empty_roots & ~roots) != 0)
		return -EPROTO;
	if (dfa->ncls < 2 || dfa->ncls > DFA_SYMBOLS ||
	    dfa->nnext > DFA_NEXT_MAX || dfa->nnext < dfa->ncls ||
	    dfa->nnext % dfa->ncls != 0)
		return -EPROTO;
	if (dfa->start >= dfa->nnext || dfa->start % dfa->ncls != 0)
		return -EPROTO;
	if (!check_classes(dfa, root_class) || !check_verdicts(dfa, nrules) ||
	    !check_next(dfa, root_class))
		return -EPROTO;
	return 0;
}
