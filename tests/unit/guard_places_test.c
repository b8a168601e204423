/*
 * Where a guarded run may write without being asked (launcherd/init/guard.c).
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "launcherd/init/guard.h"
#include "protocol/plan.h"

static void
what_holds_a_root_is_not_granted(void **state)
{
	static const char *const writable[] = { "/tmp", "/home/u",
		"/home/u/proj", "/dev/shm", "/home/u/.cache" };
	static const char *const roots[] = { "/home/u/proj" };
	struct guard_places p;

	(void)state;
	assert_int_equal(guard_sort_places(writable, ARRAY_LEN(writable), roots,
			     ARRAY_LEN(roots), &p),
	    0);
	assert_int_equal(p.nguarded, 2);
	assert_string_equal(p.guarded[0], "/home/u/proj");
	assert_string_equal(p.guarded[1], "/home/u");
	assert_int_equal(p.ngranted, 3);
	assert_string_equal(p.granted[0], "/tmp");
	assert_string_equal(p.granted[1], "/dev/shm");
	assert_string_equal(p.granted[2], "/home/u/.cache");
	assert_int_equal(guard_check_places(&p, NULL), 0);
}

static void
what_lies_in_a_root_is_not_granted(void **state)
{
	static const char *const writable[] = { "/w", "/w/sub", "/ww" };
	static const char *const roots[] = { "/w" };
	struct guard_places p;

	(void)state;
	assert_int_equal(guard_sort_places(writable, 3, roots, 1, &p), 0);
	assert_int_equal(p.nguarded, 1);
	assert_int_equal(p.ngranted, 1);
	assert_string_equal(p.granted[0], "/ww");
}

static void
a_grant_above_a_root_is_refused(void **state)
{
	struct guard_places p = { { "/home/u" }, 1, { "/home/u/a/b" }, 1 };
	const char *which = NULL;

	(void)state;
	assert_int_equal(guard_check_places(&p, &which), -EINVAL);
	assert_string_equal(which, "/home/u");
}

static void
a_root_that_cannot_be_is_refused(void **state)
{
	static const char *const writable[] = { "/w" };
	static const char *const everything[] = { "/" };
	static const char *const elsewhere[] = { "/x" };
	struct guard_places p;

	(void)state;
	assert_int_equal(guard_sort_places(writable, 1, everything, 1, &p),
	    -EINVAL);
	assert_int_equal(guard_sort_places(writable, 1, elsewhere, 1, &p),
	    -EINVAL);
}

/* Work tree in the home: the home must be asked for too. */
static void
a_plan_must_name_all_guarded_places(void **state)
{
	static struct plan plan;
	struct guard_places p;

	(void)state;
	plan.home = "/home/u";
	plan.nmounts = 2;
	plan.mounts[0] = (struct plan_mount){ .target = "/home/u/proj" };
	plan.mounts[1] =
	    (struct plan_mount){ .target = "/opt/lib", .read_only = true };
	plan.nroots = 2;
	plan.roots[0] = (struct plan_root){ "/home/u/proj", false };
	plan.roots[1] = (struct plan_root){ "/home/u", true };
	assert_int_equal(guard_check_plan(&plan, &p), 0);
	assert_int_equal(p.nguarded, 2);
	assert_int_equal(p.ngranted, 3);
	plan.nroots = 1;
	assert_int_equal(guard_check_plan(&plan, &p), -EINVAL);
	plan.nroots = 2;
	plan.roots[1].path = "/tmp";
	assert_int_equal(guard_check_plan(&plan, &p), -EINVAL);
	plan.roots[1].path = "/opt/lib";
	plan.roots[1].empty = false;
	assert_int_equal(guard_check_plan(&plan, &p), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_holds_a_root_is_not_granted),
		cmocka_unit_test(what_lies_in_a_root_is_not_granted),
		cmocka_unit_test(a_grant_above_a_root_is_refused),
		cmocka_unit_test(a_root_that_cannot_be_is_refused),
		cmocka_unit_test(a_plan_must_name_all_guarded_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
