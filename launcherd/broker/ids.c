/*
 * See ids.h. Expects what broker_user.h keeps over the exec. Every id and set is read back.
 */
#include "launcherd/broker/ids.h"

#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "launcherd/init/ids.h"

#define CAPS_MAX 64
#define KEPT CAP_SYS_PTRACE
#define NOBODY ((uid_t)-1)

/* One uid and gid throughout, neither root's nor the run's. */
static int
check_own(const struct ids *run)
{
	uid_t ruid = 0, euid = 0, suid = 0;
	gid_t rgid = 0, egid = 0, sgid = 0;

	if (getresuid(&ruid, &euid, &suid) < 0 ||
	    getresgid(&rgid, &egid, &sgid) < 0)
		return -errno;
	if (ruid == 0 || ruid != euid || ruid != suid || ruid == run->uid)
		return -EPERM;
	return rgid == 0 || rgid != egid || rgid != sgid ? -EPERM : 0;
}

static int
limit_bounding(void)
{
	for (unsigned long cap = 0; cap < CAPS_MAX; cap++) {
		int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		/* EINVAL: beyond the last capability of this kernel. */
		if (has < 0)
			return cap == 0 ? -EPERM : 0;
		if (cap == KEPT)
			continue;
		if (has != 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 0)
			return -EPERM;
	}
	return 0;
}

/* These two return the old value and no error: asked again to be sure. */
static int
take_fs_ids(const struct ids *run)
{
	(void)setfsgid(run->gid);
	(void)setfsuid(run->uid);
	return (uid_t)setfsuid(NOBODY) == run->uid &&
		(gid_t)setfsgid(NOBODY) == run->gid ?
	    0 :
	    -EPERM;
}

static int
keep_one_capability(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
		0 };
	struct __user_cap_data_struct want[_LINUX_CAPABILITY_U32S_3];
	struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3];

	memset(want, 0, sizeof(want));
	want[CAP_TO_INDEX(KEPT)].permitted = CAP_TO_MASK(KEPT);
	want[CAP_TO_INDEX(KEPT)].effective = CAP_TO_MASK(KEPT);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &head, want) < 0)
		return -errno;
	memset(now, 0xff, sizeof(now));
	if (syscall(SYS_capget, &head, now) < 0)
		return -errno;
	return memcmp(now, want, sizeof(now)) == 0 ? 0 : -EPERM;
}

static int
check_all(const struct ids *run)
{
	int r = check_own(run);

	if (r < 0)
		return r;
	/* Neither root nor the run can be had any more. These fail, and so
	 * leave the file-system ids alone. */
	if (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0 ||
	    setresuid(run->uid, run->uid, run->uid) == 0)
		return -EPERM;
	if ((uid_t)setfsuid(NOBODY) != run->uid ||
	    (gid_t)setfsgid(NOBODY) != run->gid)
		return -EPERM;
	return ids_check_groups(run);
}

int
ids_become(uint64_t uid, uint64_t gid, const uint8_t *groups, size_t len,
    const char **ret_step)
{
	static struct ids run;
	int r = ids_from_message(uid, gid, groups, len, &run);

	*ret_step = "the run's ids";
	if (r < 0)
		return r;
	*ret_step = "own user";
	r = check_own(&run);
	if (r < 0)
		return r;
	*ret_step = "groups";
	if (setgroups(run.ngroups, run.groups) < 0)
		return -errno;
	*ret_step = "bounding set";
	r = limit_bounding();
	if (r < 0)
		return r;
	*ret_step = "file-system ids";
	r = take_fs_ids(&run);
	if (r < 0)
		return r;
	*ret_step = "capabilities";
	r = keep_one_capability();
	if (r < 0)
		return r;
	/* The change of the file-system ids has reset it. */
	*ret_step = "no new privileges";
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -EPERM;
	*ret_step = "ids read back";
	return check_all(&run);
}
