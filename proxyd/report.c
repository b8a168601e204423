/*
 * Refusals to the supervisor; see report.h. Runs in stockade-proxyd. Targets
 * are a run's words, checked for their form or cleaned.
 */
#include "proxyd/report.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "protocol/peer.h"
#include "proxyd/decide.h"
#include "proxyd/proxyd.h"
#include "proxyd/session.h"

/* Only keeps a flood off the channel: stockade-control merges for 5 s (SPEC
 * L6), and what comes later than that would be a record of its own. */
#define MERGE_S 2
#define ITEMS_MAX 128
#define RATE_MAX 64 /* messages a second and session */
#define QUEUE_HIGH 1024 /* packets that wait for the supervisor */

struct report_item {
	TAILQ_ENTRY(report_item) link;
	time_t since;
	uint64_t count; /* since the last message */
	struct decide_verdict verdict;
	uint16_t port;
	char host[];
};

void
report_init(struct report *report)
{
	memset(report, 0, sizeof(*report));
	TAILQ_INIT(&report->items);
}

static void
send_violation(struct session *session, const struct decide_verdict *verdict,
    const char *host, uint16_t port, uint64_t count)
{
	struct msg_violation msg = { .unused_ = 0 };
	char text[DECIDE_TEXT_MAX + 1];

	msg.sandbox = session->id;
	msg.action = VIOLATION_NETWORK;
	msg.port = port;
	msg.count = count;
	MSG_SET_STR(msg.target, host);
	MSG_SET_STR(msg.reason, decide_reason_code(verdict->reason));
	decide_rule_text(verdict, host, port, text);
	MSG_SET_STR(msg.rule, text);
	decide_remedy_text(verdict->reason, host, port, text);
	MSG_SET_STR(msg.remedy, text);
	(void)peer_send(session->p->supervisor, MSG_violation, &msg, NULL, 0);
	log_event(EV_EGRESS_DENIED, LF_NUM(LK_SANDBOX, session->id),
	    LF_STR(LK_HOST, host), LF_NUM(LK_PORT, port),
	    LF_STR(LK_REASON, msg.reason), LF_STR(LK_RULE, msg.rule),
	    LF_NUM(LK_COUNT, count));
}

static struct report_item *
find(struct report *report, const struct decide_verdict *verdict,
    const char *host, uint16_t port)
{
	struct report_item *item;

	TAILQ_FOREACH (item, &report->items, link)
		if (item->port == port &&
		    item->verdict.reason == verdict->reason &&
		    strcmp(item->host, host) == 0)
			return item;
	return NULL;
}

/* Whether one more message may be sent now. */
static bool
have_room(struct session *session)
{
	struct report *report = &session->report;
	time_t now = proxyd_now(session->p);

	if (report->now != now) {
		report->now = now;
		report->sent = 0;
	}
	if (report->sent >= RATE_MAX || session->p->supervisor == NULL ||
	    chan_pending(peer_chan(session->p->supervisor)) > QUEUE_HIGH)
		return false;
	report->sent++;
	return true;
}

void
report_refusal(struct session *session, const struct decide_verdict *verdict,
    const char *host, uint16_t port)
{
	struct report *report = &session->report;
	struct report_item *item = find(report, verdict, host, port);
	size_t len = strlen(host) + 1;

	if (item != NULL) {
		item->count++;
		return;
	}
	if (report->nitems >= ITEMS_MAX || !have_room(session)) {
		report->more++;
		return;
	}
	send_violation(session, verdict, host, port, 1);
	item = calloc(1, sizeof(*item) + len);
	if (item == NULL)
		return;
	memcpy(item->host, host, len);
	item->port = port;
	item->since = proxyd_now(session->p);
	item->verdict = *verdict;
	TAILQ_INSERT_TAIL(&report->items, item, link);
	report->nitems++;
}

static void
flush_item(struct session *session, struct report_item *item)
{
	if (item->count > 0)
		send_violation(session, &item->verdict, item->host, item->port,
		    item->count);
	TAILQ_REMOVE(&session->report.items, item, link);
	session->report.nitems--;
	free(item);
}

static void
flush_more(struct session *session)
{
	struct decide_verdict verdict = {
		.reason = DECIDE_host_not_allowed,
		.pattern = "",
		.origin = "",
	};
	struct report *report = &session->report;

	if (report->more == 0)
		return;
	send_violation(session, &verdict, "other hosts", 0, report->more);
	report->more = 0;
}

void
report_tick(struct session *session)
{
	time_t now = proxyd_now(session->p);
	struct report_item *item;

	while ((item = TAILQ_FIRST(&session->report.items)) != NULL &&
	    now - item->since >= MERGE_S)
		flush_item(session, item);
	flush_more(session);
}

void
report_done(struct session *session)
{
	struct report_item *item;

	while ((item = TAILQ_FIRST(&session->report.items)) != NULL)
		flush_item(session, item);
	flush_more(session);
}
