/*
 * The broker of a guarded run: made when the plan was read, started when
 * bubblewrap has made the run's namespaces, there as long as the run. Until it
 * is set up it waits, with launcherd's view and without a table.
 *
 *	bubblewrap's --info-fd ─▶ fork
 *	init_listener ─▶ fork if that was not, broker_setup, broker_listen
 *	broker_ready, masks mounted ─▶ init_go ─▶ verified (D16) ─▶ init_ready
 *
 * launcherd keeps no copy of the listener: with one, calls would wait for ever
 * once the broker is dead, instead of failing.
 */
#ifndef LAUNCHERD_BROKER_RUN_H
#define LAUNCHERD_BROKER_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guarding;
struct plan;
struct run;
struct source_user;

/*
 * Takes guard_fd (-1: the plan must have no roots, and nothing is made). The
 * table must be sealed and is not read. 0, or -errno after run_fail().
 */
int guarding_make(struct run *, const struct plan *, const struct source_user *,
    int guard_fd);

/* Whether the kernel guards the run by itself (launcherd/guard/kernel.h): then
 * there is no broker, and no listener. NULL is fine. */
bool guarding_kernel(const struct guarding *);
/* For spawn_run: the label of such a run. */
int guarding_label(void *guarding, int pidfd);

/* Whether the run has a broker, or will have one; NULL is fine. */
bool guarding_has_broker(const struct guarding *);

/* Whether the run may be given these descriptors: not one that writes to a
 * protected name, which the kernel would refuse to init. NULL is fine. */
bool guarding_passes(const struct guarding *, const int *fds, size_t nfds);

/* Takes info_fd: when it can be read, the run's pid namespace is there. 0, or
 * -errno after run_fail(). */
int guarding_expect(struct run *, int info_fd);

/* Takes the listener. 0, or -errno after run_fail(); init is told to go on when
 * the broker is ready. */
int guarding_start(struct run *, int listener_fd);

/*
 * Other rules for the broker (SPEC D13); takes table_fd, which must be sealed
 * and is not read. 0: rules_answer follows, also when the broker ends before
 * it has used them. -ESRCH: there is no broker that is ready (g may be NULL);
 * -EBUSY: too many wait for their answer already.
 */
int guarding_replace(struct guarding *g, uint64_t request, int table_fd);

/* Before the end of the run is told: what was refused and not told yet. NULL is
 * fine. */
void guarding_drain(struct guarding *);
/*
 * After the run's processes were told to freeze (true), and before they are
 * thawed (false): a broker that was told so lets go of callers which wait for
 * what a frozen process would have to do. NULL is fine.
 */
void guarding_freeze(struct guarding *, bool frozen);

/* Before init is stopped: the kernel kills the broker with it. True:
 * run_stop_init() is called when the broker has told everything; if it never
 * does, the run's grace ends. False: there is nothing to wait for. */
bool guarding_flush(struct guarding *); /* NULL is fine */

/* The repositories that the run has made and may have configured, and whom to
 * become to look at them. */
struct repository {
	uint64_t dev;
	uint64_t ino;
	char *path;
};
struct msg_inspect_begin;
size_t guarding_repositories(const struct guarding *); /* NULL is fine */
const struct repository *guarding_repository(const struct guarding *, size_t i);
const struct msg_inspect_begin *guarding_inspect(const struct guarding *);

/* Lets init go on, to verify the guard, when all is mounted and the broker is
 * ready: called when either comes to be. */
void guarding_go(struct run *);
/* Whether the broker has said that it is ready. */
bool guarding_ready(const struct guarding *);
/* Whether its process is not reaped, or has said what was not read yet; NULL
 * is fine. */
bool guarding_alive(const struct guarding *);
/* Tells that the run ends because its broker did, if that is so. */
void guarding_report(struct run *);
/* NULL is fine. */
void guarding_free(struct guarding *);

#endif
