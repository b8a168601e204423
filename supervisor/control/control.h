/*
 * stockade-control: owns the client socket, the sessions and what clients may
 * see of them. Runs as its own user without capabilities, in an empty root,
 * with Landlock and seccomp. Trusts the supervisor's messages; trusts nothing
 * that a client sends. struct control is the one context; all of its parts are
 * reachable from it.
 */
#ifndef SUPERVISOR_CONTROL_CONTROL_H
#define SUPERVISOR_CONTROL_CONTROL_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/utsname.h>

#include "protocol/peer.h"
#include "supervisor/control/probe_result.h"
#include "supervisor/control/setting.h"

struct call;
struct caller;
struct clients;
struct conf;
struct event_base;
struct events;
struct events_source;
struct rpc_out;
struct sessions;

struct reload;
LIST_HEAD(reload_list, reload); /* empty is all zero */

#define CONTROL_CONF_FD 4 /* the configuration's directory */

/* States of the supervisor as a peer (protocol/peer.h). */
enum control_state {
	CONTROL_PROBING, /* rows, restored runs; no client yet */
	CONTROL_OPEN, /* control_open has come */
};

/* The rows as they come, then the report (SPEC A1: made once). */
struct control_probe {
	bool seen[PROBE_MECHANISMS];
	bool available[PROBE_MECHANISMS];
	char detail[PROBE_MECHANISMS][257];
	bool done;
	struct probe_report report; /* valid when done */
};

struct control {
	struct event_base *base;
	struct peer *supervisor;
	int conf_dir;
	const char *conf_name;
	bool conf_missing_ok; /* the default path, not one that was named */
	struct conf *conf; /* never NULL after start; replaced by reload */
	struct setting_choice setting;
	struct utsname host;
	struct control_probe probe;
	struct events *events;
	struct clients *clients;
	struct sessions *sessions;
	struct reload_list reloads;
	uint64_t generation; /* of control_open; 0 before */
	uint64_t started_ms; /* control_clock_ms() */
	uint64_t nofile; /* descriptors that a daemon may have */
	uint64_t next_number;
	bool failed; /* the supervisor broke the rules: exit 1 */
};

/* Numbers for requests, connections and execs. Never repeated, not by a later
 * process of this host's uptime either: they start at the time since boot. */
uint64_t control_number(struct control *);

uint64_t control_clock_ms(void); /* monotonic, for time-outs */
uint64_t control_time_ms(void); /* since 1970, UTC, for people */

/* dispatch.c: the table of what the supervisor may send. */
extern const struct peer_ops control_peer_ops;

/* probe.c. The rows of launcherd, then the report. */
void control_probe_row(struct control *, unsigned row, bool available,
    const char *detail);
/* tools: mask of messages.def; error: empty or why the probe failed. A report
 * is made once; without the rows it says so. */
void control_probe_done(struct control *, unsigned tools, const char *error);

/*
 * confine.c. `user` was looked up before; the configuration's directory is
 * CONTROL_CONF_FD. Empty root, drop, Landlock (reading beneath that directory
 * and nothing else), seccomp. Any failure ends the process.
 */
struct priv_user;
void control_confine(const struct priv_user *user, int parent);

/* reload.c. Reads and checks the whole configuration, makes the name rules of
 * the live runs with it, then swaps it (SPEC W10, Z10, D13). 0: it is in force
 * for what comes, and on its way to the runs. -EINVAL or another: nothing
 * changed. Errors are logged. */
int control_reload(struct control *);
/* The same for a call, which it takes: answered when the runs have the rules,
 * or after a while. */
void reload_for(struct control *, struct call *);
/* Answers what waits: the end. */
void reload_done(struct control *);

/* ------------------------------------------------ given by the session code */

/* Called with all privileges and before the configuration is read: host files
 * that sessions need (/etc/passwd, ...) are read here, for there are none
 * later. control->conf is NULL. */
int sessions_new(struct control *, struct sessions **ret);
void sessions_free(struct sessions *);

/* Live sessions that `who` may see; NULL: all. */
size_t sessions_count(struct control *, const struct caller *who);
/* The event source of a session by its id; NULL when there is none that `who`
 * may see (SPEC X7: no difference is told). */
struct events_source *sessions_source(struct control *,
    const struct caller *who, const char *session_id);
/* The same by the supervisor's number of the sandbox. */
struct events_source *
sessions_source_of_sandbox(struct control *, uint64_t sandbox);

/* One map for each session into the open array: admin.sessions. has_uid,
 * session_id (or NULL) and limit narrow it. */
struct sessions_filter {
	bool has_uid;
	uint64_t uid;
	const char *session_id;
	size_t limit;
};
void sessions_put_rows(struct control *, const struct caller *who,
    const struct sessions_filter *, struct rpc_out *);

/* control_open has come: restored runs are complete, clients follow. */
void sessions_open(struct control *);
/* A client's connection is gone (SPEC K21). Calls of it that are in flight
 * stay valid until they are answered. */
void sessions_client_gone(struct control *, uint64_t client);

peer_fn sessions_on_lookup_answer;
peer_fn sessions_on_launch_answer;
peer_fn sessions_on_run_ended;
peer_fn sessions_on_freeze_answer;
peer_fn sessions_on_stat_answer;
peer_fn sessions_on_run_notice;
peer_fn sessions_on_rules_answer;
peer_fn sessions_on_exec_answer;
peer_fn sessions_on_exec_exit;
peer_fn sessions_on_restore_run;
peer_fn sessions_on_denial;
peer_fn sessions_on_repository;
peer_fn sessions_on_restore_exec;
peer_fn sessions_on_restore_done;

#endif
