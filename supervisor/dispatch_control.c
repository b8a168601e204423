/*
 * What stockade-control may ask, and when. It owns the client socket and so
 * reads every client's bytes: it must be expected to be taken over. What it
 * then can do is bounded here: act for clients that are connected now, with
 * the uid that the kernel told; start runs as that uid; end and use the
 * sandboxes of that uid; and for itself end sandboxes, which time-outs need.
 * It cannot name a uid for a client, use a number that it was not given, or
 * hand over a plan that changes later.
 *
 * A refusal that an honest control can run into (a client that is gone, a run
 * that has just ended, another's sandbox) is answered. What only a liar sends
 * ends it: a negative return, see protocol/peer.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/notify.h"
#include "common/size.h"
#include "protocol/egress.h"
#include "protocol/lookup.h"
#include "protocol/guard.h"
#include "protocol/plan.h"
#include "supervisor/supervisor.h"

static struct supervisor *
of(void *ctx)
{
	return ((struct child *)ctx)->supervisor;
}

static struct child *
launcherd_of(struct supervisor *s)
{
	return &s->children[CHILD_LAUNCHERD];
}

/* Launcherd when it takes orders: not while it probes. */
static struct peer *
launcherd_peer(struct supervisor *s)
{
	struct peer *peer = child_peer(launcherd_of(s));

	return peer != NULL && peer_state(peer) == CHILD_PEER_OPEN ? peer :
								     NULL;
}

/* Relays, and slows control down when launcherd does not follow. */
static int
pass_on(struct supervisor *s, enum msg_type type, const void *msg, int *fds,
    size_t nfds)
{
	int r = peer_send(launcherd_peer(s), type, msg, fds, nfds);

	child_balance(&s->children[CHILD_CONTROL], launcherd_of(s));
	return r;
}

/* ------------------------------------------------ configuration */

static int
on_conf_service(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	struct supervisor *s = of(ctx);

	(void)peer;
	(void)fds;
	(void)nfds;
	/* Directories, socket and groups stay what they were at the start. */
	if (s->have_conf)
		return 0;
	s->conf = msg->conf_service;
	s->have_conf = true;
	log_set_level((enum log_level)s->conf.log_level);
	return 0;
}

static int
on_reload_done(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);

	(void)peer;
	(void)msg;
	(void)fds;
	(void)nfds;
	if (s->reloading)
		notify_send("READY=1");
	s->reloading = false;
	return 0;
}

/* ------------------------------------------------ clients */

/* Control decides how often it asks, so the log has a limit here. */
static void
log_client_refused(struct supervisor *s, uid_t uid, int error)
{
	uint64_t left_out;

	if (quota_take(&s->refusals, supervisor_now_ms(), &left_out))
		log_event(EV_CLIENT_REFUSED, LF_NUM(LK_PEER_UID, uid),
		    LF_NUM(LK_ERRNO, -error), LF_NUM(LK_COUNT, left_out + 1));
}

static int
on_client_ask(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct msg_client_answer answer = { .conn = msg->client_ask.conn };
	struct client *client = NULL;
	uid_t uid = (uid_t)-1;
	int r = -EPERM;

	/* No new client while the service ends. */
	if (s->phase == PHASE_RUN)
		r = clients_add(&s->clients, fds[0], s->listen_name, &s->gids,
		    &client, &uid);
	close_all(fds, nfds);
	if (r == 0) {
		answer.client = client->number;
		answer.uid = client->uid;
		answer.is_operator = client->is_operator;
	} else {
		log_client_refused(s, uid, r);
	}
	(void)peer_send(peer, MSG_client_answer, &answer, NULL, 0);
	return 0;
}

static int
on_client_gone(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct client *client =
	    clients_find(&s->clients, msg->client_gone.client);

	(void)peer;
	(void)fds;
	(void)nfds;
	/* Only control itself says so, and only once. */
	if (client == NULL)
		return -EPROTO;
	clients_remove(&s->clients, client);
	return 0;
}

/* ------------------------------------------------ look-ups */

static void
refuse_lookup(struct supervisor *s, uint64_t request, int error,
    const char *reason)
{
	struct msg_lookup_answer answer = {
		.request = request,
		.error = (uint64_t)error,
	};
	uint64_t left_out;

	MSG_SET_STR(answer.reason, reason);
	if (quota_take(&s->refusals, supervisor_now_ms(), &left_out))
		log_event(EV_CALL_REFUSED, LF_NUM(LK_REQUEST, request),
		    LF_STR(LK_STEP, "look-up"), LF_STR(LK_REASON, reason),
		    LF_NUM(LK_COUNT, left_out + 1));
	(void)peer_send(service_listener(s), MSG_lookup_answer, &answer, NULL,
	    0);
}

/* The run's groups are the client's own, as the kernel told them, when it runs
 * as itself. Another user's are found out by stockade-lookup. */
static int
fill_groups(const struct client *client, struct msg_lookup_start *msg)
{
	uint32_t gid;

	if (client->uid != (uid_t)msg->run_uid)
		return 0;
	if (client->ngroups * sizeof(gid) > sizeof(msg->groups.data))
		return -EOVERFLOW;
	for (size_t i = 0; i < client->ngroups; i++) {
		gid = client->groups[i];
		memcpy(msg->groups.data + i * sizeof(gid), &gid, sizeof(gid));
	}
	msg->groups.len = (uint16_t)(client->ngroups * sizeof(gid));
	msg->from_client = 1;
	return 0;
}

/* A run with a daemon's uid could signal it. */
static bool
is_daemon(const struct supervisor *s, uid_t uid)
{
	for (size_t i = 0; i < SUPERVISOR_USERS; i++)
		if (s->users[i].uid == uid)
			return true;
	return false;
}

/* The only place that permits a look-up, and so a launch, as `run_uid`. */
static const char *
judge_lookup(struct supervisor *s, const struct msg_lookup_ask *ask,
    struct client **ret_client)
{
	struct client *client = clients_find(&s->clients, ask->client);

	if (client == NULL)
		return "the client is gone";
	if (!client_may_be(client, (uid_t)ask->run_uid))
		return "not an operator, and not the client's own uid";
	if (is_daemon(s, (uid_t)ask->run_uid))
		return "no run may be a daemon's user";
	*ret_client = client;
	return NULL;
}

static int
start_lookup(struct supervisor *s, const struct msg_lookup_ask *ask,
    const struct client *client, int *fds)
{
	struct msg_lookup_start start = {
		.run_uid = ask->run_uid,
		.client_gid = s->gids.client,
		.admin_gid = s->gids.admin,
	};
	struct request *request;
	int r = fill_groups(client, &start);

	if (r < 0)
		return r;
	r = requests_add(&s->requests, REQUEST_LOOKUP, ask->request,
	    supervisor_now_ms(), &request);
	if (r < 0)
		return r;
	request->client = client->number;
	request->run_uid = (uid_t)ask->run_uid;
	start.request = request->number;
	r = pass_on(s, MSG_lookup_start, &start, fds, 1);
	if (r < 0)
		requests_remove(&s->requests, request);
	return r;
}

static int
on_lookup_ask(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	const struct msg_lookup_ask *ask = &msg->lookup_ask;
	struct client *client = NULL;
	const char *why;
	int r;

	(void)peer;
	if (memfd_check(fds[0], LOOKUP_BYTES_MAX) < 0) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	why = judge_lookup(s, ask, &client);
	if (why != NULL) {
		close_all(fds, nfds);
		refuse_lookup(s, ask->request, EPERM, why);
		return 0;
	}
	r = start_lookup(s, ask, client, fds);
	close_all(fds, nfds);
	if (r == -EEXIST)
		return -EPROTO;
	if (r < 0)
		refuse_lookup(s, ask->request, r == -EPIPE ? EAGAIN : -r,
		    r == -EPIPE         ? "the launcher is restarting" :
			r == -EOVERFLOW ? "the client is in too many groups" :
					  "too many look-ups at once");
	return 0;
}

/* ------------------------------------------------ launches */

/*
 * The only place that permits a launch. The look-up before it was judged by
 * client and uid; the launch must be of the same client, for the same uid and
 * soon after, so that launcherd's word about that user is still true.
 */
static const char *
judge_launch(struct supervisor *s, const struct msg_launch_ask *ask,
    const struct request *lookup)
{
	if (lookup == NULL || lookup->answered_ms == 0)
		return "no look-up was answered for it";
	if (clients_find(&s->clients, ask->client) == NULL)
		return "the client is gone";
	if (lookup->client != ask->client ||
	    lookup->run_uid != (uid_t)ask->run_uid)
		return "the look-up was another client's or user's";
	if (supervisor_now_ms() - lookup->answered_ms > REQUEST_LOOKUP_MS)
		return "the look-up is too old";
	return NULL;
}

/* Enters the sandbox and tells launcherd. Takes the descriptors on success. */
static int
start_launch(struct supervisor *s, const struct msg_launch_ask *ask,
    const struct client *client, uint64_t lookup, int *fds, size_t nfds)
{
	struct msg_launch_start start = {
		.request = lookup,
		.run_uid = ask->run_uid,
	};
	struct sandbox *sandbox = sandboxes_add(&s->sandboxes);
	int out[2] = { fcntl(fds[0], F_DUPFD_CLOEXEC, 3),
		nfds > 2 ? fcntl(fds[2], F_DUPFD_CLOEXEC, 3) : -1 };
	int r = -ENOMEM;

	if (sandbox == NULL || out[0] < 0 || (nfds > 2 && out[1] < 0)) {
		if (sandbox != NULL)
			sandboxes_remove(&s->sandboxes, sandbox);
		close_all(out, 2);
		return r;
	}
	sandbox->state = SANDBOX_LAUNCHING;
	sandbox->owner_uid = client->uid;
	sandbox->run_uid = (uid_t)ask->run_uid;
	sandbox->request = ask->request;
	sandbox->generation = s->children[CHILD_CONTROL].starts;
	memcpy(sandbox->digest, ask->plan_digest.data, sizeof(sandbox->digest));
	sandbox->plan_fd = take_fd(&fds[0]);
	sandbox->egress_fd = take_fd(&fds[1]);
	if (nfds > 2)
		sandbox->guard_fd = take_fd(&fds[2]);
	start.sandbox = sandbox->id;
	r = pass_on(s, MSG_launch_start, &start, out, nfds > 2 ? 2 : 1);
	if (r < 0)
		sandboxes_remove(&s->sandboxes, sandbox);
	return r;
}

static int
on_launch_ask(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	const struct msg_launch_ask *ask = &msg->launch_ask;
	struct request *lookup =
	    requests_find_theirs(&s->requests, REQUEST_LOOKUP, ask->request);
	uint64_t number;
	const char *why;
	int r;

	(void)peer;
	if (memfd_check(fds[0], PLAN_BYTES_MAX) < 0 ||
	    memfd_check(fds[1], EGRESS_BYTES_MAX) < 0 ||
	    (nfds > 2 && memfd_check(fds[2], GUARD_BYTES_MAX) < 0)) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	why = judge_launch(s, ask, lookup);
	if (why != NULL) {
		close_all(fds, nfds);
		service_refuse_launch(s, ask->request, API_FORBIDDEN, EPERM,
		    why);
		return 0;
	}
	/* One launch for one look-up. */
	number = lookup->number;
	requests_remove(&s->requests, lookup);
	if (s->phase != PHASE_RUN ||
	    s->sandboxes.count >= s->conf.sessions_all ||
	    s->sandboxes.count >= s->sandboxes_max) {
		close_all(fds, nfds);
		service_refuse_launch(s, ask->request,
		    s->phase == PHASE_RUN ? API_LIMIT : API_RESTARTING, 0,
		    s->phase == PHASE_RUN ? "too many sandboxes in all" :
					    "the service is stopping");
		return 0;
	}
	r = start_launch(s, ask, clients_find(&s->clients, ask->client), number,
	    fds, nfds);
	close_all(fds, nfds);
	if (r < 0)
		service_refuse_launch(s, ask->request,
		    r == -EPIPE ? API_RESTARTING : API_HOST_ERROR, -r,
		    r == -EPIPE ? "the launcher is restarting" :
				  "no memory or descriptor left");
	return 0;
}

/* ------------------------------------------------ sandboxes */

/*
 * The only place that permits a client to touch a sandbox. client 0 is
 * control itself (time-outs), where the message has room for it.
 */
static bool
may_touch(struct supervisor *s, uint64_t client_number,
    const struct sandbox *sandbox)
{
	const struct client *client;

	if (client_number == 0)
		return true;
	client = clients_find(&s->clients, client_number);
	return client != NULL && client_may_be(client, sandbox->owner_uid);
}

static int
on_destroy_ask(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct msg_destroy_ask ask = msg->destroy_ask;
	struct sandbox *sandbox = NULL;
	enum sandbox_found found =
	    sandboxes_find(&s->sandboxes, ask.sandbox, &sandbox);
	uint64_t left_out;

	(void)peer;
	(void)fds;
	(void)nfds;
	if (found == SANDBOX_NEVER)
		return -EPROTO;
	if (found == SANDBOX_GONE)
		return 0;
	if (!may_touch(s, ask.client, sandbox)) {
		if (quota_take(&s->refusals, supervisor_now_ms(), &left_out))
			log_event(EV_CALL_REFUSED,
			    LF_NUM(LK_SANDBOX, ask.sandbox),
			    LF_NUM(LK_CLIENT, ask.client),
			    LF_STR(LK_STEP, "destroy"),
			    LF_NUM(LK_COUNT, left_out + 1));
		return 0;
	}
	if (sandbox->state == SANDBOX_RUNNING)
		sandbox->state = SANDBOX_ENDING;
	ask.client = 0; /* means nothing to launcherd */
	(void)pass_on(s, MSG_destroy_ask, &ask, NULL, 0);
	return 0;
}

/* Enters a question about a sandbox; its number or 0 with *ret_error. */
static uint64_t
ask_about(struct supervisor *s, enum request_kind kind, uint64_t theirs,
    uint64_t id, int *ret_error)
{
	struct sandbox *sandbox = NULL;
	struct request *request;
	int r;

	if (sandboxes_find(&s->sandboxes, id, &sandbox) != SANDBOX_LIVE ||
	    sandbox->state == SANDBOX_LAUNCHING) {
		*ret_error = -ESRCH;
		return 0;
	}
	r = requests_add(&s->requests, kind, theirs, supervisor_now_ms(),
	    &request);
	if (r < 0) {
		*ret_error = r;
		return 0;
	}
	request->sandbox = id;
	return request->number;
}

/* A number that was never given out is a lie, as is a request number that is
 * still in use. */
static bool
is_lie(struct supervisor *s, uint64_t id, int error)
{
	struct sandbox *sandbox = NULL;

	return error == -EEXIST ||
	    sandboxes_find(&s->sandboxes, id, &sandbox) == SANDBOX_NEVER;
}

static int
on_freeze_ask(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct msg_freeze_ask ask = msg->freeze_ask;
	uint64_t theirs = ask.request;
	int error = 0;

	(void)fds;
	(void)nfds;
	ask.request = ask_about(s, REQUEST_FREEZE, theirs, ask.sandbox, &error);
	if (ask.request != 0) {
		(void)pass_on(s, MSG_freeze_ask, &ask, NULL, 0);
		return 0;
	}
	if (is_lie(s, ask.sandbox, error))
		return -EPROTO;
	(void)PEER_SEND(peer, freeze_answer, .request = theirs,
	    .sandbox = ask.sandbox, .error = (uint64_t)-error);
	return 0;
}

static int
on_stat_ask(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	struct msg_stat_ask ask = msg->stat_ask;
	uint64_t theirs = ask.request;
	int error = 0;

	(void)fds;
	(void)nfds;
	ask.request = ask_about(s, REQUEST_STAT, theirs, ask.sandbox, &error);
	if (ask.request != 0) {
		(void)pass_on(s, MSG_stat_ask, &ask, NULL, 0);
		return 0;
	}
	if (is_lie(s, ask.sandbox, error))
		return -EPROTO;
	(void)PEER_SEND(peer, stat_answer, .request = theirs,
	    .sandbox = ask.sandbox, .error = (uint64_t)-error);
	return 0;
}

/* Asks launcherd; what comes into force with its answer is kept with the
 * question. Takes the descriptors on success. */
static int
start_rules(struct supervisor *s, const struct msg_rules_ask *ask, int *fds)
{
	struct msg_rules_start start = { .sandbox = ask->sandbox };
	struct sandbox *sandbox = NULL;
	struct request *request;
	int out, error = 0, r;

	start.request =
	    ask_about(s, REQUEST_RULES, ask->request, ask->sandbox, &error);
	if (start.request == 0)
		return error;
	request = requests_find(&s->requests, REQUEST_RULES, start.request);
	(void)sandboxes_find(&s->sandboxes, ask->sandbox, &sandbox);
	out = fcntl(fds[1], F_DUPFD_CLOEXEC, 3);
	r = out < 0 ? -errno : sandbox->guard_fd < 0 ? -EINVAL : 0;
	if (r < 0) {
		close_all(&out, 1);
		requests_remove(&s->requests, request);
		return r;
	}
	request->plan_fd = take_fd(&fds[0]);
	request->guard_fd = take_fd(&fds[1]);
	memcpy(request->digest, ask->plan_digest.data, sizeof(request->digest));
	r = pass_on(s, MSG_rules_start, &start, &out, 1);
	if (r < 0)
		requests_remove(&s->requests, request);
	return r;
}

static int
on_rules_ask(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	const struct msg_rules_ask *ask = &msg->rules_ask;
	bool sealed = memfd_check(fds[0], PLAN_BYTES_MAX) >= 0 &&
	    memfd_check(fds[1], GUARD_BYTES_MAX) >= 0;
	int r = sealed ? start_rules(s, ask, fds) : -EPROTO;

	close_all(fds, nfds);
	if (r == 0)
		return 0;
	if (!sealed || is_lie(s, ask->sandbox, r))
		return -EPROTO;
	(void)PEER_SEND(peer, rules_answer, .request = ask->request,
	    .sandbox = ask->sandbox, .error = (uint64_t)-r);
	return 0;
}

/* ------------------------------------------------ commands */

/* Why the command is not passed on: 0 when it may be. */
static int
judge_exec(struct supervisor *s, const struct msg_exec_ask *ask)
{
	struct sandbox *sandbox = NULL;

	if (sandboxes_find(&s->sandboxes, ask->sandbox, &sandbox) !=
	    SANDBOX_LIVE)
		return -ESRCH;
	if (ask->client == 0 || !may_touch(s, ask->client, sandbox))
		return -EPERM;
	return sandbox->state == SANDBOX_RUNNING ? 0 : -ESRCH;
}

static int
on_exec_ask(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct supervisor *s = of(ctx);
	const struct msg_exec_ask *ask = &msg->exec_ask;
	struct msg_exec_answer answer = {
		.sandbox = ask->sandbox,
		.exec = ask->exec,
	};
	uint64_t left_out;
	int r;

	if (nfds != 1 + ask->passed || (ask->tty == 1 && ask->passed > 1) ||
	    memfd_check(fds[0], PLAN_BYTES_MAX) < 0 ||
	    is_lie(s, ask->sandbox, 0)) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	r = judge_exec(s, ask);
	if (r == 0)
		r = pass_on(s, MSG_exec_ask, ask, fds, nfds);
	close_all(fds, nfds);
	if (r == 0)
		return 0;
	if (quota_take(&s->refusals, supervisor_now_ms(), &left_out))
		log_event(EV_EXEC_REFUSED, LF_NUM(LK_SANDBOX, ask->sandbox),
		    LF_NUM(LK_EXEC, ask->exec), LF_NUM(LK_CLIENT, ask->client),
		    LF_NUM(LK_ERRNO, -r), LF_NUM(LK_COUNT, left_out + 1));
	answer.error = (uint64_t)-r;
	MSG_SET_STR(answer.step, "supervisor");
	(void)peer_send(peer, MSG_exec_answer, &answer, NULL, 0);
	return 0;
}

/* Orders about a command that need no answer: 0, or a lie. */
static int
order(struct supervisor *s, enum msg_type type, uint64_t id, const void *msg)
{
	struct sandbox *sandbox = NULL;
	enum sandbox_found found = sandboxes_find(&s->sandboxes, id, &sandbox);

	if (found == SANDBOX_NEVER)
		return -EPROTO;
	if (found == SANDBOX_LIVE)
		(void)pass_on(s, type, msg, NULL, 0);
	return 0;
}

/* SPEC K23. */
static bool
is_permitted_signal(uint64_t signal)
{
	static const int permitted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT,
		SIGKILL, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGSTOP };

	for (size_t i = 0; i < ARRAY_LEN(permitted); i++)
		if (signal == (uint64_t)permitted[i])
			return true;
	return false;
}

static int
on_exec_signal(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	if (!is_permitted_signal(msg->exec_signal.signal))
		return -EPROTO;
	return order(of(ctx), MSG_exec_signal, msg->exec_signal.sandbox,
	    &msg->exec_signal);
}

static int
on_exec_resize(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	return order(of(ctx), MSG_exec_resize, msg->exec_resize.sandbox,
	    &msg->exec_resize);
}

static int
on_exec_eof(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	(void)peer;
	(void)fds;
	(void)nfds;
	return order(of(ctx), MSG_exec_eof, msg->exec_eof.sandbox,
	    &msg->exec_eof);
}

/* clang-format off */
#define STARTING (1u << CHILD_PEER_STARTING)
#define OPEN (1u << CHILD_PEER_OPEN)
static const struct peer_handler handlers[] = {
	{ MSG_conf_service, STARTING, true, on_conf_service },
	{ MSG_ready, STARTING, true, dispatch_ready },
	{ MSG_client_ask, OPEN, false, on_client_ask },
	{ MSG_client_gone, OPEN, false, on_client_gone },
	{ MSG_reload_done, OPEN, false, on_reload_done },
	{ MSG_lookup_ask, OPEN, false, on_lookup_ask },
	{ MSG_launch_ask, OPEN, false, on_launch_ask },
	{ MSG_destroy_ask, OPEN, false, on_destroy_ask },
	{ MSG_freeze_ask, OPEN, false, on_freeze_ask },
	{ MSG_stat_ask, OPEN, false, on_stat_ask },
	{ MSG_rules_ask, OPEN, false, on_rules_ask },
	{ MSG_exec_ask, OPEN, false, on_exec_ask },
	{ MSG_exec_signal, OPEN, false, on_exec_signal },
	{ MSG_exec_resize, OPEN, false, on_exec_resize },
	{ MSG_exec_eof, OPEN, false, on_exec_eof },
};
/* clang-format on */

const struct peer_ops control_ops = {
	.handlers = handlers,
	.nhandlers = ARRAY_LEN(handlers),
	.on_end = child_on_end,
};
