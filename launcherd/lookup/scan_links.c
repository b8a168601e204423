/*
 * Inodes that are denied. See scan_private.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "launcherd/lookup/scan_private.h"

#define FIRST_SIZE 1024u

static size_t
place_of(const struct scan_links *links, uint64_t ino)
{
	return (size_t)((ino * 0x9e3779b97f4a7c15u) >> 32) & (links->size - 1);
}

static void
insert(struct scan_links *links, const struct scan_link *link)
{
	size_t i = place_of(links, link->ino);

	while (links->table[i].path != NULL)
		i = (i + 1) & (links->size - 1);
	links->table[i] = *link;
	links->n++;
}

static int
grow(struct scan_links *links)
{
	struct scan_links old = *links;

	links->size = old.size == 0 ? FIRST_SIZE : 2 * old.size;
	links->table = calloc(links->size, sizeof(*links->table));
	if (links->table == NULL) {
		*links = old;
		return -ENOMEM;
	}
	links->n = 0;
	for (size_t i = 0; i < old.size; i++)
		if (old.table[i].path != NULL)
			insert(links, &old.table[i]);
	free(old.table);
	return 0;
}

int
scan_links_add(struct scan_links *links, const struct scan_link *link)
{
	/* Half full at most: a search ends at an empty place. */
	if (2 * links->n >= links->size) {
		int r = grow(links);

		if (r < 0)
			return r;
	}
	insert(links, link);
	return 0;
}

static const struct scan_link *
from(const struct scan_links *links, size_t i, uint64_t ino)
{
	for (; links->table[i].path != NULL; i = (i + 1) & (links->size - 1))
		if (links->table[i].ino == ino)
			return &links->table[i];
	return NULL;
}

const struct scan_link *
scan_links_find(const struct scan_links *links, uint64_t ino)
{
	return links->n == 0 ? NULL : from(links, place_of(links, ino), ino);
}

const struct scan_link *
scan_links_next(const struct scan_links *links, const struct scan_link *link)
{
	size_t i = (size_t)(link - links->table);

	return from(links, (i + 1) & (links->size - 1), link->ino);
}

void
scan_links_done(struct scan_links *links)
{
	free(links->table);
	*links = (struct scan_links){ NULL, 0, 0 };
}
