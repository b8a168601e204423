/* What --adapter adds: state directories, and never a secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fnmatch.h>

#include "common/size.h"
#include "supervisor/ctl/adapters.h"

static const char *const withheld[] = {
#define ENV_STRIP(pattern) pattern,
#define ENV_SECRET(pattern) pattern,
#include "supervisor/control/environ.def"
};

static char custom[] = "/srv/state/";
static char relative[] = "state";
static char dotted[] = "/home/u/../v";
static char empty[] = "";

static char *
env_custom(const char *name)
{
	(void)name;
	return custom;
}

static char *
env_relative(const char *name)
{
	(void)name;
	return relative;
}

static char *
env_dotted(const char *name)
{
	(void)name;
	return dotted;
}

static char *
env_empty(const char *name)
{
	(void)name;
	return empty;
}

static void
state_directories_are_below_the_home(void **state)
{
	static const struct {
		const char *name;
		const char *want;
		bool sets;
	} rows[] = {
		{ "claude-code", "/home/u/.claude", true },
		{ "codex", "/home/u/.codex", false },
		{ "gemini-cli", "/home/u/.gemini", false },
		{ "acp", NULL, false },
	};
	char dir[ADAPTERS_PATH];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct adapter *a = adapters_find(rows[i].name);

		assert_non_null(a);
		assert_string_equal(adapters_name(i), rows[i].name);
		assert_int_equal(adapters_state(a, "/home/u",
				     adapters_no_environment, dir),
		    rows[i].want != NULL);
		if (rows[i].want != NULL)
			assert_string_equal(dir, rows[i].want);
		assert_int_equal(adapters_sets_variable(a,
				     adapters_no_environment),
		    rows[i].sets);
	}
	assert_null(adapters_name(ARRAY_LEN(rows)));
	assert_null(adapters_find("claude"));
	assert_null(adapters_find(""));
}

static void
the_callers_variable_names_another(void **state)
{
	char dir[ADAPTERS_PATH] = "same";

	(void)state;
	assert_int_equal(adapters_state(adapters_find("codex"), "/home/u",
			     env_custom, dir),
	    1);
	assert_string_equal(dir, "/srv/state");
	assert_true(adapters_sets_variable(adapters_find("codex"), env_custom));
	assert_int_equal(adapters_state(adapters_find("gemini-cli"), "/home/u",
			     env_custom, dir),
	    1);
	assert_string_equal(dir, "/home/u/.gemini");
	assert_int_equal(adapters_state(adapters_find("codex"), "/home/u",
			     env_empty, dir),
	    1);
	assert_string_equal(dir, "/home/u/.codex");
	assert_false(adapters_sets_variable(adapters_find("codex"), env_empty));
}

static void
a_path_that_is_not_clean_is_refused(void **state)
{
	const struct adapter *a = adapters_find("claude-code");
	char dir[ADAPTERS_PATH] = "same";
	char home[ADAPTERS_PATH];

	(void)state;
	assert_int_equal(adapters_state(a, "/home/u", env_relative, dir),
	    -EINVAL);
	assert_int_equal(adapters_state(a, "/home/u", env_dotted, dir),
	    -EINVAL);
	assert_int_equal(adapters_state(a, "home", adapters_no_environment,
			     dir),
	    -EINVAL);
	memset(home, 'a', sizeof(home));
	home[0] = '/';
	home[sizeof(home) - 1] = '\0';
	assert_int_equal(adapters_state(a, home, adapters_no_environment, dir),
	    -ENAMETOOLONG);
	assert_string_equal(dir, "same");
}

static void
no_secret_and_no_injection_is_passed(void **state)
{
	const char *name;

	(void)state;
	for (size_t i = 0; adapters_name(i) != NULL; i++) {
		const struct adapter *a = adapters_find(adapters_name(i));

		for (size_t k = 0; (name = adapters_pass(a, k)) != NULL; k++) {
			assert_null(strstr(name, "URL"));
			for (size_t w = 0; w < ARRAY_LEN(withheld); w++)
				if (fnmatch(withheld[w], name, FNM_CASEFOLD) ==
				    0)
					fail_msg("%s is %s", name, withheld[w]);
		}
	}
	/* Twin: the same comparison finds a key. */
	assert_int_equal(fnmatch("*_KEY", "ANTHROPIC_API_KEY", FNM_CASEFOLD),
	    0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_directories_are_below_the_home),
		cmocka_unit_test(the_callers_variable_names_another),
		cmocka_unit_test(a_path_that_is_not_clean_is_refused),
		cmocka_unit_test(no_secret_and_no_injection_is_passed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
