/*
 * After a restart of stockade-control: the supervisor sends each live sandbox
 * with its plan, launcherd each command with its pipe ends, all before
 * control_open. What is in them was made by our predecessor; it is decoded
 * with every check all the same, and a sandbox that cannot be understood is
 * ended rather than kept without an owner.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "protocol/egress.h"
#include "protocol/guard.h"
#include "protocol/peer.h"
#include "supervisor/control/control.h"
#include "supervisor/control/exec.h"
#include "supervisor/control/session.h"

/* What the supervisor kept of the session, unread. */
static int
keep(struct kept *kept, struct opened *opened, const int *fds, size_t nfds)
{
	struct memfd_map plan = { NULL, 0 }, egress = { NULL, 0 };
	struct memfd_map guard = { NULL, 0 };
	int r = memfd_open_map(fds[0], PLAN_BYTES_MAX, &plan);

	if (r == 0)
		r = memfd_open_map(fds[1], EGRESS_BYTES_MAX, &egress);
	if (r == 0 && nfds > 2)
		r = memfd_open_map(fds[2], GUARD_BYTES_MAX, &guard);
	if (r == 0)
		r = kept_set(kept, opened,
		    (struct kept_bytes){ plan.data, plan.len },
		    (struct kept_bytes){ egress.data, egress.len },
		    (struct kept_bytes){ guard.data, guard.len });
	memfd_unmap(&guard);
	memfd_unmap(&plan);
	memfd_unmap(&egress);
	return r;
}

static void
fill(struct session *s, const struct msg_restore_run *m)
{
	memcpy(s->digest, m->plan_digest.data, PLAN_DIGEST);
	s->sandbox = m->sandbox;
	s->pid = m->pid;
	s->landlock_abi = m->landlock_abi;
	s->limits_unset = m->limits_unset;
	s->kernel_guard = m->kernel_guard != 0;
	session_set_state(s, m->frozen != 0 ? SESSION_SUSPENDED : SESSION_WARM);
}

static int
restore(struct control *control, const struct msg_restore_run *m, int *fds,
    size_t nfds)
{
	struct opened *opened = control->sessions->opened;
	const struct session_facts *facts;
	struct kept kept = { NULL, 0, 0, 0, 0, 0 };
	struct session *s = NULL;
	int r = keep(&kept, opened, fds, nfds);

	if (r < 0)
		return r;
	facts = kept_facts(&kept, opened);
	if (session_find_owned(control, (uid_t)m->owner_uid,
		facts->session_id) != NULL)
		r = -EEXIST;
	else
		s = session_new(control, facts->session_id, (uid_t)m->owner_uid,
		    true);
	if (s == NULL) {
		kept_done(&kept, opened);
		return r < 0 ? r : -ENOMEM;
	}
	kept_move(&kept, &s->kept, opened);
	fill(s, m);
	return 0;
}

int
sessions_on_restore_run(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_restore_run *m = &msg->restore_run;
	int r = restore(ctx, m, fds, nfds);

	close_all(fds, nfds);
	if (r < 0) {
		log_event(EV_INTERNAL, LF_STR(LK_STEP, "restore"),
		    LF_NUM(LK_SANDBOX, m->sandbox), LF_NUM(LK_ERRNO, -r));
		(void)PEER_SEND(peer, destroy_ask, .sandbox = m->sandbox,
		    .cause = RUN_CAUSE_SERVICE);
	}
	return 0;
}

/* The time-out goes on from where it was, the silence begins anew. */
static void
set_times(struct exec *e, const struct msg_restore_exec *m)
{
	uint64_t now = control_clock_ms();
	uint64_t left = m->deadline_ms > now ? m->deadline_ms - now : 0;

	e->timeout_ms = m->timeout_ms;
	e->silence_ms = m->silence_ms;
	exec_start_timers(e, left < e->timeout_ms ? left : e->timeout_ms);
}

int
sessions_on_restore_exec(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_restore_exec *m = &msg->restore_exec;
	struct session *s = session_of_sandbox(ctx, m->sandbox);
	struct exec *e;

	(void)peer;
	e = s == NULL || exec_find(s, m->exec) != NULL ? NULL :
							 exec_new(s, m->exec);
	if (e == NULL) {
		close_all(fds, nfds);
		return 0;
	}
	e->started = true;
	e->pid = m->pid;
	e->tty = (m->io & EXEC_IO_TTY) != 0;
	if (exec_attach(e, m->io, fds, nfds) < 0)
		exec_send_signal(e, SIGKILL);
	close_all(fds, nfds);
	session_settle(s);
	set_times(e, m);
	if (m->ended != 0)
		exec_exited(e, m->status, m->signal);
	return 0;
}

int
sessions_on_restore_done(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	struct control *control = ctx;
	uint64_t now = control_time_ms(), created;
	struct session *s;

	(void)peer;
	(void)msg;
	(void)fds;
	(void)nfds;
	/* The idle time of those without a command begins anew, the wall time
	 * goes on. */
	TAILQ_FOREACH (s, &control->sessions->list, entry) {
		created = session_facts_of(s)->created_ms;
		session_start_wall(s, now > created ? now - created : 0);
		session_settle(s);
	}
	return 0;
}
