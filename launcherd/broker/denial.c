/* See denial.h. The channel is descriptor 3, and never blocks. */
#include "launcherd/broker/denial.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "launcherd/broker/broker.h"
#include "launcherd/broker/main.h"
#include "protocol/guard.h"

#define MERGE_MS 800 /* told within a second (SPEC D15) */

static int64_t
now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool
same(const struct denial *d, const struct msg_broker_denial *m)
{
	return d->waiting > 0 && d->msg.action == m->action &&
	    d->msg.pid == m->pid && strcmp(d->msg.path, m->path) == 0 &&
	    strcmp(d->msg.rule, m->rule) == 0;
}

/* Whether one more may be told at once. */
static bool
may_tell(struct denials *all, int64_t now)
{
	int64_t back = (now - all->spent_ms) * DENIALS_RATE / 1000;

	if (back > 0) {
		all->spent -= back > all->spent ? all->spent : (unsigned)back;
		all->spent_ms = now;
	}
	return all->spent < DENIALS_BURST;
}

/* Sends what waits in a row; false when the channel does not take it. */
static bool
send_row(struct denials *all, struct denial *d)
{
	if (d->waiting == 0)
		return true;
	d->msg.count = d->waiting;
	if (!channel_try(MSG_broker_denial, &d->msg))
		return false;
	all->waiting -= d->waiting;
	d->waiting = 0;
	return true;
}

static void
send_dropped(struct denials *all, int64_t now)
{
	static struct msg_broker_denial msg;

	if (all->dropped == 0)
		return;
	memset(&msg, 0, sizeof(msg));
	msg.action = all->dropped_action;
	msg.count = all->dropped;
	if (channel_try(MSG_broker_denial, &msg)) {
		all->dropped = 0;
		all->dropped_ms = now;
	}
}

/* The row of the same refusal, else a free one, else NULL. */
static struct denial *
row_for(struct denials *all, const struct msg_broker_denial *m, int64_t now)
{
	struct denial *empty = NULL;

	for (size_t i = 0; i < all->nrows; i++) {
		struct denial *d = &all->rows[i];

		if (same(d, m))
			return d;
		if (empty == NULL && d->waiting == 0)
			empty = d;
	}
	if (empty == NULL && all->nrows < DENIALS_MAX)
		empty = &all->rows[all->nrows++];
	if (empty == NULL)
		return NULL;
	empty->msg = *m;
	empty->since_ms = now;
	return empty;
}

static void
rule_text(const struct guard_rule *rule, struct msg_broker_denial *ret)
{
	if (rule == NULL)
		return;
	MSG_SET_STR(ret->rule, rule->text);
	MSG_SET_STR(ret->remedy, rule->remedy);
}

void
denial_record(struct broker *b, struct request *rq,
    enum violation_action action, const char *path,
    const struct guard_rule *rule)
{
	static struct msg_broker_denial msg;
	struct denials *all = &b->denials;
	int64_t now = now_ms();
	struct denial *d;

	memset(&msg, 0, sizeof(msg));
	msg.action = (uint64_t)action;
	msg.pid = (uint64_t)target_tgid(b, rq);
	MSG_SET_STR(msg.path, path);
	rule_text(rule, &msg);
	target_exe(b, rq, msg.exe, sizeof(msg.exe));
	msg.count = 1;
	if (may_tell(all, now) && channel_try(MSG_broker_denial, &msg)) {
		all->spent++;
		return;
	}
	d = row_for(all, &msg, now);
	if (d == NULL) {
		all->dropped++;
		all->dropped_action = (unsigned)action;
		return;
	}
	d->waiting++;
	all->waiting++;
}

int
denial_timeout(const struct denials *all)
{
	return all->waiting > 0 || all->dropped > 0 ? MERGE_MS / 10 : -1;
}

void
denial_tick(struct broker *b)
{
	struct denials *all = &b->denials;
	int64_t now;

	if (all->waiting == 0 && all->dropped == 0)
		return;
	now = now_ms();
	for (size_t i = 0; i < all->nrows; i++) {
		struct denial *d = &all->rows[i];

		if (d->waiting > 0 && now - d->since_ms >= MERGE_MS &&
		    !send_row(all, d))
			return;
	}
	if (now - all->dropped_ms >= MERGE_MS)
		send_dropped(all, now);
}

void
denial_flush(struct broker *b)
{
	static struct msg_broker_denial msg;
	struct denials *all = &b->denials;

	for (size_t i = 0; i < all->nrows; i++) {
		struct denial *d = &all->rows[i];

		if (d->waiting == 0)
			continue;
		d->msg.count = d->waiting;
		channel_tell(MSG_broker_denial, &d->msg);
		all->waiting -= d->waiting;
		d->waiting = 0;
	}
	if (all->dropped == 0)
		return;
	memset(&msg, 0, sizeof(msg));
	msg.action = all->dropped_action;
	msg.count = all->dropped;
	channel_tell(MSG_broker_denial, &msg);
	all->dropped = 0;
}
