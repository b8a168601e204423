/*
 * The plan of a sandbox and of a command, as msgpack in a sealed memfd.
 * Encoded by control, passed on unread by the supervisor, decoded by launcherd
 * and by stockade-init, and by control itself after its restart.
 *
 * Decoding: plan_decode() fills fixed arrays with pointers into the mapped
 * buffer, which must outlive the struct; no allocation. Hostile until decoded:
 * whoever owns control may write any plan, so nothing in it grants an id
 * (launcherd takes uid, gid and groups from its own look-up), every path is
 * opened as the run's user, and the fixed parts of the sandbox are not in it.
 */
#ifndef PROTOCOL_PLAN_H
#define PROTOCOL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire.h"

#define PLAN_VERSION 1
#define PLAN_VERSION_GUARDED 2 /* with roots; none of them is version 1 */
#define PLAN_MOUNTS_MAX 512
#define PLAN_MASKS_MAX 16384
#define PLAN_FILES_MAX 32
#define PLAN_ROOTS_MAX 16
#define PLAN_ENV_MAX 512
#define PLAN_ARGV_MAX 4096
#define PLAN_BYTES_MAX (8u << 20)
#define PLAN_PATH_MAX 4095
#define PLAN_ENV_BYTES_MAX 32768 /* one NAME=value */
#define PLAN_ARG_BYTES_MAX (1u << 20)

enum plan_kind { PLAN_DIR, PLAN_FILE };

/*
 * One bind. `source` is opened as the run's user (no magic links) and must
 * still be of `kind` (and, when ino is not 0, the same device and inode as at
 * the look-up); it appears at `target`. Applied in order.
 */
struct plan_mount {
	const char *source;
	const char *target;
	enum plan_kind kind;
	bool read_only;
	uint64_t dev;
	uint64_t ino;
};

/* A restriction on a path that exists and lies in the view; applied after all
 * mounts, in order. A path that no longer exists fails the launch. */
enum plan_mask_how {
	PLAN_MASK_EMPTY_DIR, /* read-denied directory: empty, read-only */
	PLAN_MASK_NO_FILE, /* read-denied file, denied program: EACCES */
	PLAN_MASK_READ_ONLY, /* write-denied: bound on itself read-only */
	/* A directory with denied names in it, bound on itself as it is: it
	 * cannot be moved away for another one to take its place. */
	PLAN_MASK_PINNED,
};
struct plan_mask {
	const char *path;
	enum plan_mask_how how;
	enum plan_kind kind;
	bool system; /* lies in the system view, opened by launcherd itself:
			 * only PLAN_MASK_NO_FILE below /usr */
	bool found; /* by the start scan: not part of the policy */
};

/* A generated file below /etc of the run, read-only. */
struct plan_file {
	const char *path;
	struct wire_view content;
};

/* A guarded place, as in the guard's table (protocol/guard.h), in its order. */
struct plan_root {
	const char *path; /* inside, clean, not "/" */
	bool empty;
};

/* Limits; 0: none. PLAN_LIMIT_* in `named`: the spec named it, so a missing
 * controller refuses the launch (SPEC C15). */
#define PLAN_LIMIT_MEMORY 1u
#define PLAN_LIMIT_PIDS 2u
#define PLAN_LIMIT_CPUS 4u
struct plan_limits {
	uint64_t memory_bytes;
	uint64_t pids;
	uint64_t cpu_milli; /* 1000 = one processor */
	uint64_t tmp_bytes;
	uint64_t home_bytes;
	uint64_t shm_bytes;
	uint64_t named;
};

struct plan {
	/* For control alone (restore, `sandbox.get`): its own msgpack. */
	struct wire_view session;
	const char *home; /* HOME inside, absolute and clean */
	const char *cwd;
	const char *hostname;
	bool userns; /* allowUserNamespaces */
	struct plan_limits limits;
	size_t nmounts;
	struct plan_mount mounts[PLAN_MOUNTS_MAX];
	size_t nmasks;
	struct plan_mask masks[PLAN_MASKS_MAX];
	size_t nfiles;
	struct plan_file files[PLAN_FILES_MAX];
	size_t nroots; /* 0: no name rules, no broker */
	struct plan_root roots[PLAN_ROOTS_MAX];
	/* Directories at least this deep may be missing on the way to a
	 * target and are made (root, 0755; below home chowned by init). */
};

/* Whether a mount or a home may appear at `path`, which is clean: not the
 * places that SPEC I15 keeps whole, nothing below /dev, /etc, /proc, /run and
 * /sys. plan_decode() asks it; so does control, to say so early. */
bool plan_target_permitted(const char *path);

/* 0, or -EPROTO; ret_field names the field at fault (static text). `ret` is
 * large: allocate it. Checks versions, counts, that every path is clean
 * (common/path.h), that each target passes plan_target_permitted(), that each
 * mask lies in a mount or is a system mask below /usr. */
int plan_decode(const void *data, size_t len, struct plan *ret,
    const char **ret_field);
/* Deterministic: equal plans give equal bytes. Errors are in out->err. */
void plan_encode(const struct plan *, struct wire_out *out);
/* Without what the start scan found, which changes from launch to launch: what
 * the digest of a plan covers. */
void plan_encode_policy(const struct plan *, struct wire_out *out);

/* A command: complete environment, nothing is inherited. */
struct exec_plan {
	const char *cwd;
	size_t nargv;
	const char *argv[PLAN_ARGV_MAX + 1]; /* NULL-terminated */
	size_t nenv;
	const char *env[PLAN_ENV_MAX + 1];
};
int exec_plan_decode(const void *data, size_t len, struct exec_plan *ret,
    const char **ret_field);
void exec_plan_encode(const struct exec_plan *, struct wire_out *out);

#endif
