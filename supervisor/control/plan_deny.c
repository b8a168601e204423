/*
 * Deny paths of a plan (SPEC J1..J10 as far as they are existing paths): first
 * what they do to the grants themselves, then, on the finished mounts, a mask
 * wherever one shows. For plan_make.c.
 */
#include <errno.h>
#include <string.h>

#include "common/path.h"
#include "common/size.h"
#include "supervisor/control/plan_ask.h"
#include "supervisor/control/plan_private.h"
#include "supervisor/control/spec.h"

/* Programs of which one file serves many names: hiding it would hide the shell
 * too. A run has no capability, so the name alone gains nothing (SPEC J10). */
static const char *const multi_call[] = { "busybox", "coreutils", "toybox" };

/* Whether a spelling lies in something that was granted. */
bool
plan_touches_grant(const struct plan_maker *m, const char *path)
{
	for (size_t i = 0; i < m->ngrants; i++)
		if (path_is_within(path, m->grants[i].literal) ||
		    path_is_within(path, m->grants[i].resolved))
			return true;
	return false;
}

static const struct plan_grant *
grant_of(const struct plan_maker *m, size_t index)
{
	for (size_t i = 0; i < m->ngrants; i++)
		if (m->grants[i].index == index)
			return &m->grants[i];
	return NULL;
}

/* The App.6 directory that the run's own adapter keeps its state in, and that
 * the run was given as such. Another agent's stays denied. */
static bool
is_lifted(const struct plan_maker *m, const struct plan_item *item,
    const char *resolved)
{
	const char *own = plan_adapter_dir(m->in->spec->adapter);

	if (item->row == NULL || own == NULL || strcmp(item->row, own) != 0)
		return false;
	for (size_t i = 0; i < m->ngrants; i++)
		if (m->grants[i].state &&
		    strcmp(m->grants[i].resolved, resolved) == 0)
			return true;
	return false;
}

/*
 * A name of App.6 in the tree that is a link to a whole grant, or to what holds
 * one. Who wrote the tree would decide that the grant is not writable, and the
 * link itself protects nothing: so the name is not denied, and this is told.
 * What a client or the operator names holds wherever it leads.
 */
static bool
is_link_to_grant(const struct plan_maker *m, const struct plan_item *item,
    const char *resolved)
{
	const struct plan_grant *own = grant_of(m, item->index);

	if ((item->role != PLAN_ROLE_ROOT_WRITE &&
		item->role != PLAN_ROLE_BARE_WRITE) ||
	    own == NULL ||
	    (path_is_within(resolved, own->resolved) &&
		strcmp(resolved, own->resolved) != 0))
		return false;
	for (size_t i = 0; i < m->ngrants; i++)
		if (path_is_within(m->grants[i].resolved, resolved))
			return true;
	return false;
}

static bool
is_write_rule(const struct plan_maker *m, const struct plan_item *item)
{
	const struct plan_grant *g;

	switch (item->role) {
	case PLAN_ROLE_DENY_WRITE:
		return true;
	case PLAN_ROLE_ROOT_WRITE:
		g = grant_of(m, item->index);
		return g != NULL && !g->read_only;
	case PLAN_ROLE_BARE_WRITE:
		g = grant_of(m, item->index);
		return g != NULL && !g->read_only && m->bare[item->index] == 3;
	case PLAN_ROLE_HOME:
	case PLAN_ROLE_HOME_PERMIT:
	case PLAN_ROLE_SERVICE:
	case PLAN_ROLE_MOUNT:
	case PLAN_ROLE_STATE:
	case PLAN_ROLE_WORKDIR:
	case PLAN_ROLE_DENY_READ:
	case PLAN_ROLE_BARE_MARK:
	case PLAN_ROLE_PIN:
	case PLAN_ROLE_EXPLAIN:
	case PLAN_ROLE_EXEC:
		break;
	}
	return false;
}

bool
plan_write_holds(const struct plan_maker *m, const struct plan_item *item)
{
	const struct lookup_result *r = plan_result_of(m, item);

	return is_write_rule(m, item) &&
	    (r->error != 0 ||
		(!is_lifted(m, item, r->resolved) &&
		    !is_link_to_grant(m, item, r->resolved)));
}

bool
plan_is_read_rule(const struct plan_item *item)
{
	return item->role == PLAN_ROLE_DENY_READ ||
	    item->role == PLAN_ROLE_SERVICE;
}

/*
 * The answer for a deny path: PLAN_FOUND, or nothing to do. Hidden from the user
 * means that the rule cannot be laid on it: fatal when a client named it or
 * when it may show inside.
 */
static int
deny_found(struct plan_maker *m, const struct plan_item *item, bool *ret)
{
	const struct lookup_result *r = plan_result_of(m, item);
	enum plan_found found;

	*ret = false;
	if (plan_judge(m, item, &found) != 0)
		return -EINVAL;
	if (found == PLAN_HIDDEN &&
	    (item->strict || plan_touches_grant(m, r->literal)))
		return plan_lookup_failed(m, item, EACCES);
	*ret = found == PLAN_FOUND;
	return 0;
}

/* Grants at or below a denied path: not readable is a contradiction, not
 * writable holds for them too. */
static int
deny_grants(struct plan_maker *m, const struct plan_item *item,
    const char *resolved)
{
	for (size_t i = 0; i < m->ngrants; i++) {
		struct plan_grant *g = &m->grants[i];

		if (!path_is_within(g->resolved, resolved))
			continue;
		if (plan_is_read_rule(item))
			return spec_fault_set(m->fault, API_BAD_PATH,
			    g->state ? "runnerStateDirs" : "bindMounts",
			    "%s cannot be given: %s (%s)", g->literal,
			    "it is denied for reading", item->field);
		g->read_only = true;
	}
	return 0;
}

void
plan_count_bare_marks(struct plan_maker *m)
{
	const struct plan_asked *asked = m->in->asked;

	for (size_t i = 0; i < asked->n; i++)
		if (asked->items[i].role == PLAN_ROLE_BARE_MARK &&
		    asked->items[i].index < PLAN_GRANTS_MAX &&
		    plan_result_of(m, &asked->items[i])->error == 0)
			m->bare[asked->items[i].index]++;
}

/* First pass: what the rules do to the grants themselves. */
int
plan_apply_to_grants(struct plan_maker *m)
{
	const struct plan_asked *asked = m->in->asked;
	const struct plan_item *item;
	const char *resolved;
	bool found;

	for (size_t i = 0; i < asked->n; i++) {
		item = &asked->items[i];
		if (!plan_is_read_rule(item) && !is_write_rule(m, item))
			continue;
		if (deny_found(m, item, &found) != 0)
			return -EINVAL;
		resolved = plan_result_of(m, item)->resolved;
		if (!found || is_lifted(m, item, resolved))
			continue;
		if (is_link_to_grant(m, item, resolved)) {
			if (plan_notice(m, "linkNotDenied", item->path) != 0)
				return -EINVAL;
		} else if (deny_grants(m, item, resolved) != 0) {
			return -EINVAL;
		}
	}
	return 0;
}

struct masking {
	struct plan_maker *m;
	const struct plan_item *item;
	enum plan_kind kind;
	bool read;
};

static int
mask_here(void *arg, const char *path, const struct plan_mount *mount)
{
	const struct masking *k = arg;
	enum plan_mask_how how = PLAN_MASK_READ_ONLY;

	if (!k->read && mount->read_only)
		return 0;
	/* C18: a directory is never shadowed by a file, nor the reverse. */
	if ((k->item->kind == LISTS_FILE && k->kind == PLAN_DIR) ||
	    (k->item->kind == LISTS_DIR && k->kind == PLAN_FILE))
		return spec_fault_set(k->m->fault, API_BAD_PATH, NULL,
		    "%s: the rule %s is for a %s, but %s is not one",
		    k->item->field, k->item->path,
		    k->item->kind == LISTS_FILE ? "file" : "directory", path);
	if (k->read)
		how = k->kind == PLAN_DIR ? PLAN_MASK_EMPTY_DIR :
					    PLAN_MASK_NO_FILE;
	if (plan_view_mask(k->m->made->plan, path, how, k->kind, false) < 0)
		return spec_fault_set(k->m->fault, API_LIMIT, NULL,
		    "too many denied paths");
	return 0;
}

static int
mask_item(struct plan_maker *m, const struct plan_item *item, bool read)
{
	const struct lookup_result *r = plan_result_of(m, item);
	struct masking k = { m, item, PLAN_FILE, read };
	const char *resolved;
	int ret;

	if (r->kind == LOOKUP_DIR)
		k.kind = PLAN_DIR;
	resolved = pool_strdup(m->pool, r->resolved);
	if (resolved == NULL)
		return plan_no_memory(m);
	ret = plan_view_each(m->made->plan, resolved, m->pool, mask_here, &k);
	return ret == -ENOMEM ? plan_no_memory(m) : ret;
}

static int
pin_here(void *arg, const char *path, const struct plan_mount *mount)
{
	const struct masking *k = arg;
	struct plan *plan = k->m->made->plan;

	if (mount->read_only)
		return 0;
	/* It would cover a grant in it, with what that one has and denies. */
	for (size_t i = 0; i < plan->nmounts; i++)
		if (path_is_within(plan->mounts[i].target, path))
			return 0;
	if (plan_view_mask(plan, path, PLAN_MASK_PINNED, PLAN_DIR, false) < 0)
		return spec_fault_set(k->m->fault, API_LIMIT, NULL,
		    "too many denied paths");
	return 0;
}

/*
 * A denied name protects nothing when its directory can be moved away and made
 * anew. A mount point cannot be moved, so a repository's .git becomes one;
 * only where it is a directory in the grant itself.
 */
static int
pin_item(struct plan_maker *m, const struct plan_item *item)
{
	const struct lookup_result *r = plan_result_of(m, item);
	const struct plan_grant *g = grant_of(m, item->index);
	struct masking k = { m, item, PLAN_DIR, false };
	const char *resolved;
	int ret;

	if (r->error != 0 || r->kind != LOOKUP_DIR || g == NULL ||
	    g->read_only || !path_is_within(r->resolved, g->resolved) ||
	    strcmp(r->resolved + strlen(g->resolved), "/.git") != 0)
		return 0;
	resolved = pool_strdup(m->pool, r->resolved);
	if (resolved == NULL)
		return plan_no_memory(m);
	ret = plan_view_each(m->made->plan, resolved, m->pool, pin_here, &k);
	return ret == -ENOMEM ? plan_no_memory(m) : ret;
}

static const char *
base_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* A denied program, wherever it really is: below /usr, or in a mount. */
static int
mask_program(struct plan_maker *m, const struct plan_item *item)
{
	const struct lookup_result *r = plan_result_of(m, item);
	const char *resolved;

	if (r->error != 0 || r->kind != LOOKUP_FILE)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(multi_call); i++)
		if (strcmp(base_of(r->resolved), multi_call[i]) == 0) {
			m->unmasked++;
			return 0;
		}
	if (!path_is_within(r->resolved, "/usr")) {
		if (plan_view_system(r->resolved))
			m->unmasked++;
		return mask_item(m, item, true);
	}
	resolved = pool_strdup(m->pool, r->resolved);
	if (resolved == NULL)
		return plan_no_memory(m);
	if (plan_view_mask(m->made->plan, resolved, PLAN_MASK_NO_FILE,
		PLAN_FILE, true) < 0)
		return spec_fault_set(m->fault, API_LIMIT, NULL,
		    "too many denied paths");
	return 0;
}

/* Second pass: masks, now that the mounts stand. */
int
plan_make_masks(struct plan_maker *m)
{
	const struct plan_asked *asked = m->in->asked;
	const struct plan_item *item;
	const char *resolved;
	bool found;

	for (size_t i = 0; i < asked->n; i++) {
		item = &asked->items[i];
		if (item->role == PLAN_ROLE_EXEC) {
			if (mask_program(m, item) != 0)
				return -EINVAL;
			continue;
		}
		if (item->role == PLAN_ROLE_PIN) {
			if (pin_item(m, item) != 0)
				return -EINVAL;
			continue;
		}
		if (!plan_is_read_rule(item) && !is_write_rule(m, item))
			continue;
		if (deny_found(m, item, &found) != 0)
			return -EINVAL;
		resolved = plan_result_of(m, item)->resolved;
		if (!found || is_lifted(m, item, resolved) ||
		    is_link_to_grant(m, item, resolved))
			continue;
		if (mask_item(m, item, plan_is_read_rule(item)) != 0)
			return -EINVAL;
	}
	plan_view_settle(m->made->plan);
	return 0;
}
