/*
 * A limit for log events that another process can cause as often as it likes:
 * repeats are counted, not repeated.
 */
#ifndef SUPERVISOR_QUOTA_H
#define SUPERVISOR_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#define QUOTA_MAX 20 /* events a second */

struct quota {
	uint64_t second;
	unsigned used;
	uint64_t left_out;
};

/* True when one more may be logged now; *ret_left_out: how many were left out
 * since the last that was. */
bool quota_take(struct quota *, uint64_t now_ms, uint64_t *ret_left_out);

#endif
