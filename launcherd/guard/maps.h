/*
 * The guard's maps, from user space: who is labelled, which rules a run has,
 * what was refused. By bpf(2) alone, which needs no capability for what is
 * done here with descriptors but for the making of maps.
 *
 * Whoever holds `labels` can take any process of the host out of its rules or
 * stop it: every descriptor here is close-on-exec, none is ever passed on.
 */
#ifndef LAUNCHERD_GUARD_MAPS_H
#define LAUNCHERD_GUARD_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcherd/guard/policy.h"

/* Slots of ended runs that keep their maps for the next one. */
#define GUARD_IDLE_MAX 16

struct guard_slot {
	bool used;
	bool installed; /* the kernel's table has its map */
	bool fresh; /* it had no rules yet */
	int policy_fd; /* array of one struct guard_policy; -1: none */
	int places_fd[2]; /* -1: none */
	uint32_t places_room[2]; /* entries */
	unsigned places; /* which of them is in force */
	uint64_t gen;
};

struct guard_maps {
	int labels_fd;
	int runs_fd;
	int places_fd;
	int lost_fd;
	int events_fd; /* readable when there are events */
	uint64_t last_gen;
	struct guard_slot slot[GUARD_SLOTS];
	/* The ring, mapped: its two positions and its bytes. */
	unsigned long *consumer;
	const unsigned long *producer;
	const unsigned char *ring;
	size_t page;
};

/*
 * Opens what stockade-guard pinned in `dir`. What an earlier process has left is
 * still under its rules, until a new run has its slot: then it may do nothing.
 * (They are not looked at: before Linux 6.8 each look into a map of maps waits
 * for all programs.) 0 or -errno; -ENOEXEC: other programs than these maps are
 * for.
 */
int guard_maps_open(const char *dir, struct guard_maps *ret);
void guard_maps_close(struct guard_maps *);

/*
 * A free slot with a generation of its own and no guarded place; nothing is
 * denied in it. Its number, or -errno (-EUSERS: none is free).
 */
int guard_slot_take(struct guard_maps *);
/* From now on what is labelled with it may do nothing. The caller knows that
 * nothing is (the run's cgroup is empty). */
void guard_slot_put(struct guard_maps *, int slot);
/*
 * Puts rules into force, all at once for each access that begins after it; the
 * first time nothing that is judged may run yet.
 * policy is filled but for gen and places; its places come from dfa. 0, or
 * -errno with the old ones in force.
 */
int guard_slot_set(struct guard_maps *, int slot, struct guard_policy *policy,
    const struct dfa *dfa);

/* A child that has one thread and waits: it and its descendants. 0 or -errno.*/
int guard_label_set(struct guard_maps *, int slot, int pidfd);

/* The events that are there; each is valid during its call alone. */
void guard_events_read(struct guard_maps *,
    void (*take)(void *ctx, const struct guard_event *), void *ctx);
/* Refusals of a slot that found no room in the ring, since it was asked last. */
uint64_t guard_lost_take(struct guard_maps *, int slot);

#endif
