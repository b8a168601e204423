/* The environment of a run: SPEC M1..M8, M11, G4. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "supervisor/control/environ.h"

static const struct environ_input plain = {
	.home = "/home/u",
	.tmpdir = "/tmp",
};

static void
assert_value(const struct environ_result *env, const char *name,
    const char *value)
{
	const char *found = environ_get(env, name);

	if (value == NULL) {
		if (found != NULL)
			fail_msg("%s is set", name);
		return;
	}
	if (found == NULL)
		fail_msg("%s is not set", name);
	else
		assert_string_equal(found, value);
}

static bool
has(char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

static void
set_pairs(struct environ_set *set, const struct environ_pair *pairs, size_t n)
{
	set->pairs = pairs;
	set->n = n;
}

static void
nothing_is_inherited(void **state)
{
	struct environ_input in = plain;
	struct environ_result env;

	(void)state;
	assert_int_equal(setenv("STOCKADE_TEST_LEAK", "1", 1), 0);
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_int_equal(env.n, 2);
	assert_value(&env, "HOME", "/home/u");
	assert_value(&env, "TMPDIR", "/tmp");
	environ_done(&env);
}

static void
base_passes_only_the_allow_list(void **state)
{
	static const struct environ_pair base[] = {
		{ "LANG", "C.UTF-8" },
		{ "LC_ALL", "C" },
		{ "TERM", "xterm" },
		{ "AWS_SECRET_ACCESS_KEY", "s" },
		{ "FOO", "bar" },
		{ "LD_PRELOAD", "/x.so" },
	};
	struct environ_input in = plain;
	struct environ_result env;

	(void)state;
	set_pairs(&in.base, base, ARRAY_LEN(base));
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_value(&env, "LANG", "C.UTF-8");
	assert_value(&env, "LC_ALL", "C");
	assert_value(&env, "TERM", "xterm");
	assert_value(&env, "FOO", NULL);
	assert_value(&env, "AWS_SECRET_ACCESS_KEY", NULL);
	assert_value(&env, "LD_PRELOAD", NULL);
	assert_int_equal(env.nstripped, 0);
	environ_done(&env);
}

static void
strip_names_are_removed_whoever_gives_them(void **state)
{
	static const struct environ_pair pass[] = { { "LD_PRELOAD", "a" } };
	static const struct environ_pair spec[] = { { "node_options", "b" },
		{ "OK", "1" }, { "LD_PRELOAD", "c" } };
	static const struct environ_pair exec[] = {
		{ "GIT_SSH_COMMAND", "sh" },
		{ "STOCKADE_RUN_DIR", "/x" },
		{ "HTTP_PROXY", "http://evil" },
	};
	struct environ_input in = plain;
	struct environ_result env;

	(void)state;
	set_pairs(&in.pass_env, pass, ARRAY_LEN(pass));
	set_pairs(&in.spec_env, spec, ARRAY_LEN(spec));
	set_pairs(&in.exec_env, exec, ARRAY_LEN(exec));
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_value(&env, "OK", "1");
	assert_int_equal(env.n, 3);
	assert_int_equal(env.nstripped, 5);
	assert_true(has(env.stripped, env.nstripped, "LD_PRELOAD"));
	assert_true(has(env.stripped, env.nstripped, "node_options"));
	assert_true(has(env.stripped, env.nstripped, "GIT_SSH_COMMAND"));
	assert_true(has(env.stripped, env.nstripped, "STOCKADE_RUN_DIR"));
	assert_true(has(env.stripped, env.nstripped, "HTTP_PROXY"));
	for (size_t i = 1; i < env.nstripped; i++)
		assert_true(strcmp(env.stripped[i - 1], env.stripped[i]) < 0);
	environ_done(&env);
}

static void
later_groups_win_and_ours_are_last(void **state)
{
	static const struct environ_pair base[] = { { "TERM", "base" } };
	static const struct environ_pair pass[] = { { "TERM", "pass" },
		{ "A", "pass" } };
	static const struct environ_pair spec[] = { { "A", "spec" },
		{ "B", "spec" }, { "HOME", "/evil" }, { "TMPDIR", "/evil" },
		{ "GH_TOKEN", "mine" } };
	static const struct environ_pair exec[] = { { "B", "exec" } };
	static const struct environ_pair broker[] = { { "GH_TOKEN", "ours" } };
	static const struct environ_pair fixed[] = { { "STOCKADE_RUN_DIR",
	    "/run/stockade/run" } };
	struct environ_input in = plain;
	struct environ_result env;

	(void)state;
	set_pairs(&in.base, base, ARRAY_LEN(base));
	set_pairs(&in.pass_env, pass, ARRAY_LEN(pass));
	set_pairs(&in.spec_env, spec, ARRAY_LEN(spec));
	set_pairs(&in.exec_env, exec, ARRAY_LEN(exec));
	set_pairs(&in.broker, broker, ARRAY_LEN(broker));
	set_pairs(&in.fixed, fixed, ARRAY_LEN(fixed));
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_value(&env, "TERM", "pass");
	assert_value(&env, "A", "spec");
	assert_value(&env, "B", "exec");
	assert_value(&env, "GH_TOKEN", "ours");
	assert_value(&env, "HOME", "/home/u");
	assert_value(&env, "TMPDIR", "/tmp");
	assert_value(&env, "STOCKADE_RUN_DIR", "/run/stockade/run");
	for (size_t i = 1; i < env.n; i++)
		assert_true(strcmp(env.names[i - 1], env.names[i]) < 0);
	environ_done(&env);
}

static void
secret_names_pass_when_named_and_are_listed(void **state)
{
	static const struct environ_pair spec[] = {
		{ "ANTHROPIC_API_KEY", "k" }, { "FOO", "1" }
	};
	struct environ_input in = plain;
	struct environ_result env;

	(void)state;
	set_pairs(&in.spec_env, spec, ARRAY_LEN(spec));
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_value(&env, "ANTHROPIC_API_KEY", "k");
	assert_int_equal(env.nsecret, 1);
	assert_string_equal(env.secret[0], "ANTHROPIC_API_KEY");
	environ_done(&env);
}

static void
proxy_variables_are_ours(void **state)
{
	static const struct environ_pair spec[] = { { "http_proxy",
							"http://evil" },
		{ "No_Proxy", "*" }, { "NODE_USE_ENV_PROXY", "0" } };
	struct environ_input in = plain;
	struct environ_result env;

	(void)state;
	set_pairs(&in.spec_env, spec, ARRAY_LEN(spec));
	in.proxy = true;
	in.connect_path = "/run/stockade/connect";
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_value(&env, "HTTP_PROXY", "http://127.0.0.1:3128");
	assert_value(&env, "http_proxy", "http://127.0.0.1:3128");
	assert_value(&env, "HTTPS_PROXY", "http://127.0.0.1:3128");
	assert_value(&env, "https_proxy", "http://127.0.0.1:3128");
	assert_value(&env, "ALL_PROXY", "socks5h://127.0.0.1:1080");
	assert_value(&env, "all_proxy", "socks5h://127.0.0.1:1080");
	assert_value(&env, "NO_PROXY", "localhost,127.0.0.1,::1");
	assert_value(&env, "no_proxy", "localhost,127.0.0.1,::1");
	assert_value(&env, "No_Proxy", NULL);
	assert_value(&env, "NODE_USE_ENV_PROXY", "1");
	assert_value(&env, "GIT_SSH_COMMAND",
	    "ssh -o ControlMaster=no -o "
	    "ControlPath=none -o 'ProxyCommand=/run/stockade/connect "
	    "%h %p'");
	assert_int_equal(env.nstripped, 3);
	environ_done(&env);
	in.connect_path = NULL;
	assert_int_equal(environ_make(&in, &env, NULL), -EINVAL);
}

static bool
below_work(void *arg, const char *dir)
{
	(*(unsigned *)arg)++;
	return strncmp(dir, "/work/", 6) == 0;
}

static void
path_keeps_what_is_in_view(void **state)
{
	static const struct environ_pair base[] = { { "PATH",
	    "/work/bin:/usr/bin::bin:./x:/opt/x:/work/../etc:"
	    "/work/bin:/work/a/./b:/work/c:" } };
	struct environ_input in = plain;
	struct environ_result env;
	unsigned asked = 0;

	(void)state;
	set_pairs(&in.base, base, ARRAY_LEN(base));
	in.native = true;
	in.in_view = below_work;
	in.in_view_arg = &asked;
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_value(&env, "PATH",
	    "/usr/local/bin:/usr/bin:/bin:/work/bin:/work/c");
	assert_int_equal(asked, 3); /* each directory once, none with dots */
	environ_done(&env);
	in.in_view = NULL;
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_value(&env, "PATH", "/usr/local/bin:/usr/bin:/bin");
	environ_done(&env);
	in.native = false;
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_value(&env, "PATH", base[0].value);
	environ_done(&env);
}

static void
authorities_of_the_host_are_set_by_us(void **state)
{
	static const struct environ_pair spec[] = {
		{ "SSL_CERT_FILE", "/evil" }, { "ssl_cert_file", "/evil" },
		{ "NODE_EXTRA_CA_CERTS", "/evil" }
	};
	struct environ_input in = plain;
	struct environ_result env;

	(void)state;
	set_pairs(&in.spec_env, spec, ARRAY_LEN(spec));
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_value(&env, "SSL_CERT_FILE", "/evil");
	assert_value(&env, "NODE_EXTRA_CA_CERTS", NULL);
	environ_done(&env);
	in.ca_bundle = "/etc/ssl/certs/ca-certificates.crt";
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_value(&env, "SSL_CERT_FILE", in.ca_bundle);
	assert_value(&env, "ssl_cert_file", NULL);
	assert_value(&env, "NODE_EXTRA_CA_CERTS", in.ca_bundle);
	assert_value(&env, "REQUESTS_CA_BUNDLE", in.ca_bundle);
	assert_value(&env, "CURL_CA_BUNDLE", in.ca_bundle);
	assert_value(&env, "GIT_SSL_CAINFO", in.ca_bundle);
	assert_int_equal(env.nstripped, 3);
	environ_done(&env);
}

static void
malformed_names_are_refused(void **state)
{
	static const char *const names[] = { "", "A=B", "A B", "A\nB", "A\x7f",
		"\xc3\xa4" };
	struct environ_input in = plain;
	struct environ_result env;
	char bad[ENVIRON_NAME_MAX + 1];
	char lengthy[ENVIRON_NAME_MAX + 2];

	(void)state;
	memset(lengthy, 'A', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = '\0';
	for (size_t i = 0; i <= ARRAY_LEN(names); i++) {
		struct environ_pair pair = { i < ARRAY_LEN(names) ? names[i] :
								    lengthy,
			"secret" };

		set_pairs(&in.exec_env, &pair, 1);
		assert_int_equal(environ_make(&in, &env, bad), -EINVAL);
		assert_int_equal(env.n, 0);
		assert_null(strstr(bad, "secret"));
		for (const char *p = bad; *p != '\0'; p++)
			assert_true(*p >= ' ' && *p <= '~');
	}
}

static void
amounts_are_limited(void **state)
{
	struct environ_pair *pairs = calloc(257, sizeof(*pairs));
	char(*names)[8] = calloc(257, sizeof(*names));
	char *value = malloc(32769);
	struct environ_input in = plain;
	struct environ_result env;

	(void)state;
	assert_non_null(pairs);
	assert_non_null(names);
	assert_non_null(value);
	memset(value, 'v', 32769);
	for (size_t i = 0; i < 257; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "N%zu", i);
		pairs[i].name = names[i];
		pairs[i].value = "";
	}
	set_pairs(&in.spec_env, pairs, 256);
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	assert_int_equal(env.n, 258);
	environ_done(&env);
	set_pairs(&in.spec_env, pairs, 257);
	assert_int_equal(environ_make(&in, &env, NULL), -E2BIG);

	value[32768] = '\0';
	pairs[0].value = value;
	set_pairs(&in.spec_env, pairs, 1);
	assert_int_equal(environ_make(&in, &env, NULL), 0);
	environ_done(&env);
	for (size_t i = 0; i < 9; i++)
		pairs[i].value = value;
	set_pairs(&in.spec_env, pairs, 9); /* 9 times 32 KiB */
	assert_int_equal(environ_make(&in, &env, NULL), -E2BIG);
	free(value);
	free(names);
	free(pairs);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_inherited),
		cmocka_unit_test(base_passes_only_the_allow_list),
		cmocka_unit_test(strip_names_are_removed_whoever_gives_them),
		cmocka_unit_test(later_groups_win_and_ours_are_last),
		cmocka_unit_test(secret_names_pass_when_named_and_are_listed),
		cmocka_unit_test(proxy_variables_are_ours),
		cmocka_unit_test(path_keeps_what_is_in_view),
		cmocka_unit_test(authorities_of_the_host_are_set_by_us),
		cmocka_unit_test(malformed_names_are_refused),
		cmocka_unit_test(amounts_are_limited),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
