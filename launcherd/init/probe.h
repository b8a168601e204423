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
 */
#ifndef INIT_PROBE_H
#define INIT_PROBE_H

int probe_main(void);

#endif
