/*
 * The guard's part of a run's confinement, when its name rules are enforced by
 * stockade-broker: loaded by stockade-init into itself, after its ordinary
 * Landlock domain and filter, so that every process of the run is born in it.
 */
#ifndef INIT_GUARD_H
#define INIT_GUARD_H

#include "protocol/places.h"

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
