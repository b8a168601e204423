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
#include "protocol/peer.h"
#include "supervisor/control/control.h"
#include "supervisor/control/exec.h"
#include "supervisor/control/session.h"

struct restored {
	struct memfd_map plan_map;
	struct memfd_map egress_map;
	struct plan plan;
	struct session_facts facts;
	struct egress_lists egress;
};

void
restored_free(struct restored *r)
{
	if (r == NULL)
		return;
	memfd_unmap(&r->plan_map);
	memfd_unmap(&r->egress_map);
	free(r);
}

static int
read_plan(struct restored *r, int plan_fd, int egress_fd)
{
	const char *field;
	int e;

	e = memfd_open_map(plan_fd, PLAN_BYTES_MAX, &r->plan_map);
	if (e < 0)
		return e;
	e = memfd_open_map(egress_fd, EGRESS_BYTES_MAX, &r->egress_map);
	if (e < 0)
		return e;
	e = plan_decode(r->plan_map.data, r->plan_map.len, &r->plan, &field);
	if (e < 0)
		return e;
	e = egress_lists_decode(r->egress_map.data, r->egress_map.len,
	    &r->egress);
	if (e < 0)
		return e;
	return session_facts_decode(r->plan.session.data,
	    r->plan.session.len, &r->facts);
}

static void
fill(struct session *s, const struct msg_restore_run *m,
    struct restored *r)
{
	s->restored = r;
	s->plan = &r->plan;
	s->facts = &r->facts;
	s->egress = &r->egress;
	memcpy(s->digest, m->plan_digest.data, PLAN_DIGEST);
	s->sandbox = m->sandbox;
	s->pid = m->pid;
	s->landlock_abi = m->landlock_abi;
	s->limits_unset = m->limits_unset;
	session_set_state(s, m->frozen != 0 ? SESSION_SUSPENDED :
	    SESSION_WARM);
}

static int
restore(struct control *control, const struct msg_restore_run *m, int *fds)
{
	struct restored *r = calloc(1, sizeof(*r));
	struct session *s;
	int e;

	if (r == NULL)
		return -ENOMEM;
	e = read_plan(r, fds[0], fds[1]);
	if (e == 0 && session_find_owned(control, (uid_t)m->owner_uid,
	    r->facts.session_id) != NULL)
		e = -EEXIST;
	s = e < 0 ? NULL : session_new(control, r->facts.session_id,
	    (uid_t)m->owner_uid, true);
	if (s == NULL) {
		restored_free(r);
		return e < 0 ? e : -ENOMEM;
	}
	fill(s, m, r);
	return 0;
}

int
sessions_on_restore_run(void *ctx, struct peer *peer,
    const union msg_any *msg, int *fds, size_t nfds)
{
	const struct msg_restore_run *m = &msg->restore_run;
	int r = restore(ctx, m, fds);

	close_all(fds, nfds);
	if (r < 0) {
		log_event(EV_INTERNAL, LF_STR(LK_STEP, "restore"),
		    LF_NUM(LK_SANDBOX, m->sandbox), LF_NUM(LK_ERRNO, -r));
		(void)PEER_SEND(peer, destroy_ask, .sandbox = m->sandbox,
		    .cause = RUN_CAUSE_SERVICE);
	}
	return 0;
}

int
sessions_on_restore_exec(void *ctx, struct peer *peer,
    const union msg_any *msg, int *fds, size_t nfds)
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
	if (m->ended != 0)
		exec_exited(e, m->status, m->signal);
	return 0;
}

int
sessions_on_restore_done(void *ctx, struct peer *peer,
    const union msg_any *msg, int *fds, size_t nfds)
{
	struct control *control = ctx;
	struct session *s;

	(void)peer;
	(void)msg;
	(void)fds;
	(void)nfds;
	/* The idle time of those without a command begins anew. */
	TAILQ_FOREACH(s, &control->sessions->list, entry)
		session_settle(s);
	return 0;
}
