/*
 * From the options of `run` to a spec. Everything read here is the caller's
 * own; the service checks all of it once more, as the run's user.
 */
#include <sys/stat.h>

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/path.h"
#include "common/size.h"
#include "protocol/rpc.h"
#include "supervisor/ctl/adapters.h"
#include "supervisor/ctl/ctl.h"
#include "supervisor/ctl/run.h"
#include "supervisor/ctl/text.h"
#include "supervisor/ctl/toolchains.h"

#define GROUPS_MAX 1024
#define ENV_VALUE_MAX 32768 /* SPEC AB */

extern char **environ;

/* The run's user, as far as we know him: root without --user leaves the choice
 * to the service's configuration. */
struct who {
	bool known;
	bool other; /* not the caller */
	uid_t uid;
	gid_t gid;
	char name[256];
	char home[PATH_MAX];
	size_t ngroups;
	gid_t groups[GROUPS_MAX];
};

/* A mount of the spec. */
struct mount {
	const char *path;
	bool read_only;
};

/* What is collected before the spec is written. */
struct draft {
	struct run *run;
	struct who who;
	char dir[PATH_MAX];
	size_t n;
	struct mount mounts[RUN_MOUNTS_MAX];
	char *paths[RUN_MOUNTS_MAX]; /* owned */
	size_t npaths;
	const struct adapter *adapter;
	char state_dir[ADAPTERS_PATH]; /* "" without one */
	struct toolchains tools;
};

/* ---------------------------------------------------------------- the user */

static int
fill_user(struct who *who, const struct passwd *pw)
{
	if (strlen(pw->pw_name) >= sizeof(who->name) ||
	    strlen(pw->pw_dir) >= sizeof(who->home))
		return -ENAMETOOLONG;
	who->known = true;
	who->uid = pw->pw_uid;
	who->gid = pw->pw_gid;
	who->other = pw->pw_uid != getuid();
	memcpy(who->name, pw->pw_name, strlen(pw->pw_name) + 1);
	memcpy(who->home, pw->pw_dir, strlen(pw->pw_dir) + 1);
	return 0;
}

/* SPEC Y20: root's runs are those of whoever called sudo. */
static const char *
default_user(void)
{
	const char *user = getenv("SUDO_USER");

	if (geteuid() != 0 || user == NULL || user[0] == '\0' ||
	    strcmp(user, "root") == 0)
		return NULL;
	return user;
}

static int
find_user(struct draft *d)
{
	const char *name = d->run->options->user;
	const struct passwd *pw;
	uint64_t uid;

	if (name == NULL)
		name = default_user();
	if (name == NULL && geteuid() == 0)
		return 0;
	if (name == NULL)
		pw = getpwuid(getuid());
	else if (option_number(name, 0, UINT32_MAX - 1, &uid) == 0)
		pw = getpwuid((uid_t)uid);
	else
		pw = getpwnam(name);
	if (pw == NULL && name == NULL)
		return 0;
	if (pw == NULL || fill_user(&d->who, pw) < 0) {
		ctl_say("run: no such user: %s", text_clean(name));
		return CTL_FAILED;
	}
	return 0;
}

/* ---------------------------------------------------------------- paths */

/* $PWD names the directory as the person sees it, with its links. */
static const char *
logical_cwd(void)
{
	const char *pwd = getenv("PWD");
	struct stat a, b;

	if (pwd == NULL || !path_is_clean(pwd) || stat(pwd, &a) < 0 ||
	    stat(".", &b) < 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return NULL;
	return pwd;
}

/* An absolute clean path for what was typed; links stay when it has this form
 * already, since the service mounts both spellings. */
static int
absolute(const char *typed, char ret[PATH_MAX])
{
	struct stat st;

	if (strlen(typed) < PATH_MAX && path_is_clean(typed)) {
		if (stat(typed, &st) < 0)
			return -errno;
		memcpy(ret, typed, strlen(typed) + 1);
		return 0;
	}
	return realpath(typed, ret) == NULL ? -errno : 0;
}

static bool
same_place(const char *a, const char *b)
{
	struct stat sa, sb;

	return b[0] == '/' && stat(a, &sa) == 0 && stat(b, &sb) == 0 &&
	    sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* A directory that is somebody's home, or all of the machine (SPEC Y3). */
static bool
too_wide(const struct draft *d, const char *dir)
{
	const char *home = getenv("HOME");
	char real[PATH_MAX];

	if (realpath(dir, real) == NULL)
		return false;
	if (strcmp(real, "/") == 0 || same_place(real, "/root") ||
	    (home != NULL && same_place(real, home)) ||
	    (d->who.known && same_place(real, d->who.home)))
		return true;
	return strncmp(real, "/home/", 6) == 0 ? strchr(real + 6, '/') == NULL :
						 strcmp(real, "/home") == 0;
}

static int
find_dir(struct draft *d)
{
	const char *typed = d->run->options->dir;
	struct stat st;
	int r;

	if (typed == NULL)
		typed = logical_cwd();
	r = absolute(typed == NULL ? "." : typed, d->dir);
	if (r == 0 && stat(d->dir, &st) == 0 && !S_ISDIR(st.st_mode))
		r = -ENOTDIR;
	if (r < 0) {
		ctl_say("run: %s: %s",
		    typed == NULL ? "the current directory" : text_clean(typed),
		    strerror(-r));
		return CTL_FAILED;
	}
	if (too_wide(d, d->dir)) {
		ctl_say("run: %s would be writable as a whole; name a "
			"directory of a project with -C DIR, or change to one",
		    text_clean(d->dir));
		return CTL_FAILED;
	}
	return 0;
}

static int
add_mount(struct draft *d, const char *path, bool read_only)
{
	char *copy;

	if (d->n == RUN_MOUNTS_MAX || (copy = strdup(path)) == NULL)
		return -ENOSPC;
	d->paths[d->npaths++] = copy;
	d->mounts[d->n++] = (struct mount){ copy, read_only };
	return 0;
}

/* "SRC" or "SRC:ro". */
static int
add_typed_mount(struct draft *d, const char *typed)
{
	size_t len = strlen(typed);
	bool read_only = len > 3 && strcmp(typed + len - 3, ":ro") == 0;
	char source[PATH_MAX], path[PATH_MAX];
	int r;

	if (read_only)
		len -= 3;
	if (len >= sizeof(source))
		return -ENAMETOOLONG;
	memcpy(source, typed, len);
	source[len] = '\0';
	r = absolute(source, path);
	return r < 0 ? r : add_mount(d, path, read_only);
}

/* Words that other tools take behind a path, such as ":rw" or ":/elsewhere";
 * in the name of something that is there a colon is just a byte. */
static bool
has_unknown_word(const char *typed)
{
	size_t len = strlen(typed);
	char source[PATH_MAX];
	struct stat st;

	if (len > 3 && strcmp(typed + len - 3, ":ro") == 0)
		len -= 3;
	if (len >= sizeof(source) || memchr(typed, ':', len) == NULL)
		return false;
	memcpy(source, typed, len);
	source[len] = '\0';
	return lstat(source, &st) < 0;
}

static int
find_mounts(struct draft *d)
{
	const struct option_list *typed = &d->run->options->mounts;
	int r = add_mount(d, d->dir, false);

	for (size_t i = 0; r == 0 && i < typed->n; i++) {
		if (has_unknown_word(typed->items[i])) {
			ctl_say("run: --mount %s: only :ro may stand behind a "
				"path; without it the mount is writable",
			    text_clean(typed->items[i]));
			return CTL_USAGE;
		}
		r = add_typed_mount(d, typed->items[i]);
		if (r < 0)
			ctl_say("run: --mount %s: %s",
			    text_clean(typed->items[i]),
			    r == -ENOSPC ? "too many mounts" : strerror(-r));
	}
	return r < 0 ? CTL_FAILED : 0;
}

/* ---------------------------------------------------------------- extras */

static adapters_env_fn *
caller_env(const struct draft *d)
{
	return d->who.other || !d->who.known ? adapters_no_environment : getenv;
}

static int
find_adapter(struct draft *d)
{
	const char *name = d->run->options->adapter;
	int r;

	if (name == NULL)
		return 0;
	d->adapter = adapters_find(name);
	if (d->adapter == NULL) {
		ctl_say("run: --adapter: unknown; known are:");
		for (size_t i = 0; adapters_name(i) != NULL; i++)
			ctl_say("  %s", adapters_name(i));
		return CTL_USAGE;
	}
	if (!d->who.known) {
		ctl_say("run: --adapter needs --user here");
		return CTL_USAGE;
	}
	r = adapters_state(d->adapter, d->who.home, caller_env(d),
	    d->state_dir);
	if (r < 0)
		ctl_say("run: the agent's state directory is not a clean "
			"absolute path");
	return r < 0 ? CTL_FAILED : 0;
}

/* The run's user's groups; only a search as somebody else needs them. */
static void
find_groups(struct who *who)
{
	int n = GROUPS_MAX;

	if (getgrouplist(who->name, who->gid, who->groups, &n) >= 0)
		who->ngroups = (size_t)n;
}

static void
note_skipped(const struct draft *d)
{
	const struct toolchains *tools = &d->tools;

	for (size_t i = 0; i < tools->nskipped; i++)
		follow_note(d->run, "%s is not mounted: %s",
		    text_clean(tools->skipped[i].path), tools->skipped[i].why);
	if (tools->more_skipped > 0)
		follow_note(d->run, "%zu more are not mounted",
		    tools->more_skipped);
}

/* The directory of the service's socket is not for a run. */
static const char *
socket_dir(const struct ctl *ctl, char ret[PATH_MAX])
{
	const char *slash = strrchr(ctl->socket, '/');
	size_t len = slash == NULL ? 0 : (size_t)(slash - ctl->socket);

	if (len == 0 || len >= PATH_MAX)
		return NULL;
	memcpy(ret, ctl->socket, len);
	ret[len] = '\0';
	return path_is_clean(ret) ? ret : NULL;
}

/* What is found is worth a note when it cannot be had, never the end. */
static void
find_tools(struct draft *d)
{
	const char *given[RUN_MOUNTS_MAX + 1], *deny[1];
	struct toolchains_input in = { .path = getenv("PATH"),
		.home = d->who.home,
		.given = given,
		.deny = deny };
	struct toolchains_ids ids;
	char dir[PATH_MAX];
	int r;

	if (d->run->options->no_toolchains || !d->who.known ||
	    (d->who.other && geteuid() != 0))
		return;
	for (size_t i = 0; i < d->n; i++)
		given[in.ngiven++] = d->mounts[i].path;
	if (d->state_dir[0] != '\0')
		given[in.ngiven++] = d->state_dir;
	deny[0] = socket_dir(d->run->ctl, dir);
	in.ndeny = deny[0] != NULL;
	if (d->who.other) {
		find_groups(&d->who);
		ids = (struct toolchains_ids){ d->who.uid, d->who.gid,
			d->who.groups, d->who.ngroups };
		in.ids = &ids;
	}
	r = toolchains_find(&in, &d->tools);
	if (r < 0 && r != -EINVAL)
		follow_note(d->run, "toolchains were not looked for: %s",
		    strerror(-r));
	note_skipped(d);
	for (size_t i = 0; i < d->tools.n; i++)
		if (add_mount(d, d->tools.mounts[i].path, true) < 0)
			follow_note(d->run,
			    "%s is not mounted: too many "
			    "mounts",
			    text_clean(d->tools.mounts[i].path));
}

/* ------------------------------------------------------------ environment */

/* SPEC App.8, base, without what the service sets for the run's user. `own`:
 * only when that is the caller. */
static const struct base_name {
	const char *name;
	bool prefix;
	bool own;
} base_names[] = {
	{ "PATH", false, false },
	{ "LANG", false, false },
	{ "LANGUAGE", false, false },
	{ "LC_", true, false },
	{ "TZ", false, false },
	{ "TERM", false, false },
	{ "COLORTERM", false, false },
	{ "NO_COLOR", false, false },
	{ "FORCE_COLOR", false, false },
	{ "COLUMNS", false, false },
	{ "LINES", false, false },
	{ "CI", false, false },
	{ "GIT_AUTHOR_NAME", false, true },
	{ "GIT_AUTHOR_EMAIL", false, true },
	{ "GIT_COMMITTER_NAME", false, true },
	{ "GIT_COMMITTER_EMAIL", false, true },
	{ "CLAUDE_CONFIG_DIR", false, true },
};

static bool
is_base(const struct draft *d, const char *entry, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(base_names); i++) {
		size_t n = strlen(base_names[i].name);

		if (base_names[i].own && (d->who.other || !d->who.known))
			continue;
		if (strncmp(entry, base_names[i].name, n) == 0 &&
		    (base_names[i].prefix ? len > n : len == n))
			return true;
	}
	return false;
}

static void
put_base_env(const struct draft *d, struct rpc_out *out)
{
	rpc_add_map(out, "passEnv");
	for (char **e = environ; *e != NULL; e++) {
		const char *value = strchr(*e, '=');
		char name[64];
		size_t len;

		if (value == NULL)
			continue;
		len = (size_t)(value - *e);
		if (len >= sizeof(name) || !is_base(d, *e, len) ||
		    strlen(value + 1) > ENV_VALUE_MAX)
			continue;
		memcpy(name, *e, len);
		name[len] = '\0';
		rpc_add_str(out, name, value + 1);
	}
	rpc_close(out);
}

/* Puts one --env; a later one of the same name was put already. */
static int
put_named(const char *typed, struct rpc_out *out)
{
	const char *value = strchr(typed, '=');
	char name[257];
	size_t len = value == NULL ? strlen(typed) : (size_t)(value - typed);

	if (len == 0 || len >= sizeof(name)) {
		ctl_say("--env: NAME or NAME=VALUE is expected");
		return CTL_USAGE;
	}
	memcpy(name, typed, len);
	name[len] = '\0';
	value = value == NULL ? getenv(name) : value + 1;
	if (value == NULL) {
		ctl_say("--env %s: it is not set here", text_clean(name));
		return CTL_USAGE;
	}
	rpc_add_str(out, name, value);
	return 0;
}

static bool
named_again(const struct option_list *env, size_t at)
{
	size_t len = strcspn(env->items[at], "=");

	for (size_t i = at + 1; i < env->n; i++)
		if (strcspn(env->items[i], "=") == len &&
		    strncmp(env->items[i], env->items[at], len) == 0)
			return true;
	return false;
}

static int
put_env_items(const struct option_list *env, struct rpc_out *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < env->n; i++)
		if (!named_again(env, i))
			r = put_named(env->items[i], out);
	return r;
}

int
run_spec_put_env(const struct option_list *env, struct rpc_out *out)
{
	int r;

	if (env->n == 0)
		return 0;
	rpc_add_map(out, "env");
	r = put_env_items(env, out);
	rpc_close(out);
	return r;
}

static bool
is_named(const struct option_list *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->n; i++)
		if (strcspn(env->items[i], "=") == len &&
		    strncmp(env->items[i], name, len) == 0)
			return true;
	return false;
}

/* What the adapter needs, unless --env says otherwise. */
static void
put_adapter_env(const struct draft *d, struct rpc_out *out)
{
	const struct option_list *env = &d->run->options->env;
	adapters_env_fn *get = caller_env(d);
	const char *name;

	if (d->state_dir[0] != '\0' &&
	    adapters_sets_variable(d->adapter, get) &&
	    !is_named(env, d->adapter->state_variable))
		rpc_add_str(out, d->adapter->state_variable, d->state_dir);
	for (size_t i = 0; (name = adapters_pass(d->adapter, i)) != NULL; i++)
		if (get(name) != NULL && !is_named(env, name))
			rpc_add_str(out, name, get(name));
}

static int
put_env(const struct draft *d, struct rpc_out *out)
{
	int r;

	put_base_env(d, out);
	rpc_add_map(out, "env");
	if (d->adapter != NULL)
		put_adapter_env(d, out);
	r = put_env_items(&d->run->options->env, out);
	rpc_close(out);
	return r;
}

/* ---------------------------------------------------------------- network */

/* A slash stands only before the length of an address range. */
static int
check_allow(const struct option_list *allow)
{
	for (size_t i = 0; i < allow->n; i++) {
		const char *slash = strchr(allow->items[i], '/');

		if (slash == NULL ||
		    (slash[1] != '\0' &&
			slash[1 + strspn(slash + 1, "0123456789:")] == '\0'))
			continue;
		ctl_say("--allow %s: a host name, optionally with :PORT, "
			"not a URL",
		    text_clean(allow->items[i]));
		return CTL_USAGE;
	}
	return 0;
}

/* ---------------------------------------------------------------- the spec */

static void
put_mounts(const struct draft *d, struct rpc_out *out)
{
	rpc_add_array(out, "bindMounts");
	for (size_t i = 0; i < d->n; i++) {
		rpc_open_map(out);
		rpc_add_str(out, "hostPath", d->mounts[i].path);
		rpc_add_bool(out, "readOnly", d->mounts[i].read_only);
		rpc_close(out);
	}
	rpc_close(out);
	if (d->state_dir[0] == '\0')
		return;
	rpc_add_array(out, "runnerStateDirs");
	rpc_put_str(out, d->state_dir);
	rpc_close(out);
}

static void
put_limits(const struct run_options *o, struct rpc_out *out)
{
	const msgpack_object cpus = { .type = MSGPACK_OBJECT_FLOAT64,
		.via = { .f64 = o->cpus } };

	rpc_add_map(out, "limits");
	if (o->memory_bytes != 0)
		rpc_add_u64(out, "memoryBytes", o->memory_bytes);
	if (o->pids != 0)
		rpc_add_u64(out, "pids", o->pids);
	if (o->cpus > 0) {
		rpc_put_key(out, "cpus");
		rpc_put_object(out, &cpus);
	}
	rpc_close(out);
}

static void
put_network(const struct run_options *o, struct rpc_out *out)
{
	if (o->no_network)
		rpc_add_bool(out, "networkEnabled", false);
	if (o->allow.n == 0)
		return;
	rpc_add_array(out, "egressAllowlist");
	for (size_t i = 0; i < o->allow.n; i++)
		rpc_put_str(out, o->allow.items[i]);
	rpc_close(out);
}

static int
put_spec(const struct draft *d, struct rpc_out *out)
{
	const struct run_options *o = d->run->options;
	int r;

	rpc_add_map(out, "spec");
	rpc_add_str(out, "sessionId", d->run->session);
	rpc_add_str(out, "workspaceId", "stockadectl");
	put_mounts(d, out);
	rpc_add_str(out, "guestWorkdir", d->dir);
	rpc_add_text(out, "mode", o->mode);
	if (o->exempt.n > 0) {
		rpc_add_array(out, "nameExemptions");
		for (size_t i = 0; i < o->exempt.n; i++)
			rpc_put_str(out, o->exempt.items[i]);
		rpc_close(out);
	}
	if (o->new_repositories)
		rpc_add_str(out, "newRepositories", "allow");
	/* SPEC Y4: one that is not named could fall to none. */
	rpc_add_str(out, "backend", o->backend == NULL ? "native" : o->backend);
	if (o->backend != NULL && strcmp(o->backend, "none") == 0)
		rpc_add_bool(out, "acceptUnconfined", true);
	/* Root who names himself is refused (SPEC C7), not replaced. */
	if (d->who.known && (d->who.other || d->who.uid == 0))
		rpc_add_str(out, "user", d->who.name);
	rpc_add_text(out, "adapter", o->adapter);
	put_network(o, out);
	put_limits(o, out);
	r = put_env(d, out);
	rpc_add_u64(out, "idleMs", 0);
	rpc_add_u64(out, "goneMs", 0);
	rpc_close(out);
	return r;
}

int
run_spec_put(struct run *run, struct rpc_out *out)
{
	struct draft *d = calloc(1, sizeof(*d));
	int r;

	if (d == NULL) {
		ctl_say("out of memory");
		return CTL_FAILED;
	}
	d->run = run;
	r = check_allow(&run->options->allow);
	if (r == 0)
		r = find_user(d);
	if (r == 0)
		r = find_dir(d);
	if (r == 0)
		r = find_adapter(d);
	if (r == 0)
		r = find_mounts(d);
	if (r == 0) {
		find_tools(d);
		r = put_spec(d, out);
	}
	toolchains_done(&d->tools);
	for (size_t i = 0; i < d->npaths; i++)
		free(d->paths[i]);
	free(d);
	return r;
}
