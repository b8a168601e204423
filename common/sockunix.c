/*
 * Unix stream sockets; see sockunix.h. What a peer is comes from the kernel
 * alone.
 */
#include "common/sockunix.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

/* More groups than Linux lets a process have (NGROUPS_MAX). */
#define GROUPS_MAX 65536

/* A name in the directory of `path`, unlike any name that we give out. */
static int
temporary_name(const char *path, struct sockaddr_un *ret)
{
	const char *slash = strrchr(path, '/');
	int n;

	if (slash == NULL || slash[1] == '\0')
		return -EINVAL;
	if (strlen(path) >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%.*s.%d.s",
	    (int)(slash - path) + 1, path, (int)getpid());
	if (n < 0 || (size_t)n >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	return 0;
}

static int
bind_private(int fd, const struct sockaddr_un *sun)
{
	mode_t old;
	int r;

	if (unlink(sun->sun_path) < 0 && errno != ENOENT)
		return -errno;
	old = umask(0177);
	r = bind(fd, (const struct sockaddr *)sun, sizeof(*sun));
	if (r < 0)
		r = -errno;
	(void)umask(old);
	return r;
}

static int
publish(int fd, const char *from, const char *path, gid_t group, mode_t mode,
    int backlog)
{
	struct stat st;

	if (lchown(from, (uid_t)-1, group) < 0 || chmod(from, mode) < 0 ||
	    listen(fd, backlog) < 0)
		return -errno;
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode))
			return -EEXIST;
	} else if (errno != ENOENT) {
		return -errno;
	}
	return rename(from, path) < 0 ? -errno : 0;
}

int
sockunix_listen(const char *path, gid_t group, mode_t mode, int backlog)
{
	struct sockaddr_un sun;
	autoclose int fd = -1;
	int r = temporary_name(path, &sun);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = bind_private(fd, &sun);
	if (r < 0)
		return r;
	r = publish(fd, sun.sun_path, path, group, mode, backlog);
	if (r < 0) {
		(void)unlink(sun.sun_path);
		return r;
	}
	return take_fd(&fd);
}

/* SO_PEERGROUPS (Linux 4.13) answers ERANGE and the size that it needs. */
static int
peer_groups(int fd, gid_t **ret_groups, size_t *ret_n)
{
	socklen_t size = 64 * sizeof(gid_t);

	for (int i = 0; i < 4; i++) {
		autofree gid_t *groups = malloc(size);

		if (groups == NULL)
			return -ENOMEM;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) ==
		    0) {
			*ret_n = size / sizeof(gid_t);
			*ret_groups = take_ptr(&groups);
			return 0;
		}
		if (errno != ERANGE)
			return -errno;
		if (size == 0 || size > GROUPS_MAX * sizeof(gid_t))
			return -EOVERFLOW;
	}
	return -EOVERFLOW;
}

int
sockunix_peer_of(int fd, struct sockunix_peer *ret)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);
	gid_t *groups = NULL;
	size_t n = 0;
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	/* A socket that is not connected, or whose peer lives outside our user
	 * namespace, has no owner that could be named. */
	if (size != sizeof(cred) || cred.pid <= 0 || cred.uid == (uid_t)-1 ||
	    cred.gid == (gid_t)-1)
		return -EPERM;
	r = peer_groups(fd, &groups, &n);
	if (r < 0)
		return r;
	*ret = (struct sockunix_peer){
		.uid = cred.uid,
		.gid = cred.gid,
		.pid = cred.pid,
		.ngroups = n,
		.groups = groups,
	};
	return 0;
}

void
sockunix_peer_done(struct sockunix_peer *peer)
{
	free(peer->groups);
	peer->groups = NULL;
	peer->ngroups = 0;
}
