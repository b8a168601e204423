/*
 * The question as bytes, with what the start scan looks for (SPEC J4, J8, C12;
 * protocol/lookup.h). The rules are those of the run, but as they are known
 * before the look-up: of paths from the root of the file system, a pattern that
 * is anchored at a mount at any depth, exemptions of the spec left out. So the
 * scan finds at least what the run's table denies; plan_found.c judges by that
 * one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "protocol/guard.h"
#include "protocol/lookup.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/name_pattern.h"
#include "supervisor/control/name_rules.h"
#include "supervisor/control/plan_ask.h"
#include "supervisor/control/pool.h"
#include "supervisor/control/spec.h"
#include "supervisor/control/tables.h"

struct asking {
	struct pool pool;
	struct wire_out table;
	struct lookup_question question;
};

static bool
is_writable(const struct spec *spec, const struct plan_item *item)
{
	return item->role == PLAN_ROLE_STATE ||
	    (item->role == PLAN_ROLE_MOUNT && spec->mode == SPEC_CHAT &&
		!spec->mounts[item->index].read_only);
}

static enum lookup_use
use_of(const struct spec *spec, const struct plan_item *item)
{
	if (is_writable(spec, item))
		return LOOKUP_USE_WRITABLE;
	if (item->role == PLAN_ROLE_MOUNT)
		return LOOKUP_USE_READABLE;
	return item->role == PLAN_ROLE_DENY_READ ||
		item->role == PLAN_ROLE_DENY_WRITE ||
		item->role == PLAN_ROLE_ROOT_WRITE ?
	    LOOKUP_USE_DENIED :
	    LOOKUP_USE_NONE;
}

/* A pattern of any depth holds in both roots, which lets it be literal; what is
 * found by it in a git directory is judged again. */
static int
add(struct asking *a, const char *glob, unsigned root, enum dfa_class class,
    bool ignore_case)
{
	struct lookup_scan *scan = &a->question.scan;

	if (glob == NULL)
		return -ENOMEM;
	if (scan->nrules == DFA_RULES_MAX)
		return -E2BIG;
	scan->rules[scan->nrules++] = (struct dfa_rule){ .glob = glob,
		.mask = DFA_WRITE,
		.roots = *glob == '/' ? (uint16_t)(1u << root) :
					(uint16_t)((1u << LOOKUP_ROOTS) - 1),
		.class = class,
		.ignore_case = ignore_case };
	return 0;
}

/* What every run has, and the spec's patterns. */
static int
add_rules(struct asking *a, const struct name_rules *rules)
{
	struct lookup_scan *scan = &a->question.scan;
	int r = 0;

	for (size_t i = 0; i < rules->nrules && r == 0; i++)
		r = add(a, rules->rules[i].glob, LOOKUP_ROOT_ALL,
		    rules->rules[i].class, rules->rules[i].ignore_case);
	for (size_t i = 0; i < rules->nexemptions; i++) {
		struct dfa_exemption *e =
		    &scan->exemptions[scan->nexemptions++];

		e->roots = 1u << LOOKUP_ROOT_ALL;
		e->glob = name_pattern_behind_case(rules->exemptions[i].text,
		    &e->ignore_case);
	}
	return r;
}

static int
add_git(struct asking *a)
{
	int r = 0;

	for (size_t i = 0; i < lists_write_git_rows && r == 0; i++) {
		const char *glob =
		    pool_concat(&a->pool, "/", lists_write_git[i].path);

		if (glob != NULL && lists_write_git[i].kind == LISTS_DIR)
			glob = pool_concat(&a->pool, glob, "/**");
		r = add(a, glob, LOOKUP_ROOT_GIT, DFA_GIT, true);
	}
	return r;
}

static int
add_names(struct asking *a, const struct conf_names *names)
{
	int r = 0;

	for (size_t i = 0; i < names->n && r == 0; i++) {
		bool ignore;
		const char *glob =
		    name_pattern_behind_case(names->list[i].name, &ignore);

		/* The configuration may be another one before this is sent. */
		glob = pool_concat(&a->pool, *glob == '/' ? "**" : "", glob);
		r = add(a, glob, LOOKUP_ROOT_ALL, DFA_SPEC, ignore);
	}
	return r;
}

/* The look-up compiles what is not sent: rules with some aside, many names. */
static int
add_table(struct asking *a)
{
	struct lookup_scan *scan = &a->question.scan;
	const struct dfa_rules in = {
		.rules = scan->rules,
		.nrules = scan->nrules,
		.exemptions = scan->exemptions,
		.nexemptions = scan->nexemptions,
		.nroots = LOOKUP_ROOTS,
	};
	const struct dfa *dfa;
	const bool *aside;
	int r = tables_compile(&in, &dfa, &aside, NULL);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; i < scan->nrules; i++)
		if (aside[i])
			return 0;
	guard_tables_encode(dfa, &a->table);
	if (!a->table.err && a->table.len <= LOOKUP_TABLE_MAX)
		scan->table = (struct wire_view){ a->table.data, a->table.len };
	return 0;
}

static int
make_rules(struct asking *a, const struct spec *spec, const struct conf *conf,
    struct name_rules **ret, struct spec_fault *fault)
{
	static const struct guard_root top = { .path = "/", .len = 1 };
	const struct name_rules_in in = {
		.roots = &top,
		.nroots = 1,
		.deny_write = spec->deny_write,
	};
	int r = name_rules_make(&in, ret, fault);

	if (r == -EINVAL)
		return r;
	if (r == 0)
		r = add_rules(a, *ret);
	if (r == 0)
		r = add_git(a);
	if (r == 0)
		r = add_names(a, &conf->deny_names);
	if (r == 0)
		r = add_table(a);
	if (r == -E2BIG)
		return spec_fault_set(fault, API_LIMIT, NULL,
		    "the name rules are too many");
	return r < 0 ?
	    spec_fault_set(fault, API_INTERNAL, NULL, "out of memory") :
	    0;
}

void
plan_ask_places(const struct spec *spec, struct wire_out *out)
{
	wire_put_u64(out, spec->mode);
	for (size_t i = 0; i < spec->nmounts; i++) {
		wire_put_cstr(out, spec->mounts[i].path);
		wire_put_bool(out, spec->mounts[i].read_only);
	}
	for (size_t i = 0; i < spec->state_dirs.n; i++)
		wire_put_cstr(out, spec->state_dirs.items[i]);
}

int
plan_ask_encode(const struct plan_asked *asked, const struct spec *spec,
    const struct conf *conf, struct wire_view seen, struct wire_out *out,
    struct spec_fault *fault)
{
	struct asking *a = calloc(1, sizeof(*a));
	struct lookup_question *q = &a->question;
	struct name_rules *rules = NULL;
	bool writable = false, any = false;
	int r = 0;

	if (a == NULL)
		return spec_fault_set(fault, API_INTERNAL, NULL,
		    "out of memory");
	for (size_t i = 0; i < asked->n; i++) {
		const struct plan_item *item = &asked->items[i];

		q->items[q->nitems++] =
		    (struct lookup_item){ item->path, use_of(spec, item) };
		any |= item->role == PLAN_ROLE_MOUNT;
		writable |= is_writable(spec, item);
	}
	if (any || writable) {
		q->scan.entries_max = PLAN_SCAN_ENTRIES;
		q->scan.time_ms = PLAN_SCAN_MS;
		q->scan.seen = seen;
	}
	if (writable)
		r = make_rules(a, spec, conf, &rules, fault);
	if (r == 0)
		lookup_question_encode(q, out);
	name_rules_free(rules);
	wire_out_done(&a->table);
	pool_done(&a->pool);
	free(a);
	return r;
}
