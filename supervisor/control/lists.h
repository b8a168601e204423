/*
 * The fixed lists of SPEC App.1, App.2, App.6, App.8 and App.9 as tables.
 * Rows are in hosts.def, deny_paths.def, environ.def and binaries.def.
 * Data and look-ups only, no I/O.
 */
#ifndef SUPERVISOR_CONTROL_LISTS_H
#define SUPERVISOR_CONTROL_LISTS_H

#include <stdbool.h>
#include <stddef.h>

/* Ports that an entry opens (G18). */
#define LISTS_WEB 1u /* 80 and 443 */
#define LISTS_SSH 2u /* 22 */

enum lists_group {
	LISTS_LLM,
	LISTS_GIT,
	LISTS_REGISTRY,
	LISTS_CATALOGUE,
	LISTS_GITHUB,
	LISTS_GROUPS
};

/*
 * One allowed pattern, normalised as common/hostname.h does.  An exact entry
 * decides the ports of its name even if a wildcard covers it as well:
 * ssh.github.com has port 22 only.
 */
struct lists_host {
	const char *pattern;
	enum lists_group group;
	unsigned ports; /* LISTS_WEB | LISTS_SSH */
};

extern const struct lists_host lists_allow[]; /* App.1, each once */
extern const size_t lists_allow_rows;
extern const char *const lists_deny[]; /* App.2, subdomains too */
extern const size_t lists_deny_rows;
extern const char *const lists_known_off[]; /* App.1, last paragraph */
extern const size_t lists_known_off_rows;

/* "llm", "git", "registry", "catalogue", "github" */
const char *lists_group_name(enum lists_group group);

/* The App.2 entry that covers a normalised host or pattern, or NULL. */
const char *lists_deny_find(const char *host);
bool lists_allow_has(const char *pattern);

/* What a path entry of App.6 is; a spec's own entries may be either. */
enum lists_kind {
	LISTS_ANY, /* file or directory */
	LISTS_FILE,
	LISTS_DIR
};

struct lists_path {
	const char *path; /* relative, no leading or trailing slash */
	enum lists_kind kind;
};

extern const struct lists_path lists_read_home[]; /* below the home */
extern const size_t lists_read_home_rows;
extern const struct lists_path lists_write_home[]; /* below the home */
extern const size_t lists_write_home_rows;
extern const struct lists_path lists_write_root[]; /* at any depth */
extern const size_t lists_write_root_rows;
extern const struct lists_path lists_write_git[]; /* in a git directory */
extern const size_t lists_write_git_rows;
/*
 * Configuration and hook files below the home that stay write-denied in the
 * state directory of the run's adapter (I9, Y18).
 */
extern const struct lists_path lists_state_config[];
extern const size_t lists_state_config_rows;

/* App.9: names ("mkfs.*" is a pattern) and the directories to look in. */
extern const char *const lists_exec_deny[];
extern const size_t lists_exec_deny_rows;
extern const char *const lists_exec_dirs[];
extern const size_t lists_exec_dirs_rows;
/* Whether a file name is exec-denied. */
bool lists_exec_denied(const char *name);

/* App.8, for one variable name.  Letter case is ignored, except in base. */
bool lists_env_base(const char *name); /* on the allow list */
bool lists_env_stripped(const char *name); /* always removed */
bool lists_env_secret(const char *name); /* only when named */
bool lists_env_ca(const char *name); /* the five names of M11 */

#endif
