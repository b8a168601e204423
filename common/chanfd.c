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

/* CMSG_LEN and not CMSG_SPACE is passed to the kernel: the padding of the
 * latter could let one more descriptor in. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * CHAN_FDS_MAX)];
};

/* Takes the descriptors out of the control messages; false when something else
 * than descriptors came, or too many. What was taken is in fds in any case. */
static bool
take_fds(struct msghdr *mh, int *fds, size_t *ret_nfds)
{
	struct cmsghdr *cm;
	bool ok = true;
	size_t n = 0;

	for (cm = CMSG_FIRSTHDR(mh); cm != NULL; cm = CMSG_NXTHDR(mh, cm)) {
		size_t count;

		if (cm->cmsg_level != SOL_SOCKET ||
		    cm->cmsg_type != SCM_RIGHTS) {
			ok = false;
			continue;
		}
		count = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cm) + i * sizeof(int),
			    sizeof(fd));
			if (n < CHAN_FDS_MAX) {
				fds[n++] = fd;
			} else {
				(void)close(fd);
				ok = false;
			}
		}
	}
	*ret_nfds = n;
	return ok;
}

ptrdiff_t
chan_recv_fd(int fd, void *buf, size_t size, int *fds, size_t *ret_nfds)
{
	union control control;
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_LEN(sizeof(int) * CHAN_FDS_MAX),
	};
	size_t nfds = 0;
	ssize_t len;
	bool ok;

	memset(&control, 0, sizeof(control));
	do {
		len = recvmsg(fd, &mh, MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	ok = take_fds(&mh, fds, &nfds);
	if ((mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
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
	union control control;
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
	if (nfds > 0) {
		struct cmsghdr *cm;

		memset(&control, 0, sizeof(control));
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_LEN(sizeof(int) * nfds);
		cm = CMSG_FIRSTHDR(&mh);
		if (cm == NULL)
			return -EINVAL;
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(cm), fds, sizeof(int) * nfds);
	}
	do {
		sent = sendmsg(fd, &mh, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}
