/*
 * The masks of a run: kept from the plan to the moment when its init is ready,
 * then mounted by a child (mask_mount.h) before anything is started in it.
 *
 *	init_ready ─▶ fork, mask_mount ─▶ exit 0 ─▶ run_ready()
 *	init_listener ─▶ the same, beside the start of the broker
 *
 * Not before init's first message: bubblewrap must have made the view, and init
 * must have given the home to its user, who looks the targets up. init and
 * broker open nothing that a mask hides: they grant whole mounts and look up
 * from "/".
 */
#ifndef LAUNCHERD_MASKING_H
#define LAUNCHERD_MASKING_H

#include <stdbool.h>

struct masking;
struct run;
struct source_user;
struct sources;

/* Takes the masks out of the sources; without any run->masking stays NULL. 0
 * or -ENOMEM. */
int masking_make(struct run *, struct sources *, const struct source_user *);

/* Called once. 0, also without any mask, and the run's end follows when they
 * cannot be mounted; or -errno after run_fail(). run->masking is NULL when all
 * are; run_ready() follows if init was ready before. */
int masking_start(struct run *);

/* Whether its process is not reaped; NULL is fine. */
bool masking_alive(const struct masking *);
/* NULL is fine. */
void masking_free(struct masking *);

#endif
