/*
 * What stockade-proxyd accepts on descriptor 3, from the supervisor only.
 */
#ifndef PROXYD_DISPATCH_H
#define PROXYD_DISPATCH_H

struct proxyd;

/* Takes fd. 0 or -errno. */
int dispatch_start(struct proxyd *p, int fd);

#endif
