/*
 * Opens the configuration's files; the parser behind it does no I/O.  Runs in
 * stockade-control with a directory descriptor that the supervisor opened.
 *
 * Who may write the file decides over every run, so it is read only if that
 * is root alone: the checks are made on the open descriptor, and the file
 * cannot be exchanged between check and read.  Its directory is the
 * supervisor's to trust.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/conf_value.h"

/* Why an open file is not trusted, or NULL. */
static const char *
file_why(int fd, size_t max)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return "cannot be examined";
	if (!S_ISREG(st.st_mode))
		return "not a regular file";
	if (st.st_uid != 0)
		return "must be owned by root";
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "must not be writable by group or others";
	if (st.st_size < 0 || (uintmax_t)st.st_size > max)
		return "the configuration is larger than 1 MiB";
	return NULL;
}

/* Reads at most max bytes; one more means that the file has grown. */
static int
read_all(int fd, size_t max, char **ret_text, size_t *ret_len)
{
	autofree char *text = malloc(max + 1);
	size_t len = 0;

	if (text == NULL)
		return -ENOMEM;
	while (len <= max) {
		ssize_t n = read(fd, text + len, max + 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	if (len > max)
		return -EFBIG;
	*ret_len = len;
	*ret_text = take_ptr(&text);
	return 0;
}

/* O_NONBLOCK: a FIFO in place of the file must not hold up the start. */
static int
load_file(void *arg, const char *name, size_t max, char **ret_text,
    size_t *ret_len, const char **ret_why)
{
	int dirfd = *(const int *)arg;
	autoclose int fd = -1;
	const char *why;

	fd = openat(dirfd, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		if (errno == ELOOP)
			*ret_why = "a symbolic link is not followed";
		return -errno;
	}
	why = file_why(fd, max);
	if (why != NULL) {
		*ret_why = why;
		return -EPERM;
	}
	return read_all(fd, max, ret_text, ret_len);
}

/* One error about the file as a whole. */
static int
add_error(struct conf_errors *errors, const char *name, const char *text)
{
	int r = conf_errors_add(errors, name, 0, text);

	return r < 0 ? r : -EINVAL;
}

int
conf_load(int dirfd, const char *name, bool missing_ok, struct conf **ret_conf,
    struct conf_errors *errors)
{
	autofree char *text = NULL;
	const char *why = NULL;
	size_t len = 0;
	int r;

	if (!value_component_ok(name))
		return add_error(errors, "configuration",
		    "the file's name must be a single component");
	r = load_file(&dirfd, name, CONF_BYTES_MAX, &text, &len, &why);
	if (r == -ENOMEM)
		return r;
	if (r == -EACCES && why == NULL)
		why = "the file and its directory must be readable by user "
		      "stockade-control";
	if (r < 0 && !(r == -ENOENT && missing_ok))
		return add_error(errors, name,
		    why != NULL ? why : strerror(-r));
	return conf_parse(name, text != NULL ? text : "", len, load_file,
	    &dirfd, ret_conf, errors);
}
