/*
 * The table of sandboxes; see sandbox_table.h. In stockaded. The numbers that
 * are looked up come from daemons that may have been taken over.
 */
#include "supervisor/sandbox_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

void
sandboxes_init(struct sandboxes *table)
{
	memset(table, 0, sizeof(*table));
	for (size_t i = 0; i < SANDBOX_BUCKETS; i++)
		LIST_INIT(&table->buckets[i]);
}

static struct sandbox_bucket *
bucket(struct sandboxes *table, uint64_t id)
{
	return &table->buckets[id % SANDBOX_BUCKETS];
}

struct sandbox *
sandboxes_add(struct sandboxes *table)
{
	struct sandbox *sandbox = calloc(1, sizeof(*sandbox));

	if (sandbox == NULL)
		return NULL;
	sandbox->id = ++table->last;
	sandbox->plan_fd = -1;
	sandbox->egress_fd = -1;
	sandbox->guard_fd = -1;
	sandbox->cgroup_fd = -1;
	sandbox->http_fd = -1;
	sandbox->socks_fd = -1;
	LIST_INSERT_HEAD(bucket(table, sandbox->id), sandbox, next);
	table->count++;
	return sandbox;
}

void
sandboxes_remove(struct sandboxes *table, struct sandbox *sandbox)
{
	int fds[] = { sandbox->plan_fd, sandbox->egress_fd, sandbox->guard_fd,
		sandbox->cgroup_fd, sandbox->http_fd, sandbox->socks_fd };

	LIST_REMOVE(sandbox, next);
	table->count--;
	close_all(fds, sizeof(fds) / sizeof(fds[0]));
	free(sandbox);
}

static struct sandbox *
find_live(struct sandboxes *table, uint64_t id)
{
	struct sandbox *sandbox;

	LIST_FOREACH (sandbox, bucket(table, id), next)
		if (sandbox->id == id)
			return sandbox;
	return NULL;
}

enum sandbox_found
sandboxes_find(struct sandboxes *table, uint64_t id, struct sandbox **ret)
{
	struct sandbox *sandbox = find_live(table, id);

	if (sandbox == NULL)
		return id <= table->last ? SANDBOX_GONE : SANDBOX_NEVER;
	*ret = sandbox;
	return SANDBOX_LIVE;
}

void
sandboxes_each(struct sandboxes *table, void (*fn)(void *ctx, struct sandbox *),
    void *ctx)
{
	for (size_t i = 0; i < SANDBOX_BUCKETS; i++) {
		struct sandbox *sandbox = LIST_FIRST(&table->buckets[i]);

		while (sandbox != NULL) {
			struct sandbox *after = LIST_NEXT(sandbox, next);

			fn(ctx, sandbox);
			sandbox = after;
		}
	}
}

static void
remove_each(void *ctx, struct sandbox *sandbox)
{
	sandboxes_remove(ctx, sandbox);
}

void
sandboxes_done(struct sandboxes *table)
{
	sandboxes_each(table, remove_each, table);
}

int
sandbox_kill(const struct sandbox *sandbox)
{
	autoclose int fd = -1;

	if (sandbox->cgroup_fd < 0)
		return 0;
	fd = openat(sandbox->cgroup_fd, "cgroup.kill",
	    O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	return write(fd, "1", 1) == 1 ? 0 : -errno;
}
