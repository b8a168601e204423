/*
 * `run` and `exec`: what the parts share.
 */
#ifndef CTL_RUN_H
#define CTL_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/ctl/denied.h"
#include "supervisor/ctl/option.h"

struct ctl;
struct rpc_message;
struct rpc_out;

#define RUN_SESSION_MAX 129
#define RUN_EXEC_MAX 129
#define RUN_NOTES_MAX 64
#define RUN_MOUNTS_MAX 64 /* of a spec, SPEC AB */

/* The options of `run` and `exec` (SPEC Y2, Y19). */
struct run_options {
	const char *dir; /* -C */
	struct option_list mounts;
	const char *mode;
	struct option_list allow;
	bool no_network;
	const char *backend;
	struct option_list env;
	uint64_t memory_bytes;
	uint64_t pids;
	double cpus;
	uint64_t timeout_ms;
	const char *user;
	const char *adapter;
	bool no_toolchains;
	struct option_list exempt; /* --name-exempt */
	bool new_repositories;
	bool json;
	bool quiet;
	const char *session; /* --session, of `why` */
};

/* The options of `run`, which `why` takes too. */
#define RUN_ROWS 19
extern const struct option_row run_rows[RUN_ROWS];

/* One command on its way. */
struct run {
	struct ctl *ctl;
	const struct run_options *options;
	char session[RUN_SESSION_MAX];
	char exec[RUN_EXEC_MAX]; /* "" before it is started */
	uint64_t pid; /* inside; 0: it never ran */
	bool tty; /* a terminal of its own */
	bool pass; /* descriptors are passed, or the pty's other end */
	bool over; /* `exit` came, or the session is gone */
	bool gone; /* its last event came */
	int status;
	struct denied denied;
	/* Lines for people that must wait: the terminal is raw. */
	size_t nnotes;
	char *notes[RUN_NOTES_MAX];
	/* The caller's ends of pipes for descriptors that are terminals, -1:
	 * passed as it is. */
	int pipes[3];
	bool blocked;
	sigset_t signals; /* that the caller does not ignore */
	sigset_t before;
};

/* ------------------------------------------------ run_spec.c */

/*
 * Writes the spec of `run` into the open parameter map, as "spec". 0, or an
 * exit status after saying why.
 */
int run_spec_put(struct run *run, struct rpc_out *out);
/* The `env` map of --env K[=V], left out when there is none. 0 or a status. */
int run_spec_put_env(const struct option_list *env, struct rpc_out *out);

/* ------------------------------------------------ follow.c */

/* A line for people; kept until follow_notes(). */
void follow_note(struct run *run, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void follow_notes(struct run *run);

/* Blocks the signals that are for the command, so that none is lost between
 * its start and follow_tty() or follow_pipes(); follow_end() unblocks them. */
void follow_begin(struct run *run);
void follow_end(struct run *run);

/* Takes what was read from the service: events of our session. */
void follow_events(struct run *run);
/* Reads until the session's last event: a flood of them is still on its way
 * when the session is gone. Not for ever. */
void follow_rest(struct run *run);
/* Sends sandbox.signal without waiting. */
void follow_signal(struct run *run, const char *name);

/* Until the command has ended: terminal, pipes, signals. `master`: the pty's
 * other end, -1 without one. 0 or an exit status after saying why. */
int follow_tty(struct run *run, int master);
int follow_pipes(struct run *run);

#endif
