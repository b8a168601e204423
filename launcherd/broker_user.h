/*
 * How a child of launcherd becomes stockade-broker's user, after setns(2) and
 * just before it executes the broker: credentials(7), capabilities(7).
 */
#ifndef LAUNCHERD_BROKER_USER_H
#define LAUNCHERD_BROKER_USER_H

#include <sys/types.h>

/*
 * Takes uid and gid in all of real, effective, saved and file-system ids, with
 * no supplementary group, and keeps SETUID, SETGID, SETPCAP, SYS_PTRACE,
 * SYS_ADMIN and SYS_CHROOT over the exec as ambient capabilities: the broker
 * needs the last two to join the run's mount namespace, the first three in
 * order to take the run's file-system ids and to give the rest up. Single-threaded;
 * 0 or -errno, and the caller must exit on an error.
 */
int broker_take_user(uid_t uid, gid_t gid);

#endif
