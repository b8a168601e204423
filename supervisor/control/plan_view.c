/*
 * In stockade-control. Deny wins over grant by path and not by order (SPEC
 * C17): masks are worked out from the finished mounts, and both are sorted
 * before they are written.
 */
#include "supervisor/control/plan_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/size.h"

/* Links or binds of the system view: a bind below one would follow it. */
static const char *const aliases[] = { "/bin", "/lib", "/lib32", "/lib64",
	"/libx32", "/sbin" };

static bool
in_alias(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (path_is_within(path, aliases[i]))
			return true;
	return false;
}

bool
plan_view_system(const char *path)
{
	return path_is_within(path, "/usr") || in_alias(path);
}

/* The part of `path` behind `dir`, with its slash; empty when equal. */
static const char *
rest_of(const char *path, const char *dir)
{
	return strcmp(dir, "/") == 0 ? path : path + strlen(dir);
}

/* `dir` + `rest`, or NULL. */
static const char *
moved(struct pool *pool, const char *dir, const char *rest)
{
	if (strcmp(dir, "/") == 0)
		return *rest == '\0' ? dir : rest;
	return pool_concat(pool, dir, rest);
}

/* Whether dir + rest equals path, without building it. */
static bool
joins_to(const char *dir, const char *rest, const char *path)
{
	size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	return strncmp(path, dir, n) == 0 && strcmp(path + n, rest) == 0;
}

static int
add_mount(struct plan *plan, const struct plan_grant *g, const char *target)
{
	struct plan_mount *mount;

	for (size_t i = 0; i < plan->nmounts; i++)
		if (strcmp(plan->mounts[i].target, target) == 0)
			return 0;
	if (plan->nmounts >= PLAN_MOUNTS_MAX)
		return -ENOMEM;
	mount = &plan->mounts[plan->nmounts++];
	mount->source = g->resolved;
	mount->target = target;
	mount->kind = g->kind;
	mount->read_only = g->read_only;
	mount->dev = g->dev;
	mount->ino = g->ino;
	return 0;
}

/*
 * Whether the literal spelling needs a mount of its own. Inside another grant
 * (the deepest one by its literal spelling) it is either the same place, and
 * then both spellings of that grant need it, or there is a link in the grant's
 * tree that leads to the resolved spelling by itself.
 */
static bool
needs_literal(const struct plan_grant *grants, size_t n,
    const struct plan_grant *g)
{
	const struct plan_grant *around = NULL;

	if (strcmp(g->literal, g->resolved) == 0 || in_alias(g->literal))
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(grants[i].literal, g->literal) != 0 &&
		    path_is_within(g->literal, grants[i].literal) &&
		    (around == NULL ||
			strlen(grants[i].literal) > strlen(around->literal)))
			around = &grants[i];
	return around == NULL ||
	    joins_to(around->resolved, rest_of(g->literal, around->literal),
		g->resolved);
}

static int
compare_mounts(const void *a, const void *b)
{
	return strcmp(((const struct plan_mount *)a)->target,
	    ((const struct plan_mount *)b)->target);
}

/* A grant below another whose two spellings differ shows at both. */
static int
add_through(const struct plan_grant *grants, size_t n,
    const struct plan_grant *g, struct pool *pool, struct plan *plan)
{
	const char *target;
	int r;

	for (size_t i = 0; i < n; i++) {
		if (&grants[i] == g ||
		    strcmp(grants[i].literal, grants[i].resolved) == 0 ||
		    !path_is_within(g->resolved, grants[i].resolved) ||
		    !needs_literal(grants, n, &grants[i]))
			continue;
		target = moved(pool, grants[i].literal,
		    rest_of(g->resolved, grants[i].resolved));
		if (target == NULL)
			return -ENOMEM;
		if (!plan_target_permitted(target))
			continue;
		r = add_mount(plan, g, target);
		if (r < 0)
			return r;
	}
	return 0;
}

int
plan_view_mounts(const struct plan_grant *grants, size_t n, struct pool *pool,
    struct plan *plan, const struct plan_grant **ret_bad)
{
	bool literal;
	int r;

	for (size_t i = 0; i < n; i++) {
		literal = needs_literal(grants, n, &grants[i]);
		if (!plan_target_permitted(grants[i].resolved) ||
		    (literal && !plan_target_permitted(grants[i].literal))) {
			*ret_bad = &grants[i];
			return -EACCES;
		}
		r = add_mount(plan, &grants[i], grants[i].resolved);
		if (r == 0 && literal)
			r = add_mount(plan, &grants[i], grants[i].literal);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < n; i++) {
		r = add_through(grants, n, &grants[i], pool, plan);
		if (r < 0)
			return r;
	}
	if (plan->nmounts > 1)
		qsort(plan->mounts, plan->nmounts, sizeof(plan->mounts[0]),
		    compare_mounts);
	return 0;
}

static const struct plan_mount *
covering(const struct plan *plan, const char *path)
{
	const struct plan_mount *best = NULL;

	for (size_t i = 0; i < plan->nmounts; i++)
		if (path_is_within(path, plan->mounts[i].target) &&
		    (best == NULL ||
			strlen(plan->mounts[i].target) > strlen(best->target)))
			best = &plan->mounts[i];
	return best;
}

bool
plan_view_has(const struct plan *plan, const char *path)
{
	return covering(plan, path) != NULL;
}

int
plan_view_each(const struct plan *plan, const char *resolved, struct pool *pool,
    plan_view_fn *fn, void *arg)
{
	const struct plan_mount *mount, *top;
	const char *path;
	int r;

	for (size_t i = 0; i < plan->nmounts; i++) {
		mount = &plan->mounts[i];
		if (!path_is_within(resolved, mount->source))
			continue;
		path = moved(pool, mount->target,
		    rest_of(resolved, mount->source));
		if (path == NULL)
			return -ENOMEM;
		top = covering(plan, path);
		if (top == NULL ||
		    !joins_to(top->source, rest_of(path, top->target),
			resolved))
			continue;
		r = fn(arg, path, top);
		if (r != 0)
			return r;
	}
	return 0;
}

int
plan_view_mask(struct plan *plan, const char *path, enum plan_mask_how how,
    enum plan_kind kind, bool system)
{
	struct plan_mask *mask;

	if (plan->nmasks >= PLAN_MASKS_MAX)
		return -ENOSPC;
	mask = &plan->masks[plan->nmasks++];
	mask->path = path;
	mask->how = how;
	mask->kind = kind;
	mask->system = system;
	mask->found = false;
	return 0;
}

/* By path, of one path the stronger first, as the enum has them. */
static int
compare_masks(const void *pa, const void *pb)
{
	const struct plan_mask *a = pa, *b = pb;
	int c = path_compare(a->path, b->path);

	if (c != 0)
		return c;
	if (a->how != b->how)
		return a->how < b->how ? -1 : 1;
	if (a->system != b->system)
		return (int)b->system - (int)a->system;
	return (int)a->found - (int)b->found;
}

/* Whether a mask at or above it makes this one needless. What was found never
 * changes the policy. */
static bool
covers(const struct plan_mask *above, const struct plan_mask *mask)
{
	if (above->found && !mask->found)
		return false;
	if (above->how == PLAN_MASK_PINNED)
		return mask->how == PLAN_MASK_PINNED &&
		    strcmp(mask->path, above->path) == 0;
	return above->how != PLAN_MASK_READ_ONLY ||
	    mask->how >= PLAN_MASK_READ_ONLY;
}

void
plan_view_settle(struct plan *plan)
{
	/* Kept masks that hold the path at hand, the outermost first; deeper
	 * than this, a needless mask stays. */
	size_t above[64], depth = 0, kept = 0;

	if (plan->nmasks > 1)
		qsort(plan->masks, plan->nmasks, sizeof(plan->masks[0]),
		    compare_masks);
	for (size_t i = 0; i < plan->nmasks; i++) {
		const struct plan_mask *mask = &plan->masks[i];
		bool needless = false;

		while (depth > 0 &&
		    !path_is_within(mask->path,
			plan->masks[above[depth - 1]].path))
			depth--;
		for (size_t k = 0; k < depth && !needless; k++)
			needless = covers(&plan->masks[above[k]], mask);
		if (needless)
			continue;
		if (depth < ARRAY_LEN(above))
			above[depth++] = kept;
		plan->masks[kept++] = *mask;
	}
	plan->nmasks = kept;
}
