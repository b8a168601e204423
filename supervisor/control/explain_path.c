/*
 * See explain_path.h. In the order in which it is enforced: what is in the
 * view at all, masks on it, rules by name, the host's file permissions. The
 * first of them that denies an operation is told.
 */
#include "supervisor/control/explain_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/path.h"
#include "common/size.h"
#include "protocol/lookup.h"
#include "protocol/plan.h"
#include "protocol/rpc.h"
#include "supervisor/control/lists.h"
#include "supervisor/control/name_pattern.h"
#include "supervisor/control/name_rules.h"
#include "supervisor/control/plan_make.h"
#include "supervisor/control/plan_view.h"
#include "supervisor/control/refusals.h"
#include "supervisor/control/spec.h"

static const char *const op_names[EXPLAIN_OPS] = {
	[EXPLAIN_READ] = "read",
	[EXPLAIN_WRITE] = "write",
	[EXPLAIN_RENAME] = "rename",
	[EXPLAIN_EXECUTE] = "execute",
};

struct judge {
	const struct explain_path_in *in;
	const char *path; /* the one that is judged: as typed, or resolved */
	struct explain_path *ret;
};

/* Text of several lengths that is cut rather than refused. */
#define SET(buf, ...) (void)snprintf((buf), sizeof(buf), __VA_ARGS__)

static struct explain_why *
why_of(struct judge *j, enum explain_op op)
{
	struct explain_why *w = &j->ret->why[op];

	/* What was denied before stays denied for that reason. */
	return w->shown && !w->allowed ? NULL : w;
}

static void
allow(struct judge *j, enum explain_op op, const char *reason)
{
	struct explain_why *w = why_of(j, op);

	if (w == NULL)
		return;
	w->shown = true;
	w->allowed = true;
	SET(w->reason, "%s", reason);
}

static void
deny(struct judge *j, enum explain_op op, const char *rule, const char *reason,
    const char *remedy)
{
	struct explain_why *w = why_of(j, op);

	if (w == NULL)
		return;
	w->shown = true;
	w->allowed = false;
	SET(w->rule, "%s", rule);
	SET(w->reason, "%s", reason);
	SET(w->remedy, "%s", remedy);
}

static void
deny_all(struct judge *j, const char *rule, const char *reason,
    const char *remedy)
{
	deny(j, EXPLAIN_READ, rule, reason, remedy);
	deny(j, EXPLAIN_WRITE, rule, reason, remedy);
}

/* ------------------------------------------------ what is in the view */

static bool
is_private(const struct plan *plan, const char *path)
{
	return path_is_within(path, PLAN_TMP_DIR) ||
	    path_is_within(path, "/dev/shm") ||
	    path_is_within(path, PLAN_RUN_DIR) ||
	    path_is_within(path, plan->home);
}

static bool
is_way_to_mount(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->nmounts; i++)
		if (path_is_within(plan->mounts[i].target, path))
			return true;
	return path_is_within(plan->home, path);
}

/* The deepest one; they are sorted, parents first. */
static const struct plan_mount *
mount_of(const struct plan *plan, const char *path)
{
	const struct plan_mount *found = NULL;

	for (size_t i = 0; i < plan->nmounts; i++)
		if (path_is_within(path, plan->mounts[i].target))
			found = &plan->mounts[i];
	return found;
}

static bool
is_on_host(const struct judge *j)
{
	return j->in->found != NULL && j->in->found->error == 0;
}

/* A path that is denied for reading in every run: which, or NULL. */
static const char *
read_denied(const struct judge *j)
{
	const char *home = j->in->plan->home;
	const char *rest = j->path + strlen(home);

	if (!path_is_within(j->path, home) || *rest != '/')
		return NULL;
	for (size_t i = 0; i < lists_read_home_rows; i++) {
		const char *entry = lists_read_home[i].path;
		size_t len = strlen(entry);

		if (strncmp(rest + 1, entry, len) == 0 &&
		    (rest[1 + len] == '\0' || rest[1 + len] == '/'))
			return entry;
	}
	return NULL;
}

/* What of the host is not in the view. */
static void
deny_absent(struct judge *j, enum explain_op op, const char *reason)
{
	const char *entry = read_denied(j);
	char rule[PLAN_PATH_MAX + 16], remedy[EXPLAIN_TEXT_MAX];

	SET(rule, "not mounted");
	SET(remedy, "--mount '%s%s'", j->path, op == EXPLAIN_READ ? ":ro" : "");
	if (strpbrk(j->path, "':") != NULL)
		SET(remedy, "--mount");
	if (entry != NULL) {
		SET(rule, "~/%s (App.6)", entry);
		SET(remedy, "a copy of what the run needs, in another place");
	}
	deny(j, op, rule, reason, remedy);
}

static void
judge_mount(struct judge *j, const struct plan_mount *mount)
{
	char text[EXPLAIN_TEXT_MAX];

	SET(text, "in the %s mount %s",
	    mount->read_only ? "read-only" : "writable", mount->target);
	allow(j, EXPLAIN_READ, text);
	if (!mount->read_only)
		allow(j, EXPLAIN_WRITE, text);
	else if (j->in->read_only_mode)
		deny(j, EXPLAIN_WRITE, "read-only mode", text, "--mode chat");
	else
		deny(j, EXPLAIN_WRITE, "read-only mount", text,
		    "a writable mount, or a change outside the run");
}

/* What the host has there does not show; what the run writes goes with it. */
static void
judge_private(struct judge *j)
{
	static const char gone[] = "private to the run, and gone with it";

	if (is_on_host(j) && j->in->found->kind != LOOKUP_DIR)
		deny_absent(j, EXPLAIN_READ,
		    "the run has a place of its own here, and in it there is "
		    "nothing of the host");
	else
		allow(j, EXPLAIN_READ, gone);
	allow(j, EXPLAIN_WRITE, gone);
}

static void
judge_system(struct judge *j)
{
	static const char rule[] = "system view";
	static const char remedy[] = "a writable mount, /tmp or the run's home";

	allow(j, EXPLAIN_READ, "the host's own, read-only in every run");
	deny(j, EXPLAIN_WRITE, rule, "the system is read-only in every run",
	    remedy);
}

static bool
judge_generated(struct judge *j)
{
	const struct plan *plan = j->in->plan;

	for (size_t i = 0; i < plan->nfiles; i++) {
		if (strcmp(plan->files[i].path, j->path) != 0)
			continue;
		allow(j, EXPLAIN_READ, "made for the run, not the host's");
		deny(j, EXPLAIN_WRITE, "generated file",
		    "made for the run, read-only", "");
		return true;
	}
	return false;
}

static void
judge_kernel(struct judge *j)
{
	static const char reason[] = "the kernel's: its own permissions decide";

	allow(j, EXPLAIN_READ, reason);
	allow(j, EXPLAIN_WRITE, reason);
}

static void
judge_absent(struct judge *j)
{
	static const char absent[] = "it does not exist in the run";

	if (path_is_within(j->path, "/etc")) {
		deny(j, EXPLAIN_WRITE, "system view",
		    "/etc is read-only in every run", "");
		deny(j, EXPLAIN_READ, "system view",
		    "of /etc a run has only what every run is given", "");
	} else if (strcmp(j->path, "/") == 0 ||
	    is_way_to_mount(j->in->plan, j->path)) {
		allow(j, EXPLAIN_READ,
		    "a directory on the way to mounts, with nothing else in "
		    "it");
		deny_absent(j, EXPLAIN_WRITE,
		    "a directory on the way to mounts");
	} else {
		deny_absent(j, EXPLAIN_READ, absent);
		deny_absent(j, EXPLAIN_WRITE, absent);
	}
}

/* Returns whether the host's tree shows here. */
static bool
judge_view(struct judge *j)
{
	const struct plan *plan = j->in->plan;
	const struct plan_mount *mount = mount_of(plan, j->path);

	if (mount != NULL) {
		judge_mount(j, mount);
		return true;
	}
	if (judge_generated(j))
		return false;
	if (is_private(plan, j->path))
		judge_private(j);
	else if (plan_view_system(j->path))
		judge_system(j);
	else if (path_is_within(j->path, "/dev") ||
	    path_is_within(j->path, "/proc") || path_is_within(j->path, "/sys"))
		judge_kernel(j);
	else
		judge_absent(j);
	return plan_view_system(j->path);
}

/* ------------------------------------------------ masks */

static void
judge_hidden(struct judge *j, const struct plan_mask *mask)
{
	const char *entry = read_denied(j);
	char rule[PLAN_PATH_MAX + 16];

	if (mask->system) {
		deny(j, EXPLAIN_READ, "denied program (App.9)",
		    "it cannot be opened", "");
		deny(j, EXPLAIN_EXECUTE, "denied program (App.9)",
		    "it cannot be executed by this or another name of it", "");
		return;
	}
	SET(rule, "denied for reading");
	if (entry != NULL)
		SET(rule, "~/%s (App.6)", entry);
	deny_all(j, rule,
	    mask->how == PLAN_MASK_NO_FILE ? "it cannot be opened" :
		strcmp(mask->path, j->path) == 0 ?
					     "it appears empty" :
					     "its directory appears empty",
	    "a copy of what the run needs, in another place");
}

static void
judge_masks(struct judge *j)
{
	const struct plan *plan = j->in->plan;

	for (size_t i = 0; i < plan->nmasks; i++) {
		const struct plan_mask *mask = &plan->masks[i];

		if (!path_is_within(j->path, mask->path))
			continue;
		if (mask->how == PLAN_MASK_EMPTY_DIR ||
		    mask->how == PLAN_MASK_NO_FILE)
			judge_hidden(j, mask);
		else if (mask->how == PLAN_MASK_READ_ONLY)
			deny(j, EXPLAIN_WRITE, "protected path",
			    "it is mounted read-only in its place",
			    refusals_mask_remedy(mask->path));
		else if (strcmp(j->path, mask->path) == 0)
			deny(j, EXPLAIN_RENAME, "protected path",
			    "it holds protected names and stays in its place",
			    "a change outside the run");
	}
}

/* ------------------------------------------------ rules by name */

struct ruled {
	const struct guard_rule *rule;
	int root;
	const char *rel; /* of the path, below its root */
};

static bool
ask_table(const struct judge *j, unsigned asked, struct ruled *ret,
    unsigned *ret_mask)
{
	const struct guard *g = j->in->guard;
	size_t len = strlen(j->path), rel = 0;
	struct dfa_verdict v;

	if (g == NULL)
		return false;
	v = guard_judge(g, j->path, len, "", 0, &ret->root);
	if (ret->root < 0 || g->roots[ret->root].empty)
		return false;
	(void)guard_find_root(g, j->path, len, &rel);
	ret->rel = j->path + rel;
	ret->rule = NULL;
	if ((v.mask & asked) != 0)
		ret->rule = guard_rule(g,
		    guard_exact_rule(g, v, v.mask & asked, j->path, len, "",
			0));
	*ret_mask = v.mask;
	return true;
}

/* Whether the repository that the path is in was there at the launch: then it
 * is protected, and new ones are another matter. */
static bool
is_old_repository(const struct judge *j)
{
	const struct plan *plan = j->in->plan;
	const char *end = NULL;
	char dir[PLAN_PATH_MAX + 1];

	if (is_on_host(j))
		return true;
	for (const char *p = j->path; (p = strstr(p, "/.git")) != NULL; p++)
		if (p[5] == '\0' || p[5] == '/')
			end = p + 5;
	if (end == NULL || (size_t)(end - j->path) >= sizeof(dir))
		return false;
	memcpy(dir, j->path, (size_t)(end - j->path));
	dir[end - j->path] = '\0';
	for (size_t i = 0; i < plan->nmasks; i++)
		if (path_is_within(plan->masks[i].path, dir))
			return true;
	return false;
}

static void
deny_by(struct judge *j, enum explain_op op, const struct ruled *r,
    const char *reason)
{
	char rule[GUARD_TEXT_MAX + GUARD_ORIGIN_MAX + 8];
	char remedy[GUARD_REMEDY_MAX + 1];

	SET(rule, "%s (%s)", r->rule->text, r->rule->origin);
	name_rules_remedy(r->rule, r->rel, remedy, sizeof(remedy));
	if (r->rule->class == DFA_GIT && is_old_repository(j))
		SET(remedy, "%s", refusals_mask_remedy(j->path));
	deny(j, op, rule, reason, remedy);
}

/* What lifts an App.7 rule, to be said of what is allowed. */
static void
tell_exemption(struct judge *j, const struct ruled *r)
{
	const struct guard *g = j->in->guard;
	size_t len = strlen(r->rel);
	char text[EXPLAIN_TEXT_MAX];

	for (size_t i = 0; i < g->nrules; i++) {
		const struct guard_rule *rule = &g->rules[i];

		if (rule->class != DFA_BUILTIN ||
		    (dfa_rule_matches(rule->glob, rule->ignore_case, rule->mask,
			 r->rel, len) &
			DFA_WRITE) == 0)
			continue;
		for (size_t k = 0; k < g->nexemptions; k++) {
			const struct guard_exemption *e = &g->exemptions[k];
			bool ignore;
			const char *glob =
			    name_pattern_behind_case(e->text, &ignore);

			if ((e->roots & (1u << r->root)) == 0 ||
			    dfa_rule_matches(glob, ignore, DFA_WRITE, r->rel,
				len) == 0)
				continue;
			SET(text, "the rule %s (%s) is lifted by %s (%s)",
			    rule->text, rule->origin, e->text, e->origin);
			allow(j, EXPLAIN_WRITE, text);
			return;
		}
	}
}

static void
judge_names(struct judge *j)
{
	struct ruled r;
	unsigned mask = 0;
	bool lifted;

	if (!ask_table(j, DFA_WRITE | DFA_MOVE, &r, &mask))
		return;
	if (r.rule == NULL) {
		tell_exemption(j, &r);
		return;
	}
	lifted = r.rule->class == DFA_GIT && j->in->guard->new_repositories;
	if ((mask & DFA_WRITE) != 0)
		deny_by(j, EXPLAIN_WRITE, &r,
		    lifted ?
			"no file with this name is made, written, moved or "
			"removed, unless in a repository that the run itself "
			"has made" :
			"no file with this name is made, written, moved or "
			"removed");
	else
		deny_by(j, EXPLAIN_RENAME, &r,
		    "what this rule protects would come to be or go");
}

/* ------------------------------------------------ all of it */

static void
judge_permissions(struct judge *j)
{
	static const char rule[] = "file permissions";
	static const char remedy[] = "chmod or chown outside the run";
	const struct lookup_result *found = j->in->found;

	if (found == NULL)
		return;
	if (found->error == EACCES)
		deny_all(j, rule, "the run's user may not look there", remedy);
	if (found->error != 0)
		return;
	if (!found->readable)
		deny(j, EXPLAIN_READ, rule, "the run's user may not read it",
		    remedy);
	if (!found->writable)
		deny(j, EXPLAIN_WRITE, rule, "the run's user may not write it",
		    remedy);
}

static void
judge_path(const struct explain_path_in *in, const char *path,
    struct explain_path *ret)
{
	struct judge j = { in, path, ret };

	if (judge_view(&j)) {
		judge_names(&j);
		judge_masks(&j);
		judge_permissions(&j);
	}
}

void
explain_path(const struct explain_path_in *in, struct explain_path *ret)
{
	memset(ret, 0, sizeof(*ret));
	judge_path(in, in->path, ret);
	/* A link is judged by both: what it is, and what it leads to. */
	if (in->found != NULL && path_is_clean(in->found->resolved) &&
	    strcmp(in->found->resolved, in->path) != 0)
		judge_path(in, in->found->resolved, ret);
}

static const char *
decision_of(const struct explain_path *e)
{
	if (!e->why[EXPLAIN_READ].allowed)
		return "denied";
	for (size_t i = 0; i < EXPLAIN_OPS; i++)
		if (e->why[i].shown && !e->why[i].allowed)
			return i == EXPLAIN_WRITE ? "readOnly" : "partly";
	return "allowed";
}

void
explain_path_put(const struct explain_path *e, struct rpc_out *out)
{
	const struct explain_why *first = NULL;

	for (size_t i = 0; i < EXPLAIN_OPS && first == NULL; i++)
		if (e->why[i].shown && !e->why[i].allowed)
			first = &e->why[i];
	rpc_add_str(out, "decision", decision_of(e));
	rpc_add_clean(out, "rule", first != NULL ? first->rule : "");
	rpc_add_array(out, "why");
	for (size_t i = 0; i < EXPLAIN_OPS; i++) {
		const struct explain_why *w = &e->why[i];

		if (!w->shown)
			continue;
		rpc_open_map(out);
		rpc_add_str(out, "operation", op_names[i]);
		rpc_add_str(out, "decision", w->allowed ? "allowed" : "denied");
		if (*w->rule != '\0')
			rpc_add_clean(out, "rule", w->rule);
		rpc_add_str(out, "reason", w->reason);
		rpc_add_text(out, "remedy", w->remedy);
		rpc_close(out);
	}
	rpc_close(out);
	rpc_add_str(out, "remedy", first != NULL ? first->remedy : "");
}

const char *
explain_path_clean(struct pool *pool, const char *typed,
    const struct plan *plan)
{
	const char *whole = typed;

	if (strncmp(typed, "~/", 2) == 0) {
		whole = pool_concat(pool, plan->home, typed + 1);
	} else if (typed[0] != '/') {
		whole = pool_concat(pool, plan->cwd, "/");
		if (whole != NULL)
			whole = pool_concat(pool, whole, typed);
	}
	return whole == NULL ? NULL :
			       spec_path_clean(pool, whole, strlen(whole));
}
