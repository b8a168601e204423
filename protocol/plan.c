/*
 * Encoder and decoder of the plan and of the exec plan. The decoder runs as
 * root in launcherd and, with the run's ids, in stockade-init; whoever owns
 * control may have written the bytes. It allocates nothing, and accepts only
 * what the launch may act on: clean paths, known kinds, targets outside the
 * fixed view.
 */
#include "protocol/plan.h"

#include <errno.h>
#include <string.h>

#include "common/path.h"
#include "common/size.h"

/* SPEC I15: never a target as a whole. */
static const char *const never_whole[] = { "/", "/bin", "/boot", "/dev", "/etc",
	"/home", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root",
	"/run", "/sbin", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/lib",
	"/usr/lib64", "/usr/local", "/usr/sbin", "/usr/share", "/var",
	"/var/tmp" };

/* Nothing of a plan appears below these. */
static const char *const never_below[] = { "/dev", "/etc", "/proc", "/run",
	"/sys" };

bool
plan_target_permitted(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(never_whole); i++)
		if (strcmp(path, never_whole[i]) == 0)
			return false;
	for (size_t i = 0; i < ARRAY_LEN(never_below); i++)
		if (path_is_within(path, never_below[i]))
			return false;
	return true;
}

static const char *
get_path(struct wire *w)
{
	const char *path = wire_cstr(w, 1, PLAN_PATH_MAX);

	if (!w->err && !path_is_clean(path))
		wire_fail(w);
	return path;
}

static void
get_mount(struct wire *w, struct plan_mount *mount)
{
	if (wire_array(w, 6, 6) != 6)
		return;
	mount->source = get_path(w);
	mount->target = get_path(w);
	mount->kind = (enum plan_kind)wire_u64(w, PLAN_DIR, PLAN_FILE);
	mount->read_only = wire_bool(w);
	mount->dev = wire_u64(w, 0, UINT64_MAX);
	mount->ino = wire_u64(w, 0, UINT64_MAX);
	if (!w->err && !plan_target_permitted(mount->target))
		wire_fail(w);
}

static bool
lies_in_mount(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->nmounts; i++)
		if (path_is_within(path, plan->mounts[i].target))
			return true;
	return false;
}

static void
get_mask(struct wire *w, const struct plan *plan, struct plan_mask *mask)
{
	size_t n = wire_array(w, 4, 5);

	mask->path = get_path(w);
	mask->how = (enum plan_mask_how)wire_u64(w, PLAN_MASK_EMPTY_DIR,
	    PLAN_MASK_PINNED);
	mask->kind = (enum plan_kind)wire_u64(w, PLAN_DIR, PLAN_FILE);
	mask->system = wire_bool(w);
	mask->found = n == 5 && wire_bool(w);
	if (n == 5 && !mask->found)
		wire_fail(w);
	if (w->err)
		return;
	if (mask->how != PLAN_MASK_READ_ONLY &&
	    (mask->how == PLAN_MASK_NO_FILE) != (mask->kind == PLAN_FILE))
		wire_fail(w);
	if (mask->system ? mask->how != PLAN_MASK_NO_FILE ||
		    !path_is_within(mask->path, "/usr") :
			   !lies_in_mount(plan, mask->path))
		wire_fail(w);
}

/* Directly or deeper below /etc, which launcherd makes for the run. */
static void
get_file(struct wire *w, struct plan_file *file)
{
	if (wire_array(w, 2, 2) != 2)
		return;
	file->path = get_path(w);
	file->content = wire_bin(w, 0, 1u << 20);
	if (!w->err &&
	    (!path_is_within(file->path, "/etc") ||
		strcmp(file->path, "/etc") == 0))
		wire_fail(w);
}

static void
get_limits(struct wire *w, struct plan_limits *limits)
{
	if (wire_array(w, 7, 7) != 7)
		return;
	limits->memory_bytes = wire_u64(w, 0, INT64_MAX);
	limits->pids = wire_u64(w, 0, INT32_MAX);
	limits->cpu_milli = wire_u64(w, 0, 1000000);
	limits->tmp_bytes = wire_u64(w, 0, INT64_MAX);
	limits->home_bytes = wire_u64(w, 0, INT64_MAX);
	limits->shm_bytes = wire_u64(w, 0, INT64_MAX);
	limits->named = wire_u64(w, 0,
	    PLAN_LIMIT_MEMORY | PLAN_LIMIT_PIDS | PLAN_LIMIT_CPUS);
}

static void
get_root(struct wire *w, struct plan_root *root)
{
	if (wire_array(w, 2, 2) != 2)
		return;
	root->path = get_path(w);
	root->empty = wire_bool(w);
	if (!w->err && strcmp(root->path, "/") == 0)
		wire_fail(w);
}

/* Returns the version. */
static uint64_t
get_head(struct wire *w, struct plan *plan)
{
	size_t n = wire_array(w, 10, 11);
	uint64_t version = wire_u64(w, PLAN_VERSION, PLAN_VERSION_GUARDED);

	if (n != (version == PLAN_VERSION_GUARDED ? 11 : 10))
		wire_fail(w);
	plan->session = wire_bin(w, 0, PLAN_BYTES_MAX);
	plan->home = get_path(w);
	plan->cwd = get_path(w);
	plan->hostname = wire_cstr(w, 1, 64);
	plan->userns = wire_bool(w);
	if (!w->err &&
	    (!plan_target_permitted(plan->home) ||
		strspn(plan->hostname,
		    "abcdefghijklmnopqrstuvwxyz0123456789-") !=
		    strlen(plan->hostname)))
		wire_fail(w);
	return version;
}

/* Records the first part at which the decoding failed. */
static void
at_field(const struct wire *w, const char *name, const char **field)
{
	if (w->err && *field == NULL)
		*field = name;
}

int
plan_decode(const void *data, size_t len, struct plan *ret,
    const char **ret_field)
{
	const char *field = NULL;
	uint64_t version;
	struct wire w;

	/* Not the arrays: what is in use of them is written below. */
	memset(ret, 0, offsetof(struct plan, mounts));
	ret->nmasks = ret->nfiles = ret->nroots = 0;
	wire_init(&w, data, len);
	version = get_head(&w, ret);
	at_field(&w, "head", &field);
	get_limits(&w, &ret->limits);
	at_field(&w, "limits", &field);
	ret->nmounts = wire_array(&w, 0, PLAN_MOUNTS_MAX);
	for (size_t i = 0; i < ret->nmounts && !w.err; i++)
		get_mount(&w, &ret->mounts[i]);
	at_field(&w, "mounts", &field);
	ret->nmasks = wire_array(&w, 0, PLAN_MASKS_MAX);
	for (size_t i = 0; i < ret->nmasks && !w.err; i++)
		get_mask(&w, ret, &ret->masks[i]);
	at_field(&w, "masks", &field);
	ret->nfiles = wire_array(&w, 0, PLAN_FILES_MAX);
	for (size_t i = 0; i < ret->nfiles && !w.err; i++)
		get_file(&w, &ret->files[i]);
	at_field(&w, "files", &field);
	if (version == PLAN_VERSION_GUARDED)
		ret->nroots = wire_array(&w, 1, PLAN_ROOTS_MAX);
	for (size_t i = 0; i < ret->nroots && !w.err; i++)
		get_root(&w, &ret->roots[i]);
	at_field(&w, "roots", &field);
	if (!wire_done(&w)) {
		ret->nmounts = ret->nmasks = ret->nfiles = ret->nroots = 0;
		*ret_field = field != NULL ? field : "end";
		return -EPROTO;
	}
	return 0;
}

static void
put_limits(struct wire_out *out, const struct plan_limits *limits)
{
	wire_put_array(out, 7);
	wire_put_u64(out, limits->memory_bytes);
	wire_put_u64(out, limits->pids);
	wire_put_u64(out, limits->cpu_milli);
	wire_put_u64(out, limits->tmp_bytes);
	wire_put_u64(out, limits->home_bytes);
	wire_put_u64(out, limits->shm_bytes);
	wire_put_u64(out, limits->named);
}

static void
put_mount(struct wire_out *out, const struct plan_mount *mount)
{
	wire_put_array(out, 6);
	wire_put_cstr(out, mount->source);
	wire_put_cstr(out, mount->target);
	wire_put_u64(out, mount->kind);
	wire_put_bool(out, mount->read_only);
	wire_put_u64(out, mount->dev);
	wire_put_u64(out, mount->ino);
}

static void
put_mask(struct wire_out *out, const struct plan_mask *mask)
{
	wire_put_array(out, mask->found ? 5 : 4);
	wire_put_cstr(out, mask->path);
	wire_put_u64(out, mask->how);
	wire_put_u64(out, mask->kind);
	wire_put_bool(out, mask->system);
	if (mask->found)
		wire_put_bool(out, true);
}

static void
put_masks(struct wire_out *out, const struct plan *plan, bool found)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->nmasks; i++)
		n += found || !plan->masks[i].found;
	wire_put_array(out, n);
	for (size_t i = 0; i < plan->nmasks; i++)
		if (found || !plan->masks[i].found)
			put_mask(out, &plan->masks[i]);
}

static void
put_plan(struct wire_out *out, const struct plan *plan, bool found)
{
	wire_put_array(out, plan->nroots == 0 ? 10 : 11);
	wire_put_u64(out,
	    plan->nroots == 0 ? PLAN_VERSION : PLAN_VERSION_GUARDED);
	wire_put_bin(out, plan->session.data, plan->session.len);
	wire_put_cstr(out, plan->home);
	wire_put_cstr(out, plan->cwd);
	wire_put_cstr(out, plan->hostname);
	wire_put_bool(out, plan->userns);
	put_limits(out, &plan->limits);
	wire_put_array(out, plan->nmounts);
	for (size_t i = 0; i < plan->nmounts; i++)
		put_mount(out, &plan->mounts[i]);
	put_masks(out, plan, found);
	wire_put_array(out, plan->nfiles);
	for (size_t i = 0; i < plan->nfiles; i++) {
		wire_put_array(out, 2);
		wire_put_cstr(out, plan->files[i].path);
		wire_put_bin(out, plan->files[i].content.data,
		    plan->files[i].content.len);
	}
	if (plan->nroots == 0)
		return;
	wire_put_array(out, plan->nroots);
	for (size_t i = 0; i < plan->nroots; i++) {
		wire_put_array(out, 2);
		wire_put_cstr(out, plan->roots[i].path);
		wire_put_bool(out, plan->roots[i].empty);
	}
}

void
plan_encode(const struct plan *plan, struct wire_out *out)
{
	put_plan(out, plan, true);
}

void
plan_encode_policy(const struct plan *plan, struct wire_out *out)
{
	put_plan(out, plan, false);
}

/* A name, '=', a value; the name as a shell would accept one, plus what App.8
 * lists never need: no control bytes. */
static bool
env_is_clean(const char *env)
{
	const char *equals = strchr(env, '=');

	if (equals == NULL || equals == env)
		return false;
	for (const char *p = env; p < equals; p++)
		if (*p <= ' ' || *p == 0x7f)
			return false;
	return true;
}

int
exec_plan_decode(const void *data, size_t len, struct exec_plan *ret,
    const char **ret_field)
{
	const char *field = NULL;
	struct wire w;
	bool ok;

	ret->nargv = ret->nenv = 0;
	wire_init(&w, data, len);
	(void)wire_array(&w, 4, 4);
	(void)wire_u64(&w, PLAN_VERSION, PLAN_VERSION);
	ret->cwd = get_path(&w);
	at_field(&w, "cwd", &field);
	ret->nargv = wire_array(&w, 1, PLAN_ARGV_MAX);
	for (size_t i = 0; i < ret->nargv && !w.err; i++)
		ret->argv[i] = wire_cstr(&w, 0, PLAN_ARG_BYTES_MAX);
	at_field(&w, "argv", &field);
	ret->nenv = wire_array(&w, 0, PLAN_ENV_MAX);
	for (size_t i = 0; i < ret->nenv && !w.err; i++) {
		ret->env[i] = wire_cstr(&w, 2, PLAN_ENV_BYTES_MAX);
		if (!w.err && !env_is_clean(ret->env[i]))
			wire_fail(&w);
	}
	at_field(&w, "env", &field);
	if (!w.err && ret->argv[0][0] == '\0') {
		wire_fail(&w);
		field = "argv";
	}
	ok = wire_done(&w);
	if (!ok) {
		ret->nargv = ret->nenv = 0;
		*ret_field = field != NULL ? field : "end";
	}
	ret->argv[ret->nargv] = NULL;
	ret->env[ret->nenv] = NULL;
	return ok ? 0 : -EPROTO;
}

void
exec_plan_encode(const struct exec_plan *plan, struct wire_out *out)
{
	wire_put_array(out, 4);
	wire_put_u64(out, PLAN_VERSION);
	wire_put_cstr(out, plan->cwd);
	wire_put_array(out, plan->nargv);
	for (size_t i = 0; i < plan->nargv; i++)
		wire_put_cstr(out, plan->argv[i]);
	wire_put_array(out, plan->nenv);
	for (size_t i = 0; i < plan->nenv; i++)
		wire_put_cstr(out, plan->env[i]);
}
