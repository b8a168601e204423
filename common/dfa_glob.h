/*
 * A name rule's pattern in pieces, for common/dfa_build.c. No I/O.
 */
#ifndef COMMON_DFA_GLOB_H
#define COMMON_DFA_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that an atom takes: never '/', never 0. */
struct dfa_set {
	uint64_t bits[4];
};

struct dfa_atom {
	bool star; /* any run of bytes; set is unused */
	struct dfa_set set; /* one byte of these */
};

struct dfa_part {
	bool any; /* any number of components, no atoms */
	size_t first;
	size_t natoms;
};

/*
 * The components in the pattern's order. A pattern of any depth begins with an
 * `any` part; no two of these are neighbours, and no two stars.
 */
struct dfa_glob {
	size_t nparts;
	struct dfa_part *parts;
	size_t natoms;
	struct dfa_atom *atoms;
};

static inline bool
dfa_set_has(const struct dfa_set *set, unsigned char byte)
{
	return (set->bits[byte >> 6] >> (byte & 63) & 1) != 0;
}

/*
 * 0; -EINVAL with *ret_why, static text, and nothing to free; -ENOMEM.
 * dfa_glob_done() takes an empty one.
 */
int dfa_glob_parse(const char *glob, bool ignore_case, struct dfa_glob *ret,
    const char **ret_why);
void dfa_glob_done(struct dfa_glob *);

/* Whether a part (not an `any` one) takes this name. */
bool dfa_glob_part_matches(const struct dfa_glob *, size_t part,
    const char *name, size_t len);

#endif
