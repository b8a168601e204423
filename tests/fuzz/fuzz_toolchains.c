/*
 * The result of a search made as another user: what is accepted encodes to the
 * same bytes.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/ctl/toolchains.h"
#include "supervisor/ctl/toolchains_child.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t again[TOOLCHAINS_BYTES_MAX];
	struct toolchains t;
	size_t paths, n;

	if (toolchains_decode(data, len, &t) != 0)
		return 0;
	paths = t.n + t.nskipped;
	n = toolchains_encode(&t, again, sizeof(again));
	/* Kinds may come in any order, and equal skipped ones are one. */
	if (n == 0 || n > len || paths > 72)
		abort();
	if (n == len && t.nskipped == 0 && memcmp(again, data, n) != 0)
		abort();
	toolchains_done(&t);
	return 0;
}
