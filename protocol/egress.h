/*
 * A session's egress lists, msgpack in a sealed memfd: encoded by control,
 * relayed unread, decoded by proxyd, which compiles them (proxyd/session.c).
 * Patterns were checked by control and are checked again by proxyd.
 */
#ifndef PROTOCOL_EGRESS_H
#define PROTOCOL_EGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire.h"

#define EGRESS_VERSION 1
#define EGRESS_RULES_MAX 2048
#define EGRESS_PRIVATE_MAX 256
#define EGRESS_BYTES_MAX (1u << 20)

/* port 0: the default ports (443 and 80; 22 for the git hosts of App.1, which
 * control writes as rules of their own with port 22). `origin` is shown as the
 * rule that decided: "baseline", "configuration line 12", "spec", "--allow". */
struct egress_rule {
	struct wire_view pattern;
	struct wire_view origin;
	uint64_t port;
};

/* A name (pattern) that may resolve into a private range. */
struct egress_private {
	struct wire_view cidr;
	struct wire_view host;
};

struct egress_lists {
	bool network; /* false: everything is refused, network_off */
	uint64_t tunnels_max; /* of this session */
	size_t nallow;
	struct egress_rule allow[EGRESS_RULES_MAX];
	size_t ndeny;
	struct egress_rule deny[EGRESS_RULES_MAX];
	size_t nprivate;
	struct egress_private private_[EGRESS_PRIVATE_MAX];
};

int egress_lists_decode(const void *, size_t, struct egress_lists *ret);
void egress_lists_encode(const struct egress_lists *, struct wire_out *);

#endif
