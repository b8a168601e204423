/*
 * Refusals that only the run's own standard error tells of (SPEC L4): where no
 * enforcement point reports one, lines with "Permission denied", "Operation
 * not permitted" or "EPERM" become records. Pure. The bytes come from the run,
 * which can write what it likes: a record made here says so by its reason, and
 * how many there may be is bounded.
 */
#ifndef SUPERVISOR_CONTROL_REFUSALS_H
#define SUPERVISOR_CONTROL_REFUSALS_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/cause.h"

#define REFUSALS_LINE 512 /* of a line; what follows is not searched */
#define REFUSALS_MAX 256 /* from one command; the rest is not recorded */

/* All zero is a fresh one. */
struct refusals {
	size_t len;
	size_t found;
	char line[REFUSALS_LINE + 1];
};

/* `target` is a path if the line names one, else the words before the refusal;
 * both texts are the run's and end with the call. */
typedef void refusals_fn(void *arg, enum violation_action, const char *target,
    const char *line);

/* Takes the next bytes, in order; fn may be called several times. */
void refusals_feed(struct refusals *, const uint8_t *data, size_t len,
    refusals_fn *fn, void *arg);
/* The end of the stream: the last line may have no newline. */
void refusals_end(struct refusals *, refusals_fn *fn, void *arg);

#endif
