/* What a confined child of the probe prints: never more than was said counts,
 * and text that lacks its closing line counts as nothing. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcherd/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct probe_result rows[PROBE_ROW_COUNT];
	char *copy = malloc(size + 1);

	if (copy == NULL)
		return 0;
	memcpy(copy, data, size);
	copy[size] = '\0';
	memset(rows, 0, sizeof(rows));
	probe_parse_rows(copy, size, rows);
	for (size_t i = 0; i < PROBE_ROW_COUNT; i++) {
		if (rows[i].available && !rows[i].known)
			abort();
		if (rows[i].known &&
		    memmem(copy, size, "end ok rows=", 12) == NULL)
			abort();
		if (memchr(rows[i].detail, '\0', sizeof(rows[i].detail)) ==
		    NULL)
			abort();
	}
	(void)probe_version_ok(copy);
	free(copy);
	return 0;
}
