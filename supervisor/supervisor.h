/*
 * stockaded: the context that every part gets as its first argument, and what
 * the parts offer each other. Runs as root with the capabilities of confine.c.
 * Reads fixed records of its own children and nothing else: no file, no
 * client, no name from the network.
 */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/priv.h"
#include "protocol/message.h"
#include "supervisor/children.h"
#include "supervisor/clients.h"
#include "supervisor/quota.h"
#include "supervisor/requests.h"
#include "supervisor/sandbox_table.h"

struct event;
struct event_base;

/* The command line; main.c. */
struct options {
	const char *conf_file; /* -f */
	bool conf_given;
	const char *libexec_dir; /* absolute */
	const char *sandbox; /* option or environment; NULL: neither */
	const char *sandbox_source; /* "option" or "environment" */
	bool check; /* -n */
	bool print; /* -v with -n */
	bool to_stderr; /* -d */
};

enum phase {
	PHASE_START, /* until the socket is open */
	PHASE_RUN,
	PHASE_STOP_RUNS, /* the sandboxes end */
	PHASE_STOP_DAEMONS, /* then the daemons */
};

/* A daemon that fails this often before the first opening ends the start. */
#define START_TRIES 5
/* Launcherd that fails this often while it probes: the probe has failed. */
#define PROBE_TRIES 3
#define STOP_GRACE_MS 2000 /* TERM inside, then cgroup.kill */
#define STOP_RUNS_MS 5000 /* then the supervisor kills by itself */

struct probe_result {
	bool done;
	bool seen[PROBE_ROW_COUNT];
	struct msg_probe_row rows[PROBE_ROW_COUNT];
	struct msg_probe_done end;
};

#define SUPERVISOR_USERS 3
/* Descriptors that a sandbox costs here, and those that are left for the rest:
 * without them a packet's descriptors would be lost, which looks like a lie. */
#define SANDBOX_FDS 6
#define SPARE_FDS 256

struct supervisor {
	struct event_base *base;
	struct options options;
	enum phase phase;
	int exit_status;
	bool reloading;

	int conf_dir; /* the configuration's directory */
	const char *conf_name; /* in it */
	bool have_conf;
	struct msg_conf_service conf;
	struct client_gids gids;
	struct priv_user users[SUPERVISOR_USERS]; /* control's first */
	uint64_t sandboxes_max; /* that our descriptors suffice for */
	struct quota refusals; /* refused calls in the log */

	int runtime_fd; /* locked while the service lives */
	int listen_fd;
	char listen_name[108]; /* as bound: see clients.h */
	char instance[64];

	struct child children[CHILD_COUNT];
	struct clients clients;
	struct sandboxes sandboxes;
	struct requests requests;
	struct probe_result probe;
	bool fed; /* this control was sent rows and runs */
	unsigned restores; /* restore_ask without restore_done */
	unsigned stop_ticks;

	struct event *stop_timer;
	struct event *watchdog;
	struct event *signals[3];
};

/* ------------------------------------------------ main.c */
/* Arguments of a daemon's process; argv has room for 8. */
void supervisor_arguments(const struct supervisor *, const struct child_kind *,
    const char **argv);
uint64_t supervisor_now_ms(void);

/* ------------------------------------------------ service.c */
extern const struct child_kind child_kinds[CHILD_COUNT];
/* Starts control; the rest follows from what arrives. */
void service_start(struct supervisor *);
/* Goes one step further when what it waits for has come. */
void service_advance(struct supervisor *);
/* Ordered end; `status` becomes the exit status. A second call hurries. */
void service_stop(struct supervisor *, int status);
/* A run is over: proxyd forgets it, control hears `cause`. */
void service_run_ended(struct supervisor *, struct sandbox *,
    const struct msg_run_ended *);
/* Tells proxyd about a run's listeners, if it is there. */
void service_egress_open(struct supervisor *, const struct sandbox *);
/* Launcherd has sent all live commands: control may open. */
void service_restored(struct supervisor *);
/* Control, when it may hear of runs (it was sent the restored ones); else
 * NULL, which peer_send takes. */
struct peer *service_listener(struct supervisor *);
/* Answers launch_ask with a refusal. */
void service_refuse_launch(struct supervisor *, uint64_t request, unsigned code,
    int error, const char *reason);
void service_reload(struct supervisor *);

/* ------------------------------------------------ runtime.c */
/* In the runtime directory: a root for daemons that need no files. */
#define RUNTIME_EMPTY "empty"
/* Directories, lock, groups, instance name; from s->conf. 0, or -errno after
 * one line in the log. */
int runtime_open(struct supervisor *);
/* Makes the client socket. 0, or -errno after one line in the log. */
int runtime_listen(struct supervisor *);
/* Removes the socket's name and what else this instance left. */
void runtime_close(struct supervisor *);
/* [a-z0-9-], the same for the same runtime directory. */
void runtime_instance(const char *runtime_dir, char *ret, size_t size);

/* ------------------------------------------------ dispatch_control.c */
extern const struct peer_ops control_ops;

/* ------------------------------------------------ dispatch_daemons.c */
peer_fn dispatch_ready;
extern const struct peer_ops launcherd_ops;
extern const struct peer_ops proxyd_ops;
extern const struct peer_ops resolver_ops;

/* ------------------------------------------------ confine.c */
/* Capabilities kept. Names the first that is missing and exits 1. */
void confine_capabilities(void);
/* No core, not dumpable, no_new_privs, the deny-list. Exits 1 on failure. */
void confine_supervisor(void);

#endif
