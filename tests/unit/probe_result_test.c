/* The probe's words for every platform row of SPEC A3..A11, A17, A18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "supervisor/control/probe_result.h"

#define END_UNWRAPPED \
	"; runs are bounded by a cleaned environment, " \
	"command policy and guardrails only"

static const struct probe_tool bwrap_found = { "bubblewrap", true };
static const struct probe_tool bwrap_missing = { "bubblewrap", false };

/* Every row true, on Linux, as this version is built. */
struct host {
	struct probe_row_in rows[PROBE_MECHANISMS];
	struct probe_input in;
};

static void
host_init(struct host *h)
{
	memset(h, 0, sizeof(*h));
	for (unsigned i = 0; i < PROBE_MECHANISMS; i++) {
		h->rows[i].mechanism = i;
		h->rows[i].available = true;
		h->rows[i].detail = "tried";
	}
	h->in.system = "Linux";
	h->in.release = "6.1.0-18-amd64";
	h->in.machine = "x86_64";
	h->in.tools = &bwrap_found;
	h->in.ntools = 1;
	h->in.rows = h->rows;
	h->in.nrows = PROBE_MECHANISMS;
	h->in.microvm_note = "not in this version";
}

static void
linux_with_the_tool_is_on(void **state)
{
	struct probe_report r;
	struct host h;

	(void)state;
	host_init(&h);
	probe_report_make(&h.in, &r);
	assert_true(r.results[BACKEND_NATIVE].available);
	assert_false(r.results[BACKEND_NATIVE].requires_install);
	assert_true(r.results[BACKEND_NATIVE].dispatchable);
	assert_string_equal(r.results[BACKEND_NATIVE].install_hint, "");
	assert_string_equal(r.results[BACKEND_NATIVE].note,
	    "bubblewrap \u2014 namespace isolation, no kernel boundary");
	assert_string_equal(r.line,
	    "agent sandbox ON: bubblewrap \u2014 "
	    "namespace isolation, no kernel boundary");
	assert_false(r.line_warning);
	assert_int_equal(r.recommendation, BACKEND_NATIVE);
	assert_true(r.results[BACKEND_NONE].available);
	assert_string_equal(r.results[BACKEND_NONE].note,
	    "No isolation: agents run on the host");
	assert_false(r.results[BACKEND_MICROVM].available);
	assert_string_equal(r.results[BACKEND_MICROVM].note,
	    "not in this version");
}

static void
a_missing_tool_gives_the_hint(void **state)
{
	struct probe_report r;
	struct host h;

	(void)state;
	host_init(&h);
	h.in.tools = &bwrap_missing;
	probe_report_make(&h.in, &r);
	assert_false(r.results[BACKEND_NATIVE].available);
	assert_true(r.results[BACKEND_NATIVE].requires_install);
	assert_false(r.results[BACKEND_NATIVE].dispatchable);
	assert_string_equal(r.results[BACKEND_NATIVE].install_hint,
	    "Missing: bubblewrap. Install: sudo apt-get install bubblewrap");
	assert_string_equal(r.line,
	    "no OS-native agent sandbox on this host: "
	    "Missing: bubblewrap. Install: sudo apt-get install bubblewrap" END_UNWRAPPED);
	assert_true(r.line_warning);
	assert_int_equal(r.recommendation, BACKEND_NONE);
}

static void
macos_has_its_own_note(void **state)
{
	struct probe_report r;
	struct host h;

	(void)state;
	host_init(&h);
	h.in.system = "Darwin";
	h.in.release = "23.4.0";
	h.in.ntools = 0;
	probe_report_make(&h.in, &r);
	assert_true(r.results[BACKEND_NATIVE].available);
	assert_string_equal(r.results[BACKEND_NATIVE].note,
	    "sandbox-exec "
	    "(Seatbelt) \u2014 namespace isolation, no kernel boundary");
}

static void
other_platforms_are_not_offered(void **state)
{
	static const char *const systems[] = { "Windows_NT", "windows",
		"FreeBSD", "", NULL };
	struct probe_report r;
	struct host h;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(systems); i++) {
		host_init(&h);
		h.in.system = systems[i];
		h.in.tools = &bwrap_missing;
		probe_report_make(&h.in, &r);
		assert_false(r.results[BACKEND_NATIVE].available);
		assert_false(r.results[BACKEND_NATIVE].requires_install);
		assert_string_equal(r.results[BACKEND_NATIVE].install_hint, "");
		assert_string_equal(r.results[BACKEND_NATIVE].note,
		    "The "
		    "native sandbox is not offered on this platform");
		assert_int_equal(r.windows, i < 2);
	}
}

static void
wsl_is_linux_in_any_letter_case(void **state)
{
	struct probe_report r;
	struct host h;

	(void)state;
	assert_true(probe_release_is_wsl("5.15.90.1-microsoft-standard-WSL2"));
	assert_true(probe_release_is_wsl("4.4.0-19041-Microsoft"));
	assert_true(probe_release_is_wsl("6.6-wsl-custom"));
	assert_false(probe_release_is_wsl("6.1.0-18-amd64"));
	host_init(&h);
	h.in.release = "5.15.90.1-Microsoft-standard-WSL2";
	probe_report_make(&h.in, &r);
	assert_true(r.wsl);
	assert_true(r.results[BACKEND_NATIVE].available);
	h.in.system = "Darwin";
	probe_report_make(&h.in, &r);
	assert_false(r.wsl);
}

static void
an_error_never_counts_as_success(void **state)
{
	struct probe_report r;
	struct host h;

	(void)state;
	host_init(&h);
	h.in.error = "no answer in 10 s";
	probe_report_make(&h.in, &r);
	assert_false(r.results[BACKEND_NATIVE].available);
	assert_string_equal(r.results[BACKEND_NATIVE].note,
	    "Probe failed: no answer in 10 s");
	assert_string_equal(r.line,
	    "no OS-native agent sandbox on this host: "
	    "Probe failed: no answer in 10 s" END_UNWRAPPED);
}

static void
every_required_row_is_required(void **state)
{
	static const char *const needed[] = {
		"bubblewrap",
		"namespaces",
		"cgroup",
		"landlock",
		"seccomp",
		"egress.refuse",
		"userns.refused",
		"procsys.readonly",
	};
	struct probe_report r;
	struct host h;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		int row = probe_mechanism_find(needed[i]);

		assert_true(row >= 0);
		host_init(&h);
		h.rows[row].available = false;
		h.rows[row].detail = "errno 1";
		probe_report_make(&h.in, &r);
		assert_false(r.results[BACKEND_NATIVE].available);
		assert_false(r.results[BACKEND_NATIVE].requires_install);
		assert_non_null(
		    strstr(r.results[BACKEND_NATIVE].note, needed[i]));
		assert_non_null(
		    strstr(r.results[BACKEND_NATIVE].note, "errno 1"));
	}
	assert_int_equal(probe_mechanism_find("nothing"), -1);
	assert_null(probe_mechanism_name(PROBE_MECHANISMS));
}

static void
the_first_false_row_is_named(void **state)
{
	struct probe_report r;
	struct host h;

	(void)state;
	host_init(&h);
	h.rows[probe_mechanism_find("seccomp")].available = false;
	h.rows[probe_mechanism_find("cgroup")].available = false;
	h.rows[probe_mechanism_find("cgroup")].detail = NULL;
	probe_report_make(&h.in, &r);
	assert_string_equal(r.results[BACKEND_NATIVE].note,
	    "cgroup is not available here");
}

static void
a_row_not_executed_is_false(void **state)
{
	struct probe_report r;
	struct host h;

	(void)state;
	host_init(&h);
	h.in.nrows = PROBE_MECHANISMS - 1;
	probe_report_make(&h.in, &r);
	assert_false(r.mechanisms[PROBE_MECHANISMS - 1].available);
	assert_string_equal(r.mechanisms[PROBE_MECHANISMS - 1].detail,
	    "not executed");
	assert_false(r.results[BACKEND_NATIVE].available);
	h.in.nrows = 0;
	h.in.rows = NULL;
	probe_report_make(&h.in, &r);
	assert_false(r.results[BACKEND_NATIVE].available);
}

static void
a_row_told_twice_holds_only_if_both_say_so(void **state)
{
	struct probe_row_in rows[PROBE_MECHANISMS + 1];
	struct probe_report r;
	struct host h;

	(void)state;
	host_init(&h);
	memcpy(rows, h.rows, sizeof(h.rows));
	rows[PROBE_MECHANISMS] = rows[0];
	rows[0].available = false;
	h.in.rows = rows;
	h.in.nrows = ARRAY_LEN(rows);
	probe_report_make(&h.in, &r);
	assert_false(r.mechanisms[0].available);
}

static void
off_is_told_before_anything_else(void **state)
{
	struct probe_report r;
	struct host h;

	(void)state;
	host_init(&h);
	h.in.setting = SETTING_OFF;
	probe_report_make(&h.in, &r);
	assert_string_equal(r.line,
	    "agent sandbox DISABLED by --sandbox off" END_UNWRAPPED);
	assert_true(r.line_warning);
	/* what the host offers does not change by it */
	assert_true(r.results[BACKEND_NATIVE].available);
	h.in.tools = &bwrap_missing;
	probe_report_make(&h.in, &r);
	assert_string_equal(r.line,
	    "agent sandbox DISABLED by --sandbox off" END_UNWRAPPED);
}

static void
name_rules_decide_dispatch(void **state)
{
	struct probe_report r;
	struct host h;

	(void)state;
	host_init(&h);
	h.rows[probe_mechanism_find("guard.create")].available = false;
	probe_report_make(&h.in, &r);
	assert_true(r.results[BACKEND_NATIVE].available);
	assert_false(r.results[BACKEND_NATIVE].dispatchable);
	assert_true(r.line_warning);
	assert_string_equal(r.line,
	    "agent sandbox ON: bubblewrap \u2014 "
	    "namespace isolation, no kernel boundary; file-name rules cannot "
	    "be enforced here, runs that need them are refused");
}

static void
long_texts_are_cut(void **state)
{
	struct probe_report r;
	char text[4 * PROBE_TEXT];
	struct host h;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	host_init(&h);
	h.in.error = text;
	h.rows[0].detail = text;
	probe_report_make(&h.in, &r);
	assert_int_equal(strlen(r.results[BACKEND_NATIVE].note),
	    PROBE_TEXT - 1);
	assert_int_equal(strlen(r.mechanisms[0].detail), PROBE_TEXT - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linux_with_the_tool_is_on),
		cmocka_unit_test(a_missing_tool_gives_the_hint),
		cmocka_unit_test(macos_has_its_own_note),
		cmocka_unit_test(other_platforms_are_not_offered),
		cmocka_unit_test(wsl_is_linux_in_any_letter_case),
		cmocka_unit_test(an_error_never_counts_as_success),
		cmocka_unit_test(every_required_row_is_required),
		cmocka_unit_test(the_first_false_row_is_named),
		cmocka_unit_test(a_row_not_executed_is_false),
		cmocka_unit_test(a_row_told_twice_holds_only_if_both_say_so),
		cmocka_unit_test(off_is_told_before_anything_else),
		cmocka_unit_test(name_rules_decide_dispatch),
		cmocka_unit_test(long_texts_are_cut),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
