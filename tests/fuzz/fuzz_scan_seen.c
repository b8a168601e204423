/* What an earlier scan told comes back from control: whatever it is, what is
 * taken of it can be found again and ends where it says. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcherd/lookup/scan_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lookup_question question;
	static struct scan scan;
	struct wire_out out;

	memset(&scan, 0, sizeof(scan));
	scan.question = &question;
	question.scan.seen = (struct wire_view){ data, size };
	scan_seen_begin(&scan);
	for (size_t i = 0; i < scan.seen.size; i++) {
		const struct scan_seen_dir *dir = &scan.seen.table[i];

		if (dir->rel == NULL)
			continue;
		if (scan_seen_find(&scan, dir) == NULL ||
		    (dir->names.len > 0 &&
			dir->names.data[dir->names.len - 1] != '\0'))
			abort();
		scan_seen_note(&scan, dir);
	}
	wire_out_init(&out);
	scan_seen_finish(&scan, &out);
	if (out.err || out.len > LOOKUP_SEEN_MAX + 64)
		abort();
	wire_out_done(&out);
	return 0;
}
