/*
 * Toolchains of PATH in a home that the test makes: what is proposed, and what
 * never is (SPEC Y17, App.6).
 */
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/size.h"
#include "supervisor/ctl/toolchains.h"
#include "supervisor/ctl/toolchains_child.h"

static char top[] = "/tmp/toolchains-test-XXXXXX";
static char home[256], opt[256];

static const char *
at(const char *name)
{
	static char text[8][512];
	static unsigned next;
	char *p = text[next++ % 8];

	(void)snprintf(p, 512, "%s/%s", top, name);
	return p;
}

/* Makes the directories above the last component, too. */
static void
make_dir(const char *name)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s", at(name));
	for (char *p = path + strlen(top) + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		(void)mkdir(path, 0755);
		*p = '/';
	}
	(void)mkdir(path, 0755);
}

static void
make_file(const char *name)
{
	char dir[512];
	int fd;

	(void)snprintf(dir, sizeof(dir), "%s", name);
	*strrchr(dir, '/') = '\0';
	make_dir(dir);
	fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	(void)close(fd);
}

static void
make_link(const char *target, const char *name)
{
	char dir[512];

	(void)snprintf(dir, sizeof(dir), "%s", name);
	*strrchr(dir, '/') = '\0';
	make_dir(dir);
	assert_int_equal(symlink(target, at(name)), 0);
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st;
	(void)flag;
	(void)f;
	return remove(path);
}

static int
setup(void **state)
{
	(void)state;
	memcpy(top + sizeof(top) - 7, "XXXXXX", 6);
	if (mkdtemp(top) == NULL || chmod(top, 0755) < 0)
		return -1;
	(void)snprintf(home, sizeof(home), "%s/home", top);
	(void)snprintf(opt, sizeof(opt), "%s/opt", top);
	(void)mkdir(home, 0755);
	(void)mkdir(opt, 0755);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* PATH from names below the top, with one call. */
static void
find_more(const char *path, struct toolchains *ret,
    const struct toolchains_input *more)
{
	struct toolchains_input in = *more;
	char text[4096] = "";
	char names[4096];
	char *save = NULL;

	(void)snprintf(names, sizeof(names), "%s", path);
	for (char *p = strtok_r(names, ":", &save); p != NULL;
	     p = strtok_r(NULL, ":", &save)) {
		size_t len = strlen(text);

		(void)snprintf(text + len, sizeof(text) - len, "%s%s",
		    len == 0 ? "" : ":", at(p));
	}
	in.path = text;
	in.home = home;
	in.opt = opt;
	assert_int_equal(toolchains_find(&in, ret), 0);
}

static void
find(const char *path, struct toolchains *ret)
{
	const struct toolchains_input none = { 0 };

	find_more(path, ret, &none);
}

static const char *
rule_of(const struct toolchains *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->mounts[i].path, at(name)) == 0)
			return t->mounts[i].rule;
	return NULL;
}

static void
assert_mounts(const struct toolchains *t, size_t n, const char *const *names)
{
	for (size_t i = 0; i < n; i++)
		if (rule_of(t, names[i]) == NULL)
			fail_msg("%s is not mounted", names[i]);
	if (t->n != n) {
		for (size_t i = 0; i < t->n; i++)
			print_message("# %s (%s)\n", t->mounts[i].path,
			    t->mounts[i].rule);
		fail_msg("%zu mounts", t->n);
	}
}
#define MOUNTS(t, ...) \
	assert_mounts((t), ARRAY_LEN(((const char *const[]){ __VA_ARGS__ })), \
	    (const char *const[]){ __VA_ARGS__ })

static const char *
why_of(const struct toolchains *t, const char *name)
{
	for (size_t i = 0; i < t->nskipped; i++)
		if (strcmp(t->skipped[i].path, at(name)) == 0)
			return t->skipped[i].why;
	return "";
}

/* ------------------------------------------------ what is found */

static void
the_four_known_ones(void **state)
{
	struct toolchains t;

	(void)state;
	make_file("home/.nvm/versions/node/v20/bin/node");
	make_file("home/.pyenv/shims/python");
	make_file("home/.pyenv/libexec/pyenv");
	make_file("home/.cargo/bin/cargo");
	make_file("home/.cargo/credentials.toml");
	make_file("home/.rustup/toolchains/stable/bin/rustc");
	make_file("home/.rustup/settings.toml");
	make_file("home/.local/share/claude/versions/2.1");
	make_link("../share/claude/versions/2.1", "home/.local/bin/claude");
	find("home/.nvm/versions/node/v20/bin:home/.pyenv/shims:"
	     "home/.cargo/bin:home/.local/bin",
	    &t);
	MOUNTS(&t, "home/.nvm/versions/node/v20", "home/.pyenv",
	    "home/.cargo/bin", "home/.rustup/toolchains",
	    "home/.rustup/settings.toml", "home/.local/bin",
	    "home/.local/share/claude/versions");
	assert_string_equal(rule_of(&t, "home/.nvm/versions/node/v20"), "nvm");
	assert_int_equal(t.nskipped, 0);
	toolchains_done(&t);
}

static void
an_install_root_has_marks(void **state)
{
	struct toolchains t;

	(void)state;
	make_file("home/go/bin/gopls");
	make_file("home/go/pkg/x");
	make_file("home/Documents/bin/script");
	make_file("home/Documents/letter");
	make_file("home/bin/own");
	make_file("home/sdk/platform-tools/adb");
	make_file("opt/jdk/bin/java");
	make_file("opt/bin/x");
	find("home/go/bin:home/Documents/bin:home/bin:home/sdk/platform-tools:"
	     "opt/jdk/bin:opt/bin:usr/bin",
	    &t);
	MOUNTS(&t, "home/go", "home/Documents/bin", "home/bin",
	    "home/sdk/platform-tools", "opt/jdk", "opt/bin");
	assert_int_equal(t.nskipped, 0);
	toolchains_done(&t);
}

static void
links_lead_to_their_install_roots(void **state)
{
	struct toolchains t;

	(void)state;
	make_file("home/.local/pipx/venvs/black/bin/black");
	make_file("home/.local/pipx/venvs/black/pyvenv.cfg");
	make_file("home/.pyenv/versions/3.12/bin/python3.12");
	make_link("python3.12", "home/.pyenv/versions/3.12/bin/python3");
	make_link(at("home/.pyenv/versions/3.12/bin/python3"),
	    "home/.local/pipx/venvs/black/bin/python");
	make_link(at("home/.local/pipx/venvs/black/bin/black"),
	    "home/.local/bin/black");
	make_file("home/.bun/global/node_modules/@a/b/cli.js");
	make_link("../../.bun/global/node_modules/@a/b/cli.js",
	    "home/.local/bin/b");
	make_file("home/src/tool/run.sh");
	make_file("home/src/tool/part");
	make_link("../../src/tool/run.sh", "home/.local/bin/run");
	make_link("/usr/bin/env", "home/.local/bin/env");
	make_link("/nowhere/at/all", "home/.local/bin/gone");
	find("home/.local/bin", &t);
	MOUNTS(&t, "home/.local/bin", "home/.local/pipx/venvs/black",
	    "home/.pyenv/versions/3.12", "home/.bun/global/node_modules",
	    "home/src/tool");
	assert_int_equal(t.nskipped, 0);
	toolchains_done(&t);
}

static void
only_a_directory_of_the_tools_own_comes_with_it(void **state)
{
	struct toolchains t;

	(void)state;
	make_file("home/.local/share/tool/tool");
	make_file("home/.local/share/tool/part");
	make_file("home/.local/share/single");
	make_file("home/.local/lib/x");
	make_file("home/.config/tool/x");
	make_file("home/Documents/letters/x");
	make_file("home/src/x");
	make_file("home/apps/x");
	make_link("../Documents/letters", "home/apps/odd");
	make_link("../share/tool/tool", "home/.local/bin/tool");
	make_link("../share/single", "home/.local/bin/a");
	make_link("../lib/x", "home/.local/bin/b");
	make_link("../../.config/tool/x", "home/.local/bin/c");
	make_link("../../Documents/letters/x", "home/.local/bin/d");
	make_link("../../src/x", "home/.local/bin/e");
	find("home/.local/bin", &t);
	MOUNTS(&t, "home/.local/bin", "home/.local/share/tool",
	    "home/.local/share/single", "home/.local/lib/x",
	    "home/.config/tool/x", "home/Documents/letters/x", "home/src/x");
	assert_int_equal(t.nskipped, 5);
	assert_non_null(strstr(why_of(&t, "home/.local/share"), "--mount"));
	assert_non_null(strstr(why_of(&t, "home/src"), "only the file"));
	toolchains_done(&t);
	/* A place is what it leads to, too. */
	make_link("../apps/odd/x", "home/bin/f");
	find("home/bin", &t);
	MOUNTS(&t, "home/bin", "home/apps/odd/x");
	toolchains_done(&t);
}

static void
each_step_of_a_chain_is_there(void **state)
{
	struct toolchains t;

	(void)state;
	make_file("home/apps/v3/prog");
	make_link("v3", "home/apps/current");
	make_link("../apps/current/prog", "home/bin/prog");
	find("home/bin", &t);
	/* The service mounts it at apps/v3 as well. */
	MOUNTS(&t, "home/bin", "home/apps/current");
	toolchains_done(&t);
}

static void
a_path_entry_keeps_its_spelling(void **state)
{
	struct toolchains t;

	(void)state;
	make_file("home/.nvm/versions/node/v20/bin/node");
	make_file("home/.nvm/versions/node/v20/lib/x");
	make_link("versions/node/v20", "home/.nvm/current");
	find("home/.nvm/current/bin:home/.nvm/current//bin/", &t);
	MOUNTS(&t, "home/.nvm/current");
	toolchains_done(&t);
}

static void
what_the_run_has_anyway_is_left_to_it(void **state)
{
	const char *given[] = { at("home/project") };
	const struct toolchains_input more = { .given = given, .ngiven = 1 };
	struct toolchains t;

	(void)state;
	make_file("home/project/.venv/bin/python");
	make_file("home/project/.venv/lib/x");
	find_more("home/project/.venv/bin", &t, &more);
	assert_int_equal(t.n, 0);
	assert_int_equal(t.nskipped, 0);
	toolchains_done(&t);
	/* Twin: without the mount it is one. */
	find("home/project/.venv/bin", &t);
	MOUNTS(&t, "home/project/.venv");
	toolchains_done(&t);
}

/* ------------------------------------------------ what never is */

static void
nothing_holds_or_lies_in_a_read_denied_path(void **state)
{
	struct toolchains t;

	(void)state;
	make_file("home/.docker/bin/docker");
	make_file("home/.config/lib/x");
	make_file("home/.config/bin/x");
	make_file("home/.config/gh/hosts.yml");
	make_file("home/.ssh/id");
	make_link("../.ssh/id", "home/bin/key");
	make_link("../.ssh", "home/bin/keys");
	make_link("../.config", "home/bin/conf");
	find("home/.docker/bin:home/.config/bin:home/bin", &t);
	MOUNTS(&t, "home/.config/bin", "home/bin");
	assert_string_equal(why_of(&t, "home/.docker/bin"),
	    "on the read-deny list");
	assert_string_equal(why_of(&t, "home/.ssh/id"),
	    "on the read-deny list");
	assert_string_equal(why_of(&t, "home/.ssh"), "on the read-deny list");
	assert_string_equal(why_of(&t, "home/.config"),
	    "holds a path of the read-deny list");
	toolchains_done(&t);
}

static void
a_read_denied_path_counts_where_its_link_leads(void **state)
{
	struct toolchains t;

	(void)state;
	make_file("home/vault/bin/x");
	make_file("home/vault/lib/x");
	find("home/vault/bin", &t);
	MOUNTS(&t, "home/vault");
	toolchains_done(&t);
	make_link("vault", "home/.aws");
	find("home/vault/bin", &t);
	assert_int_equal(t.n, 0);
	assert_string_equal(why_of(&t, "home/vault/bin"),
	    "on the read-deny list");
	toolchains_done(&t);
}

static void
never_the_home_or_opt_as_a_whole(void **state)
{
	struct toolchains t;

	(void)state;
	make_file("home/lib/x");
	make_file("home/bin/x");
	make_file("opt/lib/x");
	make_link("..", "home/bin/up");
	make_link(home, "opt/h");
	find("home:opt:opt/h:home/bin", &t);
	MOUNTS(&t, "home/bin");
	assert_string_equal(why_of(&t, "home"), "the home or /opt as a whole");
	assert_string_equal(why_of(&t, "opt"), "the home or /opt as a whole");
	assert_string_equal(why_of(&t, "opt/h"), "the home or /opt as a whole");
	toolchains_done(&t);
}

static void
links_do_not_lead_outside(void **state)
{
	struct toolchains t;

	(void)state;
	make_file("elsewhere/lib/x");
	make_file("elsewhere/bin/x");
	make_link(at("elsewhere/bin"), "home/tools");
	make_link(at("elsewhere/bin/x"), "home/bin/x");
	make_link("/etc/shadow", "home/bin/shadow");
	make_link("/proc/self/fd/0", "home/bin/magic");
	make_link("loop", "home/bin/loop");
	find("home/tools:home/bin:elsewhere/bin", &t);
	MOUNTS(&t, "home/bin");
	assert_string_equal(why_of(&t, "home/tools"),
	    "leads outside the home and /opt");
	assert_string_equal(why_of(&t, "elsewhere/bin/x"),
	    "leads outside the home and /opt");
	assert_string_equal(why_of(&t, "home/bin/magic"),
	    "its links cannot be followed");
	toolchains_done(&t);
}

static void
odd_entries_reach_nothing(void **state)
{
	struct toolchains_input in = { .home = home, .opt = opt };
	struct toolchains t;
	char path[4096];

	(void)state;
	make_file("home/bin/x");
	make_file("home/file");
	assert_int_equal(mkfifo(at("home/fifo"), 0644), 0);
	make_link("../fifo", "home/bin/fifo");
	(void)snprintf(path, sizeof(path), "::.:bin:../bin:%s/x/../bin:%s:%s",
	    home, at("home/file"), at("home/absent/bin"));
	in.path = path;
	assert_int_equal(toolchains_find(&in, &t), 0);
	assert_int_equal(t.n, 0);
	assert_int_equal(t.nskipped, 1);
	assert_string_equal(t.skipped[0].why, "not a clean path");
	toolchains_done(&t);
	in.path = NULL;
	assert_int_equal(toolchains_find(&in, &t), 0);
	assert_int_equal(t.n, 0);
	find("home/bin", &t);
	MOUNTS(&t, "home/bin");
	assert_string_equal(why_of(&t, "home/fifo"),
	    "neither a directory nor a file");
	toolchains_done(&t);
}

static void
the_input_is_checked(void **state)
{
	const struct toolchains_ids root = { 0 };
	struct toolchains_input in = { .path = "/x", .home = "/" };
	struct toolchains t;

	(void)state;
	assert_int_equal(toolchains_find(&in, &t), -EINVAL);
	in.home = "home";
	assert_int_equal(toolchains_find(&in, &t), -EINVAL);
	in.home = home;
	in.ids = &root;
	assert_int_equal(toolchains_find(&in, &t), -EINVAL);
	toolchains_done(&t);
}

static void
numbers_are_bounded(void **state)
{
	struct toolchains t;
	char name[64];

	(void)state;
	for (unsigned i = 0; i < TOOLCHAINS_MAX + 100; i++) {
		char link[64];

		(void)snprintf(name, sizeof(name), "home/src/f%u", i);
		make_file(name);
		(void)snprintf(name, sizeof(name), "home/bin/f%u", i);
		(void)snprintf(link, sizeof(link), "../src/f%u", i);
		make_link(link, name);
	}
	find("home/bin", &t);
	assert_int_equal(t.n, TOOLCHAINS_MAX);
	assert_int_equal(t.nskipped, TOOLCHAINS_SKIPPED_MAX);
	/* One is about home/src. */
	assert_int_equal(t.more_skipped, 102 - TOOLCHAINS_SKIPPED_MAX);
	assert_string_equal(t.skipped[1].why, "too many toolchains");
	toolchains_done(&t);
}

/* ------------------------------------------------ as another user */

static void
only_what_the_runs_user_can_read(void **state)
{
	const struct toolchains_ids ids = { .uid = 65534, .gid = 65534 };
	const struct toolchains_input as_user = { .ids = &ids };
	struct toolchains t;

	(void)state;
	if (getuid() != 0)
		skip();
	make_file("home/open/bin/x");
	make_file("home/open/lib/x");
	make_file("home/closed/bin/x");
	make_file("home/closed/lib/x");
	make_file("home/half/bin/x");
	make_file("home/half/lib/x");
	make_link("../closed/bin/x", "home/bin/x");
	assert_int_equal(chmod(at("home/closed"), 0700), 0);
	assert_int_equal(chmod(at("home/half"), 0711), 0);
	find_more("home/open/bin:home/closed/bin:home/half/bin:home/bin", &t,
	    &as_user);
	MOUNTS(&t, "home/open", "home/half/bin", "home/bin");
	assert_string_equal(why_of(&t, "home/closed/bin"),
	    "the run's user cannot read it");
	assert_string_equal(why_of(&t, "home/bin/x"),
	    "the run's user cannot read it");
	toolchains_done(&t);
	/* Twin: as root the closed one is found. */
	find("home/closed/bin", &t);
	MOUNTS(&t, "home/closed");
	toolchains_done(&t);
	assert_int_equal(getuid(), 0);
}

static int
hang(const struct toolchains_input *in, struct toolchains *ret)
{
	(void)in;
	(void)ret;
	while (pause() == -1)
		continue;
	return 0;
}

static int
tell_error(const struct toolchains_input *in, struct toolchains *ret)
{
	(void)in;
	(void)ret;
	return -ENOMEM;
}

static int
check_ids(const struct toolchains_input *in, struct toolchains *ret)
{
	(void)in;
	if (getuid() != 65534 || getgroups(0, NULL) != 1 || setuid(0) == 0 ||
	    prctl(PR_GET_DUMPABLE) != 0)
		return -EPERM;
	return toolchains_add_skipped(ret, "seen", toolchains_word(0));
}

static void
the_child_is_that_user_and_has_a_deadline(void **state)
{
	const gid_t group = 12345;
	const struct toolchains_ids ids = { .uid = 65534,
		.gid = 65534,
		.groups = &group,
		.ngroups = 1 };
	const struct toolchains_input in = { .ids = &ids };
	struct toolchains t;

	(void)state;
	if (getuid() != 0)
		skip();
	assert_int_equal(toolchains_child_run(&in, check_ids, &t), 0);
	assert_int_equal(t.nskipped, 1);
	toolchains_done(&t);
	assert_int_equal(toolchains_child_run(&in, tell_error, &t), -ENOMEM);
	assert_int_equal(toolchains_child_run(&in, hang, &t), -ETIMEDOUT);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void
results_are_decoded_strictly(void **state)
{
	static uint8_t bytes[TOOLCHAINS_BYTES_MAX], copy[64];
	struct toolchains t, back;
	size_t len;

	(void)state;
	memset(&t, 0, sizeof(t));
	assert_int_equal(toolchains_add_mount(&t, "/a", toolchains_word(0)), 0);
	assert_int_equal(toolchains_add_skipped(&t, "b", toolchains_word(4)),
	    0);
	t.more_skipped = 70000;
	len = toolchains_encode(&t, bytes, sizeof(bytes));
	assert_int_equal(len, 6 + 5 + 8);
	assert_int_equal(toolchains_encode(&t, copy, len - 1), 0);
	assert_int_equal(toolchains_decode(bytes, len, &back), 0);
	assert_string_equal(back.mounts[0].path, "/a");
	assert_ptr_equal(back.mounts[0].rule, toolchains_word(0));
	assert_string_equal(back.skipped[0].path, "b");
	assert_int_equal(back.more_skipped, 70000);
	toolchains_done(&back);
	toolchains_done(&t);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(toolchains_decode(bytes, i, &back), -EPROTO);
	for (size_t i = 0; i < len; i++) {
		memcpy(copy, bytes, len);
		copy[i] = 0xff;
		if (toolchains_decode(copy, len, &back) == 0)
			toolchains_done(&back);
	}
	memcpy(copy, bytes, len);
	copy[4] = 'a'; /* not absolute */
	assert_int_equal(toolchains_decode(copy, len, &back), -EPROTO);
	memcpy(copy, bytes, len);
	copy[1] = 0xff; /* no such word */
	assert_int_equal(toolchains_decode(copy, len, &back), -EPROTO);
	memcpy(copy, bytes, len);
	/* The number of a word's second place, found by the fuzzer. */
	for (unsigned i = 0; toolchains_word(i) != NULL; i++) {
		copy[1] = (uint8_t)i;
		if (toolchains_decode(copy, len, &back) != 0)
			continue;
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(toolchains_word(k),
			    toolchains_word(i));
		toolchains_done(&back);
	}
	memcpy(copy, bytes, len);
	copy[len] = 0; /* a byte behind the end */
	assert_int_equal(toolchains_decode(copy, len + 1, &back), -EPROTO);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_four_known_ones),
		T(an_install_root_has_marks),
		T(links_lead_to_their_install_roots),
		T(only_a_directory_of_the_tools_own_comes_with_it),
		T(each_step_of_a_chain_is_there),
		T(a_path_entry_keeps_its_spelling),
		T(what_the_run_has_anyway_is_left_to_it),
		T(nothing_holds_or_lies_in_a_read_denied_path),
		T(a_read_denied_path_counts_where_its_link_leads),
		T(never_the_home_or_opt_as_a_whole),
		T(links_do_not_lead_outside),
		T(odd_entries_reach_nothing),
		T(the_input_is_checked),
		T(numbers_are_bounded),
		T(only_what_the_runs_user_can_read),
		T(the_child_is_that_user_and_has_a_deadline),
		T(results_are_decoded_strictly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
