/*
 * Look-ups: one child (stockade-lookup) each, and what it said about the user
 * for the launch that follows. Which ids a run gets is decided here and
 * nowhere else: the uid is the supervisor's word, the primary group is what
 * NSS says of that uid, the supplementary groups are the client's as the
 * kernel told, or getgrouplist's for an operator; less the two groups of the
 * service (SPEC C25). Never from a plan.
 *
 * One child is started ahead, without a user; the next look-up takes it, and
 * it serves no other.
 */
#ifndef LAUNCHERD_LOOKUPS_H
#define LAUNCHERD_LOOKUPS_H

#include <sys/queue.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcherd/spawn.h"

struct event;
struct launcherd;
struct lookup;
struct msg_lookup_start;

#define LOOKUP_TIMEOUT_MS 10000
#define LOOKUP_VALID_MS 30000
#define LOOKUPS_MAX 256 /* children at a time */
#define LOOKUPS_KEPT_MAX 1024 /* answers whose launch has not come */
#define LOOKUP_GROUPS_MAX 1024

TAILQ_HEAD(lookup_list, lookup);

struct lookups {
	struct lookup_list list; /* running and answered, oldest first */
	size_t running;
	size_t kept;
	struct spawned spare; /* pid 0: there is none */
	int spare_channel;
	struct event *spare_timer; /* starts the next one */
};

/* The ids of a run. */
struct lookup_ids {
	uid_t uid;
	gid_t gid;
	size_t ngroups;
	gid_t groups[LOOKUP_GROUPS_MAX];
};

/* 0 or -errno. */
int lookups_init(struct launcherd *);
void lookups_done(struct launcherd *);

/* Starts the spare one, if there is none, `ms` (below 1000) from now. */
void lookups_prepare(struct launcherd *, long ms);

/* Takes question_fd. The answer is sent as lookup_answer, always. */
void lookup_start(struct launcherd *, const struct msg_lookup_start *,
    int question_fd);

/*
 * The ids of an answered look-up of this request for this uid, at most
 * LOOKUP_VALID_MS old. Each is used once. 0; -ENOENT; -ESTALE.
 */
int lookup_take_ids(struct launcherd *, uint64_t request, uid_t uid,
    struct lookup_ids *ret);

/* Group lists, pure: copies `raw` (native uint32 each, len bytes) without
 * `drop_a` and `drop_b` and without repeats. Returns the count, -EINVAL for a
 * length that is no multiple of four, -E2BIG. */
int lookup_groups(const uint8_t *raw, size_t len, gid_t drop_a, gid_t drop_b,
    gid_t ret[LOOKUP_GROUPS_MAX]);

#endif
