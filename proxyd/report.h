/*
 * Refusals of one session on their way to the supervisor: each is a message
 * `violation` (SPEC G26, L1).  A run can cause refusals faster than anybody
 * can read them, so equal ones within 2 s are counted and sent as one, and
 * beyond a rate only their number is (L6).
 */
#ifndef PROXYD_REPORT_H
#define PROXYD_REPORT_H

#include <sys/queue.h>

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct decide_verdict;
struct session;

struct report_item;
TAILQ_HEAD(report_list, report_item);

struct report {
	struct report_list items; /* oldest first */
	size_t nitems;
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
