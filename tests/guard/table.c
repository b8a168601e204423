/*
 * Writes a guard table to standard output, for tests that play launcherd:
 *
 *	table -r ROOT [-r ROOT]... [-e EMPTY_ROOT]... [-nV]
 *	    [-w | -i | -R | -g | -x GLOB]...
 *
 * -w a write rule, -i the same without regard to case, -R a read rule, -g a
 * rule of git's set, -x an exemption, -n new repositories are permitted,
 * -V no rule for the names that launches verify themselves with.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/dfa.h"
#include "protocol/guard.h"

#define ALL_ROOTS 0xffffu

static struct guard guard;
static struct dfa_rule rules[DFA_RULES_MAX];
static struct dfa_exemption exemptions[DFA_EXEMPTIONS_MAX];
static struct dfa_rules all = { rules, 0, exemptions, 0, 0, 0 };

static void
add_root(const char *path, bool empty)
{
	if (guard.nroots == DFA_ROOTS_MAX)
		exit(2);
	if (empty)
		all.empty_roots |= (uint16_t)(1u << guard.nroots);
	guard.roots[guard.nroots++] =
	    (struct guard_root){ path, strlen(path), empty };
}

static void
add_rule(const char *glob, int kind)
{
	if (all.nrules == DFA_RULES_MAX)
		exit(2);
	rules[all.nrules] = (struct dfa_rule){ glob,
		kind == 'R' ? DFA_READ : DFA_WRITE, ALL_ROOTS,
		kind == 'g' ? DFA_GIT : DFA_BUILTIN, kind == 'i' };
	guard.rules[all.nrules] = (struct guard_rule){ .text = glob,
		.origin = "test",
		.remedy = "--name-exempt",
		.class = rules[all.nrules].class,
		.glob = glob,
		.mask = rules[all.nrules].mask,
		.ignore_case = rules[all.nrules].ignore_case };
	all.nrules++;
}

static void
limit_to_roots(void)
{
	uint16_t mask = (uint16_t)((1u << guard.nroots) - 1);

	for (size_t i = 0; i < all.nrules; i++)
		guard.rules[i].roots = rules[i].roots &= mask;
	for (size_t i = 0; i < all.nexemptions; i++)
		guard.exemptions[i] = (struct guard_exemption){
			.text = exemptions[i].glob,
			.origin = "test",
			.roots = exemptions[i].roots &= mask,
		};
	guard.nexemptions = all.nexemptions;
	all.nroots = (unsigned)guard.nroots;
	guard.nrules = all.nrules;
}

int
main(int argc, char **argv)
{
	struct wire_out out;
	size_t bad = 0;
	bool verified = true;
	int c;

	while ((c = getopt(argc, argv, "r:e:nVw:i:R:g:x:")) != -1) {
		if (c == 'r' || c == 'e')
			add_root(optarg, c == 'e');
		else if (c == 'n')
			guard.new_repositories = true;
		else if (c == 'V')
			verified = false;
		else if (c == 'x')
			exemptions[all.nexemptions++] =
			    (struct dfa_exemption){ optarg, ALL_ROOTS, false };
		else if (c == '?')
			return 2;
		else
			add_rule(optarg, c);
	}
	if (verified)
		add_rule(GUARD_VERIFY_GLOB, 'g');
	limit_to_roots();
	if (dfa_compile(&all, &guard.dfa, &bad) < 0) {
		(void)fprintf(stderr, "table: rule %zu\n", bad);
		return 1;
	}
	wire_out_init(&out);
	guard_encode(&guard, &out);
	if (out.err || fwrite(out.data, 1, out.len, stdout) != out.len)
		return 1;
	wire_out_done(&out);
	return fflush(stdout) == 0 ? 0 : 1;
}
