/*
 * What the probe says (SPEC A2..A11, A17..A19).  Pure, in stockade-control.
 * The rows come from launcherd, the tool's presence from the look at the
 * host; nothing here can turn a false into a true.
 */
#include "supervisor/control/probe_result.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/size.h"

#define NATIVE_NOTE_LINUX \
	"bubblewrap \xe2\x80\x94 namespace isolation, no kernel boundary"
#define NATIVE_NOTE_MACOS \
	"sandbox-exec (Seatbelt) \xe2\x80\x94 namespace isolation, " \
	"no kernel boundary"
#define NATIVE_NOTE_OTHER "The native sandbox is not offered on this platform"
#define NONE_NOTE "No isolation: agents run on the host"
#define UNWRAPPED_END \
	"; runs are bounded by a cleaned environment, command policy and " \
	"guardrails only"
#define NAME_RULES_END \
	"; file-name rules cannot be enforced here, runs that need them are " \
	"refused"

enum platform {
	PLATFORM_LINUX,
	PLATFORM_MACOS,
	PLATFORM_WINDOWS,
	PLATFORM_OTHER
};

static const char *const mechanism_names[PROBE_MECHANISMS] = {
	[PROBE_BUBBLEWRAP] = "bubblewrap",
	[PROBE_NAMESPACES] = "namespaces",
	[PROBE_CGROUP] = "cgroup",
	[PROBE_LANDLOCK] = "landlock",
	[PROBE_SECCOMP] = "seccomp",
	[PROBE_GUARD_CREATE] = "guard.create",
	[PROBE_GUARD_READ] = "guard.read",
	[PROBE_GUARD_CONNECT] = "guard.connect",
	[PROBE_EGRESS_REFUSE] = "egress.refuse",
	[PROBE_EGRESS_TRANSPARENT] = "egress.transparent",
	[PROBE_USERNS] = "userns.refused",
	[PROBE_PROCSYS] = "procsys.readonly",
};

/* A17: without any one of these the native backend is not offered. */
static const enum probe_row required[] = {
	PROBE_BUBBLEWRAP,
	PROBE_NAMESPACES,
	PROBE_CGROUP,
	PROBE_LANDLOCK,
	PROBE_SECCOMP,
	PROBE_EGRESS_REFUSE,
	PROBE_USERNS,
	PROBE_PROCSYS,
};

const char *
probe_mechanism_name(enum probe_row mechanism)
{
	if ((unsigned)mechanism >= PROBE_MECHANISMS)
		return NULL;
	return mechanism_names[mechanism];
}

int
probe_mechanism_find(const char *name)
{
	for (int i = 0; i < PROBE_MECHANISMS; i++)
		if (strcmp(mechanism_names[i], name) == 0)
			return i;
	return -1;
}

bool
probe_release_is_wsl(const char *release)
{
	return strcasestr(release, "microsoft") != NULL ||
	    strcasestr(release, "wsl") != NULL;
}

static enum platform
platform_of(const char *system)
{
	if (system == NULL)
		return PLATFORM_OTHER;
	if (strcmp(system, "Linux") == 0)
		return PLATFORM_LINUX;
	if (strcmp(system, "Darwin") == 0)
		return PLATFORM_MACOS;
	if (strncasecmp(system, "Windows", 7) == 0)
		return PLATFORM_WINDOWS;
	return PLATFORM_OTHER;
}

static void set_text(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void
set_text(char *out, size_t size, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(out, size, format, ap);
	va_end(ap);
}

/* Every mechanism has a row; one that was not executed is false (A9). */
static void
fill_mechanisms(const struct probe_input *in, struct probe_report *ret)
{
	bool seen[PROBE_MECHANISMS] = { false };

	for (int i = 0; i < PROBE_MECHANISMS; i++) {
		ret->mechanisms[i].name = mechanism_names[i];
		set_text(ret->mechanisms[i].detail, PROBE_TEXT, "not executed");
	}
	for (size_t i = 0; i < in->nrows; i++) {
		const struct probe_row_in *row = &in->rows[i];
		struct probe_mechanism *out;

		if ((unsigned)row->mechanism >= PROBE_MECHANISMS)
			continue;
		out = &ret->mechanisms[row->mechanism];
		/* a row given twice holds only if both say so */
		out->available =
		    row->available && (!seen[row->mechanism] || out->available);
		seen[row->mechanism] = true;
		set_text(out->detail, PROBE_TEXT, "%s",
		    row->detail != NULL ? row->detail : "");
	}
}

/* The missing packages joined by blanks; false if none is missing. */
static bool
missing_tools(const struct probe_input *in, char *out, size_t size)
{
	size_t used = 0;
	bool any = false;

	out[0] = '\0';
	for (size_t i = 0; i < in->ntools; i++) {
		int n;

		if (in->tools[i].found)
			continue;
		n = snprintf(out + used, size - used, "%s%s", any ? " " : "",
		    in->tools[i].package);
		any = true;
		if (n < 0 || (size_t)n >= size - used)
			break;
		used += (size_t)n;
	}
	return any;
}

static const struct probe_mechanism *
first_false(const struct probe_report *report)
{
	for (size_t i = 0; i < ARRAY_LEN(required); i++)
		if (!report->mechanisms[required[i]].available)
			return &report->mechanisms[required[i]];
	return NULL;
}

static void
native_linux(const struct probe_input *in, struct probe_report *report)
{
	struct probe_result *r = &report->results[BACKEND_NATIVE];
	char packages[PROBE_TEXT / 4];
	const struct probe_mechanism *row;

	if (missing_tools(in, packages, sizeof(packages))) {
		r->requires_install = true;
		set_text(r->install_hint, PROBE_TEXT,
		    "Missing: %s. Install: sudo apt-get install %s", packages,
		    packages);
		set_text(r->note, PROBE_TEXT, "Missing: %s", packages);
		return;
	}
	row = first_false(report);
	if (row != NULL) {
		set_text(r->note, PROBE_TEXT, "%s is not available here%s%s",
		    row->name, row->detail[0] != '\0' ? ": " : "", row->detail);
		return;
	}
	set_text(r->note, PROBE_TEXT, "%s", NATIVE_NOTE_LINUX);
	r->available = true;
	r->dispatchable = report->mechanisms[PROBE_GUARD_CREATE].available;
}

static void
native_result(const struct probe_input *in, enum platform platform,
    struct probe_report *report)
{
	struct probe_result *r = &report->results[BACKEND_NATIVE];

	if (platform == PLATFORM_WINDOWS || platform == PLATFORM_OTHER) {
		set_text(r->note, PROBE_TEXT, "%s", NATIVE_NOTE_OTHER);
	} else if (in->error != NULL) {
		set_text(r->note, PROBE_TEXT, "Probe failed: %s", in->error);
	} else if (platform == PLATFORM_MACOS) {
		set_text(r->note, PROBE_TEXT, "%s", NATIVE_NOTE_MACOS);
		r->available = true;
		r->dispatchable =
		    report->mechanisms[PROBE_GUARD_CREATE].available;
	} else {
		native_linux(in, report);
	}
}

/* A10, A11, A18. */
static void
start_line(const struct probe_input *in, struct probe_report *report)
{
	const struct probe_result *r = &report->results[BACKEND_NATIVE];

	report->line_warning = true;
	if (in->setting == SETTING_OFF) {
		set_text(report->line, sizeof(report->line),
		    "agent sandbox DISABLED by --sandbox off%s", UNWRAPPED_END);
	} else if (!r->available) {
		set_text(report->line, sizeof(report->line),
		    "no OS-native agent sandbox on this host: %s%s",
		    r->install_hint[0] != '\0' ? r->install_hint : r->note,
		    UNWRAPPED_END);
	} else {
		report->line_warning = !r->dispatchable;
		set_text(report->line, sizeof(report->line),
		    "agent sandbox ON: %s%s", r->note,
		    r->dispatchable ? "" : NAME_RULES_END);
	}
}

void
probe_report_make(const struct probe_input *in, struct probe_report *ret)
{
	enum platform platform = platform_of(in->system);

	memset(ret, 0, sizeof(*ret));
	ret->wsl = platform == PLATFORM_LINUX && in->release != NULL &&
	    probe_release_is_wsl(in->release);
	ret->windows = platform == PLATFORM_WINDOWS;
	for (int i = 0; i < BACKENDS; i++)
		ret->results[i].backend = (enum backend)i;
	fill_mechanisms(in, ret);
	native_result(in, platform, ret);
	ret->results[BACKEND_MICROVM].available = in->microvm_available;
	set_text(ret->results[BACKEND_MICROVM].note, PROBE_TEXT, "%s",
	    in->microvm_note);
	ret->results[BACKEND_NONE].available = true;
	set_text(ret->results[BACKEND_NONE].note, PROBE_TEXT, "%s", NONE_NOTE);
	ret->recommendation = ret->results[BACKEND_NATIVE].available ?
	    BACKEND_NATIVE :
	    BACKEND_NONE;
	start_line(in, ret);
}
