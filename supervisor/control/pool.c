/*
 * In stockade-control: a list of blocks, each with room for many small things;
 * a large thing gets a block of its own.
 */
#include "supervisor/control/pool.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

#define POOL_BLOCK 16384u

struct pool_block {
	struct pool_block *next;
	size_t size;
	size_t used;
	alignas(max_align_t) unsigned char bytes[];
};

static struct pool_block *
block_new(size_t size)
{
	struct pool_block *block;
	size_t total;

	if (!size_add(size, sizeof(*block), &total))
		return NULL;
	block = calloc(1, total);
	if (block != NULL)
		block->size = size;
	return block;
}

void *
pool_alloc(struct pool *pool, size_t n, size_t size)
{
	struct pool_block *block = pool->blocks;
	size_t want, rounded;
	void *p;

	if (!size_mul(n, size, &want) ||
	    !size_add(want, alignof(max_align_t), &rounded))
		return NULL;
	rounded -= rounded % alignof(max_align_t);
	if (block == NULL || block->size - block->used < rounded) {
		block = block_new(rounded > POOL_BLOCK ? rounded : POOL_BLOCK);
		if (block == NULL)
			return NULL;
		block->next = pool->blocks;
		pool->blocks = block;
	}
	p = block->bytes + block->used;
	block->used += rounded;
	return p;
}

/* Behind the block that is being filled; as far as the others see it is full,
 * and empty to pool_done(). */
void *
pool_alloc_sparse(struct pool *pool, size_t n, size_t size)
{
	struct pool_block *block;
	size_t want;

	if (!size_mul(n, size, &want))
		return NULL;
	block = block_new(want);
	if (block == NULL)
		return NULL;
	block->size = 0;
	if (pool->blocks == NULL) {
		pool->blocks = block;
	} else {
		block->next = pool->blocks->next;
		pool->blocks->next = block;
	}
	return block->bytes;
}

char *
pool_strndup(struct pool *pool, const char *s, size_t len)
{
	char *copy;

	if (len == SIZE_MAX)
		return NULL;
	copy = pool_alloc(pool, len + 1, 1);
	if (copy != NULL && len > 0)
		memcpy(copy, s, len);
	return copy;
}

char *
pool_strdup(struct pool *pool, const char *s)
{
	return pool_strndup(pool, s, strlen(s));
}

char *
pool_concat(struct pool *pool, const char *a, const char *b)
{
	size_t alen = strlen(a), blen = strlen(b), len;
	char *joined;

	if (!size_add(alen, blen, &len))
		return NULL;
	joined = pool_alloc(pool, len + 1, 1);
	if (joined == NULL)
		return NULL;
	memcpy(joined, a, alen);
	memcpy(joined + alen, b, blen);
	return joined;
}

void
pool_done(struct pool *pool)
{
	struct pool_block *block;

	while ((block = pool->blocks) != NULL) {
		pool->blocks = block->next;
		explicit_bzero(block->bytes, block->used);
		free(block);
	}
}
