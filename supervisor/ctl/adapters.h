/*
 * What `--adapter` adds to a run (SPEC Y18): the agent's state directory and
 * the variables that it needs. The table is adapters.def.
 *
 * How to use it: a = adapters_find(name), NULL is a usage error (exit 2;
 * adapters_name(i) lists the names). Then adapters_state(a, home, getenv, dir)
 * > 0: `dir` goes into runnerStateDirs, and a->state_variable, if it is to be
 * set (adapters_sets_variable()), into env with the value `dir`. Each name of
 * adapters_pass(a, i) that the caller has set goes into env with the caller's
 * value. spec.adapter is a->name. When the run's user is not the caller, pass
 * adapters_no_environment instead of getenv: the caller's variables tell of his home.
 *
 * No API key, no token and no URL is in the table: they pass only by --env.
 * `acp` is the protocol that many agents speak (App.15), each with a state
 * directory of its own; it says how the run is judged and adds none. Use
 * --adapter codex or gemini-cli for those two.
 */
#ifndef SUPERVISOR_CTL_ADAPTERS_H
#define SUPERVISOR_CTL_ADAPTERS_H

#include <stdbool.h>
#include <stddef.h>

#define ADAPTERS_PATH 4096

struct adapter {
	const char *name;
	const char *state_dir; /* below the home; NULL: none */
	/* Names another directory when the caller has it set; NULL: none. */
	const char *state_variable;
	bool always; /* it is set for the run though the caller has not */
};

/* Tells a variable as getenv(3) does. */
typedef char *adapters_env_fn(const char *name);
char *adapters_no_environment(const char *name); /* NULL for all */

const struct adapter *adapters_find(const char *name);
/* Names in the table's order; NULL beyond the last. */
const char *adapters_name(size_t i);

/* Writes the state directory: 1; 0 when it has none; -EINVAL when the caller's
 * variable or `home` is not a clean absolute path, -ENAMETOOLONG. */
int adapters_state(const struct adapter *, const char *home,
    adapters_env_fn *env, char ret_dir[ADAPTERS_PATH]);

/* Whether state_variable is to be set for the run. */
bool adapters_sets_variable(const struct adapter *, adapters_env_fn *env);

/* Names of variables to pass when they are set; NULL beyond the last. */
const char *adapters_pass(const struct adapter *, size_t i);

#endif
