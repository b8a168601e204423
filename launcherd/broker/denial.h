/*
 * Violations on their way to launcherd. A run can be refused as often as it
 * likes, so nothing here waits: equal refusals within a second are one record
 * with a count, and what neither the table nor the channel takes is counted
 * and told as one record without a path (SPEC D15).
 */
#ifndef BROKER_DENIAL_H
#define BROKER_DENIAL_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/cause.h"
#include "protocol/message.h"

struct broker;
struct guard_rule;
struct request;

#define DENIALS_MAX 256
#define DENIALS_BURST 256
#define DENIALS_RATE 100 /* a second */

struct denial {
	int64_t since_ms; /* when the first that waits came */
	uint64_t waiting; /* refusals that were not told yet; 0: free */
	struct msg_broker_denial msg; /* its count is filled in when sent */
};

struct denials {
	struct denial rows[DENIALS_MAX];
	size_t nrows; /* rows beyond were never used */
	uint64_t waiting; /* sum over the rows */
	unsigned spent; /* of the burst */
	int64_t spent_ms; /* when that was counted last */
	uint64_t dropped;
	int64_t dropped_ms; /* when the last count of these was sent */
	unsigned dropped_action;
};

/* rule may be NULL. */
void denial_record(struct broker *, struct request *, enum violation_action,
    const char *path, const struct guard_rule *rule);

/* Milliseconds until denial_tick() has something to do, -1: never. */
int denial_timeout(const struct denials *);
void denial_tick(struct broker *);
/* Everything that waits, now: before the end. */
void denial_flush(struct broker *);

#endif
