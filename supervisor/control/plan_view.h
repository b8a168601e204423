/*
 * The file view of a run as path arithmetic: what is granted, at which paths
 * it appears, and where a denied path shows through. Pure; every path is clean
 * and absolute, `resolved` has no link in it.
 */
#ifndef SUPERVISOR_CONTROL_PLAN_VIEW_H
#define SUPERVISOR_CONTROL_PLAN_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/plan.h"
#include "supervisor/control/pool.h"

#define PLAN_GRANTS_MAX 80 /* bindMounts and runnerStateDirs */

struct plan_grant {
	const char *literal;
	const char *resolved;
	enum plan_kind kind;
	bool read_only;
	bool state; /* a runner state directory */
	bool asked_read_only; /* the spec's own readOnly */
	uint64_t dev;
	uint64_t ino;
	size_t index; /* plan_item.index */
};

/* Whether a directory is in every run's view without a grant (SPEC C2). */
bool plan_view_system(const char *path);

/*
 * Mounts of all grants into plan->mounts, sorted by target, parents first:
 * each at its resolved spelling, and at its literal one unless a link inside
 * another grant already leads there. 0; -ENOMEM; -EACCES with *ret_bad the
 * grant whose place is not permitted.
 */
int plan_view_mounts(const struct plan_grant *grants, size_t n,
    struct pool *pool, struct plan *plan, const struct plan_grant **ret_bad);

/*
 * Calls fn for every path of the view at which the host's `resolved` shows:
 * through any mount, unless a deeper mount covers it. Stops at the first
 * return other than 0 and returns it. -ENOMEM.
 */
typedef int
plan_view_fn(void *arg, const char *path, const struct plan_mount *mount);
int plan_view_each(const struct plan *plan, const char *resolved,
    struct pool *pool, plan_view_fn *fn, void *arg);

/* Whether `path`, as it is spelled, lies in a mount of the plan. */
bool plan_view_has(const struct plan *plan, const char *path);

/*
 * Adds a mask (ENOSPC: too many). plan_view_settle() sorts them, parents
 * first, keeps the stronger of two on one path, and drops what a stronger or
 * equal mask above covers.
 */
int plan_view_mask(struct plan *plan, const char *path, enum plan_mask_how how,
    enum plan_kind kind, bool system);
void plan_view_settle(struct plan *plan);

#endif
