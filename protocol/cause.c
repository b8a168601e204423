/* Names of the closed sets in cause.h; in every process, for any number. */
#include "protocol/cause.h"

#include <stddef.h>

#define NAME_OF(table, n) \
	((n) < sizeof(table) / sizeof((table)[0]) ? (table)[n] : "unknown")
#define X(n, s) s,

const char *
run_cause_name(unsigned n)
{
	static const char *const names[] = { RUN_CAUSES(X) };

	return NAME_OF(names, n);
}

const char *
run_notice_name(unsigned n)
{
	static const char *const names[] = { RUN_NOTICES(X) };

	return NAME_OF(names, n);
}

const char *
violation_name(unsigned n)
{
	static const char *const names[] = { VIOLATIONS(X) };

	return NAME_OF(names, n);
}

const char *
resolve_status_name(unsigned n)
{
	static const char *const names[] = { RESOLVE_STATUSES(X) };

	return NAME_OF(names, n);
}

const char *
probe_row_name(unsigned n)
{
	static const char *const names[] = { PROBE_ROWS(X) };

	return NAME_OF(names, n);
}

#undef X

const char *
api_error_name(unsigned n)
{
	static const struct {
		unsigned code;
		const char *name;
	} names[] = {
#define X(n, c, s) { (c), (s) },
		API_ERRORS(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == n)
			return names[i].name;
	return "unknown";
}

const char *
guard_mechanism_name(unsigned n)
{
	return n == GUARD_BROKER ? "broker" :
	    n == GUARD_BPF_LSM   ? "bpf-lsm" :
				   "none";
}
