/* Confinement of stockade-lookup, taken before it reads its question. */
#ifndef LOOKUP_CONFINE_H
#define LOOKUP_CONFINE_H

/*
 * Landlock with every right handled and reading alone granted (the scan lists
 * directories and reads git's files), then the program made of calls.def. Needs
 * no_new_privs. 0 or -errno; -EOPNOTSUPP when the kernel has no Landlock.
 */
int confine_lookup(void);

#endif
