/*
 * Refusals to the supervisor; see report.h. Runs in stockade-proxyd. Targets
 * are a run's words, checked for their form or cleaned.
 */
#include "proxyd/report.h"

#include <string.h>

#include "common/log.h"
#include "protocol/peer.h"
#include "proxyd/decide.h"
#include "proxyd/proxyd.h"
#include "proxyd/session.h"

/* These only keep a flood off the channel: stockade-control merges (SPEC L6). */
#define RATE_MAX 64 /* messages a second and session */
#define QUEUE_HIGH 1024 /* packets that wait for the supervisor */

void
report_init(struct report *report)
{
	memset(report, 0, sizeof(*report));
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
	if (have_room(session))
		send_violation(session, verdict, host, port, 1);
	else
		session->report.more++;
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
	flush_more(session);
}

void
report_done(struct session *session)
{
	flush_more(session);
}
