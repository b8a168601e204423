/*
 * Overflow-checked sizes. Lengths that come from outside are added and
 * multiplied only through these.
 *
 * Each returns true and writes *ret on success; false on overflow, *ret
 * untouched.
 */
#ifndef COMMON_SIZE_H
#define COMMON_SIZE_H

#include <stdbool.h>
#include <stddef.h>

static inline bool
size_add(size_t a, size_t b, size_t *ret)
{
	size_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*ret = sum;
	return true;
}

static inline bool
size_mul(size_t a, size_t b, size_t *ret)
{
	size_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*ret = product;
	return true;
}

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
