/*
 * The guard's part of a run's confinement, when its name rules are enforced by
 * stockade-broker: loaded by stockade-init into itself, after its ordinary
 * Landlock domain and filter, so that every process of the run is born in it.
 */
#ifndef INIT_GUARD_H
#define INIT_GUARD_H

#include <stddef.h>

#define GUARD_PLACES_MAX 64

/*
 * Where a run may write without being asked, and where only the broker writes.
 * A grant reaches into everything that is mounted below it, so no granted place
 * may hold a guarded one. Paths as seen inside, clean, borrowed.
 */
struct guard_places {
	const char *granted[GUARD_PLACES_MAX];
	size_t ngranted;
	/* Guarded roots, and places that hold one and so cannot be granted:
	 * these need a root without rules in the table. */
	const char *guarded[GUARD_PLACES_MAX];
	size_t nguarded;
};

/*
 * Sorts the run's writable places: those in `roots`, or below one of them, and
 * those that hold one are guarded, the rest is granted. 0, -E2BIG, or -EINVAL
 * when a root is "/" or in no writable place.
 */
int guard_sort_places(const char *const *writable, size_t nwritable,
    const char *const *roots, size_t nroots, struct guard_places *ret);

/* 0; -EINVAL when a granted place holds a guarded one: *ret_path (may be NULL)
 * names it. A granted place may lie in a guarded one (~/.cache). */
int guard_check_places(const struct guard_places *, const char **ret_path);

/*
 * A Landlock domain that handles the rights to write and nothing else, and
 * grants them on the granted places; writing to what exists in /dev, /proc and
 * /sys is left to the mounts. Needs no_new_privs. 0, or -errno with *ret_step
 * as confine_landlock_run() has it.
 */
int guard_landlock(const struct guard_places *, const char **ret_step);

/*
 * Loads the listener filter (launcherd/guard_calls.def), which must be the last
 * one, and returns the listener: for the broker alone, so the caller sends it
 * and closes it, and makes no trapped call before the broker is ready. -errno:
 * -EBUSY when a listener is above us, -EINVAL before Linux 5.19.
 */
int guard_listener(void);

#endif
