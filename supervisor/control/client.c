/*
 * Connections of clients. In stockade-control; every byte and descriptor that
 * is read here is hostile. Nothing a client does ends the process: at worst
 * its own connection is doomed, which frees it at the next turn of the loop,
 * so that no caller up the stack holds a freed one.
 */
#include "supervisor/control/client.h"

#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/log.h"
#include "common/size.h"
#include "protocol/peer.h"
#include "supervisor/control/client_private.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"

#define READ_CHUNK (64u << 10)
#define READ_FIRST (4u << 10)
#define ACCEPT_BURST 16
#define ACCEPT_PAUSE_MS 100
#define BUSY_PACKETS 1024 /* of CHAN_QUEUE_PACKETS */
#define BUSY_MS 5

bool
caller_may_see(const struct caller *who, uid_t uid)
{
	return who == NULL || who->is_operator || who->uid == uid;
}

const struct caller *
client_caller(const struct client *c)
{
	return &c->who;
}

size_t
client_pending(const struct client *c)
{
	return c->out_len - c->out_at;
}

void
client_set_reader(struct client *c, struct events_reader *reader)
{
	c->reader = reader;
}

struct events_reader *
client_reader(const struct client *c)
{
	return c->reader;
}

size_t
clients_count(const struct clients *all)
{
	return all->n;
}

void
clients_each(const struct clients *all,
    void (*fn)(void *arg, const struct caller *), void *arg)
{
	const struct client *c;

	TAILQ_FOREACH (c, &all->list, entry)
		if (c->who.client != 0 && c->state != CLIENT_DOOMED)
			fn(arg, &c->who);
}

static struct timeval
timeval_ms(unsigned ms)
{
	return (struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 };
}

/* ---------------------------------------------------------------- ending */

void
client_doom(struct client *c, const char *why)
{
	if (c->state == CLIENT_DOOMED)
		return;
	if (why != NULL)
		log_event(EV_CLIENT_RULES, LF_NUM(LK_CLIENT, c->who.client),
		    LF_NUM(LK_PEER_UID, c->who.uid), LF_STR(LK_REASON, why));
	c->state = CLIENT_DOOMED;
	(void)event_del(c->readable);
	(void)event_del(c->writable);
	(void)event_del(c->timer);
	event_active(c->clients->reap, 0, 0);
}

void
client_drain(struct client *c)
{
	struct timeval limit = timeval_ms(CLIENT_HELLO_MS);

	if (c->state == CLIENT_DOOMED)
		return;
	c->state = CLIENT_DRAINING;
	(void)event_del(c->readable);
	if (client_pending(c) == 0)
		client_doom(c, NULL);
	else
		(void)event_add(c->timer, &limit);
}

/* Also for one whose construction failed half-way. */
static void
client_free(struct client *c)
{
	struct call *call;

	if (c == NULL)
		return;
	while ((call = TAILQ_FIRST(&c->calls)) != NULL)
		call_orphan(call);
	events_reader_free(c->reader);
	close_all(c->fds, c->nfds);
	close_all(&c->out_fd, 1);
	if (c->readable != NULL)
		event_free(c->readable);
	if (c->writable != NULL)
		event_free(c->writable);
	if (c->timer != NULL)
		event_free(c->timer);
	(void)close(c->fd);
	free(c->in);
	free(c->out);
	free(c);
}

/* Takes one out of the list and tells the supervisor and the sessions. */
static void
client_end(struct client *c)
{
	struct clients *all = c->clients;
	uint64_t client = c->who.client;

	TAILQ_REMOVE(&all->list, c, entry);
	all->n--;
	if (client != 0)
		log_event(EV_CLIENT_GONE, LF_NUM(LK_CLIENT, client),
		    LF_NUM(LK_PEER_UID, c->who.uid));
	client_free(c);
	if (client == 0)
		return;
	sessions_client_gone(all->control, client);
	(void)PEER_SEND(all->control->supervisor, client_gone,
	    .client = client);
}

static void
on_reap(evutil_socket_t fd, short what, void *arg)
{
	struct clients *all = arg;
	struct client *c, *next;

	(void)fd;
	(void)what;
	for (c = TAILQ_FIRST(&all->list); c != NULL; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->state == CLIENT_DOOMED)
			client_end(c);
	}
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;

	(void)fd;
	(void)what;
	client_doom(c,
	    c->state == CLIENT_DRAINING ? NULL : "no hello within the time");
}

/* ---------------------------------------------------------------- writing */

/*
 * One send(2), with the waiting descriptor once its byte is the next one; the
 * bytes before it go alone. The kernel takes the descriptor with the first
 * byte or not at all (unix(7)).
 */
static ssize_t
send_some(struct client *c)
{
	FDPASS_BUFFER(1) control;
	struct iovec iov = { c->out + c->out_at, client_pending(c) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	bool with_fd = c->out_fd >= 0 && c->out_fd_at == c->out_at;
	ssize_t n;

	if (c->out_fd >= 0 && !with_fd)
		iov.iov_len = c->out_fd_at - c->out_at;
	fdpass_put(&msg, &control, &c->out_fd, with_fd ? 1 : 0);
	n = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0 && with_fd)
		close_all(&c->out_fd, 1);
	return n;
}

/* Writes what the socket takes; false when the connection is broken. */
static bool
flush(struct client *c)
{
	while (client_pending(c) > 0) {
		ssize_t n = send_some(c);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		c->out_at += (size_t)n;
	}
	free(c->out);
	c->out = NULL;
	c->out_at = c->out_len = c->out_cap = 0;
	return true;
}

/* Room for `len` more bytes behind out_len. */
static bool
out_reserve(struct client *c, size_t len)
{
	size_t pending = client_pending(c), need, cap;
	uint8_t *p;

	if (!size_add(pending, len, &need) || need > CLIENT_OUT_MAX)
		return false;
	if (c->out_at > 0 && need <= c->out_cap) {
		memmove(c->out, c->out + c->out_at, pending);
		c->out_fd_at -= c->out_fd >= 0 ? c->out_at : 0;
		c->out_len = pending;
		c->out_at = 0;
	}
	if (c->out_cap - c->out_len >= len)
		return true;
	cap = c->out_cap == 0 ? READ_FIRST : c->out_cap;
	while (cap < c->out_at + need)
		cap *= 2;
	p = realloc(c->out, cap);
	if (p == NULL)
		return false;
	c->out = p;
	c->out_cap = cap;
	return true;
}

void
client_send(struct client *c, const void *data, size_t len)
{
	const uint8_t *p = data;

	if (c->state == CLIENT_DOOMED)
		return;
	if (client_pending(c) == 0) {
		ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			client_doom(c, NULL);
			return;
		}
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	if (len == 0)
		return;
	if (!out_reserve(c, len)) {
		client_doom(c, "it does not read its answers");
		return;
	}
	memcpy(c->out + c->out_len, p, len);
	c->out_len += len;
	(void)event_add(c->writable, NULL);
}

bool
client_fd_waits(const struct client *c)
{
	return c->out_fd >= 0;
}

void
client_send_fd(struct client *c, const void *data, size_t len, int fd)
{
	if (c->state == CLIENT_DOOMED || client_fd_waits(c)) {
		(void)close(fd);
		client_send(c, data, len);
		return;
	}
	if (!out_reserve(c, len)) {
		(void)close(fd);
		client_doom(c, "it does not read its answers");
		return;
	}
	c->out_fd = fd;
	c->out_fd_at = c->out_len;
	memcpy(c->out + c->out_len, data, len);
	c->out_len += len;
	if (!flush(c))
		client_doom(c, NULL);
	else if (client_pending(c) > 0)
		(void)event_add(c->writable, NULL);
}

/* ---------------------------------------------------------------- reading */

/* Each request may be a packet to the supervisor, and the queue of that channel
 * is bounded for good: a client that sends faster than they are taken waits. */
static bool
is_busy(const struct clients *all)
{
	const struct peer *supervisor = all->control->supervisor;

	return supervisor != NULL && peer_pending(supervisor) >= BUSY_PACKETS;
}

static bool
may_read(const struct client *c)
{
	return (c->state == CLIENT_HELLO || c->state == CLIENT_OPEN) &&
	    client_pending(c) < CLIENT_OUT_HIGH && !is_busy(c->clients);
}

/* What stopped may be the supervisor's channel: nobody tells when it has taken
 * its packets, so look again soon. */
static void
stop_reading(struct client *c)
{
	const struct timeval soon = { .tv_usec = BUSY_MS * 1000 };

	(void)event_del(c->readable);
	if (is_busy(c->clients))
		(void)event_add(c->clients->not_busy, &soon);
}

/* The message at in[at] is complete; takes it out. */
static void
take_message(struct client *c, const uint8_t *data, size_t len)
{
	struct rpc_message msg;
	int r = rpc_unpack(data, len, &msg);

	if (r == 0 && msg.type != RPC_REQUEST) {
		rpc_done(&msg);
		r = -EPROTO;
	}
	if (r == -ENOMEM)
		client_doom(c, "no memory for its message");
	else if (r != 0)
		client_doom(c, "a message that is no request");
	else
		call_start(c, &msg);
}

/* Handles the messages that are complete, as long as answers find room. */
static void
handle_input(struct client *c)
{
	size_t at = 0, len = 0;

	while (at < c->in_len && may_read(c)) {
		const char *why = NULL;
		int r =
		    rpc_scan(&c->scan, c->in + at, c->in_len - at, &len, &why);

		if (r < 0) {
			client_doom(c, why);
			return;
		}
		if (r == 0)
			break;
		memset(&c->scan, 0, sizeof(c->scan));
		take_message(c, c->in + at, len);
		at += len;
	}
	if (at == c->in_len) {
		free(c->in);
		c->in = NULL;
		c->in_len = c->in_cap = 0;
	} else if (at > 0) {
		memmove(c->in, c->in + at, c->in_len - at);
		c->in_len -= at;
	}
}

/* A message is at most RPC_MSG_MAX, so the buffer is too, and one chunk. */
static bool
in_reserve(struct client *c)
{
	size_t cap = c->in_cap == 0 ? READ_FIRST : c->in_cap;
	uint8_t *p;

	if (c->in_cap > c->in_len)
		return true;
	if (c->in_cap != 0)
		cap = cap < READ_CHUNK ? cap * 4 : cap + READ_CHUNK;
	if (cap > RPC_MSG_MAX + 2 * READ_CHUNK)
		return false;
	p = realloc(c->in, cap);
	if (p == NULL)
		return false;
	c->in = p;
	c->in_cap = cap;
	return true;
}

/*
 * Descriptors stand in a queue in the order of the messages they came with: on
 * a stream the kernel glues a message with descriptors to the bytes before
 * it, so which request they belong to is said by the requests' passFds.
 */
static ssize_t
read_some(struct client *c, bool *ret_fits)
{
	FDPASS_BUFFER(CLIENT_FDS_MAX) control;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	iov.iov_base = c->in + c->in_len;
	iov.iov_len = c->in_cap - c->in_len;
	if (iov.iov_len > READ_CHUNK)
		iov.iov_len = READ_CHUNK;
	msg.msg_control = &control;
	msg.msg_controllen = CMSG_LEN(sizeof(int) * CLIENT_FDS_MAX);
	do {
		n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	*ret_fits =
	    n < 0 || fdpass_take(&msg, c->fds, CLIENT_FDS_MAX, &c->nfds);
	return n;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	bool fits;
	ssize_t n;

	(void)fd;
	(void)what;
	if (!may_read(c)) {
		stop_reading(c);
		return;
	}
	if (!in_reserve(c)) {
		client_doom(c, "no room for its message");
		return;
	}
	n = read_some(c, &fits);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		client_doom(c, NULL);
		return;
	}
	if (!fits) {
		client_doom(c, "too many descriptors");
		return;
	}
	c->in_len += (size_t)n;
	handle_input(c);
	if (!may_read(c))
		stop_reading(c);
}

/* Requests that were complete before have waited. */
static void
read_on(struct client *c)
{
	handle_input(c);
	if (may_read(c))
		(void)event_add(c->readable, NULL);
	else
		stop_reading(c);
}

/* Clients only end by the reaper, so the list stays as it is. */
static void
on_not_busy(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval soon = { .tv_usec = BUSY_MS * 1000 };
	struct clients *all = arg;
	struct client *c;

	(void)fd;
	(void)what;
	TAILQ_FOREACH (c, &all->list, entry)
		if (may_read(c))
			read_on(c);
	if (is_busy(all))
		(void)event_add(all->not_busy, &soon);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	bool was_full = client_pending(c) >= CLIENT_OUT_HIGH;

	(void)fd;
	(void)what;
	if (!flush(c)) {
		client_doom(c, NULL);
		return;
	}
	if (client_pending(c) == 0)
		(void)event_del(c->writable);
	if (c->state == CLIENT_DRAINING && client_pending(c) == 0) {
		client_doom(c, NULL);
		return;
	}
	if (client_pending(c) >= CLIENT_OUT_HIGH)
		return;
	if (was_full && may_read(c))
		read_on(c);
	if (c->reader != NULL && c->state == CLIENT_OPEN)
		events_reader_ready(c->reader);
}

/* ---------------------------------------------------------------- accepting */

/* Takes fd. NULL: no memory, fd is closed. */
static struct client *
client_new(struct clients *all, int fd)
{
	struct event_base *base = all->control->base;
	struct client *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		(void)close(fd);
		return NULL;
	}
	c->out_fd = -1;
	c->clients = all;
	c->fd = fd;
	TAILQ_INIT(&c->calls);
	c->conn = control_number(all->control);
	c->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, c);
	c->writable =
	    event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, c);
	c->timer = evtimer_new(base, on_timer, c);
	if (c->readable == NULL || c->writable == NULL || c->timer == NULL) {
		client_free(c);
		return NULL;
	}
	return c;
}

/*
 * The supervisor gets a duplicate of the connection once and asks the kernel
 * who is at the other end. Nothing is read before the answer.
 */
static void
accept_one(struct clients *all, int fd)
{
	struct client *c;
	int copy;

	if (all->n >= all->control->conf->limits[LIMIT_CONNECTIONS]) {
		(void)close(fd);
		log_event(EV_CLIENT_REFUSED,
		    LF_STR(LK_REASON, "too many connections"));
		return;
	}
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 5);
	if (copy < 0) {
		(void)close(fd);
		log_event(EV_CLIENT_REFUSED,
		    LF_STR(LK_REASON, "no descriptor left"));
		return;
	}
	c = client_new(all, fd);
	if (c == NULL) {
		(void)close(copy);
		return;
	}
	TAILQ_INSERT_TAIL(&all->list, c, entry);
	all->n++;
	if (peer_send(all->control->supervisor, MSG_client_ask,
		&(struct msg_client_ask){ .conn = c->conn }, &copy, 1) != 0)
		client_doom(c, NULL);
}

/*
 * No descriptor is left: the reserve makes room to accept the connection and
 * close it, since it would else wake the loop for ever. The reserve is a
 * duplicate, because there is no file to open in an empty root. False when
 * there was no reserve either.
 */
static bool
refuse_one(struct clients *all)
{
	bool had = all->reserve_fd >= 0;
	int fd;

	if (had) {
		(void)close(all->reserve_fd);
		/* cppcheck-suppress nullPointer; accept4(2) permits it */
		fd = accept4(all->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			(void)close(fd);
		log_event(EV_CLIENT_REFUSED,
		    LF_STR(LK_REASON, "no descriptor left"));
	}
	all->reserve_fd = fcntl(all->listen_fd, F_DUPFD_CLOEXEC, 5);
	return had;
}

/* The system has no memory or no descriptor: try again after a while, rather
 * than be woken for ever. */
static void
accept_later(struct clients *all)
{
	struct timeval pause = timeval_ms(ACCEPT_PAUSE_MS);

	(void)event_del(all->acceptable);
	(void)event_add(all->accept_again, &pause);
}

static void
on_acceptable(evutil_socket_t fd, short what, void *arg)
{
	struct clients *all = arg;

	(void)what;
	for (int i = 0; i < ACCEPT_BURST; i++) {
		int conn;

		/* cppcheck-suppress nullPointer; accept4(2) permits it */
		conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (conn >= 0) {
			accept_one(all, conn);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN || (errno == EMFILE && refuse_one(all)))
			return;
		accept_later(all);
		return;
	}
}

static void
on_accept_again(evutil_socket_t fd, short what, void *arg)
{
	struct clients *all = arg;

	(void)fd;
	(void)what;
	(void)event_add(all->acceptable, NULL);
}

static size_t
count_uid(const struct clients *all, uid_t uid)
{
	const struct client *c;
	size_t n = 0;

	TAILQ_FOREACH (c, &all->list, entry)
		if (c->who.client != 0 && c->who.uid == uid &&
		    c->state != CLIENT_DOOMED)
			n++;
	return n;
}

static struct client *
find_conn(struct clients *all, uint64_t conn)
{
	struct client *c;

	TAILQ_FOREACH (c, &all->list, entry)
		if (c->conn == conn)
			return c;
	return NULL;
}

int
clients_identified(struct clients *all, uint64_t conn, uint64_t client,
    uid_t uid, bool is_operator)
{
	const struct conf *conf = all->control->conf;
	struct timeval limit = timeval_ms(CLIENT_HELLO_MS);
	struct client *c = find_conn(all, conn);
	size_t before = count_uid(all, uid);

	if (c == NULL || c->who.client != 0) {
		/* ended while the answer was on its way */
		if (client != 0)
			(void)PEER_SEND(all->control->supervisor, client_gone,
			    .client = client);
		return 0;
	}
	if (client == 0) {
		/* The supervisor has recorded it, with the reason. */
		client_doom(c, NULL);
		return 0;
	}
	c->who = (struct caller){ client, uid, is_operator };
	if (c->state == CLIENT_DOOMED)
		return 0;
	c->state = CLIENT_HELLO;
	c->over_limit = before >= conf->limits[LIMIT_CONNECTIONS_UID];
	(void)event_add(c->timer, &limit);
	(void)event_add(c->readable, NULL);
	if (!c->over_limit)
		return 0;
	/*
	 * One too many of this uid. A hello that has come already is answered
	 * `limit`; nobody waits for one, or a uid could fill every place.
	 */
	log_event(EV_CLIENT_REFUSED, LF_NUM(LK_CLIENT, client),
	    LF_NUM(LK_PEER_UID, uid),
	    LF_STR(LK_REASON, "too many connections of this user"));
	on_readable(c->fd, EV_READ, c);
	client_drain(c);
	return 0;
}

void
client_welcome(struct client *c, bool agreed)
{
	if (!agreed) {
		client_drain(c);
		return;
	}
	c->state = CLIENT_OPEN;
	(void)event_del(c->timer);
}

/* ---------------------------------------------------------------- life */

int
clients_new(struct control *control, struct clients **ret)
{
	struct clients *all = calloc(1, sizeof(*all));

	if (all == NULL)
		return -ENOMEM;
	all->control = control;
	all->listen_fd = -1;
	all->reserve_fd = -1;
	TAILQ_INIT(&all->list);
	all->reap = event_new(control->base, -1, 0, on_reap, all);
	all->accept_again = evtimer_new(control->base, on_accept_again, all);
	all->not_busy = evtimer_new(control->base, on_not_busy, all);
	if (all->reap == NULL || all->accept_again == NULL ||
	    all->not_busy == NULL) {
		clients_free(all);
		return -ENOMEM;
	}
	*ret = all;
	return 0;
}

int
clients_listen(struct clients *all, int fd)
{
	if (all->listen_fd >= 0) {
		(void)close(fd);
		return -EALREADY;
	}
	all->listen_fd = fd;
	if (evutil_make_socket_nonblocking(fd) != 0)
		return -errno;
	all->reserve_fd = fcntl(fd, F_DUPFD_CLOEXEC, 5);
	all->acceptable = event_new(all->control->base, fd,
	    EV_READ | EV_PERSIST, on_acceptable, all);
	if (all->acceptable == NULL || event_add(all->acceptable, NULL) != 0)
		return -ENOMEM;
	return 0;
}

void
clients_free(struct clients *all)
{
	struct client *c;

	if (all == NULL)
		return;
	while ((c = TAILQ_FIRST(&all->list)) != NULL) {
		TAILQ_REMOVE(&all->list, c, entry);
		client_free(c);
	}
	if (all->acceptable != NULL)
		event_free(all->acceptable);
	if (all->accept_again != NULL)
		event_free(all->accept_again);
	if (all->not_busy != NULL)
		event_free(all->not_busy);
	if (all->reap != NULL)
		event_free(all->reap);
	if (all->listen_fd >= 0)
		(void)close(all->listen_fd);
	if (all->reserve_fd >= 0)
		(void)close(all->reserve_fd);
	free(all);
}
