/*
 * The rules asked about a pinned place: protocol/guard.h.
 */
#ifndef BROKER_JUDGE_H
#define BROKER_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/dfa.h"
#include "protocol/cause.h"

struct broker;
struct object;
struct place;
struct request;

/* Maps and checks the table that fd holds; takes fd. 0 or -errno. */
int judge_open(struct broker *, int fd);

/*
 * Other rules from the next request on (SPEC D13); takes fd. They must be of
 * the same places, since the run's Landlock domain is made of those: -EINVAL.
 * The old rules stay on every error.
 */
int judge_replace(struct broker *, int fd);

/* Whether a directory lies in a guarded root, or is one. */
bool judge_guards(const struct broker *, const char *path, size_t len);

/* Whether both directories lie in one guarded root. */
bool judge_same_root(const struct broker *, const struct place *,
    const struct place *);

/*
 * Added to a mask: something that is no directory gets this name, or is written
 * by it. A file called .git stands for another directory, whose hooks and
 * configuration git would use: it is judged like a link.
 */
#define JUDGE_FILE 0x8000u

/*
 * Whether the rules deny any of the DFA_* in `mask` for the name. The one that
 * does is remembered for judge_denied().
 */
bool judge_denies(struct broker *, const struct place *, unsigned mask);
bool judge_denies_object(struct broker *, const struct object *, unsigned mask);

/*
 * A name was made by this run (SPEC D18). A new ".git" in a guarded root
 * may be configured where the rules permit new repositories: the rules of
 * git's own set do not hold in it, all others do, and it can still be neither
 * moved nor replaced.
 */
void judge_made(struct broker *, const struct place *);

/* Something was renamed; `exchanged`: the other way, too. */
void judge_moved(struct broker *, const struct place *from,
    const struct place *to, bool exchanged);

/* One violation for what judge_denies() said last. Returns -EPERM. */
int judge_denied(struct broker *, struct request *, enum violation_action);

#endif
