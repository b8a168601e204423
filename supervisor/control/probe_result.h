/*
 * What the probe says (SPEC A2..A11, A17..A19): a pure function from what was
 * found on the host to results, notes, hints and the start-up line.  The
 * rows themselves are executed by launcherd and come in a record.
 */
#ifndef SUPERVISOR_CONTROL_PROBE_RESULT_H
#define SUPERVISOR_CONTROL_PROBE_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/cause.h"
#include "supervisor/control/backend.h"
#include "supervisor/control/setting.h"

#define PROBE_TEXT 384 /* notes, hints and details, cut at this size */

/* The mechanisms of A16 are enum probe_row of protocol/cause.h: PROBE_LANDLOCK
 * and so on, in the order of A16 everywhere. */
#define PROBE_MECHANISMS PROBE_ROW_COUNT

/* "bubblewrap", "guard.create", ...; NULL beyond the last. */
const char *probe_mechanism_name(enum probe_row mechanism);
/* The mechanism of a name, or -1. */
int probe_mechanism_find(const char *name);

/* A row as it was executed; a row not given counts as false. */
struct probe_row_in {
	enum probe_row mechanism;
	bool available;
	const char *detail; /* may be NULL */
};

/* A program the native backend needs and the package that brings it. */
struct probe_tool {
	const char *package;
	bool found;
};

struct probe_input {
	const char *system; /* uname: "Linux", "Darwin", "Windows_NT" */
	const char *release;
	const char *machine;
	const struct probe_tool *tools;
	size_t ntools;
	const struct probe_row_in *rows;
	size_t nrows;
	const char *error; /* a check failed with this error, or NULL */
	bool microvm_available;
	const char *microvm_note; /* required */
	enum setting setting;
};

struct probe_mechanism {
	const char *name; /* static */
	bool available;
	char detail[PROBE_TEXT];
};

struct probe_result {
	enum backend backend;
	bool available;
	bool requires_install;
	bool dispatchable; /* native only; A18 */
	char install_hint[PROBE_TEXT]; /* empty: absent */
	char note[PROBE_TEXT];
};

struct probe_report {
	/* indexed by enum backend; `probe` sends microvm, native, none */
	struct probe_result results[BACKENDS];
	struct probe_mechanism mechanisms[PROBE_MECHANISMS];
	enum backend recommendation;
	bool wsl;
	bool windows;
	bool line_warning; /* priority of line: warning, else info */
	char line[2 * PROBE_TEXT]; /* the start-up line of A10 */
};

/* A8: contains "microsoft" or "wsl" in any letter case. */
bool probe_release_is_wsl(const char *release);

/*
 * Never fails: what is missing or wrong in the input is reported as not
 * available.  Texts are copied.
 */
void probe_report_make(const struct probe_input *in, struct probe_report *ret);

#endif
