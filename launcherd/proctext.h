/* Texts of proc(5) as a whole. */
#ifndef LAUNCHERD_PROCTEXT_H
#define LAUNCHERD_PROCTEXT_H

/* NUL-terminated, owned by the caller; NULL when it cannot be read or is
 * longer than 4 MiB: a cut text could hide what matters. */
char *proctext_read(const char *path);

#endif
