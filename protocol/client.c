/*
 * See client.h. In stockadectl. The service is trusted with the caller's spec;
 * its bytes are checked all the same.
 */
#include "protocol/client.h"

#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fdpass.h"

#define READ_BYTES 65536
#define FDS_OF_A_READ 8 /* room for more than may wait: too many is told */

/* A message that was read and not taken. */
struct waiting {
	STAILQ_ENTRY(waiting) entry;
	struct rpc_message msg;
};

struct rpc_client {
	int fd;
	uint32_t last_id;
	struct rpc_out request; /* being written */
	uint8_t *out; /* finished requests */
	size_t out_len;
	uint8_t *in;
	size_t in_len;
	size_t in_cap;
	struct rpc_scan scan;
	STAILQ_HEAD(, waiting) messages;
	int fds[RPC_FDS_MAX];
	size_t nfds;
};

int
rpc_client_open(const char *path, struct rpc_client **ret)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	union {
		const struct sockaddr_un *in;
		const struct sockaddr *sa;
	} p = { .in = &sun };
	autoclose int fd = -1;
	struct rpc_client *c;

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	while (connect(fd, p.sa, sizeof(sun)) < 0)
		if (errno != EINTR)
			return -errno;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->fd = take_fd(&fd);
	STAILQ_INIT(&c->messages);
	*ret = c;
	return 0;
}

void
rpc_client_close(struct rpc_client *c)
{
	struct waiting *w;

	if (c == NULL)
		return;
	while ((w = STAILQ_FIRST(&c->messages)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->messages, entry);
		rpc_done(&w->msg);
		free(w);
	}
	rpc_out_done(&c->request);
	close_all(c->fds, c->nfds);
	free(c->out);
	free(c->in);
	(void)close(c->fd);
	free(c);
}

int
rpc_client_fd(const struct rpc_client *c)
{
	return c->fd;
}

/* ---------------------------------------------------------------- sending */

struct rpc_out *
rpc_client_begin(struct rpc_client *c, const char *method)
{
	rpc_out_done(&c->request);
	rpc_out_init(&c->request);
	rpc_begin_request(&c->request, ++c->last_id, method);
	return &c->request;
}

uint32_t
rpc_client_end(struct rpc_client *c)
{
	uint8_t *more;

	if (rpc_end_message(&c->request) < 0)
		return 0;
	more = realloc(c->out, c->out_len + c->request.len);
	if (more == NULL)
		return 0;
	memcpy(more + c->out_len, c->request.data, c->request.len);
	c->out = more;
	c->out_len += c->request.len;
	return c->last_id;
}

static ssize_t
send_some(int fd, uint8_t *data, size_t len, const int *fds, size_t nfds)
{
	FDPASS_BUFFER(RPC_FDS_MAX) control;
	struct iovec iov = { data, len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	fdpass_put(&mh, &control, fds, nfds);
	return sendmsg(fd, &mh, MSG_NOSIGNAL);
}

int
rpc_client_flush(struct rpc_client *c, const int *fds, size_t nfds)
{
	size_t at = 0;

	if (nfds > RPC_FDS_MAX)
		return -EINVAL;
	while (at < c->out_len) {
		ssize_t n = send_some(c->fd, c->out + at, c->out_len - at, fds,
		    at == 0 ? nfds : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ECONNRESET ? -EPIPE : -errno;
		at += (size_t)n;
	}
	c->out_len = 0;
	return 0;
}

/* ---------------------------------------------------------------- receiving */

static int
make_room(struct rpc_client *c)
{
	size_t cap = c->in_len + READ_BYTES;
	uint8_t *more;

	if (c->in_cap >= cap)
		return 0;
	more = realloc(c->in, cap);
	if (more == NULL)
		return -ENOMEM;
	c->in = more;
	c->in_cap = cap;
	return 0;
}

/* Cuts whole messages off the front of what was read. */
static int
split(struct rpc_client *c)
{
	size_t at = 0, len = 0;
	int r;

	while ((r = rpc_scan(&c->scan, c->in + at, c->in_len - at, &len,
		    NULL)) == 1) {
		struct waiting *w = calloc(1, sizeof(*w));

		if (w == NULL)
			return -ENOMEM;
		r = rpc_unpack(c->in + at, len, &w->msg);
		if (r < 0) {
			free(w);
			return r;
		}
		STAILQ_INSERT_TAIL(&c->messages, w, entry);
		memset(&c->scan, 0, sizeof(c->scan));
		at += len;
	}
	memmove(c->in, c->in + at, c->in_len - at);
	c->in_len -= at;
	return r;
}

int
rpc_client_read(struct rpc_client *c)
{
	FDPASS_BUFFER(FDS_OF_A_READ) control;
	struct iovec iov;
	struct msghdr mh = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t n;
	int r = make_room(c);

	if (r < 0)
		return r;
	iov.iov_base = c->in + c->in_len;
	iov.iov_len = READ_BYTES;
	do {
		n = recvmsg(c->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if (!fdpass_take(&mh, c->fds, RPC_FDS_MAX, &c->nfds))
		return -EPROTO;
	if (n == 0)
		return -EPIPE;
	c->in_len += (size_t)n;
	return split(c);
}

int
rpc_client_next(struct rpc_client *c, struct rpc_message *ret)
{
	struct waiting *w = STAILQ_FIRST(&c->messages);

	if (w == NULL)
		return 0;
	STAILQ_REMOVE_HEAD(&c->messages, entry);
	*ret = w->msg;
	free(w);
	return 1;
}

static bool
take_answer(struct rpc_client *c, uint32_t id, struct rpc_message *ret)
{
	struct waiting *w;

	STAILQ_FOREACH (w, &c->messages, entry) {
		if (w->msg.type != RPC_ANSWER || w->msg.id != id)
			continue;
		STAILQ_REMOVE(&c->messages, w, waiting, entry);
		*ret = w->msg;
		free(w);
		return true;
	}
	return false;
}

static int64_t
now_ms(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int
rpc_client_wait(struct rpc_client *c, uint32_t id, int timeout_ms,
    struct rpc_message *ret)
{
	int64_t end = now_ms() + timeout_ms;

	if (id == 0)
		return -ENOMEM;
	while (!take_answer(c, id, ret)) {
		struct pollfd p = { c->fd, POLLIN, 0 };
		int64_t left = timeout_ms < 0 ? -1 : end - now_ms();
		int r;

		if (timeout_ms >= 0 && left <= 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return -errno;
		r = rpc_client_read(c);
		if (r < 0 && r != -EAGAIN)
			return r;
	}
	return 0;
}

int
rpc_client_take_fd(struct rpc_client *c)
{
	int fd;

	if (c->nfds == 0)
		return -1;
	fd = c->fds[0];
	c->nfds--;
	memmove(c->fds, c->fds + 1, c->nfds * sizeof(c->fds[0]));
	return fd;
}
