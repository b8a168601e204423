/*
 * Rules that are literal paths, on their way into a table: a tree of names.
 * For common/dfa_build.c. No I/O; the size has a limit.
 */
#ifndef COMMON_DFA_PLACES_H
#define COMMON_DFA_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dfa.h"
#include "common/dfa_glob.h"

/* One rule. The first 16 trees are those of the roots. */
struct dfa_literal {
	unsigned tree; /* a root's number, or DFA_PLACE_ANY */
	const struct dfa_glob *glob; /* dfa_is_literal() */
	uint16_t mask; /* with MOVE where it has WRITE */
	uint16_t rule;
};

struct dfa_places {
	struct dfa_node *nodes;
	size_t n;
	size_t cap;
	uint32_t *buckets; /* 2 * cap, a power of two */
};

/* Only names that are one text each, with ** at most before and behind. */
bool dfa_is_literal(const struct dfa_glob *);

/* Zero-initialise. 0, -E2BIG or -ENOMEM. */
int dfa_places_add(struct dfa_places *, const struct dfa_literal *);
/* Fills place and nplaces, and adds to masks. */
void dfa_places_put(const struct dfa_places *, struct dfa *out);
void dfa_places_done(struct dfa_places *);

#endif
