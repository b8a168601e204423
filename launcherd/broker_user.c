/*
 * See broker_user.h. Who asks: launcherd, in a child that has joined a run's
 * pid and network namespace, for the broker of that run. A hostile run sees this process, but
 * does not share its ids: it may not signal or trace it, and it executes our
 * own program by descriptor.
 */
#include "launcherd/broker_user.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "common/size.h"

static const unsigned long kept[] = { CAP_SETUID, CAP_SETGID, CAP_SETPCAP,
	CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_CHROOT };

static int
raise_kept(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
		0 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	memset(caps, 0, sizeof(caps));
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		unsigned bit = 1u << (kept[i] % 32);

		caps[kept[i] / 32].permitted |= bit;
		caps[kept[i] / 32].effective |= bit;
		caps[kept[i] / 32].inheritable |= bit;
	}
	if (syscall(SYS_capset, &head, caps) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0) <
		    0)
			return -errno;
	return 0;
}

int
broker_take_user(uid_t uid, gid_t gid)
{
	if (uid == 0 || gid == 0)
		return -EPERM;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return raise_kept();
}
