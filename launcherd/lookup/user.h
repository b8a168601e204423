/*
 * Who the run's user is, by NSS. Done while stockade-lookup is still root
 * with SETUID and SETGID, before it has read a question: the system's user
 * data base is trusted, as everywhere.
 */
#ifndef LOOKUP_USER_H
#define LOOKUP_USER_H

#include <sys/types.h>

struct msg_lookup_user;

/* Fills the message; an error is in it (ENOENT: no such user). */
void user_look_up(uid_t uid, struct msg_lookup_user *ret);

/* Loads what the first look-up of a process loads; tells nothing. */
void user_prepare(void);

#endif
