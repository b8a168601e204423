/*
 * Reads a line of /proc/self/mountinfo (proc_pid_mountinfo(5)); no I/O. Octal
 * escapes are undone, lengths are bounded.
 */
#ifndef LAUNCHERD_MOUNTINFO_H
#define LAUNCHERD_MOUNTINFO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mountinfo {
	/* Of the super block as the kernel has it, which stat(2) need not
	 * tell (btrfs): major << 20 | minor. */
	uint32_t dev;
	bool read_only; /* the mount, not the super block */
	char root[PATH_MAX]; /* of the mount in its file system */
	char point[PATH_MAX];
	char type[32];
	const char *options; /* of the super block; points into the line */
	size_t options_len;
};

/*
 * "36 35 98:0 /root /point rw,noatime master:1 - type source options", without
 * its newline. False for a line that is not of this form.
 */
bool mountinfo_read(const char *line, size_t len, struct mountinfo *ret);

#endif
