/*
 * What both levels of common/dfa_build.c are made with: sets of numbers, each
 * once, and rows of numbers of which equal ones are merged. Pure; everything
 * has a limit.
 */
#ifndef COMMON_DFA_SETS_H
#define COMMON_DFA_SETS_H

#include <stddef.h>
#include <stdint.h>

#define DFA_NONE UINT32_MAX

struct dfa_list {
	uint32_t *at;
	size_t n;
	size_t cap;
};

int dfa_list_add(struct dfa_list *, uint32_t value);
/* In growing order, each once. */
void dfa_list_sort(struct dfa_list *);

struct dfa_set_span {
	size_t first; /* in members */
	size_t n;
	uint64_t hash;
};

struct dfa_sets {
	struct dfa_list members;
	struct dfa_set_span *spans;
	size_t n;
	size_t cap;
	uint32_t *buckets; /* 2 * cap */
};

/* Zero-initialise. */
void dfa_sets_done(struct dfa_sets *);
/* The number of the set that a sorted list is; -E2BIG for one more than max. */
int dfa_sets_add(struct dfa_sets *, const struct dfa_list *, size_t max,
    uint32_t *ret);

/*
 * A row: `to` columns that name rows, then `out` columns that are compared as
 * they are.
 */
struct dfa_rows {
	uint32_t *at;
	size_t n;
	size_t cap;
	size_t to;
	size_t out;
};

/* One more row, zeroed. -E2BIG above `cells` cells. */
int dfa_rows_add(struct dfa_rows *, size_t cells);
static inline uint32_t *
dfa_row(const struct dfa_rows *rows, size_t n)
{
	return rows->at + n * (rows->to + rows->out);
}

/*
 * Merges rows that nothing tells apart, and then equal columns, of the first
 * `to` ones only. *ret_cols, of `to` numbers, is the caller's to free; column
 * 0 stays 0, row 0 stays 0, and the first of each kind comes first. *work is
 * what it cost; more than its limit is -E2BIG.
 */
int dfa_rows_merge(struct dfa_rows *, uint32_t **ret_cols, size_t *work,
    size_t work_max);

#endif
