/*
 * Where the kernel's walk towards the root of a file system ends: the guarded
 * places of a run, and what is mounted below them, by device and inode.
 */
#ifndef LAUNCHERD_GUARD_ENTRIES_H
#define LAUNCHERD_GUARD_ENTRIES_H

#include <stddef.h>

struct guard;
struct guard_entry_paths;
struct guard_policy;

#define GUARD_ENTRIES_WHY 256

/*
 * Fills the entries of *policy from the mounts of the run itself: `mounts` is
 * the text of /proc/PID/mountinfo, root_fd the root directory of that process,
 * whose mounts are complete and of which nothing runs yet. Roots that have no
 * rules get no entry. 0; -E2BIG: more than GUARD_ENTRIES or too deep; -EINVAL;
 * -ENOMEM, or what opening gave. ret_why is filled then. ret_paths
 * is empty before and the caller's to free, also on failure.
 */
int guard_entries_make(const struct guard *, const char *mounts, int root_fd,
    struct guard_policy *policy, struct guard_entry_paths *ret_paths,
    char ret_why[GUARD_ENTRIES_WHY]);

#endif
