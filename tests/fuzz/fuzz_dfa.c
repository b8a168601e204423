/*
 * Patterns and a path. The input is lines: the last is the path, each before
 * it a rule; a first byte of '!' makes it an exemption, of 'i' one that
 * ignores case, of 'p' one that no exemption lifts, of 's' one of a spec.
 * Properties: the compiler never fails on what it takes for patterns but for
 * want of room; the table passes its own check; its verdict, and that of the
 * rules that were left out of it, is what the rules say one by one.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/dfa.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define CHECK(x) \
	do { \
		if (!(x)) \
			abort(); \
	} while (0)
#define LINES 32

static struct dfa_rule rules[LINES];
static struct dfa_exemption exemptions[LINES];
static bool aside[LINES];
static struct dfa dfa;

static void
take_line(struct dfa_rules *in, char *line)
{
	char kind = *line;

	if (kind == '!' || kind == 'i' || kind == 'p' || kind == 's')
		line++;
	if (dfa_glob_why(line) != NULL)
		return;
	if (kind == '!')
		exemptions[in->nexemptions++] =
		    (struct dfa_exemption){ line, 1, false };
	else
		rules[in->nrules++] = (struct dfa_rule){ line, DFA_WRITE, 1,
			kind == 'p'     ? DFA_PROTECTED :
			    kind == 's' ? DFA_SPEC :
					  DFA_BUILTIN,
			kind == 'i' };
}

/* What the rules say one by one. Of a rule that is lifted nothing is said
 * here: a MOVE of it may stay. */
static unsigned
slow_verdict(const struct dfa_rules *in, const char *path, size_t len)
{
	unsigned mask = 0;
	bool exempt = false;

	for (size_t i = 0; i < in->nexemptions; i++)
		exempt |= dfa_rule_matches(exemptions[i].glob, false, DFA_READ,
			      path, len) != 0;
	for (size_t i = 0; i < in->nrules; i++)
		if (!exempt || rules[i].class != DFA_BUILTIN)
			mask |= dfa_rule_matches(rules[i].glob,
			    rules[i].ignore_case, DFA_WRITE, path, len);
	return mask;
}

static bool
is_relative(const char *path)
{
	size_t len = strlen(path);

	return len == 0 ||
	    (*path != '/' && path[len - 1] != '/' &&
		strstr(path, "//") == NULL);
}

static void
check_path(const struct dfa_rules *in, const char *path)
{
	size_t len = strlen(path);
	struct dfa_verdict v = dfa_match(&dfa, path, len, 0);
	unsigned slow;

	if (v.rule == DFA_RULE_TOO_DEEP || !is_relative(path))
		return;
	for (size_t i = 0; i < in->nrules; i++)
		if (aside[i])
			v.mask |= dfa_rule_matches(rules[i].glob,
			    rules[i].ignore_case, DFA_WRITE, path, len);
	slow = slow_verdict(in, path, len);
	CHECK((v.mask & DFA_WRITE) == (slow & DFA_WRITE));
	CHECK((slow & ~(unsigned)v.mask) == 0);
	if (in->nexemptions == 0)
		CHECK(v.mask == slow);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dfa_rules in = { .rules = rules,
		.exemptions = exemptions,
		.nroots = 1 };
	char *text, *line, *end;
	int r;

	if (len > 4096 || memchr(data, 0, len) != NULL)
		return 0;
	text = calloc(1, len + 1);
	CHECK(text != NULL);
	memcpy(text, data, len);
	for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		if (in.nrules < LINES && in.nexemptions < LINES)
			take_line(&in, line);
	}
	r = dfa_compile_some(&in, &dfa, aside, NULL);
	CHECK(r == 0 || r == -E2BIG);
	if (r == 0) {
		CHECK(dfa_check(&dfa, in.nrules) == 0);
		check_path(&in, line);
	}
	free(text);
	return 0;
}
