/*
 * Which directories of the caller's PATH a run gets read-only (SPEC Y17). The
 * caller's tree is read as the run's user, and what is found is a proposal:
 * the service opens every mount once more as that user, and its deny list
 * wins.
 *
 * How to use it: after the user's own mounts and the state directories are
 * known (they go into `given`), unless --no-toolchains, call
 * toolchains_find(). Every mounts[i].path becomes a bindMounts entry with
 * readOnly true; every skipped[i] is a notice line (`path`, `why`), and so is
 * `more_skipped` if it is not 0. Pass the caller's PATH in env as it is (the
 * service keeps the entries that lie in a mount, SPEC M8). An error is worth a
 * notice, never the end of the run. toolchains_done() frees.
 *
 * A mount's path keeps the spelling of PATH; the service mounts it at its
 * resolved spelling as well. Nothing proposed is, holds or lies in a read-deny
 * path of App.6, and none is the home or /opt as a whole.
 */
#ifndef SUPERVISOR_CTL_TOOLCHAINS_H
#define SUPERVISOR_CTL_TOOLCHAINS_H

#include <stddef.h>
#include <sys/types.h>

#define TOOLCHAINS_MAX 40 /* bindMounts has room for 64 */
#define TOOLCHAINS_SKIPPED_MAX 32
#define TOOLCHAINS_ENTRIES_MAX 128 /* of PATH */
#define TOOLCHAINS_NAMES_MAX 4096 /* of one directory */
#define TOOLCHAINS_LINKS_MAX 8192 /* in all */
#define TOOLCHAINS_TIME_MS 5000 /* for the child, see `ids` */

/* The ids of the run's user, as getpwnam() and getgrouplist() tell. */
struct toolchains_ids {
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	size_t ngroups;
};

/* All borrowed. */
struct toolchains_input {
	const char *path; /* PATH; NULL: nothing is found */
	const char *home; /* of the run's user, absolute */
	const char *opt; /* NULL: "/opt" */
	/*
	 * Not NULL: the caller is root and the run's user another one. The
	 * search is then made in a child that takes these ids for good first
	 * and has TOOLCHAINS_TIME_MS (a file system of that user may hang).
	 */
	const struct toolchains_ids *ids;
	/* Paths that the run has anyway (mounts, state directories); what lies
	 * in one of them is left to it. */
	const char *const *given;
	size_t ngiven;
	/* Further paths to keep out, e.g. the directory of --socket. */
	const char *const *deny;
	size_t ndeny;
};

struct toolchain_mount {
	char *path; /* a directory or one file */
	const char *rule; /* static: "pyenv", "install root", ... */
};

struct toolchain_skipped {
	char *path;
	const char *why; /* static */
};

struct toolchains {
	struct toolchain_mount mounts[TOOLCHAINS_MAX];
	size_t n;
	struct toolchain_skipped skipped[TOOLCHAINS_SKIPPED_MAX];
	size_t nskipped;
	size_t more_skipped; /* beyond the table */
};

/* 0; -EINVAL (home or ids are unusable: not absolute, "/", uid 0); -ENOMEM;
 * -ETIMEDOUT, -EPERM, -EPROTO or -errno of the child. On error *ret holds
 * nothing, and toolchains_done() takes it. */
int toolchains_find(const struct toolchains_input *, struct toolchains *ret);
void toolchains_done(struct toolchains *);

#endif
