/*
 * Encoder and decoder of a look-up's question (read by stockade-lookup with
 * the run's ids) and results (read by control; made by a process that the
 * run's user may have influenced). No allocation.
 */
#include "protocol/lookup.h"

#include <errno.h>
#include <string.h>

#define LOOKUP_PATH_MAX 4095

int
lookup_question_decode(const void *data, size_t len,
    struct lookup_question *ret)
{
	struct wire w;

	ret->nitems = 0; /* the array: what is in use is written */
	wire_init(&w, data, len);
	(void)wire_array(&w, 2, 2);
	(void)wire_u64(&w, LOOKUP_VERSION, LOOKUP_VERSION);
	ret->nitems = wire_array(&w, 0, LOOKUP_ITEMS_MAX);
	for (size_t i = 0; i < ret->nitems && !w.err; i++) {
		ret->items[i].path = wire_cstr(&w, 1, LOOKUP_PATH_MAX);
		if (ret->items[i].path[0] != '/' &&
		    strncmp(ret->items[i].path, "~/", 2) != 0)
			wire_fail(&w);
	}
	if (wire_done(&w))
		return 0;
	ret->nitems = 0;
	return -EPROTO;
}

void
lookup_question_encode(const struct lookup_question *question,
    struct wire_out *out)
{
	wire_put_array(out, 2);
	wire_put_u64(out, LOOKUP_VERSION);
	wire_put_array(out, question->nitems);
	for (size_t i = 0; i < question->nitems; i++)
		wire_put_cstr(out, question->items[i].path);
}

static void
get_result(struct wire *w, struct lookup_result *result)
{
	if (wire_array(w, 10, 10) != 10)
		return;
	result->literal = wire_cstr(w, 1, LOOKUP_PATH_MAX);
	result->resolved = wire_cstr(w, 0, LOOKUP_PATH_MAX);
	result->error = wire_u64(w, 0, 4095);
	result->kind = (enum lookup_kind)wire_u64(w, LOOKUP_NONE, LOOKUP_OTHER);
	result->dev = wire_u64(w, 0, UINT64_MAX);
	result->ino = wire_u64(w, 0, UINT64_MAX);
	result->mode = wire_u64(w, 0, UINT32_MAX);
	result->uid = wire_u64(w, 0, UINT32_MAX);
	result->readable = wire_bool(w);
	result->writable = wire_bool(w);
	if (!w->err && result->resolved[0] != '/' &&
	    (result->resolved[0] != '\0' || result->error == 0))
		wire_fail(w);
}

int
lookup_results_decode(const void *data, size_t len, struct lookup_results *ret)
{
	struct wire w;

	ret->nresults = 0;
	wire_init(&w, data, len);
	(void)wire_array(&w, 2, 2);
	(void)wire_u64(&w, LOOKUP_VERSION, LOOKUP_VERSION);
	ret->nresults = wire_array(&w, 0, LOOKUP_ITEMS_MAX);
	for (size_t i = 0; i < ret->nresults && !w.err; i++)
		get_result(&w, &ret->results[i]);
	if (wire_done(&w))
		return 0;
	ret->nresults = 0;
	return -EPROTO;
}

void
lookup_results_encode(const struct lookup_results *results,
    struct wire_out *out)
{
	const struct lookup_result *r;

	wire_put_array(out, 2);
	wire_put_u64(out, LOOKUP_VERSION);
	wire_put_array(out, results->nresults);
	for (size_t i = 0; i < results->nresults; i++) {
		r = &results->results[i];
		wire_put_array(out, 10);
		wire_put_cstr(out, r->literal);
		wire_put_cstr(out, r->resolved);
		wire_put_u64(out, r->error);
		wire_put_u64(out, r->kind);
		wire_put_u64(out, r->dev);
		wire_put_u64(out, r->ino);
		wire_put_u64(out, r->mode);
		wire_put_u64(out, r->uid);
		wire_put_bool(out, r->readable);
		wire_put_bool(out, r->writable);
	}
}
