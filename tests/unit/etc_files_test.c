/*
 * etc_files.c: the generated files, and that nothing of the host's user
 * database or of a path can add a line or a setting.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/control/etc_files.h"

static char profile[] = "PATH=/host/only\nreturn 0\n";
static char ca[] = "/etc/ssl/certs/ca-certificates.crt";

static struct plan *
make(struct pool *pool, const struct etc_host *host, const char *user,
    const char *home, const char *mount)
{
	struct plan_mount mounts[] = {
		{ mount, mount, PLAN_DIR, false, 0, 0 },
		{ "/file", "/file", PLAN_FILE, false, 0, 0 },
	};
	const struct etc_input in = {
		.host = host,
		.user = user,
		.home = home,
		.shell = "/bin/zsh",
		.uid = 1000,
		.gid = 1001,
		.label = "s",
		.hostname = "sandbox",
		.mounts = mounts,
		.nmounts = 2,
	};
	struct plan *plan = calloc(1, sizeof(*plan));

	assert_non_null(plan);
	assert_int_equal(etc_files_make(&in, pool, plan), 0);
	return plan;
}

static const char *
text_of(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->nfiles; i++)
		if (strcmp(plan->files[i].path, path) == 0)
			return (const char *)plan->files[i].content.data;
	fail_msg("no %s", path);
	return NULL;
}

static void
the_run_user_is_the_only_one(void **state)
{
	struct etc_host host = { 0 };
	struct pool pool = { NULL };
	struct plan *plan = make(&pool, &host, "me", "/home/me", "/srv/tree");

	(void)state;
	assert_string_equal(text_of(plan, "/etc/passwd"),
	    "root:x:0:0:root:/root:/usr/sbin/nologin\n"
	    "me:x:1000:1001::/home/me:/bin/zsh\n"
	    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	assert_non_null(strstr(text_of(plan, "/etc/group"), "me:x:1001:\n"));
	assert_non_null(strstr(text_of(plan, "/etc/resolv.conf"),
	    "nameserver 127.0.0.1\n"));
	assert_string_equal(text_of(plan, "/etc/hostname"), "sandbox\n");
	assert_int_equal(strlen(text_of(plan, "/etc/machine-id")), 33);
	free(plan);
	pool_done(&pool);
}

static void
a_name_cannot_add_a_line(void **state)
{
	struct etc_host host = { 0 };
	struct pool pool = { NULL };
	struct plan *plan =
	    make(&pool, &host, "x:0:0\nroot2:x:0", "/home/a:b", "/srv/tree");
	const char *passwd = text_of(plan, "/etc/passwd");
	size_t lines = 0;

	(void)state;
	for (const char *p = passwd; *p != '\0'; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 3);
	assert_null(strstr(passwd, "root2"));
	assert_non_null(strstr(passwd, "\nuser:x:1000:1001::/:/bin/zsh\n"));
	free(plan);
	pool_done(&pool);
}

static void
a_path_cannot_add_a_setting(void **state)
{
	struct etc_host host = { 0 };
	struct pool pool = { NULL };
	struct plan *plan = make(&pool, &host, "me", "/home/me",
	    "/a\"\n[core]\n\tsshCommand = evil\\");

	(void)state;
	assert_non_null(strstr(text_of(plan, "/etc/gitconfig"),
	    "\tdirectory = \"/a\\\"\\n[core]\\n\tsshCommand = evil\\\\\"\n"));
	assert_null(strstr(text_of(plan, "/etc/gitconfig"), "/file"));
	free(plan);
	pool_done(&pool);
}

static void
the_hosts_profile_cannot_change_path(void **state)
{
	struct etc_host host = { .profile = profile, .ca_bundle = ca };
	struct pool pool = { NULL };
	struct plan *plan = make(&pool, &host, "me", "/home/me", "/srv/tree");
	FILE *shell;
	char line[64] = "";

	(void)state;
	assert_non_null(strstr(text_of(plan, "/etc/gitconfig"),
	    "sslCAInfo = \"/etc/ssl/certs/ca-certificates.crt\"\n"));
	/* A real shell reads it: PATH stays although the text returns. */
	assert_int_equal(setenv("PROFILE", text_of(plan, "/etc/profile"), 1),
	    0);
	shell = popen("PATH=/given; eval \"$PROFILE\"; echo \"$PATH\"", "r");
	assert_non_null(shell);
	assert_non_null(fgets(line, sizeof(line), shell));
	assert_int_equal(pclose(shell), 0);
	assert_string_equal(line, "/given\n");
	free(plan);
	pool_done(&pool);
}

static void
only_two_settings_of_the_host_are_kept(void **state)
{
	struct etc_host host = { 0 };

	(void)state;
	etc_host_gitconfig(&host,
	    "[core]\n\tsshCommand = evil\n"
	    "\tdirectory = /not/safe\n[safe]\n  directory = /srv/git\n"
	    "\tDirectory=\"/srv/b\"\n[http]\n\tsslCAInfo = /ca.pem\n"
	    "\tproxy = http://evil\n[url \"x\"]\n\tinsteadOf = y\n");
	assert_int_equal(host.nsafe, 2);
	assert_string_equal(host.safe[0], "/srv/git");
	assert_string_equal(host.safe[1], "/srv/b");
	assert_string_equal(host.git_ca, "/ca.pem");
	etc_host_done(&host);
}

static void
the_machine_id_is_the_sessions_own(void **state)
{
	struct etc_host host = { 0 };
	struct pool pool = { NULL };
	struct plan *a = make(&pool, &host, "me", "/home/me", "/srv/tree");
	struct plan *b = make(&pool, &host, "me", "/home/me", "/srv/tree");

	(void)state;
	assert_string_equal(text_of(a, "/etc/machine-id"),
	    text_of(b, "/etc/machine-id"));
	free(a);
	free(b);
	pool_done(&pool);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_run_user_is_the_only_one),
		cmocka_unit_test(a_name_cannot_add_a_line),
		cmocka_unit_test(a_path_cannot_add_a_setting),
		cmocka_unit_test(the_hosts_profile_cannot_change_path),
		cmocka_unit_test(only_two_settings_of_the_host_are_kept),
		cmocka_unit_test(the_machine_id_is_the_sessions_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
