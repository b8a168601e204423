/*
 * What user space and the BPF programs (guard.bpf.c) share: the layout of the
 * maps. Both are compiled from this file; GUARD_LAYOUT changes with it.
 *
 *	labels	task storage: task -> struct guard_label, inherited by children
 *	runs	array of maps: slot -> array of one struct guard_policy
 *	places	array of maps: 2 * slot and the next -> array of struct dfa_place,
 *		for the rules in force and for those that follow them
 *	events	ring buffer of struct guard_event
 *	lost	array: slot -> refusals that found no room in `events`
 *	about	array of one struct guard_about: whose programs these are
 *
 * A task whose label has no policy, or one of another generation, may neither
 * write nor open anything.
 */
#ifndef LAUNCHERD_GUARD_POLICY_H
#define LAUNCHERD_GUARD_POLICY_H

#include <stdint.h>

#include "common/dfa.h"

#define GUARD_LAYOUT 1u
#define GUARD_SLOTS 1024 /* runs at a time */
#define GUARD_ENTRIES 16 /* guarded roots of a run with their submounts */
#define GUARD_PREFIX_MAX 32 /* names between a root and a submount of it */
#define GUARD_EVENTS_BYTES (1u << 20)
#define GUARD_PATH_BYTES 4096
#define GUARD_EXE_BYTES 1024
#define GUARD_EXE_DEPTH 48
#define GUARD_COMM_BYTES 16

struct guard_names {
	uint64_t n[DFA_DEPTH_MAX]; /* dfa_name() */
};

struct guard_label {
	uint64_t gen;
	uint32_t slot;
	uint32_t unused;
	struct guard_names names; /* of the path that is being judged */
};

/* A directory (or a file) where the walk towards the root of the file system
 * ends. */
struct guard_entry {
	uint64_t ino;
	uint32_t dev; /* as the kernel has it: major << 20 | minor */
	uint16_t root; /* number in the table */
	uint16_t nprefix;
	uint32_t unused;
	/* dfa_name() of the names from here on up to the root, where a file
	 * system is mounted below the root. */
	uint64_t prefix[GUARD_PREFIX_MAX];
};

struct guard_policy {
	uint64_t gen; /* 0: of nobody */
	uint64_t bloom; /* bit ino % 64 of each entry */
	uint32_t nentries;
	uint32_t places; /* key of `places` */
	struct guard_entry entry[GUARD_ENTRIES];
	/* As in struct dfa, which dfa_check() has accepted. */
	uint32_t nplaces;
	uint32_t any_places; /* 1: some hold at any depth */
	uint16_t start;
	uint16_t ncls;
	uint16_t nnames;
	uint16_t masks;
	uint8_t cls[256];
	struct dfa_verdict verdict[DFA_VERDICTS_MAX];
	uint16_t next[DFA_NEXT_MAX];
};

struct guard_event {
	uint64_t gen;
	uint32_t slot;
	uint32_t pid; /* thread group, in the run's own pid namespace */
	uint16_t entry; /* GUARD_ENTRIES: no place was reached */
	uint16_t rule; /* or DFA_RULE_TOO_DEEP */
	uint16_t asked; /* DFA_* */
	uint16_t denied;
	uint16_t action; /* enum violation_action */
	uint16_t exe_len;
	uint32_t path_len;
	char comm[GUARD_COMM_BYTES];
	/* Names, leaf first, a NUL after each; cut off where there is no more
	 * room. Room for one more name behind the end. */
	char exe[GUARD_EXE_BYTES + 256];
	char path[GUARD_PATH_BYTES + 256];
};

struct guard_about {
	uint64_t layout;
	uint64_t object; /* hash of the programs as they were built */
	uint64_t complete; /* 1: everything is attached and pinned */
};

#endif
