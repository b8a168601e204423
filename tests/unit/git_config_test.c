/*
 * git's configuration files: what is told of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "launcherd/lookup/git_config.h"

static char told[4096];

static int
tell(void *arg, const struct git_config_entry *e)
{
	size_t len = strlen(told);

	(void)arg;
	(void)snprintf(told + len, sizeof(told) - len, "%s.%s%s%.40s%s|",
	    e->section, e->key, e->value == NULL ? "" : "=",
	    e->value == NULL ? "" : e->value, e->too_long ? "!" : "");
	return 0;
}

static int
parse(const char *text, size_t len)
{
	told[0] = '\0';
	return git_config_parse(text, len, tell, NULL);
}

struct case_ {
	const char *text;
	const char *told;
	int error;
};

static void
entries_are_told(void **state)
{
	static const struct case_ cases[] = {
		{ "", "", 0 },
		{ "[core]\n\thooksPath = .githooks\n",
		    "core.hookspath=.githooks|", 0 },
		{ "[CORE]HOOKSPATH=a", "core.hookspath=a|", 0 },
		{ "[includeIf \"gitdir:~/w/\"]\r\npath = ~/x\r\n",
		    "includeif.path=~/x|", 0 },
		{ "[include]path=a # b\n;c\n#d\npath=\"a # b\" ;x\n",
		    "include.path=a|include.path=a # b|", 0 },
		{ "[a.b]\nk\n", "a.k|", 0 },
		{ "[a \"]\\\"x\"] k = 1\n", "a.k=1|", 0 },
		{ "[a]\nk = x  y  \nl = \" z \"\n", "a.k=x  y|a.l= z |", 0 },
		{ "[a]\nk = one\\\n  two\n", "a.k=one  two|", 0 },
		{ "[a]\nk = b\"c d\"e\\t\\\\\n", "a.k=bc de\t\\|", 0 },
		{ "\xef\xbb\xbf[a]\nk=\n", "a.k=|", 0 },
		{ "[a]\nk=1\n[b\nl=2\n", "a.k=1|", -EINVAL },
		{ "[a]\nk = \"x\n", "", -EINVAL },
		{ "[a]\nk = \\x\n", "", -EINVAL },
		{ "[a]\nk k = x\n", "", -EINVAL },
		{ "[a b]\nk = x\n", "", -EINVAL },
		{ "[a \"b\nc\"]\n", "", -EINVAL },
		{ "[a]\n-k = x\n", "", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(cases[i].text, strlen(cases[i].text)),
		    cases[i].error);
		assert_string_equal(told, cases[i].told);
	}
}

static void
nul_and_long_names_are_refused(void **state)
{
	static const char nul[] = "[a]\nk = x\0y\n";
	static char text[8192];

	(void)state;
	assert_int_equal(parse(nul, sizeof(nul) - 1), -EINVAL);
	(void)snprintf(text, sizeof(text), "[a]\n%0300d = 1\n", 0);
	text[4] = 'k';
	assert_int_equal(parse(text, strlen(text)), -EINVAL);
}

static void
a_value_longer_than_a_path_is_marked(void **state)
{
	static char text[8192];

	(void)state;
	(void)snprintf(text, sizeof(text), "[a]\nk = %05000d\nl = 2\n", 0);
	assert_int_equal(parse(text, strlen(text)), 0);
	assert_non_null(strstr(told, "!|a.l=2|"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_told),
		cmocka_unit_test(nul_and_long_names_are_refused),
		cmocka_unit_test(a_value_longer_than_a_path_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
