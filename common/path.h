/*
 * Opening paths that others wrote (openat2(2), Linux 5.6).
 */
#ifndef COMMON_PATH_H
#define COMMON_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Absolute, no empty or "." or ".." component, no trailing slash but "/",
 * no NUL by construction, at most 4095 bytes. */
bool path_is_clean(const char *path);

/* True when `path` equals `dir` or lies below it (whole components); both
 * clean. */
bool path_is_within(const char *path, const char *dir);

/* As strcmp(), with '/' before every other byte: in this order what lies below
 * a directory follows it without a gap. */
int path_compare(const char *a, const char *b);

/* Opens an absolute path with `flags` (e.g. O_PATH), following ordinary links
 * but no magic links (RESOLVE_NO_MAGICLINKS). Descriptor or -errno. */
int path_open(const char *path, int flags);

/* Opens relative to dirfd and never leaves it: RESOLVE_BENEATH |
 * RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS. */
int path_open_beneath(int dirfd, const char *path, int flags);

/* The absolute path of a descriptor as the kernel tells it
 * (/proc/self/fd/N); -errno, -ENAMETOOLONG, -ENOENT when it was unlinked. */
int path_of_fd(int fd, char *ret, size_t size);

#endif
