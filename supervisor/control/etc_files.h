/*
 * The generated files below a run's /etc (SPEC App.5, K10, M11, G21), from the
 * run's user and what was read of the host once at start. etc_host_read() is
 * the only part with I/O; it runs before the process confines itself.
 */
#ifndef SUPERVISOR_CONTROL_ETC_FILES_H
#define SUPERVISOR_CONTROL_ETC_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/plan.h"
#include "supervisor/control/pool.h"

/* What the host offers; strings are owned, empty or NULL when it has none. */
struct etc_host {
	char *profile; /* text of /etc/profile */
	size_t nsafe;
	char **safe; /* safe.directory of /etc/gitconfig */
	char *git_ca; /* its http.sslCAInfo */
	char *ca_bundle; /* set when the host has authorities of its own */
};

/* Best effort: a file that cannot be read counts as absent. */
void etc_host_read(struct etc_host *ret);
void etc_host_done(struct etc_host *);

/* Reads a gitconfig's safe.directory and http.sslCAInfo; everything else in it
 * is left aside. For etc_host_read() and its test. */
void etc_host_gitconfig(struct etc_host *, const char *text);

struct etc_input {
	const struct etc_host *host;
	const char *user;
	const char *home;
	const char *shell;
	uint64_t uid;
	uint64_t gid;
	const char *label; /* the machine id is made from it */
	const char *hostname;
	const struct plan_mount *mounts;
	size_t nmounts;
};

/*
 * Fills plan->files in canonical order, memory from `pool`. 0 or -ENOMEM.
 * /etc/group names the primary group alone; id(1) shows the others as numbers.
 * Their names are in nothing that control gets, and to carry them would put a
 * question to NSS for each group, of a directory perhaps, into every launch.
 */
int etc_files_make(const struct etc_input *in, struct pool *pool,
    struct plan *plan);

#endif
