/*
 * Connect to the first of several checked addresses that answers: IPv6 and
 * IPv4 in turn, a new attempt every 250 ms or as soon as one fails (RFC 8305
 * simplified; SPEC G12).  The caller has checked every address; nothing is
 * looked up again.
 */
#ifndef PROXYD_DIAL_H
#define PROXYD_DIAL_H

#include <stddef.h>
#include <stdint.h>

#include "common/hostname.h"

struct dial;
struct proxyd;

#define DIAL_MAX 8 /* addresses tried */

/*
 * fn gets a connected, non-blocking descriptor that it owns, or -errno of the
 * last failure; it is called once, from the loop, never from dial_start(),
 * and after it the dial is gone.  NULL when out of memory.
 */
struct dial *dial_start(struct proxyd *p, const struct hostname_addr *addrs,
    size_t n, uint16_t port, void (*fn)(void *ctx, int fd), void *ctx);

/* Gives up without calling fn; NULL is fine. */
void dial_cancel(struct dial *dial);

/* Sorts so that families take turns, the first of each first. */
void dial_interleave(struct hostname_addr *addrs, size_t n);

#endif
