/*
 * The sandboxes: the only place where a number becomes a thing. Numbers are
 * given out once in the life of the service.
 */
#ifndef SUPERVISOR_SANDBOX_TABLE_H
#define SUPERVISOR_SANDBOX_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#define SANDBOX_BUCKETS 256

enum sandbox_state {
	SANDBOX_LAUNCHING, /* launcherd was asked */
	SANDBOX_RUNNING, /* it has answered */
	SANDBOX_ENDING, /* asked to end */
};

struct sandbox {
	LIST_ENTRY(sandbox) next;
	uint64_t id;
	enum sandbox_state state;
	uid_t owner_uid; /* of the client that asked */
	uid_t run_uid;
	uint64_t request; /* control's number of the launch */
	uint64_t generation; /* of the control that asked */
	uint8_t digest[32];
	int plan_fd; /* sealed memfds, never read here */
	int egress_fd;
	int guard_fd; /* -1: no name rules */
	int cgroup_fd; /* -1 until launch_made */
	int http_fd;
	int socks_fd;
	bool frozen;
	uint64_t pid;
	uint64_t landlock_abi;
	uint64_t limits_unset;
	uint64_t kernel_guard;
};

struct sandboxes {
	uint64_t last;
	size_t count;
	LIST_HEAD(sandbox_bucket, sandbox) buckets[SANDBOX_BUCKETS];
};

void sandboxes_init(struct sandboxes *);
void sandboxes_done(struct sandboxes *);

/* A new entry with its number and no descriptors; NULL: no memory. */
struct sandbox *sandboxes_add(struct sandboxes *);
/* Closes its descriptors and frees it. */
void sandboxes_remove(struct sandboxes *, struct sandbox *);

/* A number is a live sandbox, one that has ended (late messages name those:
 * no fault of the sender), or one that was never given out (a lie). */
enum sandbox_found { SANDBOX_LIVE, SANDBOX_GONE, SANDBOX_NEVER };
enum sandbox_found
sandboxes_find(struct sandboxes *, uint64_t id, struct sandbox **ret);

/* Calls fn for every entry; fn may remove the entry that it is given. */
void sandboxes_each(struct sandboxes *, void (*fn)(void *ctx, struct sandbox *),
    void *ctx);

/* Writes "1" to cgroup.kill of the run: every process of it, also frozen ones
 * and ones just forking, gets SIGKILL (Linux 5.14). 0 or -errno; 0 when the
 * run has no cgroup yet. */
int sandbox_kill(const struct sandbox *);

#endif
