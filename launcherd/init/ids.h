/*
 * The run's ids, taken for good by stockade-init and stockade-lookup. Both
 * start as root with a few capabilities and must end as an ordinary user with
 * none; neither can link common/priv.c (init is static, lookup lacks SETPCAP).
 */
#ifndef INIT_IDS_H
#define INIT_IDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define IDS_GROUPS_MAX 1024 /* what a message's field holds */

struct ids {
	uid_t uid;
	gid_t gid;
	size_t ngroups;
	gid_t groups[IDS_GROUPS_MAX];
};

/*
 * Fills *ret from a message's fields; `groups` are native uint32 each.
 * -EINVAL for uid 0 (a run is never root, SPEC C7) or a broken length.
 */
int ids_from_message(uint64_t uid, uint64_t gid, const uint8_t *groups,
    size_t len, struct ids *ret);

/* Empties the bounding set (needs SETPCAP) and reads it back. */
int ids_drop_bounding(void);

/* The process's groups are those, in any order: 0 or -EPERM. */
int ids_check_groups(const struct ids *ids);

/*
 * Groups, gid, uid, then no capability in any set but the bounding one, then
 * no_new_privs; reads everything back and tries to regain uid 0. -EPERM on any
 * doubt: the caller must exit.
 */
int ids_take(const struct ids *ids);

#endif
