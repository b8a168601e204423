/*
 * Spec, configuration and the answers of the look-up become a plan with its
 * digest (SPEC I, J, C15..C18). Pure: no user's file is ever opened here. What
 * cannot be checked or honoured refuses the launch, with the field's name.
 */
#ifndef SUPERVISOR_CONTROL_PLAN_MAKE_H
#define SUPERVISOR_CONTROL_PLAN_MAKE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/lookup.h"
#include "protocol/plan.h"
#include "supervisor/control/environ.h"
#include "supervisor/control/plan_ask.h"
#include "supervisor/control/pool.h"
#include "supervisor/control/session_facts.h"

struct conf;
struct egress_lists;
struct etc_host;
struct spec;
struct spec_fault;

#define PLAN_DIGEST 32
#define PLAN_CONNECT "/run/stockade/connect"
#define PLAN_RUN_DIR "/run/stockade/run"
#define PLAN_TMP_DIR "/tmp"
#define PLAN_NOTICES_MAX 32

/* The user as launcherd told. */
struct plan_user {
	const char *name;
	const char *home;
	const char *shell;
	uint64_t uid;
	uint64_t gid;
};

struct plan_input {
	const struct spec *spec;
	const struct conf *conf;
	const struct etc_host *host;
	const struct plan_asked *asked;
	const struct lookup_results *results;
	struct plan_user user;
	uint64_t memory_default; /* half of the host's, for `auto` */
	uint64_t now_ms; /* since 1970 */
};

struct plan_notice {
	const char *code;
	const char *detail;
};

/* Everything a launch needs. Points into the maps of the results and into the
 * asked items' pool only while it is made; afterwards it owns all. */
struct plan_made {
	struct pool pool;
	struct plan *plan;
	struct session_facts *facts;
	struct egress_lists *egress;
	uint8_t digest[PLAN_DIGEST];
	struct wire_out plan_bytes;
	struct wire_out egress_bytes;
	struct wire_out guard_bytes; /* empty: the plan has no roots */
	size_t nnotices;
	struct plan_notice notices[PLAN_NOTICES_MAX];
	struct environ_result env; /* of an exec without `env` */
};

/* 0 with a new *ret, or -EINVAL with *fault filled. plan_made_free() takes
 * NULL. */
int plan_make(const struct plan_input *in, struct plan_made **ret,
    struct spec_fault *fault);
void plan_made_free(struct plan_made *);

/*
 * A plan's bytes with what control keeps of the session in them, and the digest
 * that its policy gives; `plan->session` is NULL before and after. 0 or -EIO.
 */
int plan_write(struct plan *plan, const struct session_facts *facts,
    struct wire_out *out, uint8_t ret_digest[PLAN_DIGEST]);
/* SHA-256 of bytes, for the facts. 0 or -EIO. */
int plan_sha256(const struct wire_out *bytes, uint8_t ret[PLAN_DIGEST]);

/*
 * The environment of a command (SPEC M): a session's facts, the exec's own
 * pairs and the view of the plan. As environ_make().
 */
int plan_environ(const struct session_facts *facts, const struct plan *plan,
    const struct environ_set *exec_env, struct environ_result *ret,
    char *ret_bad);

#endif
