/*
 * The repositories that a run has made, looked at when its last process is gone
 * (SPEC D18): by a stockade-lookup with the run's ids, since who wrote them is
 * the run. What it says is passed on, and then the run has ended.
 */
#ifndef LAUNCHERD_INSPECT_H
#define LAUNCHERD_INSPECT_H

#include <stdbool.h>

struct inspection;
struct run;

/* Starts it, once; when it cannot be started the paths alone are told.
 * run_advance() is called when it is over. */
void inspect_start(struct run *);
/* Whether it goes on; NULL is fine. */
bool inspect_alive(const struct inspection *);
/* NULL is fine. */
void inspect_free(struct inspection *);

#endif
