/*
 * launcherd: its system calls. A deny-list, since bubblewrap, stockade-init and
 * every run inherit it: what is here is needed by none of them. The runs' own
 * filter is an allow-list (profile.def). No Landlock: a domain in any ancestor
 * makes bubblewrap fail when it makes "/" a slave mount (EPERM).
 */
#include <stddef.h>

#include <linux/bpf.h>

#include "common/confine.h"
#include "common/size.h"
#include "launcherd/launcherd.h"

static const struct confine_call denied[] = {
	CONFINE_CALL("kexec_load", "replaces the kernel"),
	CONFINE_CALL("kexec_file_load", "replaces the kernel"),
	CONFINE_CALL("init_module", "loads code into the kernel"),
	CONFINE_CALL("finit_module", "loads code into the kernel"),
	CONFINE_CALL("delete_module", "removes code from the kernel"),
	CONFINE_CALL("reboot", "stops the host"),
	CONFINE_CALL("swapon", "the host's memory"),
	CONFINE_CALL("swapoff", "the host's memory"),
	CONFINE_CALL("acct", "writes a file for each process that ends"),
	CONFINE_CALL("settimeofday", "the host's clock"),
	CONFINE_CALL("clock_settime", "the host's clock"),
	CONFINE_CALL("clock_adjtime", "the host's clock"),
	CONFINE_CALL("adjtimex", "the host's clock"),
	CONFINE_CALL("iopl", "ports of the hardware"),
	CONFINE_CALL("ioperm", "ports of the hardware"),
	CONFINE_CALL("quotactl", "the host's quotas"),
	CONFINE_CALL("syslog", "the kernel's messages"),
	CONFINE_CALL("perf_event_open", "looks into other processes"),
	CONFINE_CALL("userfaultfd", "stops the kernel in a page fault"),
	CONFINE_CALL("open_by_handle_at", "opens around every path"),
	CONFINE_CALL("add_key", "the kernel's key store"),
	CONFINE_CALL("request_key", "the kernel's key store"),
	CONFINE_CALL("keyctl", "the kernel's key store"),
	CONFINE_CALL("io_uring_setup", "calls that no filter sees"),
	CONFINE_CALL("io_uring_enter", "calls that no filter sees"),
	CONFINE_CALL("io_uring_register", "calls that no filter sees"),
	CONFINE_CALL("vhangup", "terminals of others"),
	CONFINE_CALL("uselib", "obsolete"),
	CONFINE_CALL("lookup_dcookie", "obsolete"),
};

int
launcherd_confine(void)
{
	return confine_seccomp(CONFINE_DENY_LIST, denied, ARRAY_LEN(denied));
}

/* What launcherd does with the guard's maps once they are there. */
static bool
is_permitted(unsigned command)
{
	static const unsigned permitted[] = { BPF_MAP_CREATE,
		BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM,
		BPF_MAP_UPDATE_BATCH };

	for (size_t i = 0; i < ARRAY_LEN(permitted); i++)
		if (permitted[i] == command)
			return true;
	return false;
}

/*
 * A list of what is denied cannot say "all but these": each other command below
 * 64 is named, and every number with a higher bit is refused by that bit.
 */
int
launcherd_confine_bpf(bool maps)
{
	static const char why[] = "programs in the kernel";
	struct confine_call calls[64 + 26];
	size_t n = 0;

	if (!maps)
		calls[n++] = (struct confine_call)CONFINE_CALL("bpf", why);
	for (unsigned i = 0; maps && i < 64; i++)
		if (!is_permitted(i))
			calls[n++] = (struct confine_call)CONFINE_CALL_IF("bpf",
			    0, UINT32_MAX, i, why);
	for (unsigned bit = 6; maps && bit < 32; bit++)
		calls[n++] = (struct confine_call)CONFINE_CALL_IF("bpf", 0,
		    UINT64_C(1) << bit, UINT64_C(1) << bit, why);
	return confine_seccomp(CONFINE_DENY_LIST, calls, n);
}
