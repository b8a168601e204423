/*
 * launcherd: control groups. All names are made here from numbers; all texts
 * read are the kernel's.
 */
#include "launcherd/cgroup.h"

#include <sys/eventfd.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/size.h"
#include "launcherd/proctext.h"

#define LEFTOVER_MS 2000
#define CPU_PERIOD_US 100000u
#define RUN_PREFIX "run-"
#define SERVICE_LEAF "stockade-service"
#define PROCESSES "processes"

struct cgroup_tree {
	struct cgroup_layout layout;
	char name[96]; /* stockade-<instance> */
	int parent_fd; /* our own cgroup, cgroup2 tree */
	int top_fd; /* the instance, cgroup2 tree */
	int legacy_fd[CGROUP_CONTROLLERS]; /* the instance, v1; -1 */
	bool unified[CGROUP_CONTROLLERS]; /* controller works in cgroup2 */
};

/* ---------------------------------------------------------------- small I/O */

static int
write_at(int dirfd, const char *file, const char *text)
{
	autoclose int fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

static int
write_number(int dirfd, const char *file, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	return write_at(dirfd, file, text);
}

static ssize_t
read_at(int dirfd, const char *file, char *buf, size_t size)
{
	autoclose int fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return n;
}

/* A file of one number; "max" and anything unreadable count as 0. */
static uint64_t
read_number(int dirfd, const char *file)
{
	char text[64];

	if (read_at(dirfd, file, text, sizeof(text)) <= 0)
		return 0;
	return strtoull(text, NULL, 10);
}

/* The number after "key " at the start of a line; 0 without one. */
static uint64_t
value_of(const char *text, const char *key)
{
	size_t klen = strlen(key);

	for (const char *line = text; *line != '\0';) {
		size_t len = strcspn(line, "\n");

		if (len > klen && strncmp(line, key, klen) == 0 &&
		    line[klen] == ' ')
			return strtoull(line + klen + 1, NULL, 10);
		line += len + (line[len] == '\n');
	}
	return 0;
}

static uint64_t
read_value(int dirfd, const char *file, const char *key)
{
	char text[1024];

	if (read_at(dirfd, file, text, sizeof(text)) <= 0)
		return 0;
	return value_of(text, key);
}

static int
open_dir(int dirfd, const char *name)
{
	int fd = openat(dirfd, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Makes (or finds) a directory and opens it. */
static int
make_dir(int dirfd, const char *name)
{
	if (mkdirat(dirfd, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return open_dir(dirfd, name);
}

/*
 * The same in our own cgroup. The root of a hierarchy (a container's, say) has
 * mode 0555, and we have no DAC_OVERRIDE; but it is root's, and an owner may
 * change a mode. It is put back at once.
 */
static int
make_top(int parent_fd, const char *name)
{
	struct stat st;
	int fd = make_dir(parent_fd, name);

	if (fd != -EACCES || fstat(parent_fd, &st) < 0 ||
	    fchmod(parent_fd, (st.st_mode & 07777) | S_IWUSR) < 0)
		return fd;
	fd = make_dir(parent_fd, name);
	(void)fchmod(parent_fd, st.st_mode & 07777);
	return fd;
}

static void
remove_top(int parent_fd, const char *name)
{
	struct stat st;

	if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno != EACCES ||
	    fstat(parent_fd, &st) < 0 ||
	    fchmod(parent_fd, (st.st_mode & 07777) | S_IWUSR) < 0)
		return;
	(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
	(void)fchmod(parent_fd, st.st_mode & 07777);
}

/* ---------------------------------------------------------------- the tree */

/* Words of cgroup.controllers (what the directory has) or of
 * cgroup.subtree_control (what its children have). True if one is of ours. */
static bool
learn_unified(int dirfd, const char *file, bool ret[CGROUP_CONTROLLERS])
{
	char text[512];
	char *save = NULL;
	bool any = false;

	memset(ret, 0, CGROUP_CONTROLLERS * sizeof(*ret));
	if (read_at(dirfd, file, text, sizeof(text)) <= 0)
		return false;
	for (char *word = strtok_r(text, " \n", &save); word != NULL;
	     word = strtok_r(NULL, " \n", &save))
		for (size_t i = 0; i < CGROUP_CONTROLLERS; i++)
			if (strcmp(word,
				cgroup_controller_name(
				    (enum cgroup_controller)i)) == 0)
				any = ret[i] = true;
	return any;
}

/* One that is not there is not enabled; what is in force is learnt after. */
static void
enable_below(int dirfd)
{
	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
		char word[16];

		(void)snprintf(word, sizeof(word), "+%s",
		    cgroup_controller_name((enum cgroup_controller)i));
		(void)write_at(dirfd, "cgroup.subtree_control", word);
	}
}

/*
 * A cgroup2 directory that holds processes cannot give controllers to its
 * children (cgroups(7), "no internal processes"). In a delegated service unit
 * the processes in it are stockade's own: the supervisor and its daemons. They
 * move into a leaf beside the instance. Only our parent and its children are
 * moved; a stranger in there keeps the controllers off, and limits are then
 * reported as unavailable.
 */
static void
move_service(struct cgroup_tree *tree)
{
	char text[16384];
	char *save = NULL;
	autoclose int leaf = make_top(tree->parent_fd, SERVICE_LEAF);

	if (leaf < 0 ||
	    read_at(tree->parent_fd, "cgroup.procs", text, sizeof(text)) <= 0)
		return;
	for (char *word = strtok_r(text, "\n", &save); word != NULL;
	     word = strtok_r(NULL, "\n", &save)) {
		char path[64];
		char stat[512];
		const char *after;
		long parent = 0;
		long pid = strtol(word, NULL, 10);

		(void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
		if (read_at(AT_FDCWD, path, stat, sizeof(stat)) <= 0)
			continue;
		/* "pid (comm) S ppid": comm may hold anything but ends at
		 * the last parenthesis. */
		after = strrchr(stat, ')');
		if (after == NULL || strlen(after) < 5)
			continue;
		parent = strtol(after + 4, NULL, 10);
		if (pid == getppid() || parent == getppid())
			(void)write_number(leaf, "cgroup.procs", (uint64_t)pid);
	}
}

/*
 * Whether controllers may be given to the children now. It must be asked
 * before the first is: the threaded ones (pids, cpu) the kernel gives in spite
 * of processes, but makes the directory the root of a threaded domain, and
 * no process can enter a child of it ("domain invalid", admin-guide/cgroup-v2,
 * Threads). The root of the tree alone is free of the rule, and has no type.
 */
static bool
make_room(struct cgroup_tree *tree)
{
	bool has[CGROUP_CONTROLLERS];
	char pids[32];

	if (!learn_unified(tree->parent_fd, "cgroup.controllers", has))
		return false;
	if (faccessat(tree->parent_fd, "cgroup.type", F_OK, 0) < 0)
		return true;
	if (read_at(tree->parent_fd, "cgroup.procs", pids, sizeof(pids)) != 0)
		move_service(tree);
	return read_at(tree->parent_fd, "cgroup.procs", pids, sizeof(pids)) ==
	    0;
}

static long
now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Waits until no process is left below dirfd, by the kernel's notification on
 * cgroup.events. */
static int
wait_empty(int dirfd, int timeout_ms)
{
	autoclose int fd = openat(dirfd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	long end = now_ms() + timeout_ms;

	if (fd < 0)
		return -errno;
	for (;;) {
		struct pollfd pfd = { .fd = fd, .events = POLLPRI };
		char text[256];
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
		long left = end - now_ms();

		if (n < 0)
			return -errno;
		text[n] = '\0';
		if (value_of(text, "populated") == 0)
			return 0;
		if (left <= 0)
			return -EBUSY;
		(void)poll(&pfd, 1, (int)left);
	}
}

/* A run's directory and the one in it, which most runs do not have. 0 or
 * -errno. */
static int
remove_run(int dirfd, const char *name)
{
	char inner[sizeof(PROCESSES) + NAME_MAX + 1];

	(void)snprintf(inner, sizeof(inner), "%s/" PROCESSES, name);
	if (unlinkat(dirfd, inner, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	return unlinkat(dirfd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Removes the runs' directories below an instance's. Returns how many were
 * removed; one that is busy stays. */
static unsigned
remove_runs(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	unsigned removed = 0;

	if (dir == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return 0;
	}
	while ((entry = readdir(dir)) != NULL)
		if (strncmp(entry->d_name, RUN_PREFIX, strlen(RUN_PREFIX)) ==
			0 &&
		    remove_run(dirfd, entry->d_name) == 0)
			removed++;
	(void)closedir(dir);
	return removed;
}

/* The instance's directory in `parent`; what its children have is learnt. */
static int
open_top(struct cgroup_tree *tree, const char *parent, bool ours)
{
	tree->parent_fd = open_dir(AT_FDCWD, parent);
	if (tree->parent_fd < 0)
		return tree->parent_fd;
	if (ours && make_room(tree))
		enable_below(tree->parent_fd);
	tree->top_fd = make_top(tree->parent_fd, tree->name);
	if (tree->top_fd < 0)
		return tree->top_fd;
	enable_below(tree->top_fd);
	(void)learn_unified(tree->top_fd, "cgroup.subtree_control",
	    tree->unified);
	return 0;
}

/* Whether a limit of memory can be had in v1 or in what was just opened. */
static bool
has_memory(const struct cgroup_tree *tree)
{
	return tree->unified[CGROUP_MEMORY] ||
	    tree->layout.legacy[CGROUP_MEMORY][0] != '\0';
}

/* The root of the tree gives its children memory: another place to be. */
static bool
root_has_memory(const struct cgroup_tree *tree)
{
	autoclose int fd = open_dir(AT_FDCWD, tree->layout.unified_top);
	bool has[CGROUP_CONTROLLERS];

	if (fd < 0 ||
	    strcmp(tree->layout.unified, tree->layout.unified_top) == 0)
		return false;
	(void)learn_unified(fd, "cgroup.subtree_control", has);
	return has[CGROUP_MEMORY];
}

/* A launcherd that was started again was born in the leaf to which the first
 * moved the service; the instance is beside it. */
static void
leave_leaf(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash != NULL && slash != path &&
	    strcmp(slash + 1, SERVICE_LEAF) == 0)
		*slash = '\0';
}

/*
 * Below our own cgroup; but when strangers live there too (started from a
 * login session, say), it cannot give controllers to children, and the
 * instance goes below the root of the tree instead: limits are worth more than
 * the place. The names are the same, so leftovers are found in both.
 */
static int
open_unified(struct cgroup_tree *tree)
{
	int error;

	leave_leaf(tree->layout.unified);
	error = open_top(tree, tree->layout.unified, true);
	if (error == 0 && !has_memory(tree) && root_has_memory(tree)) {
		(void)cgroup_kill(tree->top_fd);
		(void)wait_empty(tree->top_fd, LEFTOVER_MS);
		(void)remove_runs(tree->top_fd);
		close_all(&tree->top_fd, 1);
		remove_top(tree->parent_fd, tree->name);
		close_all(&tree->parent_fd, 1);
		error = open_top(tree, tree->layout.unified_top, false);
	}
	if (error < 0)
		return error;
	if (faccessat(tree->top_fd, "cgroup.kill", F_OK, 0) < 0 ||
	    faccessat(tree->top_fd, "cgroup.freeze", F_OK, 0) < 0)
		return -EOPNOTSUPP;
	return 0;
}

static void
open_legacy(struct cgroup_tree *tree)
{
	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
		autoclose int parent = -1;
		int fd;

		if (tree->unified[i] || tree->layout.legacy[i][0] == '\0')
			continue;
		parent = open_dir(AT_FDCWD, tree->layout.legacy[i]);
		if (parent < 0)
			continue;
		fd = make_top(parent, tree->name);
		tree->legacy_fd[i] = fd < 0 ? -1 : fd;
	}
}

static unsigned
remove_all_runs(struct cgroup_tree *tree)
{
	unsigned removed = remove_runs(tree->top_fd);

	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++)
		if (tree->legacy_fd[i] >= 0)
			(void)remove_runs(tree->legacy_fd[i]);
	return removed;
}

/*
 * Leftovers: what an earlier launcherd of this instance could not remove since
 * it was killed. Nothing else can be in our directory.
 */
static int
remove_leftovers(struct cgroup_tree *tree, unsigned *ret_removed)
{
	struct cgroup_state state;
	int error = cgroup_state(tree->top_fd, &state);

	if (error < 0)
		return error;
	if (state.populated) {
		error = cgroup_kill(tree->top_fd);
		if (error == 0)
			error = wait_empty(tree->top_fd, LEFTOVER_MS);
	}
	*ret_removed = remove_all_runs(tree);
	return error;
}

int
cgroup_tree_open(const char *instance, struct cgroup_tree **ret,
    unsigned *ret_removed)
{
	autofree char *mountinfo = proctext_read("/proc/self/mountinfo");
	autofree char *self = proctext_read("/proc/self/cgroup");
	struct cgroup_tree *tree = calloc(1, sizeof(*tree));
	int error = -ENOMEM;

	if (tree == NULL)
		return error;
	tree->parent_fd = tree->top_fd = -1;
	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++)
		tree->legacy_fd[i] = -1;
	(void)snprintf(tree->name, sizeof(tree->name), "stockade-%s", instance);
	error = -EIO;
	if (mountinfo == NULL || self == NULL)
		goto fail;
	error = cgroup_layout_parse(mountinfo, self, &tree->layout);
	if (error < 0)
		goto fail;
	error = open_unified(tree);
	if (error < 0)
		goto fail;
	open_legacy(tree);
	error = remove_leftovers(tree, ret_removed);
	if (error < 0)
		goto fail;
	*ret = tree;
	return 0;
fail:
	cgroup_tree_close(tree);
	return error;
}

void
cgroup_tree_close(struct cgroup_tree *tree)
{
	if (tree == NULL)
		return;
	if (tree->top_fd >= 0) {
		(void)close(tree->top_fd);
		remove_top(tree->parent_fd, tree->name);
	}
	if (tree->parent_fd >= 0)
		(void)close(tree->parent_fd);
	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
		autoclose int parent = -1;

		if (tree->legacy_fd[i] < 0)
			continue;
		(void)close(tree->legacy_fd[i]);
		parent = open_dir(AT_FDCWD, tree->layout.legacy[i]);
		if (parent >= 0)
			remove_top(parent, tree->name);
	}
	free(tree);
}

bool
cgroup_tree_has(const struct cgroup_tree *tree, enum cgroup_controller which)
{
	return tree->unified[which] || tree->legacy_fd[which] >= 0;
}

void
cgroup_tree_kill(struct cgroup_tree *tree, int timeout_ms)
{
	if (cgroup_kill(tree->top_fd) == 0)
		(void)wait_empty(tree->top_fd, timeout_ms);
	(void)remove_all_runs(tree);
}

/* ---------------------------------------------------------------- a run */

static int
limit_unified(int fd, enum cgroup_controller which,
    const struct cgroup_limits *limits)
{
	char text[64];
	int error;

	switch (which) {
	case CGROUP_MEMORY:
		/* No swap: the limit is of memory in all, and a run that is
		 * over it ends instead of thrashing. Absent without swap. */
		(void)write_at(fd, "memory.swap.max", "0");
		error = write_at(fd, "memory.oom.group", "1");
		if (error < 0)
			return error;
		return write_number(fd, "memory.max", limits->memory_bytes);
	case CGROUP_PIDS:
		return write_number(fd, "pids.max", limits->pids);
	case CGROUP_CPU:
		(void)snprintf(text, sizeof(text), "%" PRIu64 " %u",
		    limits->cpu_milli * (CPU_PERIOD_US / 1000), CPU_PERIOD_US);
		return write_at(fd, "cpu.max", text);
	case CGROUP_CONTROLLERS:
		break;
	}
	return -EINVAL;
}

static int
limit_legacy(int fd, enum cgroup_controller which,
    const struct cgroup_limits *limits)
{
	int error;

	switch (which) {
	case CGROUP_MEMORY:
		error = write_number(fd, "memory.limit_in_bytes",
		    limits->memory_bytes);
		/* Absent when swap is not accounted. */
		if (error == 0)
			(void)write_number(fd, "memory.memsw.limit_in_bytes",
			    limits->memory_bytes);
		return error;
	case CGROUP_PIDS:
		return write_number(fd, "pids.max", limits->pids);
	case CGROUP_CPU:
		error = write_number(fd, "cpu.cfs_period_us", CPU_PERIOD_US);
		if (error < 0)
			return error;
		return write_number(fd, "cpu.cfs_quota_us",
		    limits->cpu_milli * (CPU_PERIOD_US / 1000));
	case CGROUP_CONTROLLERS:
		break;
	}
	return -EINVAL;
}

static int
set_limit(struct cgroup_tree *tree, struct cgroup *cg,
    enum cgroup_controller which, const struct cgroup_limits *limits,
    unsigned *unset)
{
	autoclose int fd = -1;

	if (tree->unified[which])
		return limit_unified(cg->fd, which, limits);
	if (tree->legacy_fd[which] < 0) {
		*unset |= 1u << which;
		return 0;
	}
	fd = make_dir(tree->legacy_fd[which], cg->name);
	if (fd < 0)
		return fd;
	cg->legacy |= 1u << which;
	return limit_legacy(fd, which, limits);
}

int
cgroup_make(struct cgroup_tree *tree, const char *name,
    const struct cgroup_limits *limits, struct cgroup *ret, unsigned *ret_unset)
{
	const uint64_t wanted[CGROUP_CONTROLLERS] = {
		[CGROUP_MEMORY] = limits->memory_bytes,
		[CGROUP_PIDS] = limits->pids,
		[CGROUP_CPU] = limits->cpu_milli,
	};
	struct cgroup cg = { .fd = -1 };
	unsigned unset = 0;
	int error = 0;

	(void)snprintf(cg.name, sizeof(cg.name), RUN_PREFIX "%s", name);
	if (mkdirat(tree->top_fd, cg.name, 0755) < 0)
		return -errno;
	cg.fd = open_dir(tree->top_fd, cg.name);
	if (cg.fd < 0)
		error = cg.fd;
	for (size_t i = 0; i < CGROUP_CONTROLLERS && error == 0; i++)
		if (wanted[i] != 0)
			error = set_limit(tree, &cg, (enum cgroup_controller)i,
			    limits, &unset);
	if (error < 0) {
		(void)cgroup_remove(tree, &cg);
		cgroup_close(&cg);
		return error;
	}
	*ret = cg;
	*ret_unset = unset;
	return 0;
}

int
cgroup_split(struct cgroup *cg)
{
	if (mkdirat(cg->fd, PROCESSES, 0755) < 0)
		return -errno;
	cg->split = true;
	return 0;
}

int
cgroup_processes(const struct cgroup *cg)
{
	return open_dir(cg->fd, cg->split ? PROCESSES : ".");
}

void
cgroup_close(struct cgroup *cg)
{
	if (cg->fd >= 0)
		(void)close(cg->fd);
	cg->fd = -1;
}

int
cgroup_remove(struct cgroup_tree *tree, const struct cgroup *cg)
{
	int error = 0, r;

	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++)
		if ((cg->legacy & 1u << i) != 0 &&
		    unlinkat(tree->legacy_fd[i], cg->name, AT_REMOVEDIR) < 0 &&
		    errno != ENOENT)
			error = -errno;
	r = remove_run(tree->top_fd, cg->name);
	return r < 0 && r != -ENOENT ? r : error;
}

/*
 * "tasks" with "0", not "cgroup.procs": moving just the writing thread needs
 * no system-wide lock and hence no RCU grace period (kernel,
 * cgroup_procs_write_start), which would cost milliseconds per launch.
 */
int
cgroup_join_legacy(const struct cgroup_tree *tree, const struct cgroup *cg)
{
	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
		char path[CGROUP_NAME_MAX + 8];
		int error;

		if ((cg->legacy & 1u << i) == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/tasks", cg->name);
		error = write_at(tree->legacy_fd[i], path, "0");
		if (error < 0)
			return error;
	}
	return 0;
}

int
cgroup_kill(int cgroup_fd)
{
	return write_at(cgroup_fd, "cgroup.kill", "1");
}

int
cgroup_freeze(int cgroup_fd, bool frozen)
{
	return write_at(cgroup_fd, "cgroup.freeze", frozen ? "1" : "0");
}

int
cgroup_state(int cgroup_fd, struct cgroup_state *ret)
{
	char text[256];
	ssize_t n = read_at(cgroup_fd, "cgroup.events", text, sizeof(text));

	if (n < 0)
		return (int)n;
	ret->populated = value_of(text, "populated") != 0;
	ret->frozen = value_of(text, "frozen") != 0;
	return 0;
}

int
cgroup_freeze_step(const struct cgroup *cg, bool frozen)
{
	autoclose int processes = cgroup_processes(cg);
	struct cgroup_state state = { false, false };
	int error = processes;

	if (error >= 0 && frozen && cg->split) {
		error = cgroup_freeze(processes, true);
		if (error == 0)
			error = cgroup_state(processes, &state);
		if (error == 0 && !state.frozen)
			return 0;
	}
	if (error >= 0)
		error = cgroup_freeze(cg->fd, frozen);
	if (error == 0 && !frozen && cg->split)
		error = cgroup_freeze(processes, false);
	/* The run's own is frozen when what is below it is; thawed alone. */
	if (error == 0)
		error = cgroup_state(frozen ? cg->fd : processes, &state);
	return error < 0 ? error : state.frozen == frozen;
}

/* The v1 directory of a run, for reading counters; -1 when there is none. */
static int
legacy_dir(const struct cgroup_tree *tree, const struct cgroup *cg,
    enum cgroup_controller which)
{
	int fd;

	if ((cg->legacy & 1u << which) == 0)
		return -1;
	fd = open_dir(tree->legacy_fd[which], cg->name);
	return fd < 0 ? -1 : fd;
}

void
cgroup_use(const struct cgroup_tree *tree, const struct cgroup *cg,
    struct cgroup_use *ret)
{
	autoclose int memory = legacy_dir(tree, cg, CGROUP_MEMORY);
	autoclose int pids = legacy_dir(tree, cg, CGROUP_PIDS);

	memset(ret, 0, sizeof(*ret));
	if (memory >= 0) {
		ret->memory_bytes =
		    read_number(memory, "memory.usage_in_bytes");
		ret->memory_peak =
		    read_number(memory, "memory.max_usage_in_bytes");
		ret->memory_limit =
		    read_number(memory, "memory.limit_in_bytes");
		ret->oom_kills =
		    read_value(memory, "memory.oom_control", "oom_kill");
	} else if (tree->unified[CGROUP_MEMORY]) {
		ret->memory_bytes = read_number(cg->fd, "memory.current");
		ret->memory_peak = read_number(cg->fd, "memory.peak");
		ret->memory_limit = read_number(cg->fd, "memory.max");
		ret->oom_kills =
		    read_value(cg->fd, "memory.events", "oom_kill");
	}
	if (pids < 0 && !tree->unified[CGROUP_PIDS])
		return;
	ret->pids = read_number(pids >= 0 ? pids : cg->fd, "pids.current");
	ret->forks_refused =
	    read_value(pids >= 0 ? pids : cg->fd, "pids.events", "max");
}

bool
cgroup_pids_silent(const struct cgroup *cg)
{
	return (cg->legacy & 1u << CGROUP_PIDS) != 0;
}

size_t
cgroup_watch_paths(const struct cgroup_tree *tree, const struct cgroup *cg,
    char paths[CGROUP_WATCHES][CGROUP_WATCH_PATH])
{
	size_t n = 0;

	(void)snprintf(paths[n++], CGROUP_WATCH_PATH,
	    "/proc/self/fd/%d/cgroup.events", cg->fd);
	if (cg->split)
		(void)snprintf(paths[n++], CGROUP_WATCH_PATH,
		    "/proc/self/fd/%d/" PROCESSES "/cgroup.events", cg->fd);
	if (tree->unified[CGROUP_MEMORY])
		(void)snprintf(paths[n++], CGROUP_WATCH_PATH,
		    "/proc/self/fd/%d/memory.events", cg->fd);
	if ((cg->legacy & 1u << CGROUP_PIDS) != 0)
		(void)snprintf(paths[n++], CGROUP_WATCH_PATH,
		    "/proc/self/fd/%d/%s/pids.events",
		    tree->legacy_fd[CGROUP_PIDS], cg->name);
	else if (tree->unified[CGROUP_PIDS])
		(void)snprintf(paths[n++], CGROUP_WATCH_PATH,
		    "/proc/self/fd/%d/pids.events", cg->fd);
	return n;
}

int
cgroup_oom_eventfd(const struct cgroup_tree *tree, const struct cgroup *cg,
    int *ret_fd)
{
	autoclose int dir = legacy_dir(tree, cg, CGROUP_MEMORY);
	autoclose int control = -1;
	autoclose int event = -1;
	char text[64];
	int error;

	*ret_fd = -1;
	if (dir < 0)
		return 0;
	control = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (control < 0 || event < 0)
		return -errno;
	(void)snprintf(text, sizeof(text), "%d %d", event, control);
	error = write_at(dir, "cgroup.event_control", text);
	if (error < 0)
		return error;
	*ret_fd = take_fd(&event);
	return 0;
}
