/*
 * What the supervisor may send, and when. In stockade-control. A state or a
 * type that is not in the table breaks the rules, and the process ends: a
 * supervisor that breaks them is not one.
 *
 * Answers that name something that has ended meanwhile are no fault of
 * anybody: handlers ignore them.
 */
#include <event2/event.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/size.h"
#include "supervisor/control/client.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/violations.h"

#define PROBING (1u << CONTROL_PROBING)
#define OPEN (1u << CONTROL_OPEN)

/* The probe's only line for people (SPEC A10), on the first start. */
static void
print_line(const struct control *control)
{
	const struct probe_report *r = &control->probe.report;

	if (control->generation == 1)
		log_line(r->line_warning ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
		    "%s", r->line);
}

static int
on_control_open(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	struct control *control = ctx;
	int r;

	(void)nfds;
	control->generation = msg->control_open.generation;
	if (!control->probe.done)
		control_probe_done(control, 3, "it was not executed");
	print_line(control);
	peer_set_state(peer, CONTROL_OPEN);
	sessions_open(control);
	r = clients_listen(control->clients, take_fd(&fds[0]));
	if (r != 0) {
		log_event(EV_INTERNAL, LF_STR(LK_STEP, "listen"),
		    LF_NUM(LK_ERRNO, -r));
		return r;
	}
	log_event(EV_STARTED, LF_NUM(LK_COUNT, control->generation));
	return 0;
}

static int
on_client_answer(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_client_answer *m = &msg->client_answer;
	struct control *control = ctx;

	(void)peer;
	(void)fds;
	(void)nfds;
	return clients_identified(control->clients, m->conn, m->client,
	    (uid_t)m->uid, m->is_operator != 0);
}

static int
on_reload_ask(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	int r = control_reload(ctx);

	(void)msg;
	(void)fds;
	(void)nfds;
	(void)PEER_SEND(peer, reload_done, .ok = r == 0);
	return 0;
}

static int
on_probe_row(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	const struct msg_probe_row *m = &msg->probe_row;

	(void)peer;
	(void)fds;
	(void)nfds;
	control_probe_row(ctx, (unsigned)m->row, m->available != 0, m->detail);
	return 0;
}

static int
on_probe_done(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	const struct msg_probe_done *m = &msg->probe_done;

	(void)peer;
	(void)fds;
	(void)nfds;
	control_probe_done(ctx, (unsigned)m->tools, m->error);
	return 0;
}

static int
on_violation(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	const struct msg_violation *m = &msg->violation;
	struct events_source *src = sessions_source_of_sandbox(ctx, m->sandbox);
	const struct violation v = {
		.action = (enum violation_action)m->action,
		.target = m->target,
		.port = (unsigned)m->port,
		.rule = m->rule,
		.reason = m->reason,
		.remedy = m->remedy,
		.count = m->count,
	};

	(void)peer;
	(void)fds;
	(void)nfds;
	if (src != NULL)
		violations_record(events_source_violations(src), &v);
	return 0;
}

static const struct peer_handler handlers[] = {
	{ MSG_control_open, PROBING, true, on_control_open },
	{ MSG_probe_row, PROBING, false, on_probe_row },
	{ MSG_probe_done, PROBING, true, on_probe_done },
	{ MSG_client_answer, OPEN, false, on_client_answer },
	{ MSG_reload_ask, PROBING | OPEN, false, on_reload_ask },
	{ MSG_violation, PROBING | OPEN, false, on_violation },
	{ MSG_denial, PROBING | OPEN, false, sessions_on_denial },
	{ MSG_repository, PROBING | OPEN, false, sessions_on_repository },
	{ MSG_lookup_answer, OPEN, false, sessions_on_lookup_answer },
	{ MSG_launch_answer, OPEN, false, sessions_on_launch_answer },
	{ MSG_run_ended, PROBING | OPEN, false, sessions_on_run_ended },
	{ MSG_freeze_answer, OPEN, false, sessions_on_freeze_answer },
	{ MSG_stat_answer, OPEN, false, sessions_on_stat_answer },
	{ MSG_run_notice, PROBING | OPEN, false, sessions_on_run_notice },
	{ MSG_rules_answer, OPEN, false, sessions_on_rules_answer },
	{ MSG_exec_answer, OPEN, false, sessions_on_exec_answer },
	{ MSG_exec_exit, PROBING | OPEN, false, sessions_on_exec_exit },
	{ MSG_restore_run, PROBING, false, sessions_on_restore_run },
	{ MSG_restore_exec, PROBING, false, sessions_on_restore_exec },
	{ MSG_restore_done, PROBING, true, sessions_on_restore_done },
};

/* End of file: the service stops, or its supervisor died. Nothing is left to
 * do without it. What broke a rule was logged by protocol/peer.c. */
static void
on_end(void *ctx, struct peer *peer, enum chan_end why, const char *why_text)
{
	struct control *control = ctx;

	(void)peer;
	log_event(EV_STOPPING, LF_STR(LK_REASON, why_text));
	control->failed = why != CHAN_END_EOF;
	(void)event_base_loopbreak(control->base);
}

const struct peer_ops control_peer_ops = {
	.handlers = handlers,
	.nhandlers = ARRAY_LEN(handlers),
	.on_end = on_end,
};
