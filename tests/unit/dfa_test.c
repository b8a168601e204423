/*
 * Name rules' automaton: against a matcher of another kind (backtracking over
 * components, forwards), on random patterns and paths; the pattern language;
 * limits.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/dfa.h"
#include "common/size.h"

static struct dfa table;

/* --- the slow reference ------------------------------------------------- */

static unsigned char
low(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

static unsigned char
up(unsigned char c)
{
	return c >= 'a' && c <= 'z' ? (unsigned char)(c - 32) : c;
}

/* One byte against the class text[1 .. close). */
static bool
slow_class(const char *text, size_t close, unsigned char byte)
{
	size_t i = 1;

	while (i < close) {
		unsigned char from = (unsigned char)text[i], to = from;

		if (i + 2 < close && text[i + 1] == '-') {
			to = (unsigned char)text[i + 2];
			i += 2;
		}
		if (byte >= from && byte <= to)
			return true;
		i++;
	}
	return false;
}

static size_t
slow_close(const char *p, size_t n)
{
	for (size_t i = 2; i < n; i++)
		if (p[i] == ']')
			return i;
	return 0;
}

/* One component. */
static bool
slow_name(const char *p, size_t n, const char *s, size_t m, bool ic)
{
	unsigned char c;
	size_t close = 0, used = 1;
	bool ok;

	if (n == 0)
		return m == 0;
	if (*p == '*')
		return slow_name(p + 1, n - 1, s, m, ic) ||
		    (m > 0 && slow_name(p, n, s + 1, m - 1, ic));
	if (m == 0)
		return false;
	c = (unsigned char)*s;
	if (*p == '[')
		close = slow_close(p, n);
	if (close != 0) {
		used = close + 1;
		ok = slow_class(p, close, c);
		if (ic)
			ok = ok || slow_class(p, close, low(c)) ||
			    slow_class(p, close, up(c));
	} else if (*p == '?') {
		ok = true;
	} else {
		ok = *p == *s || (ic && low((unsigned char)*p) == low(c));
	}
	return ok && slow_name(p + used, n - used, s + 1, m - 1, ic);
}

struct words {
	size_t n;
	struct {
		const char *at;
		size_t len;
	} w[64];
};

static void
split(const char *text, struct words *ret)
{
	ret->n = 0;
	while (*text != '\0') {
		size_t len = strcspn(text, "/");

		ret->w[ret->n].at = text;
		ret->w[ret->n++].len = len;
		text += len;
		if (*text == '/')
			text++;
	}
}

static bool
is_any(const struct words *p, size_t i)
{
	return p->w[i].len == 2 && memcmp(p->w[i].at, "**", 2) == 0;
}

/* Parts i.. (below end) against the path's components j.. */
static bool
slow_path(const struct words *p, size_t i, size_t end, const struct words *s,
    size_t j, bool ic)
{
	if (i == end)
		return j == s->n;
	if (is_any(p, i))
		return slow_path(p, i + 1, end, s, j, ic) ||
		    (j < s->n && slow_path(p, i, end, s, j + 1, ic));
	return j < s->n &&
	    slow_name(p->w[i].at, p->w[i].len, s->w[j].at, s->w[j].len, ic) &&
	    slow_path(p, i + 1, end, s, j + 1, ic);
}

/* A pattern, or its first `parts` (0: all). */
static bool
slow_glob(const char *glob, size_t parts, const struct words *path, bool ic)
{
	char text[DFA_GLOB_MAX + 8];
	struct words p;
	size_t end;
	bool only_any = true;

	(void)snprintf(text, sizeof(text), "%s%s", *glob == '/' ? "" : "**/",
	    *glob == '/' ? glob + 1 : glob);
	split(text, &p);
	end = parts == 0 ? p.n : parts;
	/* Two neighbours of any depth are one: no prefix ends between. */
	if (end < p.n && is_any(&p, end - 1) && is_any(&p, end))
		return false;
	for (size_t i = 0; i < end; i++)
		only_any &= is_any(&p, i);
	if (parts != 0 && only_any)
		return false;
	return slow_path(&p, 0, end, path, 0, ic);
}

static size_t
slow_parts(const char *glob)
{
	size_t n = *glob != '/';

	for (const char *p = glob + (*glob == '/'); *p != '\0'; p++)
		n += *p == '/';
	return n + 1;
}

static bool
slow_move(const struct dfa_rule *rule, const struct words *path)
{
	for (size_t n = 1; n < slow_parts(rule->glob); n++)
		if (slow_glob(rule->glob, n, path, rule->ignore_case))
			return true;
	return false;
}

/* What each rule says of the path: bits of its mask and MOVE. */
static uint16_t
slow_rule(const struct dfa_rules *in, size_t i, const struct words *path,
    unsigned root, bool exempt)
{
	const struct dfa_rule *rule = &in->rules[i];
	uint16_t mask = 0;

	if ((rule->roots & (1u << root)) == 0 ||
	    (in->empty_roots & (1u << root)) != 0)
		return 0;
	if (slow_glob(rule->glob, 0, path, rule->ignore_case) &&
	    !(exempt && rule->class == DFA_BUILTIN))
		mask = rule->mask;
	if ((rule->mask & DFA_WRITE) != 0 && slow_move(rule, path))
		mask |= DFA_MOVE;
	return mask;
}

static bool
slow_exempt(const struct dfa_rules *in, const struct words *path, unsigned root)
{
	for (size_t i = 0; i < in->nexemptions; i++)
		if ((in->exemptions[i].roots & (1u << root)) != 0 &&
		    slow_glob(in->exemptions[i].glob, 0, path,
			in->exemptions[i].ignore_case))
			return true;
	return false;
}

static void
explain(const struct dfa_rules *in, const char *path, unsigned root,
    unsigned want, struct dfa_verdict got)
{
	for (size_t i = 0; i < in->nrules; i++)
		print_message("rule %zu: %s mask %u roots %x class %d%s\n", i,
		    in->rules[i].glob, (unsigned)in->rules[i].mask,
		    (unsigned)in->rules[i].roots, (int)in->rules[i].class,
		    in->rules[i].ignore_case ? " (?i)" : "");
	for (size_t i = 0; i < in->nexemptions; i++)
		print_message("exempt: %s roots %x\n", in->exemptions[i].glob,
		    (unsigned)in->exemptions[i].roots);
	print_message("root %u of %u (empty %x), path %s: want %u, got %u of "
		      "rule %u\n",
	    root, in->nroots, (unsigned)in->empty_roots, path, want,
	    (unsigned)got.mask, (unsigned)got.rule);
}

/* The rule named has a like that matches: class, mask, roots. */
static bool
rule_fits(const struct dfa_rules *in, const struct words *words, unsigned root,
    bool exempt, unsigned want, unsigned rule)
{
	const struct dfa_rule *named = &in->rules[rule];
	unsigned beside = want == DFA_MOVE ? 0 : DFA_MOVE;

	if (rule >= in->nrules)
		return false;
	for (size_t i = 0; i < in->nrules; i++) {
		const struct dfa_rule *like = &in->rules[i];

		if (like->class == named->class &&
		    (want == DFA_MOVE || like->mask == named->mask) &&
		    (slow_rule(in, i, words, root, exempt) & ~beside) != 0)
			return true;
	}
	return false;
}

/* The table-less matcher of the library says the same of one rule. */
static void
compare_single(const struct dfa_rules *in, const char *path,
    const struct words *words, unsigned root)
{
	for (size_t i = 0; i < in->nrules; i++) {
		const struct dfa_rule *rule = &in->rules[i];
		unsigned want, got;

		if ((rule->roots & (1u << root)) == 0 ||
		    (in->empty_roots & (1u << root)) != 0)
			continue;
		want = slow_rule(in, i, words, root, false);
		if ((want & DFA_WRITE) != 0)
			want |= DFA_MOVE;
		got = dfa_rule_matches(rule->glob, rule->ignore_case,
		    rule->mask, path, strlen(path));
		if (got != want)
			print_message("rule %s, path %s: want %u, got %u\n",
			    rule->glob, path, want, got);
		assert_int_equal(got, want);
	}
}

/* The table's verdict is the reference's, by every way of walking. */
static void
compare(const struct dfa *dfa, const struct dfa_rules *in, const char *path,
    unsigned root)
{
	struct dfa_verdict got = dfa_match(dfa, path, strlen(path), root);
	struct dfa_walk walk;
	struct words words;
	unsigned want = 0;
	bool exempt;

	split(path, &words);
	compare_single(in, path, &words, root);
	exempt = slow_exempt(in, &words, root);
	for (size_t i = 0; i < in->nrules; i++)
		want |= slow_rule(in, i, &words, root, exempt);
	if ((want & DFA_WRITE) != 0)
		want |= DFA_MOVE;
	if (got.mask != want)
		explain(in, path, root, want, got);
	assert_int_equal(got.mask, want);
	assert_int_equal(got.mask & ~dfa->masks, 0);
	if (want == 0)
		assert_int_equal(got.rule, DFA_RULE_NONE);
	else if (!rule_fits(in, &words, root, exempt, want, got.rule))
		explain(in, path, root, want, got);
	if (want != 0)
		assert_true(
		    rule_fits(in, &words, root, exempt, want, got.rule));
	dfa_walk_start(dfa, &walk);
	for (size_t i = words.n; i-- > 0;)
		dfa_walk_name(dfa, &walk, words.w[i].at, words.w[i].len);
	assert_int_equal(dfa_walk_end(dfa, &walk, root).mask, want);
}

/* --- random patterns and paths ------------------------------------------ */

static uint64_t seed = 1;

static unsigned
any_of(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

#define PICK(list) ((list)[any_of(ARRAY_LEN(list))])

static void
random_name(char *p, size_t max, bool pattern)
{
	static const char *const plain[] = { "a", "b", "A", ".", "k", "ab",
		"\xc3", "-", "]", "\n" };
	static const char *const wild[] = { "*", "*", "?", "[ab]", "[a-k]",
		"[.-A]", "[]a]", "[-b]", "[*]", "[[]", "[", "***", "[b-]",
		"[A-c]", "[!]", "[\x80-\xff]" };
	unsigned n = 1 + any_of(3);

	*p = '\0';
	while (n-- > 0)
		(void)strncat(p,
		    pattern && any_of(3) == 0 ? PICK(wild) : PICK(plain),
		    max - strlen(p) - 1);
	if (strcmp(p, ".") == 0 || strcmp(p, "..") == 0)
		(void)strcpy(p, "a");
}

static void
random_path(char *p, size_t max, bool pattern)
{
	unsigned n = 1 + any_of(4);
	char name[32];

	*p = '\0';
	if (!pattern && any_of(30) == 0)
		return;
	if (pattern && any_of(2) == 0)
		(void)strcpy(p, "/");
	while (n-- > 0) {
		if (pattern && any_of(4) == 0)
			(void)strcpy(name, "**");
		else
			random_name(name, sizeof(name), pattern);
		(void)strncat(p, name, max - strlen(p) - 1);
		if (n > 0)
			(void)strncat(p, "/", max - strlen(p) - 1);
	}
}

#define RULES 8

struct sample {
	char globs[2 * RULES][160];
	struct dfa_rule rules[RULES];
	struct dfa_exemption exemptions[RULES];
	struct dfa_rules in;
};

static uint16_t
random_roots(const struct sample *s)
{
	unsigned all = (1u << s->in.nroots) - 1;

	return (uint16_t)(any_of(3) > 0 ? all : any_of(all + 1));
}

static void
random_sample(struct sample *s)
{
	static const uint16_t masks[] = { DFA_WRITE, DFA_WRITE, DFA_WRITE,
		DFA_READ, DFA_EXEC | DFA_WRITE, DFA_CONNECT,
		DFA_READ | DFA_WRITE };

	memset(&s->in, 0, sizeof(s->in));
	s->in.rules = s->rules;
	s->in.exemptions = s->exemptions;
	s->in.nroots = 1 + any_of(3);
	if (s->in.nroots > 1 && any_of(3) == 0)
		s->in.empty_roots = (uint16_t)(1u << any_of(s->in.nroots));
	s->in.nrules = any_of(RULES);
	s->in.nexemptions = any_of(3);
	for (size_t i = 0; i < s->in.nrules; i++) {
		random_path(s->globs[i], sizeof(s->globs[i]), true);
		s->rules[i] = (struct dfa_rule){ s->globs[i], PICK(masks),
			random_roots(s),
			(enum dfa_class)any_of(any_of(2) ? 1 : DFA_CLASSES),
			any_of(3) == 0 };
	}
	for (size_t i = 0; i < s->in.nexemptions; i++) {
		random_path(s->globs[RULES + i], sizeof(s->globs[0]), true);
		s->exemptions[i] = (struct dfa_exemption){ s->globs[RULES + i],
			random_roots(s), any_of(3) == 0 };
	}
}

/* A path that follows a pattern, so that matches are frequent. */
static void
path_like(const char *glob, char *p, size_t max)
{
	size_t used = 0;

	if (*glob == '/')
		glob++;
	else if (any_of(2) == 0)
		used = (size_t)snprintf(p, max, "k/");
	while (*glob != '\0' && used + 8 < max) {
		if (strncmp(glob, "**/", 3) == 0 && any_of(2) == 0) {
			glob += 3;
			continue;
		}
		if (*glob == '*') {
			used += (size_t)snprintf(p + used, max - used, "%s",
			    any_of(2) ? "ab" : "b");
			while (*glob == '*')
				glob++;
			continue;
		}
		if (*glob == '?' || *glob == '[')
			p[used++] = any_of(2) ? 'a' : '-';
		else
			p[used++] =
			    any_of(8) ? *glob : (char)up((unsigned char)*glob);
		if (*glob == '[' && strchr(glob, ']') != NULL && any_of(4) > 0)
			glob = strchr(glob, ']');
		glob++;
	}
	p[used] = '\0';
	if (any_of(6) == 0 && used + 8 < max)
		(void)strcat(p, any_of(2) ? "/a" : "/.k/a");
}

static void
the_table_says_what_a_slow_matcher_says(void **state)
{
	static struct sample s;
	size_t patterns = 0, pairs = 0, bad;
	char path[400];

	(void)state;
	while (patterns < 100000) {
		random_sample(&s);
		assert_int_equal(dfa_compile(&s.in, &table, &bad), 0);
		assert_int_equal(dfa_check(&table, s.in.nrules), 0);
		patterns += s.in.nrules + s.in.nexemptions;
		for (int i = 0; i < 12; i++, pairs++) {
			if (s.in.nrules == 0 || any_of(4) == 0)
				random_path(path, sizeof(path), false);
			else
				path_like(
				    s.globs[any_of((unsigned)s.in.nrules)],
				    path, sizeof(path));
			compare(&table, &s.in, path, any_of(s.in.nroots));
		}
	}
	print_message("%zu patterns, %zu pairs\n", patterns, pairs);
}

/* --- the language, cases, limits ----------------------------------------- */

static unsigned
one(const char *glob, bool ignore_case, const char *path)
{
	struct dfa_rule rule = { glob, DFA_WRITE, 1, DFA_SPEC, ignore_case };
	struct dfa_rules in = { .rules = &rule, .nrules = 1, .nroots = 1 };

	assert_int_equal(dfa_compile(&in, &table, NULL), 0);
	assert_int_equal(dfa_check(&table, 1), 0);
	return dfa_match(&table, path, strlen(path), 0).mask;
}

static void
patterns_mean_what_they_say(void **state)
{
	static const struct {
		const char *glob;
		const char *path;
		unsigned mask;
	} rows[] = {
		{ "*.key", "a/b/x.key", 9 }, { "*.key", "x.keys", 0 },
		{ "*.key", ".key", 9 }, { "/x", "x", 9 }, { "/x", "a/x", 0 },
		{ "?", "a/\xff", 9 }, { "?", "ab", 0 }, { "[a-c]x", "bx", 9 },
		{ "[]]x", "]x", 9 }, { "[*]", "*", 9 }, { "[*]", "a", 0 },
		{ "[[]", "[", 9 }, { "[a", "[a", 9 }, { "a\\*b", "a\\xb", 9 },
		{ "a**b", "axxb", 9 }, { "a**b", "a/b", 0 },
		{ "/a/**/b", "a/b", 9 }, { "/a/**/b", "a/x/y/b", 9 },
		{ "/a/**/b", "a/x", 8 }, { "/a/**/b", "a", 8 },
		{ "a/**", "a", 9 }, { "a/**", "b/a/c/d", 9 },
		{ ".git/hooks/**", ".git", 8 },
		{ ".git/hooks/**", "x/.git", 8 },
		{ ".git/hooks/**", ".git2/hooks", 0 }, { "x\n", "x\n", 9 },
		{ "e\xcc\x81", "\xc3\xa9", 0 }, /* NFD is not NFC */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(one(rows[i].glob, false, rows[i].path),
		    rows[i].mask);
}

static void
case_is_ascii_and_only_where_asked(void **state)
{
	(void)state;
	assert_int_equal(one(".env", false, ".ENV"), 0);
	assert_int_equal(one(".env", true, ".ENV"), 9);
	assert_int_equal(one("[a-c]", true, "B"), 9);
	assert_int_equal(one(".env", true, ".env "), 0);
	assert_int_equal(one(".env", true, ".env."), 0);
	assert_int_equal(one("\xe4", true, "\xc4"), 0);
	assert_int_equal(one("[@-Z]", true, "`"), 0);
	assert_int_equal(one("[@-Z]", true, "z"), 9);
}

static void
what_is_no_pattern_is_refused(void **state)
{
	static const char *const bad[] = { "", "/", "a/", "//a", "a//b",
		"a/./b", "..", "[!a]", "[^a]b", "[b-a]", "x/[9-0]/y" };
	struct dfa_rule rule = { "a", DFA_WRITE, 1, DFA_SPEC, false };
	struct dfa_rules in = { .rules = &rule, .nrules = 1, .nroots = 1 };
	static char text[DFA_GLOB_MAX + 2];
	size_t at = 99;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_non_null(dfa_glob_why(bad[i]));
		rule.glob = bad[i];
		table.nnext = 12345;
		assert_int_equal(dfa_compile(&in, &table, &at), -EINVAL);
		assert_int_equal(at, 0);
		assert_int_equal(table.nnext, 12345);
	}
	assert_null(dfa_glob_why("[!]"));
	memset(text, 'a', sizeof(text) - 1);
	assert_non_null(dfa_glob_why(text));
	text[DFA_NAME_MAX] = '\0';
	assert_null(dfa_glob_why(text));
	text[DFA_NAME_MAX] = 'a';
	text[DFA_NAME_MAX + 1] = '\0';
	assert_non_null(dfa_glob_why(text));
	rule.glob = "a";
	rule.mask = 0;
	assert_int_equal(dfa_compile(&in, &table, NULL), -EINVAL);
	rule.mask = DFA_MOVE | DFA_WRITE;
	assert_int_equal(dfa_compile(&in, &table, NULL), -EINVAL);
	rule.mask = DFA_WRITE;
	rule.roots = 2;
	assert_int_equal(dfa_compile(&in, &table, NULL), -EINVAL);
}

static struct dfa_rule many[DFA_RULES_MAX + 1];
static char many_text[DFA_RULES_MAX + 1][64];

static int
compile_many(size_t n, const char *before, const char *between,
    const char *after)
{
	struct dfa_rules in = { .rules = many, .nrules = n, .nroots = 1 };

	for (size_t i = 0; i < n; i++) {
		(void)snprintf(many_text[i], sizeof(many_text[i]),
		    "%s%zu%s%zu%s", before, i, between, i * 7919 % 1000, after);
		many[i] = (struct dfa_rule){ many_text[i], DFA_WRITE, 1,
			DFA_SPEC, false };
	}
	return dfa_compile(&in, &table, NULL);
}

#define PATTERNS_MAX 1024 /* SPEC AB */

static void
many_rules_have_room(void **state)
{
	(void)state;
	assert_int_equal(compile_many(PATTERNS_MAX, "**/secret?", "-", ".txt"),
	    0);
	assert_int_equal(dfa_check(&table, PATTERNS_MAX), 0);
	assert_int_equal(dfa_match(&table, "a/secret_0-0.txt", 16, 0).mask, 9);
	assert_int_equal(dfa_match(&table, "a/secret_0-1.txt", 16, 0).mask, 0);
	assert_int_equal(compile_many(DFA_RULES_MAX, "**/secret", "-", ".txt"),
	    0);
	assert_int_equal(dfa_check(&table, DFA_RULES_MAX), 0);
	assert_int_equal(dfa_match(&table, "a/secret0-0.txt", 15, 0).mask, 9);
	assert_int_equal(dfa_match(&table, "a/secret0-1.txt", 15, 0).mask, 0);
	assert_int_equal(compile_many(DFA_RULES_MAX, "/top/d", "-", "/**"), 0);
	assert_int_equal(dfa_match(&table, "top/d0-0/x", 10, 0).mask, 9);
	assert_int_equal(compile_many(DFA_RULES_MAX + 1, "a", "-", ""), -E2BIG);
}

static void
a_table_too_large_is_an_error_that_changes_nothing(void **state)
{
	(void)state;
	assert_int_equal(compile_many(300, "*a", "*b", ""), 0);
	assert_int_equal(dfa_match(&table, "xa0yb0", 6, 0).mask, 9);
	assert_int_equal(compile_many(DFA_RULES_MAX, "*a", "*b", "*c*d"),
	    -E2BIG);
	assert_int_equal(dfa_match(&table, "xa0yb0", 6, 0).mask, 9);
	assert_int_equal(compile_many(1200, "/*x", "/*y", "?"), -E2BIG);
	assert_int_equal(dfa_match(&table, "xa0yb0", 6, 0).mask, 9);
	assert_int_equal(compile_many(DFA_RULES_MAX, "/1/2/3/4", "/x/5", "/6"),
	    -E2BIG);
	assert_int_equal(dfa_match(&table, "xa0yb0", 6, 0).mask, 9);
}

/* What does not fit is left out and told; the rest is in the table. */
static void
rules_that_do_not_fit_are_told(void **state)
{
	static bool aside[DFA_RULES_MAX];
	struct dfa_rules in = { .rules = many, .nrules = 602, .nroots = 1 };
	size_t naside = 0;

	(void)state;
	assert_int_equal(compile_many(600, "*a", "*b", "*c*d"), -E2BIG);
	many[600] =
	    (struct dfa_rule){ "*.key", DFA_WRITE, 1, DFA_BUILTIN, true };
	many[601] =
	    (struct dfa_rule){ "/lit/eral", DFA_WRITE, 1, DFA_SPEC, false };
	assert_int_equal(dfa_compile_some(&in, &table, aside, NULL), 0);
	assert_int_equal(dfa_check(&table, in.nrules), 0);
	for (size_t i = 0; i < in.nrules; i++)
		naside += aside[i];
	assert_int_equal(naside, 600);
	assert_int_equal(dfa_match(&table, "x/A.KEY", 7, 0).mask, 9);
	assert_int_equal(dfa_match(&table, "lit/eral", 8, 0).rule, 601);
	assert_int_equal(dfa_match(&table, "a0b0c0d", 7, 0).mask, 0);
	/* Of class DFA_SPEC only, and not more than there is room for. */
	for (size_t i = 0; i < 600; i++)
		many[i].class = DFA_GIT;
	assert_int_equal(dfa_compile_some(&in, &table, aside, NULL), -E2BIG);
	assert_int_equal(compile_many(DFA_ASIDE_MAX + 1, "*a", "*b", "*c*d"),
	    -E2BIG);
	in.nrules = DFA_ASIDE_MAX;
	assert_int_equal(dfa_compile_some(&in, &table, aside, NULL), 0);
	in.nrules++;
	assert_int_equal(dfa_compile_some(&in, &table, aside, NULL), -E2BIG);
	/* Where there is room, nothing is. */
	in.nrules = 4;
	assert_int_equal(dfa_compile_some(&in, &table, aside, NULL), 0);
	assert_false(aside[0] || aside[1] || aside[2] || aside[3]);
	assert_int_equal(dfa_match(&table, "a0b0cd", 6, 0).mask, 9);
}

/* Literal rules: what is theirs, their prefixes, what is beside them; each
 * verdict names the rule itself. */
static void
literal_rules_are_found_by_name(void **state)
{
	static const struct dfa_rule rules[] = {
		{ "/a/b/c/**", DFA_WRITE, 3, DFA_PROTECTED, false },
		{ "/a/b/d", DFA_WRITE, 1, DFA_SPEC, false },
		{ "**/k/l", DFA_WRITE, 7, DFA_SPEC, false },
		{ "k/l/**", DFA_READ, 7, DFA_SPEC, false },
		{ "/a/[*]/**", DFA_CONNECT, 1, DFA_SPEC, false },
		{ "**/secret", DFA_WRITE, 2, DFA_SPEC, false },
	};
	static const struct {
		const char *path;
		unsigned root;
		unsigned mask;
		unsigned rule;
	} rows[] = {
		{ "a/b/c", 0, 9, 0 },
		{ "a/b/c/d/e", 0, 9, 0 },
		{ "a/b/c", 1, 9, 0 },
		{ "a/b/c", 2, 0, DFA_RULE_NONE },
		{ "a/b/d", 0, 9, 1 },
		{ "a/b/d", 1, 0, DFA_RULE_NONE },
		{ "a/b/d/e", 0, 0, DFA_RULE_NONE },
		{ "a/b", 0, 8, 0 },
		{ "a", 0, 8, 0 },
		{ "b", 0, 0, DFA_RULE_NONE },
		{ "x/a/b/c", 0, 0, DFA_RULE_NONE },
		{ "k", 2, 8, 2 },
		{ "k/l", 1, 11, 2 },
		{ "k/l/m", 1, 2, 3 },
		{ "x/k/l/y", 0, 2, 3 },
		{ "a/b/c/k/l", 0, 11, 0 },
		{ "a/*", 0, 16, 4 },
		{ "a/x", 0, 0, DFA_RULE_NONE },
		{ "q/secret", 1, 9, 5 },
		{ "q/secret", 0, 0, DFA_RULE_NONE },
		{ "", 0, 0, DFA_RULE_NONE },
	};
	struct dfa_rules in = { .rules = rules,
		.nrules = ARRAY_LEN(rules),
		.nroots = 3 };

	(void)state;
	assert_int_equal(dfa_compile(&in, &table, NULL), 0);
	assert_int_equal(dfa_check(&table, in.nrules), 0);
	assert_true(table.nplaces > DFA_PLACE_TREES);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct dfa_verdict v = dfa_match(&table, rows[i].path,
		    strlen(rows[i].path), rows[i].root);

		if (v.mask != rows[i].mask || v.rule != rows[i].rule)
			print_message("%s: %u, rule %u\n", rows[i].path,
			    (unsigned)v.mask, (unsigned)v.rule);
		assert_int_equal(v.mask, rows[i].mask);
		assert_int_equal(v.rule, rows[i].rule);
	}
	in.empty_roots = 1;
	assert_int_equal(dfa_compile(&in, &table, NULL), 0);
	assert_int_equal(dfa_match(&table, "k/l", 3, 0).mask, 0);
	assert_int_equal(dfa_match(&table, "k/l", 3, 1).mask, 11);
}

/* 255 components are the most that a path may have; a deeper one is denied
 * whole, so that of a deeper rule its prefixes are left. */
static void
deep_literal_rules(void **state)
{
	static char glob[2 * DFA_DEPTH_MAX + 16];

	(void)state;
	for (size_t i = 0; i < DFA_DEPTH_MAX + 2; i++)
		(void)strcat(glob, "/d");
	assert_int_equal(one(glob, false, "d/d"), 8);
	assert_int_equal(one(glob, false, "d/e"), 0);
	glob[2 * (DFA_DEPTH_MAX - 1)] = '\0';
	assert_int_equal(one(glob, false, glob + 1), 9);
	assert_int_equal(one(glob, false, glob + 3), 8);
}

static void
hostile_places_are_refused(void **state)
{
	static struct dfa bad;

	(void)state;
	assert_int_equal(one("/a/b/**", false, "a/b"), 9);
	bad = table;
	bad.nplaces = DFA_PLACE_TREES - 1;
	assert_int_equal(dfa_check(&bad, 1), -EPROTO);
	bad.nplaces = DFA_PLACES_MAX + 1;
	assert_int_equal(dfa_check(&bad, 1), -EPROTO);
	for (size_t i = 0; i < table.nplaces; i++) {
		bad = table;
		bad.place[i].child = table.nplaces + 1;
		assert_int_equal(dfa_check(&bad, 1), -EPROTO);
		bad = table;
		bad.place[i].nchildren = table.nplaces - bad.place[i].child + 1;
		assert_int_equal(dfa_check(&bad, 1), -EPROTO);
		bad = table;
		bad.place[i].own = (struct dfa_verdict){ DFA_WRITE, 1 };
		assert_int_equal(dfa_check(&bad, 1), -EPROTO);
		bad = table;
		bad.place[i].below = (struct dfa_verdict){ DFA_READ, 0 };
		assert_int_equal(dfa_check(&bad, 1), -EPROTO); /* masks */
		bad = table;
		bad.place[i].below = (struct dfa_verdict){ DFA_ALL + 1, 0 };
		assert_int_equal(dfa_check(&bad, 1), -EPROTO);
	}
	/* A place below itself is wrong, but no walk is without an end. */
	bad = table;
	bad.place[table.nplaces - 1].child = table.nplaces - 1;
	bad.place[table.nplaces - 1].nchildren = 1;
	assert_int_equal(dfa_check(&bad, 1), 0);
	(void)dfa_match(&bad, "a/b/b/b/b/b", 11, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_mean_what_they_say),
		cmocka_unit_test(case_is_ascii_and_only_where_asked),
		cmocka_unit_test(what_is_no_pattern_is_refused),
		cmocka_unit_test(many_rules_have_room),
		cmocka_unit_test(literal_rules_are_found_by_name),
		cmocka_unit_test(rules_that_do_not_fit_are_told),
		cmocka_unit_test(deep_literal_rules),
		cmocka_unit_test(hostile_places_are_refused),
		cmocka_unit_test(
		    a_table_too_large_is_an_error_that_changes_nothing),
		cmocka_unit_test(the_table_says_what_a_slow_matcher_says),
	};

	return cmocka_run_group_tests_name("dfa", tests, NULL, NULL);
}
