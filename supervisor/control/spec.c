/*
 * In stockade-control, on a client's bytes. One table: each field of a spec
 * with its reader and its place. A field that is not in the table is an error,
 * and so is a second one of the same name (the RPC scan refuses it before).
 */
#include "supervisor/control/spec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/dfa.h"
#include "common/log.h"
#include "common/size.h"
#include "supervisor/control/limits.h"

struct reader {
	struct spec *spec;
	struct spec_fault *fault;
};

struct field;
typedef int
read_fn(struct reader *, const struct field *, const msgpack_object *);

struct field {
	const char *name;
	read_fn *read;
	size_t offset;
	size_t max; /* entries, bytes or the highest number */
	bool required;
	const char *why; /* of `unsupported` */
};

static const char *const mode_names[SPEC_MODES] = { "chat", "review", "plan",
	"orchestrate" };

int
spec_fault_set(struct spec_fault *fault, enum api_error code, const char *field,
    const char *fmt, ...)
{
	char text[sizeof(fault->text)];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memset(fault, 0, sizeof(*fault));
	fault->code = code;
	if (n > 0)
		(void)log_clean(fault->text, sizeof(fault->text), text,
		    strlen(text));
	if (field != NULL)
		(void)log_clean(fault->field, sizeof(fault->field), field,
		    strlen(field));
	return -EINVAL;
}

const char *
spec_mode_name(enum spec_mode mode)
{
	return (unsigned)mode < SPEC_MODES ? mode_names[mode] : "unknown";
}

int
spec_mode_find(const char *name)
{
	for (int i = 0; i < SPEC_MODES; i++)
		if (strcmp(mode_names[i], name) == 0)
			return i;
	return -1;
}

static int
bad(struct reader *r, const struct field *f, const char *text)
{
	return spec_fault_set(r->fault, API_BAD_PARAMS, f->name, "%s: %s",
	    f->name, text);
}

static int
no_memory(struct reader *r)
{
	return spec_fault_set(r->fault, API_INTERNAL, NULL, "out of memory");
}

static void *
place(struct reader *r, const struct field *f)
{
	return (char *)r->spec + f->offset;
}

/* Text without NUL and control bytes, 1..max bytes. */
static const char *
text_of(struct pool *pool, const msgpack_object *v, size_t max)
{
	if (v->type != MSGPACK_OBJECT_STR || v->via.str.size == 0 ||
	    v->via.str.size > max)
		return NULL;
	for (uint32_t i = 0; i < v->via.str.size; i++)
		if ((unsigned char)v->via.str.ptr[i] < 0x20 ||
		    v->via.str.ptr[i] == 0x7f)
			return NULL;
	return pool_strndup(pool, v->via.str.ptr, v->via.str.size);
}

static int
read_text(struct reader *r, const struct field *f, const msgpack_object *v)
{
	const char *text = text_of(&r->spec->pool, v, f->max);

	if (text == NULL)
		return bad(r, f, "a short text is expected");
	*(const char **)place(r, f) = text;
	return 0;
}

bool
spec_label_ok(const char *s, size_t len)
{
	static const char signs[] = "._:@/-";

	if (len == 0 || len > LIMIT_FIXED_LABEL)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!(s[i] >= 'a' && s[i] <= 'z') &&
		    !(s[i] >= 'A' && s[i] <= 'Z') &&
		    !(s[i] >= '0' && s[i] <= '9') &&
		    (s[i] == '\0' || strchr(signs, s[i]) == NULL))
			return false;
	return true;
}

static int
read_label(struct reader *r, const struct field *f, const msgpack_object *v)
{
	const char *label;

	if (v->type != MSGPACK_OBJECT_STR ||
	    !spec_label_ok(v->via.str.ptr, v->via.str.size))
		return bad(r, f,
		    "1 to 128 characters of A-Z a-z 0-9 . _ : @ / - expected");
	label = pool_strndup(&r->spec->pool, v->via.str.ptr, v->via.str.size);
	if (label == NULL)
		return no_memory(r);
	*(const char **)place(r, f) = label;
	return 0;
}

static int
read_bool(struct reader *r, const struct field *f, const msgpack_object *v)
{
	if (v->type != MSGPACK_OBJECT_BOOLEAN)
		return bad(r, f, "true or false expected");
	*(bool *)place(r, f) = v->via.boolean;
	return 0;
}

static int
read_number(struct reader *r, const struct field *f, const msgpack_object *v)
{
	if (v->type != MSGPACK_OBJECT_POSITIVE_INTEGER || v->via.u64 > f->max)
		return bad(r, f, "a number in range is expected");
	*(uint64_t *)place(r, f) = v->via.u64;
	return 0;
}

static int
read_idle(struct reader *r, const struct field *f, const msgpack_object *v)
{
	r->spec->has_idle = true;
	return read_number(r, f, v);
}

/* Copies one component-wise cleaned path into `to`; false: "..", too long. */
static bool
clean_into(char *to, const char *s, size_t len)
{
	size_t at = 0, start, n;

	for (size_t i = 0; i < len;) {
		if (s[i] == '/') {
			i++;
			continue;
		}
		for (start = i; i < len && s[i] != '/'; i++)
			if (s[i] == '\0')
				return false;
		n = i - start;
		if (n == 1 && s[start] == '.')
			continue;
		if (n == 2 && s[start] == '.' && s[start + 1] == '.')
			return false;
		to[at++] = '/';
		memcpy(to + at, s + start, n);
		at += n;
	}
	if (at == 0)
		to[at++] = '/';
	to[at] = '\0';
	return true;
}

const char *
spec_path_clean(struct pool *pool, const char *s, size_t len)
{
	char *to;

	if (len == 0 || len > LIMIT_FIXED_PATH || s[0] != '/')
		return NULL;
	to = pool_alloc(pool, len + 2, 1);
	return to != NULL && clean_into(to, s, len) ? to : NULL;
}

static const char *
path_of(struct reader *r, const msgpack_object *v)
{
	if (v->type != MSGPACK_OBJECT_STR)
		return NULL;
	return spec_path_clean(&r->spec->pool, v->via.str.ptr, v->via.str.size);
}

static int
read_path(struct reader *r, const struct field *f, const msgpack_object *v)
{
	const char *path = path_of(r, v);

	if (path == NULL)
		return bad(r, f, "an absolute path without .. is expected");
	*(const char **)place(r, f) = path;
	return 0;
}

/* Room for the entries of an array of at most f->max. */
static int
list_begin(struct reader *r, const struct field *f, const msgpack_object *v,
    struct spec_list *list)
{
	if (v->type != MSGPACK_OBJECT_ARRAY)
		return bad(r, f, "a list is expected");
	if (v->via.array.size > f->max)
		return bad(r, f, "too many entries");
	list->items =
	    pool_alloc(&r->spec->pool, v->via.array.size, sizeof(*list->items));
	return list->items == NULL ? no_memory(r) : 0;
}

static int
read_paths(struct reader *r, const struct field *f, const msgpack_object *v)
{
	struct spec_list *list = place(r, f);
	const char *path;

	if (list_begin(r, f, v, list) != 0)
		return -EINVAL;
	for (uint32_t i = 0; i < v->via.array.size; i++) {
		path = path_of(r, &v->via.array.ptr[i]);
		if (path == NULL)
			return bad(r, f,
			    "absolute paths without .. are expected");
		list->items[list->n++] = path;
	}
	return 0;
}

/* A pattern here is a name rule, which holds writes only (SPEC J3, D2). */
static int
read_deny(struct reader *r, const struct field *f, const msgpack_object *v)
{
	struct spec_list *list = place(r, f);

	if (read_paths(r, f, v) != 0)
		return -EINVAL;
	if (list == &r->spec->deny_write)
		return 0;
	for (size_t i = 0; i < list->n; i++)
		if (strpbrk(list->items[i], "*?") != NULL)
			return spec_fault_set(r->fault, API_UNSUPPORTED,
			    f->name, "%s: patterns are not in this version: %s",
			    f->name, list->items[i]);
	return 0;
}

static int
read_texts(struct reader *r, const struct field *f, const msgpack_object *v)
{
	struct spec_list *list = place(r, f);
	const char *text;

	if (list_begin(r, f, v, list) != 0)
		return -EINVAL;
	for (uint32_t i = 0; i < v->via.array.size; i++) {
		text = text_of(&r->spec->pool, &v->via.array.ptr[i], 300);
		if (text == NULL)
			return bad(r, f, "a list of short texts is expected");
		list->items[list->n++] = text;
	}
	return 0;
}

/* A list of a part that is not built: empty is fine, it has no effect. */
static int
read_later_list(struct reader *r, const struct field *f,
    const msgpack_object *v)
{
	if (v->type != MSGPACK_OBJECT_ARRAY)
		return bad(r, f, "a list is expected");
	if (v->via.array.size != 0)
		return spec_fault_set(r->fault, API_UNSUPPORTED, f->name,
		    "%s: %s", f->name, f->why);
	return 0;
}

static bool
object_is(const msgpack_object *v, const char *s)
{
	return v->type == MSGPACK_OBJECT_STR && v->via.str.size == strlen(s) &&
	    memcmp(v->via.str.ptr, s, v->via.str.size) == 0;
}

static int
read_new_repositories(struct reader *r, const struct field *f,
    const msgpack_object *v)
{
	if (object_is(v, "deny"))
		return 0;
	if (!object_is(v, "allow"))
		return bad(r, f, "allow or deny expected");
	r->spec->new_repositories = true;
	return 0;
}

/* Without an App a run gets no credential by either word (SPEC Q8). */
static int
read_credentials(struct reader *r, const struct field *f,
    const msgpack_object *v)
{
	if (!object_is(v, "auto") && !object_is(v, "none"))
		return bad(r, f, "auto or none expected");
	return 0;
}

static int
read_mode(struct reader *r, const struct field *f, const msgpack_object *v)
{
	for (int i = 0; i < SPEC_MODES; i++)
		if (object_is(v, mode_names[i])) {
			r->spec->mode = (enum spec_mode)i;
			return 0;
		}
	return bad(r, f, "chat, review, plan or orchestrate expected");
}

static int
read_stored(struct reader *r, const struct field *f, const msgpack_object *v)
{
	r->spec->has_stored = true;
	return v->type == MSGPACK_OBJECT_NIL ? 0 : read_text(r, f, v);
}

/* {owner, name}: grants nothing while there is no push gateway, and a run
 * without it has less, so it is checked and set aside. */
static int
check_repo(struct reader *r, const struct field *f, const msgpack_object *v)
{
	unsigned seen = 0;

	if (v->type != MSGPACK_OBJECT_MAP || v->via.map.size != 2)
		return bad(r, f, "a map of owner and name is expected");
	for (uint32_t i = 0; i < v->via.map.size; i++) {
		const msgpack_object_kv *kv = &v->via.map.ptr[i];

		seen |= object_is(&kv->key, "owner") ? 1u :
		    object_is(&kv->key, "name")      ? 2u :
						       4u;
		if (text_of(&r->spec->pool, &kv->val, 128) == NULL)
			seen |= 4u;
	}
	return seen == 3u ? 0 :
			    bad(r, f, "a map of owner and name is expected");
}

static int
read_repos(struct reader *r, const struct field *f, const msgpack_object *v)
{
	if (v->type != MSGPACK_OBJECT_ARRAY || v->via.array.size > f->max)
		return bad(r, f, "a list is expected");
	for (uint32_t i = 0; i < v->via.array.size; i++)
		if (check_repo(r, f, &v->via.array.ptr[i]) != 0)
			return -EINVAL;
	return 0;
}

static int
read_mount(struct reader *r, const struct field *f, const msgpack_object *v,
    struct spec_mount *mount)
{
	const char *guest = NULL, *path;

	if (v->type != MSGPACK_OBJECT_MAP)
		return bad(r, f, "each entry is a map");
	for (uint32_t i = 0; i < v->via.map.size; i++) {
		const msgpack_object_kv *kv = &v->via.map.ptr[i];

		if (object_is(&kv->key, "readOnly")) {
			if (kv->val.type != MSGPACK_OBJECT_BOOLEAN)
				return bad(r, f, "readOnly is true or false");
			mount->read_only = kv->val.via.boolean;
			continue;
		}
		path = path_of(r, &kv->val);
		if (path == NULL)
			return bad(r, f,
			    "hostPath, guestPath (absolute paths without ..) "
			    "and readOnly expected");
		if (object_is(&kv->key, "hostPath"))
			mount->path = path;
		else if (object_is(&kv->key, "guestPath"))
			guest = path;
		else
			return bad(r, f, "an entry has an unknown field");
	}
	if (mount->path == NULL)
		return bad(r, f, "hostPath is missing");
	if (guest != NULL && strcmp(guest, mount->path) != 0)
		return bad(r, f, "guestPath must equal hostPath");
	return 0;
}

static int
read_mounts(struct reader *r, const struct field *f, const msgpack_object *v)
{
	struct spec *spec = r->spec;

	if (v->type != MSGPACK_OBJECT_ARRAY || v->via.array.size > f->max)
		return bad(r, f, "a list of at most 64 mounts is expected");
	spec->mounts =
	    pool_alloc(&spec->pool, v->via.array.size, sizeof(*spec->mounts));
	if (spec->mounts == NULL)
		return no_memory(r);
	for (uint32_t i = 0; i < v->via.array.size; i++)
		if (read_mount(r, f, &v->via.array.ptr[i],
			&spec->mounts[spec->nmounts++]) != 0)
			return -EINVAL;
	return 0;
}

/* A variable's value: no NUL, at most ENV_VALUE bytes. */
static const char *
env_value(struct pool *pool, const msgpack_object *v, size_t *total)
{
	if (v->type != MSGPACK_OBJECT_STR ||
	    v->via.str.size > LIMIT_FIXED_ENV_VALUE ||
	    memchr(v->via.str.ptr, '\0', v->via.str.size) != NULL)
		return NULL;
	*total += v->via.str.size;
	return pool_strndup(pool, v->via.str.ptr, v->via.str.size);
}

int
spec_env_read(struct pool *pool, const char *field, const msgpack_object *v,
    struct spec_env *ret, struct spec_fault *fault)
{
	struct spec_env env = { 0 };
	size_t total = 0, n;

	if (v->type != MSGPACK_OBJECT_MAP ||
	    v->via.map.size > LIMIT_FIXED_ENV_NAMES)
		return spec_fault_set(fault, API_BAD_PARAMS, field,
		    "%s: a map of at most 256 names is expected", field);
	n = v->via.map.size;
	env.names = pool_alloc(pool, n, sizeof(*env.names));
	env.values = pool_alloc(pool, n, sizeof(*env.values));
	if (env.names == NULL || env.values == NULL)
		return spec_fault_set(fault, API_INTERNAL, NULL,
		    "out of memory");
	for (; env.n < n; env.n++) {
		const msgpack_object_kv *kv = &v->via.map.ptr[env.n];

		env.names[env.n] = text_of(pool, &kv->key, 256);
		env.values[env.n] = env_value(pool, &kv->val, &total);
		if (env.names[env.n] == NULL || env.values[env.n] == NULL)
			return spec_fault_set(fault, API_BAD_PARAMS, field,
			    "%s: names and values of text up to 32 KiB are "
			    "expected",
			    field);
		total += kv->key.via.str.size + 2;
		if (total > LIMIT_FIXED_ENV_TOTAL)
			return spec_fault_set(fault, API_BAD_PARAMS, field,
			    "%s: more than 256 KiB in all", field);
	}
	*ret = env;
	return 0;
}

static int
read_env(struct reader *r, const struct field *f, const msgpack_object *v)
{
	return spec_env_read(&r->spec->pool, f->name, v, place(r, f), r->fault);
}

/* A map as `env`, or names alone. */
static int
read_pass_env(struct reader *r, const struct field *f, const msgpack_object *v)
{
	struct spec_env *env = place(r, f);
	struct spec_list list = { 0 };

	if (v->type == MSGPACK_OBJECT_MAP)
		return read_env(r, f, v);
	if (list_begin(r, f, v, &list) != 0)
		return -EINVAL;
	env->names = list.items;
	env->values =
	    pool_alloc(&r->spec->pool, v->via.array.size, sizeof(*env->values));
	if (env->values == NULL)
		return no_memory(r);
	for (uint32_t i = 0; i < v->via.array.size; i++) {
		env->names[i] =
		    text_of(&r->spec->pool, &v->via.array.ptr[i], 256);
		if (env->names[i] == NULL)
			return bad(r, f, "names are expected");
		env->n++;
	}
	return 0;
}

struct limit_field {
	const char *name;
	size_t offset;
	uint64_t min;
	uint64_t max;
};
#define LIMIT(n, m, lo, hi) \
	{ \
		(n), offsetof(struct spec_limits, m), (lo), (hi) \
	}
static const struct limit_field limit_fields[] = {
	LIMIT("memoryBytes", memory_bytes, 1u << 20, INT64_MAX),
	LIMIT("pids", pids, 2, 4194304),
	LIMIT("wallMs", wall_ms, 1, UINT64_C(366) * 86400000),
	LIMIT("tmpBytes", tmp_bytes, 4096, INT64_MAX),
};

/* Processors, whole or with a fraction. */
static int
read_cpus(struct reader *r, const struct field *f, const msgpack_object *v)
{
	double cpus = -1;

	if (v->type == MSGPACK_OBJECT_POSITIVE_INTEGER && v->via.u64 <= 1000)
		cpus = (double)v->via.u64;
	else if (v->type == MSGPACK_OBJECT_FLOAT32 ||
	    v->type == MSGPACK_OBJECT_FLOAT64)
		cpus = v->via.f64;
	if (!(cpus >= 0.01 && cpus <= 1000))
		return bad(r, f, "cpus is a number from 0.01 to 1000");
	r->spec->limits.cpu_milli = (uint64_t)(cpus * 1000 + 0.5);
	return 0;
}

static int
read_limit(struct reader *r, const struct field *f, const msgpack_object_kv *kv)
{
	void *to;

	for (size_t i = 0; i < ARRAY_LEN(limit_fields); i++) {
		const struct limit_field *l = &limit_fields[i];

		if (!object_is(&kv->key, l->name))
			continue;
		if (kv->val.type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
		    kv->val.via.u64 < l->min || kv->val.via.u64 > l->max)
			return spec_fault_set(r->fault, API_BAD_PARAMS, f->name,
			    "limits.%s is out of range", l->name);
		to = (char *)&r->spec->limits + l->offset;
		*(uint64_t *)to = kv->val.via.u64;
		return 0;
	}
	if (object_is(&kv->key, "cpus"))
		return read_cpus(r, f, &kv->val);
	if (object_is(&kv->key, "egressBytes"))
		return spec_fault_set(r->fault, API_UNSUPPORTED, f->name,
		    "limits.egressBytes: byte budgets are not in this version");
	return bad(r, f, "an unknown limit");
}

static int
read_limits(struct reader *r, const struct field *f, const msgpack_object *v)
{
	if (v->type != MSGPACK_OBJECT_MAP)
		return bad(r, f, "a map is expected");
	for (uint32_t i = 0; i < v->via.map.size; i++)
		if (read_limit(r, f, &v->via.map.ptr[i]) != 0)
			return -EINVAL;
	return 0;
}

#define AT(m) offsetof(struct spec, m)
#define NOT_NOW " not in this version"
/* clang-format off */
static const struct field fields[] = {
	{ "sessionId", read_label, AT(session_id), 0, true, NULL },
	{ "workspaceId", read_label, AT(workspace_id), 0, true, NULL },
	{ "bindMounts", read_mounts, 0, LIMIT_FIXED_BIND_MOUNTS, true, NULL },
	{ "agentId", read_label, AT(agent_id), 0, false, NULL },
	{ "networkEnabled", read_bool, AT(network), 0, false, NULL },
	{ "egressAllowlist", read_texts, AT(egress_allow),
	    LIMIT_FIXED_EGRESS_ALLOW, false, NULL },
	{ "guestWorkdir", read_path, AT(workdir), 0, false, NULL },
	{ "mode", read_mode, 0, 0, false, NULL },
	{ "protectedPaths", read_paths, AT(protected_paths),
	    LIMIT_FIXED_PROTECTED_PATHS, false, NULL },
	{ "runnerStateDirs", read_paths, AT(state_dirs),
	    LIMIT_FIXED_STATE_DIRS, false, NULL },
	{ "execGrantRoots", read_paths, AT(exec_grant_roots),
	    LIMIT_FIXED_EXEC_GRANT_ROOTS, false, NULL },
	{ "backend", read_text, AT(backend), 64, false, NULL },
	{ "storedBackend", read_stored, AT(stored_backend), 64, false, NULL },
	{ "user", read_text, AT(user), 64, false, NULL },
	{ "adapter", read_label, AT(adapter), 0, false, NULL },
	{ "spaceId", read_label, AT(space_id), 0, false, NULL },
	{ "conversationId", read_label, AT(conversation_id), 0, false, NULL },
	{ "runId", read_label, AT(run_id), 0, false, NULL },
	{ "actingUser", read_text, AT(acting_user), SPEC_ACTING_USER_MAX,
	    false, NULL },
	{ "repo", check_repo, 0, 0, false, NULL },
	{ "linkedRepos", read_repos, 0, 64, false, NULL },
	{ "env", read_env, AT(env), 0, false, NULL },
	{ "passEnv", read_pass_env, AT(pass_env), LIMIT_FIXED_ENV_NAMES, false,
	    NULL },
	{ "denyRead", read_deny, AT(deny_read), LIMIT_FIXED_DENY_PATHS, false,
	    NULL },
	{ "denyWrite", read_deny, AT(deny_write), LIMIT_FIXED_DENY_PATHS,
	    false, NULL },
	{ "nameExemptions", read_texts, AT(name_exemptions),
	    LIMIT_FIXED_DENY_PATHS, false, NULL },
	{ "unixSockets", read_later_list, 0, 0, false,
	    "sockets of the host are" NOT_NOW },
	{ "loopbackPorts", read_later_list, 0, 0, false,
	    "ports of the host's loopback are" NOT_NOW },
	{ "allowUserNamespaces", read_bool, AT(userns), 0, false, NULL },
	{ "limits", read_limits, 0, 0, false, NULL },
	{ "newRepositories", read_new_repositories, 0, 0, false, NULL },
	{ "idleMs", read_idle, AT(idle_ms), 31622400000u, false, NULL },
	{ "detach", read_bool, AT(detach), 0, false, NULL },
	{ "goneMs", read_number, AT(gone_ms), LIMIT_FIXED_GONE_MS, false,
	    NULL },
	{ "acceptUnconfined", read_bool, AT(accept_unconfined), 0, false,
	    NULL },
	{ "credentials", read_credentials, 0, 0, false, NULL },
};
/* clang-format on */

static const struct field *
field_find(const msgpack_object *key)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (object_is(key, fields[i].name))
			return &fields[i];
	return NULL;
}

static int
read_all(struct reader *r, const msgpack_object *map)
{
	uint64_t seen = 0, bit;
	const struct field *f;

	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];
		char name[64] = "?";

		if (kv->key.type == MSGPACK_OBJECT_STR)
			(void)log_clean(name, sizeof(name), kv->key.via.str.ptr,
			    kv->key.via.str.size);
		f = field_find(&kv->key);
		if (f == NULL)
			return spec_fault_set(r->fault, API_BAD_PARAMS, name,
			    "unknown field %s", name);
		bit = UINT64_C(1) << (f - fields);
		if ((seen & bit) != 0)
			return bad(r, f, "given twice");
		seen |= bit;
		if (f->read(r, f, &kv->val) != 0)
			return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (fields[i].required && (seen & (UINT64_C(1) << i)) == 0)
			return bad(r, &fields[i], "missing");
	return 0;
}

int
spec_parse(const msgpack_object *map, struct spec **ret,
    struct spec_fault *fault)
{
	struct reader r = { NULL, fault };

	_Static_assert(ARRAY_LEN(fields) <= 64, "one bit for each field");
	if (map->type != MSGPACK_OBJECT_MAP)
		return spec_fault_set(fault, API_BAD_PARAMS, "spec",
		    "spec: a map is expected");
	r.spec = calloc(1, sizeof(*r.spec));
	if (r.spec == NULL)
		return no_memory(&r);
	r.spec->network = true;
	r.spec->gone_ms = LIMIT_FIXED_GONE_MS;
	if (read_all(&r, map) != 0) {
		spec_free(r.spec);
		return -EINVAL;
	}
	*ret = r.spec;
	return 0;
}

void
spec_free(struct spec *spec)
{
	if (spec == NULL)
		return;
	pool_done(&spec->pool);
	free(spec);
}
