/*
 * `stockade-init probe`: the confined child of the probe (SPEC A16). It runs
 * as an ordinary command of a sandbox, tries what must not succeed, and prints
 * one line per row on standard output:
 *
 *	name ok|fail detail
 *
 * Names: identity capabilities seccomp landlock files.create files.read
 * egress.refuse userns.refused procsys.readonly namespaces. The last line is
 * "end ok rows=N", so that a probe that died half-way is not taken for one
 * that found nothing. Exit status 0 when every row is ok, else 1.
 *
 * `stockade-init probe guard`: the same with the rows guard.create, guard.read
 * and guard.connect, in a run that has a guarded place, PROBE_TREE, with the
 * rules of the probe (launcherd/probe_guard.c).
 */
#ifndef INIT_PROBE_H
#define INIT_PROBE_H

#include <stdbool.h>

/* Where the probe's guarded run has a place with name rules. */
#define PROBE_TREE "/tree"
/* The names below it with a rule against reading, and connecting. */
#define PROBE_READ_NAME "probe.secret"
#define PROBE_CONNECT_NAME "probe.socket"
/* What the test of guard.create is refused, if it is. */
#define PROBE_GUARD_DENIALS 4

int probe_main(bool guard);

#endif
