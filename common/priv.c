/*
 * Privilege; see priv.h. The only caller of setresuid, setgroups and capset
 * outside stockade-init and stockade-lookup's own step. Nothing is believed
 * because a call returned 0: everything is read back from the kernel.
 */
#include "common/priv.h"

#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/proc.h"

/* Room for one entry of NSS, members of a group included. */
#define NSS_BUFFER (1u << 20)

struct cap_sets {
	uint64_t effective;
	uint64_t permitted;
	uint64_t inheritable;
};

int
priv_lookup_user(const char *name, struct priv_user *ret)
{
	autofree char *buf = malloc(NSS_BUFFER);
	struct passwd pw, *found = NULL;
	int r;

	if (buf == NULL)
		return -ENOMEM;
	r = getpwnam_r(name, &pw, buf, NSS_BUFFER, &found);
	if (found == NULL)
		return r == 0 ? -ENOENT : -r;
	if (pw.pw_uid == 0)
		return -EPERM;
	ret->uid = pw.pw_uid;
	ret->gid = pw.pw_gid;
	return 0;
}

int
priv_lookup_group(const char *name, gid_t *ret)
{
	autofree char *buf = malloc(NSS_BUFFER);
	struct group gr, *found = NULL;
	int r;

	if (buf == NULL)
		return -ENOMEM;
	r = getgrnam_r(name, &gr, buf, NSS_BUFFER, &found);
	if (found == NULL)
		return r == 0 ? -ENOENT : -r;
	*ret = gr.gr_gid;
	return 0;
}

static int
read_sets(struct cap_sets *ret)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	memset(data, 0, sizeof(data));
	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	ret->effective = data[0].effective | (uint64_t)data[1].effective << 32;
	ret->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	ret->inheritable =
	    data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	return 0;
}

uint64_t
priv_permitted(void)
{
	struct cap_sets sets;

	return read_sets(&sets) < 0 ? 0 : sets.permitted;
}

/* The kernel answers EINVAL for the first number that it does not know. */
static uint64_t
read_bounding(void)
{
	uint64_t mask = 0;

	for (int i = 0; i < 64; i++) {
		int r = prctl(PR_CAPBSET_READ, i, 0, 0, 0);

		if (r < 0)
			break;
		if (r == 1)
			mask |= UINT64_C(1) << i;
	}
	return mask;
}

static bool
has_ambient(void)
{
	for (int i = 0; i < 64; i++) {
		int r = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0);

		if (r < 0)
			break;
		if (r == 1)
			return true;
	}
	return false;
}

static bool
ids_are(const struct priv_user *user)
{
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;

	if (getresuid(&ruid, &euid, &suid) < 0 ||
	    getresgid(&rgid, &egid, &sgid) < 0)
		return false;
	/* setfsuid(-1) changes nothing and tells the current one. */
	return ruid == user->uid && euid == user->uid && suid == user->uid &&
	    rgid == user->gid && egid == user->gid && sgid == user->gid &&
	    (uid_t)setfsuid((uid_t)-1) == user->uid &&
	    (gid_t)setfsgid((gid_t)-1) == user->gid && getgroups(0, NULL) == 0;
}

static bool
sets_are(uint64_t permitted, uint64_t bounding)
{
	struct cap_sets sets;

	return read_sets(&sets) == 0 && sets.permitted == permitted &&
	    sets.effective == permitted && sets.inheritable == 0 &&
	    read_bounding() == bounding && !has_ambient();
}

/* Tries every way back; true when one of them works. */
static bool
can_regain(void)
{
	const gid_t root_group = 0;

	return setresuid((uid_t)-1, 0, (uid_t)-1) == 0 || setuid(0) == 0 ||
	    setgroups(1, &root_group) == 0 ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SETUID, 0, 0) == 0;
}

int
priv_drop(const struct priv_user *user)
{
	if (user->uid == 0 || user->uid == (uid_t)-1 || user->gid == 0 ||
	    user->gid == (gid_t)-1)
		return -EPERM;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -EPERM;
	capng_setpid((int)getpid()); /* see apply_sets() */
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_change_id((int)user->uid, (int)user->gid,
		(capng_flags_t)(CAPNG_DROP_SUPP_GRP | CAPNG_CLEAR_BOUNDING)) !=
	    0)
		return -EPERM;
	if (!ids_are(user) || !sets_are(0, 0) || can_regain())
		return -EPERM;
	return 0;
}

void
priv_enter(const struct priv_user *user, pid_t parent)
{
	int r = priv_drop(user);

	if (r < 0)
		proc_fatal("giving up privilege: %s", strerror(-r));
	r = proc_bind_to_parent(parent);
	if (r < 0)
		proc_fatal("parent: %s", strerror(-r));
}

/* True when `cap` can be put back into the permitted set. */
static bool
can_raise(uint64_t caps, int cap)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	uint64_t want = caps | UINT64_C(1) << cap;
	struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t)caps, .permitted = (uint32_t)want },
		{ .effective = (uint32_t)(caps >> 32),
		    .permitted = (uint32_t)(want >> 32) },
	};

	return syscall(SYS_capset, &head, data) == 0;
}

static bool
can_raise_any(uint64_t caps)
{
	for (int i = 0; i < 64 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if ((caps & UINT64_C(1) << i) == 0 && can_raise(caps, i))
			return true;
	return false;
}

static int
apply_sets(uint64_t caps)
{
	const capng_type_t sets = (capng_type_t)(CAPNG_EFFECTIVE |
	    CAPNG_PERMITTED | CAPNG_BOUNDING_SET);

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -EPERM;
	/* libcap-ng remembers the process that used it first; this one may be
	 * its fork. */
	capng_setpid((int)getpid());
	capng_clear(CAPNG_SELECT_BOTH);
	for (unsigned i = 0; i < 64; i++)
		if ((caps & UINT64_C(1) << i) != 0 &&
		    capng_update(CAPNG_ADD, sets, i) != 0)
			return -EPERM;
	return capng_apply(CAPNG_SELECT_BOTH) == 0 ? 0 : -EPERM;
}

int
priv_limit(uint64_t caps, int *ret_missing)
{
	struct cap_sets sets;
	uint64_t missing;
	int r = read_sets(&sets);

	if (r < 0)
		return r;
	missing = caps & ~(sets.permitted & read_bounding());
	if (missing != 0) {
		*ret_missing = __builtin_ctzll(missing);
		return -EPERM;
	}
	r = apply_sets(caps);
	if (r < 0)
		return r;
	return sets_are(caps, caps) && !can_raise_any(caps) ? 0 : -EPERM;
}

int
priv_fs_become(uid_t uid, gid_t gid, const gid_t *groups, size_t n)
{
	if (uid == 0 || uid == (uid_t)-1 || gid == (gid_t)-1)
		return -EPERM;
	if (setgroups(n, groups) < 0)
		return -errno;
	/* Both calls return the old id and never an error; ask again. */
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	if ((gid_t)setfsgid((gid_t)-1) != gid ||
	    (uid_t)setfsuid((uid_t)-1) != uid) {
		(void)priv_fs_restore();
		return -EPERM;
	}
	return 0;
}

int
priv_fs_restore(void)
{
	(void)setfsuid(0);
	(void)setfsgid(0);
	if ((uid_t)setfsuid((uid_t)-1) != 0 || (gid_t)setfsgid((gid_t)-1) != 0)
		return -EPERM;
	return setgroups(0, NULL) < 0 ? -errno : 0;
}
