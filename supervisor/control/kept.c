/*
 * In stockade-control. Bytes are checked when they come; the same bytes cannot
 * fail later. If they do, memory was overwritten and this process ends (the
 * supervisor starts it again and sends them anew): nothing that was received
 * leads there.
 */
#include "supervisor/control/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/proc.h"
#include "protocol/egress.h"
#include "protocol/guard.h"
#include "protocol/plan.h"
#include "supervisor/control/session_facts.h"

struct opened {
	const struct kept *plan_of;
	const struct kept *facts_of;
	const struct kept *egress_of;
	const struct kept *guard_of;
	struct plan plan;
	struct session_facts facts;
	struct egress_lists egress;
	struct guard guard;
};

struct opened *
opened_new(void)
{
	return calloc(1, sizeof(struct opened));
}

void
opened_free(struct opened *open)
{
	free(open);
}

static int
open_plan(const struct kept *k, struct opened *open)
{
	const char *field;
	int r;

	if (open->plan_of == k)
		return 0;
	open->plan_of = NULL;
	r = plan_decode(k->data, k->plan_len, &open->plan, &field);
	if (r == 0)
		open->plan_of = k;
	return r;
}

static int
open_facts(const struct kept *k, struct opened *open)
{
	int r;

	if (open->facts_of == k)
		return 0;
	open->facts_of = NULL;
	r = session_facts_decode(k->data + k->facts_at, k->facts_len,
	    &open->facts);
	if (r == 0)
		open->facts_of = k;
	return r;
}

static int
open_egress(const struct kept *k, struct opened *open)
{
	int r;

	if (open->egress_of == k)
		return 0;
	open->egress_of = NULL;
	r = egress_lists_decode(k->data + k->plan_len, k->egress_len,
	    &open->egress);
	if (r == 0)
		open->egress_of = k;
	return r;
}

static int
open_guard(const struct kept *k, struct opened *open)
{
	int r;

	if (open->guard_of == k)
		return 0;
	open->guard_of = NULL;
	r = guard_decode(k->data + k->plan_len + k->egress_len, k->guard_len,
	    &open->guard);
	if (r == 0)
		open->guard_of = k;
	return r;
}

/* Whether the table is of the plan's places. */
static bool
fits(const struct plan *plan, const struct guard *guard)
{
	if (plan->nroots != guard->nroots)
		return false;
	for (size_t i = 0; i < plan->nroots; i++)
		if (strcmp(plan->roots[i].path, guard->roots[i].path) != 0 ||
		    plan->roots[i].empty != guard->roots[i].empty)
			return false;
	return true;
}

static int
take_apart(struct kept *k, struct opened *open)
{
	int r = open_plan(k, open);

	if (r < 0)
		return r;
	k->facts_at = (size_t)(open->plan.session.data - k->data);
	k->facts_len = open->plan.session.len;
	r = open_facts(k, open);
	if (r == 0)
		r = open_egress(k, open);
	if (r == 0 && (open->plan.nroots > 0) != (k->guard_len > 0))
		r = -EPROTO;
	if (r == 0 && k->guard_len > 0)
		r = open_guard(k, open);
	if (r == 0 && k->guard_len > 0 && !fits(&open->plan, &open->guard))
		r = -EPROTO;
	return r;
}

int
kept_set(struct kept *k, struct opened *open, struct kept_bytes plan,
    struct kept_bytes egress, struct kept_bytes guard)
{
	int r;

	kept_done(k, open);
	k->data = malloc(plan.len + egress.len + guard.len);
	if (k->data == NULL)
		return -ENOMEM;
	k->plan_len = plan.len;
	k->egress_len = egress.len;
	k->guard_len = guard.len;
	memcpy(k->data, plan.data, plan.len);
	memcpy(k->data + plan.len, egress.data, egress.len);
	if (guard.len > 0)
		memcpy(k->data + plan.len + egress.len, guard.data, guard.len);
	r = take_apart(k, open);
	if (r < 0)
		kept_done(k, open);
	return r;
}

static void
forget(const struct kept *k, struct opened *open)
{
	if (open->plan_of == k)
		open->plan_of = NULL;
	if (open->facts_of == k)
		open->facts_of = NULL;
	if (open->egress_of == k)
		open->egress_of = NULL;
	if (open->guard_of == k)
		open->guard_of = NULL;
}

void
kept_move(struct kept *from, struct kept *to, struct opened *open)
{
	forget(from, open);
	*to = *from;
	memset(from, 0, sizeof(*from));
}

void
kept_done(struct kept *k, struct opened *open)
{
	if (k->data != NULL)
		explicit_bzero(k->data,
		    k->plan_len + k->egress_len + k->guard_len);
	free(k->data);
	memset(k, 0, sizeof(*k));
	forget(k, open);
}

const struct plan *
kept_plan(const struct kept *k, struct opened *open)
{
	if (open_plan(k, open) < 0)
		proc_fatal("a plan that was kept cannot be read");
	return &open->plan;
}

const struct session_facts *
kept_facts(const struct kept *k, struct opened *open)
{
	if (open_facts(k, open) < 0)
		proc_fatal("facts that were kept cannot be read");
	return &open->facts;
}

const struct egress_lists *
kept_egress(const struct kept *k, struct opened *open)
{
	if (open_egress(k, open) < 0)
		proc_fatal("egress lists that were kept cannot be read");
	return &open->egress;
}

const struct guard *
kept_guard(const struct kept *k, struct opened *open)
{
	if (k->guard_len == 0)
		return NULL;
	if (open_guard(k, open) < 0)
		proc_fatal("a table that was kept cannot be read");
	return &open->guard;
}
