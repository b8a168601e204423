/*
 * The channel of launcherd's children stockade-init, -lookup and -broker to it:
 * descriptor 3. They trust it and live by it. No event loop, no allocation.
 */
#ifndef INIT_CHANNEL_H
#define INIT_CHANNEL_H

#include <stddef.h>

#include "protocol/message.h"

#define CHANNEL 3
#define EXIT_RULES 1 /* launcherd or we broke the rules of the channel */
#define EXIT_START 125

/* The channel stands, close-on-exec and blocking, and what is open behind it is
 * closed; or why not, static text. */
const char *channel_open(void);

/*
 * The next message to `self`: its type, its descriptors, which are the
 * caller's. The process ends at end of file, with 0, and with EXIT_RULES when
 * it is no message.
 */
unsigned channel_receive(enum proc self, union msg_any *ret, int *ret_fds,
    size_t *ret_nfds);
/* The same for one that must be `want`, with one descriptor at most: it, or
 * -1. */
int channel_expect(enum proc self, enum msg_type want, union msg_any *ret);

/* Waits until it is taken. 0 or -errno; the descriptors stay the caller's. */
int channel_send(enum proc self, enum msg_type type, const void *msg,
    const int *fds, size_t nfds);

#endif
