/*
 * The entries of a git configuration file (git-config(1), "CONFIGURATION
 * FILE"; the grammar as git 2.39 reads it). No I/O, no allocation. The file
 * is whatever an earlier run or the user wrote: hostile.
 */
#ifndef LOOKUP_GIT_CONFIG_H
#define LOOKUP_GIT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define GIT_CONFIG_NAME_MAX 255
#define GIT_CONFIG_VALUE_MAX 4095

struct git_config_entry {
	const char *section; /* lower case, without the subsection */
	const char *key; /* lower case */
	const char *value; /* NULL: the key stands alone */
	bool too_long; /* value is cut: longer than any path */
};

/* Not 0 ends the reading. */
typedef int git_config_fn(void *arg, const struct git_config_entry *);

/*
 * Calls fn for each entry, in order; its strings are valid during the call.
 * 0; what fn returned; -EINVAL at the first line that git refuses (it then uses
 * nothing of the file), or that has a NUL or a longer name than we take: what
 * came before has been told.
 */
int
git_config_parse(const char *data, size_t len, git_config_fn *fn, void *arg);

#endif
