/* See confine.h. */
#include "launcherd/broker/confine.h"

#include <sys/syscall.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <unistd.h>

#include "common/size.h"

#include "launcherd/broker/broker_filter.h"

int
confine_broker(void)
{
	/* The kernel copies the program; its type lacks a const. */
	union {
		const struct sock_filter *in;
		struct sock_filter *out;
	} p = { .in = broker_filter };
	struct sock_fprog prog = { ARRAY_LEN(broker_filter), p.out };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &prog) < 0 ?
	    -errno :
	    0;
}
