/*
 * The lower automaton of a table of name rules: names, from their last byte
 * on, to their classes.
 */
#include "common/dfa_compiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BYTE_SETS_MAX 1024u
#define NAME_STATES_MAX 24576u
#define NAMES_MAX 8192u

/* The numbers of the atoms' sets, equal ones once. */
int
dfa_make_byte_sets(struct compiler *c)
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
		dfa_work(c, k);
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
	dfa_work(c, 1);
	if (c->seen[n] == c->round || (n < c->natoms && c->constant[n]))
		return false;
	c->seen[n] = c->round;
	dfa_add(c, &c->now, (uint32_t)n);
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
			dfa_work(c, choices->n);
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
				dfa_add(c, &c->constants[k],
				    (uint32_t)last - 1);
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
	dfa_work(c, from->n);
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
			dfa_add(c, &c->now,
			    (uint32_t)((n - c->natoms) % c->choices.n));
	}
	dfa_list_sort(&c->now);
	dfa_fail(c, dfa_sets_add(&c->names, &c->now, NAMES_MAX, &class));
	return class;
}

/* State 0 is where a name begins, class 0 that of names in no part. */
int
dfa_make_names(struct compiler *c)
{
	uint32_t none = 0;

	make_byte_classes(c);
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
	(void)dfa_state_of_now(c, &c->name_states, &c->name_rows,
	    NAME_STATES_MAX);
	for (size_t s = 0; s < c->name_states.n && c->error == 0; s++) {
		struct dfa_set_span span = c->name_states.spans[s];
		uint32_t to = class_of_name(c, &span);

		dfa_row(&c->name_rows, s)[c->nbytes] = to;
		for (unsigned k = 0; k < c->nbytes && c->error == 0; k++) {
			step_atoms(c, &span, k);
			to = dfa_state_of_now(c, &c->name_states, &c->name_rows,
			    NAME_STATES_MAX);
			dfa_row(&c->name_rows, s)[k] = to;
		}
	}
	return c->error;
}
