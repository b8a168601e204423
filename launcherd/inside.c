/*
 * See inside.h. The texts are the kernel's; a process of the run may have
 * written none of them, since nothing of it executes yet.
 */
#include "launcherd/inside.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "launcherd/run.h"

#define PIDS_TEXT 4096
#define STATUS_TEXT 4096

/* The text of a small file of /proc or a cgroup, terminated. */
static int
read_text(int dir, const char *name, char *buf, size_t size)
{
	autoclose int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

/* Whether a process is the first one of a namespace below ours. */
static bool
is_init(int proc_fd)
{
	char text[STATUS_TEXT], *line, *end;
	const char *last = NULL;
	size_t n = 0;

	if (read_text(proc_fd, "status", text, sizeof(text)) < 0)
		return false;
	line = strstr(text, "\nNSpid:");
	if (line == NULL)
		return false;
	line += strlen("\nNSpid:");
	end = strchr(line, '\n');
	if (end != NULL)
		*end = '\0';
	for (char *save = NULL, *p = strtok_r(line, "\t ", &save); p != NULL;
	     p = strtok_r(NULL, "\t ", &save), n++)
		last = p;
	return n > 1 && strcmp(last, "1") == 0;
}

int
inside_open(const struct run *run)
{
	char pids[PIDS_TEXT], path[32];
	char *save = NULL;
	autoclose int dir = cgroup_processes(&run->cgroup);
	int r =
	    dir < 0 ? dir : read_text(dir, "cgroup.procs", pids, sizeof(pids));

	if (r < 0)
		return r;
	for (char *p = strtok_r(pids, "\n", &save); p != NULL;
	     p = strtok_r(NULL, "\n", &save)) {
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/%.16s", p);
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && is_init(fd))
			return fd;
		close_all(&fd, 1);
	}
	return -ESRCH;
}

int
inside_namespace(int proc_fd, const char *name)
{
	char path[32];
	struct stat own, theirs;
	autoclose int fd = -1;

	(void)snprintf(path, sizeof(path), "ns/%s", name);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &theirs) < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	if (stat(path, &own) < 0)
		return -errno;
	if (own.st_dev == theirs.st_dev && own.st_ino == theirs.st_ino)
		return -EPERM;
	return take_fd(&fd);
}
