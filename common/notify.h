/*
 * sd_notify(3) and the watchdog (sd_watchdog_enabled(3)) by own code: one
 * datagram to $NOTIFY_SOCKET ('@' = abstract). Both variables are removed
 * from the environment by notify_init, so that no child inherits them.
 */
#ifndef COMMON_NOTIFY_H
#define COMMON_NOTIFY_H

#include <stdint.h>

/* Reads NOTIFY_SOCKET and WATCHDOG_USEC/WATCHDOG_PID, opens the socket.
 * Returns the watchdog interval in milliseconds to ping at (half of the
 * limit), 0 when there is none. Without a socket every call is a no-op. */
uint64_t notify_init(void);
/* e.g. "READY=1\nSTATUS=..." */
void notify_send(const char *state);

#endif
