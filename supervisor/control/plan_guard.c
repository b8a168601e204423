/*
 * Name rules of a plan (SPEC D, J2, J3, J7): the guarded places, and the table
 * for the broker. What exists is a mask already; here is what may not come to
 * be. For plan_make.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "protocol/guard.h"
#include "protocol/places.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/name_rules.h"
#include "supervisor/control/plan_private.h"
#include "supervisor/control/spec.h"

#define PATHS_MAX DFA_RULES_MAX

_Static_assert(PLAN_ROOTS_MAX == DFA_ROOTS_MAX, "one table, one list");

struct gatherer {
	struct plan_maker *m;
	size_t npaths;
	struct name_rules_path *paths;
	size_t ngit_dirs;
	const char *git_dirs[PLAN_GRANTS_MAX + PLAN_FOUND_DIRS_MAX];
};

static int
add_root(struct plan_maker *m, const char *path, bool empty)
{
	struct plan *plan = m->made->plan;

	if (plan->nroots == PLAN_ROOTS_MAX)
		return spec_fault_set(m->fault, API_LIMIT, "bindMounts",
		    "name rules hold below at most %d writable places",
		    PLAN_ROOTS_MAX);
	plan->roots[plan->nroots++] = (struct plan_root){ path, empty };
	return 0;
}

/* Writable directories; then what holds one and so must be asked for too. */
static int
make_roots(struct plan_maker *m)
{
	struct plan *plan = m->made->plan;
	struct guard_places places;
	size_t nruled;
	int r = 0;

	for (size_t i = 0; i < plan->nmounts && r == 0; i++)
		if (!plan->mounts[i].read_only &&
		    plan->mounts[i].kind == PLAN_DIR)
			r = add_root(m, plan->mounts[i].target, false);
	if (r != 0 || plan->nroots == 0)
		return r;
	nruled = plan->nroots;
	if (guard_sort_plan(plan, &places) < 0)
		return spec_fault_set(m->fault, API_LIMIT, "bindMounts",
		    "too many writable places for name rules");
	for (size_t i = nruled; i < places.nguarded && r == 0; i++) {
		const char *path = pool_strdup(m->pool, places.guarded[i]);

		r = path == NULL ? plan_no_memory(m) : add_root(m, path, true);
	}
	return r;
}

static bool
concerns_root(const struct plan_maker *m, const char *path)
{
	const struct plan *plan = m->made->plan;

	for (size_t i = 0; i < plan->nroots; i++)
		if (!plan->roots[i].empty &&
		    (path_is_within(path, plan->roots[i].path) ||
			path_is_within(plan->roots[i].path, path)))
			return true;
	return false;
}

static const char *
origin_of(struct plan_maker *m, const struct plan_item *item)
{
	if (item->strict)
		return pool_concat(m->pool, "spec ", item->field);
	return strcmp(item->field, "deny write") == 0 ? "configuration" :
							"App.6";
}

static int
add_path(struct gatherer *g, const struct plan_item *item, const char *path)
{
	struct plan_maker *m = g->m;
	const char *origin;

	if (!path_is_clean(path) || !concerns_root(m, path))
		return 0;
	if (g->npaths == PATHS_MAX)
		return spec_fault_set(m->fault, API_LIMIT, NULL,
		    "too many denied paths");
	origin = origin_of(m, item);
	if (origin == NULL)
		return plan_no_memory(m);
	g->paths[g->npaths++] = (struct name_rules_path){ path, origin };
	return 0;
}

/* path with `to` in place of `from`, which holds it. */
static int
add_moved(struct gatherer *g, const struct plan_item *item, const char *path,
    const char *from, const char *to)
{
	const char *moved;

	if (!path_is_within(path, from) || strcmp(from, to) == 0)
		return 0;
	moved = pool_concat(g->m->pool, to, path + strlen(from));
	return moved == NULL ? plan_no_memory(g->m) : add_path(g, item, moved);
}

/*
 * The spellings of the grants and of the home as well: what lies in them by
 * one name lies in them by the other.
 */
static int
add_spellings(struct gatherer *g, const struct plan_item *item,
    const char *path)
{
	struct plan_maker *m = g->m;
	int r = add_path(g, item, path);

	if (r == 0)
		r = add_moved(g, item, path, m->in->user.home,
		    m->home_resolved);
	for (size_t i = 0; i < m->ngrants && r == 0; i++) {
		const struct plan_grant *grant = &m->grants[i];

		r = add_moved(g, item, path, grant->literal, grant->resolved);
		if (r == 0)
			r = add_moved(g, item, path, grant->resolved,
			    grant->literal);
	}
	return r;
}

/* Rules for every root stand in the lists; of App.6 the rows below a state
 * directory are left, which mean that one alone. */
static bool
is_path_rule(const struct plan_maker *m, const struct plan_item *item)
{
	if (item->role == PLAN_ROLE_ROOT_WRITE &&
	    item->index < m->in->spec->nmounts)
		return false;
	return (item->role == PLAN_ROLE_ROOT_WRITE ||
		   item->role == PLAN_ROLE_DENY_WRITE) &&
	    plan_write_holds(m, item);
}

static int
gather_paths(struct gatherer *g)
{
	const struct plan_asked *asked = g->m->in->asked;
	const struct lookup_result *r;
	int ret = 0;

	for (size_t i = 0; i < asked->n && ret == 0; i++) {
		if (!is_path_rule(g->m, &asked->items[i]))
			continue;
		r = plan_result_of(g->m, &asked->items[i]);
		ret = add_spellings(g, &asked->items[i], r->literal);
		if (ret == 0 && r->resolved[0] != '\0' &&
		    strcmp(r->literal, r->resolved) != 0)
			ret = add_spellings(g, &asked->items[i], r->resolved);
	}
	return ret;
}

/* Grants that are bare repositories, at both spellings. */
static void
gather_git_dirs(struct gatherer *g)
{
	struct plan_maker *m = g->m;
	const struct plan *plan = m->made->plan;

	for (size_t k = 0; k < plan->nmounts; k++)
		for (size_t i = 0; i < m->ngrants; i++)
			if (m->grants[i].index < PLAN_GRANTS_MAX &&
			    m->bare[m->grants[i].index] == 3 &&
			    !plan->mounts[k].read_only &&
			    strcmp(plan->mounts[k].source,
				m->grants[i].resolved) == 0 &&
			    g->ngit_dirs < PLAN_GRANTS_MAX)
				g->git_dirs[g->ngit_dirs++] =
				    plan->mounts[k].target;
	for (size_t i = 0; i < m->nfound_dirs; i++)
		g->git_dirs[g->ngit_dirs++] = m->found_dirs[i];
}

/* What the start scan found, which are paths of the view already. */
static int
gather_found(struct gatherer *g)
{
	struct plan_maker *m = g->m;

	if (g->npaths + m->nfound_paths > PATHS_MAX)
		return spec_fault_set(m->fault, API_LIMIT, NULL,
		    "too many denied paths");
	for (size_t i = 0; i < m->nfound_paths; i++)
		g->paths[g->npaths++] = m->found_paths[i];
	return 0;
}

static int
compare_paths(const void *pa, const void *pb)
{
	const struct name_rules_path *a = pa, *b = pb;
	int c = strcmp(a->path, b->path);

	return c != 0 ? c : strcmp(a->origin, b->origin);
}

static int
compare_texts(const void *pa, const void *pb)
{
	return strcmp(*(const char *const *)pa, *(const char *const *)pb);
}

/* A copy by name: the digest must not depend on the sender's order. */
static int
sorted(struct plan_maker *m, const struct spec_list *list,
    struct spec_list *ret)
{
	ret->items = pool_alloc(m->pool, list->n, sizeof(*ret->items));
	if (ret->items == NULL)
		return plan_no_memory(m);
	ret->n = list->n;
	if (list->n > 0)
		memcpy(ret->items, list->items, list->n * sizeof(*list->items));
	if (list->n > 1)
		qsort(ret->items, ret->n, sizeof(*ret->items), compare_texts);
	return 0;
}

static int
make_table(struct gatherer *g, const struct spec_list *deny_write,
    const struct spec_list *exemptions)
{
	struct plan_maker *m = g->m;
	const struct plan *plan = m->made->plan;
	struct guard_root roots[PLAN_ROOTS_MAX];
	const struct name_rules_in in = {
		.roots = roots,
		.nroots = plan->nroots,
		.new_repositories = m->in->spec->new_repositories,
		.deny_names = &m->in->conf->deny_names,
		.exemptions_permitted = m->in->conf->name_exemptions,
		.deny_write = *deny_write,
		.exemptions = *exemptions,
		.paths = g->paths,
		.npaths = g->npaths,
		.git_dirs = g->git_dirs,
		.ngit_dirs = g->ngit_dirs,
	};
	struct name_rules *rules = NULL;
	int r;

	memset(roots, 0, sizeof(roots));
	for (size_t i = 0; i < plan->nroots; i++) {
		roots[i].path = plan->roots[i].path;
		roots[i].empty = plan->roots[i].empty;
	}
	r = name_rules_make(&in, &rules, m->fault);
	if (r == 0)
		r = name_rules_encode(rules, &m->made->guard_bytes, m->fault);
	if (r == 0 && m->made->guard_bytes.len > GUARD_BYTES_MAX)
		r = spec_fault_set(m->fault, API_LIMIT, NULL,
		    "the name rules are too many");
	name_rules_free(rules);
	return r == -ENOMEM ? plan_no_memory(m) : r;
}

int
plan_make_guard(struct plan_maker *m)
{
	const struct spec *spec = m->in->spec;
	struct spec_list deny_write, exemptions;
	struct gatherer g = { .m = m };

	m->made->plan->nroots = 0;
	if (make_roots(m) != 0)
		return -EINVAL;
	if (m->made->plan->nroots == 0)
		return 0;
	g.paths = pool_alloc_sparse(m->pool, PATHS_MAX, sizeof(*g.paths));
	if (g.paths == NULL)
		return plan_no_memory(m);
	if (gather_paths(&g) != 0 || gather_found(&g) != 0 ||
	    sorted(m, &spec->deny_write, &deny_write) != 0 ||
	    sorted(m, &spec->name_exemptions, &exemptions) != 0)
		return -EINVAL;
	gather_git_dirs(&g);
	if (g.npaths > 1)
		qsort(g.paths, g.npaths, sizeof(*g.paths), compare_paths);
	return make_table(&g, &deny_write, &exemptions);
}
