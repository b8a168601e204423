/*
 * Names of the host's users, read once at start: stockade-control lives in an
 * empty root afterwards. A name that is not in it may still be given as a
 * number; who a uid really is, is looked up by stockade-lookup each time.
 */
#ifndef SUPERVISOR_CONTROL_USERS_H
#define SUPERVISOR_CONTROL_USERS_H

#include <stddef.h>
#include <sys/types.h>

#define USERS_MAX 65536u

struct user_name {
	char *name;
	uid_t uid;
};

struct users {
	struct user_name *list;
	size_t n;
};

/* Reads /etc/passwd, and `also` (may be NULL) through the host's other
 * sources. Best effort: what cannot be read is not there. */
void users_read(struct users *ret, const char *also);
void users_done(struct users *);

/* A name or a decimal uid. 0, -ENOENT, or -EINVAL for uid (uid_t)-1. */
int users_find(const struct users *, const char *text, uid_t *ret);

#endif
