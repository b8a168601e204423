/*
 * Violation records of one session (SPEC L): merged, kept, sent as events and
 * logged. All texts come from a run or its enforcement points and are hostile:
 * they are cleaned, redacted and cut here.
 *
 * Merging (L6): the first of equal (action, target, port) is recorded and sent
 * at once; equal ones within VIOLATIONS_MERGE_MS are added to its record, and
 * if there were any, one more event tells how many when the time is over.
 */
#ifndef SUPERVISOR_CONTROL_VIOLATIONS_H
#define SUPERVISOR_CONTROL_VIOLATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/cause.h"

struct event_base;
struct events_source;
struct rpc_out;
struct violations;

#define VIOLATIONS_MERGE_MS 5000
#define VIOLATIONS_MERGE_MAX 512 /* open at once, per session */
#define VIOLATIONS_KEPT 1000 /* per session, the newest */
#define VIOLATIONS_TEXT_MAX 4096 /* bytes of a text, cleaned */

/* Texts may be NULL. */
struct violation {
	enum violation_action action;
	const char *target;
	unsigned port; /* 0: none */
	const char *rule;
	const char *reason; /* a code */
	const char *remedy;
	const char *raw;
	const char *exe;
	uint64_t pid; /* inside; 0: unknown */
	uint64_t count; /* 0 counts as 1 */
};

struct violations *violations_new(struct event_base *, struct events_source *);
void violations_free(struct violations *);

/* Records one; event `violation` and log event VIOLATION follow. */
void violations_record(struct violations *, const struct violation *);
/* Sends what waits for the end of its merge time: before a session's last
 * event. */
void violations_flush(struct violations *);

/* Maps into an open array, oldest first: those later than since_ms, the newest
 * `limit` of them. Returns how many. */
size_t violations_put_rows(const struct violations *, uint64_t since_ms,
    size_t limit, struct rpc_out *);
size_t violations_total(const struct violations *);

/* "[sandbox] denied <action> on <target>" (L10), cleaned. */
void violation_summary(const struct violation *, char *ret, size_t size);

#endif
