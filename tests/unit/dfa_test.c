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

/* The table's verdict is the reference's, by every way of walking. */
static void
compare(const struct dfa *dfa, const struct dfa_rules *in, const char *path,
    unsigned root)
{
	struct dfa_verdict got = dfa_match(dfa, path, strlen(path), root);
	struct dfa_walk walk;
	struct words words;
	unsigned want = 0, of_rule;
	bool exempt;

	split(path, &words);
	exempt = slow_exempt(in, &words, root);
	for (size_t i = 0; i < in->nrules; i++)
		want |= slow_rule(in, i, &words, root, exempt);
	if (got.mask != want)
		explain(in, path, root, want, got);
	assert_int_equal(got.mask, want);
	assert_int_equal(got.mask & ~dfa->masks, 0);
	if (want == 0) {
		assert_int_equal(got.rule, DFA_RULE_NONE);
	} else {
		assert_true(got.rule < in->nrules);
		of_rule = slow_rule(in, got.rule, &words, root, exempt);
		if ((of_rule & (want == DFA_MOVE ? DFA_MOVE :
						   DFA_ALL & ~DFA_MOVE)) == 0)
			explain(in, path, root, want, got);
		assert_int_not_equal(of_rule & (want == DFA_MOVE ?
						       DFA_MOVE :
						       DFA_ALL & ~DFA_MOVE),
		    0);
	}
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
			p[used++] = any_of(8) ? *glob : (char)up((unsigned char)
				*glob);
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
				path_like(s.globs[any_of(
					      (unsigned)s.in.nrules)],
				    path, sizeof(path));
			compare(&table, &s.in, path, any_of(s.in.nroots));
		}
	}
	print_message("%zu patterns, %zu pairs\n", patterns, pairs);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_says_what_a_slow_matcher_says),
	};

	return cmocka_run_group_tests_name("dfa", tests, NULL, NULL);
}
