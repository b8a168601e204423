/*
 * The fixed lists: every entry is one that common/hostname.h accepts as it
 * stands, and the look-ups judge as SPEC App.1, App.2, App.8 and App.9 say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/hostname.h"
#include "common/size.h"
#include "supervisor/control/lists.h"

static void
assert_normal(const char *pattern)
{
	char text[HOSTNAME_MAX + 1];
	enum hostname_fault fault = HOSTNAME_OK;

	if (hostname_pattern_parse(pattern, strlen(pattern), text, &fault) < 0)
		fail_msg("%s: %s", pattern, hostname_why(fault));
	assert_string_equal(text, pattern);
}

static void
every_host_entry_is_a_normal_pattern(void **state)
{
	(void)state;
	for (size_t i = 0; i < lists_allow_rows; i++)
		assert_normal(lists_allow[i].pattern);
	for (size_t i = 0; i < lists_deny_rows; i++)
		assert_normal(lists_deny[i]);
	for (size_t i = 0; i < lists_known_off_rows; i++)
		assert_normal(lists_known_off[i]);
}

static void
no_allowed_host_is_always_denied(void **state)
{
	(void)state;
	for (size_t i = 0; i < lists_allow_rows; i++) {
		assert_null(lists_deny_find(lists_allow[i].pattern));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(lists_allow[i].pattern,
			    lists_allow[j].pattern);
	}
}

static void
port_22_is_open_to_three_git_hosts(void **state)
{
	size_t ssh = 0;

	(void)state;
	for (size_t i = 0; i < lists_allow_rows; i++) {
		const struct lists_host *h = &lists_allow[i];

		if ((h->ports & LISTS_SSH) == 0)
			continue;
		ssh++;
		if (strcmp(h->pattern, "ssh.github.com") == 0)
			assert_int_equal(h->ports, LISTS_SSH);
		else
			assert_true(strcmp(h->pattern, "github.com") == 0 ||
			    strcmp(h->pattern, "gitlab.com") == 0);
	}
	assert_int_equal(ssh, 3);
}

static void
metadata_and_telemetry_are_denied_with_subdomains(void **state)
{
	static const char *const denied[] = {
		"169.254.169.254",
		"metadata",
		"metadata.google.internal",
		"a.metadata.google.internal",
		"sentry.io",
		"o1.sentry.io",
		"a.b.sentry.io",
		"statsig.anthropic.com",
		"[fd00:ec2::254]",
		"x.statsig.anthropic.com",
		"168.63.129.16",
	};
	static const char *const free_hosts[] = {
		"api.anthropic.com",
		"notsentry.io",
		"sentry.io.example.com",
		"metadata.example.com",
		"169.254.169.25",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(denied); i++)
		if (lists_deny_find(denied[i]) == NULL)
			fail_msg("%s is not denied", denied[i]);
	for (size_t i = 0; i < ARRAY_LEN(free_hosts); i++)
		assert_null(lists_deny_find(free_hosts[i]));
}

static void
names_that_inject_code_are_stripped_in_any_case(void **state)
{
	static const char *const stripped[] = {
		"LD_PRELOAD",
		"ld_preload",
		"Ld_AuDiT",
		"DYLD_INSERT_LIBRARIES",
		"NODE_OPTIONS",
		"BASH_ENV",
		"BASH_FUNC_ls%%",
		"ENV",
		"GIT_SSH_COMMAND",
		"GIT_CONFIG",
		"GIT_CONFIG_COUNT",
		"GIT_CONFIG_KEY_0",
		"GIT_TRACE2_EVENT",
		"PROMPT_COMMAND",
		"STOCKADE_SOCKET",
		"npm_config_prefix",
		"NPM_CONFIG_PREFIX",
		"HTTP_PROXY",
		"https_proxy",
		"ALL_PROXY",
		"ftp_proxy",
		"IFS",
		"DOCKER_HOST",
		"SSH_AUTH_SOCK",
		"NODE_EXTRA_CA_CERTS",
	};
	static const char *const passed[] = {
		"PATH",
		"HOME",
		"LANG",
		"LC_ALL",
		"CLAUDE_CONFIG_DIR",
		"FOO",
		"ANTHROPIC_API_KEY",
		"XLD_PRELOAD",
		"GIT_AUTHOR_NAME",
		"ENVIRONMENT",
		"PROXY",
		"SSL_CERT_FILE",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(stripped); i++)
		if (!lists_env_stripped(stripped[i]))
			fail_msg("%s passes", stripped[i]);
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		if (lists_env_stripped(passed[i]))
			fail_msg("%s is stripped", passed[i]);
}

static void
base_and_secret_names_are_told_apart(void **state)
{
	(void)state;
	assert_true(lists_env_base("LC_TIME"));
	assert_true(lists_env_base("LC_"));
	assert_false(lists_env_base("lc_time"));
	assert_false(lists_env_base("XLC_TIME"));
	assert_false(lists_env_base("AWS_PROFILE"));
	assert_true(lists_env_secret("GITHUB_TOKEN"));
	assert_true(lists_env_secret("aws_profile"));
	assert_true(lists_env_secret("MY_PASSWORD_FILE"));
	assert_true(lists_env_secret("ANTHROPIC_API_KEY"));
	assert_false(lists_env_secret("TOKENS"));
	assert_false(lists_env_secret("LANG"));
	assert_true(lists_env_ca("GIT_SSL_CAINFO"));
	assert_false(lists_env_ca("GIT_SSL_NO_VERIFY"));
}

static void
dangerous_binaries_are_denied_by_name(void **state)
{
	static const char *const denied[] = { "sudo", "su", "mount",
		"mkfs.ext4", "mkfs.", "nsenter" };
	static const char *const free_names[] = { "rm", "unlink", "rmdir", "dd",
		"mkfs", "sudoedit", "amount", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(denied); i++)
		assert_true(lists_exec_denied(denied[i]));
	for (size_t i = 0; i < ARRAY_LEN(free_names); i++)
		assert_false(lists_exec_denied(free_names[i]));
}

static void
assert_relative(const struct lists_path *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_not_equal(list[i].path[0], '/');
		assert_int_not_equal(list[i].path[strlen(list[i].path) - 1],
		    '/');
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(list[i].path, list[j].path);
	}
}

static void
deny_paths_are_relative_and_stand_once(void **state)
{
	(void)state;
	assert_relative(lists_read_home, lists_read_home_rows);
	assert_relative(lists_write_home, lists_write_home_rows);
	assert_relative(lists_write_root, lists_write_root_rows);
	assert_relative(lists_write_git, lists_write_git_rows);
	assert_relative(lists_state_config, lists_state_config_rows);
	assert_int_equal(lists_read_home_rows, 32);
	assert_int_equal(lists_write_home_rows, 37);
	assert_int_equal(lists_write_root_rows, 25);
	assert_int_equal(lists_exec_dirs_rows, 6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_host_entry_is_a_normal_pattern),
		cmocka_unit_test(no_allowed_host_is_always_denied),
		cmocka_unit_test(port_22_is_open_to_three_git_hosts),
		cmocka_unit_test(
		    metadata_and_telemetry_are_denied_with_subdomains),
		cmocka_unit_test(
		    names_that_inject_code_are_stripped_in_any_case),
		cmocka_unit_test(base_and_secret_names_are_told_apart),
		cmocka_unit_test(dangerous_binaries_are_denied_by_name),
		cmocka_unit_test(deny_paths_are_relative_and_stand_once),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
