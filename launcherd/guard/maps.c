/*
 * See maps.h. Layout of the ring: Documentation/bpf/ringbuf.rst (Linux 5.8).
 */
#include "launcherd/guard/maps.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/size.h"

#define PATH_BYTES 256
#define PLACES_ROOM_MIN 256

/* ---------------------------------------------------------------- bpf(2) */

static int
sys_bpf(int cmd, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

static uint64_t
address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static int
map_pinned(const char *dir, const char *name)
{
	char path[PATH_BYTES];
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	attr.pathname = address(path);
	return sys_bpf(BPF_OBJ_GET, &attr);
}

static int
map_array(const char *name, uint32_t value_size, uint32_t n, uint32_t flags)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = value_size;
	attr.max_entries = n;
	attr.map_flags = flags;
	(void)snprintf(attr.map_name, sizeof(attr.map_name), "%s", name);
	return sys_bpf(BPF_MAP_CREATE, &attr);
}

static int
map_set(int fd, const void *key, const void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	attr.key = address(key);
	attr.value = address(value);
	attr.flags = BPF_ANY;
	return sys_bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

static int
map_get(int fd, uint32_t key, void *ret)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	attr.key = address(&key);
	attr.value = address(ret);
	return sys_bpf(BPF_MAP_LOOKUP_ELEM, &attr);
}

static int
map_drop(int fd, uint32_t key)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	attr.key = address(&key);
	return sys_bpf(BPF_MAP_DELETE_ELEM, &attr);
}

/* ---------------------------------------------------------------- opening */

static int
map_ring(struct guard_maps *m)
{
	size_t pages =
	    sysconf(_SC_PAGESIZE) > 0 ? (size_t)sysconf(_SC_PAGESIZE) : 4096;
	void *p = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_SHARED,
	    m->events_fd, 0);

	m->page = pages;
	if (p == MAP_FAILED)
		return -errno;
	m->consumer = p;
	/* The bytes are there twice, so that no record is broken in two. */
	p = mmap(NULL, pages + 2 * (size_t)GUARD_EVENTS_BYTES, PROT_READ,
	    MAP_SHARED, m->events_fd, (off_t)pages);
	if (p == MAP_FAILED)
		return -errno;
	m->producer = p;
	m->ring = (const unsigned char *)p + pages;
	return 0;
}

static int
open_pins(const char *dir, struct guard_maps *m)
{
	struct {
		const char *name;
		int *fd;
	} const pins[] = {
		{ "labels", &m->labels_fd },
		{ "runs", &m->runs_fd },
		{ "places", &m->places_fd },
		{ "lost", &m->lost_fd },
		{ "events", &m->events_fd },
	};

	for (size_t i = 0; i < ARRAY_LEN(pins); i++) {
		int fd = map_pinned(dir, pins[i].name);

		if (fd < 0)
			return fd;
		*pins[i].fd = fd;
	}
	return 0;
}

static int
check_about(const char *dir)
{
	struct guard_about about = { .complete = 0 };
	autoclose int fd = map_pinned(dir, "about");
	int error = fd < 0 ? fd : map_get(fd, 0, &about);

	if (error < 0)
		return error;
	return about.complete == 1 && about.layout == GUARD_LAYOUT ? 0 :
								     -ENOEXEC;
}

int
guard_maps_open(const char *dir, struct guard_maps *ret)
{
	int error;

	memset(ret, 0, sizeof(*ret));
	ret->labels_fd = ret->runs_fd = ret->places_fd = -1;
	ret->lost_fd = ret->events_fd = -1;
	for (size_t i = 0; i < GUARD_SLOTS; i++)
		ret->slot[i] = (struct guard_slot){ .policy_fd = -1,
			.places_fd = { -1, -1 } };
	error = check_about(dir);
	if (error == 0)
		error = open_pins(dir, ret);
	if (error == 0)
		error = map_ring(ret);
	if (error < 0) {
		guard_maps_close(ret);
		return error;
	}
	return 0;
}

void
guard_maps_close(struct guard_maps *m)
{
	if (m->consumer != NULL)
		(void)munmap(m->consumer, m->page);
	if (m->producer != NULL)
		(void)munmap((void *)(uintptr_t)m->producer,
		    m->page + 2 * (size_t)GUARD_EVENTS_BYTES);
	m->consumer = NULL;
	m->producer = NULL;
	for (size_t i = 0; i < GUARD_SLOTS; i++) {
		close_all(&m->slot[i].policy_fd, 1);
		close_all(m->slot[i].places_fd, 2);
	}
	close_all(&m->labels_fd, 1);
	close_all(&m->runs_fd, 1);
	close_all(&m->places_fd, 1);
	close_all(&m->lost_fd, 1);
	close_all(&m->events_fd, 1);
}

/* ---------------------------------------------------------------- slots */

/* Never the same twice on one boot, nor after a restart of this process. */
static uint64_t
new_gen(struct guard_maps *m)
{
	struct timespec ts;
	uint64_t now;

	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	m->last_gen = now > m->last_gen ? now : m->last_gen + 1;
	return m->last_gen;
}

static int
policy_write(struct guard_slot *s, const struct guard_policy *policy)
{
	const uint32_t zero = 0;

	return map_set(s->policy_fd, &zero, policy);
}

static void
slot_drop(struct guard_maps *m, uint32_t number)
{
	struct guard_slot *s = &m->slot[number];

	if (s->installed)
		(void)map_drop(m->runs_fd, number);
	for (uint32_t i = 0; i < 2; i++)
		if (s->places_fd[i] >= 0)
			(void)map_drop(m->places_fd, 2 * number + i);
	close_all(&s->policy_fd, 1);
	close_all(s->places_fd, 2);
	s->installed = false;
}

/* Content first, then into the kernel's table, which waits for the end of
 * what looks there: slots are kept for the next run. */
static int
slot_make(struct guard_maps *m, uint32_t number,
    const struct guard_policy *policy)
{
	struct guard_slot *s = &m->slot[number];
	uint32_t fd;
	int error = 0;

	if (s->policy_fd < 0)
		s->policy_fd = map_array("guard_policy", sizeof(*policy), 1, 0);
	if (s->policy_fd < 0)
		return s->policy_fd;
	error = policy_write(s, policy);
	if (error < 0 || s->installed)
		return error;
	fd = (uint32_t)s->policy_fd;
	error = map_set(m->runs_fd, &number, &fd);
	s->installed = error == 0;
	return error;
}

static int
slot_free(const struct guard_maps *m)
{
	int other = -EUSERS;

	for (int i = GUARD_SLOTS - 1; i >= 0; i--) {
		if (m->slot[i].used)
			continue;
		if (m->slot[i].installed)
			return i;
		other = i;
	}
	return other;
}

int
guard_slot_take(struct guard_maps *m)
{
	int slot = slot_free(m), error;
	struct guard_policy *none;

	if (slot < 0)
		return slot;
	none = calloc(1, sizeof(*none));
	if (none == NULL)
		return -ENOMEM;
	none->gen = m->slot[slot].gen = new_gen(m);
	error = slot_make(m, (uint32_t)slot, none);
	free(none);
	if (error < 0) {
		slot_drop(m, (uint32_t)slot);
		return error;
	}
	m->slot[slot].used = m->slot[slot].fresh = true;
	(void)guard_lost_take(m, slot);
	return slot;
}

void
guard_slot_put(struct guard_maps *m, int slot)
{
	struct guard_policy *none;
	size_t idle = 0;
	bool stale = true;

	m->slot[slot].used = false;
	for (size_t i = 0; i < GUARD_SLOTS; i++)
		idle += !m->slot[i].used && m->slot[i].installed;
	none = calloc(1, sizeof(*none));
	/* Generation 0 is nobody's. */
	if (none != NULL)
		stale = policy_write(&m->slot[slot], none) < 0;
	free(none);
	if (stale || idle > GUARD_IDLE_MAX)
		slot_drop(m, (uint32_t)slot);
}

/* The map that is not in force, with room for n. */
static int
places_make(struct guard_maps *m, uint32_t number, unsigned which, uint32_t n)
{
	struct guard_slot *s = &m->slot[number];
	uint32_t room = PLACES_ROOM_MIN, key = 2 * number + which, value;
	int fd, error;

	if (s->places_fd[which] >= 0 && s->places_room[which] >= n)
		return 0;
	while (room < n)
		room *= 2;
	fd = map_array("guard_places", sizeof(struct dfa_place), room,
	    BPF_F_INNER_MAP);
	if (fd < 0)
		return fd;
	value = (uint32_t)fd;
	error = map_set(m->places_fd, &key, &value);
	if (error < 0) {
		(void)close(fd);
		return error;
	}
	close_all(&s->places_fd[which], 1);
	s->places_fd[which] = fd;
	s->places_room[which] = room;
	return 0;
}

/* In one call where the kernel can (5.6). */
static int
places_write(int fd, const struct dfa *dfa)
{
	union bpf_attr attr;
	uint32_t *keys = calloc(dfa->nplaces, sizeof(*keys));
	int error;

	if (keys == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < dfa->nplaces; i++)
		keys[i] = i;
	memset(&attr, 0, sizeof(attr));
	attr.batch.map_fd = (uint32_t)fd;
	attr.batch.keys = address(keys);
	attr.batch.values = address(dfa->place);
	attr.batch.count = dfa->nplaces;
	error = sys_bpf(BPF_MAP_UPDATE_BATCH, &attr);
	if (error == 0 && attr.batch.count != dfa->nplaces)
		error = -EIO;
	free(keys);
	return error;
}

/*
 * The policy's own map is replaced, never rewritten, while a run uses it: a
 * walk that has begun ends with the rules that it began with. The kernel waits
 * for those walks, some milliseconds.
 */
static int
policy_swap(struct guard_maps *m, uint32_t number,
    const struct guard_policy *policy)
{
	struct guard_slot *s = &m->slot[number];
	autoclose int fd = map_array("guard_policy", sizeof(*policy), 1, 0);
	const uint32_t zero = 0;
	uint32_t value;
	int error, old;

	if (fd < 0)
		return fd;
	error = map_set(fd, &zero, policy);
	value = (uint32_t)fd;
	if (error == 0)
		error = map_set(m->runs_fd, &number, &value);
	if (error < 0)
		return error;
	old = s->policy_fd;
	s->policy_fd = take_fd(&fd);
	(void)close(old);
	return 0;
}

int
guard_slot_set(struct guard_maps *m, int slot, struct guard_policy *policy,
    const struct dfa *dfa)
{
	struct guard_slot *s = &m->slot[slot];
	unsigned which = 1 - s->places;
	int error = 0;

	policy->gen = s->gen;
	policy->places = 2 * (uint32_t)slot + which;
	policy->nplaces = dfa->nplaces;
	policy->any_places =
	    dfa->nplaces > 0 && dfa->place[DFA_PLACE_ANY].nchildren > 0;
	policy->start = dfa->start;
	policy->ncls = dfa->ncls;
	policy->nnames = dfa->nnames;
	policy->masks = dfa->masks;
	memcpy(policy->cls, dfa->cls, sizeof(policy->cls));
	memcpy(policy->verdict, dfa->verdict, sizeof(policy->verdict));
	memcpy(policy->next, dfa->next, sizeof(policy->next));
	if (dfa->nplaces > 0) {
		error = places_make(m, (uint32_t)slot, which, dfa->nplaces);
		if (error == 0)
			error = places_write(s->places_fd[which], dfa);
	}
	if (error == 0)
		error = s->fresh ? policy_write(s, policy) :
				   policy_swap(m, (uint32_t)slot, policy);
	if (error == 0) {
		s->places = which;
		s->fresh = false;
	}
	return error;
}

int
guard_label_set(struct guard_maps *m, int slot, int pidfd)
{
	struct guard_label *label = calloc(1, sizeof(*label));
	int error;

	if (label == NULL)
		return -ENOMEM;
	label->gen = m->slot[slot].gen;
	label->slot = (uint32_t)slot;
	error = map_set(m->labels_fd, &pidfd, label);
	free(label);
	return error;
}

/* ---------------------------------------------------------------- events */

void
guard_events_read(struct guard_maps *m,
    void (*take)(void *ctx, const struct guard_event *), void *ctx)
{
	unsigned long at = __atomic_load_n(m->consumer, __ATOMIC_ACQUIRE);
	unsigned long end = __atomic_load_n(m->producer, __ATOMIC_ACQUIRE);

	while (at < end) {
		const unsigned char *p =
		    m->ring + (at & (GUARD_EVENTS_BYTES - 1));
		uint32_t head =
		    __atomic_load_n((const uint32_t *)(const void *)p,
			__ATOMIC_ACQUIRE);
		uint32_t len =
		    head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if ((head & BPF_RINGBUF_BUSY_BIT) != 0)
			break;
		if ((head & BPF_RINGBUF_DISCARD_BIT) == 0 &&
		    len >= sizeof(struct guard_event))
			take(ctx,
			    (const struct guard_event *)(const void *)(p +
				BPF_RINGBUF_HDR_SZ));
		at += (len + BPF_RINGBUF_HDR_SZ + 7) & ~7ul;
		__atomic_store_n(m->consumer, at, __ATOMIC_RELEASE);
	}
}

uint64_t
guard_lost_take(struct guard_maps *m, int slot)
{
	const uint64_t zero = 0;
	uint32_t key = (uint32_t)slot;
	uint64_t n = 0;

	if (map_get(m->lost_fd, key, &n) < 0 || n == 0)
		return 0;
	(void)map_set(m->lost_fd, &key, &zero);
	return n;
}
