/*
 * Sealed memfds (memfd_create(2)): long input between processes. A sealed
 * memfd cannot change any more, so a receiver may map it, decode it, and keep
 * pointers into it.
 */
#ifndef COMMON_MEMFD_H
#define COMMON_MEMFD_H

#include <stddef.h>
#include <stdint.h>

#define MEMFD_SIZE_MAX (16u << 20)

/* Makes a memfd with `len` bytes, all seals set, close-on-exec. Returns the
 * descriptor or -errno. */
int memfd_seal(const char *name, const void *data, size_t len);

/* Checks that fd is a memfd with SEAL, SHRINK, GROW, WRITE set and at most
 * `max` bytes. Returns its size or -errno (-EPERM: not sealed, -EFBIG). */
ptrdiff_t memfd_check(int fd, size_t max);

struct memfd_map {
	const uint8_t *data;
	size_t len;
};

/* memfd_check, then maps it read-only. The map outlives the descriptor.
 * memfd_unmap takes an empty map too. */
int memfd_open_map(int fd, size_t max, struct memfd_map *ret);
void memfd_unmap(struct memfd_map *);

#endif
