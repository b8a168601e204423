/*
 * The tree of literal paths. Its nodes are found by hash while it grows, and
 * are laid out so that the children of each stand in one row, in order.
 */
#include "common/dfa_places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

struct dfa_node {
	uint64_t name;
	uint32_t parent;
	uint32_t children; /* the newest of them; 0: none */
	uint32_t sibling; /* the one before; 0: none */
	struct dfa_verdict own;
	struct dfa_verdict below;
};

/* --- patterns ----------------------------------------------------------- */

/* The one byte of an atom, or 0. */
static unsigned char
only_byte(const struct dfa_atom *atom)
{
	unsigned char found = 0;

	if (atom->star)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(atom->set.bits); i++) {
		uint64_t bits = atom->set.bits[i];

		if (bits == 0)
			continue;
		if (found != 0 || (bits & (bits - 1)) != 0)
			return 0;
		found = (unsigned char)(64 * i +
		    (size_t)__builtin_ctzll((unsigned long long)bits));
	}
	return found;
}

bool
dfa_is_literal(const struct dfa_glob *glob)
{
	size_t names = 0;

	for (size_t i = 0; i < glob->nparts; i++) {
		const struct dfa_part *part = &glob->parts[i];

		if (part->any && i > 0 && i + 1 < glob->nparts)
			return false;
		for (size_t k = 0; !part->any && k < part->natoms; k++)
			if (only_byte(&glob->atoms[part->first + k]) == 0)
				return false;
		names += !part->any;
	}
	return names > 0;
}

static uint64_t
part_name(const struct dfa_glob *glob, const struct dfa_part *part)
{
	uint64_t hash = DFA_HASH_BEGIN;

	for (size_t i = part->natoms; i-- > 0;)
		hash = dfa_hash(hash, only_byte(&glob->atoms[part->first + i]));
	return hash >> DFA_HASH_SHIFT;
}

/* --- growing ------------------------------------------------------------ */

static size_t
bucket_of(const struct dfa_places *t, uint32_t parent, uint64_t name)
{
	uint64_t hash = (name ^ parent) * 0x9e3779b97f4a7c15u;

	return (hash ^ hash >> 32) & (2 * t->cap - 1);
}

static int
grow(struct dfa_places *t)
{
	size_t cap = t->cap == 0 ? 64 : 2 * t->cap, slot;
	struct dfa_node *nodes = reallocarray(t->nodes, cap, sizeof(*nodes));
	uint32_t *buckets;

	if (nodes == NULL)
		return -ENOMEM;
	t->nodes = nodes;
	buckets = calloc(2 * cap, sizeof(*buckets));
	if (buckets == NULL)
		return -ENOMEM;
	free(t->buckets);
	t->buckets = buckets;
	t->cap = cap;
	for (size_t i = DFA_PLACE_TREES; i < t->n; i++) {
		slot = bucket_of(t, nodes[i].parent, nodes[i].name);
		while (buckets[slot] != 0)
			slot = (slot + 1) & (2 * cap - 1);
		buckets[slot] = (uint32_t)i;
	}
	return 0;
}

static int
begin(struct dfa_places *t)
{
	if (t->n == 0) {
		int r = grow(t);

		if (r < 0)
			return r;
		memset(t->nodes, 0, DFA_PLACE_TREES * sizeof(*t->nodes));
		for (size_t i = 0; i < DFA_PLACE_TREES; i++)
			t->nodes[i].own.rule = t->nodes[i].below.rule =
			    DFA_RULE_NONE;
		t->n = DFA_PLACE_TREES;
	}
	return t->n == t->cap ? grow(t) : 0;
}

/* The child of that name, made if there is none. */
static int
child(struct dfa_places *t, uint32_t parent, uint64_t name, uint32_t *ret)
{
	int r = begin(t);
	size_t slot;

	if (r < 0)
		return r;
	for (slot = bucket_of(t, parent, name); t->buckets[slot] != 0;
	     slot = (slot + 1) & (2 * t->cap - 1)) {
		const struct dfa_node *node = &t->nodes[t->buckets[slot]];

		if (node->parent == parent && node->name == name) {
			*ret = t->buckets[slot];
			return 0;
		}
	}
	if (t->n == DFA_PLACES_MAX)
		return -E2BIG;
	t->nodes[t->n] = (struct dfa_node){ .name = name,
		.parent = parent,
		.sibling = t->nodes[parent].children,
		.own = { 0, DFA_RULE_NONE },
		.below = { 0, DFA_RULE_NONE } };
	*ret = t->buckets[slot] = t->nodes[parent].children = (uint32_t)t->n++;
	return 0;
}

/*
 * A path that is too deep to be judged is denied as such; what is left of a
 * rule that deep are its prefixes.
 */
int
dfa_places_add(struct dfa_places *t, const struct dfa_literal *literal)
{
	const struct dfa_glob *glob = literal->glob;
	size_t begin_at = glob->parts[0].any;
	bool subtree = glob->parts[glob->nparts - 1].any;
	size_t names = glob->nparts - begin_at - subtree;
	bool whole = names < DFA_DEPTH_MAX;
	struct dfa_verdict full = { literal->mask, literal->rule };
	struct dfa_verdict prefix = { DFA_MOVE, literal->rule };
	uint32_t at = literal->tree;
	int r;

	if (!whole)
		names = DFA_DEPTH_MAX - 1;
	for (size_t i = 0; i < names; i++) {
		r = child(t, at, part_name(glob, &glob->parts[begin_at + i]),
		    &at);
		if (r < 0)
			return r;
		if ((literal->mask & DFA_WRITE) != 0 &&
		    (i + 1 < names || !whole))
			dfa_verdict_join(&t->nodes[at].own, prefix);
	}
	if (whole)
		dfa_verdict_join(&t->nodes[at].own, full);
	if (whole && subtree)
		dfa_verdict_join(&t->nodes[at].below, full);
	return 0;
}

void
dfa_places_done(struct dfa_places *t)
{
	free(t->nodes);
	free(t->buckets);
	*t = (struct dfa_places){ 0 };
}

/* --- the table ---------------------------------------------------------- */

static int
compare_places(const void *pa, const void *pb)
{
	const struct dfa_place *a = pa, *b = pb;

	return (a->name > b->name) - (a->name < b->name);
}

/* Puts the children of place number `at`. Its `child` holds the number of its
 * node until they are put. */
static void
put_children(const struct dfa_places *t, struct dfa *out, size_t at)
{
	uint32_t next = t->nodes[out->place[at].child].children;
	size_t first = out->nplaces;

	for (; next != 0; next = t->nodes[next].sibling) {
		const struct dfa_node *node = &t->nodes[next];

		out->place[out->nplaces++] = (struct dfa_place){
			.name = node->name,
			.child = next,
			.own = node->own,
			.below = node->below,
		};
		out->masks |= node->own.mask | node->below.mask;
	}
	out->place[at].child = (uint32_t)first;
	out->place[at].nchildren = (uint32_t)(out->nplaces - first);
	if (out->nplaces - first > 1)
		qsort(out->place + first, out->nplaces - first,
		    sizeof(*out->place), compare_places);
}

void
dfa_places_put(const struct dfa_places *t, struct dfa *out)
{
	out->nplaces = (uint32_t)(t->n == 0 ? 0 : DFA_PLACE_TREES);
	for (size_t i = 0; i < out->nplaces && i < DFA_PLACE_TREES; i++)
		out->place[i] = (struct dfa_place){
			.child = (uint32_t)i,
			.own = { 0, DFA_RULE_NONE },
			.below = { 0, DFA_RULE_NONE },
		};
	for (size_t i = 0; i < out->nplaces; i++)
		put_children(t, out, i);
}
