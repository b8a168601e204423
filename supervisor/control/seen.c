/*
 * See seen.h.
 */
#include "supervisor/control/seen.h"

#include <stdlib.h>
#include <string.h>

static struct seen *
find(struct seen_list *all, uint64_t uid, const uint8_t key[SEEN_KEY])
{
	for (size_t i = 0; i < SEEN_KEPT_MAX; i++)
		if (all->list[i].data != NULL && all->list[i].uid == uid &&
		    memcmp(all->list[i].key, key, SEEN_KEY) == 0)
			return &all->list[i];
	return NULL;
}

struct wire_view
seen_find(struct seen_list *all, uint64_t uid, const uint8_t key[SEEN_KEY])
{
	struct seen *s = find(all, uid, key);

	if (s == NULL)
		return (struct wire_view){ NULL, 0 };
	s->used = ++all->clock;
	return (struct wire_view){ s->data, s->len };
}

static struct seen *
place(struct seen_list *all)
{
	struct seen *oldest = &all->list[0];

	for (size_t i = 0; i < SEEN_KEPT_MAX; i++) {
		if (all->list[i].data == NULL)
			return &all->list[i];
		if (all->list[i].used < oldest->used)
			oldest = &all->list[i];
	}
	return oldest;
}

void
seen_keep(struct seen_list *all, uint64_t uid, const uint8_t key[SEEN_KEY],
    struct wire_view bytes)
{
	struct seen *s = find(all, uid, key);

	if (bytes.len == 0 && s == NULL)
		return;
	if (s == NULL)
		s = place(all);
	free(s->data);
	memset(s, 0, sizeof(*s));
	if (bytes.len == 0)
		return;
	s->data = malloc(bytes.len);
	if (s->data == NULL)
		return;
	memcpy(s->data, bytes.data, bytes.len);
	memcpy(s->key, key, SEEN_KEY);
	s->len = bytes.len;
	s->uid = uid;
	s->used = ++all->clock;
}

void
seen_done(struct seen_list *all)
{
	for (size_t i = 0; i < SEEN_KEPT_MAX; i++)
		free(all->list[i].data);
	memset(all, 0, sizeof(*all));
}
