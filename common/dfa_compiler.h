/*
 * A compilation in progress: what the parts of common/dfa_build.c share, which
 * describes it. The lower level is dfa_names.c, the upper one dfa_paths.c.
 */
#ifndef COMMON_DFA_COMPILER_H
#define COMMON_DFA_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dfa.h"
#include "common/dfa_glob.h"
#include "common/dfa_places.h"
#include "common/dfa_sets.h"

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

/* The first error stays. */
void dfa_fail(struct compiler *, int error);
/* So much work was done; too much is an error. */
void dfa_work(struct compiler *, size_t n);
void dfa_add(struct compiler *, struct dfa_list *, uint32_t value);
/* The number of the state that is c->now; a new one has a new row. */
uint32_t dfa_state_of_now(struct compiler *, struct dfa_sets *states,
    struct dfa_rows *, size_t max);

/* --- dfa_names.c -------------------------------------------------------- */

/* These in this order: 0 or -errno. */
int dfa_make_byte_sets(struct compiler *);
int dfa_make_names(struct compiler *);

/* --- dfa_paths.c: after the names --------------------------------------- */

int dfa_make_paths(struct compiler *);

#endif
