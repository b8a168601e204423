/*
 * Sessions (SPEC K): a client's label bound to a sandbox, its state, its
 * commands and its end. This is the session code's own header: what the rest
 * of stockade-control needs is in control.h.
 *
 *	session.c	table, states, handle, timers, end
 *	launch.c	from a spec to a ready sandbox
 *	exec.c		commands and their bytes
 *	sandbox.c	the handlers of sandbox.*
 *	restore.c	after a restart of stockade-control
 *	renew.c		other name rules for live runs
 *	explain.c	a plan in words and as data
 */
#ifndef SUPERVISOR_CONTROL_SESSION_H
#define SUPERVISOR_CONTROL_SESSION_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/cause.h"
#include "supervisor/control/etc_files.h"
#include "supervisor/control/kept.h"
#include "supervisor/control/plan_make.h"
#include "supervisor/control/seen.h"
#include "supervisor/control/renew.h"
#include "supervisor/control/spec.h"
#include "supervisor/control/users.h"

struct call;
struct caller;
struct control;
struct event;
struct events_source;
struct egress_lists;
struct exec;
struct guard;
struct rpc_out;
struct session;

enum session_state {
	SESSION_CREATED,
	SESSION_WARM,
	SESSION_ACTIVE,
	SESSION_SUSPENDED,
	SESSION_DESTROYED,
	SESSION_ERROR,
	SESSION_STATES
};

#define SESSION_DESTROY_GRACE_MS 3000
#define SESSION_DRAIN_MS 2000 /* for output that a client does not take */
#define SESSION_LAUNCH_MS 10000
#define SESSION_ERROR_KEPT_MS 60000 /* a failed one, until it is forgotten */
#define SESSION_TOMBS 256 /* destroyed ones that destroy still knows */

const char *session_state_name(enum session_state state);
/* -1 for an unknown one. */
int session_state_find(const char *name);
/* SPEC K3. Pure. */
bool session_move_permitted(enum session_state from, enum session_state to);

/* Calls that wait for one thing; answered together. */
struct waiters {
	struct call **list;
	size_t n;
};

/* -ENOMEM: the call is still the caller's. */
int waiters_add(struct waiters *w, struct call *call);
/* Takes one, NULL when none is left (then the memory is free too). */
struct call *waiters_take(struct waiters *w);

/*
 * A launch from its call to its session: the question is out, or the plan is
 * made and an older session of the label has to end first.
 */
struct launch {
	TAILQ_ENTRY(launch) entry; /* of sessions->launches */
	TAILQ_ENTRY(launch) wait_entry; /* of waits_for->replacing */
	struct control *control;
	struct session *waits_for;
	struct call *call;
	uint64_t client;
	uid_t owner;
	bool explain; /* answer the plan, start nothing */
	/* With explain: a path that is asked about, in `pool`, and what the
	 * run's user finds there; of this live sandbox, or 0: of the spec. */
	const char *path;
	uint64_t path_of;
	struct lookup_result *found;
	bool replace;
	uint64_t request;
	uint64_t run_uid;
	struct spec *spec;
	struct pool pool; /* of `asked` */
	struct plan_asked asked;
	uint8_t places[SEEN_KEY]; /* which the run is given, for `seen` */
	struct plan_made *made;
	bool stale; /* made with a configuration that was replaced */
	struct event *timer;
};

TAILQ_HEAD(exec_list, exec);
TAILQ_HEAD(launch_list, launch);

/* A sandbox.list that waits for the figures of sessions. */
struct listing {
	TAILQ_ENTRY(listing) entry;
	struct control *control;
	struct call *call;
	uint64_t first, last; /* requests of its stat_ask */
	size_t pending;
	struct event *timer;
};
TAILQ_HEAD(listing_list, listing);
#define LISTING_MS 100
TAILQ_HEAD(session_list, session);

struct session {
	TAILQ_ENTRY(session) entry;
	struct control *control;
	char id[129];
	uid_t owner;
	uint64_t client; /* the connection it ends with; 0: none */
	bool client_here; /* that connection stands */
	uint64_t sandbox; /* the supervisor's number, 0 before */
	uint64_t request; /* of the launch */
	enum session_state state;
	struct events_source *source;

	struct kept kept; /* the plan, the egress lists, the table */
	struct renewal_list renewals;
	uint8_t digest[PLAN_DIGEST];

	uint64_t pid;
	uint64_t landlock_abi;
	uint64_t limits_unset;
	bool kernel_guard; /* no broker: BPF programs hold the names */
	uint64_t figures_ms; /* when they were last asked for; 0: never */
	uint64_t memory_bytes; /* as last told */
	uint64_t pids;
	struct spec_fault fault; /* state error */
	char fault_step[65];

	struct exec_list execs;
	size_t running; /* started or starting, no exit sent */
	size_t ghosts; /* ended, something still holds their pipes */
	bool pid_limit_told;

	struct waiters launching; /* equal launches, state created */
	struct waiters destroying;
	struct waiters freezing; /* one call at most */
	struct launch_list replacing; /* launches that wait for the end */

	struct event *launch_timer;
	struct event *wall_timer;
	struct event *idle_timer;
	struct event *gone_timer;
	struct event *end_timer; /* drain, or an error's time */
	bool ending; /* destroy was asked for */
	bool ended; /* run_ended came; output may still drain */
	bool killed_told;
	enum run_cause cause;
};

struct tomb {
	uid_t owner;
	char id[129];
};

struct sessions {
	struct control *control;
	struct session_list list;
	size_t n;
	struct launch_list launches; /* before they are sessions */
	struct listing_list listings;
	struct etc_host host;
	struct users users;
	struct opened *opened; /* a kept plan, taken apart */
	struct seen_list seen;
	uint64_t removed;
	uint64_t memory_default;
	struct tomb tombs[SESSION_TOMBS];
	size_t next_tomb;
	bool open;
};

/* ------------------------------------------------ table (session.c) */

/* The session of a label that `who` may see: its own before another's. NULL:
 * none, or not for this caller (SPEC X7, K25). */
struct session *
session_find(struct control *, const struct caller *who, const char *id);
struct session *
session_find_owned(struct control *, uid_t owner, const char *id);
struct session *session_of_sandbox(struct control *, uint64_t sandbox);
bool session_was_destroyed(struct control *, uid_t owner, const char *id);

/* A new one in state created, with events `starting` and `state`. NULL: no
 * memory. */
struct session *
session_new(struct control *, const char *id, uid_t owner, bool restored);
/* As kept.h says: valid until another session's is asked for. */
const struct plan *session_plan_of(const struct session *);
const struct session_facts *session_facts_of(const struct session *);
const struct egress_lists *session_egress_of(const struct session *);
/* NULL: no name rules. */
const struct guard *session_guard_of(const struct session *);

/* Answers what waits, closes the stream, frees. */
void session_remove(struct session *);

/* Live ones, of one owner or of all (owner NULL); launches included. */
size_t session_count_of(const struct sessions *, const uid_t *owner);

/* ------------------------------------------------ states and times */

void session_set_state(struct session *, enum session_state);
/* warm or active, by the commands that run; restarts the idle time. */
void session_settle(struct session *);
/* Ends it when its wall time is over, of which some has passed. */
void session_start_wall(struct session *, uint64_t elapsed_ms);
/* A launch that failed: state error (SPEC K22). */
void
session_fail(struct session *, const struct spec_fault *, const char *step);
/* The sandbox is ready: timers, notices, `ready`. */
void session_ready(struct session *);
void session_notice(struct session *, const char *code, const char *detail);
/* `killed`, once: of the whole session when exec_id is NULL. */
void session_tell_killed(struct session *, const char *exec_id,
    enum run_cause cause, uint64_t limit, uint64_t peak);
/* Asks for the end; `client` 0 is this process. Idempotent. */
void session_end(struct session *, enum run_cause cause, uint64_t client);
/* run_ended came and exits may be complete: removes when they are. */
void session_try_finish(struct session *);
/* The connection that it is tied to is gone, or was never there. */
void session_client_lost(struct session *);
void session_adopt(struct session *, const struct caller *who);

/* Starts or restarts a one-shot timer; 0 stops it. */
int session_timer(struct session *, struct event **timer, uint64_t ms,
    void (*fn)(int fd, short what, void *arg));

/* ------------------------------------------------ showing */

/* The fields of a handle into an open map. `full`: with confinement, names that
 * were stripped, and mounts. */
void session_put_handle(const struct session *, struct rpc_out *, bool full);
void session_put_details(const struct session *, struct rpc_out *, bool full);
/* explain.c: the plan as data into an open map; the table is NULL when the plan
 * has no roots. */
void explain_put_plan(const struct plan *, const struct session_facts *,
    const struct egress_lists *, const struct guard *, struct rpc_out *);
void explain_put_confinement(const struct session *,
    const struct session_facts *, const struct plan *, struct rpc_out *);
void session_hex(const uint8_t *bytes, size_t n, char *ret);

/* ------------------------------------------------ launches (launch.c) */

/* Starts a launch for a call; `explain` true: answers the plan and stops
 * there. Takes the call. */
void launch_start(struct control *, struct call *call, bool explain);
/* A look-up of call's parameter `path` for a live session, which answers it.
 * Takes the call. */
void launch_explain_path(struct session *, struct call *call);
/* explain_ask.c: answers from what is there now. */
void explain_answer(struct call *, const struct plan *, const struct guard *,
    const struct session_facts *, const struct launch *);
/* The session that it waited for is gone. */
void launch_go_on(struct launch *);
void launch_free(struct launch *);
/* Answers a call from a fault. */
void session_answer_fault(struct call *call, const struct spec_fault *fault,
    const char *step);

/* sandbox.c; answers with `restarting`. */
void listing_free(struct listing *);

/* ------------------------------------------------ commands (exec.c) */

void exec_free_all(struct session *);
/* The run is gone: every command has ended. */
void exec_end_all(struct session *);
size_t exec_alive(const struct session *);
/* Into an open array: one map each. */
void exec_put_all(const struct session *, struct rpc_out *);
/* A reader took events: go on reading the run's output. */
void exec_on_room(void *session);
/* The connection that started commands is gone: nobody is waited for. */
void exec_client_lost(struct session *, uint64_t client);

#endif
