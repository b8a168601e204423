/*
 * The environment of a run (SPEC M1..M8, M11, G4).  Pure: nothing is read
 * from this process's own environment.  Names and values come from clients
 * and are hostile; values never appear in an error.
 */
#ifndef SUPERVISOR_CONTROL_ENVIRON_H
#define SUPERVISOR_CONTROL_ENVIRON_H

#include <stdbool.h>
#include <stddef.h>

#define ENVIRON_NAME_MAX 256 /* bytes */

struct environ_pair {
	const char *name;
	const char *value;
};

/* Borrowed; pairs may be NULL if n is 0. */
struct environ_set {
	const struct environ_pair *pairs;
	size_t n;
};

/*
 * Groups in the order of M5, later wins.
 *
 * base      offered base values; a name outside the allow list of App.8 is
 *           left out without being reported
 * pass_env  values for the spec's `passEnv` names
 * spec_env  the spec's `env`
 * exec_env  the exec's `env`; empty when a launch's plan is made
 * broker    credentials placed by us
 * fixed     STOCKADE_* names, set last by us
 */
struct environ_input {
	struct environ_set base;
	struct environ_set pass_env;
	struct environ_set spec_env;
	struct environ_set exec_env;
	struct environ_set broker;
	struct environ_set fixed;
	bool proxy; /* set the variables of G4 */
	const char *connect_path; /* stockade-connect inside, with proxy */
	const char *home; /* absolute */
	const char *tmpdir; /* usually "/tmp" */
	const char *ca_bundle; /* the host's, NULL: M11 is off */
	bool native; /* filter PATH (M8) */
	/*
	 * Whether a directory of the given PATH is inside the run's view: in
	 * a mount or in the system view.  NULL: none is.
	 */
	bool (*in_view)(void *arg, const char *dir);
	void *in_view_arg;
};

/* Owned; sorted by name, each name once. */
struct environ_result {
	char **names;
	char **values;
	size_t n;
	char **stripped; /* sorted names, each once (M4) */
	size_t nstripped;
	char **secret; /* names with secret-looking values passed (M7) */
	size_t nsecret;
};

/*
 * Compute.  0; -EINVAL for a name that is empty, longer than
 * ENVIRON_NAME_MAX or has '=', a blank, a control or a non-ASCII byte, or
 * for a missing home, tmpdir or connect_path; -E2BIG above the limits of
 * SPEC AB (256 names, 32 KiB a value, 256 KiB in all, of what clients gave);
 * -ENOMEM.  On an error *ret is empty and ret_bad (ENVIRON_NAME_MAX + 1
 * bytes, may be NULL) holds the printable name or "".
 */
int environ_make(const struct environ_input *in, struct environ_result *ret,
    char *ret_bad);
void environ_done(struct environ_result *env);

/* The value of a name in a result, or NULL. */
const char *environ_get(const struct environ_result *env, const char *name);

#endif
