/*
 * The look-up's paths to results, as the user who runs the test.
 */
#include <sys/stat.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "launcherd/lookup/resolve.h"
#include "protocol/lookup.h"

static char dir[] = "/tmp/stockade-resolve-XXXXXX";
static struct lookup_question question;
static struct lookup_results results;

static int
make_tree(void **state)
{
	char path[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/d", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/l", dir);
	assert_int_equal(symlink("d", path), 0);
	return 0;
}

static int
remove_tree(void **state)
{
	char path[64];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/l", dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/d", dir);
	(void)rmdir(path);
	return rmdir(dir);
}

/* Results point into `out`, which the caller frees. */
static void
ask(const char *path, const char *home, struct wire_out *out)
{
	question.nitems = 1;
	question.items[0].path = path;
	wire_out_init(out);
	assert_int_equal(resolve_all(&question, home, 5000, out), 0);
	assert_int_equal(lookup_results_decode(out->data, out->len, &results),
	    0);
	assert_int_equal(results.nresults, 1);
}

static void
a_link_has_two_spellings(void **state)
{
	char path[64], want[64];
	struct wire_out out;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/l", dir);
	(void)snprintf(want, sizeof(want), "%s/d", dir);
	ask(path, "/none", &out);
	assert_string_equal(results.results[0].literal, path);
	assert_string_equal(results.results[0].resolved, want);
	assert_int_equal(results.results[0].kind, LOOKUP_DIR);
	wire_out_done(&out);
}

static void
the_tilde_is_the_home(void **state)
{
	static const struct {
		const char *path;
		const char *home;
		const char *want;
	} rows[] = {
		{ "~/x", "/h", "/h/x" },
		{ "~/x", "/h/", "/h/x" },
		{ "~/x", "/", "/x" },
		{ "/~/x", "/h", "/~/x" },
	};
	struct wire_out out;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ask(rows[i].path, rows[i].home, &out);
		assert_string_equal(results.results[0].literal, rows[i].want);
		assert_int_equal(results.results[0].error, ENOENT);
		wire_out_done(&out);
	}
}

static void
a_path_that_grows_too_long_is_a_result(void **state)
{
	static char path[4096], home[1025];
	struct wire_out out;

	(void)state;
	memset(home, 'h', sizeof(home) - 1);
	home[0] = '/';
	memset(path, 'p', sizeof(path) - 1);
	memcpy(path, "~/", 2);
	ask(path, home, &out);
	assert_int_equal(results.results[0].error, ENAMETOOLONG);
	assert_string_equal(results.results[0].literal, path);
	wire_out_done(&out);
}

static void
the_budget_ends_it(void **state)
{
	struct wire_out out;

	(void)state;
	question.nitems = LOOKUP_ITEMS_MAX;
	for (size_t i = 0; i < LOOKUP_ITEMS_MAX; i++)
		question.items[i].path = "/usr/../usr/../usr/../usr/bin";
	wire_out_init(&out);
	assert_int_equal(resolve_all(&question, "/", 0, &out), -ETIMEDOUT);
	wire_out_done(&out);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_has_two_spellings),
		cmocka_unit_test(the_tilde_is_the_home),
		cmocka_unit_test(a_path_that_grows_too_long_is_a_result),
		cmocka_unit_test(the_budget_ends_it),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
