/*
 * Confinement of a run: Landlock and seccomp, loaded by stockade-init into
 * itself after the change of ids, so that every process of the run is born in
 * it (SPEC C8..C11, C14). common/confine.c is not linked here: libseccomp and
 * its allocations have no place in a process that each sandbox has.
 */
#ifndef INIT_CONFINE_H
#define INIT_CONFINE_H

#include <stdbool.h>

struct plan;

/*
 * Read and execute everywhere in the view, write in the writable mounts of the
 * plan, /tmp, /dev/shm, /run/stockade/run, `home`, /dev and /proc. Uses every
 * right the kernel knows and writes its level to *ret_abi. On failure returns
 * -errno and *ret_step names what failed, the missing right included (static
 * text, at most 64 bytes).
 */
int confine_landlock_run(const struct plan *plan, const char *home,
    unsigned *ret_abi, const char **ret_step);

/* Loads the program made of launcherd/profile.def. */
int confine_seccomp_run(bool userns);

#endif
