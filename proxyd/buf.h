/*
 * Bytes that wait: heap memory only while there are any, so an idle tunnel
 * holds none.  Used by one process, no I/O.
 */
#ifndef PROXYD_BUF_H
#define PROXYD_BUF_H

#include <stddef.h>

struct buf {
	char *data; /* first byte that waits, or NULL */
	size_t len;
	size_t cap; /* of the block */
	char *block; /* what was allocated */
};

/* Append a copy; -ENOMEM leaves the buffer as it was. */
int buf_add(struct buf *buf, const void *data, size_t len);

/* Drop the first len bytes (at most buf->len); an empty buffer is freed. */
void buf_drop(struct buf *buf, size_t len);

void buf_done(struct buf *buf);

#endif
