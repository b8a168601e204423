/*
 * In stockade-control. One function for each source of paths. Patterns ("**",
 * "mkfs.*") cannot be asked for as paths: those of git's modules wait for the
 * name rules, and of the file system makers the known ones are asked for by
 * name. What comes from the configuration is copied: a reload may free it
 * before the answer is in.
 */
#include "supervisor/control/plan_ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "protocol/lookup.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/spec.h"

struct asker {
	struct pool *pool;
	struct plan_asked *asked;
	int error; /* sticky: -ENOMEM, -E2BIG */
};

/* What "mkfs.*" finds on the distributions that we know. */
static const char *const mkfs_names[] = { "mkfs.bfs", "mkfs.btrfs",
	"mkfs.cramfs", "mkfs.erofs", "mkfs.exfat", "mkfs.ext2", "mkfs.ext3",
	"mkfs.ext4", "mkfs.f2fs", "mkfs.fat", "mkfs.gfs2", "mkfs.jfs",
	"mkfs.minix", "mkfs.msdos", "mkfs.nilfs2", "mkfs.ntfs", "mkfs.ocfs2",
	"mkfs.reiserfs", "mkfs.udf", "mkfs.vfat", "mkfs.xfs" };

static const char *const bare_marks[] = { "HEAD", "objects", "refs" };

static struct plan_item *
add(struct asker *a, enum plan_role role, const char *path, const char *field)
{
	struct plan_asked *asked = a->asked;
	struct plan_item *item;

	if (path == NULL)
		a->error = -ENOMEM;
	else if (strlen(path) > LIMIT_FIXED_PATH ||
	    asked->n >= LOOKUP_ITEMS_MAX)
		a->error = -E2BIG;
	if (a->error != 0)
		return NULL;
	item = &asked->items[asked->n++];
	item->role = role;
	item->path = path;
	item->field = field;
	return item;
}

static void
add_kind(struct asker *a, enum plan_role role, const char *path,
    const char *field, enum lists_kind kind, size_t index)
{
	struct plan_item *item = add(a, role, path, field);

	if (item != NULL) {
		item->kind = kind;
		item->index = index;
	}
}

static const char *
below(struct asker *a, const char *dir, const char *name)
{
	char *with_slash = pool_concat(a->pool, dir, "/");

	return with_slash == NULL ? NULL :
				    pool_concat(a->pool, with_slash, name);
}

static void
add_home(struct asker *a, const struct conf *conf)
{
	struct plan_item *item;

	(void)add(a, PLAN_ROLE_HOME, "~/.", "home");
	for (size_t i = 0; i < conf->home_mounts.n; i++)
		(void)add(a, PLAN_ROLE_HOME_PERMIT,
		    pool_strdup(a->pool, conf->home_mounts.list[i].path),
		    "permit home-mount");
	for (size_t i = 0; i < lists_read_home_rows; i++)
		add_kind(a, PLAN_ROLE_DENY_READ,
		    below(a, "~", lists_read_home[i].path), "read-deny list",
		    lists_read_home[i].kind, 0);
	for (size_t i = 0; i < lists_write_home_rows; i++) {
		item = add(a, PLAN_ROLE_DENY_WRITE,
		    below(a, "~", lists_write_home[i].path), "write-deny list");
		if (item == NULL)
			return;
		item->kind = lists_write_home[i].kind;
		item->row = lists_write_home[i].path;
	}
}

static void
add_service(struct asker *a, const struct conf *conf)
{
	(void)add(a, PLAN_ROLE_SERVICE, pool_strdup(a->pool, conf->runtime_dir),
	    "runtime-dir");
	(void)add(a, PLAN_ROLE_SERVICE, pool_strdup(a->pool, conf->state_dir),
	    "state-dir");
	(void)add(a, PLAN_ROLE_SERVICE, pool_strdup(a->pool, conf->socket_path),
	    "socket");
}

/* A writable root: App.6's entries directly in it, those of a git directory
 * in its .git, and in itself should it be a bare repository. */
static void
add_root(struct asker *a, const char *root, size_t index)
{
	const char *git = below(a, root, ".git");

	if (git == NULL) {
		a->error = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < lists_write_root_rows; i++)
		add_kind(a, PLAN_ROLE_ROOT_WRITE,
		    below(a, root, lists_write_root[i].path), "write-deny list",
		    lists_write_root[i].kind, index);
	add_kind(a, PLAN_ROLE_PIN, git, "write-deny list", LISTS_ANY, index);
	for (size_t i = 0; i < ARRAY_LEN(bare_marks); i++)
		add_kind(a, PLAN_ROLE_BARE_MARK, below(a, root, bare_marks[i]),
		    "write-deny list", LISTS_ANY, index);
	for (size_t i = 0; i < lists_write_git_rows; i++) {
		if (strchr(lists_write_git[i].path, '*') != NULL)
			continue;
		add_kind(a, PLAN_ROLE_ROOT_WRITE,
		    below(a, git, lists_write_git[i].path), "write-deny list",
		    lists_write_git[i].kind, index);
		add_kind(a, PLAN_ROLE_BARE_WRITE,
		    below(a, root, lists_write_git[i].path), "write-deny list",
		    lists_write_git[i].kind, index);
	}
}

static const char *
base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

struct adapter_dir {
	const char *adapter;
	const char *dir;
};
static const struct adapter_dir adapter_dirs[] = {
	{ "claude-code", ".claude" },
	{ "codex", ".codex" },
	{ "gemini-cli", ".gemini" },
	{ "cursor", ".cursor" },
	/* Many agents speak it; the others have an adapter of their own. */
	{ "acp", ".cursor" },
};

const char *
plan_adapter_dir(const char *adapter)
{
	for (size_t i = 0; adapter != NULL && i < ARRAY_LEN(adapter_dirs); i++)
		if (strcmp(adapter, adapter_dirs[i].adapter) == 0)
			return adapter_dirs[i].dir;
	return NULL;
}

/* Whether a state directory takes the place of `home_dir` (".claude"): by its
 * name, or because the run's adapter keeps its state there. */
static bool
stands_for(const struct spec *spec, const char *state, const char *home_dir,
    size_t len)
{
	const char *own = plan_adapter_dir(spec->adapter);
	const char *base = base_of(state);

	if (strlen(base) == len && strncmp(base, home_dir, len) == 0)
		return true;
	return own != NULL && strlen(own) == len &&
	    strncmp(own, home_dir, len) == 0;
}

/* I9: a state directory is writable, its configuration and hooks are not. */
static void
add_state(struct asker *a, const struct spec *spec, size_t i, size_t index)
{
	const char *dir = spec->state_dirs.items[i], *slash;

	add_kind(a, PLAN_ROLE_STATE, dir, "runnerStateDirs", LISTS_DIR, index);
	add_root(a, dir, index);
	for (size_t k = 0; k < lists_state_config_rows; k++) {
		slash = strchr(lists_state_config[k].path, '/');
		if (slash == NULL ||
		    !stands_for(spec, dir, lists_state_config[k].path,
			(size_t)(slash - lists_state_config[k].path)))
			continue;
		add_kind(a, PLAN_ROLE_ROOT_WRITE, below(a, dir, slash + 1),
		    "write-deny list", lists_state_config[k].kind, index);
	}
}

static void
add_list(struct asker *a, enum plan_role role, const struct spec_list *list,
    const char *field)
{
	struct plan_item *item;

	for (size_t i = 0; i < list->n; i++) {
		/* A pattern is for the name rules. */
		if (strcmp(field, "denyWrite") == 0 &&
		    strpbrk(list->items[i], "*?") != NULL)
			continue;
		item = add(a, role, list->items[i], field);
		if (item != NULL)
			item->strict = true;
	}
}

static int
add_conf_list(struct asker *a, enum plan_role role,
    const struct conf_paths *list, const char *field, struct spec_fault *fault)
{
	for (size_t i = 0; i < list->n; i++) {
		if (strpbrk(list->list[i].path, "*?") != NULL)
			return spec_fault_set(fault, API_UNSUPPORTED, NULL,
			    "configuration line %u: patterns in `%s` are not "
			    "in this version",
			    list->list[i].origin.line, field);
		(void)add(a, role, pool_strdup(a->pool, list->list[i].path),
		    field);
	}
	return 0;
}

static void
add_programs(struct asker *a)
{
	const char *dir;

	for (size_t d = 0; d < lists_exec_dirs_rows; d++) {
		dir = lists_exec_dirs[d];
		for (size_t i = 0; i < lists_exec_deny_rows; i++)
			if (strchr(lists_exec_deny[i], '*') == NULL)
				(void)add(a, PLAN_ROLE_EXEC,
				    below(a, dir, lists_exec_deny[i]),
				    "programs");
		for (size_t i = 0; i < ARRAY_LEN(mkfs_names); i++)
			(void)add(a, PLAN_ROLE_EXEC,
			    below(a, dir, mkfs_names[i]), "programs");
	}
}

int
plan_ask_path(struct pool *pool, const char *path, struct plan_asked *ret)
{
	struct asker a = { pool, ret, 0 };

	(void)add(&a, PLAN_ROLE_EXPLAIN, path, "path");
	return a.error;
}

int
plan_ask(const struct spec *spec, const struct conf *conf, struct pool *pool,
    struct plan_asked *ret, struct spec_fault *fault)
{
	struct asker a = { pool, ret, 0 };

	memset(ret, 0, sizeof(*ret));
	ret->items =
	    pool_alloc_sparse(pool, LOOKUP_ITEMS_MAX, sizeof(*ret->items));
	if (ret->items == NULL)
		return spec_fault_set(fault, API_INTERNAL, NULL,
		    "out of memory");
	add_home(&a, conf);
	add_service(&a, conf);
	for (size_t i = 0; i < spec->nmounts; i++) {
		add_kind(&a, PLAN_ROLE_MOUNT, spec->mounts[i].path,
		    "bindMounts", LISTS_ANY, i);
		if (spec->mode == SPEC_CHAT && !spec->mounts[i].read_only)
			add_root(&a, spec->mounts[i].path, i);
	}
	for (size_t i = 0; i < spec->state_dirs.n; i++)
		add_state(&a, spec, i, spec->nmounts + i);
	if (spec->workdir != NULL)
		(void)add(&a, PLAN_ROLE_WORKDIR, spec->workdir, "guestWorkdir");
	add_list(&a, PLAN_ROLE_DENY_WRITE, &spec->protected_paths,
	    "protectedPaths");
	add_list(&a, PLAN_ROLE_DENY_READ, &spec->deny_read, "denyRead");
	add_list(&a, PLAN_ROLE_DENY_WRITE, &spec->deny_write, "denyWrite");
	if (add_conf_list(&a, PLAN_ROLE_DENY_READ, &conf->deny_read,
		"deny read", fault) != 0 ||
	    add_conf_list(&a, PLAN_ROLE_DENY_WRITE, &conf->deny_write,
		"deny write", fault) != 0)
		return -EINVAL;
	add_programs(&a);
	if (a.error == -E2BIG)
		return spec_fault_set(fault, API_LIMIT, NULL,
		    "more paths than one launch can check");
	if (a.error != 0)
		return spec_fault_set(fault, API_INTERNAL, NULL,
		    "out of memory");
	return 0;
}
