/*
 * Questions of control that are on their way to launcherd. Control's numbers
 * are its own; towards launcherd each gets a number of ours that is never used
 * again, so that an answer to an earlier control cannot reach a later one.
 */
#ifndef SUPERVISOR_REQUESTS_H
#define SUPERVISOR_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#define REQUESTS_MAX 4096
/* A look-up's ids may be used this long (launcherd keeps them as long). */
#define REQUEST_LOOKUP_MS 30000

enum request_kind {
	REQUEST_LOOKUP,
	REQUEST_FREEZE,
	REQUEST_STAT,
	REQUEST_RULES
};

struct request {
	TAILQ_ENTRY(request) next;
	uint64_t number; /* ours */
	uint64_t theirs; /* control's */
	enum request_kind kind;
	bool orphan; /* its control is gone */
	/* look-ups: whose, and when it was answered, 0 not yet */
	uint64_t client;
	uid_t run_uid;
	uint64_t answered_ms;
	/* the others: about which sandbox */
	uint64_t sandbox;
	/* rules: what is the sandbox's once launcherd says so; -1 else */
	int plan_fd;
	int guard_fd;
	uint8_t digest[32];
};

struct requests {
	uint64_t last;
	size_t count;
	TAILQ_HEAD(request_list, request) list;
};

void requests_init(struct requests *);
void requests_done(struct requests *);

/* -EEXIST: a live one with this number and kind; -ENOSPC, -ENOMEM. Look-ups
 * that were answered more than REQUEST_LOOKUP_MS before `now_ms` are dropped
 * first. */
int requests_add(struct requests *, enum request_kind, uint64_t theirs,
    uint64_t now_ms, struct request **ret);
struct request *
requests_find(struct requests *, enum request_kind, uint64_t number);
/* By control's number, orphans left out. */
struct request *
requests_find_theirs(struct requests *, enum request_kind, uint64_t theirs);
/* Closes its descriptors, too. */
void requests_remove(struct requests *, struct request *);
/* The sandbox is gone, and nobody waits for its rules. */
void requests_drop_rules(struct requests *, uint64_t sandbox);
/* Control is gone: unanswered ones become orphans, the rest is dropped. */
void requests_orphan(struct requests *);
/* Launcherd is gone: hands each unanswered one to fn, then drops all. */
void requests_fail(struct requests *,
    void (*fn)(void *ctx, const struct request *), void *ctx);

#endif
