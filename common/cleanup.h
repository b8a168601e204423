/*
 * Locals that own something say so in their declaration and are released when
 * the block is left (GCC and clang attribute "cleanup").
 *
 *	autofree char *path = NULL;	free() at the end of the block
 *	autoclose int fd = -1;		close() unless negative
 *
 * take_ptr() and take_fd() give the thing away: the local becomes empty.
 */
#ifndef COMMON_CLEANUP_H
#define COMMON_CLEANUP_H

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

static inline void
cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void
cleanup_close(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

#define autofree __attribute__((cleanup(cleanup_free)))
#define autoclose __attribute__((cleanup(cleanup_close)))

static inline int
take_fd(int *fd)
{
	int given = *fd;

	*fd = -1;
	return given;
}

#define take_ptr(p) \
	(__extension__({ \
		__typeof__(*(p)) taken_ = *(p); \
		*(p) = NULL; \
		taken_; \
	}))

/* Closes every descriptor of an array and marks it closed. */
static inline void
close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
		fds[i] = -1;
	}
}

#endif
