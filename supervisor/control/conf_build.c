/*
 * Sentences of the configuration: values checked and stored.  Runs in
 * stockade-control.  A value that is not understood is an error with its
 * place; nothing is guessed and nothing is left out in silence.
 */
#include "supervisor/control/conf_build.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "common/cleanup.h"
#include "common/size.h"
#include "supervisor/control/conf_value.h"

#define ERROR_TEXT_MAX 512
#define SHOWN_MAX 128 /* bytes of a value inside an error */
#define INCLUDES_MAX 64

static const char *const once_names[BUILD_ONCE_ROWS] = {
	[BUILD_SANDBOX] = "sandbox",
	[BUILD_BACKEND] = "backend default",
	[BUILD_GUARD] = "guard",
	[BUILD_TERMINAL] = "terminal default",
	[BUILD_RUN_USER] = "run-user",
	[BUILD_SOCKET] = "socket",
	[BUILD_CLIENT_GROUP] = "client-group",
	[BUILD_ADMIN_GROUP] = "admin-group",
	[BUILD_STATE_DIR] = "state-dir",
	[BUILD_RUNTIME_DIR] = "runtime-dir",
	[BUILD_LOG] = "log level",
	[BUILD_METRICS] = "metrics",
	[BUILD_ADDITIONS] = "egress additions",
	[BUILD_USER_NAMESPACES] = "permit user-namespaces",
	[BUILD_NAME_EXEMPTIONS] = "permit name-exemptions",
};

/* --- memory ----------------------------------------------------------- */

/* Room for one more element; the length doubles at powers of two. */
void *
build_grow(struct build *b, void *list, size_t n, size_t element)
{
	size_t room, bytes;
	void *bigger;

	if (n != 0 && (n & (n - 1)) != 0)
		return list;
	if (!size_mul(n == 0 ? 1 : n, 2, &room) ||
	    !size_mul(room, element, &bytes)) {
		b->no_memory = true;
		return NULL;
	}
	bigger = realloc(list, bytes);
	if (bigger == NULL)
		b->no_memory = true;
	return bigger;
}

char *
build_copy(struct build *b, const char *text)
{
	char *copy = strdup(text);

	if (copy == NULL)
		b->no_memory = true;
	return copy;
}

/* Replace an owned string. */
static void
set_string(struct build *b, char **field, const char *text)
{
	char *copy = build_copy(b, text);

	if (copy == NULL)
		return;
	free(*field);
	*field = copy;
}

struct build_word *
build_word(struct build *b, const struct lex_token *token)
{
	struct build_word *word = malloc(sizeof(*word) + token->len + 1);

	if (word == NULL) {
		b->no_memory = true;
		return NULL;
	}
	word->next_in_list = NULL;
	word->next_owned = b->words;
	word->origin = b->here;
	(void)lex_copy(token, word->text, token->len + 1);
	b->words = word;
	return word;
}

bool
build_add_name(struct build *b, struct conf_names *names, const char *text,
    const struct conf_origin *origin)
{
	void *list = build_grow(b, names->list, names->n, sizeof(*names->list));
	char *copy;

	if (list == NULL)
		return false;
	names->list = list;
	copy = build_copy(b, text);
	if (copy == NULL)
		return false;
	names->list[names->n].name = copy;
	names->list[names->n].origin = *origin;
	names->n++;
	return true;
}

/* --- errors ----------------------------------------------------------- */

/* Control bytes as \xNN, cut at size. */
static void
clean(const char *in, char *out, size_t size)
{
	size_t n = 0;

	for (; *in != '\0' && n + 5 < size; in++) {
		unsigned char c = (unsigned char)*in;

		if (c < ' ' || c == 0x7f)
			n += (size_t)snprintf(out + n, size - n, "\\x%02x", c);
		else
			out[n++] = *in;
	}
	out[n] = '\0';
}

void
build_error(struct build *b, const struct conf_origin *at, const char *format,
    ...)
{
	char text[ERROR_TEXT_MAX], shown[ERROR_TEXT_MAX];
	va_list ap;

	b->failed = true;
	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	clean(text, shown, sizeof(shown));
	if (conf_errors_add(b->errors, at->file, at->line, shown) < 0)
		b->no_memory = true;
}

/* A value as it may stand in an error: long ones are cut. */
static const char *
shown(const struct build_word *word, char buf[SHOWN_MAX + 4])
{
	(void)snprintf(buf, SHOWN_MAX + 4, "%.*s%s", SHOWN_MAX, word->text,
	    strlen(word->text) > SHOWN_MAX ? "..." : "");
	return buf;
}

void
build_bad_value(struct build *b, const struct build_word *word, const char *why)
{
	char buf[SHOWN_MAX + 4];

	build_error(b, &word->origin, "\"%s\": %s", shown(word, buf), why);
}

void
build_not_here(struct build *b, const struct conf_origin *at, const char *what)
{
	build_error(b, at, "not in this version: %s", what);
}

/* Whether this is the first such sentence; a repeat is an error. */
static bool
first_time(struct build *b, enum build_once which,
    const struct build_word *word)
{
	struct conf_origin *seen = &b->once[which];

	if (seen->file == NULL) {
		*seen = word->origin;
		return true;
	}
	build_error(b, &word->origin, "\"%s\" stands already in %s:%u",
	    once_names[which], seen->file, seen->line);
	return false;
}

/* One more entry of a list; beyond the limit reading stops. */
bool
build_count_entry(struct build *b, const struct conf_origin *at)
{
	if (b->too_much)
		return false;
	if (++b->entries <= CONF_RULES_MAX)
		return true;
	build_error(b, at, "more than %u rules", CONF_RULES_MAX);
	b->too_much = true;
	return false;
}

/* --- files ------------------------------------------------------------ */

static const char *
add_file(struct build *b, const char *name, const struct conf_origin *at)
{
	struct conf_names *files = &b->conf->files;

	if (!build_add_name(b, files, name, at))
		return NULL;
	return files->list[files->n - 1].name;
}

static bool
set_defaults(struct build *b)
{
	struct conf *conf = b->conf;

	conf->sandbox = SETTING_ON;
	conf->backend_default = BACKEND_NATIVE;
	conf->log_level = CONF_LOG_INFO;
	conf->egress_additions = true;
	conf->name_exemptions = true;
	set_string(b, &conf->runtime_dir, "/run/stockade");
	set_string(b, &conf->state_dir, "/var/lib/stockade");
	set_string(b, &conf->client_group, "stockade");
	set_string(b, &conf->admin_group, "stockade-admin");
	for (int i = 0; i < LIMIT_ROWS; i++)
		conf->limits[i] = limit_table[i].def;
	return !b->no_memory;
}

int
build_init(struct build *b, const char *name, const char *text, size_t len)
{
	struct conf_origin nowhere = { NULL, 0 };
	struct conf_origin whole;

	b->conf = calloc(1, sizeof(*b->conf));
	if (b->conf == NULL || !set_defaults(b))
		return -ENOMEM;
	b->files[0].name = add_file(b, name, &nowhere);
	if (b->files[0].name == NULL)
		return -ENOMEM;
	b->here.file = b->files[0].name;
	b->here.line = 1;
	b->depth = 1;
	b->bytes = len;
	if (len > CONF_BYTES_MAX) {
		whole = (struct conf_origin){ b->files[0].name, 0 };
		build_error(b, &whole, "more than %u bytes", CONF_BYTES_MAX);
		return -EINVAL;
	}
	lex_init(&b->files[0].lex, text, len);
	return 0;
}

void
build_done(struct build *b)
{
	while (b->words != NULL) {
		struct build_word *next = b->words->next_owned;

		free(b->words);
		b->words = next;
	}
	free(b->files[1].owned);
	b->files[1].owned = NULL;
}

bool
build_pop(struct build *b)
{
	if (b->depth <= 1)
		return false;
	b->depth--;
	free(b->files[b->depth].owned);
	memset(&b->files[b->depth], 0, sizeof(b->files[b->depth]));
	return true;
}

static bool
include_allowed(struct build *b, const struct build_word *name)
{
	const struct conf_names *files = &b->conf->files;

	if (b->depth > 1) {
		build_error(b, &name->origin,
		    "an included file cannot include another");
		return false;
	}
	if (!value_component_ok(name->text)) {
		build_bad_value(b, name,
		    "an include is a file name in the "
		    "configuration's directory, without a slash");
		return false;
	}
	for (size_t i = 0; i < files->n; i++)
		if (strcmp(files->list[i].name, name->text) == 0) {
			build_bad_value(b, name, "the file is read already");
			return false;
		}
	if (b->include == NULL || files->n > INCLUDES_MAX) {
		build_bad_value(b, name,
		    b->include == NULL ? "includes are not possible here" :
					 "too many includes");
		return false;
	}
	return true;
}

static void
open_include(struct build *b, const struct build_word *name)
{
	size_t room = CONF_BYTES_MAX - b->bytes;
	struct build_file *file = &b->files[1];
	const char *why = NULL;
	const char *known;
	char *text = NULL;
	size_t len = 0;
	int r;

	if (!include_allowed(b, name))
		return;
	r = b->include(b->include_arg, name->text, room, &text, &len, &why);
	if (r < 0) {
		build_bad_value(b, name, why != NULL ? why : strerror(-r));
		return;
	}
	known = add_file(b, name->text, &name->origin);
	if (known == NULL || len > room) {
		free(text);
		return;
	}
	b->bytes += len;
	file->owned = text;
	file->name = known;
	lex_init(&file->lex, text, len);
	b->depth = 2;
}

void
build_line(struct build *b, bool done)
{
	const struct build_word *name = b->pending;

	b->pending = NULL;
	if (!done)
		return;
	b->conf->sentences++;
	if (name != NULL)
		open_include(b, name);
}

void
build_include(struct build *b, const struct build_word *name)
{
	b->pending = name;
}

/* --- single values ---------------------------------------------------- */

void
build_sandbox(struct build *b, const struct build_word *value)
{
	if (!first_time(b, BUILD_SANDBOX, value))
		return;
	if (setting_parse(value->text, &b->conf->sandbox) < 0)
		build_bad_value(b, value,
		    "configuration: the sandbox setting must "
		    "be on, off or require");
	b->conf->sandbox_set = true;
}

void
build_backend(struct build *b, const struct build_word *value)
{
	char buf[SHOWN_MAX + 4];

	if (!first_time(b, BUILD_BACKEND, value))
		return;
	if (backend_parse_explicit(value->text, &b->conf->backend_default) < 0)
		build_error(b, &value->origin,
		    "unknown backend \"%s\": use "
		    "microvm, native or none",
		    shown(value, buf));
}

void
build_guard(struct build *b, const struct build_word *value)
{
	static const char *const choices[] = {
		[GUARD_AUTO] = "auto",
		[GUARD_BROKER] = "broker",
		[GUARD_BPF_LSM] = "bpf-lsm",
	};

	if (!first_time(b, BUILD_GUARD, value))
		return;
	for (size_t i = 0; i < ARRAY_LEN(choices); i++)
		if (strcmp(value->text, choices[i]) == 0) {
			b->conf->guard = (enum guard_mechanism)i;
			return;
		}
	build_bad_value(b, value, "use auto, broker or bpf-lsm");
}

void
build_terminal(struct build *b, const struct build_word *value)
{
	enum backend backend;

	if (!first_time(b, BUILD_TERMINAL, value))
		return;
	if (backend_parse_explicit(value->text, &backend) < 0)
		build_bad_value(b, value, "use none, native or microvm");
	else if (backend != BACKEND_NONE)
		build_not_here(b, &value->origin,
		    "a terminal default other than none");
}

void
build_run_user(struct build *b, const struct build_word *value)
{
	if (!first_time(b, BUILD_RUN_USER, value))
		return;
	if (!value_account_ok(value->text))
		build_bad_value(b, value, "not a user name");
	else if (strcmp(value->text, "root") == 0)
		build_bad_value(b, value,
		    "a run needs a user that is not root");
	else
		set_string(b, &b->conf->run_user, value->text);
}

void
build_group(struct build *b, enum build_once which,
    const struct build_word *value)
{
	if (!first_time(b, which, value))
		return;
	if (!value_account_ok(value->text))
		build_bad_value(b, value, "not a group name");
	else
		set_string(b,
		    which == BUILD_CLIENT_GROUP ? &b->conf->client_group :
						  &b->conf->admin_group,
		    value->text);
}

void
build_dir(struct build *b, enum build_once which,
    const struct build_word *value)
{
	const char *why = value_path_why(value->text, false);
	struct conf *conf = b->conf;

	if (!first_time(b, which, value))
		return;
	if (why == NULL && strcmp(value->text, "/") == 0)
		why = "the root directory cannot be used";
	if (why == NULL && which == BUILD_SOCKET &&
	    strlen(value->text) >=
		sizeof(((struct sockaddr_un *)NULL)->sun_path))
		why = "a socket's path has at most 107 bytes";
	if (why != NULL) {
		build_bad_value(b, value, why);
		return;
	}
	if (which == BUILD_SOCKET)
		conf->socket_set = true;
	set_string(b,
	    which == BUILD_SOCKET        ? &conf->socket_path :
		which == BUILD_STATE_DIR ? &conf->state_dir :
					   &conf->runtime_dir,
	    value->text);
}

void
build_log(struct build *b, const struct build_word *value)
{
	static const char *const levels[] = {
		[CONF_LOG_ERR] = "err",
		[CONF_LOG_WARNING] = "warning",
		[CONF_LOG_NOTICE] = "notice",
		[CONF_LOG_INFO] = "info",
		[CONF_LOG_DEBUG] = "debug",
	};

	if (!first_time(b, BUILD_LOG, value))
		return;
	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (strcmp(levels[i], value->text) == 0) {
			b->conf->log_level = (enum conf_log_level)i;
			return;
		}
	build_bad_value(b, value, "use err, warning, notice, info or debug");
}

void
build_metrics(struct build *b, const struct build_word *value)
{
	bool on;

	if (!first_time(b, BUILD_METRICS, value))
		return;
	if (value_switch(value->text, &on) < 0)
		build_bad_value(b, value, "use on or off");
	else if (on)
		build_not_here(b, &value->origin, "metrics on");
}

void
build_switch(struct build *b, enum build_once which,
    const struct build_word *value)
{
	bool *field = which == BUILD_ADDITIONS ? &b->conf->egress_additions :
	    which == BUILD_NAME_EXEMPTIONS     ? &b->conf->name_exemptions :
						 &b->conf->user_namespaces;

	if (!first_time(b, which, value))
		return;
	if (value_switch(value->text, field) < 0)
		build_bad_value(b, value, "use on or off");
}

void
build_limit(struct build *b, const struct build_word *name,
    const struct build_word *value)
{
	char low[LIMIT_TEXT], high[LIMIT_TEXT], buf[SHOWN_MAX + 4];
	bool later;
	int id = limit_find(name->text, &later);
	int r;

	if (id < 0) {
		if (later)
			build_error(b, &name->origin,
			    "not in this version: limit %s", name->text);
		else
			build_bad_value(b, name, "no limit has this name");
		return;
	}
	if (b->conf->limit_set[id]) {
		build_error(b, &name->origin,
		    "\"limit %s\" stands already in %s:%u", name->text,
		    b->limit[id].file, b->limit[id].line);
		return;
	}
	b->conf->limit_set[id] = true;
	b->limit[id] = name->origin;
	r = limit_parse((enum limit_id)id, value->text, &b->conf->limits[id]);
	if (r == -ERANGE) {
		limit_format_unit(limit_table[id].unit, limit_table[id].min,
		    low);
		limit_format_unit(limit_table[id].unit, limit_table[id].max,
		    high);
		build_error(b, &value->origin, "\"%s\": limit %s is %s to %s",
		    shown(value, buf), name->text, low, high);
	} else if (r < 0) {
		build_bad_value(b, value, limit_value_form((enum limit_id)id));
	}
}

void
build_later(struct build *b, const char *before)
{
	build_error(b, &b->here, "not in this version: %s%s", before, b->later);
}
