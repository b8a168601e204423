/*
 * The daemons: started by fork and exec, watched by pidfd, started again with
 * a growing delay, ended in order. What a daemon means is in its row of the
 * table (service.c); nothing here knows one from another.
 */
#ifndef SUPERVISOR_CHILDREN_H
#define SUPERVISOR_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/peer.h"

#define CHILD_DELAY_MIN_MS 100 /* SPEC AB */
#define CHILD_DELAY_MAX_MS 60000
#define CHILD_STABLE_MS 60000 /* then the delay starts anew */
#define CHILD_READY_MS 10000 /* from exec to `ready` */
#define CHILD_END_MS 2000 /* from the close of its channel */
#define CHILD_CHANNEL_FD 3
#define CHILD_EXTRA_FD 4
#define CHILD_EXEC_FAILED 127

struct event;
struct event_base;
struct supervisor;
struct child;

enum child_id {
	CHILD_CONTROL,
	CHILD_LAUNCHERD,
	CHILD_PROXYD,
	CHILD_RESOLVER,
	CHILD_COUNT
};

enum child_status {
	CHILD_DOWN, /* no process; perhaps a timer for the next */
	CHILD_STARTING, /* until `ready` */
	CHILD_READY,
	CHILD_ENDING, /* its channel is closed, it is killed in time */
};

/* States of a daemon's peer, for the handler tables. */
enum child_peer_state {
	CHILD_PEER_STARTING, /* before `ready` */
	/* Control: rows and restores are being sent. Launcherd: the probe
	 * runs. */
	CHILD_PEER_SETUP,
	CHILD_PEER_OPEN,
};

/* What a daemon is told by its arguments: nothing secret, nothing of a
 * client's. */
enum child_args {
	CHILD_ARGS_NONE,
	/* -f, -s, -S; descriptor 4 is the configuration's directory. */
	CHILD_ARGS_CONF,
	CHILD_ARGS_LEVEL, /* -l, the log level */
	CHILD_ARGS_ROOT, /* the same and -r, an empty directory */
};

struct child_kind {
	const char *program; /* in the libexec directory */
	enum proc proc;
	const struct peer_ops *ops;
	enum child_args args;
	int (*on_ready)(struct supervisor *, struct child *);
	/* It is gone; `status` as waitid(2) gave it. */
	void (*on_gone)(struct supervisor *, struct child *);
};

struct child {
	struct supervisor *supervisor;
	const struct child_kind *kind;
	enum child_id id;
	enum child_status status;
	pid_t pid;
	int pidfd;
	struct peer *peer;
	struct event *exited;
	struct event *timer;
	struct event *resume; /* while its reading is stopped */
	struct child *slow; /* the one that it waits for */
	unsigned starts; /* how often it was started */
	unsigned failures; /* since it was last stable */
	int exit_status; /* of the last process, -1: a signal */
};

/* Remembers RLIMIT_NOFILE for the daemons: they, and so the runs, start with
 * the limit that we were started with, not with our raised one. */
void children_save_limits(void);

void child_init(struct child *, struct supervisor *, enum child_id,
    const struct child_kind *);
void child_done(struct child *);

/* Starts it now; a failure is one of the daemon and counted as such. */
void child_start(struct child *);
/* `ready` has come. */
void child_ready(struct child *);
/* Ends it: closes its channel, kills it when it does not go. */
void child_end(struct child *);
/* Ends it at once: it broke the rules. */
void child_kill(struct child *);
/* For the tables: what ends every peer. ctx is the child. */
void
child_on_end(void *ctx, struct peer *, enum chan_end why, const char *why_text);
/* The peer of a daemon that is ready, else NULL (which peer_send takes). */
struct peer *child_peer(struct child *);

/* Milliseconds until the next start after so many failures (>= 1). */
uint64_t child_delay_ms(unsigned failures);

/*
 * Stops reading from `from` while `to` has not taken what it was sent: a busy
 * daemon is then slowed down instead of the other being dropped for a full
 * queue. Called after each relayed message.
 */
void child_balance(struct child *from, struct child *to);

#endif
