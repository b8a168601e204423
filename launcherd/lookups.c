/*
 * launcherd: look-ups; see lookups.h. The child is root while it asks NSS who
 * the user is (its modules read the network and files of the system), so what
 * it says first is only a proposal: the uid must be the one it was started
 * for, and the ids that it is then told are decided here. Its answer is relayed
 * unread.
 */
#include "launcherd/lookups.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/proc.h"
#include "launcherd/launcherd.h"
#include "launcherd/spawn.h"
#include "protocol/lookup.h"
#include "protocol/message.h"

enum lookup_state { LOOKUP_ASKED, LOOKUP_QUESTIONED, LOOKUP_ANSWERED };

struct lookup {
	TAILQ_ENTRY(lookup) entry;
	struct launcherd *l;
	uint64_t request;
	struct lookup_ids ids;
	bool from_client;
	gid_t client_gid;
	gid_t admin_gid;
	int question_fd;
	enum lookup_state state;
	uint64_t done_ms;
	struct spawned child;
	struct peer *peer;
	struct event *exit_event;
	struct event *timer;
	struct msg_lookup_answer answer;
};

static uint64_t
now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void
lookup_release(struct lookup *lu)
{
	peer_free(lu->peer);
	lu->peer = NULL;
	if (lu->timer != NULL)
		event_free(lu->timer);
	lu->timer = NULL;
	close_all(&lu->question_fd, 1);
}

static void
lookup_free(struct lookup *lu)
{
	struct lookups *all = &lu->l->lookups;

	TAILQ_REMOVE(&all->list, lu, entry);
	if (lu->state == LOOKUP_ANSWERED)
		all->kept--;
	lookup_release(lu);
	if (lu->exit_event != NULL)
		event_free(lu->exit_event);
	/* Only at our own end, or when it could not be watched. */
	if (lu->child.pid > 0) {
		all->running--;
		spawn_kill(&lu->child);
		(void)waitpid(lu->child.pid, NULL, 0);
	}
	close_all(&lu->child.pidfd, 1);
	free(lu);
}

/* Its channel's end would end it, too; a kill is certain. */
static void
spare_drop(struct lookups *all)
{
	close_all(&all->spare_channel, 1);
	if (all->spare.pid > 0) {
		spawn_kill(&all->spare);
		(void)waitpid(all->spare.pid, NULL, 0);
	}
	close_all(&all->spare.pidfd, 1);
	all->spare.pid = 0;
}

void
lookups_done(struct launcherd *l)
{
	struct lookup *lu;

	while ((lu = TAILQ_FIRST(&l->lookups.list)) != NULL)
		lookup_free(lu);
	spare_drop(&l->lookups);
	if (l->lookups.spare_timer != NULL)
		event_free(l->lookups.spare_timer);
}

/* Old answers go; a child that still runs keeps its entry until it is
 * reaped. */
static void
lookups_expire(struct launcherd *l)
{
	struct lookup *lu, *next;
	uint64_t now = now_ms();

	for (lu = TAILQ_FIRST(&l->lookups.list); lu != NULL; lu = next) {
		next = TAILQ_NEXT(lu, entry);
		if (lu->state == LOOKUP_ANSWERED && lu->child.pid == 0 &&
		    (now - lu->done_ms > LOOKUP_VALID_MS ||
			l->lookups.kept > LOOKUPS_KEPT_MAX))
			lookup_free(lu);
	}
}

/* ---------------------------------------------------------------- answering */

static void
send_failed(struct launcherd *l, uint64_t request, int error,
    const char *reason)
{
	struct msg_lookup_answer msg = { .request = request,
		.error = (uint64_t)(error < 0 ? -error : error) };

	if (msg.error == 0)
		msg.error = EIO;
	(void)log_clean(msg.reason, sizeof(msg.reason), reason, strlen(reason));
	(void)peer_send(l->supervisor, MSG_lookup_answer, &msg, NULL, 0);
}

/* Answers with a failure, once, and forgets the look-up when its child is
 * gone; its ids are never usable. */
static void
lookup_fail(struct lookup *lu, int error, const char *reason)
{
	if (lu->state != LOOKUP_ANSWERED) {
		send_failed(lu->l, lu->request, error, reason);
		lu->state = LOOKUP_ANSWERED;
		lu->l->lookups.kept++;
		lu->request = 0;
	}
	spawn_kill(&lu->child);
	lookup_release(lu);
}

static void
on_child_exit(evutil_socket_t fd, short what, void *arg)
{
	struct lookup *lu = arg;
	struct lookups *all = &lu->l->lookups;

	(void)fd;
	(void)what;
	event_free(lu->exit_event);
	lu->exit_event = NULL;
	(void)spawn_reap(&lu->child);
	if (lu->child.pid == 0)
		all->running--;
	/* Its last message may still be unread: the channel's end decides,
	 * or its time-out. Without a channel there is nothing to come. */
	if (lu->peer == NULL && lu->state == LOOKUP_ANSWERED &&
	    lu->request == 0)
		lookup_free(lu);
}

static void
on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	lookup_fail(arg, ETIMEDOUT, "the look-up took longer than 10 s");
}

static void
on_peer_end(void *ctx, struct peer *peer, enum chan_end why, const char *text)
{
	struct lookup *lu = ctx;

	(void)peer;
	(void)text;
	lookup_fail(lu, EIO,
	    why == CHAN_END_EOF ? "the look-up ended without an answer" :
				  "the look-up broke the message rules");
	if (lu->child.pid == 0 && lu->request == 0)
		lookup_free(lu);
}

/* ---------------------------------------------------------------- messages */

/* Which ids the run gets; see lookups.h. */
static int
decide_ids(struct lookup *lu, const struct msg_lookup_user *msg)
{
	int n;

	if (msg->uid != lu->ids.uid || msg->gid >= UINT32_MAX)
		return -EPERM;
	lu->ids.gid = (gid_t)msg->gid;
	if (lu->from_client)
		return 0; /* groups were set from lookup_start */
	n = lookup_groups(msg->groups.data, msg->groups.len, lu->client_gid,
	    lu->admin_gid, lu->ids.groups);
	if (n < 0)
		return n;
	lu->ids.ngroups = (size_t)n;
	return 0;
}

static int
send_question(struct lookup *lu)
{
	struct msg_lookup_question msg = { .uid = lu->ids.uid,
		.gid = lu->ids.gid };
	int fd = take_fd(&lu->question_fd);

	msg.groups.len = (uint16_t)(lu->ids.ngroups * sizeof(uint32_t));
	for (size_t i = 0; i < lu->ids.ngroups; i++) {
		uint32_t gid = lu->ids.groups[i];

		memcpy(msg.groups.data + i * sizeof(gid), &gid, sizeof(gid));
	}
	return peer_send(lu->peer, MSG_lookup_question, &msg, &fd, 1);
}

static int
on_user(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	const struct msg_lookup_user *msg = &any->lookup_user;
	struct lookup *lu = ctx;
	int error;

	(void)fds;
	(void)nfds;
	if (msg->error != 0) {
		lookup_fail(lu, (int)msg->error,
		    msg->error == ENOENT ? "there is no such user" :
					   "the user could not be looked up");
		return 0;
	}
	error = decide_ids(lu, msg);
	if (error < 0)
		return error;
	memcpy(lu->answer.user, msg->user, sizeof(lu->answer.user));
	memcpy(lu->answer.home, msg->home, sizeof(lu->answer.home));
	memcpy(lu->answer.shell, msg->shell, sizeof(lu->answer.shell));
	lu->answer.run_uid = lu->ids.uid;
	lu->answer.run_gid = lu->ids.gid;
	lu->state = LOOKUP_QUESTIONED;
	peer_set_state(peer, LOOKUP_QUESTIONED);
	return send_question(lu);
}

static int
on_result(void *ctx, struct peer *peer, const union msg_any *any, int *fds,
    size_t nfds)
{
	const struct msg_lookup_result *msg = &any->lookup_result;
	struct lookup *lu = ctx;

	(void)peer;
	if (msg->error != 0 || nfds != 1 || lu->state != LOOKUP_QUESTIONED ||
	    memfd_check(fds[0], LOOKUP_BYTES_MAX) < 0) {
		close_all(fds, nfds);
		if (msg->error == 0)
			return -EPROTO;
		lookup_fail(lu, (int)msg->error, msg->reason);
		return 0;
	}
	lu->answer.request = lu->request;
	lu->state = LOOKUP_ANSWERED;
	lu->done_ms = now_ms();
	lu->l->lookups.kept++;
	(void)peer_send(lu->l->supervisor, MSG_lookup_answer, &lu->answer, fds,
	    1);
	lookup_release(lu);
	return 0;
}

static const struct peer_handler handlers[] = {
	{ MSG_lookup_user, 1u << LOOKUP_ASKED, true, on_user },
	{ MSG_lookup_result, 1u << LOOKUP_ASKED | 1u << LOOKUP_QUESTIONED, true,
	    on_result },
};
static const struct peer_ops lookup_ops = {
	handlers,
	sizeof(handlers) / sizeof(handlers[0]),
	on_peer_end,
};

/* ---------------------------------------------------------------- starting */

static int
spawn_one(const struct launcherd *l, struct spawned *ret, int *ret_channel)
{
	int pair[2];
	int error;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	error = spawn_lookup(l->libexec_fd, pair[1], l->null_fd, ret);
	(void)close(pair[1]);
	if (error < 0)
		(void)close(pair[0]);
	else
		*ret_channel = pair[0];
	return error;
}

static void
on_spare_timer(evutil_socket_t fd, short what, void *arg)
{
	struct launcherd *l = arg;
	struct lookups *all = &l->lookups;

	(void)fd;
	(void)what;
	if (all->spare.pid > 0 || l->libexec_fd < 0)
		return;
	/* Without one the next look-up starts its own. */
	(void)spawn_one(l, &all->spare, &all->spare_channel);
}

/* The spare child, or a new one if it is not there or has ended. */
static int
take_child(struct launcherd *l, struct spawned *ret, int *ret_channel)
{
	struct lookups *all = &l->lookups;

	(void)spawn_reap(&all->spare);
	if (all->spare.pid <= 0) {
		close_all(&all->spare_channel, 1);
		return spawn_one(l, ret, ret_channel);
	}
	*ret = all->spare;
	*ret_channel = take_fd(&all->spare_channel);
	all->spare = (struct spawned){ .pidfd = -1 };
	return 0;
}

static int
start_child(struct lookup *lu)
{
	struct launcherd *l = lu->l;
	const struct timeval tv = { LOOKUP_TIMEOUT_MS / 1000, 0 };
	int channel = -1;
	int error = take_child(l, &lu->child, &channel);

	if (error < 0)
		return error;
	l->lookups.running++;
	lu->peer = peer_new(l->base, channel, PROC_LAUNCHERD, PROC_LOOKUP,
	    &lookup_ops, lu);
	lu->exit_event =
	    event_new(l->base, lu->child.pidfd, EV_READ, on_child_exit, lu);
	lu->timer = evtimer_new(l->base, on_timeout, lu);
	if (lu->peer == NULL || lu->exit_event == NULL || lu->timer == NULL ||
	    event_add(lu->exit_event, NULL) < 0 ||
	    evtimer_add(lu->timer, &tv) < 0)
		return -ENOMEM;
	return PEER_SEND(lu->peer, lookup_begin, .uid = lu->ids.uid);
}

int
lookups_init(struct launcherd *l)
{
	struct lookups *all = &l->lookups;

	TAILQ_INIT(&all->list);
	all->spare = (struct spawned){ .pidfd = -1 };
	all->spare_channel = -1;
	all->spare_timer = evtimer_new(l->base, on_spare_timer, l);
	return all->spare_timer == NULL ? -ENOMEM : 0;
}

void
lookups_prepare(struct launcherd *l, long ms)
{
	const struct timeval when = { 0, ms * 1000 };

	if (l->lookups.spare.pid <= 0)
		(void)evtimer_add(l->lookups.spare_timer, &when);
}

static int
fill_lookup(struct lookup *lu, const struct msg_lookup_start *msg)
{
	int n = 0;

	lu->request = msg->request;
	lu->ids.uid = (uid_t)msg->run_uid;
	lu->from_client = msg->from_client != 0;
	lu->client_gid = (gid_t)msg->client_gid;
	lu->admin_gid = (gid_t)msg->admin_gid;
	if (lu->from_client)
		n = lookup_groups(msg->groups.data, msg->groups.len,
		    lu->client_gid, lu->admin_gid, lu->ids.groups);
	if (n < 0)
		return n;
	lu->ids.ngroups = (size_t)n;
	return 0;
}

/*
 * Who asks: the supervisor, which has checked that the client may have this
 * uid. uid 0 does not decode. Safe if control is hostile: it chose the
 * question alone, which is read with the run's ids.
 */
void
lookup_start(struct launcherd *l, const struct msg_lookup_start *msg,
    int question_fd)
{
	struct lookup *lu;
	int error;

	lookups_expire(l);
	if (proc_descriptors_left() < FDS_FOR_LOOKUP) {
		close_all(&question_fd, 1);
		send_failed(l, msg->request, EMFILE,
		    "stockade-launcherd has no free descriptors");
		return;
	}
	lu = l->lookups.running >= LOOKUPS_MAX ? NULL : calloc(1, sizeof(*lu));
	if (lu == NULL) {
		close_all(&question_fd, 1);
		send_failed(l, msg->request, EAGAIN,
		    "too many look-ups at a time");
		return;
	}
	lu->l = l;
	lu->question_fd = question_fd;
	lu->child.pidfd = -1;
	TAILQ_INSERT_TAIL(&l->lookups.list, lu, entry);
	error = fill_lookup(lu, msg);
	if (error == 0)
		error = start_child(lu);
	if (error < 0) {
		lookup_fail(lu, error, strerror(-error));
		/* A child without its event is reaped with the others. */
		if (lu->exit_event == NULL)
			lookup_free(lu);
	}
}

/* The answered one of this request, NULL when there is none. */
static struct lookup *
find_answered(struct launcherd *l, uint64_t request)
{
	struct lookup *lu;

	for (lu = TAILQ_FIRST(&l->lookups.list); lu != NULL;
	     lu = TAILQ_NEXT(lu, entry))
		if (lu->request == request && lu->state == LOOKUP_ANSWERED)
			return lu;
	return NULL;
}

int
lookup_take_ids(struct launcherd *l, uint64_t request, uid_t uid,
    struct lookup_ids *ret)
{
	struct lookup *lu = request == 0 ? NULL : find_answered(l, request);

	if (lu == NULL || lu->ids.uid != uid || uid == 0)
		return -ENOENT;
	if (now_ms() - lu->done_ms > LOOKUP_VALID_MS)
		return -ESTALE;
	*ret = lu->ids;
	lu->request = 0; /* once */
	if (lu->child.pid == 0)
		lookup_free(lu);
	return 0;
}
