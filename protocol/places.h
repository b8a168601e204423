/*
 * Where a guarded run may write without being asked, and where it must ask its
 * broker: worked out from the plan by control (which adds the empty roots), by
 * launcherd (which refuses a plan that contradicts itself) and by stockade-init
 * (which makes the Landlock domain of it). Pure.
 */
#ifndef PROTOCOL_PLACES_H
#define PROTOCOL_PLACES_H

#include <stddef.h>

struct plan;

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
 * The places of a plan: its private directories, home and writable mounts by
 * its roots that are not empty. As guard_sort_places().
 */
int guard_sort_plan(const struct plan *, struct guard_places *ret);
/* The same, and the plan's roots must be exactly the guarded ones: -EINVAL
 * when one is missing or too many. */
int guard_check_plan(const struct plan *, struct guard_places *ret);

#endif
