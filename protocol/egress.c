/*
 * Encoder and decoder of a session's egress lists. proxyd decodes what control
 * wrote; no allocation, views into the mapped memfd.
 */
#include "protocol/egress.h"

#include <errno.h>
#include <string.h>

#define EGRESS_PATTERN_MAX 255
#define EGRESS_ORIGIN_MAX 128

static size_t
get_rules(struct wire *w, struct egress_rule *rules)
{
	size_t n = wire_array(w, 0, EGRESS_RULES_MAX);

	for (size_t i = 0; i < n && !w->err; i++) {
		(void)wire_array(w, 3, 3);
		rules[i].pattern = wire_str(w, 1, EGRESS_PATTERN_MAX);
		rules[i].port = wire_u64(w, 0, 65535);
		rules[i].origin = wire_str(w, 1, EGRESS_ORIGIN_MAX);
	}
	return n;
}

int
egress_lists_decode(const void *data, size_t len, struct egress_lists *ret)
{
	struct wire w;

	/* Not the arrays: what is in use of them is written. */
	ret->network = false;
	ret->nallow = ret->ndeny = ret->nprivate = 0;
	wire_init(&w, data, len);
	(void)wire_array(&w, 6, 6);
	(void)wire_u64(&w, EGRESS_VERSION, EGRESS_VERSION);
	ret->network = wire_bool(&w);
	ret->tunnels_max = wire_u64(&w, 1, 65536);
	ret->nallow = get_rules(&w, ret->allow);
	ret->ndeny = get_rules(&w, ret->deny);
	ret->nprivate = wire_array(&w, 0, EGRESS_PRIVATE_MAX);
	for (size_t i = 0; i < ret->nprivate && !w.err; i++) {
		(void)wire_array(&w, 2, 2);
		ret->private_[i].cidr = wire_str(&w, 1, 64);
		ret->private_[i].host = wire_str(&w, 1, EGRESS_PATTERN_MAX);
	}
	if (wire_done(&w))
		return 0;
	ret->network = false;
	ret->nallow = ret->ndeny = ret->nprivate = 0;
	return -EPROTO;
}

static void
put_view(struct wire_out *out, struct wire_view view)
{
	wire_put_str(out, (const char *)view.data, view.len);
}

static void
put_rules(struct wire_out *out, const struct egress_rule *rules, size_t n)
{
	wire_put_array(out, n);
	for (size_t i = 0; i < n; i++) {
		wire_put_array(out, 3);
		put_view(out, rules[i].pattern);
		wire_put_u64(out, rules[i].port);
		put_view(out, rules[i].origin);
	}
}

void
egress_lists_encode(const struct egress_lists *lists, struct wire_out *out)
{
	wire_put_array(out, 6);
	wire_put_u64(out, EGRESS_VERSION);
	wire_put_bool(out, lists->network);
	wire_put_u64(out, lists->tunnels_max);
	put_rules(out, lists->allow, lists->nallow);
	put_rules(out, lists->deny, lists->ndeny);
	wire_put_array(out, lists->nprivate);
	for (size_t i = 0; i < lists->nprivate; i++) {
		wire_put_array(out, 2);
		put_view(out, lists->private_[i].cidr);
		put_view(out, lists->private_[i].host);
	}
}
