/*
 * Memory that is given back all at once: the strings and arrays of one spec or
 * one plan. Everything that pool_*() returns lives until pool_done(). No I/O.
 */
#ifndef SUPERVISOR_CONTROL_POOL_H
#define SUPERVISOR_CONTROL_POOL_H

#include <stddef.h>

struct pool_block;

/* Zero-initialise. */
struct pool {
	struct pool_block *blocks;
};

/* Zeroed memory for n things of `size` bytes, or NULL (no memory, overflow).
 * n or size 0 gives a valid pointer. */
void *pool_alloc(struct pool *, size_t n, size_t size);

/* The same for an array of pointers and numbers of which most stays unused: a
 * block of its own, untouched, and not wiped (what it points to is). */
void *pool_alloc_sparse(struct pool *, size_t n, size_t size);

/* A terminated copy of `len` bytes, or NULL. */
char *pool_strndup(struct pool *, const char *, size_t len);
char *pool_strdup(struct pool *, const char *);

/* a followed by b, or NULL. */
char *pool_concat(struct pool *, const char *a, const char *b);

/* Wipes (specs hold environment values) and frees. */
void pool_done(struct pool *);

#endif
