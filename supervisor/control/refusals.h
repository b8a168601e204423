/*
 * Refusals that only the run's own standard error tells of (SPEC L4): where no
 * enforcement point reports one, lines with "Permission denied", "Operation
 * not permitted" or "EPERM" become records. So do "Read-only file system" and
 * "Device or resource busy", if the line names what the plan keeps from being
 * written (refusals_place()): those two have other causes, too. Pure. The bytes
 * come from the run, which can write what it likes: a record made here says so
 * by its reason, and how many lines are looked at is bounded.
 */
#ifndef SUPERVISOR_CONTROL_REFUSALS_H
#define SUPERVISOR_CONTROL_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/cause.h"

#define REFUSALS_LINE 512 /* of a line; what follows is not searched */
#define REFUSALS_MAX 256 /* from one command; the rest is not recorded */
#define REFUSALS_PATH 4096

struct plan;

enum refusal_kind {
	REFUSAL_DENIED,
	REFUSAL_READ_ONLY, /* EROFS */
	REFUSAL_BUSY, /* EBUSY: what is mounted is not replaced or removed */
};

/* All zero is a fresh one. */
struct refusals {
	size_t len;
	size_t found; /* of REFUSAL_DENIED */
	size_t doubtful; /* of the others */
	char line[REFUSALS_LINE + 1];
};

/* `target` is a path if the line names one, else the words before the refusal;
 * both texts are the run's and end with the call. */
typedef void refusals_fn(void *arg, enum refusal_kind, enum violation_action,
    const char *target, const char *line);

/* Takes the next bytes, in order; fn may be called several times. */
void refusals_feed(struct refusals *, const uint8_t *data, size_t len,
    refusals_fn *fn, void *arg);
/* The end of the stream: the last line may have no newline. */
void refusals_end(struct refusals *, refusals_fn *fn, void *arg);

struct refusal_place {
	char path[REFUSALS_PATH]; /* as it is in the run */
	const char *rule; /* static, both */
	const char *remedy;
};

/* What helps where this mask keeps a path from being written; static. */
const char *refusals_mask_remedy(const char *mask);

/*
 * Whether a line of a kind that is not REFUSAL_DENIED names a path that the
 * plan is the cause for: for READ_ONLY in a mask or in a read-only mount, for
 * BUSY a mask itself. Names are taken to be relative to the plan's directory,
 * or, those of several components, to any directory.
 */
bool refusals_place(const struct plan *, enum refusal_kind, const char *line,
    struct refusal_place *ret);

#endif
