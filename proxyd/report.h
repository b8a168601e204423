/*
 * Refusals of one session on their way to the supervisor: each is a message
 * `violation` (SPEC G26, L1).  A run can cause refusals faster than anybody
 * can read them, so beyond a rate only their number is sent. Merging equal
 * ones is stockade-control's (L6).
 */
#ifndef PROXYD_REPORT_H
#define PROXYD_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct decide_verdict;
struct session;

struct report {
	unsigned sent; /* in second `now` */
	time_t now;
	uint64_t more; /* refusals that are only counted */
};

void report_init(struct report *report);
/* Sends what is still counted. */
void report_done(struct session *session);
void report_refusal(struct session *session,
    const struct decide_verdict *verdict, const char *host, uint16_t port);
/* Every second. */
void report_tick(struct session *session);

#endif
