/*
 * Paths that others wrote; see path.h. The kernel resolves them (openat2(2),
 * Linux 5.6); nothing here looks at a path and opens it afterwards by name.
 */
#include "common/path.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES_MAX 4095
/* RESOLVE_BENEATH may answer EAGAIN when a rename races with it. */
#define TRIES_MAX 32

bool
path_is_clean(const char *path)
{
	const char *p = path;

	if (*p != '/' || strlen(path) > PATH_BYTES_MAX)
		return false;
	if (p[1] == '\0')
		return true;
	while (*p != '\0') {
		const char *name = ++p;
		size_t len;

		p += strcspn(p, "/");
		len = (size_t)(p - name);
		if (len == 0 || (len == 1 && name[0] == '.') ||
		    (len == 2 && name[0] == '.' && name[1] == '.'))
			return false;
	}
	return true;
}

bool
path_is_within(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (len == 1)
		return true;
	return strncmp(path, dir, len) == 0 &&
	    (path[len] == '\0' || path[len] == '/');
}

int
path_compare(const char *a, const char *b)
{
	for (; *a == *b && *a != '\0'; a++, b++)
		;
	if (*a == *b)
		return 0;
	if (*a == '\0' || *b == '\0')
		return *a == '\0' ? -1 : 1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int
open_how(int dirfd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
		.resolve = resolve,
	};

	for (int i = 0; i < TRIES_MAX; i++) {
		long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

		if (fd >= 0)
			return (int)fd;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return -EAGAIN;
}

int
path_open(const char *path, int flags)
{
	if (path[0] != '/')
		return -EINVAL;
	return open_how(AT_FDCWD, path, flags, RESOLVE_NO_MAGICLINKS);
}

int
path_open_beneath(int dirfd, const char *path, int flags)
{
	return open_how(dirfd, path, flags,
	    RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
}

/* The kernel appends " (deleted)" to the name of an unlinked file, which a
 * file may also really be called. */
static bool
is_deleted(int fd, const char *path)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(path);
	struct stat here, there;

	if (len < sizeof(mark) ||
	    strcmp(path + len - (sizeof(mark) - 1), mark) != 0)
		return false;
	return fstat(fd, &here) < 0 || lstat(path, &there) < 0 ||
	    here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}

int
path_of_fd(int fd, char *ret, size_t size)
{
	char link[sizeof("/proc/self/fd/") + 16];
	char buf[PATH_BYTES_MAX + 1];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, buf, sizeof(buf));
	if (len < 0)
		return -errno;
	if ((size_t)len >= sizeof(buf) || (size_t)len >= size)
		return -ENAMETOOLONG;
	buf[len] = '\0';
	/* "pipe:[1]", "(unreachable)/x": no path of ours. */
	if (buf[0] != '/' || is_deleted(fd, buf))
		return -ENOENT;
	memcpy(ret, buf, (size_t)len + 1);
	return 0;
}
