/*
 * What a launch has to know of the file system, as one question to
 * stockade-lookup: every path that decides what a run sees, with what it is
 * asked for. Pure; the answers are judged by plan_make.c.
 */
#ifndef SUPERVISOR_CONTROL_PLAN_ASK_H
#define SUPERVISOR_CONTROL_PLAN_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/wire.h"
#include "supervisor/control/lists.h"
#include "supervisor/control/pool.h"

struct conf;
struct spec;
struct spec_fault;

/* Of the start scan: what it looks at at most. A warm cache gives about 2
 * entries in a microsecond, so the time is for disks. */
#define PLAN_SCAN_ENTRIES 200000
#define PLAN_SCAN_MS 500

enum plan_role {
	PLAN_ROLE_HOME, /* the home itself */
	PLAN_ROLE_HOME_PERMIT, /* permit home-mount */
	PLAN_ROLE_SERVICE, /* our own directories and socket */
	PLAN_ROLE_MOUNT, /* index: of spec->mounts */
	PLAN_ROLE_STATE, /* index: of spec->state_dirs */
	PLAN_ROLE_WORKDIR,
	PLAN_ROLE_DENY_READ,
	PLAN_ROLE_DENY_WRITE,
	PLAN_ROLE_ROOT_WRITE, /* holds only where the root is writable */
	PLAN_ROLE_BARE_MARK, /* three of them make a bare repository */
	PLAN_ROLE_BARE_WRITE, /* holds where they do */
	PLAN_ROLE_PIN, /* .git of a root: stays in its place */
	PLAN_ROLE_EXPLAIN, /* one that a client asks about; decides nothing */
	PLAN_ROLE_EXEC, /* SPEC App.9 */
};

struct plan_item {
	enum plan_role role;
	const char *path; /* absolute, or "~/..." */
	const char *field; /* for an error: the spec's, or where from */
	const char *row; /* DENY_WRITE below the home: App.6's entry */
	enum lists_kind kind;
	size_t index; /* mount, or state dir behind the mounts */
	bool strict; /* named by the client: must be checkable */
};

struct plan_asked {
	size_t n;
	size_t room;
	struct plan_item *items;
};

/* Memory from `pool`. 0, or -EINVAL with *fault: more paths than a question
 * holds, a pattern in the configuration, no memory. */
int plan_ask(const struct spec *spec, const struct conf *conf,
    struct pool *pool, struct plan_asked *ret, struct spec_fault *fault);

/* One more path, behind those of plan_ask(), which decides nothing. It must
 * live as long as the question. 0 or -E2BIG. */
int plan_ask_path(struct pool *pool, const char *path, struct plan_asked *ret);

/* The directory below the home that the adapter keeps its state in (".codex");
 * NULL for none, also without an adapter. */
const char *plan_adapter_dir(const char *adapter);

/* The question's bytes: these paths, and the start scan (plan_scan.c) with what
 * an earlier one told, or an empty view. 0, or -EINVAL with *fault: a pattern
 * of the spec is none, too many rules, no memory. */
int plan_ask_encode(const struct plan_asked *asked, const struct spec *spec,
    const struct conf *conf, struct wire_view seen, struct wire_out *out,
    struct spec_fault *fault);
/* What makes the places of two launches the same, as bytes. */
void plan_ask_places(const struct spec *spec, struct wire_out *out);

#endif
