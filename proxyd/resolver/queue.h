/*
 * Look-ups of stockade-resolver: a few threads that block in getaddrinfo(3),
 * a bounded queue in front of them, and a descriptor that tells the loop when
 * answers are ready.
 */
#ifndef PROXYD_RESOLVER_QUEUE_H
#define PROXYD_RESOLVER_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "common/hostname.h"

#define QUEUE_ADDRS 32

struct queue;

struct queue_answer {
	uint64_t link; /* as given to queue_ask() */
	uint64_t request;
	unsigned status; /* enum resolve_status */
	size_t n;
	struct hostname_addr addrs[QUEUE_ADDRS];
};

/* Starts the threads; NULL when that fails. They live until exit. */
struct queue *queue_new(void);

/* Becomes readable when there are answers. */
int queue_fd(const struct queue *queue);

/*
 * name must be a normalised host name of at least two labels.  -ENOBUFS when
 * too many wait, -EINVAL for another name, -ENOMEM.
 */
int queue_ask(struct queue *queue, uint64_t link, uint64_t request,
    const char *name);

/* 1 and an answer, or 0. */
int queue_take(struct queue *queue, struct queue_answer *ret);

#endif
