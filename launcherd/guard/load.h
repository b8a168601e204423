/*
 * Puts the BPF programs of the guard into the kernel and takes them out again.
 * Used by stockade-guard, a process of its own that ends when this is done: it
 * is the only one that links libbpf and may load programs.
 *
 * Programs and maps are pinned in a directory of a BPF file system, root's own
 * and mode 0700: they stay in force while no daemon runs (SPEC D14), and who
 * can open `labels` there has power over every process of the host.
 */
#ifndef LAUNCHERD_GUARD_LOAD_H
#define LAUNCHERD_GUARD_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#define GUARD_WHY_MAX 256

struct guard_loaded {
	bool kept; /* the same programs were in place already */
	unsigned programs;
	char missing[GUARD_WHY_MAX]; /* optional hooks that are not there */
	char why[GUARD_WHY_MAX]; /* the first failing step, for people */
};

/*
 * Brings the programs into force, pinned in `dir`, a name directly below a BPF
 * file system. What is there and is the same is kept; other programs are taken
 * away once the new ones are in force. All or nothing: 0, or -errno with
 * ret->why, and `dir` as it was.
 */
int guard_load(const char *dir, struct guard_loaded *ret);

/* Removes every pin in `dir`, and itself: with the last one the programs end.
 * 0 also when there is nothing. Also what an interrupted guard_load left. */
int guard_unload(const char *dir);

/* NULL when programs that are skipped where they would run inside each other
 * cannot be (Linux before 6.2 with a fully preemptible kernel); else why. */
const char *guard_preemption_why(void);

#endif
