/*
 * System calls of the broker (launcherd/broker/profile.def). It takes no
 * Landlock domain: a process in one may only inspect processes in domains below
 * it, and the broker must read its callers.
 */
#ifndef BROKER_CONFINE_H
#define BROKER_CONFINE_H

/* Needs no_new_privs. 0 or -errno. */
int confine_broker(void);

#endif
