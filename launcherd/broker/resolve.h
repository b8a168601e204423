/*
 * From a caller's path to a pinned directory, a name in it and the directory's
 * canonical path: openat2(2), path_resolution(7), proc(5).
 */
#ifndef BROKER_RESOLVE_H
#define BROKER_RESOLVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct broker;
struct request;

#define RESOLVE_LINKS_MAX 40 /* as in the kernel */

/*
 * A name in a pinned directory. `name` has a trailing slash when the caller
 * wrote one: of a directory, then. Done with place_done().
 */
/* Bytes of the path of a directory; in deeper ones nothing is written. */
#define PLACE_PATH_MAX (2 * PATH_MAX)
#define OBJECT_PATH_MAX (PLACE_PATH_MAX + NAME_MAX + 2)

struct place {
	int dir; /* O_PATH */
	bool dir_owned;
	bool slash;
	bool guarded; /* dir lies in a guarded root */
	size_t len;
	char path[PLACE_PATH_MAX]; /* of dir */
	size_t name_len; /* without the slash */
	char name[NAME_MAX + 2];
};

/* An existing thing: O_PATH descriptor and its real path. */
struct object {
	int fd;
	bool guarded;
	bool unlinked; /* has no name any more */
	size_t len;
	char path[OBJECT_PATH_MAX];
};

void place_init(struct place *);
void place_done(struct place *);
void object_done(struct object *);

/*
 * The directory that holds the last component of `path`, which begins at
 * `dirfd` of the caller. No link in the last place is followed. 0;
 * ANSWER_CONTINUE when the call can only fail or has nothing to do with a
 * guarded root; -errno when it fails inside of one.
 */
int resolve_parent(struct broker *, struct request *, int dirfd,
    const char *path, struct place *ret);

/* As resolve_parent, for a path in the caller's memory. */
int resolve_argument(struct broker *, struct request *, int dir_arg,
    int path_arg, struct place *ret);

/* The name in ret->dir, which is pinned already. 0 or ANSWER_CONTINUE. */
int resolve_here(struct broker *, struct place *ret, const char *name);

/* All of `path` as a directory; as above, with an empty name. */
int resolve_directory(struct broker *, struct request *, int dirfd,
    const char *path, struct place *ret);

/*
 * What follows when place is a symbolic link. 0: it is none, or nothing.
 * RESOLVE_NEXT: place is what the link points to. RESOLVE_OBJECT: it is a magic
 * link of the caller's own, and *ret_object what it stands for. Else as
 * resolve_parent. Links of another process's /proc directory are not followed:
 * the broker may look where the caller may not.
 */
#define RESOLVE_NEXT 16
#define RESOLVE_OBJECT 17
int resolve_link(struct broker *, struct request *, struct place *place,
    struct object *ret_object);

/* Follows links to the end: 0 (place is no link) or RESOLVE_OBJECT or as
 * resolve_parent. */
int resolve_last(struct broker *, struct request *, struct place *place,
    struct object *ret_object);

/* The thing that place names, which is no link: opened, with its path. 0 or
 * -errno. */
int
resolve_named(const struct broker *, const struct place *, struct object *ret);

/* Fills in path, guarded and unlinked of ret->fd. 0, or ANSWER_CONTINUE when it
 * has no path (a pipe, a socket). */
int resolve_object(const struct broker *, struct object *ret);

#endif
