/*
 * stockade-launcherd: root with a bounded set of capabilities, no network of
 * its own, no byte of a client. One context, passed as first argument.
 */
#ifndef LAUNCHERD_LAUNCHERD_H
#define LAUNCHERD_LAUNCHERD_H

#include <stdbool.h>

#include "common/priv.h"
#include "launcherd/lookups.h"
#include "launcherd/netns.h"
#include "launcherd/run.h"
#include "protocol/cause.h"
#include "protocol/peer.h"

struct cgroup_tree;
struct event;
struct event_base;
struct probe;
struct view;

/* State of the supervisor's channel. */
enum launcherd_state { LAUNCHERD_WAITING, LAUNCHERD_RUNNING };

struct launcherd {
	struct event_base *base;
	struct peer *supervisor;
	bool allow_userns;
	int null_fd; /* /dev/null */
	int libexec_fd; /* directory of the programs */
	int init_fd; /* O_PATH, stockade-init */
	int broker_fd; /* O_PATH, stockade-broker; -1: not there */
	struct priv_user broker_user; /* uid 0: there is none */
	enum guard_mechanism guard; /* in force; GUARD_AUTO: none */
	enum guard_mechanism guard_choice; /* for the probe */
	int connect_fd; /* O_PATH, stockade-connect; -1: not there */
	struct kernel_guard *kernel; /* launcherd/guard/kernel.h; NULL: */
	char kernel_why[256];
	struct netns_home home;
	struct netns spare; /* made ahead for the next launch; fds -1: none */
	struct event *spare_timer;
	struct cgroup_tree *cgroups; /* NULL: no usable tree */
	int cgroup_error; /* why */
	struct view *view;
	struct event *view_event;
	struct runs runs;
	struct lookups lookups;
	struct probe *probe;
	int status; /* exit status once the loop ends */
};

/* The handler table (dispatch.c). */
extern const struct peer_ops launcherd_peer_ops;

/* Ends the process at once when it can no longer vouch for its own state
 * (ids or network namespace): kills all runs first. */
void
launcherd_panic(struct launcherd *, const char *why) __attribute__((noreturn));

/*
 * deny-list seccomp, last step of start-up (confine.c), and the last step of
 * set-up, when the guard's programs are in the kernel: from then on bpf(2) is
 * refused, but for what works on maps where `maps`. Every child is born so. 0
 * or -errno.
 */
int launcherd_confine(void);
int launcherd_confine_bpf(bool maps);

/* Descriptors that must be free before work is taken on, most for what keeps
 * most: so that messages arrive whole and what lives can still be ended. */
#define FDS_FOR_LOOKUP 16
#define FDS_FOR_EXEC 32
#define FDS_FOR_LAUNCH 64

#endif
