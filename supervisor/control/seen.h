/*
 * What start scans told about directories that did not change, for the next
 * launch of the same user in the same places (protocol/lookup.h, `seen`). The
 * bytes are stockade-lookup's own: kept unread and given back to that user's
 * look-ups alone, which check that they fit. No I/O.
 */
#ifndef SUPERVISOR_CONTROL_SEEN_H
#define SUPERVISOR_CONTROL_SEEN_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/wire.h"

#define SEEN_KEPT_MAX 16 /* the one not used for the longest time goes */
#define SEEN_KEY 32

struct seen {
	uint64_t uid;
	uint8_t key[SEEN_KEY];
	uint8_t *data; /* NULL: an empty place */
	size_t len;
	uint64_t used;
};

/* Zero-initialise. */
struct seen_list {
	struct seen list[SEEN_KEPT_MAX];
	uint64_t clock;
};

/* Valid until the next seen_keep(); empty: there is none. */
struct wire_view
seen_find(struct seen_list *, uint64_t uid, const uint8_t key[SEEN_KEY]);
/* Copies the bytes in place of those that were there; without memory there are
 * none then. */
void seen_keep(struct seen_list *, uint64_t uid, const uint8_t key[SEEN_KEY],
    struct wire_view bytes);
void seen_done(struct seen_list *);

#endif
