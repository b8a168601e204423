/*
 * See channel.h.
 */
#include "launcherd/init/channel.h"

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/chan.h"

const char *
channel_open(void)
{
	int type = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(CHANNEL, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    type != SOCK_SEQPACKET)
		return "is started by stockade-launcherd, with a channel on "
		       "descriptor 3";
	if (close_range(CHANNEL + 1, ~0u, 0) < 0 ||
	    fcntl(CHANNEL, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(CHANNEL, F_SETFL, 0) < 0)
		return "descriptors";
	return NULL;
}

unsigned
channel_receive(enum proc self, union msg_any *ret, int *ret_fds,
    size_t *ret_nfds)
{
	static uint8_t buf[CHAN_PACKET_MAX];
	ptrdiff_t len =
	    chan_recv_fd(CHANNEL, buf, sizeof(buf), ret_fds, ret_nfds);
	int type;

	if (len <= 0)
		_exit(len == 0 ? 0 : EXIT_RULES);
	type = msg_decode(buf, (size_t)len, *ret_nfds, PROC_LAUNCHERD, self,
	    ret, NULL);
	if (type < 0)
		_exit(EXIT_RULES);
	return (unsigned)type;
}

int
channel_expect(enum proc self, enum msg_type want, union msg_any *ret)
{
	int fds[CHAN_FDS_MAX] = { -1 };
	size_t nfds = 0;

	if (channel_receive(self, ret, fds, &nfds) != want)
		_exit(EXIT_RULES);
	return fds[0];
}

int
channel_send(enum proc self, enum msg_type type, const void *msg,
    const int *fds, size_t nfds)
{
	uint8_t buf[MSG_SIZE_MAX];
	ptrdiff_t len =
	    msg_encode(type, msg, self, PROC_LAUNCHERD, nfds, buf, sizeof(buf));

	return len < 0 ? -EINVAL :
			 chan_send_fd(CHANNEL, buf, (size_t)len, fds, nfds);
}
