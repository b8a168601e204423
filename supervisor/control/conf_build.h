/*
 * What the grammar calls: one function a sentence, which checks values and
 * adds them to the configuration under construction.  Private to parse.y,
 * conf_build.c and conf.c.
 *
 * Every word and list belongs to the builder and lives until build_done(),
 * so that a grammar action never frees and no error path leaks.
 */
#ifndef SUPERVISOR_CONTROL_CONF_BUILD_H
#define SUPERVISOR_CONTROL_CONF_BUILD_H

#include <stdbool.h>
#include <stddef.h>

#include "supervisor/control/conf.h"
#include "supervisor/control/lex.h"

/* A word or string of the file, copied. */
struct build_word {
	struct build_word *next_in_list;
	struct build_word *next_owned;
	struct conf_origin origin;
	char text[];
};

struct build_list {
	struct build_word *first;
	struct build_word *last;
};

/* Sentences that may stand once. */
enum build_once {
	BUILD_SANDBOX,
	BUILD_BACKEND,
	BUILD_GUARD,
	BUILD_TERMINAL,
	BUILD_RUN_USER,
	BUILD_SOCKET,
	BUILD_CLIENT_GROUP,
	BUILD_ADMIN_GROUP,
	BUILD_STATE_DIR,
	BUILD_RUNTIME_DIR,
	BUILD_LOG,
	BUILD_METRICS,
	BUILD_ADDITIONS,
	BUILD_USER_NAMESPACES,
	BUILD_NAME_EXEMPTIONS,
	BUILD_ONCE_ROWS
};

/* A file being read: the main one, or the include above it. */
struct build_file {
	struct lex lex;
	const char *name; /* owned by the conf */
	char *owned; /* the include's text, freed when it ends */
};

struct build {
	struct conf *conf;
	struct conf_errors *errors;
	struct build_word *words;
	struct conf_origin here; /* where the current token begins */
	struct conf_origin once[BUILD_ONCE_ROWS];
	struct conf_origin limit[LIMIT_ROWS];
	size_t entries; /* of lists, against CONF_RULES_MAX */
	size_t bytes; /* read, against CONF_BYTES_MAX */
	conf_include_fn *include;
	void *include_arg;
	struct build_file files[2];
	unsigned depth; /* files open: 1 or 2 */
	bool line_begun; /* a token of the current line was given */
	bool skipping; /* the rest of the sentence is not looked at */
	bool quiet; /* the bad token was reported by the lexer */
	const struct build_word *pending; /* include after this line */
	const char *later; /* the word of a part that is not built */
	const char *seen; /* text of the current token, for errors */
	bool failed; /* an error was reported, kept or dropped */
	bool no_memory;
	bool too_much; /* a limit was hit: stop */
};

int build_init(struct build *b, const char *name, const char *text, size_t len);
void build_done(struct build *b);

/* The words' owner; NULL sets no_memory. */
struct build_word *build_word(struct build *b, const struct lex_token *token);

/* One error at a place; cleaned and cut. */
void build_error(struct build *b, const struct conf_origin *at,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * Room for one more element; the length doubles at powers of two.  NULL sets
 * no_memory and leaves list as it was.
 */
void *build_grow(struct build *b, void *list, size_t n, size_t element);

/* A copy of a text; NULL sets no_memory. */
char *build_copy(struct build *b, const char *text);

/* False sets no_memory. */
bool build_add_name(struct build *b, struct conf_names *names, const char *text,
    const struct conf_origin *origin);

/* Errors at a word: what is wrong with it, or that it is of a later part. */
void build_bad_value(struct build *b, const struct build_word *word,
    const char *why);
void
build_not_here(struct build *b, const struct conf_origin *at, const char *what);

/* One more entry of a list; beyond CONF_RULES_MAX reading stops. */
bool build_count_entry(struct build *b, const struct conf_origin *at);

/* Ends the file on top; false if it is the main one. */
bool build_pop(struct build *b);

/* The end of a line: done says that it was a whole sentence. */
void build_line(struct build *b, bool done);

/* Sentences.  Places of errors are those of the words. */
void build_include(struct build *b, const struct build_word *name);
void build_sandbox(struct build *b, const struct build_word *value);
void build_backend(struct build *b, const struct build_word *value);
void build_guard(struct build *b, const struct build_word *value);
void build_terminal(struct build *b, const struct build_word *value);
void build_run_user(struct build *b, const struct build_word *value);
void build_group(struct build *b, enum build_once which,
    const struct build_word *value);
void build_dir(struct build *b, enum build_once which,
    const struct build_word *value);
void build_log(struct build *b, const struct build_word *value);
void build_metrics(struct build *b, const struct build_word *value);
void build_switch(struct build *b, enum build_once which,
    const struct build_word *value);
void build_allow(struct build *b, const struct build_list *hosts,
    const struct build_word *port);
void build_deny(struct build *b, const struct build_list *hosts);
void build_except(struct build *b, const struct build_list *hosts);
void build_deny_names(struct build *b, const struct build_list *names);
void build_private(struct build *b, const struct build_list *cidrs,
    const struct build_list *hosts);
enum build_paths {
	BUILD_DENY_READ,
	BUILD_DENY_WRITE,
	BUILD_SYSTEM_PATH,
	BUILD_HOME_MOUNT
};
void build_paths(struct build *b, enum build_paths which,
    const struct build_list *paths);
void build_limit(struct build *b, const struct build_word *name,
    const struct build_word *value);
/* what: the sentence's words, "guard" or "permit name-exemptions" */
void build_later(struct build *b, const char *before);

/* What can only be checked when all is read: contradictions, defaults. */
void build_finish(struct build *b);

/* In parse.y: reads all files.  0, or -ENOMEM. */
int build_parse(struct build *b);

#endif
