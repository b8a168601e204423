/*
 * Sets and rows. Hash tables with open addressing, never more than half full.
 */
#include "common/dfa_sets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/size.h"

int
dfa_list_add(struct dfa_list *list, uint32_t value)
{
	uint32_t *at;
	size_t cap;

	if (list->n == list->cap) {
		cap = list->cap == 0 ? 16 : 2 * list->cap;
		at = reallocarray(list->at, cap, sizeof(*at));
		if (at == NULL)
			return -ENOMEM;
		list->at = at;
		list->cap = cap;
	}
	list->at[list->n++] = value;
	return 0;
}

static int
compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The rest of a list that is in order up to `sorted`; few numbers are moved
 * to their places one by one. */
static void
sort_rest(struct dfa_list *list, size_t sorted)
{
	uint32_t *at = list->at;

	if (list->n - sorted > 16) {
		qsort(at, list->n, sizeof(*at), compare_numbers);
		return;
	}
	for (; sorted < list->n; sorted++) {
		uint32_t value = at[sorted];
		size_t to = sorted;

		while (to > 0 && at[to - 1] > value)
			to--;
		memmove(at + to + 1, at + to, (sorted - to) * sizeof(*at));
		at[to] = value;
	}
}

void
dfa_list_sort(struct dfa_list *list)
{
	size_t sorted = 1, kept = 0;

	if (list->n < 2)
		return;
	while (sorted < list->n && list->at[sorted - 1] <= list->at[sorted])
		sorted++;
	sort_rest(list, sorted);
	for (size_t i = 0; i < list->n; i++)
		if (kept == 0 || list->at[kept - 1] != list->at[i])
			list->at[kept++] = list->at[i];
	list->n = kept;
}

static uint64_t
hash_add(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* Room for twice as many, or the first ones. Buckets hold the number + 1, so
 * that zeroed memory is an empty table. */
static int
sets_grow(struct dfa_sets *sets)
{
	size_t cap = sets->cap == 0 ? 32 : 2 * sets->cap, slot;
	struct dfa_set_span *spans;
	uint32_t *buckets;

	spans = reallocarray(sets->spans, cap, sizeof(*spans));
	if (spans == NULL)
		return -ENOMEM;
	sets->spans = spans;
	buckets = calloc(2 * cap, sizeof(*buckets));
	if (buckets == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < sets->n; i++) {
		for (slot = spans[i].hash & (2 * cap - 1); buckets[slot] != 0;)
			slot = (slot + 1) & (2 * cap - 1);
		buckets[slot] = (uint32_t)i + 1;
	}
	free(sets->buckets);
	sets->buckets = buckets;
	sets->cap = cap;
	return 0;
}

void
dfa_sets_done(struct dfa_sets *sets)
{
	free(sets->members.at);
	free(sets->spans);
	free(sets->buckets);
	*sets = (struct dfa_sets){ 0 };
}

int
dfa_sets_add(struct dfa_sets *sets, const struct dfa_list *list, size_t max,
    uint32_t *ret)
{
	uint64_t hash = list->n;
	size_t slot, mask;

	if (sets->n == sets->cap && sets_grow(sets) < 0)
		return -ENOMEM;
	mask = 2 * sets->cap - 1;
	for (size_t i = 0; i < list->n; i++)
		hash = hash_add(hash, list->at[i]);
	for (slot = hash & mask; sets->buckets[slot] != 0;
	     slot = (slot + 1) & mask) {
		const struct dfa_set_span *s =
		    &sets->spans[sets->buckets[slot] - 1];

		if (s->hash == hash && s->n == list->n &&
		    (s->n == 0 ||
			memcmp(sets->members.at + s->first, list->at,
			    s->n * sizeof(*list->at)) == 0)) {
			*ret = sets->buckets[slot] - 1;
			return 0;
		}
	}
	if (sets->n >= max)
		return -E2BIG;
	sets->spans[sets->n] =
	    (struct dfa_set_span){ sets->members.n, list->n, hash };
	for (size_t i = 0; i < list->n; i++)
		if (dfa_list_add(&sets->members, list->at[i]) < 0)
			return -ENOMEM;
	*ret = (uint32_t)sets->n++;
	sets->buckets[slot] = *ret + 1;
	return 0;
}

/* --- rows --------------------------------------------------------------- */

int
dfa_rows_add(struct dfa_rows *rows, size_t cells)
{
	size_t width = rows->to + rows->out, cap, size;
	uint32_t *at;

	if (rows->n + 1 > cells / width)
		return -E2BIG;
	if (rows->n == rows->cap) {
		cap = rows->cap == 0 ? 16 : 2 * rows->cap;
		if (!size_mul(cap, width, &size))
			return -E2BIG;
		at = reallocarray(rows->at, size, sizeof(*at));
		if (at == NULL)
			return -ENOMEM;
		rows->at = at;
		rows->cap = cap;
	}
	memset(rows->at + rows->n * width, 0, width * sizeof(*rows->at));
	rows->n++;
	return 0;
}

struct merger {
	struct dfa_rows *rows;
	uint32_t *part; /* of each row: its kind so far */
	uint32_t *part_new;
	uint32_t *buckets;
	size_t nbuckets;
};

static bool
equal_rows(const struct merger *m, size_t a, size_t b, bool first)
{
	const struct dfa_rows *rows = m->rows;
	const uint32_t *x = dfa_row(rows, a), *y = dfa_row(rows, b);

	if (first)
		return memcmp(x + rows->to, y + rows->to,
			   rows->out * sizeof(*x)) == 0;
	if (m->part[a] != m->part[b])
		return false;
	for (size_t k = 0; k < rows->to; k++)
		if (m->part[x[k]] != m->part[y[k]])
			return false;
	return true;
}

static uint64_t
hash_row(const struct merger *m, size_t n, bool first)
{
	const uint32_t *row = dfa_row(m->rows, n);
	uint64_t hash = first ? 1 : m->part[n];

	for (size_t k = 0; first && k < m->rows->out; k++)
		hash = hash_add(hash, row[m->rows->to + k]);
	for (size_t k = 0; !first && k < m->rows->to; k++)
		hash = hash_add(hash, m->part[row[k]]);
	return hash;
}

/* One round of refinement; the number of kinds. */
static size_t
merge_round(struct merger *m, bool first)
{
	size_t parts = 0, mask = m->nbuckets - 1;

	memset(m->buckets, 0, m->nbuckets * sizeof(*m->buckets));
	for (size_t n = 0; n < m->rows->n; n++) {
		size_t slot = hash_row(m, n, first) & mask;

		while (m->buckets[slot] != 0 &&
		    !equal_rows(m, m->buckets[slot] - 1, n, first))
			slot = (slot + 1) & mask;
		if (m->buckets[slot] == 0) {
			m->buckets[slot] = (uint32_t)n + 1;
			m->part_new[n] = (uint32_t)parts++;
		} else {
			m->part_new[n] = m->part_new[m->buckets[slot] - 1];
		}
	}
	memcpy(m->part, m->part_new, m->rows->n * sizeof(*m->part));
	return parts;
}

/* The first row of each kind moves up; what rows name follows. */
static void
keep_first_rows(struct merger *m, size_t parts)
{
	struct dfa_rows *rows = m->rows;
	size_t kept = 0;

	for (size_t n = 0; n < rows->n && kept < parts; n++) {
		uint32_t *row = dfa_row(rows, kept);

		if (m->part[n] != kept)
			continue;
		memmove(row, dfa_row(rows, n),
		    (rows->to + rows->out) * sizeof(*row));
		for (size_t k = 0; k < rows->to; k++)
			row[k] = m->part[row[k]];
		kept++;
	}
	rows->n = parts;
}

static uint64_t
hash_column(const struct dfa_rows *rows, size_t col)
{
	uint64_t hash = 0;

	for (size_t n = 0; n < rows->n; n++)
		hash = hash_add(hash, dfa_row(rows, n)[col]);
	return hash;
}

static bool
equal_columns(const struct dfa_rows *rows, size_t a, size_t b)
{
	for (size_t n = 0; n < rows->n; n++)
		if (dfa_row(rows, n)[a] != dfa_row(rows, n)[b])
			return false;
	return true;
}

/* cols[k]: the number of column k among the different ones. */
static int
merge_columns(struct dfa_rows *rows, uint32_t *cols)
{
	size_t width = rows->to + rows->out, ncols = 0, nbuckets = 64;
	autofree uint32_t *buckets = NULL, *first = NULL;

	while (nbuckets < 2 * rows->to)
		nbuckets *= 2;
	buckets = calloc(nbuckets, sizeof(*buckets));
	first = calloc(rows->to, sizeof(*first));
	if (buckets == NULL || first == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < rows->to; k++) {
		size_t slot = hash_column(rows, k) & (nbuckets - 1);

		while (buckets[slot] != 0 &&
		    !equal_columns(rows, first[buckets[slot] - 1], k))
			slot = (slot + 1) & (nbuckets - 1);
		if (buckets[slot] == 0) {
			first[ncols] = (uint32_t)k;
			buckets[slot] = (uint32_t)++ncols;
		}
		cols[k] = buckets[slot] - 1;
	}
	for (size_t n = 0; n < rows->n; n++) {
		uint32_t *to = rows->at + n * (ncols + rows->out);
		const uint32_t *from = rows->at + n * width;

		for (size_t k = 0; k < ncols; k++)
			to[k] = from[first[k]];
		memmove(to + ncols, from + rows->to, rows->out * sizeof(*to));
	}
	rows->to = ncols;
	return 0;
}

int
dfa_rows_merge(struct dfa_rows *rows, uint32_t **ret_cols, size_t *work,
    size_t work_max)
{
	autofree uint32_t *part = calloc(rows->n, sizeof(*part));
	autofree uint32_t *part_new = calloc(rows->n, sizeof(*part_new));
	autofree uint32_t *buckets = NULL;
	autofree uint32_t *cols = calloc(rows->to, sizeof(*cols));
	struct merger m = { rows, part, part_new, NULL, 64 };
	size_t parts, before = 0;
	int r;

	while (m.nbuckets < 2 * rows->n)
		m.nbuckets *= 2;
	buckets = calloc(m.nbuckets, sizeof(*buckets));
	if (part == NULL || part_new == NULL || buckets == NULL || cols == NULL)
		return -ENOMEM;
	m.buckets = buckets;
	parts = merge_round(&m, true);
	while (parts != before) {
		*work += rows->n * (rows->to + rows->out);
		if (*work > work_max)
			return -E2BIG;
		before = parts;
		parts = merge_round(&m, false);
	}
	keep_first_rows(&m, parts);
	r = merge_columns(rows, cols);
	if (r == 0)
		*ret_cols = take_ptr(&cols);
	return r;
}
