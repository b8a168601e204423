/*
 * The start scan on small trees, as the user who runs the test.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "launcherd/lookup/resolve.h"
#include "protocol/guard.h"
#include "protocol/lookup.h"

static char top[64];
static struct lookup_question question;
static struct lookup_results results;
static struct wire_out out;
static char paths[8][128];
static size_t npaths;

static const struct dfa_rule rules[] = {
	{ "**/.env", DFA_WRITE, 1, DFA_BUILTIN, true },
	{ "**/*.key", DFA_WRITE, 1, DFA_BUILTIN, true },
	{ "**/.git/hooks/**", DFA_WRITE, 1, DFA_GIT, true },
	{ "**/.git/config", DFA_WRITE, 1, DFA_GIT, true },
	{ "/hooks/**", DFA_WRITE, 2, DFA_GIT, true },
	{ "/config", DFA_WRITE, 2, DFA_GIT, true },
	{ "/objects/info/alternates", DFA_WRITE, 2, DFA_GIT, true },
	{ "/modules/**/config", DFA_WRITE, 2, DFA_GIT, true },
};

/* Directories rest for two seconds before they are trusted: the wall clock of
 * the scan goes that much ahead. */
int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);

int
__wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	int r = __real_clock_gettime(id, t);

	if (id == CLOCK_REALTIME)
		t->tv_sec += 10;
	return r;
}

static const char *
at(const char *name)
{
	static char path[4][256];
	static unsigned i;

	i = (i + 1) % 4;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", top, name);
	return path[i];
}

static void
dir(const char *name)
{
	assert_int_equal(mkdir(at(name), 0755), 0);
}

static void
file(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int
make(void **state)
{
	(void)state;
	(void)strcpy(top, "/tmp/stockade-scan-XXXXXX");
	assert_non_null(mkdtemp(top));
	memset(&question, 0, sizeof(question));
	question.scan.entries_max = 1000;
	question.scan.time_ms = 5000;
	question.scan.nrules = sizeof(rules) / sizeof(rules[0]);
	memcpy(question.scan.rules, rules, sizeof(rules));
	npaths = 0;
	return 0;
}

static int
clean(void **state)
{
	char line[128];

	(void)state;
	wire_out_done(&out);
	(void)snprintf(line, sizeof(line), "rm -rf %s", top);
	return system(line);
}

static void
item(const char *name, enum lookup_use use)
{
	struct lookup_item *i = &question.items[question.nitems++];

	(void)snprintf(paths[npaths], sizeof(paths[0]), "%s", at(name));
	i->path = paths[npaths++];
	i->use = use;
}

static void
scan(void)
{
	wire_out_done(&out);
	wire_out_init(&out);
	assert_int_equal(resolve_all(&question, at("home"), 5000, &out), 0);
	assert_int_equal(lookup_results_decode(out.data, out.len, &results), 0);
}

static const struct lookup_found *
found(enum lookup_what what, const char *name)
{
	for (size_t i = 0; i < results.nfound; i++)
		if (results.found[i].what == what &&
		    strcmp(results.found[i].path, at(name)) == 0)
			return &results.found[i];
	return NULL;
}

static void
tree(void)
{
	dir("t");
	dir("t/a");
	dir("t/.git");
	dir("t/.git/hooks");
	file("t/.git/hooks/x", "");
	file("t/.git/config", "");
	file("t/a/x.KEY", "");
	file("t/.env", "");
	file("t/plain", "");
	item("t", LOOKUP_USE_WRITABLE);
}

static void
names_are_found_and_a_directory_as_a_whole(void **state)
{
	(void)state;
	tree();
	scan();
	assert_int_equal(found(LOOKUP_NAME, "t/.env")->kind, LOOKUP_FILE);
	assert_non_null(found(LOOKUP_NAME, "t/a/x.KEY"));
	assert_non_null(found(LOOKUP_NAME, "t/.git/config"));
	assert_int_equal(found(LOOKUP_NAME, "t/.git/hooks")->kind, LOOKUP_DIR);
	assert_null(found(LOOKUP_NAME, "t/.git/hooks/x"));
	assert_int_equal(results.nfound, 4);
	assert_int_equal(results.stopped, 0);
	assert_int_equal(results.entries, 8);
}

/* What is sent compiled is what is looked for; a broken table is no scan. */
static void
a_compiled_table_is_taken(void **state)
{
	static struct dfa dfa;
	const struct dfa_rules in = { .rules = rules,
		.nrules = 1,
		.nroots = LOOKUP_ROOTS };
	struct wire_out table;

	(void)state;
	tree();
	assert_int_equal(dfa_compile(&in, &dfa, NULL), 0);
	wire_out_init(&table);
	guard_tables_encode(&dfa, &table);
	question.scan.table = (struct wire_view){ table.data, table.len };
	scan();
	assert_non_null(found(LOOKUP_NAME, "t/.env"));
	assert_int_equal(results.nfound, 1);
	question.scan.table.len--;
	wire_out_done(&out);
	wire_out_init(&out);
	assert_int_equal(resolve_all(&question, at("home"), 5000, &out),
	    -EPROTO);
	wire_out_done(&table);
}

/* More patterns than a table holds, and literal ones of any depth. */
static void
any_number_of_patterns_is_looked_for(void **state)
{
	static char globs[256][160], names[1024][32];
	struct lookup_scan *s = &question.scan;

	(void)state;
	tree();
	for (unsigned i = 0; i < 256; i++) {
		(void)snprintf(globs[i], sizeof(globs[i]), "%s/**/*a%u*b%u*",
		    top, i, i);
		s->rules[s->nrules++] = (struct dfa_rule){ globs[i], DFA_WRITE,
			1, DFA_SPEC, false };
	}
	for (unsigned i = 0; i < 1024; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "**/name-%u.txt", i);
		s->rules[s->nrules++] = (struct dfa_rule){ names[i], DFA_WRITE,
			3, DFA_SPEC, false };
	}
	file("t/a/xa201yb201", "");
	file("t/a/xa201yb7", "");
	file("t/a/name-77.txt", "");
	scan();
	assert_non_null(found(LOOKUP_NAME, "t/a/xa201yb201"));
	assert_null(found(LOOKUP_NAME, "t/a/xa201yb7"));
	assert_non_null(found(LOOKUP_NAME, "t/a/name-77.txt"));
	assert_non_null(found(LOOKUP_NAME, "t/.env"));
	assert_int_equal(results.nfound, 6);
}

static void
a_readable_place_has_no_names(void **state)
{
	(void)state;
	tree();
	question.items[0].use = LOOKUP_USE_READABLE;
	scan();
	assert_int_equal(results.nfound, 0);
}

static void
hard_links_are_found_on_both_sides(void **state)
{
	(void)state;
	tree();
	dir("home");
	dir("home/.ssh");
	file("home/.ssh/id", "");
	file("home/.bashrc", "");
	file("home/lone", "");
	item("home/.ssh", LOOKUP_USE_DENIED);
	item("home/.bashrc", LOOKUP_USE_DENIED);
	assert_int_equal(link(at("home/.ssh/id"), at("t/a/one")), 0);
	assert_int_equal(link(at("home/.bashrc"), at("t/a/two")), 0);
	assert_int_equal(link(at("t/.env"), at("t/three")), 0);
	assert_int_equal(link(at("t/.git/hooks/x"), at("t/four")), 0);
	assert_int_equal(link(at("t/plain"), at("t/five")), 0);
	scan();
	assert_int_equal(found(LOOKUP_LINK, "t/a/one")->item, 1);
	assert_int_equal(found(LOOKUP_LINK, "t/a/two")->item, 2);
	assert_int_equal(found(LOOKUP_LINK, "t/three")->item, LOOKUP_NO_ITEM);
	assert_non_null(found(LOOKUP_LINK, "t/four"));
	assert_null(found(LOOKUP_LINK, "t/five"));
	assert_null(found(LOOKUP_LINK, "t/plain"));
	assert_int_equal(results.nfound, 8);
}

static void
sockets_are_found_everywhere(void **state)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	tree();
	question.items[0].use = LOOKUP_USE_READABLE;
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s",
	    at("t/.git/hooks/s"));
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	(void)close(fd);
	scan();
	assert_non_null(found(LOOKUP_SOCK, "t/.git/hooks/s"));
	question.items[0].use = LOOKUP_USE_WRITABLE;
	scan();
	assert_non_null(found(LOOKUP_SOCK, "t/.git/hooks/s"));
}

static void
what_a_denied_link_leads_to_is_found(void **state)
{
	(void)state;
	tree();
	assert_int_equal(symlink("../plain", at("t/a/.env")), 0);
	assert_int_equal(symlink("../none", at("t/a/b.key")), 0);
	assert_int_equal(symlink("/nowhere/x", at("t/a/c.key")), 0);
	scan();
	assert_int_equal(found(LOOKUP_TARGET, "t/plain")->kind, LOOKUP_FILE);
	assert_int_equal(found(LOOKUP_TARGET, "t/none")->kind, LOOKUP_NONE);
	assert_null(found(LOOKUP_NAME, "t/a/.env"));
	assert_int_equal(results.nfound, 4 + 3);
}

static void
git_files_and_configuration_are_followed(void **state)
{
	(void)state;
	tree();
	dir("home");
	file("home/.gitconfig", "[core]\nhookspath=.userhooks\n");
	file("t/.git/config",
	    "[core]\nhooksPath=.husky\n[include]\n"
	    "path=../shared\n[includeIf \"x\"]path=/no/such\n");
	file("t/shared", "[core]\nhooksPath=\"a/../../b\"\n");
	dir("t/m");
	dir("t/m/wt");
	dir("t/wt");
	dir("t/common");
	dir("t/common/objects");
	dir("t/common/refs");
	dir("t/common/hooks");
	dir("t/common/modules");
	dir("t/common/modules/s");
	file("t/common/modules/s/config", "");
	file("t/common/HEAD", "");
	file("t/wt/.git", "gitdir: ../m/wt\n");
	file("t/m/wt/commondir", "../../common\n");
	scan();
	assert_int_equal(found(LOOKUP_TARGET, "t/.husky")->kind, LOOKUP_NONE);
	assert_non_null(found(LOOKUP_TARGET, "t/.userhooks"));
	assert_non_null(found(LOOKUP_TARGET, "t/wt/.userhooks"));
	assert_non_null(found(LOOKUP_TARGET, "t/shared"));
	assert_non_null(found(LOOKUP_TARGET, "b"));
	assert_non_null(found(LOOKUP_TARGET, "t/wt/.git"));
	assert_int_equal(found(LOOKUP_GIT, "t/m/wt")->kind, LOOKUP_DIR);
	assert_non_null(found(LOOKUP_GIT, "t/common"));
	assert_non_null(found(LOOKUP_NAME, "t/common/hooks"));
	assert_non_null(found(LOOKUP_NAME, "t/common/modules/s/config"));
	assert_int_equal(results.stopped, 0);
}

static void
hostile_git_files_end(void **state)
{
	(void)state;
	tree();
	file("t/.git/config", "[include]\npath=config\npath=loop\n");
	file("t/.git/loop", "[include]\npath=config\n");
	dir("t/a/b");
	file("t/a/.git", "gitdir: a");
	assert_int_equal(symlink(".git", at("t/a/b/.git")), 0);
	assert_int_equal(mkfifo(at("t/.git/commondir"), 0600), 0);
	scan();
	assert_int_equal(results.stopped & LOOKUP_STOP_GIT, LOOKUP_STOP_GIT);
	file("t/.git/config", "[core\n");
	scan();
	assert_int_equal(results.stopped & LOOKUP_STOP_CONFIG,
	    LOOKUP_STOP_CONFIG);
}

static void
limits_stop_it_and_are_told(void **state)
{
	(void)state;
	tree();
	question.scan.entries_max = 3;
	scan();
	assert_int_equal(results.stopped, LOOKUP_STOP_ENTRIES);
	assert_int_equal(results.entries, 3);
	question.scan.entries_max = 1000;
	question.scan.time_ms = 0;
	for (int i = 0; i < 300; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "t/a/%d", i);
		dir(name);
	}
	scan();
	assert_true(
	    (results.stopped & LOOKUP_STOP_TIME) != 0 || results.entries > 300);
	question.scan.entries_max = 0;
	scan();
	assert_int_equal(results.entries + results.nfound, 0);
}

static void
no_link_of_a_tree_is_walked(void **state)
{
	(void)state;
	tree();
	dir("outside");
	file("outside/x.key", "");
	assert_int_equal(symlink("../outside", at("t/l")), 0);
	assert_int_equal(symlink("..", at("t/a/up")), 0);
	scan();
	assert_int_equal(results.nfound, 4);
}

static void
a_rule_that_is_none_is_an_error(void **state)
{
	(void)state;
	tree();
	question.scan.rules[0].glob = "a//b";
	wire_out_init(&out);
	assert_int_equal(resolve_all(&question, "/", 5000, &out), -EINVAL);
}

/* The same question again, with what the last answer told. */
static void
scan_again(void)
{
	static uint8_t seen[LOOKUP_SEEN_MAX];

	memcpy(seen, results.seen.data, results.seen.len);
	question.scan.seen = (struct wire_view){ seen, results.seen.len };
	scan();
}

static void
plain(void)
{
	dir("t");
	dir("t/a");
	dir("t/a/b");
	dir("t/n");
	file("t/a/b/1", "");
	file("t/a/b/2", "");
	file("t/n/.env", "");
	file("t/a/3", "");
	item("t", LOOKUP_USE_WRITABLE);
}

static void
a_directory_that_did_not_change_is_not_read_again(void **state)
{
	(void)state;
	plain();
	scan();
	assert_int_equal(results.entries, 7);
	scan_again();
	/* a, n; b; .env */
	assert_int_equal(results.entries, 4);
	assert_int_equal(results.nfound, 1);
	scan_again();
	assert_int_equal(results.entries, 4);
	file("t/a/b/x.key", "");
	scan_again();
	assert_int_equal(results.nfound, 2);
	assert_non_null(found(LOOKUP_NAME, "t/a/b/x.key"));
	assert_int_equal(rename(at("t/a/3"), at("t/a/.env")), 0);
	scan_again();
	assert_int_equal(results.nfound, 3);
	assert_int_equal(rename(at("t/a"), at("t/.git")), 0);
	assert_int_equal(rename(at("t/.git/b"), at("t/.git/hooks")), 0);
	scan_again();
	assert_int_equal(found(LOOKUP_NAME, "t/.git/hooks")->kind, LOOKUP_DIR);
}

static void
another_question_reads_all(void **state)
{
	(void)state;
	plain();
	file("secret", "");
	scan();
	question.scan.rules[0].glob = "**/1";
	scan_again();
	assert_non_null(found(LOOKUP_NAME, "t/a/b/1"));
	assert_int_equal(link(at("secret"), at("t/a/b/one")), 0);
	scan_again();
	scan_again();
	item("secret", LOOKUP_USE_DENIED);
	scan_again();
	assert_non_null(found(LOOKUP_LINK, "t/a/b/one"));
}

static void
a_moved_directory_is_another_one(void **state)
{
	(void)state;
	dir("t");
	dir("t/a");
	dir("t/a/hooks");
	file("t/a/hooks/x", "");
	item("t", LOOKUP_USE_WRITABLE);
	scan();
	assert_int_equal(results.nfound, 0);
	assert_int_equal(rename(at("t/a"), at("t/.git")), 0);
	scan_again();
	assert_non_null(found(LOOKUP_NAME, "t/.git/hooks"));
}

static void
broken_memory_is_forgotten(void **state)
{
	static uint8_t bytes[4096];
	size_t len;

	(void)state;
	plain();
	scan();
	len = results.seen.len;
	assert_true(len > 0 && len < sizeof(bytes));
	memcpy(bytes, results.seen.data, len);
	for (size_t n = 0; n < len; n++) {
		question.scan.seen = (struct wire_view){ bytes, n };
		scan();
		assert_int_equal(results.entries, 7);
	}
	for (size_t n = 0; n < len; n++) {
		bytes[n] ^= 0x55;
		question.scan.seen = (struct wire_view){ bytes, len };
		scan();
		/* A name may be another one: who keeps it is trusted. */
		assert_true(results.nfound <= 1);
		bytes[n] ^= 0x55;
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, make, clean)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_compiled_table_is_taken),
		T(any_number_of_patterns_is_looked_for),
		T(names_are_found_and_a_directory_as_a_whole),
		T(a_readable_place_has_no_names),
		T(hard_links_are_found_on_both_sides),
		T(sockets_are_found_everywhere),
		T(what_a_denied_link_leads_to_is_found),
		T(git_files_and_configuration_are_followed),
		T(hostile_git_files_end),
		T(limits_stop_it_and_are_told),
		T(no_link_of_a_tree_is_walked),
		T(a_rule_that_is_none_is_an_error),
		T(a_directory_that_did_not_change_is_not_read_again),
		T(another_question_reads_all),
		T(a_moved_directory_is_another_one),
		T(broken_memory_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
