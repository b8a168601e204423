/*
 * The mechanism bpf-lsm without launcherd: loads the programs, gives a child
 * rules and a label, and writes down what was refused.
 *
 *	bpfbox -d PINS -t TABLE -e EVENTS PROGRAM [ARGUMENT]...
 *	bpfbox -d PINS -x	takes the programs out
 *	bpfbox -d PINS -l	loads them, and says so
 *
 * PINS: a directory to be made below a BPF file system; it stays. TABLE: a file
 * that tests/guard/table wrote, of places of the host. EVENTS: a file, seven
 * strings for each denial: action, path, rule, remedy, pid, program, count.
 * With -r TABLE2 the rules are replaced after the child has sent SIGUSR1 to its
 * parent, which answers with the same. Exits as PROGRAM does; 77: this kernel
 * does not have it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memfd.h"
#include "launcherd/guard/entries.h"
#include "launcherd/guard/event.h"
#include "launcherd/guard/load.h"
#include "launcherd/guard/maps.h"
#include "protocol/guard.h"
#include "protocol/message.h"

static struct options {
	const char *pins, *table, *other, *events;
	bool unload, load;
} opt;

static struct guard guard, other;
static struct guard_maps maps;
static struct guard_policy policy;
static struct guard_entry_paths paths;
static FILE *out;
static int slot;

static _Noreturn void
die(const char *what, int error)
{
	(void)fprintf(stderr, "bpfbox: %s: %s\n", what, strerror(-error));
	exit(125);
}

/* The whole of a file, terminated; not freed. */
static char *
read_file(const char *path, size_t *ret_len)
{
	size_t len = 0, size = 1u << 16;
	char *buf = malloc(size);
	FILE *file = fopen(path, "re");

	if (file == NULL || buf == NULL)
		die(path, -errno);
	for (;;) {
		size_t n = fread(buf + len, 1, size - len - 1, file);

		len += n;
		if (n == 0)
			break;
		if (len + 1 == size) {
			char *more = realloc(buf, size *= 2);

			if (more == NULL)
				die(path, -ENOMEM);
			buf = more;
		}
	}
	(void)fclose(file);
	buf[len] = '\0';
	*ret_len = len;
	return buf;
}

static void
read_table(const char *path, struct guard *ret)
{
	size_t len;
	const char *data = read_file(path, &len);
	int error = guard_decode(data, len, ret);

	if (error < 0)
		die(path, error);
}

static void
take(void *ctx, const struct guard_event *ev)
{
	static struct msg_denial msg;

	(void)ctx;
	guard_event_denial(ev, &guard, &paths, &msg);
	(void)fprintf(out, "%s%c%s%c%s%c%s%c%" PRIu64 "%c%s%c%" PRIu64 "%c",
	    violation_name((unsigned)msg.action), 0, msg.path, 0, msg.rule, 0,
	    msg.remedy, 0, msg.pid, 0, msg.exe, 0, msg.count, 0);
}

static void
set_rules(const struct guard *rules)
{
	char why[GUARD_ENTRIES_WHY];
	size_t len;
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), error;

	guard_entry_paths_free(&paths);
	error =
	    guard_entries_make(rules, read_file("/proc/self/mountinfo", &len),
		root, &policy, &paths, why);
	if (error < 0)
		die(why, error);
	error = guard_slot_set(&maps, slot, &policy, &rules->dfa);
	if (error < 0)
		die("rules", error);
	(void)close(root);
}

static pid_t
start(char **argv)
{
	int go[2], pidfd, error;
	char byte = 0;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		die("pipe", -errno);
	pid = fork();
	if (pid < 0)
		die("fork", -errno);
	if (pid == 0) {
		sigset_t none;

		(void)close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(125);
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)execvp(argv[0], argv);
		die(argv[0], -errno);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	error = pidfd < 0 ? -errno : guard_label_set(&maps, slot, pidfd);
	if (error < 0)
		die("label", error);
	if (write(go[1], &byte, 1) != 1)
		die("go", -errno);
	(void)close(pidfd);
	(void)close(go[0]);
	(void)close(go[1]);
	return pid;
}

static int
run(char **argv)
{
	sigset_t set;
	siginfo_t info;
	int status = 0;
	pid_t pid;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	slot = guard_slot_take(&maps);
	if (slot < 0)
		die("slot", slot);
	set_rules(&guard);
	pid = start(argv);
	for (;;) {
		const struct timespec tick = { 0, 20000000 };

		guard_events_read(&maps, take, NULL);
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		if (sigtimedwait(&set, &info, &tick) != SIGUSR1)
			continue;
		set_rules(&other);
		guard = other;
		(void)kill(info.si_pid, SIGUSR1);
	}
	guard_events_read(&maps, take, NULL);
	(void)fprintf(out, "lost%c%" PRIu64 "%c%c%c%c%c%c", 0,
	    guard_lost_take(&maps, slot), 0, 0, 0, 0, 0, 0);
	guard_slot_put(&maps, slot);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

static void
load(void)
{
	struct guard_loaded loaded;
	int error = guard_load(opt.pins, &loaded);

	if (error < 0) {
		(void)fprintf(stderr, "bpfbox: %s\n", loaded.why);
		exit(77);
	}
	if (opt.load)
		(void)printf("%s %u missing=%s\n",
		    loaded.kept ? "kept" : "loaded", loaded.programs,
		    loaded.missing);
}

int
main(int argc, char **argv)
{
	int c, error;

	while ((c = getopt(argc, argv, "+d:t:r:e:xl")) != -1) {
		if (c == 'd')
			opt.pins = optarg;
		else if (c == 't')
			opt.table = optarg;
		else if (c == 'r')
			opt.other = optarg;
		else if (c == 'e')
			opt.events = optarg;
		else if (c == 'x')
			opt.unload = true;
		else if (c == 'l')
			opt.load = true;
		else
			return 2;
	}
	if (opt.pins == NULL)
		return 2;
	if (opt.unload) {
		error = guard_unload(opt.pins);
		if (error < 0)
			die("unload", error);
		return 0;
	}
	load();
	if (opt.load)
		return 0;
	if (opt.table == NULL || opt.events == NULL || optind == argc)
		return 2;
	out = fopen(opt.events, "we");
	if (out == NULL)
		die(opt.events, -errno);
	read_table(opt.table, &guard);
	if (opt.other != NULL)
		read_table(opt.other, &other);
	error = guard_maps_open(opt.pins, &maps);
	if (error < 0)
		die("maps", error);
	c = run(argv + optind);
	return fclose(out) == 0 ? c : 125;
}
