/*
 * Compiles name rules. Runs in control. Patterns are a client's, so that every
 * size and the work as a whole have a limit; passing one is -E2BIG.
 *
 * Two automata, each by subset construction. The lower one reads a component
 * backwards and says of which class the name is, that is, which components of
 * patterns it matches. The upper one reads these classes, the path's last
 * component first, and then the root. One automaton over all bytes would have
 * the lower one's states once for each state of the upper.
 *
 * What the upper one asks of a name is a choice: a set of components, one of
 * which the name matches. Patterns that differ in their last component alone
 * share one, so that a thousand of *.ext cost no more states than one.
 *
 * In the upper one, each pattern c1/.../cn is a chain read from cn to c1. A
 * write rule has a second chain, for c1/.../c(n-1), that may be entered at
 * each of its components: these are the MOVE prefixes. What a chain reports is
 * its item.
 *
 * Literal rules that no exemption lifts are in neither: common/dfa_places.c.
 */
#include "common/dfa.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/dfa_glob.h"
#include "common/dfa_places.h"
#include "common/dfa_sets.h"
#include "common/size.h"

#define ATOMS_MAX (1u << 18)
#define PARTS_MAX 16384u
#define NODES_MAX 65536u
#define BYTE_SETS_MAX 1024u
#define NAME_STATES_MAX 24576u
#define NAMES_MAX 8192u
#define PATH_STATES_MAX 8192u
#define ASIDE_PARTS_MAX 32
#define CELLS_MAX (1u << 22) /* of a level's rows, before merging */
#define WORK_MAX (1u << 24)
#define WORK_FIRST (1u << 23) /* where rules can be left out */

/* What is reported when a chain ends at a root. Equal ones are one. */
struct item {
	uint16_t mask; /* MOVE always beside WRITE */
	uint16_t rule; /* the first one with this item */
	uint16_t roots; /* less the empty ones */
	enum dfa_class class;
	bool exempts; /* reports nothing, lifts what is exemptible */
	bool exemptible;
	bool everywhere; /* holds below every root that has rules */
};

/* A component of a pattern; equal ones are one. */
struct part {
	size_t first; /* in atoms, in the pattern's order */
	size_t natoms;
};

enum node_kind {
	NODE_NAME, /* a name that `part` matches, then next */
	NODE_LAST, /* the same for the last names of patterns that are alike
		    * before it; part: whether ** is behind it */
	NODE_ANY, /* any names, then next */
	NODE_END, /* the root */
	NODE_DONE /* any names, then the root */
};

struct node {
	enum node_kind kind;
	uint32_t part;
	uint32_t next;
	uint32_t item;
	uint32_t choice; /* of a LAST: a number of lasts, until they are made */
};

struct compiler {
	const struct dfa_rules *in;
	uint16_t ruled; /* roots that are not empty */
	int error; /* sticky */
	size_t work;
	size_t work_max;
	bool *aside; /* of each rule, or NULL: none is left out */
	size_t naside;

	struct item *items;
	size_t nitems;
	struct dfa_atom *atoms; /* of all parts */
	size_t natoms;
	size_t atoms_cap;
	struct part *parts;
	size_t nparts;
	size_t parts_max;
	uint32_t *part_buckets; /* part_buckets_n, a power of two */
	size_t part_buckets_n;
	struct dfa_list *lasts; /* of each LAST: the parts */
	size_t nlasts;
	struct dfa_sets choices; /* of parts */
	struct dfa_list *part_choices; /* of each part */
	struct node *nodes;
	size_t nnodes;
	size_t nodes_max;
	uint32_t *node_buckets; /* 2 * nodes_max, a power of two */
	struct dfa_list starts;
	struct dfa_places places;

	/* The lower level. Positions are numbers of atoms; then, for each
	 * choice, that the name is in it if it ends here; and again for each,
	 * that it is whatever follows. */
	struct dfa_set *byte_sets;
	size_t nbyte_sets;
	uint16_t *atom_set; /* of each atom */
	uint16_t byte_class[256];
	unsigned nbytes;
	uint8_t byte_of[256]; /* one of each class */
	uint32_t *atom_part;
	/* In every state, and so in none of the sets: the star that a part ends
	 * with, and what is before it. */
	bool *constant; /* of each atom */
	struct dfa_list constants[256]; /* for each class, those that take it */
	struct dfa_sets name_states;
	struct dfa_rows name_rows; /* out: the class of the name */
	struct dfa_sets names; /* of each class: the choices it is in */
	struct dfa_list *choice_names; /* of each choice: the classes */

	/* The upper level. */
	struct dfa_sets path_states;
	struct dfa_rows path_rows; /* out: for each root, 1 + verdict or 0 */
	uint32_t *seen; /* of each node or position: the round it was met */
	uint32_t round;
	struct dfa_list now; /* a set in the making */
	struct dfa_list wild;
	struct dfa_list *moves; /* targets, for each class */
	uint32_t *byte_cols;
	uint32_t *name_cols;
	struct dfa *out;
};

static void
fail(struct compiler *c, int error)
{
	if (c->error == 0 && error < 0)
		c->error = error;
}

static void
work(struct compiler *c, size_t n)
{
	c->work += n;
	if (c->work > c->work_max)
		fail(c, -E2BIG);
}

static void
add(struct compiler *c, struct dfa_list *list, uint32_t value)
{
	fail(c, dfa_list_add(list, value));
}

/* --- patterns to parts, nodes, items ------------------------------------ */

static uint64_t
hash_atoms(const struct dfa_atom *atoms, size_t n)
{
	uint64_t hash = n;

	for (size_t i = 0; i < n; i++) {
		const uint64_t *bits = atoms[i].set.bits;

		hash = (hash ^ atoms[i].star) * 0x9e3779b97f4a7c15u;
		for (size_t k = 0; k < ARRAY_LEN(atoms[i].set.bits); k++)
			hash =
			    (hash ^ bits[k] ^ hash >> 29) * 0x9e3779b97f4a7c15u;
	}
	return hash ^ hash >> 32;
}

static uint32_t
part_add(struct compiler *c, const struct dfa_glob *glob, size_t number)
{
	const struct dfa_part *part = &glob->parts[number];
	const struct dfa_atom *atoms = glob->atoms + part->first;
	struct dfa_atom *grown;
	size_t size = part->natoms * sizeof(*atoms), slot;

	slot = hash_atoms(atoms, part->natoms) & (c->part_buckets_n - 1);
	for (; c->part_buckets[slot] != 0;
	     slot = (slot + 1) & (c->part_buckets_n - 1)) {
		uint32_t i = c->part_buckets[slot] - 1;

		work(c, 1);
		if (c->parts[i].natoms == part->natoms &&
		    memcmp(c->atoms + c->parts[i].first, atoms, size) == 0)
			return i;
	}
	if (c->nparts == c->parts_max || c->natoms + part->natoms > ATOMS_MAX) {
		fail(c, -E2BIG);
		return 0;
	}
	if (c->natoms + part->natoms > c->atoms_cap) {
		c->atoms_cap = 2 * (c->natoms + part->natoms);
		grown = reallocarray(c->atoms, c->atoms_cap, sizeof(*grown));
		if (grown == NULL) {
			fail(c, -ENOMEM);
			return 0;
		}
		c->atoms = grown;
	}
	memcpy(c->atoms + c->natoms, atoms, size);
	c->parts[c->nparts] = (struct part){ c->natoms, part->natoms };
	c->natoms += part->natoms;
	c->part_buckets[slot] = (uint32_t)++c->nparts;
	return (uint32_t)c->nparts - 1;
}

static uint32_t
node_add(struct compiler *c, struct node node)
{
	size_t mask = 2 * c->nodes_max - 1;
	size_t slot =
	    ((node.part * 31u + node.next) * 31u + node.item * 4u + node.kind) *
	    0x9e3779b1u;

	for (slot &= mask; c->node_buckets[slot] != 0;
	     slot = (slot + 1) & mask) {
		const struct node *n = &c->nodes[c->node_buckets[slot] - 1];

		if (n->kind == node.kind && n->part == node.part &&
		    n->next == node.next && n->item == node.item)
			return c->node_buckets[slot] - 1;
	}
	if (c->nnodes == c->nodes_max) {
		fail(c, -E2BIG);
		return 0;
	}
	c->nodes[c->nnodes] = node;
	c->node_buckets[slot] = (uint32_t)++c->nnodes;
	return (uint32_t)c->nnodes - 1;
}

/* One more part of the last names that lead to node.next. */
static uint32_t
last_add(struct compiler *c, struct node node, bool before_any, uint32_t part)
{
	uint32_t at;

	node.kind = NODE_LAST;
	node.part = before_any;
	node.choice = (uint32_t)c->nlasts;
	at = node_add(c, node);
	if (c->error != 0)
		return at;
	if (c->nodes[at].choice == c->nlasts)
		c->nlasts++;
	add(c, &c->lasts[c->nodes[at].choice], part);
	return at;
}

/*
 * The chain for the first n parts. It begins where the last of them is the
 * path's last; with `prefixes`, every part may be (except a pattern of any
 * path at all), and it begins at each.
 */
static void
chain(struct compiler *c, const struct dfa_glob *glob, size_t n, uint32_t item,
    bool prefixes)
{
	bool floating = glob->parts[0].any;
	size_t last = glob->parts[n - 1].any ? n - 1 : n; /* behind it */
	struct node node = { .kind = floating ? NODE_DONE : NODE_END,
		.item = item };
	uint32_t at = node_add(c, node);

	if (floating && n == 1 && !prefixes)
		add(c, &c->starts, at);
	for (size_t i = floating; i < n && c->error == 0; i++) {
		node.next = at;
		if (i + 1 == last) {
			at = last_add(c, node, last < n, part_add(c, glob, i));
		} else {
			node.kind = glob->parts[i].any ? NODE_ANY : NODE_NAME;
			node.part =
			    glob->parts[i].any ? 0 : part_add(c, glob, i);
			at = node_add(c, node);
		}
		if (prefixes || i + 1 == n)
			add(c, &c->starts, at);
	}
}

static uint32_t
item_add(struct compiler *c, struct item item)
{
	item.roots &= c->ruled;
	item.everywhere = item.roots == c->ruled;
	for (size_t i = 0; i < c->nitems; i++) {
		const struct item *have = &c->items[i];

		if (have->mask == item.mask && have->roots == item.roots &&
		    have->class == item.class && have->exempts == item.exempts)
			return (uint32_t)i;
	}
	work(c, c->nitems);
	c->items[c->nitems] = item;
	return (uint32_t)c->nitems++;
}

/* A literal rule, unless exemptions lift it or it holds at any depth below
 * some roots only. 1: taken. */
static int
add_literal(struct compiler *c, const struct dfa_glob *glob,
    const struct item *item)
{
	struct dfa_literal literal = { .glob = glob,
		.mask = item->mask,
		.rule = item->rule };
	uint16_t roots = item->roots & c->ruled;
	int r = 0;

	if (item->exemptible || !dfa_is_literal(glob))
		return 0;
	if (glob->parts[0].any) {
		if (roots != c->ruled)
			return 0;
		literal.tree = DFA_PLACE_ANY;
		r = dfa_places_add(&c->places, &literal);
		return r < 0 ? r : 1;
	}
	for (unsigned i = 0; i < DFA_ROOTS_MAX && r == 0; i++) {
		literal.tree = i;
		if ((roots & (1u << i)) != 0)
			r = dfa_places_add(&c->places, &literal);
	}
	return r < 0 ? r : 1;
}

/* 1: left out. One of many components is not, since to match one costs up to
 * the square of their number. */
static int
put_aside(struct compiler *c, const struct dfa_glob *glob,
    const struct item *item)
{
	if (c->aside == NULL || item->class != DFA_SPEC ||
	    glob->nparts > ASIDE_PARTS_MAX)
		return 0;
	c->aside[item->rule] = true;
	return ++c->naside > DFA_ASIDE_MAX ? -E2BIG : 1;
}

static int
add_rule(struct compiler *c, size_t number)
{
	const struct dfa_rule *rule = &c->in->rules[number];
	bool write = (rule->mask & DFA_WRITE) != 0;
	struct dfa_glob glob = { 0 };
	const char *why;
	struct item item = {
		.mask = (uint16_t)(rule->mask | (write ? DFA_MOVE : 0)),
		.rule = (uint16_t)number,
		.roots = rule->roots,
		.class = rule->class,
		.exemptible = rule->class == DFA_BUILTIN,
	};
	int r;

	if (rule->mask == 0 || (rule->mask & DFA_MOVE) != 0 ||
	    (rule->mask & ~DFA_ALL) != 0)
		return -EINVAL;
	r = dfa_glob_parse(rule->glob, rule->ignore_case, &glob, &why);
	if (r < 0)
		return r;
	r = (rule->roots & c->ruled) == 0 ? 1 : add_literal(c, &glob, &item);
	if (r == 0)
		r = put_aside(c, &glob, &item);
	if (r == 0) {
		chain(c, &glob, glob.nparts, item_add(c, item), false);
		item.mask = DFA_MOVE;
		item.exemptible = false;
		if (write && glob.nparts > (glob.parts[0].any ? 2 : 1))
			chain(c, &glob, glob.nparts - 1, item_add(c, item),
			    true);
	}
	dfa_glob_done(&glob);
	return r < 0 ? r : 0;
}

static int
add_exemption(struct compiler *c, size_t number)
{
	const struct dfa_exemption *exemption = &c->in->exemptions[number];
	struct item item = { .exempts = true, .roots = exemption->roots };
	struct dfa_glob glob = { 0 };
	const char *why;
	int r;

	r = dfa_glob_parse(exemption->glob, exemption->ignore_case, &glob,
	    &why);
	if (r < 0)
		return r;
	if ((exemption->roots & c->ruled) != 0)
		chain(c, &glob, glob.nparts, item_add(c, item), false);
	dfa_glob_done(&glob);
	return 0;
}

static int
add_all(struct compiler *c, size_t *ret_bad)
{
	const struct dfa_rules *in = c->in;
	unsigned above = ~((1u << in->nroots) - 1);
	size_t bad = 0;
	int r = 0;

	for (size_t i = 0; i < in->nrules && r == 0; i++) {
		bad = i;
		r = (in->rules[i].roots & above) != 0 ? -EINVAL :
							add_rule(c, i);
	}
	for (size_t i = 0; i < in->nexemptions && r == 0; i++) {
		bad = in->nrules + i;
		r = (in->exemptions[i].roots & above) != 0 ?
		    -EINVAL :
		    add_exemption(c, i);
	}
	if (r == -EINVAL && ret_bad != NULL)
		*ret_bad = bad;
	return r < 0 ? r : c->error;
}

/* The sets of parts that nodes ask for, equal ones once. */
static int
make_choices(struct compiler *c)
{
	struct dfa_list one = { 0 };

	for (size_t i = 0; i < c->nnodes && c->error == 0; i++) {
		struct node *node = &c->nodes[i];
		struct dfa_list *list = &one;

		if (node->kind != NODE_NAME && node->kind != NODE_LAST)
			continue;
		one.n = 0;
		if (node->kind == NODE_NAME)
			add(c, &one, node->part);
		else
			list = &c->lasts[node->choice];
		dfa_list_sort(list);
		work(c, list->n);
		fail(c,
		    dfa_sets_add(&c->choices, list, NODES_MAX, &node->choice));
	}
	free(one.at);
	c->part_choices = calloc(c->nparts + 1, sizeof(*c->part_choices));
	if (c->part_choices == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < c->choices.n && c->error == 0; k++) {
		const struct dfa_set_span *s = &c->choices.spans[k];

		for (size_t i = 0; i < s->n; i++)
			add(c,
			    &c->part_choices[c->choices.members
						 .at[s->first + i]],
			    (uint32_t)k);
	}
	return c->error;
}

/* --- the lower level ---------------------------------------------------- */

/* The numbers of the atoms' sets, equal ones once. */
static int
make_byte_sets(struct compiler *c)
{
	size_t k;

	c->byte_sets = calloc(BYTE_SETS_MAX, sizeof(*c->byte_sets));
	c->atom_set = calloc(c->natoms + 1, sizeof(*c->atom_set));
	c->atom_part = calloc(c->natoms + 1, sizeof(*c->atom_part));
	if (c->byte_sets == NULL || c->atom_set == NULL || c->atom_part == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->natoms; i++) {
		const struct dfa_set *set = &c->atoms[i].set;

		for (k = 0; k < c->nbyte_sets; k++)
			if (memcmp(&c->byte_sets[k], set, sizeof(*set)) == 0)
				break;
		work(c, k);
		if (k == BYTE_SETS_MAX || c->error != 0)
			return -E2BIG;
		if (k == c->nbyte_sets)
			c->byte_sets[c->nbyte_sets++] = *set;
		c->atom_set[i] = (uint16_t)k;
	}
	for (size_t p = 0; p < c->nparts; p++)
		for (size_t i = 0; i < c->parts[p].natoms; i++)
			c->atom_part[c->parts[p].first + i] = (uint32_t)p;
	return 0;
}

/* Bytes that no set tells apart share a class. */
static void
make_byte_classes(struct compiler *c)
{
	c->nbytes = 1;
	for (size_t s = 0; s < c->nbyte_sets; s++) {
		bool has_in[256] = { false }, has_out[256] = { false };
		uint16_t to[256];
		unsigned old = c->nbytes;

		for (unsigned b = 0; b < 256; b++) {
			bool in =
			    dfa_set_has(&c->byte_sets[s], (unsigned char)b);

			(in ? has_in : has_out)[c->byte_class[b]] = true;
		}
		for (unsigned k = 0; k < old; k++)
			to[k] = has_in[k] && has_out[k] ?
			    (uint16_t)c->nbytes++ :
			    (uint16_t)k;
		for (unsigned b = 0; b < 256; b++)
			if (dfa_set_has(&c->byte_sets[s], (unsigned char)b))
				c->byte_class[b] = to[c->byte_class[b]];
	}
	for (unsigned b = 256; b-- > 0;)
		c->byte_of[c->byte_class[b]] = (uint8_t)b;
}

static bool
takes(const struct compiler *c, size_t atom, unsigned class)
{
	return dfa_set_has(&c->byte_sets[c->atom_set[atom]], c->byte_of[class]);
}

/* A position that was not met in this round. */
static bool
reach(struct compiler *c, size_t n)
{
	work(c, 1);
	if (c->seen[n] == c->round || (n < c->natoms && c->constant[n]))
		return false;
	c->seen[n] = c->round;
	add(c, &c->now, (uint32_t)n);
	return true;
}

/* The end of a part; `always`: it is one wherever the name ends. */
static void
reach_end(struct compiler *c, uint32_t part, bool always)
{
	const struct dfa_list *choices = &c->part_choices[part];
	size_t first = c->natoms + (always ? c->choices.n : 0);

	for (size_t i = 0; i < choices->n; i++)
		(void)reach(c, first + choices->at[i]);
}

/* Position n of the lower level and what it reaches at once: a position is
 * the atom that is read next, backwards, or an end. */
static void
reach_atom(struct compiler *c, size_t n)
{
	for (;;) {
		uint32_t part = c->atom_part[n];
		bool star = c->atoms[n].star, first = n == c->parts[part].first;

		if (star && first)
			reach_end(c, part, true);
		if ((star && first) || !reach(c, n) || !star)
			return;
		n--;
	}
}

/* Drops what cannot add a choice to those that are certain. */
static void
prune_atoms(struct compiler *c)
{
	size_t always = c->natoms + c->choices.n, kept = 0;
	bool any = false;

	for (size_t i = 0; i < c->now.n; i++)
		any |= c->now.at[i] >= always;
	for (size_t i = 0; any && i < c->now.n; i++) {
		uint32_t n = c->now.at[i];
		bool adds = n >= always;

		if (n >= c->natoms && n < always) {
			adds = c->seen[n + c->choices.n] != c->round;
		} else if (n < c->natoms) {
			const struct dfa_list *choices =
			    &c->part_choices[c->atom_part[n]];

			for (size_t k = 0; k < choices->n && !adds; k++)
				adds = c->seen[always + choices->at[k]] !=
				    c->round;
			work(c, choices->n);
		}
		if (adds)
			c->now.at[kept++] = n;
	}
	if (any)
		c->now.n = kept;
}

static void
make_constants(struct compiler *c)
{
	for (size_t p = 0; p < c->nparts; p++) {
		size_t last = c->parts[p].first + c->parts[p].natoms - 1;

		if (!c->atoms[last].star || c->parts[p].natoms == 1)
			continue;
		c->constant[last] = c->constant[last - 1] = true;
		for (unsigned k = 0; k < c->nbytes; k++)
			if (takes(c, last - 1, k))
				add(c, &c->constants[k], (uint32_t)last - 1);
	}
}

/* Behind an atom that has taken its byte. */
static void
pass_atom(struct compiler *c, size_t n)
{
	if (n == c->parts[c->atom_part[n]].first)
		reach_end(c, c->atom_part[n], false);
	else
		reach_atom(c, n - 1);
}

/* The state after a byte of class k. */
static void
step_atoms(struct compiler *c, const struct dfa_set_span *from, unsigned k)
{
	const uint32_t *at = c->name_states.members.at + from->first;

	c->now.n = 0;
	c->round++;
	work(c, from->n);
	for (size_t i = 0; i < from->n; i++) {
		size_t n = at[i];

		if (n >= c->natoms + c->choices.n)
			(void)reach(c, n);
		if (n >= c->natoms)
			continue;
		if (c->atoms[n].star)
			reach_atom(c, n);
		else if (takes(c, n, k))
			pass_atom(c, n);
	}
	for (size_t i = 0; i < c->constants[k].n; i++)
		pass_atom(c, c->constants[k].at[i]);
	prune_atoms(c);
}

/* The class of the names that end in this state: the choices they are in. */
static uint32_t
class_of_name(struct compiler *c, const struct dfa_set_span *state)
{
	uint32_t class = 0;

	c->now.n = 0;
	for (size_t i = 0; i < state->n; i++) {
		uint32_t n = c->name_states.members.at[state->first + i];

		if (n >= c->natoms)
			add(c, &c->now,
			    (uint32_t)((n - c->natoms) % c->choices.n));
	}
	dfa_list_sort(&c->now);
	fail(c, dfa_sets_add(&c->names, &c->now, NAMES_MAX, &class));
	return class;
}

static uint32_t
state_of_now(struct compiler *c, struct dfa_sets *states, struct dfa_rows *rows,
    size_t max)
{
	uint32_t state = 0;

	dfa_list_sort(&c->now);
	if (c->error == 0)
		fail(c, dfa_sets_add(states, &c->now, max, &state));
	if (c->error == 0 && states->n > rows->n)
		fail(c, dfa_rows_add(rows, CELLS_MAX));
	return state;
}

/* State 0 is where a name begins, class 0 that of names in no part. */
static int
make_names(struct compiler *c)
{
	uint32_t none = 0;

	c->name_rows.to = c->nbytes;
	c->name_rows.out = 1;
	c->seen = calloc(c->natoms + 2 * c->choices.n + c->nnodes + 1,
	    sizeof(*c->seen));
	c->constant = calloc(c->natoms + 1, sizeof(*c->constant));
	if (c->seen == NULL || c->constant == NULL ||
	    dfa_sets_add(&c->names, &c->now, NAMES_MAX, &none) < 0)
		return -ENOMEM;
	make_constants(c);
	c->round++;
	for (size_t p = 0; p < c->nparts; p++)
		reach_atom(c, c->parts[p].first + c->parts[p].natoms - 1);
	prune_atoms(c);
	(void)state_of_now(c, &c->name_states, &c->name_rows, NAME_STATES_MAX);
	for (size_t s = 0; s < c->name_states.n && c->error == 0; s++) {
		struct dfa_set_span span = c->name_states.spans[s];
		uint32_t to = class_of_name(c, &span);

		dfa_row(&c->name_rows, s)[c->nbytes] = to;
		for (unsigned k = 0; k < c->nbytes && c->error == 0; k++) {
			step_atoms(c, &span, k);
			to = state_of_now(c, &c->name_states, &c->name_rows,
			    NAME_STATES_MAX);
			dfa_row(&c->name_rows, s)[k] = to;
		}
	}
	return c->error;
}

/* --- the upper level: sets of nodes ------------------------------------- */

/* A node and what it reaches without a name. */
static void
reach_node(struct compiler *c, uint32_t n)
{
	for (;;) {
		work(c, 1);
		if (c->seen[n] == c->round)
			return;
		c->seen[n] = c->round;
		add(c, &c->now, n);
		if (c->nodes[n].kind != NODE_ANY)
			return;
		n = c->nodes[n].next;
	}
}

/*
 * Whether what x may still report is nothing beside what y reports for sure: y
 * is done and holds everywhere, and no exemption that can still come (lifting)
 * lifts it but not x.
 */
static bool
covers(const struct item *y, const struct item *x, bool lifting)
{
	if (x->exempts || y->exempts)
		return y->exempts && (x->exempts || x->exemptible);
	return (x->mask & ~y->mask) == 0 &&
	    (!lifting || !y->exemptible || x->exemptible);
}

/* Whether node n goes, beside what is done. Of two that cover each other the
 * lower item stays. */
static bool
is_covered(const struct compiler *c, uint32_t n, const uint32_t *done,
    size_t ndone, bool lifting)
{
	const struct node *node = &c->nodes[n];
	const struct item *x = &c->items[node->item];
	bool stays = node->kind == NODE_DONE && x->everywhere;

	for (size_t d = 0; d < ndone; d++) {
		const struct item *y = &c->items[done[d]];

		if (y == x ? !stays :
			     covers(y, x, lifting) &&
			    !(stays && covers(x, y, lifting) && x < y))
			return true;
	}
	return false;
}

/*
 * Drops nodes of c->now that no longer matter, which keeps the number of
 * states near the sum of the patterns' lengths instead of their product.
 */
static void
prune(struct compiler *c)
{
	uint32_t done[64];
	size_t ndone = 0, kept = 0;
	bool exemptible = false, lifting = false;

	for (size_t i = 0; i < c->now.n; i++) {
		const struct node *node = &c->nodes[c->now.at[i]];
		const struct item *item = &c->items[node->item];

		lifting |= item->exempts;
		if (node->kind == NODE_DONE && item->everywhere &&
		    ndone < ARRAY_LEN(done))
			done[ndone++] = node->item;
	}
	work(c, c->now.n * (1 + ndone));
	for (size_t i = 0; i < c->now.n; i++) {
		uint32_t n = c->now.at[i];

		if (is_covered(c, n, done, ndone, lifting))
			continue;
		exemptible |= c->items[c->nodes[n].item].exemptible;
		c->now.at[kept++] = n;
	}
	c->now.n = kept;
	if (exemptible || !lifting)
		return;
	kept = 0;
	for (size_t i = 0; i < c->now.n; i++)
		if (!c->items[c->nodes[c->now.at[i]].item].exempts)
			c->now.at[kept++] = c->now.at[i];
	c->now.n = kept;
}

/* --- the upper level: rows ---------------------------------------------- */

static int
make_choice_names(struct compiler *c)
{
	c->choice_names = calloc(c->choices.n + 1, sizeof(*c->choice_names));
	c->moves = calloc(c->names.n, sizeof(*c->moves));
	if (c->choice_names == NULL || c->moves == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < c->names.n; k++) {
		const struct dfa_set_span *s = &c->names.spans[k];

		for (size_t i = 0; i < s->n; i++)
			add(c,
			    &c->choice_names[c->names.members.at[s->first + i]],
			    (uint32_t)k);
	}
	return c->error;
}

/* Nodes of a state by the class of names that they take: one list a class,
 * and one of those that take any name. */
static void
sort_members(struct compiler *c, const struct dfa_set_span *s)
{
	c->wild.n = 0;
	for (size_t k = 0; k < c->names.n; k++)
		c->moves[k].n = 0;
	for (size_t i = 0; i < s->n; i++) {
		uint32_t n = c->path_states.members.at[s->first + i];
		const struct node *node = &c->nodes[n];
		const struct dfa_list *names = &c->choice_names[node->choice];

		if (node->kind == NODE_ANY || node->kind == NODE_DONE)
			add(c, &c->wild, n);
		if (node->kind != NODE_NAME && node->kind != NODE_LAST)
			continue;
		for (size_t k = 0; k < names->n; k++)
			add(c, &c->moves[names->at[k]], node->next);
		work(c, names->n);
	}
}

static bool
ends_at(const struct node *node, const struct item *item, unsigned root)
{
	return (node->kind == NODE_END || node->kind == NODE_DONE) &&
	    (item->roots & (1u << root)) != 0;
}

static struct dfa_verdict
verdict_at(const struct compiler *c, const struct dfa_set_span *s,
    unsigned root)
{
	struct dfa_verdict v = { 0, DFA_RULE_NONE };
	uint16_t move_rule = DFA_RULE_NONE;
	const uint32_t *at = c->path_states.members.at + s->first;
	bool exempt = false;

	for (size_t i = 0; i < s->n; i++) {
		const struct node *node = &c->nodes[at[i]];
		const struct item *item = &c->items[node->item];

		if (ends_at(node, item, root))
			exempt |= item->exempts;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct node *node = &c->nodes[at[i]];
		const struct item *item = &c->items[node->item];

		if (!ends_at(node, item, root) || item->exempts ||
		    (exempt && item->exemptible))
			continue;
		v.mask |= item->mask;
		if (item->mask == DFA_MOVE && item->rule < move_rule)
			move_rule = item->rule;
		if (item->mask != DFA_MOVE && item->rule < v.rule)
			v.rule = item->rule;
	}
	if (v.rule == DFA_RULE_NONE)
		v.rule = move_rule;
	return v;
}

/* 0, or 1 + the number of an equal verdict. */
static uint32_t
verdict_number(struct compiler *c, struct dfa_verdict v)
{
	struct dfa *out = c->out;

	if (v.mask == 0)
		return 0;
	for (size_t i = 0; i < out->nverdicts; i++)
		if (out->verdict[i].mask == v.mask &&
		    out->verdict[i].rule == v.rule)
			return (uint32_t)(i + 1);
	work(c, out->nverdicts);
	if (out->nverdicts == DFA_VERDICTS_MAX) {
		fail(c, -E2BIG);
		return 0;
	}
	out->verdict[out->nverdicts++] = v;
	out->masks |= v.mask;
	return out->nverdicts;
}

/* What any name leads to, whatever else it does: into c->wild, in order, and
 * marked as met in this round. */
static void
reach_wild(struct compiler *c)
{
	struct dfa_list swap;

	c->now.n = 0;
	c->round++;
	for (size_t i = 0; i < c->wild.n; i++)
		reach_node(c, c->wild.at[i]);
	dfa_list_sort(&c->now);
	swap = c->wild;
	c->wild = c->now;
	c->now = swap;
}

/* The state after a name of class k. Class 0 is in no choice. */
static uint32_t
state_after(struct compiler *c, size_t k)
{
	c->now.n = 0;
	work(c, c->wild.n / 8);
	for (size_t i = 0; i < c->wild.n; i++)
		add(c, &c->now, c->wild.at[i]);
	for (size_t i = 0; i < c->moves[k].n; i++)
		reach_node(c, c->moves[k].at[i]);
	/* Marks are those of reach_wild(); what was met beside it may be met
	 * again for the next class. */
	for (size_t i = c->wild.n; i < c->now.n; i++)
		c->seen[c->now.at[i]] = 0;
	prune(c);
	return state_of_now(c, &c->path_states, &c->path_rows, PATH_STATES_MAX);
}

/* The row of state number s; makes the states that it leads to. */
static void
make_row(struct compiler *c, size_t s)
{
	struct dfa_set_span span = c->path_states.spans[s];
	uint32_t to;

	sort_members(c, &span);
	for (unsigned i = 0; i < c->in->nroots; i++) {
		uint32_t number = verdict_number(c, verdict_at(c, &span, i));

		dfa_row(&c->path_rows, s)[c->names.n + i] = number;
		work(c, 2 * span.n);
	}
	reach_wild(c);
	for (size_t k = 0; k < c->names.n && c->error == 0; k++) {
		/* A new state may move the rows. */
		if (k == 0 || c->moves[k].n > 0)
			to = state_after(c, k);
		else
			to = dfa_row(&c->path_rows, s)[0];
		dfa_row(&c->path_rows, s)[k] = to;
	}
}

static int
make_paths(struct compiler *c)
{
	int r = make_choice_names(c);

	if (r < 0)
		return r;
	c->path_rows.to = c->names.n;
	c->path_rows.out = c->in->nroots;
	c->now.n = 0;
	c->round++;
	for (size_t i = 0; i < c->starts.n; i++)
		reach_node(c, c->starts.at[i]);
	prune(c);
	(void)state_of_now(c, &c->path_states, &c->path_rows, PATH_STATES_MAX);
	for (size_t s = 0; s < c->path_states.n && c->error == 0; s++)
		make_row(c, s);
	return c->error;
}

/* --- table -------------------------------------------------------------- */

/* Classes of names that the upper level does not tell apart become one, then
 * states and bytes of the lower one. */
static int
merge_levels(struct compiler *c)
{
	int r =
	    dfa_rows_merge(&c->path_rows, &c->name_cols, &c->work, c->work_max);

	if (r < 0)
		return r;
	for (size_t s = 0; s < c->name_rows.n; s++) {
		uint32_t *class = &dfa_row(&c->name_rows, s)[c->nbytes];

		*class = c->name_cols[*class];
	}
	return dfa_rows_merge(&c->name_rows, &c->byte_cols, &c->work,
	    c->work_max);
}

static int
make_table(struct compiler *c)
{
	const struct dfa_rows *names = &c->name_rows, *paths = &c->path_rows;
	struct dfa *out = c->out;
	size_t name_width = names->to + 1, path_width = paths->to + paths->out;
	size_t total, start = names->n * name_width;
	uint16_t *next = out->next;

	if (!size_add(start, paths->n * path_width, &total) ||
	    total > DFA_NEXT_MAX)
		return -E2BIG;
	out->nnext = (uint32_t)total;
	out->start = (uint16_t)start;
	out->ncls = (uint16_t)names->to;
	out->nnames = (uint16_t)paths->to;
	out->nroots = (uint16_t)c->in->nroots;
	out->empty_roots = c->in->empty_roots;
	for (unsigned b = 0; b < 256; b++)
		out->cls[b] = (uint8_t)c->byte_cols[c->byte_class[b]];
	for (size_t s = 0; s < names->n; s++) {
		for (size_t k = 0; k < names->to; k++)
			*next++ = (uint16_t)(dfa_row(names, s)[k] * name_width);
		*next++ = (uint16_t)dfa_row(names, s)[names->to];
	}
	for (size_t s = 0; s < paths->n; s++) {
		for (size_t k = 0; k < paths->to; k++)
			*next++ = (uint16_t)(start +
			    dfa_row(paths, s)[k] * path_width);
		for (size_t k = 0; k < paths->out; k++)
			*next++ = (uint16_t)dfa_row(paths, s)[paths->to + k];
	}
	dfa_places_put(&c->places, out);
	return 0;
}

/* --- all of it ---------------------------------------------------------- */

static void
free_lists(struct dfa_list *lists, size_t n)
{
	for (size_t i = 0; lists != NULL && i < n; i++)
		free(lists[i].at);
	free(lists);
}

static void
compiler_done(struct compiler *c)
{
	free_lists(c->choice_names, c->choices.n);
	free_lists(c->part_choices, c->nparts);
	free_lists(c->lasts, c->nlasts);
	free_lists(c->moves, c->names.n);
	free(c->items);
	free(c->atoms);
	free(c->parts);
	free(c->nodes);
	free(c->part_buckets);
	free(c->node_buckets);
	free(c->starts.at);
	free(c->byte_sets);
	free(c->atom_set);
	free(c->atom_part);
	free(c->constant);
	for (size_t k = 0; k < ARRAY_LEN(c->constants); k++)
		free(c->constants[k].at);
	dfa_places_done(&c->places);
	dfa_sets_done(&c->name_states);
	dfa_sets_done(&c->names);
	dfa_sets_done(&c->choices);
	dfa_sets_done(&c->path_states);
	free(c->name_rows.at);
	free(c->path_rows.at);
	free(c->seen);
	free(c->now.at);
	free(c->wild.at);
	free(c->byte_cols);
	free(c->name_cols);
	free(c->out);
}

/* Room for what the patterns can need, up to the limits: a part takes two bytes
 * of its pattern, and two nodes; each of the two chains has an end. */
static void
measure(struct compiler *c)
{
	const struct dfa_rules *in = c->in;
	size_t parts = 1, nodes;

	for (size_t i = 0; i < in->nrules; i++)
		parts += strnlen(in->rules[i].glob, DFA_GLOB_MAX) / 2 + 2;
	for (size_t i = 0; i < in->nexemptions; i++)
		parts += strnlen(in->exemptions[i].glob, DFA_GLOB_MAX) / 2 + 2;
	c->parts_max = parts < PARTS_MAX ? parts : PARTS_MAX;
	for (nodes = 64; nodes < NODES_MAX && nodes < 2 * parts;)
		nodes *= 2;
	c->nodes_max = nodes;
	for (nodes = 64; nodes < 2 * c->parts_max;)
		nodes *= 2;
	c->part_buckets_n = nodes;
}

static int
compile(struct compiler *c, size_t *ret_bad)
{
	static int (*const steps[])(struct compiler *) = { make_names,
		make_paths, merge_levels, make_table };
	const struct dfa_rules *in = c->in;
	int r;

	c->items =
	    calloc(2 * in->nrules + in->nexemptions + 1, sizeof(*c->items));
	measure(c);
	c->parts = calloc(c->parts_max, sizeof(*c->parts));
	c->nodes = calloc(c->nodes_max, sizeof(*c->nodes));
	c->node_buckets = calloc(2 * c->nodes_max, sizeof(*c->node_buckets));
	c->lasts = calloc(c->nodes_max, sizeof(*c->lasts));
	c->part_buckets = calloc(c->part_buckets_n, sizeof(*c->part_buckets));
	c->out = calloc(1, sizeof(*c->out));
	if (c->items == NULL || c->parts == NULL || c->nodes == NULL ||
	    c->node_buckets == NULL || c->lasts == NULL ||
	    c->part_buckets == NULL || c->out == NULL)
		return -ENOMEM;
	r = add_all(c, ret_bad);
	if (r == 0)
		r = make_choices(c);
	if (r == 0)
		r = make_byte_sets(c);
	if (r < 0)
		return r;
	make_byte_classes(c);
	for (size_t i = 0; i < ARRAY_LEN(steps) && r == 0; i++)
		r = steps[i](c);
	return r;
}

static int
compile_all(const struct dfa_rules *in, struct dfa *ret, size_t work_max,
    bool *aside, size_t *ret_bad)
{
	struct compiler c = { .in = in, .work_max = work_max, .aside = aside };
	unsigned roots;
	int r;

	if (in->nroots < 1 || in->nroots > DFA_ROOTS_MAX ||
	    in->nrules > DFA_RULES_MAX || in->nexemptions > DFA_EXEMPTIONS_MAX)
		return -E2BIG;
	roots = (1u << in->nroots) - 1;
	if ((in->empty_roots & ~roots) != 0)
		return -EINVAL;
	c.ruled = (uint16_t)(roots & ~in->empty_roots);
	r = compile(&c, ret_bad);
	if (r == 0)
		memcpy(ret, c.out,
		    offsetof(struct dfa, place) +
			c.out->nplaces * sizeof(c.out->place[0]));
	compiler_done(&c);
	return r;
}

int
dfa_compile(const struct dfa_rules *in, struct dfa *ret, size_t *ret_bad)
{
	return compile_all(in, ret, WORK_MAX, NULL, ret_bad);
}

int
dfa_compile_some(const struct dfa_rules *in, struct dfa *ret, bool *ret_aside,
    size_t *ret_bad)
{
	int r = compile_all(in, ret, WORK_FIRST, NULL, ret_bad);

	memset(ret_aside, 0, in->nrules * sizeof(*ret_aside));
	return r != -E2BIG ? r :
			     compile_all(in, ret, WORK_MAX, ret_aside, ret_bad);
}
