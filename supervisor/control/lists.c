/*
 * The fixed lists of SPEC App.1, App.2, App.6, App.8 and App.9.  Runs in
 * stockade-control.  The tables are ours; what is looked up in them comes
 * from clients.
 */
#include "supervisor/control/lists.h"

#include <string.h>

#include "common/hostname.h"
#include "common/size.h"

const struct lists_host lists_allow[] = {
#define HOST_ALLOW(pattern, group, ports) { pattern, LISTS_##group, ports },
#include "supervisor/control/hosts.def"
};
const size_t lists_allow_rows = ARRAY_LEN(lists_allow);

const char *const lists_deny[] = {
#define HOST_DENY(pattern) pattern,
#include "supervisor/control/hosts.def"
};
const size_t lists_deny_rows = ARRAY_LEN(lists_deny);

const char *const lists_known_off[] = {
#define HOST_OFF(pattern) pattern,
#include "supervisor/control/hosts.def"
};
const size_t lists_known_off_rows = ARRAY_LEN(lists_known_off);

const struct lists_path lists_read_home[] = {
#define DENY_READ_HOME(path, kind) { path, LISTS_##kind },
#include "supervisor/control/deny_paths.def"
};
const size_t lists_read_home_rows = ARRAY_LEN(lists_read_home);

const struct lists_path lists_write_home[] = {
#define DENY_WRITE_HOME(path, kind) { path, LISTS_##kind },
#include "supervisor/control/deny_paths.def"
};
const size_t lists_write_home_rows = ARRAY_LEN(lists_write_home);

const struct lists_path lists_write_root[] = {
#define DENY_WRITE_ROOT(path, kind) { path, LISTS_##kind },
#include "supervisor/control/deny_paths.def"
};
const size_t lists_write_root_rows = ARRAY_LEN(lists_write_root);

const struct lists_path lists_write_git[] = {
#define DENY_WRITE_GIT(path, kind) { path, LISTS_##kind },
#include "supervisor/control/deny_paths.def"
};
const size_t lists_write_git_rows = ARRAY_LEN(lists_write_git);

const struct lists_path lists_state_config[] = {
#define DENY_STATE_CONFIG(path, kind) { path, LISTS_##kind },
#include "supervisor/control/deny_paths.def"
};
const size_t lists_state_config_rows = ARRAY_LEN(lists_state_config);

const char *const lists_exec_deny[] = {
#define EXEC_DENY(name) name,
#include "supervisor/control/binaries.def"
};
const size_t lists_exec_deny_rows = ARRAY_LEN(lists_exec_deny);

const char *const lists_exec_dirs[] = {
#define EXEC_DIR(path) path,
#include "supervisor/control/binaries.def"
};
const size_t lists_exec_dirs_rows = ARRAY_LEN(lists_exec_dirs);

static const char *const env_base[] = {
#define ENV_BASE(pattern) pattern,
#include "supervisor/control/environ.def"
};

static const char *const env_strip[] = {
#define ENV_STRIP(pattern) pattern,
#include "supervisor/control/environ.def"
};

static const char *const env_secret[] = {
#define ENV_SECRET(pattern) pattern,
#include "supervisor/control/environ.def"
};

static const char *const env_ca[] = {
#define ENV_CA(name) name,
#include "supervisor/control/environ.def"
};

static const char *const group_names[LISTS_GROUPS] = {
	[LISTS_LLM] = "llm",
	[LISTS_GIT] = "git",
	[LISTS_REGISTRY] = "registry",
	[LISTS_CATALOGUE] = "catalogue",
	[LISTS_GITHUB] = "github",
};

const char *
lists_group_name(enum lists_group group)
{
	return group_names[group];
}

const char *
lists_deny_find(const char *host)
{
	for (size_t i = 0; i < ARRAY_LEN(lists_deny); i++)
		if (hostname_deny_match(lists_deny[i], host))
			return lists_deny[i];
	return NULL;
}

bool
lists_allow_has(const char *pattern)
{
	for (size_t i = 0; i < ARRAY_LEN(lists_allow); i++)
		if (strcmp(lists_allow[i].pattern, pattern) == 0)
			return true;
	return false;
}

/* ASCII only: a locale must not decide what is stripped. */
static char
upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/*
 * '*' is any text.  The position after the last star is retried one further
 * each time, so the time is at most the product of both lengths.
 */
static bool
text_match(const char *pattern, const char *text, bool fold)
{
	const char *star = NULL;
	const char *retry = NULL;

	while (*text != '\0') {
		if (*pattern == '*') {
			star = ++pattern;
			retry = text;
		} else if (*pattern == *text ||
		    (fold && upper(*pattern) == upper(*text))) {
			pattern++;
			text++;
		} else if (star != NULL) {
			pattern = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

static bool
any_match(const char *const *patterns, size_t n, const char *text, bool fold)
{
	for (size_t i = 0; i < n; i++)
		if (text_match(patterns[i], text, fold))
			return true;
	return false;
}

bool
lists_exec_denied(const char *name)
{
	return any_match(lists_exec_deny, ARRAY_LEN(lists_exec_deny), name,
	    false);
}

bool
lists_env_base(const char *name)
{
	return any_match(env_base, ARRAY_LEN(env_base), name, false);
}

bool
lists_env_stripped(const char *name)
{
	return any_match(env_strip, ARRAY_LEN(env_strip), name, true);
}

bool
lists_env_secret(const char *name)
{
	return any_match(env_secret, ARRAY_LEN(env_secret), name, true);
}

bool
lists_env_ca(const char *name)
{
	return any_match(env_ca, ARRAY_LEN(env_ca), name, true);
}
