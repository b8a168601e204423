/*
 * What the parts of the scan share: the walk (scan.c), other names of denied
 * files (scan_links.c), git's directories and configuration (scan_git.c).
 */
#ifndef LOOKUP_SCAN_PRIVATE_H
#define LOOKUP_SCAN_PRIVATE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/dfa.h"
#include "launcherd/lookup/resolve.h"
#include "launcherd/lookup/scan.h"
#include "protocol/lookup.h"

#define SCAN_ROOTS_MAX 128
#define SCAN_LINKS_MAX 40 /* as in the kernel */
#define SCAN_GIT_MAX 256 /* git directories */
#define SCAN_CONFIGS_MAX 512 /* configuration files read */
#define SCAN_INCLUDES_MAX 10 /* in each other, as git */
#define SCAN_CONFIG_BYTES (1u << 20)
#define SCAN_HOOKS_MAX 8 /* core.hooksPath of one configuration */
#define SCAN_DENIED_MAX 50000 /* entries below denied directories */

/* --- scan_links.c ------------------------------------------------------- */

/* A denied file or directory. `path` is where it is known to be. */
struct scan_link {
	uint64_t ino;
	uint64_t dev;
	size_t item;
	const char *path; /* NULL: an empty place */
};
struct scan_links {
	struct scan_link *table; /* open addressing, size a power of two */
	size_t size;
	size_t n;
};

/* 0 or -ENOMEM; path is borrowed. */
int scan_links_add(struct scan_links *, const struct scan_link *);
/* The first with this inode, and the next after one; NULL: no more. */
const struct scan_link *
scan_links_find(const struct scan_links *, uint64_t ino);
const struct scan_link *
scan_links_next(const struct scan_links *, const struct scan_link *);
void scan_links_done(struct scan_links *);

/* --- scan_git.c --------------------------------------------------------- */

struct scan_git_dir {
	const char *path;
	const char *worktree; /* NULL: not known, or bare */
	bool exists;
};
struct scan_git {
	size_t ndirs;
	struct scan_git_dir dirs[SCAN_GIT_MAX];
	size_t nconfigs;
	size_t nhooks; /* relative ones of the user and the system */
	const char *hooks[SCAN_HOOKS_MAX];
};

/* --- scan_seen.c -------------------------------------------------------- */

struct scan_seen_dir {
	uint64_t root; /* number of a scan_root */
	uint64_t dev;
	uint64_t ino;
	uint64_t ctime_ns;
	const char *rel; /* below the root; NULL: an empty place */
	struct wire_view names; /* of subdirectories, each with its NUL */
};
struct scan_seen {
	uint64_t key;
	uint64_t now_ns;
	size_t n;
	size_t size;
	struct scan_seen_dir *table; /* as scan_links */
	size_t ndirs; /* told */
	struct wire_out dirs;
};

/* --- scan.c ------------------------------------------------------------- */

struct scan_root {
	const char *path; /* resolved */
	size_t len;
	const char *literal; /* NULL: the same */
	uint64_t dev;
	bool writable;
};

struct scan {
	const struct lookup_question *question;
	struct lookup_results *results;
	const char *home;
	char *text;
	size_t text_len;
	size_t text_size;
	struct dfa *dfa;
	size_t naside; /* rules that are not in it: dfa_compile_some() */
	const struct dfa_rule *aside[DFA_ASIDE_MAX];
	size_t nroots;
	struct scan_root roots[SCAN_ROOTS_MAX];
	uint64_t end_ms;
	uint64_t left; /* entries that may still be looked at */
	unsigned ticks;
	bool out_of_time;
	bool again; /* the second pass: other names of files of `later` */
	struct scan_links links; /* of this pass */
	struct scan_links later; /* found in this one */
	struct scan_git git;
	struct scan_seen seen;
};

/* What lies in a git directory that is not called .git. 0 or -ENOMEM. */
int scan_git_tree(struct scan *, const char *path);

/* --- scan_found.c ------------------------------------------------------- */

/* Keeps a text; NULL when there is no room, which is told. */
const char *scan_keep(struct scan *, const char *text);
void scan_found(struct scan *, enum lookup_what what, const char *path,
    enum lookup_kind kind);
void scan_found_link(struct scan *, const char *path, enum lookup_kind kind,
    const struct scan_link *);
uint64_t scan_now_ms(void); /* monotonic */
/* One step of work, and one more entry; false: the time is used up, or the
 * entries. */
bool scan_step(struct scan *);
bool scan_step_entry(struct scan *);
bool scan_in_roots(const struct scan *, const char *path);
/* `path` resolved, or where it would come to be when it does not exist: kind
 * NONE. A descriptor is not kept. 0, or -errno: it cannot be looked at. */
int scan_resolve(const char *path, char ret[SCAN_PATH_MAX + 1],
    enum lookup_kind *ret_kind);
/* What a rule leads to: told as LOOKUP_TARGET. */
void scan_target(struct scan *, const char *path);
/* The links on the way to a path: one that is replaced leads to another. */
void scan_way(struct scan *, const char *path);

/* --- scan_seen.c -------------------------------------------------------- */

static inline uint64_t
scan_seen_time(const struct timespec *t)
{
	return t->tv_sec < 0 ?
	    0 :
	    (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

/* Whether times of change on this kind of file system (statfs(2)) count. */
bool scan_seen_trusts(unsigned long file_system);
/* When roots and denied inodes are known. */
void scan_seen_begin(struct scan *);
/* The directory as it was seen, or NULL; `names` is not looked at. */
const struct scan_seen_dir *
scan_seen_find(const struct scan *, const struct scan_seen_dir *);
/* One in which nothing was found. */
void scan_seen_note(struct scan *, const struct scan_seen_dir *);
/* What was noted, for the next scan, into `out`; frees. */
void scan_seen_finish(struct scan *, struct wire_out *out);

/* --- scan_git.c --------------------------------------------------------- */

/* A .git in `dir` that is a directory, a file or a link. */
void scan_git_entry(struct scan *, const char *dir);
/* A git directory; worktree may be NULL. */
void scan_git_add(struct scan *, const char *path, const char *worktree);
/* The user's and the system's configuration, before the walk. */
void scan_git_global(struct scan *);
/* After the walk, for all that were added. 0 or -ENOMEM. */
int scan_git_finish(struct scan *);

#endif
