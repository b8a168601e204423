/*
 * launcherd: the network namespace of a run. Nothing here reads a byte that
 * somebody else wrote; addresses and ports are constants.
 */
#include "launcherd/netns.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

#define NETNS_SELF "/proc/self/ns/net"
#define LISTEN_BACKLOG 256

int
netns_home_open(struct netns_home *ret)
{
	autoclose int fd = open(NETNS_SELF, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->fd = take_fd(&fd);
	return 0;
}

void
netns_home_close(struct netns_home *home)
{
	if (home->fd >= 0)
		(void)close(home->fd);
	home->fd = -1;
}

void
netns_close(struct netns *ns)
{
	int *fds[] = { &ns->fd, &ns->http_fd, &ns->socks_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]);
		*fds[i] = -1;
	}
}

static int
loopback_up(int sock)
{
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	memcpy(request.ifr_name, "lo", sizeof("lo"));
	request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
	return ioctl(sock, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int
listen_on(uint16_t port, int *ret_fd)
{
	autoclose int fd =
	    socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&sin, sizeof(sin)) < 0 ||
	    listen(fd, LISTEN_BACKLOG) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Runs inside the new namespace; what it made is in *ns also on failure. The
 * first listener's socket serves for the ioctl as well. */
static int
furnish(struct netns *ns)
{
	int error;

	ns->fd = open(NETNS_SELF, O_RDONLY | O_CLOEXEC);
	if (ns->fd < 0)
		return -errno;
	error = listen_on(NETNS_HTTP_PORT, &ns->http_fd);
	if (error == 0)
		error = listen_on(NETNS_SOCKS_PORT, &ns->socks_fd);
	if (error == 0)
		error = loopback_up(ns->http_fd);
	return error;
}

static int
go_home(const struct netns_home *home)
{
	struct stat st;

	if (setns(home->fd, CLONE_NEWNET) < 0 || stat(NETNS_SELF, &st) < 0 ||
	    st.st_dev != home->dev || st.st_ino != home->ino)
		return -ENOTRECOVERABLE;
	return 0;
}

/*
 * Who asks: a launch that the supervisor admitted. Safe if the asker is
 * hostile: it chooses nothing; the process is single-threaded, so no other
 * work happens while it is inside, and it verifies that it came back.
 */
int
netns_make(const struct netns_home *home, struct netns *ret)
{
	struct netns ns = { -1, -1, -1 };
	int error;

	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	error = furnish(&ns);
	if (go_home(home) < 0) {
		netns_close(&ns);
		return -ENOTRECOVERABLE;
	}
	if (error < 0) {
		netns_close(&ns);
		return error;
	}
	*ret = ns;
	return 0;
}
