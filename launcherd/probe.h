/*
 * The probe (SPEC A16): executes what it promises. It looks at bubblewrap,
 * tries the cgroup tree (make, freeze, thaw, kill, remove), then starts a real
 * sandbox as uid 65534 through the same code as every launch and runs
 * `/run/stockade/init probe` in it, whose printed rows say what the kernel
 * really refused. Each result is one probe_row, then probe_done. Nothing of it
 * is left. A check that errs counts as unavailable, never as success (A9).
 */
#ifndef LAUNCHERD_PROBE_H
#define LAUNCHERD_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/cause.h"

struct launcherd;
struct probe;
struct run;
struct run_failure;

#define PROBE_DETAIL_MAX 256
#define PROBE_TEXT_MAX 8192

struct probe_result {
	bool known;
	bool available;
	char detail[PROBE_DETAIL_MAX + 1];
};

/* Starts it; rows and probe_done are sent when it is finished. */
void probe_start(struct launcherd *);
void probe_free(struct probe *);

/* Called by run.c and exec.c for the probe's run. */
void probe_run_ready(struct probe *, struct run *);
void probe_run_gone(struct probe *, const struct run_failure *);
void probe_exec_answer(struct probe *, struct run *, int error);
void
probe_exec_exit(struct probe *, struct run *, uint64_t status, uint64_t signal);

/* The guard of the probe's run has refused something, so many times. */
void probe_denial(struct probe *, uint64_t count);

/*
 * Pure parts. The text comes from inside a sandbox: lines "name ok|fail
 * detail"; rows that the table does not know are checked too (any that is not
 * ok makes `namespaces` false), and without the closing line "end ok rows=N"
 * with the right N nothing counts.
 */
void probe_parse_rows(const char *text, size_t len,
    struct probe_result rows[PROBE_ROW_COUNT]);
/* "bubblewrap 0.8.0": at least that? */
bool probe_version_ok(const char *text);

#endif
