/*
 * What plan_make.c and plan_deny.c share while a plan is made; for nobody
 * else.
 */
#ifndef SUPERVISOR_CONTROL_PLAN_PRIVATE_H
#define SUPERVISOR_CONTROL_PLAN_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/control/name_rules.h"
#include "supervisor/control/plan_make.h"
#include "supervisor/control/plan_view.h"

/* What the start scan may add to the rules. */
#define PLAN_FOUND_PATHS_MAX 2048
#define PLAN_FOUND_DIRS_MAX 256

/* What an answer says about an item. */
enum plan_found { PLAN_FOUND, PLAN_ABSENT, PLAN_HIDDEN };

struct plan_maker {
	const struct plan_input *in;
	struct plan_made *made;
	struct pool *pool;
	struct spec_fault *fault;
	struct plan_grant grants[PLAN_GRANTS_MAX];
	size_t ngrants;
	const char *home_resolved;
	uint64_t unmasked;
	unsigned bare[PLAN_GRANTS_MAX]; /* marks found, by item index */
	/* What the start scan adds to the rules, by paths of the view. */
	size_t nfound_paths;
	struct name_rules_path *found_paths;
	size_t nfound_dirs; /* git directories */
	const char **found_dirs;
	const char *scan_gaps;
};

/* Each fills the fault and returns -EINVAL. */
int plan_no_memory(struct plan_maker *);
int
plan_lookup_failed(struct plan_maker *, const struct plan_item *, int error);

const struct lookup_result *
plan_result_of(const struct plan_maker *, const struct plan_item *);
/* 0, or -EINVAL with the fault filled when the answer is none (SPEC I17). */
int
plan_judge(struct plan_maker *, const struct plan_item *, enum plan_found *ret);

/* Tells the client (`detail` is copied). 0, or -EINVAL with the fault. */
int plan_notice(struct plan_maker *, const char *code, const char *detail);

/* plan_guard.c: with name rules, the plan's roots and the table, also anew when
 * something was found. 0, or -EINVAL with the fault. */
int plan_make_guard(struct plan_maker *);

/* plan_found.c: what the start scan found, on a plan with its rules and masks.
 * 0, or -EINVAL with the fault. */
int plan_apply_found(struct plan_maker *);

/* plan_deny.c ------------------------------------------------ */

/* Whether a spelling lies in something that was granted. */
bool plan_touches_grant(const struct plan_maker *, const char *path);
void plan_count_bare_marks(struct plan_maker *);
/* Before the mounts are laid out, and after. 0, or -EINVAL with the fault. */
int plan_apply_to_grants(struct plan_maker *);
int plan_make_masks(struct plan_maker *);
/* Whether this deny-write item holds: not lifted, not a link to a grant. */
bool plan_write_holds(const struct plan_maker *, const struct plan_item *);
/* Whether it denies reading. */
bool plan_is_read_rule(const struct plan_item *);

#endif
