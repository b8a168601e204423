/*
 * The guard's rules as bytes. The broker decodes what control wrote and walks
 * it with paths of a run, so that neither may make it read outside: counts,
 * strings and paths are checked here, the tables by dfa_check().
 */
#include "protocol/guard.h"

#include <errno.h>
#include <string.h>

#include "common/path.h"
#include "common/size.h"

#define CLS_BYTES 256u
#define VERDICT_BYTES 4u
#define PLACE_BYTES 24u

/* --- decode ------------------------------------------------------------- */

static void
get_u16s(const uint8_t *from, uint16_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint16_t)(from[2 * i] | from[2 * i + 1] << 8);
}

static uint64_t
get_number(const uint8_t *from, size_t bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | from[bytes];
	return value;
}

static struct dfa_verdict
get_verdict(const uint8_t *from)
{
	uint16_t pair[2];

	get_u16s(from, pair, 2);
	return (struct dfa_verdict){ pair[0], pair[1] };
}

static void
get_roots(struct wire *w, struct guard *ret)
{
	ret->nroots = wire_array(w, 1, DFA_ROOTS_MAX);
	for (size_t i = 0; i < ret->nroots && !w->err; i++) {
		struct guard_root *root = &ret->roots[i];

		(void)wire_array(w, 2, 2);
		root->path = wire_cstr(w, 1, GUARD_PATH_MAX);
		root->empty = wire_bool(w);
		if (w->err)
			return;
		root->len = strlen(root->path);
		if (!path_is_clean(root->path) || root->len < 2)
			wire_fail(w);
		for (size_t j = 0; j < i; j++)
			if (strcmp(ret->roots[j].path, root->path) == 0)
				wire_fail(w);
	}
}

static void
get_rules(struct wire *w, struct guard *ret)
{
	ret->nrules = wire_array(w, 0, DFA_RULES_MAX);
	for (size_t i = 0; i < ret->nrules && !w->err; i++) {
		struct guard_rule *rule = &ret->rules[i];

		(void)wire_array(w, 9, 9);
		rule->text = wire_cstr(w, 1, GUARD_TEXT_MAX);
		rule->origin = wire_cstr(w, 1, GUARD_ORIGIN_MAX);
		rule->remedy = wire_cstr(w, 0, GUARD_REMEDY_MAX);
		rule->class = (enum dfa_class)wire_u64(w, 0, DFA_CLASSES - 1);
		rule->glob = wire_cstr(w, 1, DFA_GLOB_MAX);
		rule->mask = (uint16_t)wire_u64(w, 1, DFA_ALL);
		rule->roots = (uint16_t)wire_u64(w, 0, UINT16_MAX);
		rule->ignore_case = wire_bool(w);
		rule->aside = wire_bool(w);
		if (rule->aside && ret->naside == DFA_ASIDE_MAX)
			wire_fail(w);
		else if (rule->aside)
			ret->aside[ret->naside++] = (uint16_t)i;
	}
}

static void
get_exemptions(struct wire *w, struct guard *ret)
{
	ret->nexemptions = wire_array(w, 0, DFA_EXEMPTIONS_MAX);
	for (size_t i = 0; i < ret->nexemptions && !w->err; i++) {
		struct guard_exemption *e = &ret->exemptions[i];

		(void)wire_array(w, 3, 3);
		e->text = wire_cstr(w, 1, GUARD_TEXT_MAX);
		e->origin = wire_cstr(w, 1, GUARD_ORIGIN_MAX);
		e->roots = (uint16_t)wire_u64(w, 0, UINT16_MAX);
	}
}

static void
get_places(struct wire *w, struct dfa *dfa)
{
	struct wire_view view =
	    wire_bin(w, 0, PLACE_BYTES * (size_t)DFA_PLACES_MAX);

	if (w->err || view.len % PLACE_BYTES != 0) {
		wire_fail(w);
		return;
	}
	dfa->nplaces = (uint32_t)(view.len / PLACE_BYTES);
	for (size_t i = 0; i < dfa->nplaces; i++) {
		const uint8_t *at = view.data + PLACE_BYTES * i;
		struct dfa_place *p = &dfa->place[i];

		p->name = get_number(at, 8);
		p->child = (uint32_t)get_number(at + 8, 4);
		p->nchildren = (uint32_t)get_number(at + 12, 4);
		p->own = get_verdict(at + 16);
		p->below = get_verdict(at + 20);
		dfa->masks |= p->own.mask | p->below.mask;
	}
}

static void
get_tables(struct wire *w, struct dfa *dfa)
{
	struct wire_view view;

	(void)wire_array(w, 7, 7);
	dfa->ncls = (uint16_t)wire_u64(w, 1, 256);
	dfa->nnames = (uint16_t)wire_u64(w, 1, UINT16_MAX);
	dfa->start = (uint16_t)wire_u64(w, 0, DFA_NEXT_MAX - 1);
	view = wire_bin(w, CLS_BYTES, CLS_BYTES);
	if (w->err)
		return;
	memcpy(dfa->cls, view.data, CLS_BYTES);
	view = wire_bin(w, 0, VERDICT_BYTES * (size_t)DFA_VERDICTS_MAX);
	if (w->err || view.len % VERDICT_BYTES != 0) {
		wire_fail(w);
		return;
	}
	dfa->nverdicts = (uint16_t)(view.len / VERDICT_BYTES);
	for (size_t i = 0; i < dfa->nverdicts; i++) {
		dfa->verdict[i] = get_verdict(view.data + VERDICT_BYTES * i);
		dfa->masks |= dfa->verdict[i].mask;
	}
	view = wire_bin(w, 2, 2 * (size_t)DFA_NEXT_MAX);
	if (w->err || view.len % 2 != 0) {
		wire_fail(w);
		return;
	}
	dfa->nnext = (uint32_t)(view.len / 2);
	get_u16s(view.data, dfa->next, dfa->nnext);
	get_places(w, dfa);
}

int
guard_tables_decode(const void *data, size_t len, unsigned nroots,
    size_t nrules, struct dfa *ret)
{
	struct wire w;

	memset(ret, 0, offsetof(struct dfa, next));
	wire_init(&w, data, len);
	get_tables(&w, ret);
	if (!wire_done(&w))
		return -EPROTO;
	ret->nroots = (uint16_t)nroots;
	return dfa_check(ret, nrules);
}

int
guard_decode(const void *data, size_t len, struct guard *ret)
{
	struct wire_view magic;
	struct wire w;

	/* What is in an array has no meaning beyond its count: a megabyte that
	 * is not touched. */
	ret->nroots = ret->nrules = ret->naside = ret->nexemptions = 0;
	memset(&ret->dfa, 0, offsetof(struct dfa, next));
	wire_init(&w, data, len);
	(void)wire_array(&w, 7, 7);
	magic = wire_str(&w, 1, sizeof(GUARD_MAGIC) - 1);
	if (w.err || magic.len != sizeof(GUARD_MAGIC) - 1 ||
	    memcmp(magic.data, GUARD_MAGIC, magic.len) != 0)
		return -EPROTO;
	(void)wire_u64(&w, GUARD_VERSION, GUARD_VERSION);
	ret->new_repositories = wire_bool(&w);
	get_roots(&w, ret);
	get_rules(&w, ret);
	get_exemptions(&w, ret);
	if (!w.err)
		get_tables(&w, &ret->dfa);
	if (!wire_done(&w))
		return -EPROTO;
	ret->dfa.nroots = (uint16_t)ret->nroots;
	for (size_t i = 0; i < ret->nroots; i++)
		if (ret->roots[i].empty)
			ret->dfa.empty_roots |= (uint16_t)(1u << i);
	return dfa_check(&ret->dfa, ret->nrules);
}

/* --- encode ------------------------------------------------------------- */

static void
put_number(uint8_t *to, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++, value >>= 8)
		to[i] = (uint8_t)(value & 0xff);
}

static void
put_u16(uint8_t *to, uint16_t value)
{
	put_number(to, value, 2);
}

static void
put_verdict(uint8_t *to, struct dfa_verdict verdict)
{
	put_u16(to, verdict.mask);
	put_u16(to + 2, verdict.rule);
}

static void
put_places(const struct dfa *dfa, struct wire_out *out)
{
	static uint8_t bytes[PLACE_BYTES * (size_t)DFA_PLACES_MAX];

	for (size_t i = 0; i < dfa->nplaces; i++) {
		const struct dfa_place *p = &dfa->place[i];
		uint8_t *at = bytes + PLACE_BYTES * i;

		put_number(at, p->name, 8);
		put_number(at + 8, p->child, 4);
		put_number(at + 12, p->nchildren, 4);
		put_verdict(at + 16, p->own);
		put_verdict(at + 20, p->below);
	}
	wire_put_bin(out, bytes, PLACE_BYTES * (size_t)dfa->nplaces);
}

void
guard_tables_encode(const struct dfa *dfa, struct wire_out *out)
{
	static uint8_t bytes[2 * (size_t)DFA_NEXT_MAX];

	wire_put_array(out, 7);
	wire_put_u64(out, dfa->ncls);
	wire_put_u64(out, dfa->nnames);
	wire_put_u64(out, dfa->start);
	wire_put_bin(out, dfa->cls, CLS_BYTES);
	for (size_t i = 0; i < dfa->nverdicts; i++)
		put_verdict(bytes + VERDICT_BYTES * i, dfa->verdict[i]);
	wire_put_bin(out, bytes, VERDICT_BYTES * (size_t)dfa->nverdicts);
	for (size_t i = 0; i < dfa->nnext; i++)
		put_u16(bytes + 2 * i, dfa->next[i]);
	wire_put_bin(out, bytes, 2 * (size_t)dfa->nnext);
	put_places(dfa, out);
}

void
guard_encode(const struct guard *guard, struct wire_out *out)
{
	wire_put_array(out, 7);
	wire_put_str(out, GUARD_MAGIC, sizeof(GUARD_MAGIC) - 1);
	wire_put_u64(out, GUARD_VERSION);
	wire_put_bool(out, guard->new_repositories);
	wire_put_array(out, guard->nroots);
	for (size_t i = 0; i < guard->nroots; i++) {
		wire_put_array(out, 2);
		wire_put_cstr(out, guard->roots[i].path);
		wire_put_bool(out, guard->roots[i].empty);
	}
	wire_put_array(out, guard->nrules);
	for (size_t i = 0; i < guard->nrules; i++) {
		const struct guard_rule *rule = &guard->rules[i];

		wire_put_array(out, 9);
		wire_put_cstr(out, rule->text);
		wire_put_cstr(out, rule->origin);
		wire_put_cstr(out, rule->remedy);
		wire_put_u64(out, rule->class);
		wire_put_cstr(out, rule->glob);
		wire_put_u64(out, rule->mask);
		wire_put_u64(out, rule->roots);
		wire_put_bool(out, rule->ignore_case);
		wire_put_bool(out, rule->aside);
	}
	wire_put_array(out, guard->nexemptions);
	for (size_t i = 0; i < guard->nexemptions; i++) {
		wire_put_array(out, 3);
		wire_put_cstr(out, guard->exemptions[i].text);
		wire_put_cstr(out, guard->exemptions[i].origin);
		wire_put_u64(out, guard->exemptions[i].roots);
	}
	guard_tables_encode(&guard->dfa, out);
}

/* --- use ---------------------------------------------------------------- */

int
guard_find_root(const struct guard *guard, const char *path, size_t len,
    size_t *ret_rel)
{
	size_t best = 0;
	int found = -1;

	for (size_t i = 0; i < guard->nroots; i++) {
		const struct guard_root *root = &guard->roots[i];

		if (root->len <= best || root->len > len ||
		    memcmp(root->path, path, root->len) != 0 ||
		    (root->len < len && path[root->len] != '/'))
			continue;
		best = root->len;
		found = (int)i;
	}
	if (found >= 0)
		*ret_rel = best < len ? best + 1 : len;
	return found;
}

/* A path that is judged, without its root: path from rel on, and name. */
struct whole {
	size_t len;
	char text[GUARD_PATH_MAX + DFA_NAME_MAX + 2];
};

static bool
make_whole(struct whole *ret, const char *path, size_t path_len,
    const char *name, size_t name_len)
{
	ret->len = path_len;
	if (path_len > GUARD_PATH_MAX || name_len > DFA_NAME_MAX)
		return false;
	memcpy(ret->text, path, path_len);
	if (name_len == 0)
		return true;
	if (path_len > 0)
		ret->text[ret->len++] = '/';
	memcpy(ret->text + ret->len, name, name_len);
	ret->len += name_len;
	return true;
}

/* What one rule says below a root that it holds for. */
static uint16_t
rule_says(const struct guard_rule *rule, unsigned root,
    const struct whole *whole)
{
	return (rule->roots & (1u << root)) == 0 ?
	    0 :
	    dfa_rule_matches(rule->glob, rule->ignore_case, rule->mask,
		whole->text, whole->len);
}

/* Adds what the rules say that are not in the table. */
static void
judge_aside(const struct guard *guard, unsigned root, const struct whole *whole,
    struct dfa_verdict *to)
{
	for (size_t i = 0; i < guard->naside; i++) {
		const struct guard_rule *rule = &guard->rules[guard->aside[i]];

		dfa_verdict_join(to,
		    (struct dfa_verdict){ rule_says(rule, root, whole),
			guard->aside[i] });
	}
}

struct dfa_verdict
guard_judge(const struct guard *guard, const char *path, size_t path_len,
    const char *name, size_t name_len, int *ret_root)
{
	struct dfa_verdict v = { 0, DFA_RULE_NONE };
	struct dfa_walk walk;
	struct whole whole;
	size_t rel = 0;
	int root = guard_find_root(guard, path, path_len, &rel);

	if (ret_root != NULL)
		*ret_root = root;
	if (root < 0)
		return v;
	dfa_walk_start(&guard->dfa, &walk);
	if (name_len > 0)
		dfa_walk_name(&guard->dfa, &walk, name, name_len);
	dfa_walk_path(&guard->dfa, &walk, path + rel, path_len - rel);
	v = dfa_walk_end(&guard->dfa, &walk, (unsigned)root);
	if (guard->naside == 0 || v.rule == DFA_RULE_TOO_DEEP ||
	    guard->roots[root].empty)
		return v;
	if (!make_whole(&whole, path + rel, path_len - rel, name, name_len))
		return (struct dfa_verdict){ DFA_ALL, DFA_RULE_TOO_DEEP };
	judge_aside(guard, (unsigned)root, &whole, &v);
	return v;
}

const struct guard_rule *
guard_rule(const struct guard *guard, unsigned rule)
{
	static const struct guard_rule too_deep = {
		.text = "(too deep)",
		.origin = "256 or more components, or a name over 255 bytes",
		.remedy = "",
		.class = DFA_PROTECTED,
		.glob = "",
	};

	if (rule == DFA_RULE_TOO_DEEP)
		return &too_deep;
	return rule < guard->nrules ? &guard->rules[rule] : NULL;
}

unsigned
guard_exact_rule(const struct guard *guard, struct dfa_verdict verdict,
    unsigned asked, const char *path, size_t path_len, const char *name,
    size_t name_len)
{
	struct whole whole;
	enum dfa_class class;
	size_t rel = 0;
	int root = guard_find_root(guard, path, path_len, &rel);

	if (verdict.rule >= guard->nrules || root < 0 ||
	    !make_whole(&whole, path + rel, path_len - rel, name, name_len))
		return verdict.rule;
	class = guard->rules[verdict.rule].class;
	for (size_t i = verdict.rule; i < guard->nrules; i++) {
		const struct guard_rule *rule = &guard->rules[i];

		if (rule->class == class &&
		    (rule_says(rule, (unsigned)root, &whole) & asked) != 0)
			return (unsigned)i;
	}
	return verdict.rule;
}

bool
guard_is_verification(uint64_t pid, const char *path)
{
	const char *name = strrchr(path, '/');

	return pid == 1 && name != NULL &&
	    strncmp(name + 1, GUARD_VERIFY_PREFIX,
		sizeof(GUARD_VERIFY_PREFIX) - 1) == 0;
}
