/*
 * Packets and descriptors on one SOCK_SEQPACKET descriptor, without a loop;
 * see chan.h. Linked into every process that has a channel, stockade-init
 * included. The far end is hostile: the kernel's flags decide whether a packet
 * is whole, and a packet that is not whole gives no descriptor away.
 */
#include "common/chan.h"

#include <sys/socket.h>

#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fdpass.h"

ptrdiff_t
chan_recv_fd(int fd, void *buf, size_t size, int *fds, size_t *ret_nfds)
{
	FDPASS_BUFFER(CHAN_FDS_MAX) control;
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		/* Not CMSG_SPACE: its padding could let one more in. */
		.msg_controllen = CMSG_LEN(sizeof(int) * CHAN_FDS_MAX),
	};
	size_t nfds = 0;
	int reset = 0;
	ssize_t len;
	bool ok;

	memset(&control, 0, sizeof(control));
	/* ECONNRESET is told once, when the far end closed without having read
	 * all; what it had sent can still be read after it. */
	do {
		len = recvmsg(fd, &mh, MSG_CMSG_CLOEXEC);
	} while (
	    len < 0 && (errno == EINTR || (errno == ECONNRESET && !reset++)));
	if (len < 0)
		return -errno;
	ok = fdpass_take(&mh, fds, CHAN_FDS_MAX, &nfds);
	if ((mh.msg_flags & MSG_TRUNC) != 0)
		ok = false;
	if (!ok || len == 0) {
		close_all(fds, nfds);
		*ret_nfds = 0;
		return ok ? 0 : -EPROTO;
	}
	*ret_nfds = nfds;
	return len;
}

int
chan_send_fd(int fd, const void *data, size_t len, const int *fds, size_t nfds)
{
	FDPASS_BUFFER(CHAN_FDS_MAX) control;
	union {
		const void *in;
		void *out;
	} base = { .in = data };
	struct iovec iov = { .iov_base = base.out, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	/* A packet without bytes would look like the end of file. */
	if (len == 0 || nfds > CHAN_FDS_MAX)
		return -EINVAL;
	if (len > CHAN_PACKET_MAX)
		return -EMSGSIZE;
	fdpass_put(&mh, &control, fds, nfds);
	do {
		sent = sendmsg(fd, &mh, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}
