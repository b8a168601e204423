/*
 * The guard's part of the probe (SPEC D3): what its run is made of. The run
 * has one guarded place, PROBE_TREE of launcherd/init/probe.h, over an empty
 * scratch directory, and rules of its own that are compiled in; all else of it
 * is what every guarded run has.
 */
#ifndef LAUNCHERD_PROBE_GUARD_H
#define LAUNCHERD_PROBE_GUARD_H

#include <stdbool.h>

struct plan;

/* The place, into the plan of an empty run. */
void probe_guard_plan(struct plan *);
/* The table of rules: a sealed memfd, or -errno. */
int probe_guard_table(void);
/* Whether nothing is left in the scratch directory. */
bool probe_guard_clean(int scratch_fd);

#endif
