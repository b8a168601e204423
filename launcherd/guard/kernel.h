/*
 * The mechanism bpf-lsm in launcherd: brings the programs into force by
 * stockade-guard, gives each run its rules and its label, and tells what was
 * refused. launcherd_confine_bpf() has taken the loading of programs away from
 * launcherd itself by then.
 *
 *	make ─▶ label the child that will be bubblewrap ─▶ all is mounted ─▶ arm
 *
 * From the label on a process of the run that has no rules may do nothing; the
 * rules come before anything of the run executes.
 */
#ifndef LAUNCHERD_GUARD_KERNEL_H
#define LAUNCHERD_GUARD_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_guard;
struct kernel_run;
struct launcherd;
struct run;

#define KERNEL_WHY_MAX 256

/*
 * Once, at set-up; waits for stockade-guard, about a second. Afterwards
 * l->kernel is there, or l->kernel_why says what is missing. want false: what
 * an earlier start has left is removed, and it is said to be not wanted.
 */
void kernel_guard_open(struct launcherd *, const char *instance, bool want);
/* remove: takes the programs out of the kernel; no run is left. */
void kernel_guard_close(struct launcherd *, bool remove);

/*
 * The rules are read from the table, which is sealed and stays the caller's. 0;
 * -EOPNOTSUPP: they permit new repositories, which this mechanism cannot
 * (SPEC D18); or -errno.
 */
int kernel_run_make(struct run *, int table_fd, struct kernel_run **ret);
/* The blocked child that will be bubblewrap. 0 or -errno. */
int kernel_run_label(const struct kernel_run *, int pidfd);
/* Everything is mounted, nothing runs. 0, or -errno with why. */
int kernel_run_arm(struct kernel_run *, char why[KERNEL_WHY_MAX]);
/* Other rules, of the same places; at once. 0, or -errno and the old ones. */
int kernel_run_replace(struct kernel_run *, int table_fd);
/* Whether a descriptor of the client's is one that the run may have: that it
 * only reads, or that its name of now is not protected. */
bool kernel_run_passes(const struct kernel_run *, int fd);
/* Tells what was refused and not told yet. */
void kernel_run_flush(struct kernel_run *);
/* The run's cgroup is empty. NULL is fine. */
void kernel_run_free(struct kernel_run *);

#endif
