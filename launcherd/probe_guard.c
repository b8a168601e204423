/*
 * See probe_guard.h. Nothing here comes from outside: patterns and places are
 * constants.
 */
#include "launcherd/probe_guard.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/dfa.h"
#include "common/memfd.h"
#include "common/size.h"
#include "launcherd/init/probe.h"
#include "protocol/guard.h"
#include "protocol/plan.h"

void
probe_guard_plan(struct plan *plan)
{
	plan->mounts[plan->nmounts++] = (struct plan_mount){
		/* Not opened by its path; see run_order. */
		.source = PROBE_TREE,
		.target = PROBE_TREE,
		.kind = PLAN_DIR,
	};
	plan->roots[plan->nroots++] = (struct plan_root){ PROBE_TREE, false };
}

int
probe_guard_table(void)
{
	static const struct dfa_rule rules[] = {
		{ ".env", DFA_WRITE, 1, DFA_BUILTIN, true },
		{ "**/.git/hooks/**", DFA_WRITE, 1, DFA_GIT, true },
		{ GUARD_VERIFY_GLOB, DFA_WRITE, 1, DFA_GIT, true },
		{ PROBE_READ_NAME, DFA_READ, 1, DFA_SPEC, false },
		{ PROBE_CONNECT_NAME, DFA_CONNECT, 1, DFA_SPEC, false },
	};
	const struct dfa_rules in = { .rules = rules,
		.nrules = ARRAY_LEN(rules),
		.nroots = 1 };
	autofree struct guard *guard = calloc(1, sizeof(*guard));
	struct wire_out out;
	int fd = -ENOMEM;

	if (guard == NULL || dfa_compile(&in, &guard->dfa, NULL) < 0)
		return fd;
	guard->nroots = 1;
	guard->roots[0].path = PROBE_TREE;
	guard->nrules = ARRAY_LEN(rules);
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		guard->rules[i] = (struct guard_rule){ .text = rules[i].glob,
			.origin = "probe",
			.remedy = "",
			.class = rules[i].class,
			.glob = rules[i].glob,
			.mask = rules[i].mask,
			.roots = rules[i].roots,
			.ignore_case = rules[i].ignore_case };
	wire_out_init(&out);
	guard_encode(guard, &out);
	if (!out.err)
		fd = memfd_seal("guard", out.data, out.len);
	wire_out_done(&out);
	return fd;
}

bool
probe_guard_clean(int scratch_fd)
{
	int fd = dup(scratch_fd);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool clean = dir != NULL;

	if (dir == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	rewinddir(dir);
	while ((entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			clean = false;
	(void)closedir(dir);
	return clean;
}
