/*
 * Identity of the broker: credentials(7), capabilities(7), setfsuid(2).
 *
 * launcherd has given it a user of its own in the real, effective and saved
 * ids, so that no process of the run may signal, trace or reschedule it. The
 * file-system ids and the groups become the run's, so that what it makes
 * belongs to whom it would belong, and so that it may do no more in the file
 * system than the run itself. Of capabilities it keeps SYS_PTRACE: reading a
 * caller's memory and descriptors asks for the right to trace it.
 */
#ifndef BROKER_IDS_H
#define BROKER_IDS_H

#include <stddef.h>
#include <stdint.h>

/* 0, or -errno and what failed in *ret_step. -EPERM on any doubt: the caller
 * must exit. `groups` are native uint32 each. */
int ids_become(uint64_t uid, uint64_t gid, const uint8_t *groups, size_t len,
    const char **ret_step);

#endif
