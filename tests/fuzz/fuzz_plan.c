/*
 * Plan, exec plan, look-up and egress lists: four decoders over one input.
 * Property: whatever decodes, encodes to the same bytes. First byte: which.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/egress.h"
#include "protocol/lookup.h"
#include "protocol/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
same(struct wire_out *out, const uint8_t *data, size_t len)
{
	if (out->err || out->len != len || memcmp(out->data, data, len) != 0)
		abort();
	wire_out_done(out);
}

static void
try_plan(const uint8_t *data, size_t len, struct wire_out *out)
{
	static struct plan plan;
	const char *field;

	if (plan_decode(data, len, &plan, &field) == 0) {
		plan_encode(&plan, out);
		same(out, data, len);
	} else if (field == NULL)
		abort();
}

static void
try_exec_plan(const uint8_t *data, size_t len, struct wire_out *out)
{
	static struct exec_plan plan;
	const char *field;

	if (exec_plan_decode(data, len, &plan, &field) == 0) {
		exec_plan_encode(&plan, out);
		same(out, data, len);
	}
}

static void
try_lookup(const uint8_t *data, size_t len, struct wire_out *out)
{
	static struct lookup_question question;
	static struct lookup_results results;

	if (lookup_question_decode(data, len, &question) == 0) {
		lookup_question_encode(&question, out);
		same(out, data, len);
	}
	if (lookup_results_decode(data, len, &results) == 0) {
		lookup_results_encode(&results, out);
		same(out, data, len);
	}
}

static void
try_egress(const uint8_t *data, size_t len, struct wire_out *out)
{
	static struct egress_lists lists;

	if (egress_lists_decode(data, len, &lists) == 0) {
		egress_lists_encode(&lists, out);
		same(out, data, len);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const tries[])(const uint8_t *, size_t,
	    struct wire_out *) = { try_plan, try_exec_plan, try_lookup,
		try_egress };
	struct wire_out out;

	if (len < 1)
		return 0;
	wire_out_init(&out);
	tries[data[0] % 4](data + 1, len - 1, &out);
	return 0;
}
