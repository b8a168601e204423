/*
 * What a hostile or a merely busy program does to the guard; run with and
 * without it by tests/proc/test_broker.py. Results are lines KEY=NUMBER.
 *
 *	attack race ROOT OUTSIDE ATTEMPTS	names that change under the call
 *	attack timer ROOT N			calls under an interval timer
 *	attack busy ROOT N			write, close, execute
 *	attack threads ROOT			own directory, umask, descriptors
 *	attack bench ROOT N			pinned to one processor
 *	attack uring ROOT			by io_uring, past every filter
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATHS 6
#define PATH_SIZE 256

static char root[PATH_MAX], outside[PATH_MAX];
static char paths[PATHS][PATH_SIZE];
static char shared[PATH_SIZE]; /* changed by another thread all the time */
static atomic_bool stop;

/* How often each thread of a race has changed something. */
#define FLIPS 3
#define TURNS_MIN 1000
static atomic_uint turns[FLIPS];

static _Noreturn void
die(const char *what)
{
	(void)fprintf(stderr, "attack: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static void
path_in(char *buf, const char *dir, const char *name)
{
	if (snprintf(buf, PATH_SIZE, "%s/%s", dir, name) >= PATH_SIZE)
		die("path");
}

/* ------------------------------------------------ race */

static void *
flip_path(void *arg)
{
	(void)arg;
	for (unsigned i = 0; !atomic_load(&stop); i++) {
		memcpy(shared, paths[i % PATHS], PATH_SIZE);
		atomic_store(&turns[0], i);
	}
	return NULL;
}

/* A directory and a link to the outside change places. */
static void *
flip_directories(void *arg)
{
	char a[PATH_SIZE], b[PATH_SIZE];

	(void)arg;
	path_in(a, root, "dir");
	path_in(b, root, "link");
	for (unsigned i = 0; !atomic_load(&stop); i++) {
		(void)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2u);
		atomic_store(&turns[1], i);
	}
	return NULL;
}

/* A link in an unguarded directory points now inside, now outside. */
static void *
flip_link(void *arg)
{
	char name[PATH_SIZE], temp[PATH_SIZE];

	(void)arg;
	path_in(name, outside, "link");
	path_in(temp, outside, "temp");
	for (unsigned i = 0; !atomic_load(&stop); i++) {
		if (symlink(i % 2 == 0 ? root : outside, temp) == 0)
			(void)rename(temp, name);
		atomic_store(&turns[2], i);
	}
	return NULL;
}

/* On a busy machine a thread may have had no time yet. */
static bool
is_under_way(void)
{
	for (size_t i = 0; i < FLIPS; i++)
		if (atomic_load(&turns[i]) < TURNS_MIN)
			return false;
	return true;
}

static int
attempt(unsigned i)
{
	char from[PATH_SIZE];
	int fd;

	switch (i % 4) {
	case 0:
	case 1:
		fd = open(shared, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		if (fd >= 0)
			(void)close(fd);
		return fd;
	case 2:
		return mkdir(shared, 0755);
	default:
		path_in(from, root, "plain");
		fd = open(from, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		if (fd >= 0)
			(void)close(fd);
		return rename(from, shared);
	}
}

static void
race_set_up(void)
{
	char name[PATH_SIZE];

	path_in(paths[0], root, "good");
	path_in(paths[1], root, ".env");
	path_in(paths[2], outside, "good");
	path_in(paths[3], outside, "link/.env");
	path_in(paths[4], root, "dir/.env");
	path_in(paths[5], root, "dir/good");
	memcpy(shared, paths[0], PATH_SIZE);
	path_in(name, root, "dir");
	(void)mkdir(name, 0755);
	path_in(name, root, "link");
	if (symlink(outside, name) < 0 && errno != EEXIST)
		die(name);
}

static int
race(unsigned attempts)
{
	void *(*const flips[])(
	    void *) = { flip_path, flip_directories, flip_link };
	pthread_t threads[FLIPS];
	unsigned ok = 0, eperm = 0, eacces = 0, other = 0;

	race_set_up();
	for (size_t i = 0; i < FLIPS; i++)
		if (pthread_create(&threads[i], NULL, flips[i], NULL) != 0)
			die("thread");
	for (unsigned i = 0; i < attempts || !is_under_way(); i++) {
		if (attempt(i) >= 0)
			ok++;
		else if (errno == EPERM)
			eperm++;
		else if (errno == EACCES)
			eacces++;
		else
			other++;
	}
	atomic_store(&stop, true);
	for (size_t i = 0; i < FLIPS; i++)
		(void)pthread_join(threads[i], NULL);
	(void)printf("ok=%u\neperm=%u\neacces=%u\nother=%u\n", ok, eperm,
	    eacces, other);
	return 0;
}

/* ------------------------------------------------ timer */

static void
on_alarm(int sig)
{
	(void)sig;
}

static int
timer(unsigned n)
{
	struct sigaction act = { .sa_handler = on_alarm,
		.sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 300 }, { 0, 300 } };
	char name[PATH_SIZE];
	unsigned wrong = 0;

	(void)sigaction(SIGALRM, &act, NULL);
	(void)setitimer(ITIMER_REAL, &every, NULL);
	path_in(name, root, "timer");
	for (unsigned i = 0; i < n; i++) {
		int fd;

		if (mkdir(name, 0755) < 0)
			wrong++;
		if (rmdir(name) < 0)
			wrong++;
		fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
		if (fd < 0 || close(fd) < 0 || unlink(name) < 0)
			wrong++;
	}
	(void)printf("wrong=%u\n", wrong);
	return 0;
}

/* ------------------------------------------------ write, close, execute */

/* The child executes at once, so that the file is as fresh as can be. */
static int
execute(const char *name)
{
	int status = -1;
	pid_t pid = vfork();

	if (pid == 0) {
		(void)execl(name, name, (char *)NULL);
		_exit(errno == ETXTBSY ? 26 : 99);
	}
	if (waitpid(pid, &status, 0) != pid)
		die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int
busy(unsigned n)
{
	static const char text[] = "#!/bin/true\n";
	char name[PATH_SIZE];
	unsigned etxtbsy = 0, wrong = 0;

	path_in(name, root, "program");
	for (unsigned i = 0; i < n; i++) {
		int fd =
		    open(name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755);
		int status;

		if (fd < 0 || write(fd, text, sizeof(text) - 1) < 0)
			die(name);
		(void)close(fd);
		status = execute(name);
		if (status == 26)
			etxtbsy++;
		else if (status != 0)
			wrong++;
	}
	(void)printf("etxtbsy=%u\nwrong=%u\n", etxtbsy, wrong);
	return 0;
}

/* ------------------------------------------------ threads */

#define ROUNDS 200

struct own {
	const char *dir;
	mode_t mask;
	unsigned wrong;
};

/* A thread with its own directory, umask and descriptors makes relative names,
 * and looks where they are and what they may. */
static void *
live_alone(void *arg)
{
	struct own *o = arg;
	char abs[PATH_SIZE], at[PATH_SIZE];
	int dir;

	if (unshare(CLONE_FS | CLONE_FILES) < 0 || chdir(o->dir) < 0)
		die("unshare");
	(void)umask(o->mask);
	dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < ROUNDS; i++) {
		char name[32];
		struct stat st;
		int fd;

		(void)snprintf(name, sizeof(name), "t%u", i);
		fd = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
		path_in(abs, o->dir, name);
		if (fd < 0 || stat(abs, &st) < 0 ||
		    (st.st_mode & 0777) != (0666 & ~o->mask) ||
		    write(fd, "x", 1) != 1)
			o->wrong++;
		(void)snprintf(at, sizeof(at), "d%u", i);
		if (mkdirat(dir, at, 0777) < 0)
			o->wrong++;
		path_in(abs, o->dir, at);
		if (stat(abs, &st) < 0 ||
		    (st.st_mode & 0777) != (0777 & ~o->mask))
			o->wrong++;
		(void)close(fd);
	}
	return NULL;
}

static int
threads(void)
{
	static char dirs[4][PATH_SIZE];
	static struct own own[4];
	pthread_t ids[4];
	unsigned wrong = 0;

	for (unsigned i = 0; i < 4; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "own%u", i);
		path_in(dirs[i], root, name);
		(void)mkdir(dirs[i], 0777);
		own[i] = (struct own){ dirs[i], (mode_t)(i * 9), 0 };
	}
	for (unsigned i = 0; i < 4; i++)
		if (pthread_create(&ids[i], NULL, live_alone, &own[i]) != 0)
			die("thread");
	for (unsigned i = 0; i < 4; i++) {
		(void)pthread_join(ids[i], NULL);
		wrong += own[i].wrong;
	}
	(void)printf("wrong=%u\n", wrong);
	return 0;
}

/* ------------------------------------------------ bench */

static double
now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void
bench_write_open(const char *name)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		die(name);
	(void)close(fd);
}

static void
bench_read_open(const char *name)
{
	char byte;
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, &byte, 1) != 1)
		die(name);
	(void)close(fd);
}

static void
bench_create(const char *name)
{
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0 || close(fd) < 0 || unlink(name) < 0)
		die(name);
}

static double
best_of(void (*fn)(const char *), const char *name, unsigned n)
{
	double best = 1e12;

	for (unsigned round = 0; round < 11; round++) {
		double start = now_us(), each;

		for (unsigned i = 0; i < n; i++)
			fn(name);
		each = (now_us() - start) / n;
		best = each < best ? each : best;
	}
	return best;
}

static int
bench(unsigned n)
{
	char name[PATH_SIZE], fresh[PATH_SIZE];
	int fd;

	path_in(name, root, "bench");
	path_in(fresh, root, "fresh");
	fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, "x", 1) != 1 || close(fd) < 0)
		die(name);
	(void)printf("open_read_close_us=%.1f\n",
	    best_of(bench_read_open, name, n));
	(void)printf("open_write_close_us=%.1f\n",
	    best_of(bench_write_open, name, n));
	(void)printf("create_close_unlink_us=%.1f\n",
	    best_of(bench_create, fresh, n));
	return 0;
}

/* ------------------------------------------------ io_uring */

#define RING 4u

struct ring {
	int fd;
	uint8_t *rings; /* both in one mapping */
	struct io_uring_sqe *sqes;
	struct io_uring_params params;
};

static int
ring_open(struct ring *r)
{
	size_t size;
	void *at;

	r->fd = (int)syscall(SYS_io_uring_setup, RING, &r->params);
	if (r->fd < 0)
		return -errno;
	size = r->params.cq_off.cqes +
	    r->params.cq_entries * sizeof(struct io_uring_cqe);
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
	    IORING_OFF_SQ_RING);
	if (at == MAP_FAILED)
		die("ring");
	r->rings = at;
	at = mmap(NULL, RING * sizeof(struct io_uring_sqe),
	    PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQES);
	if (at == MAP_FAILED)
		die("ring");
	r->sqes = at;
	return 0;
}

/* One call, waited for. */
static int
ring_call(struct ring *r, const struct io_uring_sqe *what)
{
	const struct io_uring_cqe *cqes =
	    (const void *)(r->rings + r->params.cq_off.cqes);
	uint32_t *tail = (void *)(r->rings + r->params.sq_off.tail);
	uint32_t *head = (void *)(r->rings + r->params.cq_off.head);
	uint32_t *index = (void *)(r->rings + r->params.sq_off.array);
	int res;

	r->sqes[0] = *what;
	index[*tail & (RING - 1)] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, r->fd, 1u, 1u, IORING_ENTER_GETEVENTS,
		NULL, 0) < 0)
		die("enter");
	res = cqes[*head & (r->params.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return res;
}

static int
uring(void)
{
	static struct ring ring;
	static const struct open_how how = { .flags = O_CREAT | O_WRONLY };
#define TEXT(s) (uint64_t)(uintptr_t)(s)
	const struct io_uring_sqe calls[] = {
		{ .opcode = IORING_OP_OPENAT,
		    .fd = AT_FDCWD,
		    .addr = TEXT("u1"),
		    .open_flags = O_CREAT | O_WRONLY,
		    .len = 0644 },
		{ .opcode = IORING_OP_OPENAT2,
		    .fd = AT_FDCWD,
		    .addr = TEXT("u2"),
		    .addr2 = TEXT(&how),
		    .len = sizeof(how) },
		{ .opcode = IORING_OP_MKDIRAT,
		    .fd = AT_FDCWD,
		    .addr = TEXT("u3"),
		    .len = 0755 },
		{ .opcode = IORING_OP_SYMLINKAT,
		    .fd = AT_FDCWD,
		    .addr = TEXT("x"),
		    .addr2 = TEXT("u4") },
		{ .opcode = IORING_OP_LINKAT,
		    .fd = AT_FDCWD,
		    .addr = TEXT("plain"),
		    .addr2 = TEXT("u5"),
		    .len = (uint32_t)AT_FDCWD },
		{ .opcode = IORING_OP_OPENAT,
		    .fd = AT_FDCWD,
		    .addr = TEXT("plain"),
		    .open_flags = O_RDWR },
		{ .opcode = IORING_OP_RENAMEAT,
		    .fd = AT_FDCWD,
		    .addr = TEXT("plain"),
		    .addr2 = TEXT("u6"),
		    .len = (uint32_t)AT_FDCWD },
		{ .opcode = IORING_OP_UNLINKAT,
		    .fd = AT_FDCWD,
		    .addr = TEXT("gone") },
	};
#undef TEXT
	int r = ring_open(&ring);

	if (chdir(root) < 0)
		die(root);
	(void)printf("setup=%d\n", r);
	for (size_t i = 0; r == 0 && i < sizeof(calls) / sizeof(calls[0]); i++)
		(void)printf("call%zu=%d\n", i, ring_call(&ring, &calls[i]));
	return 0;
}

int
main(int argc, char **argv)
{
	unsigned n;

	if (argc < 3)
		return 2;
	(void)snprintf(root, sizeof(root), "%s", argv[2]);
	(void)snprintf(outside, sizeof(outside), "%s", argc > 3 ? argv[3] : "");
	n = (unsigned)strtoul(argv[argc - 1], NULL, 10);
	if (strcmp(argv[1], "race") == 0 && argc == 5)
		return race(n);
	if (strcmp(argv[1], "timer") == 0)
		return timer(n);
	if (strcmp(argv[1], "busy") == 0)
		return busy(n);
	if (strcmp(argv[1], "threads") == 0)
		return threads();
	if (strcmp(argv[1], "uring") == 0)
		return uring();
	return strcmp(argv[1], "bench") == 0 ? bench(n) : 2;
}
