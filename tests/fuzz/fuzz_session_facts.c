/*
 * session_facts.c: what decodes encodes to the same bytes.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/control/session_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct session_facts *facts = calloc(1, sizeof(*facts));
	struct wire_out out;

	if (facts == NULL)
		return 0;
	if (session_facts_decode(data, len, facts) == 0) {
		wire_out_init(&out);
		session_facts_encode(facts, &out);
		assert(!out.err && out.len == len &&
		    memcmp(out.data, data, len) == 0);
		wire_out_done(&out);
	}
	free(facts);
	return 0;
}
