/*
 * What a run may do with one path, and which rule says so (SPEC W6, Y10): from
 * the plan and the compiled table that are enforced. Pure. What the run's user
 * finds at the path on the host is a hint, from a process of that user.
 */
#ifndef SUPERVISOR_CONTROL_EXPLAIN_PATH_H
#define SUPERVISOR_CONTROL_EXPLAIN_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/guard.h"

struct lookup_result;
struct plan;
struct rpc_out;

struct explain_path_in {
	const struct plan *plan;
	const struct guard *guard; /* NULL: the plan has no roots */
	const struct lookup_result *found; /* NULL: nobody looked */
	const char *path; /* clean and absolute, as seen inside */
	bool read_only_mode; /* another mode than chat */
};

enum explain_op {
	EXPLAIN_READ,
	EXPLAIN_WRITE, /* make, change, remove */
	EXPLAIN_RENAME, /* move or replace a directory or a link */
	EXPLAIN_EXECUTE,
	EXPLAIN_OPS
};

#define EXPLAIN_TEXT_MAX 5120

struct explain_why {
	bool shown; /* rename and execute: only when something is to be said */
	bool allowed;
	char rule[GUARD_TEXT_MAX + GUARD_ORIGIN_MAX + 8]; /* "": none */
	char reason[EXPLAIN_TEXT_MAX];
	char remedy[EXPLAIN_TEXT_MAX]; /* "": none */
};

/* Large: allocate it. */
struct explain_path {
	struct explain_why why[EXPLAIN_OPS];
};

void explain_path(const struct explain_path_in *, struct explain_path *ret);
/* Its fields into an open map: decision ("allowed", "readOnly", "denied"),
 * rule, why[], remedy. */
void explain_path_put(const struct explain_path *, struct rpc_out *);

/*
 * The path that a client typed, as it is judged: absolute, or below the home
 * or the working directory of the plan. NULL: not one, or too long.
 */
struct pool;
const char *
explain_path_clean(struct pool *, const char *typed, const struct plan *);

#endif
