/*
 * What the start scan found becomes part of a plan (SPEC J3, J4, J8, C12, D5;
 * facts of the scan: protocol/lookup.h). Existing files with denied names, and
 * other names of denied files, get a read-only bind over each; socket files are
 * covered; git directories that are not called .git, and what links and git's
 * configuration lead to, join the rules. For plan_make.c.
 *
 * The findings are the word of a process that runs as the user, on trees that
 * may be hostile: a finding outside of the view means nothing, a name is judged
 * again by the run's own table, and nothing that a tree says can take a whole
 * grant away or refuse the launch. What does not fit is told.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "common/size.h"
#include "protocol/guard.h"
#include "supervisor/control/plan_private.h"
#include "supervisor/control/spec.h"

#define ORIGIN_FOUND "found at launch"

struct finder {
	struct plan_maker *m;
	struct guard *guard; /* NULL: no name rules */
	uint64_t unmasked; /* that did not fit */
	bool rules_full;
};

/* One finding. */
struct finding {
	struct finder *f;
	const struct lookup_found *found;
	enum plan_mask_how how;
	bool denied; /* is_denied(): one of the places is */
};

static bool
denies(const struct finder *f, const char *dir, const char *name)
{
	return f->guard != NULL &&
	    (guard_judge(f->guard, dir, strlen(dir), name, strlen(name), NULL)
		    .mask &
		DFA_WRITE) != 0;
}

static int
each(struct finder *f, const char *resolved, plan_view_fn *fn, void *arg)
{
	struct plan_maker *m = f->m;
	const char *kept = pool_strdup(m->pool, resolved);
	int r;

	if (kept == NULL)
		return plan_no_memory(m);
	r = plan_view_each(m->made->plan, kept, m->pool, fn, arg);
	return r == -ENOMEM ? plan_no_memory(m) : r;
}

/* --- rules -------------------------------------------------------------- */

static int
git_here(void *arg, const char *path, const struct plan_mount *mount)
{
	struct finding *k = arg;
	struct plan_maker *m = k->f->m;

	/* Those of a repository's submodules and work trees are covered. */
	if (mount->read_only ||
	    (denies(k->f, path, "config") && denies(k->f, path, "commondir")))
		return 0;
	if (m->nfound_dirs == PLAN_FOUND_DIRS_MAX)
		k->f->rules_full = true;
	else
		m->found_dirs[m->nfound_dirs++] = path;
	return 0;
}

static bool
holds_mount(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->nmounts; i++)
		if (path_is_within(plan->mounts[i].target, path))
			return true;
	return false;
}

static int
target_here(void *arg, const char *path, const struct plan_mount *mount)
{
	struct finding *k = arg;
	struct plan_maker *m = k->f->m;

	if (mount->read_only || denies(k->f, path, ""))
		return 0;
	/* Who wrote the tree would decide that the grant is not writable. */
	if (holds_mount(m->made->plan, path))
		return plan_notice(m, "linkNotDenied", path);
	if (m->nfound_paths == PLAN_FOUND_PATHS_MAX)
		k->f->rules_full = true;
	else
		m->found_paths[m->nfound_paths++] =
		    (struct name_rules_path){ path, ORIGIN_FOUND };
	return 0;
}

static int
gather(struct finder *f)
{
	struct plan_maker *m = f->m;
	const struct lookup_results *res = m->in->results;
	int r = 0;

	m->found_paths = pool_alloc_sparse(m->pool, PLAN_FOUND_PATHS_MAX,
	    sizeof(*m->found_paths));
	m->found_dirs = pool_alloc_sparse(m->pool, PLAN_FOUND_DIRS_MAX,
	    sizeof(*m->found_dirs));
	if (m->found_paths == NULL || m->found_dirs == NULL)
		return plan_no_memory(m);
	for (size_t i = 0; i < res->nfound && r == 0; i++) {
		struct finding k = { .f = f, .found = &res->found[i] };

		if (k.found->what == LOOKUP_GIT)
			r = each(f, k.found->path, git_here, &k);
		else if (k.found->what == LOOKUP_TARGET)
			r = each(f, k.found->path, target_here, &k);
	}
	return r;
}

static int
read_guard(struct finder *f)
{
	const struct wire_out *bytes = &f->m->made->guard_bytes;

	if (f->m->made->plan->nroots == 0)
		return 0;
	if (f->guard == NULL)
		f->guard = malloc(sizeof(*f->guard));
	if (f->guard == NULL)
		return plan_no_memory(f->m);
	return guard_decode(bytes->data, bytes->len, f->guard) == 0 ?
	    0 :
	    spec_fault_set(f->m->fault, API_INTERNAL, NULL,
		"the name rules cannot be read");
}

/* The table with what was found; the one without when that is too much. */
static int
renew_guard(struct finder *f)
{
	struct plan_maker *m = f->m;
	struct wire_out before = m->made->guard_bytes;
	int r;

	if (f->guard == NULL || m->nfound_dirs + m->nfound_paths == 0)
		return 0;
	wire_out_init(&m->made->guard_bytes);
	r = plan_make_guard(m);
	if (r != 0 && m->fault->code != API_LIMIT) {
		wire_out_done(&before);
		return r;
	}
	if (r == 0) {
		wire_out_done(&before);
		return read_guard(f);
	}
	wire_out_done(&m->made->guard_bytes);
	m->made->guard_bytes = before;
	f->rules_full = true;
	return 0;
}

/* --- masks -------------------------------------------------------------- */

static void
mask(struct finding *k, const char *path)
{
	struct plan *plan = k->f->m->made->plan;
	enum plan_kind kind =
	    k->found->kind == LOOKUP_DIR ? PLAN_DIR : PLAN_FILE;
	enum plan_mask_how how = k->how;

	if (how == PLAN_MASK_NO_FILE && kind == PLAN_DIR)
		how = PLAN_MASK_EMPTY_DIR;
	if (plan_view_mask(plan, path, how, kind, false) < 0)
		k->f->unmasked++;
	else
		plan->masks[plan->nmasks - 1].found = true;
}

static int
mask_here(void *arg, const char *path, const struct plan_mount *mount)
{
	struct finding *k = arg;

	if ((k->how != PLAN_MASK_READ_ONLY || !mount->read_only) &&
	    !holds_mount(k->f->m->made->plan, path))
		mask(k, path);
	return 0;
}

static int
mask_denied_here(void *arg, const char *path, const struct plan_mount *mount)
{
	struct finding *k = arg;

	return denies(k->f, path, "") ? mask_here(arg, path, mount) : 0;
}

static int
is_denied(void *arg, const char *path, const struct plan_mount *mount)
{
	struct finding *k = arg;

	(void)mount;
	k->denied |= denies(k->f, path, "");
	return 0;
}

static int
mask_link(struct finding *k)
{
	struct plan_maker *m = k->f->m;
	const struct plan_item *item;
	int r;

	if (k->found->item == LOOKUP_NO_ITEM) {
		r = each(k->f, k->found->source, is_denied, k);
		if (r != 0 || !k->denied)
			return r;
	} else {
		item = &m->in->asked->items[k->found->item];
		if (plan_is_read_rule(item))
			k->how = PLAN_MASK_NO_FILE;
		else if (!plan_write_holds(m, item))
			return 0;
	}
	return each(k->f, k->found->path, mask_here, k);
}

static int
mask_found(struct finding *k)
{
	k->how = PLAN_MASK_READ_ONLY;
	switch (k->found->what) {
	case LOOKUP_NAME:
		return each(k->f, k->found->path, mask_denied_here, k);
	case LOOKUP_TARGET:
		return k->found->kind == LOOKUP_NONE ?
		    0 :
		    each(k->f, k->found->path, mask_denied_here, k);
	case LOOKUP_LINK:
		return mask_link(k);
	case LOOKUP_SOCK:
		k->how = PLAN_MASK_NO_FILE;
		return each(k->f, k->found->path, mask_here, k);
	case LOOKUP_GIT:
		break;
	}
	return 0;
}

/* --- what is left out --------------------------------------------------- */

struct gap {
	uint64_t stop;
	const char *text;
};
static const struct gap gaps[] = {
	{ LOOKUP_STOP_ENTRIES, "it holds more than the start scan looks at" },
	{ LOOKUP_STOP_TIME, "the start scan was out of time" },
	{ LOOKUP_STOP_DEPTH, "paths were too long for the start scan" },
	{ LOOKUP_STOP_CLOSED, "a directory could not be listed" },
	{ LOOKUP_STOP_CONFIG, "a git configuration could not be read" },
	{ LOOKUP_STOP_GIT, "git directories or includes are too many" },
};

static void
say(char *text, size_t size, const char *more)
{
	size_t len = strlen(text);

	(void)snprintf(text + len, size - len, "%s%s", len > 0 ? ", " : "",
	    more);
}

static int
tell_gaps(struct finder *f)
{
	struct plan_maker *m = f->m;
	const struct lookup_results *res = m->in->results;
	uint64_t unmasked = f->unmasked;
	char text[512] = "", more[80];

	for (size_t i = 0; i < ARRAY_LEN(gaps); i++)
		if ((res->stopped & gaps[i].stop) != 0)
			say(text, sizeof(text), gaps[i].text);
	if (__builtin_add_overflow(unmasked, res->dropped, &unmasked))
		unmasked = UINT64_MAX;
	if (unmasked > 0 || (res->stopped & LOOKUP_STOP_FOUND) != 0) {
		(void)snprintf(more, sizeof(more),
		    "%llu files were found beyond what one run can have bound",
		    (unsigned long long)unmasked);
		say(text, sizeof(text), more);
	}
	if (f->rules_full)
		say(text, sizeof(text),
		    "links and git configurations lead to more paths than the "
		    "rules can hold");
	m->scan_gaps = pool_strdup(m->pool, text);
	return m->scan_gaps == NULL ? plan_no_memory(m) : 0;
}

static int
apply(struct finder *f)
{
	struct plan_maker *m = f->m;
	const struct lookup_results *res = m->in->results;
	int r;

	if (read_guard(f) != 0 || gather(f) != 0 || renew_guard(f) != 0)
		return -EINVAL;
	for (size_t i = 0; i < res->nfound; i++) {
		struct finding k = { .f = f, .found = &res->found[i] };

		r = mask_found(&k);
		if (r != 0)
			return r;
	}
	plan_view_settle(m->made->plan);
	return 0;
}

int
plan_apply_found(struct plan_maker *m)
{
	struct finder f = { .m = m };
	int r = m->in->results->nfound == 0 ? 0 : apply(&f);

	free(f.guard);
	return r == 0 ? tell_gaps(&f) : r;
}
