/*
 * Which backend a run gets (SPEC B1..B9, B14, A13, A14).  Pure, in
 * stockade-control.  Names come from clients.
 *
 * The rule that keeps it honest: a named backend is given or refused; only an
 * unspecified one steps down, and a step down is always told.
 */
#include "supervisor/control/backend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/size.h"

static const char *const names[BACKENDS] = {
	[BACKEND_NONE] = "none",
	[BACKEND_NATIVE] = "native",
	[BACKEND_MICROVM] = "microvm",
};

static const char *const labels[BACKENDS] = {
	[BACKEND_NONE] = "No isolation",
	[BACKEND_NATIVE] = "Native sandbox",
	[BACKEND_MICROVM] = "Enclosed VM",
};

const char *
backend_name(enum backend backend)
{
	return names[backend];
}

const char *
backend_label(enum backend backend)
{
	return labels[backend];
}

bool
backend_enclosed(enum backend backend)
{
	return backend == BACKEND_MICROVM;
}

int
backend_parse_explicit(const char *name, enum backend *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*ret = (enum backend)i;
		return 0;
	}
	if (strcmp(name, "docker") == 0) {
		*ret = BACKEND_NATIVE;
		return 0;
	}
	return -EINVAL;
}

enum backend
backend_parse_stored(const char *name)
{
	enum backend backend;

	if (name == NULL || backend_parse_explicit(name, &backend) < 0)
		return BACKEND_NONE;
	return backend;
}

static void refuse(struct backend_choice *ret, enum backend_verdict verdict,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

static void
refuse(struct backend_choice *ret, enum backend_verdict verdict,
    const char *format, ...)
{
	va_list ap;

	ret->verdict = verdict;
	ret->backend = BACKEND_NONE;
	va_start(ap, format);
	(void)vsnprintf(ret->message, sizeof(ret->message), format, ap);
	va_end(ap);
}

/* A client's name as it may stand in an error: printable and short. */
static void
printable(const char *name, char *out, size_t size)
{
	size_t i;

	for (i = 0; name[i] != '\0' && i + 1 < size; i++)
		out[i] = name[i] >= 0x20 && name[i] < 0x7f ? name[i] : '?';
	out[i] = '\0';
}

/* Why native cannot start, or NULL if it can. */
static const char *
native_why(const struct backend_ask *ask, char *text, size_t size)
{
	if (ask->setting == SETTING_OFF)
		(void)snprintf(text, size, "the sandbox is off (%s)",
		    setting_source_name(ask->setting_source));
	else if (ask->windows && !ask->terminal)
		(void)snprintf(text, size,
		    "agent runs on Windows always use none");
	else if (!ask->native_available)
		(void)snprintf(text, size, "%s",
		    ask->native_reason != NULL ?
			ask->native_reason :
			"the native sandbox is not available");
	else
		return NULL;
	return text;
}

static void
choose_none(const struct backend_ask *ask, const char *why,
    struct backend_choice *ret)
{
	if (ask->setting == SETTING_REQUIRE) {
		refuse(ret, BACKEND_UNCONFINED,
		    "the setting is require and the run would be unconfined: "
		    "%s",
		    why);
		return;
	}
	/* B14: a network rule that nothing enforces is not accepted */
	if (ask->restricts_network && !ask->accept_unconfined) {
		refuse(ret, BACKEND_UNAVAILABLE,
		    "no egress rule applies to an unconfined run (%s); "
		    "acceptUnconfined: true starts it without",
		    why);
		return;
	}
	ret->verdict = BACKEND_CHOSEN;
	ret->backend = BACKEND_NONE;
	ret->unconfined = true;
	(void)snprintf(ret->why, sizeof(ret->why), "%s", why);
}

static void
choose_native(const struct backend_ask *ask, bool named,
    struct backend_choice *ret)
{
	char text[384];
	const char *why = native_why(ask, text, sizeof(text));

	if (why == NULL) {
		ret->verdict = BACKEND_CHOSEN;
		ret->backend = BACKEND_NATIVE;
	} else if (named) {
		refuse(ret, BACKEND_UNAVAILABLE,
		    "backend native is not available: %s", why);
	} else {
		choose_none(ask, why, ret);
	}
}

static void
choose_microvm(const struct backend_ask *ask, bool named,
    struct backend_choice *ret)
{
	const char *reason = ask->microvm_reason;
	bool usable = ask->microvm_available && ask->setting != SETTING_OFF;

	if (reason == NULL)
		reason = "not available on this host";
	if (ask->setting == SETTING_OFF)
		reason = "the sandbox is off";
	if (named && !ask->terminal) {
		refuse(ret, BACKEND_UNSUPPORTED,
		    "agent runs use native or none; microvm serves terminals");
		return;
	}
	if (ask->terminal && usable) {
		ret->verdict = BACKEND_CHOSEN;
		ret->backend = BACKEND_MICROVM;
		return;
	}
	if (named) {
		refuse(ret, BACKEND_UNAVAILABLE,
		    "backend microvm is not available: %s", reason);
		return;
	}
	if (usable)
		reason = "agent runs use native or none";
	(void)snprintf(ret->log_line, sizeof(ret->log_line),
	    "microvm unavailable (%s): default steps down to native", reason);
	choose_native(ask, false, ret);
}

void
backend_choose(const struct backend_ask *ask, struct backend_choice *ret)
{
	char shown[64];
	enum backend wanted = ask->conf_default;
	bool named = false;

	memset(ret, 0, sizeof(*ret));
	if (ask->explicit_name != NULL) {
		named = true;
		if (backend_parse_explicit(ask->explicit_name, &wanted) < 0) {
			printable(ask->explicit_name, shown, sizeof(shown));
			refuse(ret, BACKEND_BAD_PARAMS,
			    "unknown backend "
			    "\"%s\": use microvm, native or none",
			    shown);
			return;
		}
	} else if (ask->has_stored) {
		named = true;
		wanted = backend_parse_stored(ask->stored_name);
	}
	if (wanted == BACKEND_MICROVM)
		choose_microvm(ask, named, ret);
	else if (wanted == BACKEND_NATIVE)
		choose_native(ask, named, ret);
	else
		choose_none(ask,
		    named ? "backend none was named" :
			    "the default backend is none",
		    ret);
}
