/*
 * sd_notify(3) and the watchdog; see notify.h. The environment is the service
 * manager's, which started us: trusted.
 */
#include "common/notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int notify_fd = -1;

static uint64_t
number(const char *text)
{
	unsigned long long n;
	char *end;

	if (text == NULL || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	n = strtoull(text, &end, 10);
	return errno != 0 || *end != '\0' ? 0 : n;
}

static int
open_socket(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	socklen_t size;
	int fd;

	if (len < 2 || len >= sizeof(sun.sun_path) ||
	    (path[0] != '/' && path[0] != '@'))
		return -1;
	memcpy(sun.sun_path, path, len);
	/* Abstract names count every byte; path names end with a NUL. */
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	if (path[0] == '@')
		sun.sun_path[0] = '\0';
	else
		size++;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&sun, size) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static uint64_t
watchdog_ms(void)
{
	const char *pid = getenv("WATCHDOG_PID");
	uint64_t usec = number(getenv("WATCHDOG_USEC"));

	if (pid != NULL && number(pid) != (uint64_t)getpid())
		return 0;
	if (usec == 0)
		return 0;
	return usec < 4000 ? 1 : usec / 2000;
}

uint64_t
notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	uint64_t ms = watchdog_ms();

	if (path != NULL)
		notify_fd = open_socket(path);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
	return notify_fd < 0 ? 0 : ms;
}

void
notify_send(const char *state)
{
	/* A manager that does not read loses the message, never our time. */
	if (notify_fd >= 0)
		(void)send(notify_fd, state, strlen(state), MSG_NOSIGNAL);
}
