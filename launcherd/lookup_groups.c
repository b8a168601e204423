/*
 * launcherd: the supplementary groups of a run; see lookups.h. Pure. The list
 * is the kernel's word about a client, or NSS's about a user.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "launcherd/lookups.h"

int
lookup_groups(const uint8_t *raw, size_t len, gid_t drop_a, gid_t drop_b,
    gid_t ret[LOOKUP_GROUPS_MAX])
{
	size_t n = 0;

	if (len % sizeof(uint32_t) != 0)
		return -EINVAL;
	for (size_t i = 0; i < len; i += sizeof(uint32_t)) {
		uint32_t gid;
		bool seen = false;

		memcpy(&gid, raw + i, sizeof(gid));
		if (gid == drop_a || gid == drop_b || gid == UINT32_MAX)
			continue;
		for (size_t k = 0; k < n; k++)
			seen = seen || ret[k] == gid;
		if (seen)
			continue;
		if (n == LOOKUP_GROUPS_MAX)
			return -E2BIG;
		ret[n++] = gid;
	}
	return (int)n;
}
