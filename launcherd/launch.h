/*
 * From a plan to a started bubblewrap: decode, open sources, build arguments,
 * cgroup, network namespace, launch_made, process. Used by run.c alone.
 */
#ifndef LAUNCHERD_LAUNCH_H
#define LAUNCHERD_LAUNCH_H

struct launcherd;
struct run;
struct run_order;

/*
 * Makes the network namespace of the next launch, if there is none, `ms` (below
 * 1000) from now; nobody is in it until then, and it serves that launch alone.
 */
void launch_prepare(struct launcherd *, long ms);
/* Gives it up. */
void launch_unprepare(struct launcherd *);

/*
 * Fills run->cgroup, bwrap, error_fd, etc, limits_unset and *ret_channel (our
 * end of init's channel, owned by the caller), and sends launch_made before
 * any process exists. 0; or -errno after run_fail() has said why, with what
 * was made so far in *run for run.c to take down. plan_fd is borrowed,
 * guard_fd is taken.
 */
int launch_make(struct run *run, const struct run_order *order, int plan_fd,
    int guard_fd, int *ret_channel);

/* Watches the run's cgroup; before its first process. 0 or -errno (run.c). */
int run_watch(struct run *run);

/* Records the first failure of a start; text is cleaned. */
void run_fail(struct run *run, unsigned code, int error, const char *step,
    const char *reason);

#endif
