/*
 * The upper automaton of a table of name rules: the classes of a path's names,
 * from the last one on, and its root, to a verdict.
 */
#include "common/dfa_compiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

#define PATH_STATES_MAX 8192u

/* --- sets of nodes ------------------------------------------------------ */

/* A node and what it reaches without a name. */
static void
reach_node(struct compiler *c, uint32_t n)
{
	for (;;) {
		dfa_work(c, 1);
		if (c->seen[n] == c->round)
			return;
		c->seen[n] = c->round;
		dfa_add(c, &c->now, n);
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
	dfa_work(c, c->now.n * (1 + ndone));
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

/* --- rows --------------------------------------------------------------- */

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
			dfa_add(c,
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
			dfa_add(c, &c->wild, n);
		if (node->kind != NODE_NAME && node->kind != NODE_LAST)
			continue;
		for (size_t k = 0; k < names->n; k++)
			dfa_add(c, &c->moves[names->at[k]], node->next);
		dfa_work(c, names->n);
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
	dfa_work(c, out->nverdicts);
	if (out->nverdicts == DFA_VERDICTS_MAX) {
		dfa_fail(c, -E2BIG);
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
	dfa_work(c, c->wild.n / 8);
	for (size_t i = 0; i < c->wild.n; i++)
		dfa_add(c, &c->now, c->wild.at[i]);
	for (size_t i = 0; i < c->moves[k].n; i++)
		reach_node(c, c->moves[k].at[i]);
	/* Marks are those of reach_wild(); what was met beside it may be met
	 * again for the next class. */
	for (size_t i = c->wild.n; i < c->now.n; i++)
		c->seen[c->now.at[i]] = 0;
	prune(c);
	return dfa_state_of_now(c, &c->path_states, &c->path_rows,
	    PATH_STATES_MAX);
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
		dfa_work(c, 2 * span.n);
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

int
dfa_make_paths(struct compiler *c)
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
	(void)dfa_state_of_now(c, &c->path_states, &c->path_rows,
	    PATH_STATES_MAX);
	for (size_t s = 0; s < c->path_states.n && c->error == 0; s++)
		make_row(c, s);
	return c->error;
}
