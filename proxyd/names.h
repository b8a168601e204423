/*
 * Names to addresses by the resolver process, with a small cache.  A name is
 * asked for only after the session's lists allowed it (SPEC G16).  What the
 * resolver says is checked by the caller, address by address.
 */
#ifndef PROXYD_NAMES_H
#define PROXYD_NAMES_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hostname.h"

#define NAMES_ADDRS 32

struct event_base;
struct names;
struct names_entry;
struct proxyd;

struct names_answer {
	unsigned status; /* enum resolve_status */
	size_t n;
	struct hostname_addr addrs[NAMES_ADDRS];
};

/* One question; lies in the asker's memory and must be cancelled before that
 * goes away. */
struct names_wait {
	TAILQ_ENTRY(names_wait) link;
	struct names_entry *entry; /* NULL: nothing is waited for */
	void (*fn)(void *ctx, const struct names_answer *answer);
	void *ctx;
};

struct names *names_new(struct proxyd *p);
void names_free(struct names *names);

/* Takes fd: the link to the resolver; replaces an earlier one. */
int names_link(struct names *names, int fd);

/* The answer if it is known, valid until the next call; else NULL. */
const struct names_answer *names_known(struct names *names, const char *name);

/*
 * As above, but what is not known is asked for: on NULL,
 * wait->fn is called later from the loop, once, unless cancelled.
 */
const struct names_answer *
names_ask(struct names *names, const char *name, struct names_wait *wait);
void names_cancel(struct names_wait *wait);

#endif
