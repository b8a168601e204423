/*
 * Encoder and decoder of a look-up's question (read by stockade-lookup with
 * the run's ids) and results (read by control; made by a process that the
 * run's user may have influenced). No allocation.
 */
#include "protocol/lookup.h"

#include <errno.h>
#include <string.h>

#include "common/path.h"

#define LOOKUP_PATH_MAX 4095

static void
get_item(struct wire *w, struct lookup_item *item)
{
	if (wire_array(w, 2, 2) != 2)
		return;
	item->path = wire_cstr(w, 1, LOOKUP_PATH_MAX);
	item->use =
	    (enum lookup_use)wire_u64(w, LOOKUP_USE_NONE, LOOKUP_USE_DENIED);
	if (item->path[0] != '/' && strncmp(item->path, "~/", 2) != 0)
		wire_fail(w);
}

static void
get_rule(struct wire *w, struct dfa_rule *rule)
{
	if (wire_array(w, 4, 4) != 4)
		return;
	rule->glob = wire_cstr(w, 1, DFA_GLOB_MAX);
	rule->mask = DFA_WRITE;
	rule->roots = (uint16_t)wire_u64(w, 1, (1u << LOOKUP_ROOTS) - 1);
	rule->class = (enum dfa_class)wire_u64(w, 0, DFA_CLASSES - 1);
	rule->ignore_case = wire_bool(w);
}

static void
get_exemption(struct wire *w, struct dfa_exemption *exemption)
{
	if (wire_array(w, 2, 2) != 2)
		return;
	exemption->glob = wire_cstr(w, 1, DFA_GLOB_MAX);
	exemption->roots = 1u << LOOKUP_ROOT_ALL;
	exemption->ignore_case = wire_bool(w);
}

static void
get_scan(struct wire *w, struct lookup_scan *scan)
{
	(void)wire_array(w, 6, 6);
	scan->entries_max = wire_u64(w, 0, UINT32_MAX);
	scan->time_ms = wire_u64(w, 0, UINT32_MAX);
	scan->nrules = wire_array(w, 0, DFA_RULES_MAX);
	for (size_t i = 0; i < scan->nrules && !w->err; i++)
		get_rule(w, &scan->rules[i]);
	scan->nexemptions = wire_array(w, 0, DFA_EXEMPTIONS_MAX);
	for (size_t i = 0; i < scan->nexemptions && !w->err; i++)
		get_exemption(w, &scan->exemptions[i]);
	scan->table = wire_bin(w, 0, LOOKUP_TABLE_MAX);
	scan->seen = wire_bin(w, 0, LOOKUP_SEEN_MAX);
}

int
lookup_question_decode(const void *data, size_t len,
    struct lookup_question *ret)
{
	struct wire w;

	/* The arrays: what is in use of them is written. */
	ret->nitems = 0;
	wire_init(&w, data, len);
	(void)wire_array(&w, 3, 3);
	(void)wire_u64(&w, LOOKUP_VERSION, LOOKUP_VERSION);
	ret->nitems = wire_array(&w, 0, LOOKUP_ITEMS_MAX);
	for (size_t i = 0; i < ret->nitems && !w.err; i++)
		get_item(&w, &ret->items[i]);
	get_scan(&w, &ret->scan);
	if (wire_done(&w))
		return 0;
	ret->nitems = ret->scan.nrules = ret->scan.nexemptions = 0;
	return -EPROTO;
}

void
lookup_question_encode(const struct lookup_question *question,
    struct wire_out *out)
{
	const struct lookup_scan *scan = &question->scan;

	wire_put_array(out, 3);
	wire_put_u64(out, LOOKUP_VERSION);
	wire_put_array(out, question->nitems);
	for (size_t i = 0; i < question->nitems; i++) {
		wire_put_array(out, 2);
		wire_put_cstr(out, question->items[i].path);
		wire_put_u64(out, question->items[i].use);
	}
	wire_put_array(out, 6);
	wire_put_u64(out, scan->entries_max);
	wire_put_u64(out, scan->time_ms);
	wire_put_array(out, scan->nrules);
	for (size_t i = 0; i < scan->nrules; i++) {
		wire_put_array(out, 4);
		wire_put_cstr(out, scan->rules[i].glob);
		wire_put_u64(out, scan->rules[i].roots);
		wire_put_u64(out, scan->rules[i].class);
		wire_put_bool(out, scan->rules[i].ignore_case);
	}
	wire_put_array(out, scan->nexemptions);
	for (size_t i = 0; i < scan->nexemptions; i++) {
		wire_put_array(out, 2);
		wire_put_cstr(out, scan->exemptions[i].glob);
		wire_put_bool(out, scan->exemptions[i].ignore_case);
	}
	wire_put_bin(out, scan->table.data, scan->table.len);
	wire_put_bin(out, scan->seen.data, scan->seen.len);
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

static void
get_found(struct wire *w, size_t nitems, struct lookup_found *found)
{
	if (wire_array(w, 5, 5) != 5)
		return;
	found->what = (enum lookup_what)wire_u64(w, LOOKUP_NAME, LOOKUP_TARGET);
	found->path = wire_cstr(w, 1, LOOKUP_PATH_MAX);
	found->kind = (enum lookup_kind)wire_u64(w, LOOKUP_NONE, LOOKUP_OTHER);
	found->item = wire_u64(w, 0, LOOKUP_NO_ITEM);
	found->source = wire_cstr(w, 0, LOOKUP_PATH_MAX);
	if (!w->err &&
	    (!path_is_clean(found->path) ||
		(found->what == LOOKUP_LINK ? !path_is_clean(found->source) :
					      found->source[0] != '\0') ||
		(found->item >= nitems && found->item != LOOKUP_NO_ITEM)))
		wire_fail(w);
}

int
lookup_results_decode(const void *data, size_t len, struct lookup_results *ret)
{
	struct wire w;

	ret->nresults = ret->nfound = 0;
	wire_init(&w, data, len);
	(void)wire_array(&w, 7, 7);
	(void)wire_u64(&w, LOOKUP_VERSION, LOOKUP_VERSION);
	ret->nresults = wire_array(&w, 0, LOOKUP_ITEMS_MAX);
	for (size_t i = 0; i < ret->nresults && !w.err; i++)
		get_result(&w, &ret->results[i]);
	ret->nfound = wire_array(&w, 0, LOOKUP_FOUND_MAX);
	for (size_t i = 0; i < ret->nfound && !w.err; i++)
		get_found(&w, ret->nresults, &ret->found[i]);
	ret->stopped = wire_u64(&w, 0, LOOKUP_STOP_ALL);
	ret->dropped = wire_u64(&w, 0, UINT64_MAX);
	ret->entries = wire_u64(&w, 0, UINT64_MAX);
	ret->seen = wire_bin(&w, 0, LOOKUP_SEEN_MAX);
	if (wire_done(&w))
		return 0;
	ret->nresults = ret->nfound = 0;
	return -EPROTO;
}

void
lookup_results_encode(const struct lookup_results *results,
    struct wire_out *out)
{
	const struct lookup_result *r;

	wire_put_array(out, 7);
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
	wire_put_array(out, results->nfound);
	for (size_t i = 0; i < results->nfound; i++) {
		wire_put_array(out, 5);
		wire_put_u64(out, results->found[i].what);
		wire_put_cstr(out, results->found[i].path);
		wire_put_u64(out, results->found[i].kind);
		wire_put_u64(out, results->found[i].item);
		wire_put_cstr(out, results->found[i].source);
	}
	wire_put_u64(out, results->stopped);
	wire_put_u64(out, results->dropped);
	wire_put_u64(out, results->entries);
	wire_put_bin(out, results->seen.data, results->seen.len);
}
