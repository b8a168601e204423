/* Which backend a run gets, and the precedence of the setting. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "supervisor/control/backend.h"

static const struct backend_ask plain = {
	.conf_default = BACKEND_NATIVE,
	.native_available = true,
	.microvm_reason = "no virtual machine here",
};

static void
assert_chosen(const struct backend_ask *ask, enum backend backend)
{
	struct backend_choice c;

	backend_choose(ask, &c);
	assert_int_equal(c.verdict, BACKEND_CHOSEN);
	assert_int_equal(c.backend, backend);
	assert_int_equal(c.unconfined, backend == BACKEND_NONE);
	assert_int_equal(c.why[0] != '\0', backend == BACKEND_NONE);
	assert_string_equal(c.message, "");
}

static void
assert_refused(const struct backend_ask *ask, enum backend_verdict verdict,
    const char *part)
{
	struct backend_choice c;

	backend_choose(ask, &c);
	assert_int_equal(c.verdict, verdict);
	assert_int_equal(c.backend, BACKEND_NONE);
	if (strstr(c.message, part) == NULL)
		fail_msg("\"%s\" lacks \"%s\"", c.message, part);
}

static void
names_parse_as_stored_and_as_explicit(void **state)
{
	enum backend b;

	(void)state;
	assert_int_equal(backend_parse_stored(NULL), BACKEND_NONE);
	assert_int_equal(backend_parse_stored("what"), BACKEND_NONE);
	assert_int_equal(backend_parse_stored("docker"), BACKEND_NATIVE);
	assert_int_equal(backend_parse_stored("microvm"), BACKEND_MICROVM);
	assert_int_equal(backend_parse_explicit("docker", &b), 0);
	assert_int_equal(b, BACKEND_NATIVE);
	assert_int_equal(backend_parse_explicit("Native", &b), -EINVAL);
	assert_int_equal(backend_parse_explicit("", &b), -EINVAL);
	assert_string_equal(backend_label(BACKEND_MICROVM), "Enclosed VM");
	assert_string_equal(backend_label(BACKEND_NATIVE), "Native sandbox");
	assert_string_equal(backend_label(BACKEND_NONE), "No isolation");
	assert_true(backend_enclosed(BACKEND_MICROVM));
	assert_false(backend_enclosed(BACKEND_NATIVE));
}

static void
an_unknown_explicit_backend_is_bad_params(void **state)
{
	struct backend_ask ask = plain;

	(void)state;
	ask.explicit_name = "firecracker";
	assert_refused(&ask, BACKEND_BAD_PARAMS,
	    "unknown backend "
	    "\"firecracker\": use microvm, native or none");
	ask.explicit_name = "a\nb";
	assert_refused(&ask, BACKEND_BAD_PARAMS, "\"a?b\"");
}

static void
native_is_given_where_it_is_available(void **state)
{
	struct backend_ask ask = plain;

	(void)state;
	assert_chosen(&ask, BACKEND_NATIVE);
	ask.explicit_name = "native";
	assert_chosen(&ask, BACKEND_NATIVE);
	ask.explicit_name = "docker";
	assert_chosen(&ask, BACKEND_NATIVE);
	ask.setting = SETTING_REQUIRE;
	ask.restricts_network = true;
	assert_chosen(&ask, BACKEND_NATIVE);
}

static void
only_an_unspecified_backend_falls(void **state)
{
	struct backend_ask ask = plain;
	struct backend_choice c;

	(void)state;
	ask.native_available = false;
	ask.native_reason = "Missing: bubblewrap. Install: X";
	assert_chosen(&ask, BACKEND_NONE);
	backend_choose(&ask, &c);
	assert_string_equal(c.why, ask.native_reason);
	ask.explicit_name = "native";
	assert_refused(&ask, BACKEND_UNAVAILABLE, "Missing: bubblewrap.");
	ask.explicit_name = NULL;
	ask.has_stored = true;
	ask.stored_name = "native";
	assert_refused(&ask, BACKEND_UNAVAILABLE, "Missing: bubblewrap.");
}

static void
off_and_windows_mean_none(void **state)
{
	struct backend_ask ask = plain;

	(void)state;
	ask.setting = SETTING_OFF;
	assert_chosen(&ask, BACKEND_NONE);
	ask.explicit_name = "native";
	assert_refused(&ask, BACKEND_UNAVAILABLE, "--sandbox");
	ask = plain;
	ask.windows = true;
	assert_chosen(&ask, BACKEND_NONE);
}

static void
require_refuses_every_unwrapped_run(void **state)
{
	struct backend_ask ask = plain;

	(void)state;
	ask.setting = SETTING_REQUIRE;
	ask.explicit_name = "none";
	assert_refused(&ask, BACKEND_UNCONFINED, "require");
	ask.explicit_name = NULL;
	ask.has_stored = true; /* null parses as none */
	assert_refused(&ask, BACKEND_UNCONFINED, "require");
	ask = plain;
	ask.setting = SETTING_REQUIRE;
	ask.native_available = false;
	ask.accept_unconfined = true;
	assert_refused(&ask, BACKEND_UNCONFINED, "require");
}

static void
a_network_rule_nobody_enforces_is_refused(void **state)
{
	struct backend_ask ask = plain;

	(void)state;
	ask.explicit_name = "none";
	ask.restricts_network = true;
	assert_refused(&ask, BACKEND_UNAVAILABLE, "acceptUnconfined");
	ask.accept_unconfined = true;
	assert_chosen(&ask, BACKEND_NONE);
}

static void
microvm_is_never_replaced_when_named(void **state)
{
	struct backend_ask ask = plain;

	(void)state;
	ask.explicit_name = "microvm";
	assert_refused(&ask, BACKEND_UNSUPPORTED, "agent runs");
	ask.microvm_available = true;
	assert_refused(&ask, BACKEND_UNSUPPORTED, "agent runs");
	ask.terminal = true;
	assert_chosen(&ask, BACKEND_MICROVM);
	ask.microvm_available = false;
	assert_refused(&ask, BACKEND_UNAVAILABLE, "no virtual machine here");
	ask.microvm_available = true;
	ask.setting = SETTING_OFF;
	assert_refused(&ask, BACKEND_UNAVAILABLE, "off");
}

static void
a_default_of_microvm_steps_down_and_says_so(void **state)
{
	struct backend_ask ask = plain;
	struct backend_choice c;

	(void)state;
	ask.conf_default = BACKEND_MICROVM;
	assert_chosen(&ask, BACKEND_NATIVE);
	backend_choose(&ask, &c);
	assert_string_equal(c.log_line,
	    "microvm unavailable (no virtual "
	    "machine here): default steps down to native");
	ask.native_available = false;
	assert_chosen(&ask, BACKEND_NONE);
	backend_choose(&ask, &c);
	assert_true(c.log_line[0] != '\0');
	ask.terminal = true;
	ask.microvm_available = true;
	assert_chosen(&ask, BACKEND_MICROVM);
}

static void
the_first_source_given_decides_the_setting(void **state)
{
	struct setting_choice c;
	char text[128];

	(void)state;
	assert_int_equal(setting_choose(" OFF ", "require", "on", &c, text,
			     sizeof(text)),
	    0);
	assert_int_equal(c.setting, SETTING_OFF);
	assert_int_equal(c.source, SETTING_FROM_OPTION);
	assert_int_equal(setting_choose(NULL, "\tRequire\n", "on", &c, text,
			     sizeof(text)),
	    0);
	assert_int_equal(c.setting, SETTING_REQUIRE);
	assert_int_equal(c.source, SETTING_FROM_ENVIRONMENT);
	assert_int_equal(setting_choose(NULL, NULL, "off", &c, text,
			     sizeof(text)),
	    0);
	assert_int_equal(c.source, SETTING_FROM_CONFIGURATION);
	assert_int_equal(setting_choose(NULL, NULL, NULL, &c, text,
			     sizeof(text)),
	    0);
	assert_int_equal(c.setting, SETTING_ON);
	assert_int_equal(c.source, SETTING_FROM_DEFAULT);
}

static void
a_bad_setting_names_its_source_and_status(void **state)
{
	struct setting_choice c = { SETTING_OFF, SETTING_FROM_DEFAULT };
	char text[128];

	(void)state;
	assert_int_equal(setting_choose("maybe", NULL, NULL, &c, text,
			     sizeof(text)),
	    2);
	assert_non_null(strstr(text, "--sandbox"));
	assert_int_equal(setting_choose(NULL, "", NULL, &c, text, sizeof(text)),
	    2);
	assert_non_null(strstr(text, "CC_SERVER_SANDBOX"));
	assert_int_equal(setting_choose(NULL, NULL, "o n", &c, text,
			     sizeof(text)),
	    1);
	assert_non_null(strstr(text, "configuration"));
	/* a bad value of higher rank is not passed over */
	assert_int_equal(setting_choose("1", "on", "on", &c, text,
			     sizeof(text)),
	    2);
	assert_int_equal(c.setting, SETTING_OFF);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_parse_as_stored_and_as_explicit),
		cmocka_unit_test(an_unknown_explicit_backend_is_bad_params),
		cmocka_unit_test(native_is_given_where_it_is_available),
		cmocka_unit_test(only_an_unspecified_backend_falls),
		cmocka_unit_test(off_and_windows_mean_none),
		cmocka_unit_test(require_refuses_every_unwrapped_run),
		cmocka_unit_test(a_network_rule_nobody_enforces_is_refused),
		cmocka_unit_test(microvm_is_never_replaced_when_named),
		cmocka_unit_test(a_default_of_microvm_steps_down_and_says_so),
		cmocka_unit_test(the_first_source_given_decides_the_setting),
		cmocka_unit_test(a_bad_setting_names_its_source_and_status),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
