/*
 * What stockade-control must know of a session after its own restart, carried
 * in the plan (plan.h, `session`), which the supervisor keeps. Two parts: the
 * policy, which is in the plan's digest, and the labels and times, which are
 * not, so that a launch that differs only in them finds its warm session.
 * Pure.
 */
#ifndef SUPERVISOR_CONTROL_SESSION_FACTS_H
#define SUPERVISOR_CONTROL_SESSION_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire.h"
#include "supervisor/control/spec.h"

#define SESSION_FACTS_ENV_MAX 256

struct session_pair {
	const char *name;
	const char *value;
};

struct session_facts {
	/* policy */
	const char *session_id;
	uint64_t mode; /* enum spec_mode */
	bool network;
	struct wire_view egress_digest; /* 32 bytes */
	const char *user;
	const char *shell;
	uint64_t uid;
	uint64_t gid;
	const char *ca_bundle; /* "" none */
	uint64_t wall_ms;
	/* SHA-256 of the guard table, at a launch without what the scan added;
	 * empty: no name rules. */
	struct wire_view guard_digest;
	uint64_t unmasked; /* denied programs out of a mask's reach */
	size_t npass;
	struct session_pair pass[SESSION_FACTS_ENV_MAX];
	size_t nenv;
	struct session_pair env[SESSION_FACTS_ENV_MAX];
	/* the rest; "" is absent */
	SPEC_LABELS(SPEC_LABEL_MEMBER)
	bool detach;
	uint64_t gone_ms;
	uint64_t idle_ms; /* 0: never */
	uint64_t created_ms; /* since 1970 */
	uint64_t generation; /* of the name rules, 1 at the launch (D13) */
	const char *scan_gaps; /* what the start scan left out, in words; "" */
};

/* The policy alone (what the digest covers), and both parts. */
void
session_facts_encode_policy(const struct session_facts *, struct wire_out *out);
void session_facts_encode(const struct session_facts *, struct wire_out *out);

/* 0 or -EPROTO; pointers go into `data`. */
int
session_facts_decode(const void *data, size_t len, struct session_facts *ret);

#endif
