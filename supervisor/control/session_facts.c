/*
 * In stockade-control. One codec, written as wire.h's other formats. It is read
 * back only from plans that this program made, but with all checks all the
 * same: they have been with other processes.
 */
#include "supervisor/control/session_facts.h"

#include <errno.h>
#include <string.h>

#include "supervisor/control/limits.h"

#define FACTS_VERSION 1
#define FACTS_TEXT 1024
#define FACTS_PATH 4095

static void
put_pairs(struct wire_out *out, const struct session_pair *pairs, size_t n)
{
	wire_put_array(out, n * 2);
	for (size_t i = 0; i < n; i++) {
		wire_put_cstr(out, pairs[i].name);
		wire_put_cstr(out, pairs[i].value);
	}
}

void
session_facts_encode_policy(const struct session_facts *f, struct wire_out *out)
{
	wire_put_array(out, f->guard_digest.len == 0 ? 14 : 15);
	wire_put_u64(out, FACTS_VERSION);
	wire_put_cstr(out, f->session_id);
	wire_put_u64(out, f->mode);
	wire_put_bool(out, f->network);
	wire_put_bin(out, f->egress_digest.data, f->egress_digest.len);
	wire_put_cstr(out, f->user);
	wire_put_cstr(out, f->shell);
	wire_put_u64(out, f->uid);
	wire_put_u64(out, f->gid);
	wire_put_cstr(out, f->ca_bundle);
	wire_put_u64(out, f->wall_ms);
	wire_put_u64(out, f->unmasked);
	put_pairs(out, f->pass, f->npass);
	put_pairs(out, f->env, f->nenv);
	if (f->guard_digest.len != 0)
		wire_put_bin(out, f->guard_digest.data, f->guard_digest.len);
}

void
session_facts_encode(const struct session_facts *f, struct wire_out *out)
{
	wire_put_array(out, 2);
	session_facts_encode_policy(f, out);
	wire_put_array(out, 13);
#define X(label, max) wire_put_cstr(out, f->label);
	SPEC_LABELS(X)
#undef X
	wire_put_bool(out, f->detach);
	wire_put_u64(out, f->gone_ms);
	wire_put_u64(out, f->idle_ms);
	wire_put_u64(out, f->created_ms);
	wire_put_u64(out, f->generation);
	wire_put_cstr(out, f->scan_gaps);
}

static void
get_pairs(struct wire *w, struct session_pair *pairs, size_t *ret_n)
{
	size_t n = wire_array(w, 0, SESSION_FACTS_ENV_MAX * 2);

	if (n % 2 != 0)
		wire_fail(w);
	for (size_t i = 0; i < n / 2 && !w->err; i++) {
		pairs[i].name = wire_cstr(w, 1, FACTS_TEXT);
		pairs[i].value = wire_cstr(w, 0, LIMIT_FIXED_ENV_VALUE);
	}
	*ret_n = w->err ? 0 : n / 2;
}

int
session_facts_decode(const void *data, size_t len, struct session_facts *ret)
{
	struct wire w;
	size_t n;

	memset(ret, 0, sizeof(*ret));
	wire_init(&w, data, len);
	(void)wire_array(&w, 2, 2);
	n = wire_array(&w, 14, 15);
	(void)wire_u64(&w, FACTS_VERSION, FACTS_VERSION);
	ret->session_id = wire_cstr(&w, 1, LIMIT_FIXED_LABEL);
	ret->mode = wire_u64(&w, 0, SPEC_MODES - 1);
	ret->network = wire_bool(&w);
	ret->egress_digest = wire_bin(&w, 32, 32);
	ret->user = wire_cstr(&w, 0, FACTS_TEXT);
	ret->shell = wire_cstr(&w, 0, FACTS_TEXT);
	ret->uid = wire_u64(&w, 1, UINT32_MAX - 1);
	ret->gid = wire_u64(&w, 0, UINT32_MAX - 1);
	ret->ca_bundle = wire_cstr(&w, 0, FACTS_PATH);
	ret->wall_ms = wire_u64(&w, 0, UINT64_MAX);
	ret->unmasked = wire_u64(&w, 0, UINT32_MAX);
	get_pairs(&w, ret->pass, &ret->npass);
	get_pairs(&w, ret->env, &ret->nenv);
	if (n == 15)
		ret->guard_digest = wire_bin(&w, 32, 32);
	(void)wire_array(&w, 13, 13);
#define X(label, max) ret->label = wire_cstr(&w, 0, (max));
	SPEC_LABELS(X)
#undef X
	ret->detach = wire_bool(&w);
	ret->gone_ms = wire_u64(&w, 0, LIMIT_FIXED_GONE_MS);
	ret->idle_ms = wire_u64(&w, 0, UINT64_MAX);
	ret->created_ms = wire_u64(&w, 0, UINT64_MAX);
	ret->generation = wire_u64(&w, 0, UINT64_MAX);
	ret->scan_gaps = wire_cstr(&w, 0, FACTS_TEXT);
	if (!wire_done(&w) ||
	    !spec_label_ok(ret->session_id, strlen(ret->session_id)))
		return -EPROTO;
	return 0;
}
