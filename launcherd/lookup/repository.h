/*
 * What git would run by itself in a repository that a run has made (SPEC D18):
 * keys of its configuration and its hooks, by name. Runs as the run's user,
 * confined; the repository is hostile.
 */
#ifndef LOOKUP_REPOSITORY_H
#define LOOKUP_REPOSITORY_H

#include <stdint.h>

struct msg_inspect_answer;

/* The .git directory at `path`, which must be this inode. Fills *ret. */
void repository_look(const char *path, uint64_t dev, uint64_t ino,
    struct msg_inspect_answer *ret);

#endif
