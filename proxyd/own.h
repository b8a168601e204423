/*
 * The host's own addresses (SPEC App.4): a name that resolves to one of them
 * would reach services that were never meant for a run.  Kept by rtnetlink(7)
 * over a socket opened at start.
 */
#ifndef PROXYD_OWN_H
#define PROXYD_OWN_H

#include <stdbool.h>

struct event_base;
struct hostname_addr;
struct own;

/* Opens the socket and reads all addresses; NULL and errno on failure. */
struct own *own_new(void);
/* Follows changes from now on. */
int own_start(struct own *own, struct event_base *base);
void own_free(struct own *own);
bool own_has(const struct own *own, const struct hostname_addr *addr);

#endif
