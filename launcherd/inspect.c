/*
 * See inspect.h. The child is asked for one repository after the other; its
 * answers are the user's word about the user's own files and decide nothing.
 */
#include "launcherd/inspect.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "launcherd/broker_run.h"
#include "launcherd/launcherd.h"
#include "launcherd/spawn.h"
#include "protocol/cause.h"
#include "protocol/message.h"

#define INSPECT_S 8 /* for all of them */

struct inspection {
	struct run *run;
	size_t next; /* the one that was asked for last */
	struct spawned child;
	struct peer *peer;
	struct event *exit_event;
	struct event *timer;
	bool over;
};

bool
inspect_alive(const struct inspection *k)
{
	return k != NULL && (!k->over || k->child.pid > 0);
}

void
inspect_free(struct inspection *k)
{
	if (k == NULL)
		return;
	peer_free(k->peer);
	if (k->exit_event != NULL)
		event_free(k->exit_event);
	if (k->timer != NULL)
		event_free(k->timer);
	/* Only at our own end, or when it could not be watched. */
	if (k->child.pid > 0) {
		spawn_kill(&k->child);
		(void)waitpid(k->child.pid, NULL, 0);
	}
	close_all(&k->child.pidfd, 1);
	free(k);
}

static void
tell(const struct run *run, size_t i, uint64_t state, const char *programs)
{
	static struct msg_repository msg;

	memset(&msg, 0, sizeof(msg));
	msg.sandbox = run->sandbox;
	msg.state = state;
	MSG_SET_STR(msg.path, guarding_repository(run->guarding, i)->path);
	MSG_SET_STR(msg.programs, programs);
	(void)peer_send(run->l->supervisor, MSG_repository, &msg, NULL, 0);
}

/* The rest was not looked at. */
static void
finish(struct inspection *k)
{
	if (k->over)
		return;
	k->over = true;
	for (size_t i = k->next; i < guarding_repositories(k->run->guarding);
	     i++)
		tell(k->run, i, REPOSITORY_UNREADABLE, "");
	peer_free(k->peer);
	k->peer = NULL;
	spawn_kill(&k->child);
}

static void
ask(struct inspection *k)
{
	const struct guarding *g = k->run->guarding;
	const struct repository *r;
	static struct msg_inspect_ask msg;

	if (k->next == guarding_repositories(g)) {
		finish(k);
		return;
	}
	r = guarding_repository(g, k->next);
	memset(&msg, 0, sizeof(msg));
	msg.dev = r->dev;
	msg.ino = r->ino;
	MSG_SET_STR(msg.path, r->path);
	if (peer_send(k->peer, MSG_inspect_ask, &msg, NULL, 0) < 0)
		finish(k);
}

static int
on_answer(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct inspection *k = ctx;

	(void)peer;
	(void)fds;
	(void)nfds;
	if (k->over)
		return 0;
	tell(k->run, k->next++, msg->inspect_answer.state,
	    msg->inspect_answer.programs);
	ask(k);
	return 0;
}

static const struct peer_handler handlers[] = {
	{ MSG_inspect_answer, 1u, false, on_answer },
};

static void
on_end(void *ctx, struct peer *peer, enum chan_end why, const char *text)
{
	struct inspection *k = ctx;

	(void)why;
	(void)text;
	if (k->peer == peer) {
		k->peer = NULL;
		peer_free(peer);
	}
	finish(k);
	run_advance(k->run);
}

static const struct peer_ops ops = {
	handlers,
	sizeof(handlers) / sizeof(handlers[0]),
	on_end,
};

static void
on_exit_event(evutil_socket_t fd, short what, void *arg)
{
	struct inspection *k = arg;

	(void)fd;
	(void)what;
	event_free(k->exit_event);
	k->exit_event = NULL;
	(void)spawn_reap(&k->child);
	finish(k);
	run_advance(k->run);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	struct inspection *k = arg;

	(void)fd;
	(void)what;
	finish(k);
	run_advance(k->run);
}

static int
start(struct inspection *k)
{
	static const struct timeval tv = { INSPECT_S, 0 };
	struct launcherd *l = k->run->l;
	int pair[2], error;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	error = spawn_lookup(l->libexec_fd, pair[1], l->null_fd, &k->child);
	(void)close(pair[1]);
	if (error < 0) {
		(void)close(pair[0]);
		return error;
	}
	k->peer =
	    peer_new(l->base, pair[0], PROC_LAUNCHERD, PROC_LOOKUP, &ops, k);
	k->exit_event =
	    event_new(l->base, k->child.pidfd, EV_READ, on_exit_event, k);
	k->timer = evtimer_new(l->base, on_time, k);
	if (k->peer == NULL || k->exit_event == NULL || k->timer == NULL ||
	    event_add(k->exit_event, NULL) < 0 ||
	    evtimer_add(k->timer, &tv) < 0)
		return -ENOMEM;
	return peer_send(k->peer, MSG_inspect_begin,
	    guarding_inspect(k->run->guarding), NULL, 0);
}

void
inspect_start(struct run *run)
{
	struct inspection *k = calloc(1, sizeof(*k));

	if (k == NULL) {
		for (size_t i = 0; i < guarding_repositories(run->guarding);
		     i++)
			tell(run, i, REPOSITORY_UNREADABLE, "");
		return;
	}
	k->run = run;
	k->child.pidfd = -1;
	run->inspection = k;
	if (start(k) == 0) {
		ask(k);
		return;
	}
	finish(k);
	/* A child without its event is reaped with the run. */
	if (k->exit_event == NULL ||
	    !event_pending(k->exit_event, EV_READ, NULL)) {
		run->inspection = NULL;
		inspect_free(k);
	}
}
