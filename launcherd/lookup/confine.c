/*
 * See confine.h. Runs in stockade-lookup with the run's ids; after it nothing
 * can be written, started or connected to, whatever the question says.
 */
#include "launcherd/lookup/confine.h"

#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/landlock.h"
#include "common/size.h"

#include "launcherd/lookup/lookup_filter.h"

int
confine_lookup(void)
{
	/* The kernel copies the program; its type lacks a const. */
	union {
		const struct sock_filter *in;
		struct sock_filter *out;
	} p = { .in = lookup_filter };
	struct sock_fprog prog = { ARRAY_LEN(lookup_filter), p.out };
	unsigned abi = landlock_abi();
	autoclose int ruleset = -1;
	autoclose int top = open("/", O_PATH | O_CLOEXEC);
	int r;

	if (abi == 0)
		return -EOPNOTSUPP;
	ruleset = landlock_new(abi, LANDLOCK_SCOPES);
	if (ruleset < 0)
		return ruleset;
	if (top < 0)
		return -errno;
	r = landlock_grant(ruleset, top,
	    LANDLOCK_READ_FILE | LANDLOCK_READ_DIR);
	if (r < 0)
		return r;
	r = landlock_enter(ruleset);
	if (r < 0)
		return r;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &prog) < 0 ?
	    -errno :
	    0;
}
