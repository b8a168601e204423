/*
 * Walking a table of name rules, and checking one that comes from outside.
 * Runs in the broker for every write of a run: no allocation, no recursion;
 * each byte is one load. Every index is made of entries that dfa_check() has
 * bounded, and is cut to the 65,536 entries that there are besides.
 */
#include "common/dfa.h"

#include <errno.h>
#include <string.h>

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

uint64_t
dfa_name(const struct dfa *dfa, const char *name, size_t len)
{
	uint64_t hash = DFA_HASH_BEGIN, low = (1u << DFA_HASH_SHIFT) - 1;
	uint16_t state = 0;

	for (size_t i = len; i-- > 0;) {
		unsigned char byte = (unsigned char)name[i];

		state = entry(dfa, state + dfa->cls[byte]);
		hash = dfa_hash(hash, byte);
	}
	return (hash & ~low) | entry(dfa, state + (unsigned)dfa->ncls);
}

void
dfa_walk_known(const struct dfa *dfa, struct dfa_walk *walk, uint64_t name)
{
	/* A path that a BPF program could not follow to its root is refused
	 * rather than judged. */
	if (walk->depth + 1 >= DFA_DEPTH_MAX)
		walk->too_deep = true;
	if (walk->too_deep)
		return;
	walk->names[walk->depth++] = name;
	walk->state = entry(dfa, walk->state + (unsigned)(name & UINT16_MAX));
}

void
dfa_walk_name(const struct dfa *dfa, struct dfa_walk *walk, const char *name,
    size_t len)
{
	/* A name that the kernel would not take is refused. */
	if (len == 0 || len > DFA_NAME_MAX || memchr(name, '/', len) != NULL)
		walk->too_deep = true;
	if (!walk->too_deep)
		dfa_walk_known(dfa, walk, dfa_name(dfa, name, len));
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

void
dfa_verdict_join(struct dfa_verdict *to, struct dfa_verdict v)
{
	bool more = (to->mask & ~DFA_MOVE) != 0;
	bool has = (v.mask & ~DFA_MOVE) != 0;

	if (v.mask == 0)
		return;
	if (to->mask == 0 || (has && !more) ||
	    (has == more && v.rule < to->rule))
		to->rule = v.rule;
	to->mask |= v.mask;
}

/* The child of that name, or NULL. At most one step for each bit of the number
 * of children. */
static const struct dfa_place *
place_child(const struct dfa *dfa, const struct dfa_place *at, uint64_t name)
{
	uint32_t from = at->child, n = at->nchildren;

	name >>= DFA_HASH_SHIFT;
	while (n > 0) {
		const struct dfa_place *middle =
		    &dfa->place[(from + n / 2) % DFA_PLACES_MAX];

		if (middle->name == name)
			return middle;
		if (middle->name < name) {
			from += n / 2 + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return NULL;
}

/* What the tree says of the path's components from number `depth` on, counted
 * from its end. */
static void
walk_places(const struct dfa *dfa, const struct dfa_walk *walk, unsigned tree,
    size_t depth, struct dfa_verdict *to)
{
	const struct dfa_place *at = &dfa->place[tree];

	while (depth-- > 0 && at->nchildren > 0) {
		at = place_child(dfa, at, walk->names[depth]);
		if (at == NULL)
			return;
		dfa_verdict_join(to, depth > 0 ? at->below : at->own);
	}
}

struct dfa_verdict
dfa_walk_end(const struct dfa *dfa, const struct dfa_walk *walk, unsigned root)
{
	struct dfa_verdict v = verdict_none;
	uint16_t number;

	if (root >= dfa->nroots || root >= DFA_ROOTS_MAX)
		return verdict_too_deep;
	if ((dfa->empty_roots & (1u << root)) != 0)
		return verdict_none;
	if (walk->too_deep)
		return verdict_too_deep;
	number = entry(dfa, walk->state + (unsigned)dfa->nnames + root);
	if (number > dfa->nverdicts || number > DFA_VERDICTS_MAX)
		return verdict_too_deep;
	if (number != 0)
		v = dfa->verdict[number - 1];
	if (dfa->nplaces == 0)
		return v;
	walk_places(dfa, walk, root, walk->depth, &v);
	for (size_t n = walk->depth; n > 0; n--)
		walk_places(dfa, walk, DFA_PLACE_ANY, n, &v);
	return v;
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

/* A walk goes one component on with each step, so that it ends. */
static bool
check_places(const struct dfa *dfa, size_t nrules, unsigned *masks)
{
	if (dfa->nplaces > DFA_PLACES_MAX ||
	    (dfa->nplaces > 0 && dfa->nplaces < DFA_PLACE_TREES))
		return false;
	for (size_t i = 0; i < dfa->nplaces; i++) {
		const struct dfa_place *p = &dfa->place[i];
		const struct dfa_verdict v[] = { p->own, p->below };

		if (p->child > dfa->nplaces ||
		    p->nchildren > dfa->nplaces - p->child)
			return false;
		for (size_t k = 0; k < 2; k++) {
			if ((v[k].mask & ~DFA_ALL) != 0 ||
			    (v[k].mask != 0 && v[k].rule >= nrules))
				return false;
			*masks |= v[k].mask;
		}
	}
	return true;
}

static bool
check_verdicts(const struct dfa *dfa, size_t nrules)
{
	unsigned masks = 0;

	if (!check_places(dfa, nrules, &masks))
		return false;

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
