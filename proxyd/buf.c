/*
 * Bytes that wait; see buf.h. Runs in stockade-proxyd; the bytes are anybody's
 * and never looked at here.
 */
#include "proxyd/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

int
buf_add(struct buf *buf, const void *data, size_t len)
{
	size_t before = (size_t)(buf->data - buf->block), need, cap;
	char *grown;

	if (len == 0)
		return 0;
	if (!size_add(buf->len, len, &need))
		return -ENOMEM;
	if (before + need > buf->cap && before > 0) {
		memmove(buf->block, buf->data, buf->len);
		buf->data = buf->block;
		before = 0;
	}
	if (before + need > buf->cap) {
		cap = buf->cap == 0 ? need : need + need / 2;
		grown = realloc(buf->block, cap);
		if (grown == NULL)
			return -ENOMEM;
		buf->block = grown;
		buf->data = grown;
		buf->cap = cap;
	}
	memcpy(buf->data + buf->len, data, len);
	buf->len = need;
	return 0;
}

void
buf_drop(struct buf *buf, size_t len)
{
	if (len >= buf->len) {
		buf_done(buf);
		return;
	}
	buf->data += len;
	buf->len -= len;
}

void
buf_done(struct buf *buf)
{
	free(buf->block);
	memset(buf, 0, sizeof(*buf));
}
