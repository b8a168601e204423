/*
 * What the kernel refused, as the message that tells it.
 */
#ifndef LAUNCHERD_GUARD_EVENT_H
#define LAUNCHERD_GUARD_EVENT_H

#include "launcherd/guard/policy.h"

struct guard;
struct msg_denial;

/* The entries of a policy as the run names them; of malloc(3). */
struct guard_entry_paths {
	char *path[GUARD_ENTRIES];
};

void guard_entry_paths_free(struct guard_entry_paths *);

/* Fills everything but the sandbox. Nothing in the event is trusted to be
 * terminated or in bounds; guard are the rules that were in force. */
void guard_event_denial(const struct guard_event *, const struct guard *guard,
    const struct guard_entry_paths *, struct msg_denial *ret);

#endif
