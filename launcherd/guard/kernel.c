/*
 * See kernel.h. What comes from the kernel is what a run made it write: names
 * of files, bounded by event.c. The table is control's word and is decoded
 * here, by the decoder that the broker uses, each time that it is needed: a
 * run keeps its bytes and not the three megabytes of it.
 */
#include "launcherd/guard/kernel.h"

#include <sys/stat.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "launcherd/guard/entries.h"
#include "launcherd/guard/event.h"
#include "launcherd/guard/maps.h"
#include "launcherd/inside.h"
#include "launcherd/launcherd.h"
#include "launcherd/probe.h"
#include "launcherd/run.h"
#include "launcherd/spawn.h"
#include "protocol/guard.h"
#include "protocol/message.h"

#define PINS "/sys/fs/bpf/stockade-"
#define PINS_MAX 128
#define LOAD_WAIT_MS \
	150000 /* an emulated machine; stockade-guard ends before */
#define MOUNTS_MAX (32u << 20)
/* So many refusals of a run are told at once and then each second; more are
 * counted. */
#define BURST 64
#define FLUSH_MS 1000

struct kernel_guard {
	struct launcherd *l;
	char pins[PINS_MAX];
	struct guard_maps maps;
	struct event *event;
	struct event *timer;
	struct kernel_run *runs[GUARD_SLOTS];
	/* Decoded for the events that are being read; NULL: none. */
	struct guard *rules;
	const struct kernel_run *rules_of;
};

struct kernel_run {
	struct run *run;
	struct kernel_guard *k;
	int slot;
	struct memfd_map map;
	struct guard_entry_paths paths;
	unsigned told; /* since the last tick */
	struct msg_denial *waiting; /* count 0: none; NULL: never was */
	uint64_t dropped;
};

/* ---------------------------------------------------------------- start */

static void
not_here(struct launcherd *l, const char *why)
{
	(void)snprintf(l->kernel_why, sizeof(l->kernel_why), "%s", why);
}

/* What stockade-guard says in its last line; waits for its end. */
static bool
run_helper(struct launcherd *l, const char *verb, const char *pins, char *text,
    size_t size)
{
	struct spawned child = { 0, -1 };
	struct pollfd pfd;
	int fds[2];
	ssize_t n;

	text[0] = '\0';
	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	if (spawn_guard(l->libexec_fd, verb, pins, l->null_fd, fds[1], &child) <
	    0) {
		close_all(fds, 2);
		return false;
	}
	(void)close(fds[1]);
	pfd = (struct pollfd){ .fd = child.pidfd, .events = POLLIN };
	if (poll(&pfd, 1, LOAD_WAIT_MS) != 1) {
		spawn_kill(&child);
		(void)poll(&pfd, 1, 2000);
	}
	/* At the end of launcherd the kernel reaps: the text counts. */
	(void)spawn_reap(&child);
	close_all(&child.pidfd, 1);
	/* Timers that are set now count from now. */
	(void)event_base_update_cache_time(l->base);
	n = read(fds[0], text, size - 1);
	(void)close(fds[0]);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return strncmp(text, "ok ", 3) == 0;
}

static void on_events(evutil_socket_t, short, void *);
static void on_tick(evutil_socket_t, short, void *);

static int
watch(struct kernel_guard *k)
{
	k->event = event_new(k->l->base, k->maps.events_fd,
	    EV_READ | EV_PERSIST, on_events, k);
	k->timer = evtimer_new(k->l->base, on_tick, k);
	if (k->event == NULL || k->timer == NULL ||
	    event_add(k->event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static void
load(struct launcherd *l, const char *pins)
{
	char text[KERNEL_WHY_MAX];
	struct kernel_guard *k;
	int error;

	if (!run_helper(l, "load", pins, text, sizeof(text))) {
		not_here(l,
		    strncmp(text, "no ", 3) == 0 ? text + 3 :
						   "stockade-guard failed");
		return;
	}
	k = calloc(1, sizeof(*k));
	if (k == NULL) {
		not_here(l, strerror(ENOMEM));
		return;
	}
	k->l = l;
	(void)snprintf(k->pins, sizeof(k->pins), "%s", pins);
	error = guard_maps_open(pins, &k->maps);
	l->kernel = error == 0 ? k : NULL;
	if (error == 0)
		error = watch(k);
	if (error == 0)
		return;
	not_here(l, strerror(-error));
	if (l->kernel != NULL)
		kernel_guard_close(l, false);
	else
		free(k);
}

void
kernel_guard_open(struct launcherd *l, const char *instance, bool want)
{
	char pins[PINS_MAX], text[KERNEL_WHY_MAX];

	(void)snprintf(pins, sizeof(pins), PINS "%.64s", instance);
	if (faccessat(l->libexec_fd, "stockade-guard", X_OK, 0) < 0) {
		not_here(l, "not built in");
	} else if (!want) {
		not_here(l, "not chosen");
		if (access(pins, F_OK) == 0)
			(void)run_helper(l, "remove", pins, text, sizeof(text));
	} else {
		load(l, pins);
	}
}

void
kernel_guard_close(struct launcherd *l, bool remove)
{
	struct kernel_guard *k = l->kernel;
	char text[KERNEL_WHY_MAX];

	if (k == NULL)
		return;
	l->kernel = NULL;
	if (k->event != NULL)
		event_free(k->event);
	if (k->timer != NULL)
		event_free(k->timer);
	guard_maps_close(&k->maps);
	free(k->rules);
	if (remove && !run_helper(l, "remove", k->pins, text, sizeof(text)))
		log_line(LOG_LEVEL_WARNING,
		    "stockade-launcherd: %s was not removed: %s", k->pins,
		    text);
	free(k);
}

/* ---------------------------------------------------------------- rules */

static int
decode(const struct memfd_map *map, struct guard **ret)
{
	/* Zero behind its counts: its tables go into a map as a whole. */
	struct guard *guard = calloc(1, sizeof(*guard));
	int error;

	if (guard == NULL)
		return -ENOMEM;
	error = guard_decode(map->data, map->len, guard);
	if (error < 0)
		free(guard);
	else
		*ret = guard;
	return error;
}

int
kernel_run_make(struct run *run, int table_fd, struct kernel_run **ret)
{
	struct kernel_guard *k = run->l->kernel;
	struct guard *guard = NULL;
	struct kernel_run *kr;
	int error;

	if (k == NULL)
		return -ENODEV;
	kr = calloc(1, sizeof(*kr));
	if (kr == NULL)
		return -ENOMEM;
	kr->run = run;
	kr->k = k;
	kr->slot = -1;
	error = memfd_open_map(table_fd, GUARD_BYTES_MAX, &kr->map);
	if (error == 0)
		error = decode(&kr->map, &guard);
	if (error == 0 && guard->new_repositories)
		error = -EOPNOTSUPP;
	free(guard);
	if (error == 0)
		error = kr->slot = guard_slot_take(&k->maps);
	if (error < 0) {
		kernel_run_free(kr);
		return error;
	}
	k->runs[kr->slot] = kr;
	*ret = kr;
	return 0;
}

int
kernel_run_label(const struct kernel_run *kr, int pidfd)
{
	return guard_label_set(&kr->k->maps, kr->slot, pidfd);
}

/* The whole text, terminated, to be freed. */
static int
read_mounts(int proc_fd, char **ret)
{
	autoclose int fd = openat(proc_fd, "mountinfo", O_RDONLY | O_CLOEXEC);
	size_t len = 0, size = 1u << 16;
	char *buf = fd < 0 ? NULL : malloc(size);
	ssize_t n;

	if (buf == NULL)
		return fd < 0 ? -errno : -ENOMEM;
	while ((n = read(fd, buf + len, size - len - 1)) > 0) {
		char *more = buf;

		len += (size_t)n;
		if (len + 1 < size)
			continue;
		size *= 2;
		more = size > MOUNTS_MAX ? NULL : realloc(buf, size);
		if (more == NULL) {
			free(buf);
			return -ENOMEM;
		}
		buf = more;
	}
	buf[len] = '\0';
	*ret = buf;
	return 0;
}

/* The places by the run's own mounts, then all rules at once. */
static int
set_rules(struct kernel_run *kr, const struct memfd_map *map,
    char why[KERNEL_WHY_MAX])
{
	struct guard_entry_paths paths = { { NULL } };
	autofree struct guard_policy *policy = calloc(1, sizeof(*policy));
	autofree char *mounts = NULL;
	autoclose int proc_fd = inside_open(kr->run);
	autoclose int root_fd = -1;
	struct guard *guard = NULL;
	int error = policy == NULL ? -ENOMEM : proc_fd < 0 ? proc_fd : 0;

	if (error == 0)
		root_fd =
		    openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (error == 0)
		error = root_fd < 0 ? -errno : read_mounts(proc_fd, &mounts);
	if (error == 0)
		error = decode(map, &guard);
	(void)snprintf(why, KERNEL_WHY_MAX, "bpf-lsm: %s", strerror(-error));
	if (error == 0)
		error = guard_entries_make(guard, mounts, root_fd, policy,
		    &paths, why);
	if (error == 0) {
		error =
		    guard_slot_set(&kr->k->maps, kr->slot, policy, &guard->dfa);
		(void)snprintf(why, KERNEL_WHY_MAX, "bpf-lsm: %s",
		    strerror(-error));
	}
	free(guard);
	if (error < 0) {
		guard_entry_paths_free(&paths);
		return error;
	}
	guard_entry_paths_free(&kr->paths);
	kr->paths = paths;
	return 0;
}

int
kernel_run_arm(struct kernel_run *kr, char why[KERNEL_WHY_MAX])
{
	return set_rules(kr, &kr->map, why);
}

static bool
same_roots(const struct guard *a, const struct guard *b)
{
	bool same = a->nroots == b->nroots;

	for (size_t i = 0; same && i < a->nroots; i++)
		same = a->roots[i].empty == b->roots[i].empty &&
		    strcmp(a->roots[i].path, b->roots[i].path) == 0;
	return same;
}

static int
check_same(const struct memfd_map *old, const struct memfd_map *new)
{
	struct guard *a = NULL, *b = NULL;
	int error = decode(old, &a);

	if (error == 0)
		error = decode(new, &b);
	if (error == 0 && (b->new_repositories || !same_roots(a, b)))
		error = -EINVAL;
	free(a);
	free(b);
	return error;
}

int
kernel_run_replace(struct kernel_run *kr, int table_fd)
{
	char why[KERNEL_WHY_MAX];
	struct memfd_map map = { NULL, 0 };
	int error = memfd_open_map(table_fd, GUARD_BYTES_MAX, &map);

	if (error < 0)
		return error;
	/* What is told from here on is of the rules that come. */
	kernel_run_flush(kr);
	error = check_same(&kr->map, &map);
	if (error == 0)
		error = set_rules(kr, &map, why);
	if (error < 0) {
		memfd_unmap(&map);
		return error;
	}
	memfd_unmap(&kr->map);
	kr->map = map;
	return 0;
}

bool
kernel_run_passes(const struct kernel_run *kr, int fd)
{
	char link[32], path[GUARD_PATH_MAX + 1];
	struct guard *guard = NULL;
	int flags = fcntl(fd, F_GETFL);
	struct dfa_verdict v;
	struct stat st;
	ssize_t n;

	if (flags < 0 || fstat(fd, &st) < 0)
		return false;
	if ((flags & O_ACCMODE) == O_RDONLY || !S_ISREG(st.st_mode))
		return true;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	if (n <= 0 || (size_t)n == sizeof(path) || decode(&kr->map, &guard) < 0)
		return false;
	v = guard_judge(guard, path, (size_t)n, "", 0, NULL);
	free(guard);
	return (v.mask & DFA_WRITE) == 0;
}

/* ---------------------------------------------------------------- events */

static void
send_denial(struct kernel_run *kr, struct msg_denial *msg)
{
	struct run *run = kr->run;

	msg->sandbox = run->sandbox;
	if (run->probe != NULL)
		probe_denial(run->probe, msg->count);
	else
		(void)peer_send(run->l->supervisor, MSG_denial, msg, NULL, 0);
}

static void
arm_timer(struct kernel_guard *k)
{
	const struct timeval tv = { FLUSH_MS / 1000, 0 };

	if (!evtimer_pending(k->timer, NULL))
		(void)evtimer_add(k->timer, &tv);
}

/* At once, or counted with an equal one that waits, or only counted. */
static void
tell(struct kernel_run *kr, struct msg_denial *msg)
{
	arm_timer(kr->k);
	if (kr->told < BURST) {
		kr->told++;
		send_denial(kr, msg);
		return;
	}
	if (kr->waiting == NULL)
		kr->waiting = calloc(1, sizeof(*kr->waiting));
	if (kr->waiting == NULL) {
		kr->dropped++;
	} else if (kr->waiting->count == 0) {
		*kr->waiting = *msg;
	} else if (kr->waiting->action == msg->action &&
	    kr->waiting->pid == msg->pid &&
	    strcmp(kr->waiting->path, msg->path) == 0) {
		kr->waiting->count++;
	} else {
		kr->dropped++;
	}
}

/* The rules of the run that an event is of, decoded once for many. */
static const struct guard *
rules_of(struct kernel_run *kr)
{
	struct kernel_guard *k = kr->k;

	if (k->rules_of == kr)
		return k->rules;
	free(k->rules);
	k->rules = NULL;
	k->rules_of = decode(&kr->map, &k->rules) == 0 ? kr : NULL;
	return k->rules;
}

static void
forget_rules(struct kernel_guard *k)
{
	free(k->rules);
	k->rules = NULL;
	k->rules_of = NULL;
}

static void
take(void *ctx, const struct guard_event *ev)
{
	static struct msg_denial msg;
	struct kernel_guard *k = ctx;
	struct kernel_run *kr =
	    ev->slot < GUARD_SLOTS ? k->runs[ev->slot] : NULL;
	const struct guard *rules;

	if (kr == NULL || ev->gen != k->maps.slot[ev->slot].gen)
		return;
	rules = rules_of(kr);
	if (rules == NULL) {
		kr->dropped++;
		return;
	}
	guard_event_denial(ev, rules, &kr->paths, &msg);
	/* What init tries before anything runs (SPEC D16) is no violation. */
	if (!guard_is_verification(msg.pid, msg.path))
		tell(kr, &msg);
}

static void
read_events(struct kernel_guard *k)
{
	guard_events_read(&k->maps, take, k);
	forget_rules(k);
}

static void
on_events(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	read_events(arg);
}

static void
send_waiting(struct kernel_run *kr)
{
	static struct msg_denial msg;

	kr->told = 0;
	if (kr->waiting != NULL && kr->waiting->count > 0) {
		send_denial(kr, kr->waiting);
		kr->waiting->count = 0;
	}
	kr->dropped += guard_lost_take(&kr->k->maps, kr->slot);
	if (kr->dropped == 0)
		return;
	memset(&msg, 0, sizeof(msg));
	msg.action = VIOLATION_FILE_CREATE;
	msg.count = kr->dropped;
	kr->dropped = 0;
	send_denial(kr, &msg);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct kernel_guard *k = arg;
	bool more = false;

	(void)fd;
	(void)what;
	for (size_t i = 0; i < GUARD_SLOTS; i++) {
		if (k->runs[i] == NULL)
			continue;
		more |= k->runs[i]->told >= BURST;
		send_waiting(k->runs[i]);
	}
	if (more)
		arm_timer(k);
}

void
kernel_run_flush(struct kernel_run *kr)
{
	read_events(kr->k);
	send_waiting(kr);
}

void
kernel_run_free(struct kernel_run *kr)
{
	if (kr == NULL)
		return;
	if (kr->slot >= 0) {
		kr->k->runs[kr->slot] = NULL;
		guard_slot_put(&kr->k->maps, kr->slot);
	}
	guard_entry_paths_free(&kr->paths);
	memfd_unmap(&kr->map);
	free(kr->waiting);
	free(kr);
}
