/*
 * The runs: one sandbox each, as a state table.
 *
 *	STARTING ──init_ready──▶ READY ──destroy──▶ STOPPING ──grace──▶ KILLED
 *	    │ failure, time-out    │ oom, end of init │ end of init        │ empty
 *	    └──────────────────────┴──────────────────┴──────▶ KILLED ──▶ REMOVING
 *	                                                              removed: gone
 *
 * A run leaves the table only when its bubblewrap was reaped, its cgroup is
 * empty and its directories are removed; then the one last message is sent:
 * launch_answer with the failure if it never became ready, else run_ended.
 * Nothing waits: every step is taken when the kernel tells (pidfd, inotify on
 * cgroup.events, eventfd, channel) or when a timer ends.
 */
#ifndef LAUNCHERD_RUN_H
#define LAUNCHERD_RUN_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcherd/cgroup.h"
#include "launcherd/source.h"
#include "launcherd/spawn.h"

struct event;
struct exec;
struct guarding;
struct inspection;
struct launcherd;
struct masking;
struct msg_destroy_ask;
struct msg_freeze_ask;
struct msg_stat_ask;
struct peer;
struct probe;
struct view_tree;

enum run_state {
	RUN_STARTING,
	RUN_READY,
	RUN_STOPPING,
	RUN_KILLED,
	RUN_REMOVING
};

#define RUN_STEP_MAX 64
#define RUN_REASON_MAX 1024
#define RUNS_MAX 4096

/* Why a start failed; code 0: it did not. */
struct run_failure {
	unsigned code; /* enum api_error */
	int error; /* errno, positive */
	char step[RUN_STEP_MAX + 1];
	char reason[RUN_REASON_MAX + 1];
};

TAILQ_HEAD(exec_list, exec);

struct run {
	TAILQ_ENTRY(run) entry;
	struct launcherd *l;
	uint64_t sandbox; /* 0: the probe's */
	uint64_t request;
	enum run_state state;
	bool was_ready; /* launch_answer was sent with code 0 */
	bool cause_known;
	unsigned cause; /* enum run_cause */
	uint64_t limit;
	uint64_t peak;
	struct run_failure *failure; /* heap; NULL while all is well */
	struct cgroup cgroup;
	bool has_cgroup;
	unsigned limits_unset;
	struct spawned bwrap;
	struct peer *init;
	bool init_ready; /* it has said so */
	struct guarding *guarding; /* broker_run.h; NULL: no name rules */
	struct inspection *inspection; /* inspect.h */
	bool inspected;
	struct masking *masking; /* masking.h; NULL: none, or all mounted */
	struct view_tree *etc;
	unsigned landlock_abi;
	pid_t pid; /* of bubblewrap, for show */
	int error_fd; /* what bubblewrap says */
	int oom_fd;
	int watches[CGROUP_WATCHES];
	size_t nwatches;
	bool pids_noticed;
	struct event *exit_event;
	struct event *oom_event;
	struct event *timer;
	unsigned remove_tries;
	bool freezing; /* freeze_ask not answered yet */
	bool freeze_want;
	bool frozen;
	uint64_t freeze_request;
	struct event *freeze_timer;
	struct exec_list execs;
	size_t nexecs;
	struct probe *probe; /* told instead of the supervisor */
};

TAILQ_HEAD(run_list, run);

struct runs {
	struct run_list list;
	size_t count;
	uint64_t gone; /* so far */
	int watch_fd; /* inotify */
	struct event *watch_event;
	struct exec_list ended; /* exec.h */
	size_t nended;
	struct event *ended_timer;
	struct event *pids_timer; /* pending: a silent run has commands */
};

/* 0 or -errno. runs_done frees what is left without waiting. */
int runs_init(struct launcherd *);
void runs_done(struct launcherd *);

/* What a launch is made of besides the plan: launcherd's own knowledge. */
struct run_order {
	uint64_t sandbox;
	uint64_t request;
	struct source_user user;
	struct probe *probe;
	int scratch_fd; /* of a probe whose plan has a mount: that */
};

/*
 * Starts a run; takes plan_fd and guard_fd (-1: no name rules). Success and
 * failure are told by launch_answer (or to order->probe), possibly before this
 * returns.
 */
void run_launch(struct launcherd *, const struct run_order *, int plan_fd,
    int guard_fd);
/* Init is ready and the masks are mounted: tells so, and commands are taken. */
void run_ready(struct run *);
/* Takes the step that is possible now; may free the run. */
void run_advance(struct run *);
/* Its processes are told to end; only while it is being stopped. */
void run_stop_init(struct run *);
/* The run goes on for `ms` at most, then it is ended by the service. */
void run_end_soon(struct run *, long ms);

struct run *run_find(struct launcherd *, uint64_t sandbox);
void run_destroy(struct launcherd *, const struct msg_destroy_ask *);
void run_freeze(struct launcherd *, const struct msg_freeze_ask *);
void run_stat(struct launcherd *, const struct msg_stat_ask *);
/* Ends a run at once with a cause (enum run_cause). */
void run_kill(struct run *, unsigned cause);
/* Out of memory is told before the exit of what it killed (SPEC K8): true when
 * the run is over for that reason. */
bool run_check_oom(struct run *);
/* Refused forks are told once (SPEC K19). cgroup2 notifies; v1 counts without
 * a notification since Linux 6.10, so it is also asked when a command ends. */
void run_check_pids(struct run *);
/* A command was started: where the kernel does not notify (v1), refused forks
 * are looked for once a second as long as a command runs. */
void run_poll_pids(struct run *);

#endif
