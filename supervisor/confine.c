/*
 * What stockaded keeps and gives up. It has no Landlock domain: with one in
 * any ancestor bubblewrap cannot make "/" slave (EPERM). Its filter is a list
 * of refused calls, inherited by everything that it starts; nothing in it is
 * needed by bubblewrap, stockade-init or a run.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "common/confine.h"
#include "common/priv.h"
#include "common/proc.h"
#include "common/size.h"
#include "supervisor/supervisor.h"

/* SPEC A21, with who needs it. A child can never have more than we have. */
/* clang-format off */
static const struct {
	int number;
	const char *name;
	const char *reason;
} capabilities[] = {
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "launcherd: namespaces, mounts" },
	{ CAP_SETUID, "CAP_SETUID", "the daemons drop to their users" },
	{ CAP_SETGID, "CAP_SETGID", "the daemons drop to their users" },
	{ CAP_SETPCAP, "CAP_SETPCAP", "the bounding set is emptied" },
	{ CAP_CHOWN, "CAP_CHOWN", "the socket's group, a run's home" },
	{ CAP_NET_ADMIN, "CAP_NET_ADMIN", "launcherd: a run's loopback" },
	{ CAP_NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE",
	    "launcherd: a run's listeners" },
	{ CAP_KILL, "CAP_KILL", "daemons of another user are ended" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "launcherd: /proc of a run" },
	{ CAP_SYS_CHROOT, "CAP_SYS_CHROOT", "the daemons' empty root" },
	{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
	    "launcherd: the way to a private directory" },
};
/* clang-format on */

/* clang-format off */
static const struct confine_call refused[] = {
	CONFINE_CALL("acct", "process accounting of the host"),
	CONFINE_CALL("add_key", "kernel keyrings outlive a process"),
	CONFINE_CALL("adjtimex", "the host's clock"),
	CONFINE_CALL("clock_adjtime", "the host's clock"),
	CONFINE_CALL("clock_settime", "the host's clock"),
	CONFINE_CALL("create_module", "kernel modules"),
	CONFINE_CALL("delete_module", "kernel modules"),
	CONFINE_CALL("finit_module", "kernel modules"),
	CONFINE_CALL("init_module", "kernel modules"),
	CONFINE_CALL("io_uring_enter", "opens and connects past a filter"),
	CONFINE_CALL("io_uring_register", "opens and connects past a filter"),
	CONFINE_CALL("io_uring_setup", "opens and connects past a filter"),
	CONFINE_CALL("ioperm", "ports of the machine"),
	CONFINE_CALL("iopl", "ports of the machine"),
	CONFINE_CALL("kexec_file_load", "another kernel"),
	CONFINE_CALL("kexec_load", "another kernel"),
	CONFINE_CALL("keyctl", "kernel keyrings outlive a process"),
	CONFINE_CALL("lookup_dcookie", "profiling of the host"),
	CONFINE_CALL("nfsservctl", "gone from the kernel"),
	CONFINE_CALL("open_by_handle_at", "opens past every path check"),
	CONFINE_CALL("perf_event_open", "watches other processes"),
	CONFINE_CALL("quotactl", "quotas of the host"),
	CONFINE_CALL("quotactl_fd", "quotas of the host"),
	CONFINE_CALL("reboot", "the host"),
	CONFINE_CALL("request_key", "kernel keyrings, runs a helper as root"),
	CONFINE_CALL("setdomainname", "the host's name"),
	CONFINE_CALL("settimeofday", "the host's clock"),
	CONFINE_CALL("stime", "the host's clock"),
	CONFINE_CALL("swapoff", "the host's memory"),
	CONFINE_CALL("swapon", "the host's memory"),
	CONFINE_CALL("syslog", "the kernel's log"),
	CONFINE_CALL("userfaultfd", "stops the kernel in the middle"),
	CONFINE_CALL("vhangup", "the host's terminals"),
};
/* clang-format on */

void
confine_capabilities(void)
{
	uint64_t caps = 0;
	int missing = -1;
	int r;

	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
		caps |= UINT64_C(1) << capabilities[i].number;
	/* In the order of the table: the first one missing is named. */
	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
		if ((priv_permitted() &
			UINT64_C(1) << capabilities[i].number) == 0)
			proc_fatal("needs %s, which is missing (%s)",
			    capabilities[i].name, capabilities[i].reason);
	r = priv_limit(caps, &missing);
	if (r == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
		if (capabilities[i].number == missing)
			proc_fatal("needs %s, which is missing (%s)",
			    capabilities[i].name, capabilities[i].reason);
	proc_fatal("capabilities: %s", strerror(-r));
}

void
confine_supervisor(void)
{
	int r = proc_undumpable();

	if (r < 0)
		proc_fatal("not dumpable: %s", strerror(-r));
	r = confine_seccomp(CONFINE_DENY_LIST, refused, ARRAY_LEN(refused));
	if (r < 0)
		proc_fatal("seccomp: %s", strerror(-r));
}
