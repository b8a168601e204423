/*
 * Privilege: the only place that calls setresuid, setgroups and capset outside
 * stockade-init (libcap-ng; capabilities(7)). Every function verifies by
 * reading back and by trying to regain what was given up.
 */
#ifndef COMMON_PRIV_H
#define COMMON_PRIV_H

#include <stdint.h>
#include <sys/types.h>

struct priv_user {
	uid_t uid;
	gid_t gid;
};

/* Looks up a system user by name (NSS, before the drop). 0, -ENOENT, -errno;
 * a user with uid 0 is -EPERM. */
int priv_lookup_user(const char *name, struct priv_user *ret);
/* -ENOENT when there is no such group. */
int priv_lookup_group(const char *name, gid_t *ret);

/*
 * Gives up everything for good: supplementary groups, gid, uid, the bounding,
 * ambient, inheritable, permitted and effective sets; then reads every id and
 * set back and tries to regain uid 0 (which must fail). Any doubt is -EPERM
 * and the caller must exit.
 */
int priv_drop(const struct priv_user *user);

/*
 * The steps of a daemon's start from here to its confinement: priv_drop(),
 * then proc_bind_to_parent(). Exits by proc_fatal() if either fails.
 */
void priv_enter(const struct priv_user *user, pid_t parent);

/*
 * For stockaded and stockade-launcherd: keep exactly `caps` (CAP_* bit mask,
 * 1ull << CAP_x) in permitted, effective and bounding; nothing inheritable or
 * ambient. Returns 0; -EPERM with *ret_missing set to the first capability
 * number that is wanted and not permitted.
 */
int priv_limit(uint64_t caps, int *ret_missing);

/* Permitted set as a mask. */
uint64_t priv_permitted(void);

/* File-system ids only (setfsuid(2)), for opening as the run's user; group
 * list is set with setgroups. priv_fs_restore() goes back to root. The
 * effective set loses DAC_READ_SEARCH and the like meanwhile, and the caller
 * is single-threaded. Both return 0 or -errno; a failed restore must end the
 * process. */
int priv_fs_become(uid_t uid, gid_t gid, const gid_t *groups, size_t n);
int priv_fs_restore(void);

#endif
