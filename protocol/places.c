/*
 * See places.h. The plan is control's word: a wrong list can make a run poorer,
 * or be refused here; it never gives a grant that reaches into a guarded root.
 */
#include "protocol/places.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/path.h"
#include "common/size.h"
#include "protocol/plan.h"

/* SPEC C3, C16: private to each run. */
static const char *const private_places[] = { "/tmp", "/dev/shm",
	"/run/stockade/run" };

static bool
holds_any(const char *place, const char *const *roots, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (path_is_within(roots[i], place))
			return true;
	return false;
}

static bool
in_any(const char *place, const char *const *roots, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (path_is_within(place, roots[i]))
			return true;
	return false;
}

int
guard_sort_places(const char *const *writable, size_t nwritable,
    const char *const *roots, size_t nroots, struct guard_places *ret)
{
	ret->ngranted = ret->nguarded = 0;
	for (size_t i = 0; i < nroots; i++) {
		if (strcmp(roots[i], "/") == 0 ||
		    !in_any(roots[i], writable, nwritable))
			return -EINVAL;
		if (ret->nguarded == GUARD_PLACES_MAX)
			return -E2BIG;
		ret->guarded[ret->nguarded++] = roots[i];
	}
	for (size_t i = 0; i < nwritable; i++) {
		const char *place = writable[i];

		if (in_any(place, roots, nroots))
			continue;
		if (ret->nguarded == GUARD_PLACES_MAX ||
		    ret->ngranted == GUARD_PLACES_MAX)
			return -E2BIG;
		if (holds_any(place, roots, nroots))
			ret->guarded[ret->nguarded++] = place;
		else
			ret->granted[ret->ngranted++] = place;
	}
	return 0;
}

int
guard_check_places(const struct guard_places *places, const char **ret_path)
{
	for (size_t i = 0; i < places->ngranted; i++) {
		if (!holds_any(places->granted[i], places->guarded,
			places->nguarded))
			continue;
		if (ret_path != NULL)
			*ret_path = places->granted[i];
		return -EINVAL;
	}
	return 0;
}

/* The writable places of a plan, its home among them. -E2BIG: too many. */
static int
list_writable(const struct plan *plan, const char **ret, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(private_places); i++)
		ret[n++] = private_places[i];
	ret[n++] = plan->home;
	for (size_t i = 0; i < plan->nmounts; i++) {
		if (plan->mounts[i].read_only ||
		    strcmp(plan->mounts[i].target, plan->home) == 0)
			continue;
		if (n == GUARD_PLACES_MAX)
			return -E2BIG;
		ret[n++] = plan->mounts[i].target;
	}
	*ret_n = n;
	return 0;
}

int
guard_sort_plan(const struct plan *plan, struct guard_places *ret)
{
	const char *writable[GUARD_PLACES_MAX], *roots[PLAN_ROOTS_MAX];
	size_t nwritable = 0, nroots = 0;
	int r = list_writable(plan, writable, &nwritable);

	for (size_t i = 0; i < plan->nroots; i++)
		if (!plan->roots[i].empty)
			roots[nroots++] = plan->roots[i].path;
	return r < 0 ?
	    r :
	    guard_sort_places(writable, nwritable, roots, nroots, ret);
}

static bool
is_listed(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->nroots; i++)
		if (strcmp(plan->roots[i].path, path) == 0)
			return true;
	return false;
}

int
guard_check_plan(const struct plan *plan, struct guard_places *ret)
{
	int r = guard_sort_plan(plan, ret);

	/* Each has a root in the table, or the broker would let the kernel go
	 * on and Landlock refuse everything there. */
	for (size_t i = 0; r == 0 && i < ret->nguarded; i++)
		if (!is_listed(plan, ret->guarded[i]))
			r = -EINVAL;
	if (r == 0 && ret->nguarded != plan->nroots)
		r = -EINVAL;
	return r < 0 ? r : guard_check_places(ret, NULL);
}
