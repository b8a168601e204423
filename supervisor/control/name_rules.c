/*
 * Makes the rule list of a run. Order matters only for the numbers: equal
 * input gives equal bytes.
 */
#include "supervisor/control/name_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/dfa_glob.h"
#include "common/path.h"
#include "common/size.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/lists.h"
#include "supervisor/control/name_pattern.h"
#include "supervisor/control/tables.h"

/* SPEC App.7 and D10; and the list of public certificates that pip brings into
 * every Python environment, which hides no key. */
static const char *const app7[] = { "**/.env", "**/.env.*", "**/*.key",
	"**/*.pem", "**/*.p12", "**/*.pfx" };
static const char *const app7_exempt[] = { "(?i)**/.env.example",
	"(?i)**/.env.sample", "(?i)**/.env.template", "(?i)**/.env.dist",
	"**/certifi/cacert.pem" };

#define REMEDY_EXEMPT "--name-exempt GLOB"
#define REMEDY_GIT "--new-repositories, or a repository in /tmp"
#define REMEDY_NAME "deny name in the configuration"
#define ORIGIN_NAME "configuration line "
#define ORIGIN_DENY_WRITE "spec denyWrite"
#define ORIGIN_APP7 "App.7"

struct maker {
	const struct name_rules_in *in;
	struct name_rules *out;
	struct spec_fault *fault;
	uint16_t ruled; /* roots that carry rules */
	uint16_t *buckets; /* of the rules: number + 1, or 0 */
};

#define BUCKETS (4u * DFA_RULES_MAX)

static int
no_memory(void)
{
	return -ENOMEM;
}

static int
bad_pattern(struct maker *m, const char *field, const char *text,
    const char *why)
{
	return spec_fault_set(m->fault, API_BAD_PARAMS, field, "%s: %s: %.200s",
	    field, why, text);
}

/* --- the list ----------------------------------------------------------- */

static uint32_t
hash_text(uint32_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * 0x01000193u;
	return hash;
}

/* The bucket of such a rule, or the free one where it would stand. */
static uint16_t *
find_rule(struct maker *m, const struct dfa_rule *rule, const char *shown,
    const char *origin)
{
	uint32_t slot = hash_text(hash_text(0x811c9dc5u, rule->glob), shown);

	for (slot ^= slot >> 16;; slot++) {
		uint16_t *bucket = &m->buckets[slot % BUCKETS];
		const struct dfa_rule *have;
		const struct guard_rule *seen;

		if (*bucket == 0)
			return bucket;
		have = &m->out->rules[*bucket - 1];
		seen = &m->out->shown[*bucket - 1];
		if (have->mask == rule->mask && have->class == rule->class &&
		    have->ignore_case == rule->ignore_case &&
		    strcmp(have->glob, rule->glob) == 0 &&
		    strcmp(seen->text, shown) == 0 &&
		    strcmp(seen->origin, origin) == 0)
			return bucket;
	}
}

static int
add_rule(struct maker *m, const struct dfa_rule *rule, const char *shown,
    const char *origin, const char *remedy)
{
	struct name_rules *out = m->out;
	uint16_t *bucket;

	if ((rule->roots & m->ruled) == 0)
		return 0;
	bucket = find_rule(m, rule, shown, origin);
	if (*bucket != 0) { /* holds below more roots then */
		out->rules[*bucket - 1].roots |= rule->roots;
		return 0;
	}
	if (out->nrules == DFA_RULES_MAX)
		return spec_fault_set(m->fault, API_LIMIT, "",
		    "more than %d name rules", DFA_RULES_MAX);
	out->rules[out->nrules] = *rule;
	out->shown[out->nrules++] = (struct guard_rule){ .text = shown,
		.origin = origin,
		.remedy = remedy,
		.class = rule->class };
	*bucket = (uint16_t)out->nrules;
	return 0;
}

/* --- patterns below one root --------------------------------------------- */

/*
 * Where an absolute pattern stands after each component of a root's path: the
 * set of its parts that may come next.
 */
struct front {
	const struct dfa_glob *glob;
	bool *at; /* nparts + 1 */
	bool *next;
	bool subtree; /* what lies below a match is meant too */
	bool whole; /* the root lies in a match */
};

/* One rule in the making. */
struct rest {
	struct dfa_rule rule; /* glob and roots are filled in */
	const char *text; /* absolute pattern, without (?i) */
	const char *shown;
	const char *origin;
	const char *remedy;
	bool subtree;
	bool not_first; /* a rule for all roots stands for part 0 */
};

static void
front_step(struct front *f, const char *name, size_t len)
{
	const struct dfa_glob *glob = f->glob;
	size_t last = glob->nparts - 1;
	bool *swap = f->at;

	memset(f->next, 0, (glob->nparts + 1) * sizeof(*f->next));
	for (size_t i = 0; i < glob->nparts; i++) {
		if (f->at[i] && glob->parts[i].any) {
			f->next[i] = true;
			f->at[i + 1] = true;
		}
		if (f->at[i] && !glob->parts[i].any &&
		    dfa_glob_part_matches(glob, i, name, len))
			f->next[i + 1] = true;
	}
	f->at = f->next;
	f->next = swap;
	f->whole |= f->subtree && f->at[glob->nparts];
	f->whole |= last > 0 && f->at[last] && glob->parts[last].any;
}

/* Leads the front through the root's path. */
static void
front_walk(struct front *f, const char *root)
{
	const char *p = root + 1;
	size_t len;

	memset(f->at, 0, (f->glob->nparts + 1) * sizeof(*f->at));
	f->at[0] = true;
	f->whole = f->glob->nparts == 1 && f->glob->parts[0].any;
	for (; *p != '\0'; p += len + (p[len] == '/')) {
		len = strcspn(p, "/");
		front_step(f, p, len);
	}
}

/* The text of an absolute pattern from part number n on. */
static const char *
part_text(const char *text, size_t n)
{
	/* Neighbouring ** are one part of glob, but two of the text. */
	bool any = false, was_any;

	for (text++;; text++) {
		size_t len = strcspn(text, "/");

		was_any = any;
		any = len == 2 && memcmp(text, "**", 2) == 0;
		if (!(any && was_any) && n-- == 0)
			return text;
		text += len;
	}
}

/* A rule of what is left of the pattern below one root. */
static int
add_rest(struct maker *m, struct rest *rest, const char *left)
{
	const char *last = strrchr(left, '/');
	bool ends_any = strcmp(last == NULL ? left : last + 1, "**") == 0;
	const char *glob = pool_concat(&m->out->pool, "/", left);

	if (glob != NULL && rest->subtree && !ends_any)
		glob = pool_concat(&m->out->pool, glob, "/**");
	if (glob == NULL)
		return no_memory();
	if (strlen(glob) > DFA_GLOB_MAX)
		return bad_pattern(m, rest->origin, rest->shown,
		    "the pattern is too long");
	rest->rule.glob = glob;
	return add_rule(m, &rest->rule, rest->shown, rest->origin,
	    rest->remedy);
}

/* All of them below one root. */
static int
add_rests_of_root(struct maker *m, struct rest *rest, struct front *f,
    const char *root)
{
	const struct dfa_part *parts = f->glob->parts;
	int r = 0;

	front_walk(f, root);
	if (f->whole)
		return add_rest(m, rest, "**");
	for (size_t i = rest->not_first; i < f->glob->nparts && r == 0; i++)
		if (f->at[i] && !(i > 0 && f->at[i - 1] && parts[i - 1].any))
			r = add_rest(m, rest, part_text(rest->text, i));
	return r;
}

/*
 * Rules below each root that together mean an absolute pattern: a root may
 * itself lie at a place that the pattern's first parts name.
 */
static int
add_rests(struct maker *m, struct rest *rest)
{
	struct dfa_glob glob = { 0 };
	struct front f = { .glob = &glob, .subtree = rest->subtree };
	autofree bool *room = NULL;
	const char *why;
	int r;

	r = dfa_glob_parse(rest->text, rest->rule.ignore_case, &glob, &why);
	if (r == -EINVAL)
		return bad_pattern(m, rest->origin, rest->shown, why);
	if (r < 0)
		return r;
	room = calloc(2 * (glob.nparts + 1), sizeof(*room));
	if (room == NULL)
		r = no_memory();
	for (size_t i = 0; i < m->in->nroots && r == 0; i++) {
		f.at = room;
		f.next = room + glob.nparts + 1;
		rest->rule.roots = (uint16_t)(1u << i);
		if ((m->ruled & (1u << i)) != 0)
			r = add_rests_of_root(m, rest, &f,
			    m->in->roots[i].path);
	}
	dfa_glob_done(&glob);
	return r;
}

/* A pattern of any depth: a rule for all roots, and those of roots that lie
 * in a place which its first parts name. */
static int
add_floating(struct maker *m, const struct dfa_rule *rule, const char *shown,
    const char *origin, const char *remedy)
{
	struct rest rest = {
		.rule = *rule,
		.shown = shown,
		.origin = origin,
		.remedy = remedy,
		.not_first = true,
	};
	int r;

	r = add_rule(m, rule, shown, origin, remedy);
	if (r < 0)
		return r;
	rest.text = pool_concat(&m->out->pool, "/", rule->glob);
	return rest.text == NULL ? no_memory() : add_rests(m, &rest);
}

/* A rule of ours: any letter case, below every root. */
static int
add_fixed(struct maker *m, const char *glob, enum dfa_class class,
    const char *origin, const char *remedy)
{
	struct dfa_rule rule = {
		.glob = glob,
		.mask = DFA_WRITE,
		.roots = m->ruled,
		.class = class,
		.ignore_case = true,
	};

	if (glob == NULL)
		return no_memory();
	return add_floating(m, &rule, glob, origin, remedy);
}

static int
add_exemption(struct maker *m, const char *text, const char *origin,
    bool in_force)
{
	struct name_rules *out = m->out;

	if (out->nexemptions == DFA_EXEMPTIONS_MAX)
		return spec_fault_set(m->fault, API_LIMIT, "nameExemptions",
		    "more than %d name exemptions", DFA_EXEMPTIONS_MAX);
	out->exemptions[out->nexemptions++] =
	    (struct guard_exemption){ text, origin, in_force ? m->ruled : 0 };
	return 0;
}

/* --- what always holds -------------------------------------------------- */

/* before + path, and all below it when it is a directory. */
static const char *
list_glob(struct maker *m, const char *before, const struct lists_path *entry)
{
	const char *glob = pool_concat(&m->out->pool, before, entry->path);

	if (glob == NULL || entry->kind != LISTS_DIR)
		return glob;
	return pool_concat(&m->out->pool, glob, "/**");
}

const char *
name_rules_first(void)
{
	return app7[0];
}

static const char *
remedy_builtin(const struct maker *m)
{
	return m->in->exemptions_permitted ? REMEDY_EXEMPT : "";
}

static int
add_lists(struct maker *m)
{
	const char *remedy = remedy_builtin(m);
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(app7) && r == 0; i++)
		r = add_fixed(m, app7[i], DFA_BUILTIN, ORIGIN_APP7, remedy);
	for (size_t i = 0; i < lists_write_git_rows && r == 0; i++)
		r = add_fixed(m, list_glob(m, "**/.git/", &lists_write_git[i]),
		    DFA_GIT, "App.6", REMEDY_GIT);
	for (size_t i = 0; i < lists_write_root_rows && r == 0; i++)
		r = add_fixed(m, list_glob(m, "**/", &lists_write_root[i]),
		    DFA_PROTECTED, "App.6", "");
	for (size_t i = 0; i < ARRAY_LEN(app7_exempt) && r == 0; i++)
		r = add_exemption(m, app7_exempt[i], ORIGIN_APP7, true);
	/* Of no class that an exemption lifts: each launch tries it. */
	if (r == 0)
		r = add_fixed(m, GUARD_VERIFY_GLOB, DFA_GIT, "D16", "");
	return r;
}

/* --- paths -------------------------------------------------------------- */

/* path as a pattern that means only itself, behind before; then after. */
static const char *
literal_glob(struct pool *pool, const char *before, const char *path,
    const char *after)
{
	size_t len = strlen(before) + 3 * strlen(path) + strlen(after) + 1;
	char *glob = pool_alloc(pool, len, 1), *p = glob;

	if (glob == NULL)
		return NULL;
	p = stpcpy(p, before);
	for (; *path != '\0'; path++) {
		if (strchr("*?[", *path) != NULL) {
			*p++ = '[';
			*p++ = *path;
			*p++ = ']';
		} else {
			*p++ = *path;
		}
	}
	(void)stpcpy(p, after);
	return glob;
}

/* What of path lies below root: "" when path is the root or holds it, NULL
 * when neither holds the other. */
static const char *
below_root(const char *root, const char *path)
{
	if (path_is_within(path, root))
		return path[strlen(root)] == '\0' ? "" :
						    path + strlen(root) + 1;
	return path_is_within(root, path) ? "" : NULL;
}

/* path and what lies below it, under each root that it has to do with. */
static int
add_path(struct maker *m, const char *path, const char *after,
    struct dfa_rule rule, const char *origin, const char *remedy)
{
	const char *rel;
	int r = 0;

	for (size_t i = 0; i < m->in->nroots && r == 0; i++) {
		rel = below_root(m->in->roots[i].path, path);
		if (rel == NULL)
			continue;
		/* A git directory that lies above the root has its hooks and
		 * configuration outside of it. */
		if (*rel == '\0' && rule.class == DFA_GIT &&
		    strcmp(m->in->roots[i].path, path) != 0)
			continue;
		rule.roots = (uint16_t)(1u << i);
		rule.glob = literal_glob(&m->out->pool, "/", rel,
		    *rel == '\0' && *after == '/' ? after + 1 : after);
		if (rule.glob == NULL)
			return no_memory();
		if (strlen(rule.glob) > DFA_GLOB_MAX)
			return spec_fault_set(m->fault, API_LIMIT, "",
			    "%s: the path is too long for a rule", origin);
		r = add_rule(m, &rule, path, origin, remedy);
	}
	return r;
}

static int
add_paths(struct maker *m)
{
	const struct dfa_rule rule = { .mask = DFA_WRITE,
		.class = DFA_PROTECTED };
	int r = 0;

	for (size_t i = 0; i < m->in->npaths && r == 0; i++)
		r = add_path(m, m->in->paths[i].path, "/**", rule,
		    m->in->paths[i].origin, "");
	return r;
}

/* J8: the git set in directories that are not called .git. */
static int
add_git_dirs(struct maker *m)
{
	const struct dfa_rule rule = { .mask = DFA_WRITE, .class = DFA_GIT };
	const char *after;
	int r = 0;

	for (size_t i = 0; i < m->in->ngit_dirs; i++)
		for (size_t k = 0; k < lists_write_git_rows && r == 0; k++) {
			after = list_glob(m, "/", &lists_write_git[k]);
			if (after == NULL)
				return no_memory();
			r = add_path(m, m->in->git_dirs[i], after, rule,
			    "App.6", REMEDY_GIT);
		}
	return r;
}

/* --- patterns of the configuration -------------------------------------- */

static int
add_names(struct maker *m)
{
	const struct conf_names *names = m->in->deny_names;
	int r = 0;

	for (size_t i = 0; names != NULL && i < names->n && r == 0; i++) {
		const struct conf_name *name = &names->list[i];
		struct dfa_rule rule = { .mask = DFA_WRITE,
			.roots = m->ruled,
			.class = DFA_SPEC };
		const char *why = name_pattern_why(name->name);
		char origin[sizeof(ORIGIN_NAME) + 16];
		const char *kept;

		if (why != NULL)
			return bad_pattern(m, "deny name", name->name, why);
		rule.glob =
		    name_pattern_behind_case(name->name, &rule.ignore_case);
		(void)snprintf(origin, sizeof(origin), ORIGIN_NAME "%u",
		    name->origin.line);
		kept = pool_strdup(&m->out->pool, origin);
		if (kept == NULL)
			return no_memory();
		r = strncmp(rule.glob, "**/", 3) == 0 ?
		    add_floating(m, &rule, name->name, kept, REMEDY_NAME) :
		    add_rule(m, &rule, name->name, kept, REMEDY_NAME);
	}
	return r;
}

/* --- patterns of the spec ----------------------------------------------- */

static int
add_deny_pattern(struct maker *m, const char *text)
{
	struct rest rest = {
		.rule = { .mask = DFA_WRITE, .class = DFA_SPEC },
		.shown = text,
		.origin = ORIGIN_DENY_WRITE,
		.remedy = "",
		.subtree = true,
	};

	rest.text = name_pattern_behind_case(text, &rest.rule.ignore_case);
	if (*rest.text != '/')
		return bad_pattern(m, "denyWrite", text,
		    "an absolute path is expected");
	return add_rests(m, &rest);
}

static int
add_deny_patterns(struct maker *m)
{
	const struct spec_list *list = &m->in->deny_write;
	int r = 0;

	for (size_t i = 0; i < list->n && r == 0; i++)
		if (strpbrk(list->items[i], "*?") != NULL)
			r = add_deny_pattern(m, list->items[i]);
	return r;
}

const char *
name_rules_exemption_why(const char *text)
{
	bool ignore;
	const char *glob = name_pattern_behind_case(text, &ignore);

	if (*glob != '/')
		return "an exemption begins with / (the mount)";
	if (strncmp(glob, "/**", 3) == 0 && (glob[3] == '/' || glob[3] == '\0'))
		return "an exemption holds below a directory, not at any depth";
	return dfa_glob_why(glob);
}

static int
add_exemptions(struct maker *m)
{
	const struct spec_list *list = &m->in->exemptions;
	int r = 0;

	if (list->n > 0 && !m->in->exemptions_permitted)
		return spec_fault_set(m->fault, API_DENIED, "nameExemptions",
		    "nameExemptions: the configuration forbids them (permit "
		    "name-exemptions off)");
	for (size_t i = 0; i < list->n && r == 0; i++) {
		const char *why = name_rules_exemption_why(list->items[i]);

		if (why != NULL)
			return bad_pattern(m, "nameExemptions", list->items[i],
			    why);
		r = add_exemption(m, list->items[i], "spec nameExemptions",
		    true);
	}
	return r;
}

/* --- a table's rules again ----------------------------------------------- */

/* Those that are not of `deny name`: patterns of the spec's denyWrite, or all
 * others. */
static int
keep_rules(struct maker *m, const struct guard *guard, bool deny_write)
{
	for (size_t i = 0; i < guard->nrules; i++) {
		const struct guard_rule *have = &guard->rules[i];
		const struct dfa_rule rule = {
			.glob = have->glob,
			.mask = have->mask,
			.roots = have->roots,
			.class = have->class,
			.ignore_case = have->ignore_case,
		};
		const char *remedy = have->remedy;
		int r;

		if (strncmp(have->origin, ORIGIN_NAME, strlen(ORIGIN_NAME)) ==
			0 ||
		    (strcmp(have->origin, ORIGIN_DENY_WRITE) == 0) !=
			deny_write)
			continue;
		if (have->class == DFA_BUILTIN)
			remedy = remedy_builtin(m);
		r = add_rule(m, &rule, have->text, have->origin, remedy);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
keep_exemptions(struct maker *m, const struct guard *guard)
{
	int r = 0;

	for (size_t i = 0; i < guard->nexemptions && r == 0; i++) {
		const struct guard_exemption *e = &guard->exemptions[i];

		r = add_exemption(m, e->text, e->origin,
		    m->in->exemptions_permitted ||
			strcmp(e->origin, ORIGIN_APP7) == 0);
	}
	return r;
}

/* --- all of it ---------------------------------------------------------- */

static int
take_roots(struct maker *m)
{
	struct name_rules *out = m->out;

	if (m->in->nroots < 1 || m->in->nroots > DFA_ROOTS_MAX)
		return spec_fault_set(m->fault, API_LIMIT, "bindMounts",
		    "name rules hold below 1 to %d writable places, not %zu",
		    DFA_ROOTS_MAX, m->in->nroots);
	for (size_t i = 0; i < m->in->nroots; i++) {
		out->roots[i] = m->in->roots[i];
		out->roots[i].len = strlen(out->roots[i].path);
		if (!out->roots[i].empty)
			m->ruled |= (uint16_t)(1u << i);
	}
	out->nroots = m->in->nroots;
	out->new_repositories = m->in->new_repositories;
	return 0;
}

static int
begin(struct maker *m)
{
	_Static_assert(DFA_RULES_MAX < UINT16_MAX, "a bucket holds one more");
	m->out = calloc(1, sizeof(*m->out));
	m->buckets = calloc(BUCKETS, sizeof(*m->buckets));
	return m->out == NULL || m->buckets == NULL ? -ENOMEM : 0;
}

static int
end(struct maker *m, int r, struct name_rules **ret)
{
	free(m->buckets);
	if (r < 0)
		name_rules_free(m->out);
	else
		*ret = m->out;
	return r;
}

int
name_rules_make(const struct name_rules_in *in, struct name_rules **ret,
    struct spec_fault *fault)
{
	static int (*const steps[])(struct maker *) = { take_roots, add_lists,
		add_git_dirs, add_paths, add_names, add_deny_patterns,
		add_exemptions };
	struct maker m = { .in = in, .fault = fault };
	int r = begin(&m);

	for (size_t i = 0; i < ARRAY_LEN(steps) && r == 0; i++)
		r = steps[i](&m);
	return end(&m, r, ret);
}

int
name_rules_renew(const struct guard *guard, const struct conf_names *deny_names,
    bool exemptions_permitted, struct name_rules **ret,
    struct spec_fault *fault)
{
	const struct name_rules_in in = {
		.roots = guard->roots,
		.nroots = guard->nroots,
		.new_repositories = guard->new_repositories,
		.deny_names = deny_names,
		.exemptions_permitted = exemptions_permitted,
	};
	struct maker m = { .in = &in, .fault = fault };
	int r = begin(&m);

	/* In the order of name_rules_make(). */
	if (r == 0)
		r = take_roots(&m);
	if (r == 0)
		r = keep_rules(&m, guard, false);
	if (r == 0)
		r = add_names(&m);
	if (r == 0)
		r = keep_rules(&m, guard, true);
	if (r == 0)
		r = keep_exemptions(&m, guard);
	return end(&m, r, ret);
}

void
name_rules_free(struct name_rules *rules)
{
	if (rules == NULL)
		return;
	pool_done(&rules->pool);
	free(rules);
}

int
name_rules_encode(const struct name_rules *rules, struct wire_out *out,
    struct spec_fault *fault)
{
	autofree struct guard *guard = calloc(1, sizeof(*guard));
	autofree struct dfa_exemption *exempt =
	    calloc(rules->nexemptions + 1, sizeof(*exempt));
	struct dfa_rules in = {
		.rules = rules->rules,
		.nrules = rules->nrules,
		.exemptions = exempt,
		.nroots = (unsigned)rules->nroots,
	};
	const struct dfa *dfa;
	const bool *aside;
	size_t bad = 0;
	int r;

	if (guard == NULL || exempt == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < rules->nexemptions; i++) {
		const struct guard_exemption *e = &rules->exemptions[i];
		struct dfa_exemption *to = &exempt[in.nexemptions];

		if (e->roots == 0)
			continue;
		to->glob = name_pattern_behind_case(e->text, &to->ignore_case);
		to->roots = e->roots;
		in.nexemptions++;
	}
	for (size_t i = 0; i < rules->nroots; i++)
		if (rules->roots[i].empty)
			in.empty_roots |= (uint16_t)(1u << i);
	r = tables_compile(&in, &dfa, &aside, &bad);
	if (r == -ENOMEM)
		return r;
	if (r == -E2BIG)
		return spec_fault_set(fault, API_LIMIT, "",
		    "the name rules are too many or too complex together");
	if (r < 0)
		return spec_fault_set(fault, API_BAD_PARAMS, "",
		    "name rule %zu is not a pattern", bad);
	tables_copy(&guard->dfa, dfa);
	guard->new_repositories = rules->new_repositories;
	guard->nroots = rules->nroots;
	memcpy(guard->roots, rules->roots, sizeof(guard->roots));
	guard->nrules = rules->nrules;
	memcpy(guard->rules, rules->shown,
	    rules->nrules * sizeof(guard->rules[0]));
	for (size_t i = 0; i < rules->nrules; i++) {
		guard->rules[i].glob = rules->rules[i].glob;
		guard->rules[i].mask = rules->rules[i].mask;
		guard->rules[i].roots = rules->rules[i].roots;
		guard->rules[i].ignore_case = rules->rules[i].ignore_case;
		guard->rules[i].aside = aside[i];
	}
	guard->nexemptions = rules->nexemptions;
	memcpy(guard->exemptions, rules->exemptions, sizeof(guard->exemptions));
	guard_encode(guard, out);
	return out->err ? -ENOMEM : 0;
}

void
name_rules_remedy(const struct guard_rule *rule, const char *path, char *buf,
    size_t size)
{
	struct pool pool = { 0 };
	const char *glob = NULL;
	int n = -1;

	if (rule->class == DFA_BUILTIN && *rule->remedy != '\0' &&
	    *path != '\0' && strchr(path, '\'') == NULL)
		glob = literal_glob(&pool, "/", path, "");
	if (glob != NULL)
		n = snprintf(buf, size, "--name-exempt '%s'", glob);
	if (n < 0 || (size_t)n >= size)
		(void)snprintf(buf, size, "%s", rule->remedy);
	pool_done(&pool);
}
