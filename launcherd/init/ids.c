/*
 * Ids of the run; see ids.h. The uid, gid and groups are launcherd's word,
 * which has them from the kernel and from its own look-up. Nothing here trusts
 * that a call which returned 0 did what it says: everything is read back.
 */
#include "launcherd/init/ids.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#define CAPS_MAX 64

int
ids_from_message(uint64_t uid, uint64_t gid, const uint8_t *groups, size_t len,
    struct ids *ret)
{
	if (uid == 0 || uid >= UINT32_MAX || gid >= UINT32_MAX ||
	    len % sizeof(gid_t) != 0 || len > IDS_GROUPS_MAX * sizeof(gid_t))
		return -EINVAL;
	ret->uid = (uid_t)uid;
	ret->gid = (gid_t)gid;
	ret->ngroups = len / sizeof(gid_t);
	memcpy(ret->groups, groups, len);
	return 0;
}

int
ids_drop_bounding(void)
{
	for (unsigned long cap = 0; cap < CAPS_MAX; cap++) {
		int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		/* EINVAL: beyond the last capability of this kernel. */
		if (has < 0)
			return cap == 0 ? -EPERM : 0;
		if (has != 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 0)
			return -EPERM;
	}
	return 0;
}

static int
drop_capabilities(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
		0 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
	struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3];

	memset(none, 0, sizeof(none));
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	if (syscall(SYS_capset, &head, none) < 0)
		return -errno;
	memset(now, 0xff, sizeof(now));
	if (syscall(SYS_capget, &head, now) < 0)
		return -errno;
	return memcmp(now, none, sizeof(now)) == 0 ? 0 : -EPERM;
}

int
ids_check_groups(const struct ids *ids)
{
	static gid_t now[IDS_GROUPS_MAX];
	int n = getgroups(IDS_GROUPS_MAX, now);

	if (n < 0 || (size_t)n != ids->ngroups)
		return -EPERM;
	/* The kernel sorts them: compare as sets. */
	for (int i = 0; i < n; i++) {
		size_t j = 0;

		while (j < ids->ngroups && ids->groups[j] != now[i])
			j++;
		if (j == ids->ngroups)
			return -EPERM;
	}
	return 0;
}

static int
verify(const struct ids *ids)
{
	uid_t ruid = 0, euid = 0, suid = 0;
	gid_t rgid = 0, egid = 0, sgid = 0;

	if (getresuid(&ruid, &euid, &suid) < 0 || ruid != ids->uid ||
	    euid != ids->uid || suid != ids->uid)
		return -EPERM;
	if (getresgid(&rgid, &egid, &sgid) < 0 || rgid != ids->gid ||
	    egid != ids->gid || sgid != ids->gid)
		return -EPERM;
	if (setresuid(0, 0, 0) == 0 || setuid(0) == 0 || seteuid(0) == 0)
		return -EPERM;
	if (ids->gid != 0 && setresgid(0, 0, 0) == 0)
		return -EPERM;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return -EPERM;
	return ids_check_groups(ids);
}

int
ids_take(const struct ids *ids)
{
	int r;

	if (ids->uid == 0)
		return -EPERM;
	if (setgroups(ids->ngroups, ids->groups) < 0)
		return -errno;
	if (setresgid(ids->gid, ids->gid, ids->gid) < 0)
		return -errno;
	if (setresuid(ids->uid, ids->uid, ids->uid) < 0)
		return -errno;
	r = drop_capabilities();
	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return verify(ids);
}
