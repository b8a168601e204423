/*
 * A client's spec (SPEC I1..I7, AB) from MessagePack to a struct, with every
 * limit checked. The bytes are hostile; nothing here does I/O, and nothing in
 * a spec is believed about who the client is. What belongs to a part that is
 * not built is refused (`unsupported`) wherever it would have an effect, so
 * that nothing is accepted and then not enforced.
 */
#ifndef SUPERVISOR_CONTROL_SPEC_H
#define SUPERVISOR_CONTROL_SPEC_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/cause.h"
#include "supervisor/control/pool.h"

enum spec_mode {
	SPEC_CHAT,
	SPEC_REVIEW,
	SPEC_PLAN,
	SPEC_ORCHESTRATE,
	SPEC_MODES
};

struct spec_list {
	const char **items;
	size_t n;
};

struct spec_mount {
	const char *path; /* clean */
	bool read_only;
};

struct spec_env {
	const char **names;
	const char **values;
	size_t n;
};

/* 0: not in the spec. */
struct spec_limits {
	uint64_t memory_bytes;
	uint64_t pids;
	uint64_t cpu_milli;
	uint64_t wall_ms;
	uint64_t tmp_bytes;
};

#define SPEC_ACTING_USER_MAX 256 /* bytes */

/* The words by which a client tells its sessions apart, X(field, most bytes):
 * in a spec, and in the facts that are kept of a session (session_facts.h). */
/* clang-format off */
#define SPEC_LABELS(X) \
	X(workspace_id, LIMIT_FIXED_LABEL) X(agent_id, LIMIT_FIXED_LABEL) \
	X(space_id, LIMIT_FIXED_LABEL) X(conversation_id, LIMIT_FIXED_LABEL) \
	X(run_id, LIMIT_FIXED_LABEL) X(acting_user, SPEC_ACTING_USER_MAX) \
	X(adapter, LIMIT_FIXED_LABEL)
#define SPEC_LABEL_MEMBER(field, max) const char *field;
/* clang-format on */

/* Strings are NULL when absent. Paths are absolute and clean. */
struct spec {
	struct pool pool;
	const char *session_id;
	SPEC_LABELS(SPEC_LABEL_MEMBER)
	const char *backend;
	const char *stored_backend;
	bool has_stored;
	const char *user; /* a name or a decimal uid */
	enum spec_mode mode;
	struct spec_mount *mounts;
	size_t nmounts;
	bool network;
	struct spec_list egress_allow; /* "host" or "host:port", unchecked */
	const char *workdir;
	struct spec_list protected_paths;
	struct spec_list state_dirs;
	struct spec_list exec_grant_roots;
	struct spec_list deny_read;
	struct spec_list deny_write; /* paths; patterns with name rules */
	struct spec_list name_exemptions;
	bool new_repositories;
	struct spec_env env;
	struct spec_env pass_env; /* value NULL: a name without a value */
	bool userns;
	struct spec_limits limits;
	bool has_idle;
	uint64_t idle_ms; /* 0: never */
	bool detach;
	uint64_t gone_ms;
	bool accept_unconfined;
};

/* Why a spec, a plan or a call was refused: the fields of the client's error
 * (SPEC X8). `field` is empty when none is at fault. */
struct spec_fault {
	enum api_error code;
	int error; /* errno for hostError, 0 else */
	char field[96];
	char text[320];
};

/* Fills *fault; always returns -EINVAL, so that a check ends with it. */
int
spec_fault_set(struct spec_fault *fault, enum api_error code, const char *field,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

const char *spec_mode_name(enum spec_mode mode);
/* -1 for an unknown one. */
int spec_mode_find(const char *name);

/*
 * Reads `map`. 0 with a new *ret, or -EINVAL with *fault filled. Everything is
 * copied. spec_free() takes NULL.
 */
int spec_parse(const msgpack_object *map, struct spec **ret,
    struct spec_fault *fault);
void spec_free(struct spec *spec);

/* SPEC AB: 1..128 bytes of [A-Za-z0-9._:@/-]. */
bool spec_label_ok(const char *s, size_t len);

/*
 * A clean copy of an absolute path (double and final slashes and "." go), or
 * NULL: relative, "..", NUL, too long, or no memory.
 */
const char *spec_path_clean(struct pool *pool, const char *s, size_t len);

/*
 * An `env` map: names and values, limits of AB. 0, or -EINVAL with *fault
 * filled; `field` names it.
 */
int
spec_env_read(struct pool *pool, const char *field, const msgpack_object *value,
    struct spec_env *ret, struct spec_fault *fault);

#endif
