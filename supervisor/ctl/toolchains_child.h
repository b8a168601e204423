/*
 * A search made as another user: in a child that takes the user's ids for
 * good, with its result in a pipe (toolchains.h, `ids`). For toolchains.c.
 */
#ifndef SUPERVISOR_CTL_TOOLCHAINS_CHILD_H
#define SUPERVISOR_CTL_TOOLCHAINS_CHILD_H

#include <stddef.h>
#include <stdint.h>

struct toolchains;
struct toolchains_ids;
struct toolchains_input;

typedef int toolchains_fn(const struct toolchains_input *, struct toolchains *);

/* Runs fn(in, ret) in the child. 0; what fn returned; -EPERM: the ids could
 * not be taken; -ETIMEDOUT; -EPROTO: no result. */
int toolchains_child_run(const struct toolchains_input *in, toolchains_fn *fn,
    struct toolchains *ret);

/*
 * The result's bytes, both directions; no I/O. Each record is a kind (1: mount,
 * 2: skipped), the index of its word in the list of toolchains_word(), two
 * bytes of length (big endian) and the path; the last one is kind 3 with the
 * count of those beyond the table in four bytes as its path. Decoding refuses
 * everything else (-EPROTO): a path that is not clean, a mount after a skipped
 * one, a path skipped twice, a second number for a word, a second end, a byte
 * after it, more records than the tables hold. *ret holds nothing then.
 */
#define TOOLCHAINS_BYTES_MAX ((size_t)(40 + 32) * (4 + 4096) + 8)
size_t toolchains_encode(const struct toolchains *, uint8_t *ret,
    size_t size); /* 0: does not fit */
int toolchains_decode(const uint8_t *data, size_t len, struct toolchains *ret);

/* The words for rules and reasons; NULL beyond the last. */
const char *toolchains_word(size_t i);

/* Append a copy; a full table counts in more_skipped. 0 or -ENOMEM. */
int
toolchains_add_mount(struct toolchains *, const char *path, const char *rule);
int
toolchains_add_skipped(struct toolchains *, const char *path, const char *why);

#endif
