/*
 * The configuration, stockade.conf(5), as stockade-control reads it at start
 * and at reload (SPEC Z).  The text is the operator's; what clients send at
 * run time never passes through here (Z12).
 *
 * conf_parse() is free of I/O: it gets the text in memory and asks for
 * includes through a callback.  conf_load() is the one that opens files.
 */
#ifndef SUPERVISOR_CONTROL_CONF_H
#define SUPERVISOR_CONTROL_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/hostname.h"
#include "protocol/cause.h"
#include "supervisor/control/backend.h"
#include "supervisor/control/limits.h"
#include "supervisor/control/setting.h"

#define CONF_BYTES_MAX (1u << 20) /* file and includes together */
#define CONF_RULES_MAX 10000u /* sentences and list entries together */
#define CONF_ERRORS_MAX 100u /* more are counted, not kept */

/* Where a sentence stands; shown as the `rule` of a refusal. */
struct conf_origin {
	const char *file; /* owned by the conf */
	unsigned line;
};

struct conf_host {
	char *pattern; /* normalised by common/hostname.h */
	uint16_t port; /* 0: the default ports */
	struct conf_origin origin;
};

struct conf_path {
	char *path; /* absolute, or "~/..." below the run's home */
	struct conf_origin origin;
};

struct conf_name {
	char *name;
	struct conf_origin origin;
};

struct conf_hosts {
	struct conf_host *list;
	size_t n;
};

struct conf_paths {
	struct conf_path *list;
	size_t n;
};

struct conf_names {
	struct conf_name *list;
	size_t n;
};

/* permit private {cidrs} for {hosts} */
struct conf_private {
	struct hostname_cidr *cidrs;
	size_t ncidrs;
	struct conf_hosts hosts; /* their port is 0 */
	struct conf_origin origin;
};

struct conf_privates {
	struct conf_private *list;
	size_t n;
};

enum conf_log_level {
	CONF_LOG_ERR,
	CONF_LOG_WARNING,
	CONF_LOG_NOTICE,
	CONF_LOG_INFO,
	CONF_LOG_DEBUG
};

/*
 * Effective values: what the file does not say is the default, so that every
 * string below is set except run_user.  Read-only once returned.
 */
struct conf {
	bool sandbox_set; /* the file has the sentence (A12) */
	enum setting sandbox;
	enum backend backend_default;
	enum guard_mechanism guard;
	char *run_user; /* NULL: none */
	char *runtime_dir;
	char *state_dir;
	char *socket_path; /* default: control.sock in runtime_dir */
	bool socket_set;
	char *client_group;
	char *admin_group;
	enum conf_log_level log_level;

	struct conf_hosts allow_hosts;
	struct conf_hosts deny_hosts; /* port is always 0 */
	struct conf_names baseline_except; /* entries of lists_allow */
	bool egress_additions;
	struct conf_privates privates;

	struct conf_paths deny_read;
	struct conf_paths deny_write;
	struct conf_paths system_paths;
	struct conf_paths home_mounts;
	struct conf_names deny_names; /* patterns, as they were written */
	bool name_exemptions;
	bool user_namespaces;

	uint64_t limits[LIMIT_ROWS]; /* also LIMIT_NONE, LIMIT_AUTO */
	bool limit_set[LIMIT_ROWS];

	size_t sentences; /* read, for the reload's log line */
	struct conf_names files; /* every file read, the first is main */
};

struct conf_error {
	char *file;
	unsigned line; /* 0: the file as a whole */
	char *text; /* one line, printable, control bytes escaped */
};

/* Zero-initialise; filled by conf_parse() and conf_load(). */
struct conf_errors {
	struct conf_error *list;
	size_t n;
	size_t dropped; /* beyond CONF_ERRORS_MAX */
};

/*
 * Give the text of an include.  name is a single path component, checked.
 * 0 with a malloc'd *ret_text of *ret_len bytes, at most max, which the
 * parser frees; a negative errno is reported at the sentence, with *ret_why
 * (static text, may be left alone) in place of the errno's own text.
 */
typedef int conf_include_fn(void *arg, const char *name, size_t max,
    char **ret_text, size_t *ret_len, const char **ret_why);

/*
 * Parse len bytes of text known as name.  0 with a new *ret_conf, -EINVAL
 * with at least one entry in errors and *ret_conf untouched, or -ENOMEM.
 * include may be NULL: then the sentence is an error.
 */
int conf_parse(const char *name, const char *text, size_t len,
    conf_include_fn *include, void *include_arg, struct conf **ret_conf,
    struct conf_errors *errors);

/*
 * Read name (a single component) in the directory dirfd.  Each file is opened
 * without following a link and must be a regular file that belongs to root
 * and that no one else may write (Z1).  With missing_ok an absent main file
 * means all defaults.  Returns as conf_parse().
 */
int conf_load(int dirfd, const char *name, bool missing_ok,
    struct conf **ret_conf, struct conf_errors *errors);

void conf_free(struct conf *conf);

/* Keep one more error; texts are copied.  0 or -ENOMEM. */
int conf_errors_add(struct conf_errors *errors, const char *file, unsigned line,
    const char *text);
void conf_errors_done(struct conf_errors *errors);

/* "file:line: text" lines, with a last one that counts the dropped. */
void conf_errors_print(const struct conf_errors *errors, FILE *out);

/* The effective configuration; reads back to the same (Z2). */
int conf_print(const struct conf *conf, FILE *out);

/*
 * Z10: names of sentences whose change needs a restart and whose values
 * differ, at most max into names; returns their number.
 */
size_t conf_restart_needed(const struct conf *before, const struct conf *after,
    const char **names, size_t max);

#endif
