/*
 * Compiles name rules: patterns to a nondeterministic automaton over the
 * reversed path, subset construction, merging of equal states, table. Runs in
 * control. Patterns are a client's, so that every size and the work as a whole
 * have a limit; passing one is -E2BIG.
 *
 * Each pattern c1/.../cn becomes a chain read from cn to c1. A write rule has a
 * second chain, for c1/.../c(n-1), that may be entered at each of its
 * components: these are the MOVE prefixes. What a chain reports is its item.
 */
#include "common/dfa.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/dfa_glob.h"
#include "common/size.h"

#define NODES_MAX (1u << 19)
#define SETS_MAX 4096u
#define STATES_MAX 24576u
#define MEMBERS_MAX (1u << 23) /* of all states together */
#define WORK_MAX (1u << 26) /* node visits */
#define MERGE_ROUNDS_MAX 512u
#define NONE UINT32_MAX

/* What is reported when a chain ends at a root. */
struct item {
	uint16_t mask;
	uint16_t rule;
	uint16_t roots; /* less the empty ones */
	bool exempts; /* reports nothing, lifts what is exemptible */
	bool exemptible;
	bool everywhere; /* holds below every root that has rules */
};

enum node_kind {
	NODE_BYTE, /* one byte of a set, then next */
	NODE_STAR, /* any bytes of this component, or next at once */
	NODE_SLASH, /* '/', then next */
	NODE_SPLIT, /* next or other, at once */
	NODE_ANY, /* any bytes; after each '/' also next */
	NODE_ROOT, /* the root symbol */
	NODE_ENDS, /* the root symbol, or '/' and then next, a NODE_DONE */
	NODE_DONE /* any bytes, then the root symbol */
};

struct node {
	enum node_kind kind;
	uint32_t next;
	uint32_t other; /* NODE_SPLIT: a node; NODE_BYTE: a set */
	uint32_t item;
};

/* Numbers, growing. */
struct list {
	uint32_t *at;
	size_t n;
	size_t cap;
};

struct state {
	size_t first; /* in members */
	size_t n;
	uint64_t hash;
};

struct compiler {
	const struct dfa_rules *in;
	uint16_t ruled; /* roots that are not empty */
	int error; /* sticky */
	size_t work;

	struct item *items; /* two for a rule, one for an exemption */
	size_t nitems;
	struct node *nodes;
	size_t nnodes;
	size_t nodes_cap;
	struct dfa_set *sets;
	size_t nsets;
	uint32_t single[256]; /* set of one byte, or NONE */
	struct list starts;

	uint16_t cls[DFA_SYMBOLS];
	unsigned ncls;
	int symbol[DFA_SYMBOLS]; /* one of each class */
	struct list *set_classes; /* of each set */
	struct list wild; /* members of a state that take many bytes */
	struct list *moves; /* targets for each class */

	struct list members;
	struct state *states;
	size_t nstates;
	uint32_t *buckets; /* hash table of state numbers */
	uint32_t *seen; /* of each node: the round it was met last */
	uint32_t round;
	struct list stack;
	struct list now; /* a state in the making */

	uint32_t *trans; /* nstates rows of ncls */
	uint32_t *part; /* of each state: its class of equal ones */
	uint32_t *part_new;
	struct dfa *out;
};

static void
fail(struct compiler *c, int error)
{
	if (c->error == 0)
		c->error = error;
}

static void
work(struct compiler *c, size_t n)
{
	c->work += n;
	if (c->work > WORK_MAX)
		fail(c, -E2BIG);
}

static void
list_add(struct compiler *c, struct list *list, uint32_t value)
{
	uint32_t *at;
	size_t cap;

	if (list->n == list->cap) {
		cap = list->cap == 0 ? 64 : 2 * list->cap;
		at = reallocarray(list->at, cap, sizeof(*at));
		if (at == NULL) {
			fail(c, -ENOMEM);
			return;
		}
		list->at = at;
		list->cap = cap;
	}
	list->at[list->n++] = value;
}

/* --- patterns to nodes -------------------------------------------------- */

static uint32_t
node_add(struct compiler *c, enum node_kind kind, uint32_t next, uint32_t other,
    uint32_t item)
{
	struct node *nodes;
	size_t cap;

	if (c->nnodes == NODES_MAX) {
		fail(c, -E2BIG);
		return 0;
	}
	if (c->nnodes == c->nodes_cap) {
		cap = c->nodes_cap == 0 ? 1024 : 2 * c->nodes_cap;
		nodes = reallocarray(c->nodes, cap, sizeof(*nodes));
		if (nodes == NULL) {
			fail(c, -ENOMEM);
			return 0;
		}
		c->nodes = nodes;
		c->nodes_cap = cap;
	}
	c->nodes[c->nnodes] = (struct node){ kind, next, other, item };
	return (uint32_t)c->nnodes++;
}

/* The byte, if a set has just one; -1. */
static int
set_single(const struct dfa_set *set)
{
	int found = -1;

	for (int word = 0; word < 4; word++) {
		uint64_t bits = set->bits[word];

		if (bits == 0)
			continue;
		if (found >= 0 || (bits & (bits - 1)) != 0)
			return -1;
		found = 64 * word + __builtin_ctzll(bits);
	}
	return found;
}

/* The number of an equal set. */
static uint32_t
set_add(struct compiler *c, const struct dfa_set *set)
{
	int byte = set_single(set);
	struct dfa_set *sets;

	if (byte >= 0 && c->single[byte] != NONE)
		return c->single[byte];
	for (size_t i = 0; byte < 0 && i < c->nsets; i++)
		if (memcmp(&c->sets[i], set, sizeof(*set)) == 0)
			return (uint32_t)i;
	work(c, c->nsets);
	if (c->nsets == SETS_MAX) {
		fail(c, -E2BIG);
		return 0;
	}
	sets = reallocarray(c->sets, c->nsets + 1, sizeof(*sets));
	if (sets == NULL) {
		fail(c, -ENOMEM);
		return 0;
	}
	c->sets = sets;
	c->sets[c->nsets] = *set;
	if (byte >= 0)
		c->single[byte] = (uint32_t)c->nsets;
	return (uint32_t)c->nsets++;
}

/* The nodes of one component, read backwards, before node. */
static uint32_t
part_nodes(struct compiler *c, const struct dfa_glob *glob,
    const struct dfa_part *part, uint32_t node, uint32_t item)
{
	for (size_t i = 0; i < part->natoms; i++) {
		const struct dfa_atom *atom = &glob->atoms[part->first + i];

		if (atom->star)
			node = node_add(c, NODE_STAR, node, 0, item);
		else
			node = node_add(c, NODE_BYTE, node,
			    set_add(c, &atom->set), item);
	}
	return node;
}

/*
 * The chain for the first n parts. Returns the node to begin at when the last
 * of them is the path's last; with `prefixes`, every part may be (except a
 * pattern of any path at all), and all are begun at.
 */
static void
chain(struct compiler *c, const struct dfa_glob *glob, size_t n, uint32_t item,
    bool prefixes)
{
	uint32_t done = node_add(c, NODE_DONE, 0, 0, item);
	uint32_t node = done, any;
	bool lone = false;

	for (size_t i = 0; i < n && c->error == 0; i++) {
		const struct dfa_part *part = &glob->parts[i];

		lone = i == 0 && part->any;
		if (part->any && i > 0) {
			any = node_add(c, NODE_ANY, node, 0, item);
			node = node_add(c, NODE_SPLIT, node, any, item);
		} else if (!part->any) {
			if (i == 0)
				node = node_add(c, NODE_ROOT, 0, 0, item);
			else if (i == 1 && glob->parts[0].any)
				node = node_add(c, NODE_ENDS, done, 0, item);
			else
				node = node_add(c, NODE_SLASH, node, 0, item);
			node = part_nodes(c, glob, part, node, item);
		}
		if (prefixes ? !lone : i + 1 == n)
			list_add(c, &c->starts, node);
	}
}

static uint32_t
item_add(struct compiler *c, const struct item *item)
{
	c->items[c->nitems] = *item;
	c->items[c->nitems].roots &= c->ruled;
	c->items[c->nitems].everywhere = (item->roots & c->ruled) == c->ruled;
	return (uint32_t)c->nitems++;
}

static int
add_rule(struct compiler *c, size_t number)
{
	const struct dfa_rule *rule = &c->in->rules[number];
	struct dfa_glob glob = { 0 };
	const char *why;
	struct item item = {
		.mask = rule->mask,
		.rule = (uint16_t)number,
		.roots = rule->roots,
		.exemptible = rule->class == DFA_BUILTIN,
	};
	int r;

	if (rule->mask == 0 || (rule->mask & DFA_MOVE) != 0 ||
	    (rule->mask & ~DFA_ALL) != 0)
		return -EINVAL;
	r = dfa_glob_parse(rule->glob, rule->ignore_case, &glob, &why);
	if (r < 0)
		return r;
	if ((rule->roots & c->ruled) != 0) {
		chain(c, &glob, glob.nparts, item_add(c, &item), false);
		item.mask = DFA_MOVE;
		item.exemptible = false;
		if ((rule->mask & DFA_WRITE) != 0 && glob.nparts > 1)
			chain(c, &glob, glob.nparts - 1, item_add(c, &item),
			    true);
	}
	dfa_glob_done(&glob);
	return 0;
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
		chain(c, &glob, glob.nparts, item_add(c, &item), false);
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

/* --- classes of symbols ------------------------------------------------- */

/* Every class is split into its symbols that are in and those that are not. */
static void
split_classes(struct compiler *c, const bool in[DFA_SYMBOLS])
{
	bool has_in[DFA_SYMBOLS] = { false }, has_out[DFA_SYMBOLS] = { false };
	uint16_t to[DFA_SYMBOLS];
	unsigned old = c->ncls;

	for (size_t i = 0; i < 256 + c->in->nroots; i++) {
		if (in[i])
			has_in[c->cls[i]] = true;
		else
			has_out[c->cls[i]] = true;
	}
	for (unsigned i = 0; i < old; i++)
		to[i] = has_in[i] && has_out[i] ? (uint16_t)c->ncls++ :
						  (uint16_t)i;
	for (size_t i = 0; i < 256 + c->in->nroots; i++)
		if (in[i])
			c->cls[i] = to[c->cls[i]];
}

/* Symbols that no node tells apart share a class: bytes, '/', roots. */
static int
make_classes(struct compiler *c)
{
	bool in[DFA_SYMBOLS];

	c->ncls = 2;
	for (size_t i = 0; i < 256 + c->in->nroots; i++)
		c->cls[i] = i >= 256;
	memset(in, 0, sizeof(in));
	in['/'] = true;
	split_classes(c, in);
	for (size_t s = 0; s < c->nsets; s++) {
		for (size_t i = 0; i < DFA_SYMBOLS; i++)
			in[i] = i < 256 &&
			    dfa_set_has(&c->sets[s], (unsigned char)i);
		split_classes(c, in);
	}
	for (size_t n = 0; n < c->nitems; n++) {
		for (size_t i = 0; i < DFA_SYMBOLS; i++)
			in[i] = i >= 256 &&
			    (c->items[n].roots & (1u << (i - 256))) != 0;
		split_classes(c, in);
	}
	for (size_t i = 256 + c->in->nroots; i-- > 0;)
		c->symbol[c->cls[i]] = (int)i;
	c->set_classes = calloc(c->nsets + 1, sizeof(*c->set_classes));
	c->moves = calloc(c->ncls, sizeof(*c->moves));
	if (c->set_classes == NULL || c->moves == NULL)
		return -ENOMEM;
	for (size_t s = 0; s < c->nsets; s++)
		for (unsigned k = 0; k < c->ncls; k++)
			if (c->symbol[k] < 256 &&
			    dfa_set_has(&c->sets[s],
				(unsigned char)c->symbol[k]))
				list_add(c, &c->set_classes[s], k);
	return c->error;
}

/* --- sets of nodes ------------------------------------------------------ */

/* A node and what it reaches without a symbol, once, into c->now. */
static void
reach(struct compiler *c, uint32_t first)
{
	list_add(c, &c->stack, first);
	while (c->stack.n > 0 && c->error == 0) {
		uint32_t n = c->stack.at[--c->stack.n];
		const struct node *node = &c->nodes[n];

		work(c, 1);
		if (c->seen[n] == c->round)
			continue;
		c->seen[n] = c->round;
		if (node->kind == NODE_SPLIT) {
			list_add(c, &c->stack, node->other);
			list_add(c, &c->stack, node->next);
			continue;
		}
		list_add(c, &c->now, n);
		if (node->kind == NODE_STAR)
			list_add(c, &c->stack, node->next);
	}
}

static void
begin_set(struct compiler *c)
{
	c->now.n = 0;
	c->round++;
}

/* Whether what x may still report is nothing beside what y reports for sure:
 * y is done and holds everywhere, and no exemption lifts it but also x. */
static bool
covers(const struct item *y, const struct item *x)
{
	if (x->exempts || y->exempts)
		return y->exempts && (x->exempts || x->exemptible);
	return (x->mask & ~y->mask) == 0 && (!y->exemptible || x->exemptible);
}

/*
 * Drops nodes of c->now that no longer matter, which is what keeps the number
 * of states near the sum of the patterns' lengths, not their product. Of two
 * that cover each other the lower one stays.
 */
static void
prune(struct compiler *c)
{
	uint32_t done[64];
	size_t ndone = 0, kept = 0;
	bool exemptible = false;

	for (size_t i = 0; i < c->now.n && ndone < ARRAY_LEN(done); i++) {
		const struct node *node = &c->nodes[c->now.at[i]];

		if (node->kind == NODE_DONE && c->items[node->item].everywhere)
			done[ndone++] = node->item;
	}
	work(c, c->now.n * (1 + ndone));
	for (size_t i = 0; i < c->now.n; i++) {
		const struct node *node = &c->nodes[c->now.at[i]];
		const struct item *x = &c->items[node->item];
		bool drop = false;

		for (size_t d = 0; d < ndone && !drop; d++) {
			const struct item *y = &c->items[done[d]];

			if (y == x)
				drop = node->kind != NODE_DONE;
			else
				drop = covers(y, x) &&
				    !(node->kind == NODE_DONE &&
					x->everywhere && covers(x, y) &&
					x < y);
		}
		if (!drop) {
			c->now.at[kept++] = c->now.at[i];
			exemptible |= x->exemptible;
		}
	}
	c->now.n = kept;
	if (exemptible)
		return;
	kept = 0;
	for (size_t i = 0; i < c->now.n; i++)
		if (!c->items[c->nodes[c->now.at[i]].item].exempts)
			c->now.at[kept++] = c->now.at[i];
	c->now.n = kept;
}

static int
compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint64_t
hash_numbers(const uint32_t *at, size_t n)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++) {
		hash = (hash ^ at[i]) * 0x100000001b3u;
		hash ^= hash >> 29;
	}
	return hash;
}

#define BUCKETS 65536u /* more than twice STATES_MAX */

/* The number of the state that c->now is; a new one if there is none. */
static uint32_t
state_of_now(struct compiler *c)
{
	uint64_t hash;
	size_t slot;

	prune(c);
	if (c->error != 0)
		return 0;
	if (c->now.n > 1)
		qsort(c->now.at, c->now.n, sizeof(*c->now.at), compare_numbers);
	hash = hash_numbers(c->now.at, c->now.n);
	for (slot = hash % BUCKETS; c->buckets[slot] != NONE;
	     slot = (slot + 1) % BUCKETS) {
		const struct state *s = &c->states[c->buckets[slot]];

		if (s->hash == hash && s->n == c->now.n &&
		    (s->n == 0 ||
			memcmp(c->members.at + s->first, c->now.at,
			    s->n * sizeof(*c->now.at)) == 0))
			return c->buckets[slot];
	}
	if (c->nstates == STATES_MAX ||
	    c->members.n + c->now.n > MEMBERS_MAX) {
		fail(c, -E2BIG);
		return 0;
	}
	c->states[c->nstates] = (struct state){ c->members.n, c->now.n, hash };
	for (size_t i = 0; i < c->now.n; i++)
		list_add(c, &c->members, c->now.at[i]);
	c->buckets[slot] = (uint32_t)c->nstates;
	return (uint32_t)c->nstates++;
}

/* --- subset construction ------------------------------------------------ */

/* Nodes of state s by the class that they take: one list a class, and one of
 * those that take any byte. */
static void
sort_members(struct compiler *c, const struct state *s)
{
	unsigned slash = c->cls['/'];

	c->wild.n = 0;
	for (unsigned k = 0; k < c->ncls; k++)
		c->moves[k].n = 0;
	for (size_t i = 0; i < s->n; i++) {
		uint32_t n = c->members.at[s->first + i];
		const struct node *node = &c->nodes[n];
		const struct list *classes;

		switch (node->kind) {
		case NODE_BYTE:
			classes = &c->set_classes[node->other];
			for (size_t k = 0; k < classes->n; k++)
				list_add(c, &c->moves[classes->at[k]],
				    node->next);
			work(c, classes->n);
			break;
		case NODE_SLASH:
		case NODE_ENDS:
			list_add(c, &c->moves[slash], node->next);
			break;
		case NODE_ANY:
			list_add(c, &c->moves[slash], node->next);
			list_add(c, &c->moves[slash], n);
			list_add(c, &c->wild, n);
			break;
		case NODE_DONE:
			list_add(c, &c->moves[slash], n);
			list_add(c, &c->wild, n);
			break;
		case NODE_STAR:
			list_add(c, &c->wild, n);
			break;
		case NODE_SPLIT:
		case NODE_ROOT:
			break;
		}
	}
}

static struct dfa_verdict
verdict_at(const struct compiler *c, const struct state *s, unsigned root)
{
	struct dfa_verdict v = { 0, DFA_RULE_NONE };
	uint16_t move_rule = DFA_RULE_NONE;
	bool exempt = false;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < s->n; i++) {
			const struct node *node =
			    &c->nodes[c->members.at[s->first + i]];
			const struct item *item = &c->items[node->item];

			if (node->kind < NODE_ROOT ||
			    (item->roots & (1u << root)) == 0)
				continue;
			if (pass == 0)
				exempt |= item->exempts;
			if (pass == 0 || item->exempts ||
			    (exempt && item->exemptible))
				continue;
			v.mask |= item->mask;
			if (item->mask == DFA_MOVE && item->rule < move_rule)
				move_rule = item->rule;
			if (item->mask != DFA_MOVE && item->rule < v.rule)
				v.rule = item->rule;
		}
	}
	if (v.rule == DFA_RULE_NONE)
		v.rule = move_rule;
	return v;
}

/* The entry of a root's column: 0, or 1 + the number of an equal verdict. */
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

/* The row of state number s; makes the states that it leads to. */
static void
make_row(struct compiler *c, size_t s)
{
	struct state state = c->states[s];
	uint32_t *row = c->trans + s * c->ncls;
	unsigned slash = c->cls['/'];

	sort_members(c, &state);
	for (unsigned k = 0; k < c->ncls && c->error == 0; k++) {
		if (c->symbol[k] >= 256) {
			row[k] = verdict_number(c, verdict_at(c, &state,
			    (unsigned)c->symbol[k] - 256));
			work(c, 2 * state.n);
			continue;
		}
		begin_set(c);
		for (size_t i = 0; i < c->moves[k].n; i++)
			reach(c, c->moves[k].at[i]);
		for (size_t i = 0; k != slash && i < c->wild.n; i++)
			reach(c, c->wild.at[i]);
		row[k] = state_of_now(c);
	}
}

/* State 0 is the empty set, 1 (or 0, without rules) the start. */
static int
make_states(struct compiler *c)
{
	size_t cells;

	if (!size_mul(STATES_MAX, c->ncls, &cells))
		return -E2BIG;
	c->states = calloc(STATES_MAX, sizeof(*c->states));
	c->trans = calloc(cells, sizeof(*c->trans));
	c->buckets = malloc(BUCKETS * sizeof(*c->buckets));
	c->seen = calloc(c->nnodes + 1, sizeof(*c->seen));
	if (c->states == NULL || c->trans == NULL || c->buckets == NULL ||
	    c->seen == NULL)
		return -ENOMEM;
	memset(c->buckets, 0xff, BUCKETS * sizeof(*c->buckets));
	begin_set(c);
	(void)state_of_now(c);
	begin_set(c);
	for (size_t i = 0; i < c->starts.n; i++)
		reach(c, c->starts.at[i]);
	(void)state_of_now(c);
	for (size_t s = 0; s < c->nstates && c->error == 0; s++)
		make_row(c, s);
	return c->error;
}

/* --- equal states, table ------------------------------------------------ */

/* What tells state s from others so far: its class and those it leads to. */
static bool
equal_rows(const struct compiler *c, size_t a, size_t b, bool first)
{
	const uint32_t *x = c->trans + a * c->ncls, *y = c->trans + b * c->ncls;

	if (!first && c->part[a] != c->part[b])
		return false;
	for (unsigned k = 0; k < c->ncls; k++) {
		if (c->symbol[k] >= 256) {
			if (first && x[k] != y[k])
				return false;
		} else if (!first && c->part[x[k]] != c->part[y[k]]) {
			return false;
		}
	}
	return true;
}

static uint64_t
hash_row(const struct compiler *c, size_t s, bool first)
{
	const uint32_t *row = c->trans + s * c->ncls;
	uint64_t hash = first ? 1 : 2 + (uint64_t)c->part[s];

	for (unsigned k = 0; k < c->ncls; k++) {
		bool root = c->symbol[k] >= 256;

		if (root != first)
			continue;
		hash ^= root ? row[k] : c->part[row[k]];
		hash *= 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	return hash;
}

/* One round of refinement; the number of parts. Part 0 is state 0's. */
static size_t
merge_round(struct compiler *c, bool first)
{
	size_t parts = 0, buckets = 64;

	while (buckets < BUCKETS && buckets < 2 * c->nstates)
		buckets *= 2;
	memset(c->buckets, 0xff, buckets * sizeof(*c->buckets));
	for (size_t s = 0; s < c->nstates; s++) {
		size_t slot = hash_row(c, s, first) % buckets;

		while (c->buckets[slot] != NONE &&
		    !equal_rows(c, c->buckets[slot], s, first))
			slot = (slot + 1) % buckets;
		if (c->buckets[slot] == NONE) {
			c->buckets[slot] = (uint32_t)s;
			c->part_new[s] = (uint32_t)parts++;
		} else {
			c->part_new[s] = c->part_new[c->buckets[slot]];
		}
	}
	work(c, c->nstates * c->ncls / 4);
	memcpy(c->part, c->part_new, c->nstates * sizeof(*c->part));
	return parts;
}

static int
merge_states(struct compiler *c, size_t *ret_parts)
{
	size_t parts, before = 0;

	c->part = calloc(c->nstates, sizeof(*c->part));
	c->part_new = calloc(c->nstates, sizeof(*c->part_new));
	if (c->part == NULL || c->part_new == NULL)
		return -ENOMEM;
	parts = merge_round(c, true);
	for (size_t i = 0; parts != before && c->error == 0; i++) {
		before = parts;
		parts = merge_round(c, false);
		if (i == MERGE_ROUNDS_MAX)
			return -E2BIG;
	}
	*ret_parts = parts;
	return c->error;
}

static int
make_table(struct compiler *c, size_t parts)
{
	struct dfa *out = c->out;
	size_t entries;

	if (!size_mul(parts, c->ncls, &entries) || entries > DFA_NEXT_MAX)
		return -E2BIG;
	out->nnext = (uint32_t)entries;
	out->ncls = (uint16_t)c->ncls;
	out->nroots = (uint16_t)c->in->nroots;
	out->empty_roots = c->in->empty_roots;
	out->start = (uint16_t)(c->part[c->nstates > 1] * c->ncls);
	memcpy(out->cls, c->cls, sizeof(out->cls));
	for (size_t s = 0; s < c->nstates; s++) {
		const uint32_t *row = c->trans + s * c->ncls;
		uint16_t *next = out->next + (size_t)c->part[s] * c->ncls;

		for (unsigned k = 0; k < c->ncls; k++)
			next[k] = c->symbol[k] >= 256 ?
			    (uint16_t)row[k] :
			    (uint16_t)(c->part[row[k]] * c->ncls);
	}
	return 0;
}

/* --- all of it ---------------------------------------------------------- */

static void
compiler_done(struct compiler *c)
{
	for (size_t i = 0; c->set_classes != NULL && i < c->nsets; i++)
		free(c->set_classes[i].at);
	for (size_t i = 0; c->moves != NULL && i < c->ncls; i++)
		free(c->moves[i].at);
	free(c->set_classes);
	free(c->moves);
	free(c->items);
	free(c->nodes);
	free(c->sets);
	free(c->starts.at);
	free(c->wild.at);
	free(c->members.at);
	free(c->states);
	free(c->buckets);
	free(c->seen);
	free(c->stack.at);
	free(c->now.at);
	free(c->trans);
	free(c->part);
	free(c->part_new);
	free(c->out);
}

static int
compile(struct compiler *c, size_t *ret_bad)
{
	const struct dfa_rules *in = c->in;
	size_t parts = 0;
	int r;

	c->items = calloc(2 * in->nrules + in->nexemptions + 1,
	    sizeof(*c->items));
	c->out = calloc(1, sizeof(*c->out));
	if (c->items == NULL || c->out == NULL)
		return -ENOMEM;
	memset(c->single, 0xff, sizeof(c->single));
	r = add_all(c, ret_bad);
	if (r == 0)
		r = make_classes(c);
	if (r == 0)
		r = make_states(c);
	if (r == 0)
		r = merge_states(c, &parts);
	if (r == 0)
		r = make_table(c, parts);
	return r;
}

int
dfa_compile(const struct dfa_rules *in, struct dfa *ret, size_t *ret_bad)
{
	struct compiler c = { .in = in };
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
		*ret = *c.out;
	compiler_done(&c);
	return r;
}
