/*
 * See tables.h. A hostile client can only make the kept ones be made anew: two
 * lists of rules with one digest would be a collision of SHA-256.
 */
#include "supervisor/control/tables.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/wire.h"
#include "supervisor/control/plan_make.h"

struct table {
	uint8_t key[PLAN_DIGEST];
	struct dfa *dfa; /* NULL: an empty place */
	bool *aside;
	uint64_t used;
};

static struct table kept[TABLES_KEPT_MAX];
static uint64_t uses;

/* Everything that the compiler reads. */
static int
key_of(const struct dfa_rules *in, uint8_t ret[PLAN_DIGEST])
{
	struct wire_out out;
	int r;

	wire_out_init(&out);
	wire_put_u64(&out, in->nroots);
	wire_put_u64(&out, in->empty_roots);
	wire_put_array(&out, in->nrules);
	for (size_t i = 0; i < in->nrules; i++) {
		wire_put_cstr(&out, in->rules[i].glob);
		wire_put_u64(&out, in->rules[i].mask);
		wire_put_u64(&out, in->rules[i].roots);
		wire_put_u64(&out, in->rules[i].class);
		wire_put_bool(&out, in->rules[i].ignore_case);
	}
	wire_put_array(&out, in->nexemptions);
	for (size_t i = 0; i < in->nexemptions; i++) {
		wire_put_cstr(&out, in->exemptions[i].glob);
		wire_put_u64(&out, in->exemptions[i].roots);
		wire_put_bool(&out, in->exemptions[i].ignore_case);
	}
	r = plan_sha256(&out, ret);
	wire_out_done(&out);
	return r < 0 ? -ENOMEM : 0;
}

/* The one with this key, or the place for it. */
static struct table *
place_of(const uint8_t key[PLAN_DIGEST])
{
	struct table *oldest = &kept[0];

	for (size_t i = 0; i < TABLES_KEPT_MAX; i++) {
		struct table *t = &kept[i];

		if (t->dfa != NULL && memcmp(t->key, key, PLAN_DIGEST) == 0)
			return t;
		if (t->used < oldest->used)
			oldest = t;
	}
	free(oldest->dfa);
	free(oldest->aside);
	memset(oldest, 0, sizeof(*oldest));
	return oldest;
}

static int
fill(struct table *t, const struct dfa_rules *in, size_t *ret_bad)
{
	struct dfa *dfa = malloc(sizeof(*dfa));
	bool *aside = calloc(in->nrules + 1, sizeof(*aside));
	int r = dfa == NULL || aside == NULL ?
	    -ENOMEM :
	    dfa_compile_some(in, dfa, aside, ret_bad);

	if (r < 0) {
		free(dfa);
		free(aside);
		return r;
	}
	t->dfa = dfa;
	t->aside = aside;
	return 0;
}

int
tables_compile(const struct dfa_rules *in, const struct dfa **ret,
    const bool **ret_aside, size_t *ret_bad)
{
	uint8_t key[PLAN_DIGEST];
	struct table *t;
	int r = key_of(in, key);

	if (r < 0)
		return r;
	t = place_of(key);
	if (t->dfa == NULL)
		r = fill(t, in, ret_bad);
	if (r < 0)
		return r;
	memcpy(t->key, key, sizeof(key));
	t->used = ++uses;
	*ret = t->dfa;
	*ret_aside = t->aside;
	return 0;
}

void
tables_copy(struct dfa *to, const struct dfa *from)
{
	memcpy(to, from, offsetof(struct dfa, next));
	memcpy(to->next, from->next, from->nnext * sizeof(from->next[0]));
	memcpy(to->place, from->place, from->nplaces * sizeof(from->place[0]));
}
