/*
 * What a run was refused, for people (SPEC Y7, L10): equal refusals become
 * one line with a count.
 */
#ifndef CTL_DENIED_H
#define CTL_DENIED_H

#include <msgpack.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define DENIED_MAX 256 /* different ones that are kept */

struct denied_item {
	char *line; /* without the count */
	uint64_t count;
};

struct denied {
	size_t n;
	uint64_t more; /* that found no room */
	struct denied_item items[DENIED_MAX];
};

/* Adds a violation (the fields of SPEC L1). */
void denied_add(struct denied *denied, const msgpack_object *violation);
/* Forgets all. */
void denied_done(struct denied *denied);
/* One violation as the summary line of SPEC L10. */
void denied_summary(const msgpack_object *violation, FILE *to);
/* One line each, with `prefix` in front. */
void denied_print(const struct denied *denied, const char *prefix, FILE *to);

#endif
