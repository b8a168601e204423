/*
 * Which backend a run gets (SPEC B1..B9, A13, A14).  Pure: it starts nothing
 * and asks nobody; the caller refuses what is not built and reports what is
 * really in force (B10).
 */
#ifndef SUPERVISOR_CONTROL_BACKEND_H
#define SUPERVISOR_CONTROL_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "supervisor/control/setting.h"

enum backend { BACKEND_NONE = 0, BACKEND_NATIVE, BACKEND_MICROVM, BACKENDS };

/* "none", "native", "microvm" */
const char *backend_name(enum backend backend);
/* "No isolation", "Native sandbox", "Enclosed VM" */
const char *backend_label(enum backend backend);
/* A kernel boundary: microvm only. */
bool backend_enclosed(enum backend backend);

/* B3: NULL or unknown is none, docker is native. */
enum backend backend_parse_stored(const char *name);

/* B4: the three names and docker; -EINVAL for anything else. */
int backend_parse_explicit(const char *name, enum backend *ret);

enum backend_verdict {
	BACKEND_REFUSED_INTERNAL = 0, /* never returned; a zeroed choice */
	BACKEND_CHOSEN,
	BACKEND_BAD_PARAMS,
	BACKEND_UNAVAILABLE,
	BACKEND_UNCONFINED,
	BACKEND_UNSUPPORTED
};

/*
 * What is asked.  explicit_name and stored_name are the spec's `backend` and
 * `storedBackend`, NULL if absent (for a stored name that is null, set
 * has_stored).  A stored name counts as named: it is never stepped down.
 */
struct backend_ask {
	const char *explicit_name;
	const char *stored_name;
	bool has_stored;
	bool terminal; /* an interactive terminal, not an agent run */
	bool windows; /* agent runs always use none there (B6) */
	enum setting setting;
	enum setting_source setting_source;
	enum backend conf_default; /* `backend default` */
	bool native_available;
	const char *native_reason; /* hint or note if not available */
	bool microvm_available;
	const char *microvm_reason;
	bool restricts_network; /* networkEnabled=false or a list (B14) */
	bool accept_unconfined;
};

/*
 * The answer.  verdict BACKEND_CHOSEN: backend is to be started; why says in
 * one line why it is none (for `details.why`, empty otherwise); log_line is
 * the line of B9 or empty.  Any other verdict: message is the error's text.
 */
struct backend_choice {
	enum backend_verdict verdict;
	enum backend backend;
	bool unconfined; /* backend is none: notice `unconfined` */
	char message[512];
	char why[512];
	char log_line[512];
};

void backend_choose(const struct backend_ask *ask, struct backend_choice *ret);

#endif
