/*
 * Compiles name rules. Runs in control and in the look-up. Patterns are a
 * client's, so that every size and the work as a whole have a limit; passing
 * one is -E2BIG.
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
#include "common/dfa_compiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

#define ATOMS_MAX (1u << 18)
#define PARTS_MAX 16384u
#define NODES_MAX 65536u
#define ASIDE_PARTS_MAX 32
#define CELLS_MAX (1u << 22) /* of a level's rows, before merging */
#define WORK_MAX (1u << 24)
#define WORK_FIRST (1u << 23) /* where rules can be left out */

void
dfa_fail(struct compiler *c, int error)
{
	if (c->error == 0 && error < 0)
		c->error = error;
}

void
dfa_work(struct compiler *c, size_t n)
{
	c->work += n;
	if (c->work > c->work_max)
		dfa_fail(c, -E2BIG);
}

void
dfa_add(struct compiler *c, struct dfa_list *list, uint32_t value)
{
	dfa_fail(c, dfa_list_add(list, value));
}

uint32_t
dfa_state_of_now(struct compiler *c, struct dfa_sets *states,
    struct dfa_rows *rows, size_t max)
{
	uint32_t state = 0;

	dfa_list_sort(&c->now);
	if (c->error == 0)
		dfa_fail(c, dfa_sets_add(states, &c->now, max, &state));
	if (c->error == 0 && states->n > rows->n)
		dfa_fail(c, dfa_rows_add(rows, CELLS_MAX));
	return state;
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

		dfa_work(c, 1);
		if (c->parts[i].natoms == part->natoms &&
		    memcmp(c->atoms + c->parts[i].first, atoms, size) == 0)
			return i;
	}
	if (c->nparts == c->parts_max || c->natoms + part->natoms > ATOMS_MAX) {
		dfa_fail(c, -E2BIG);
		return 0;
	}
	if (c->natoms + part->natoms > c->atoms_cap) {
		c->atoms_cap = 2 * (c->natoms + part->natoms);
		grown = reallocarray(c->atoms, c->atoms_cap, sizeof(*grown));
		if (grown == NULL) {
			dfa_fail(c, -ENOMEM);
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
		dfa_fail(c, -E2BIG);
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
	dfa_add(c, &c->lasts[c->nodes[at].choice], part);
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
		dfa_add(c, &c->starts, at);
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
			dfa_add(c, &c->starts, at);
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
	dfa_work(c, c->nitems);
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
			dfa_add(c, &one, node->part);
		else
			list = &c->lasts[node->choice];
		dfa_list_sort(list);
		dfa_work(c, list->n);
		dfa_fail(c,
		    dfa_sets_add(&c->choices, list, NODES_MAX, &node->choice));
	}
	free(one.at);
	c->part_choices = calloc(c->nparts + 1, sizeof(*c->part_choices));
	if (c->part_choices == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < c->choices.n && c->error == 0; k++) {
		const struct dfa_set_span *s = &c->choices.spans[k];

		for (size_t i = 0; i < s->n; i++)
			dfa_add(c,
			    &c->part_choices[c->choices.members
						 .at[s->first + i]],
			    (uint32_t)k);
	}
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
	static int (*const steps[])(struct compiler *) = { dfa_make_names,
		dfa_make_paths, merge_levels, make_table };
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
		r = dfa_make_byte_sets(c);
	if (r < 0)
		return r;
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
