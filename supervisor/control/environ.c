/*
 * The environment of a run (SPEC M1..M8, M11, G4).  Pure, in
 * stockade-control.  Names and values come from clients; a value is copied
 * and never looked at, except PATH's, and never shown.
 */
#include "supervisor/control/environ.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/size.h"
#include "supervisor/control/limits.h"
#include "supervisor/control/lists.h"

#define HTTP_PROXY_URL "http://127.0.0.1:3128"
#define SOCKS_PROXY_URL "socks5h://127.0.0.1:1080"
#define NO_PROXY_LIST "localhost,127.0.0.1,::1"
#define PATH_BASE "/usr/local/bin:/usr/bin:/bin"

/* What each group of names may do. */
struct group_rule {
	bool ours; /* not checked, not stripped */
	bool base_only; /* names outside the allow list are left out */
	bool counted; /* against the limits of SPEC AB */
};

static const struct group_rule rule_base = { false, true, false };
static const struct group_rule rule_client = { false, false, true };
static const struct group_rule rule_ours = { true, false, false };

/* Under construction; names of the result are found by a linear scan. */
struct builder {
	const struct environ_input *in;
	struct environ_result env;
	size_t client_names;
	size_t client_bytes;
	char *bad; /* the caller's buffer, or NULL */
};

static bool
name_is_valid(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > ENVIRON_NAME_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '=')
			return false;
	return true;
}

static void
note_bad(const struct builder *b, const char *name)
{
	size_t i;

	if (b->bad == NULL)
		return;
	for (i = 0; i < ENVIRON_NAME_MAX && name[i] != '\0'; i++)
		b->bad[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
	b->bad[i] = '\0';
}

/* Room for one more pointer; arrays grow by doubling at powers of two. */
static int
grow(char ***list, size_t n)
{
	char **bigger;
	size_t room, bytes;

	if (n != 0 && (n & (n - 1)) != 0)
		return 0;
	if (!size_mul(n == 0 ? 1 : n, 2, &room) ||
	    !size_mul(room, sizeof(**list), &bytes))
		return -ENOMEM;
	bigger = realloc(*list, bytes);
	if (bigger == NULL)
		return -ENOMEM;
	*list = bigger;
	return 0;
}

/* Add a name to a list that holds each once. */
static int
add_name(char ***list, size_t *n, const char *name)
{
	char *copy;

	for (size_t i = 0; i < *n; i++)
		if (strcmp((*list)[i], name) == 0)
			return 0;
	if (grow(list, *n) < 0)
		return -ENOMEM;
	copy = strdup(name);
	if (copy == NULL)
		return -ENOMEM;
	(*list)[(*n)++] = copy;
	return 0;
}

static size_t
find_name(const struct environ_result *env, const char *name)
{
	size_t i;

	for (i = 0; i < env->n; i++)
		if (strcmp(env->names[i], name) == 0)
			break;
	return i;
}

static int
set_value(struct builder *b, const char *name, const char *value)
{
	struct environ_result *env = &b->env;
	size_t at = find_name(env, name);
	autofree char *name_copy = NULL;
	autofree char *value_copy = strdup(value);

	if (value_copy == NULL)
		return -ENOMEM;
	if (at < env->n) {
		free(env->values[at]);
		env->values[at] = take_ptr(&value_copy);
		return 0;
	}
	name_copy = strdup(name);
	if (name_copy == NULL || grow(&env->names, env->n) < 0 ||
	    grow(&env->values, env->n) < 0)
		return -ENOMEM;
	env->names[env->n] = take_ptr(&name_copy);
	env->values[env->n] = take_ptr(&value_copy);
	env->n++;
	return 0;
}

static bool
is_stripped(const struct builder *b, const char *name)
{
	return lists_env_stripped(name) ||
	    (b->in->ca_bundle != NULL && lists_env_ca(name));
}

/* One pair of a client, after the form and the amount have been checked. */
static int
count_client(struct builder *b, const struct environ_pair *pair)
{
	size_t name = strlen(pair->name);
	size_t value = strlen(pair->value);

	b->client_names++;
	if (!size_add(b->client_bytes, name, &b->client_bytes) ||
	    !size_add(b->client_bytes, value, &b->client_bytes))
		return -E2BIG;
	if (b->client_names > LIMIT_FIXED_ENV_NAMES ||
	    value > LIMIT_FIXED_ENV_VALUE ||
	    b->client_bytes > LIMIT_FIXED_ENV_TOTAL)
		return -E2BIG;
	return 0;
}

static int
add_pair(struct builder *b, const struct environ_pair *pair,
    const struct group_rule *rule)
{
	int r;

	if (rule->ours)
		return set_value(b, pair->name, pair->value);
	if (!name_is_valid(pair->name))
		return -EINVAL;
	if (rule->counted) {
		r = count_client(b, pair);
		if (r < 0)
			return r;
	}
	if (rule->base_only && !lists_env_base(pair->name))
		return 0;
	if (is_stripped(b, pair->name))
		return rule->counted ?
		    add_name(&b->env.stripped, &b->env.nstripped, pair->name) :
		    0;
	if (rule->counted && lists_env_secret(pair->name)) {
		r = add_name(&b->env.secret, &b->env.nsecret, pair->name);
		if (r < 0)
			return r;
	}
	return set_value(b, pair->name, pair->value);
}

static int
add_set(struct builder *b, const struct environ_set *set,
    const struct group_rule *rule)
{
	for (size_t i = 0; i < set->n; i++) {
		int r = add_pair(b, &set->pairs[i], rule);

		if (r < 0) {
			if (r != -ENOMEM)
				note_bad(b, set->pairs[i].name);
			return r;
		}
	}
	return 0;
}

/* G4, M6.  ssh gets no control master: it would outlive its command. */
static int
set_proxy(struct builder *b)
{
	static const struct environ_pair pairs[] = {
		{ "HTTP_PROXY", HTTP_PROXY_URL },
		{ "HTTPS_PROXY", HTTP_PROXY_URL },
		{ "ALL_PROXY", SOCKS_PROXY_URL },
		{ "NO_PROXY", NO_PROXY_LIST },
		{ "http_proxy", HTTP_PROXY_URL },
		{ "https_proxy", HTTP_PROXY_URL },
		{ "all_proxy", SOCKS_PROXY_URL },
		{ "no_proxy", NO_PROXY_LIST },
		{ "NODE_USE_ENV_PROXY", "1" },
	};
	static const struct environ_set set = { pairs, ARRAY_LEN(pairs) };
	autofree char *ssh = NULL;
	int r;

	r = add_set(b, &set, &rule_ours);
	if (r < 0)
		return r;
	if (asprintf(&ssh,
		"ssh -o ControlMaster=no -o ControlPath=none "
		"-o 'ProxyCommand=%s %%h %%p'",
		b->in->connect_path) < 0) {
		ssh = NULL;
		return -ENOMEM;
	}
	return set_value(b, "GIT_SSH_COMMAND", ssh);
}

/* M11. */
static int
set_ca(struct builder *b)
{
	static const char *const names[] = {
#define ENV_CA(name) name,
#include "supervisor/control/environ.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (set_value(b, names[i], b->in->ca_bundle) < 0)
			return -ENOMEM;
	return 0;
}

/* A "." or ".." component would make the view's answer meaningless. */
static bool
has_dots(const char *dir)
{
	const char *p = dir;
	size_t n;

	while (*p != '\0') {
		n = strcspn(p, "/");
		if ((n == 1 && p[0] == '.') ||
		    (n == 2 && p[0] == '.' && p[1] == '.'))
			return true;
		p += n;
		if (*p == '/')
			p++;
	}
	return false;
}

/* Whether a colon-separated list has the entry. */
static bool
path_has(const char *list, const char *dir)
{
	size_t n = strlen(dir);

	while (*list != '\0') {
		size_t len = strcspn(list, ":");

		if (len == n && strncmp(list, dir, n) == 0)
			return true;
		list += len;
		if (*list == ':')
			list++;
	}
	return false;
}

/* M8: the base, then what the caller's PATH has inside the view. */
static int
filter_path(struct builder *b)
{
	const char *given = environ_get(&b->env, "PATH");
	autofree char *copy = strdup(given != NULL ? given : "");
	autofree char *out = NULL;
	char *rest = copy;
	char *dir;
	size_t size;

	if (copy == NULL ||
	    !size_add(strlen(copy), sizeof(PATH_BASE) + 1, &size))
		return -ENOMEM;
	out = malloc(size);
	if (out == NULL)
		return -ENOMEM;
	memcpy(out, PATH_BASE, sizeof(PATH_BASE));
	while ((dir = strsep(&rest, ":")) != NULL) {
		if (dir[0] != '/' || has_dots(dir) || path_has(out, dir) ||
		    b->in->in_view == NULL ||
		    !b->in->in_view(b->in->in_view_arg, dir))
			continue;
		(void)snprintf(out + strlen(out), size - strlen(out), ":%s",
		    dir);
	}
	return set_value(b, "PATH", out);
}

static int
set_last(struct builder *b)
{
	int r;

	if (set_value(b, "HOME", b->in->home) < 0 ||
	    set_value(b, "TMPDIR", b->in->tmpdir) < 0)
		return -ENOMEM;
	r = add_set(b, &b->in->fixed, &rule_ours);
	if (r < 0)
		return r;
	return b->in->ca_bundle != NULL ? set_ca(b) : 0;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Order by name, so that a plan's digest does not depend on the sender. */
static void
sort_result(struct environ_result *env)
{
	for (size_t i = 1; i < env->n; i++)
		for (size_t j = i;
		     j > 0 && strcmp(env->names[j - 1], env->names[j]) > 0;
		     j--) {
			char *name = env->names[j];
			char *value = env->values[j];

			env->names[j] = env->names[j - 1];
			env->values[j] = env->values[j - 1];
			env->names[j - 1] = name;
			env->values[j - 1] = value;
		}
	if (env->nstripped > 1)
		qsort(env->stripped, env->nstripped, sizeof(char *),
		    compare_names);
	if (env->nsecret > 1)
		qsort(env->secret, env->nsecret, sizeof(char *), compare_names);
}

static int
build(struct builder *b)
{
	const struct environ_input *in = b->in;
	const struct {
		const struct environ_set *set;
		const struct group_rule *rule;
	} groups[] = {
		/* the order of M5 */
		{ &in->base, &rule_base },
		{ &in->pass_env, &rule_client },
		{ &in->spec_env, &rule_client },
		{ &in->exec_env, &rule_client },
		{ &in->broker, &rule_ours },
	};
	int r;

	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		r = add_set(b, groups[i].set, groups[i].rule);
		if (r < 0)
			return r;
	}
	if (in->native) {
		r = filter_path(b);
		if (r < 0)
			return r;
	}
	if (in->proxy) {
		r = set_proxy(b);
		if (r < 0)
			return r;
	}
	return set_last(b);
}

int
environ_make(const struct environ_input *in, struct environ_result *ret,
    char *ret_bad)
{
	struct builder b = { .in = in, .bad = ret_bad };
	int r;

	memset(ret, 0, sizeof(*ret));
	if (ret_bad != NULL)
		ret_bad[0] = '\0';
	if (in->home == NULL || in->home[0] != '/' || in->tmpdir == NULL ||
	    (in->proxy && in->connect_path == NULL))
		return -EINVAL;
	r = build(&b);
	if (r < 0) {
		environ_done(&b.env);
		return r;
	}
	sort_result(&b.env);
	*ret = b.env;
	return 0;
}

static void
free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void
environ_done(struct environ_result *env)
{
	/* values may be secrets: they are wiped, names are not */
	for (size_t i = 0; i < env->n; i++)
		explicit_bzero(env->values[i], strlen(env->values[i]));
	free_list(env->names, env->n);
	free_list(env->values, env->n);
	free_list(env->stripped, env->nstripped);
	free_list(env->secret, env->nsecret);
	memset(env, 0, sizeof(*env));
}

const char *
environ_get(const struct environ_result *env, const char *name)
{
	size_t at = find_name(env, name);

	return at < env->n ? env->values[at] : NULL;
}
