/*
 * What the service has in the file system: its runtime directory, its state
 * directory and the client socket. The names come from the configuration as
 * control read it. That file is root's, but control is not: so nothing is
 * taken over that is not already root's (or control's, for the state), and
 * nothing is followed, changed or removed outside these directories.
 */
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/path.h"
#include "common/priv.h"
#include "common/sockunix.h"
#include "config.h"
#include "supervisor/supervisor.h"

#define LISTEN_BACKLOG 128
#define DEFAULT_INSTANCE_DIR "/run/stockade"
/* The launcher of an instance that was killed ends its runs first; it holds
 * the lock as long. */
#define LOCK_TRIES 100
#define LOCK_WAIT_MS 50

static int
complain(const char *path, const char *what, int error)
{
	log_line(LOG_LEVEL_ERR, "%s: %s: %s", path, what, strerror(-error));
	return error;
}

/*
 * Opens a directory of the service and makes its last component if it is
 * missing. One that exists is taken as it is and never changed: the name may
 * be a mistake, or a lie of control, and then it is /etc. It must belong to
 * root or to `owner` and be writable by nobody else. A new one has `mode` and
 * is given to `owner`.
 */
static int
open_directory(const char *path, mode_t mode, const struct priv_user *owner,
    int *ret_fd)
{
	autoclose int fd = -1;
	struct stat st;
	bool made;

	if (!path_is_clean(path))
		return complain(path, "no clean absolute path", -EINVAL);
	made = mkdir(path, 0700) == 0;
	if (!made && errno != EEXIST)
		return complain(path, "cannot be made", -errno);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return complain(path, "cannot be opened", -errno);
	if (st.st_uid != 0 && st.st_uid != owner->uid)
		return complain(path, "belongs to another user", -EPERM);
	if ((st.st_mode & 022) != 0)
		return complain(path, "is writable by others", -EPERM);
	if (made &&
	    (fchmod(fd, mode) < 0 || fchown(fd, owner->uid, owner->gid) < 0))
		return complain(path, "cannot be set up", -errno);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* 0711: clients reach the socket, nobody lists what is in it. */
static int
open_runtime(struct supervisor *s)
{
	const struct priv_user root = { 0, 0 };

	return open_directory(s->conf.runtime_dir, 0711, &root, &s->runtime_fd);
}

/* The descriptor is passed to launcherd, which then holds the lock as well:
 * after a kill -9 the next start waits until the old runs are gone. */
static int
lock_runtime(struct supervisor *s)
{
	const struct timespec wait = { .tv_nsec = LOCK_WAIT_MS * 1000000L };

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(s->runtime_fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return complain(s->conf.runtime_dir, "flock", -errno);
		(void)nanosleep(&wait, NULL);
	}
	return complain(s->conf.runtime_dir, "in use by another instance",
	    -EBUSY);
}

static int
make_state(struct supervisor *s)
{
	autoclose int fd = -1;

	return open_directory(s->conf.state_dir, 0700, &s->users[0], &fd);
}

/* The daemons' users: no run may be one of them. */
static int
find_users(struct supervisor *s)
{
	static const char *const names[SUPERVISOR_USERS] = { CONTROL_USER,
		PROXY_USER, RESOLVE_USER };

	for (size_t i = 0; i < SUPERVISOR_USERS; i++) {
		int r = priv_lookup_user(names[i], &s->users[i]);

		if (r < 0)
			return complain(names[i], "no such user", r);
	}
	return 0;
}

/* FNV-1a, 64 bits: a short name, no security. */
void
runtime_instance(const char *runtime_dir, char *ret, size_t size)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	if (strcmp(runtime_dir, DEFAULT_INSTANCE_DIR) == 0) {
		(void)snprintf(ret, size, "default");
		return;
	}
	for (const char *p = runtime_dir; *p != '\0'; p++) {
		hash ^= (unsigned char)*p;
		hash *= UINT64_C(0x100000001b3);
	}
	(void)snprintf(ret, size, "%016" PRIx64, hash);
}

static int
find_groups(struct supervisor *s)
{
	int r = priv_lookup_group(s->conf.client_group, &s->gids.client);

	if (r < 0)
		return complain(s->conf.client_group, "no such group", r);
	r = priv_lookup_group(s->conf.admin_group, &s->gids.admin);
	if (r < 0)
		return complain(s->conf.admin_group, "no such group", r);
	/* Everybody in group 0 or nobody's group would be let in. */
	if (s->gids.client == 0 || s->gids.admin == 0)
		return complain("client-group, admin-group",
		    "group 0 is not permitted", -EPERM);
	return 0;
}

/* root, 0755, empty: what proc_chroot_empty() asks for. */
static int
make_empty(struct supervisor *s)
{
	if (mkdirat(s->runtime_fd, RUNTIME_EMPTY, 0755) < 0 && errno != EEXIST)
		return complain(s->conf.runtime_dir, RUNTIME_EMPTY, -errno);
	if (fchmodat(s->runtime_fd, RUNTIME_EMPTY, 0755, 0) < 0)
		return complain(s->conf.runtime_dir, RUNTIME_EMPTY, -errno);
	return 0;
}

static void
remove_leftover(struct supervisor *s)
{
	struct stat st;

	if (lstat(s->conf.socket_path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
	    unlink(s->conf.socket_path) < 0)
		return;
	log_event(EV_LEFTOVER_REMOVED, LF_STR(LK_PATH, s->conf.socket_path));
}

int
runtime_open(struct supervisor *s)
{
	int r = find_groups(s);

	if (r == 0)
		r = find_users(s);
	if (r == 0)
		r = open_runtime(s);
	if (r == 0)
		r = lock_runtime(s);
	if (r == 0)
		r = make_empty(s);
	if (r == 0)
		r = make_state(s);
	if (r < 0)
		return r;
	runtime_instance(s->conf.runtime_dir, s->instance, sizeof(s->instance));
	remove_leftover(s);
	return 0;
}

int
runtime_listen(struct supervisor *s)
{
	struct sockaddr_un sun;
	socklen_t size = sizeof(sun);
	int fd;

	if (!path_is_clean(s->conf.socket_path))
		return complain(s->conf.socket_path, "no clean absolute path",
		    -EINVAL);
	fd = sockunix_listen(s->conf.socket_path, s->gids.client, 0660,
	    LISTEN_BACKLOG);
	if (fd < 0)
		return complain(s->conf.socket_path, "cannot listen", fd);
	memset(&sun, 0, sizeof(sun));
	if (getsockname(fd, (struct sockaddr *)&sun, &size) < 0 ||
	    size > sizeof(sun)) {
		(void)close(fd);
		return complain(s->conf.socket_path, "getsockname", -EINVAL);
	}
	(void)snprintf(s->listen_name, sizeof(s->listen_name), "%.107s",
	    sun.sun_path);
	s->listen_fd = fd;
	return 0;
}

void
runtime_close(struct supervisor *s)
{
	if (s->listen_fd >= 0) {
		(void)unlink(s->conf.socket_path);
		(void)close(s->listen_fd);
		s->listen_fd = -1;
	}
	if (s->runtime_fd >= 0) {
		(void)unlinkat(s->runtime_fd, RUNTIME_EMPTY, AT_REMOVEDIR);
		(void)close(s->runtime_fd);
	}
	s->runtime_fd = -1;
}
