/* Texts of proc(5), split at the first NUL into mountinfo and cgroup: what is
 * found is bounded, terminated and absolute. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcherd/cgroup_layout.h"
#include "launcherd/mountinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cgroup_layout layout;
	static struct mountinfo mount;
	char *copy = malloc(size + 2);
	size_t first;

	if (copy == NULL)
		return 0;
	memcpy(copy, data, size);
	copy[size] = copy[size + 1] = '\0';
	first = strlen(copy);
	if (mountinfo_read(copy, first, &mount) &&
	    (memchr(mount.point, '\0', sizeof(mount.point)) == NULL ||
		mount.options < copy ||
		mount.options + mount.options_len != copy + first))
		abort();
	if (cgroup_layout_parse(copy, copy + first + 1, &layout) == 0 &&
	    (layout.unified[0] == '\0' ||
		memchr(layout.unified, '\0', sizeof(layout.unified)) == NULL))
		abort();
	free(copy);
	return 0;
}
