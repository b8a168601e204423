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
	size_t n;

	if (toolchains_decode(data, len, &t) != 0)
		return 0;
	n = toolchains_encode(&t, again, sizeof(again));
	if (n != len || memcmp(again, data, n) != 0)
		abort();
	toolchains_done(&t);
	return 0;
}
