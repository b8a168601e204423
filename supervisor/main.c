/*
 * stockaded: options, the start-up sequence, signals, the loop. No policy. Runs
 * as root; trusts its arguments and the service manager, and reads no byte of
 * anybody else here.
 */
#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/notify.h"
#include "common/proc.h"
#include "common/size.h"
#include "config.h"
#include "supervisor/supervisor.h"

#define EXIT_USAGE 2

static struct supervisor supervisor;

uint64_t
supervisor_now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ------------------------------------------------ options */

static void __attribute__((noreturn)) usage(FILE *to, int status)
{
	(void)fprintf(to,
	    "usage: stockaded [-dnv] [-f file] "
	    "[--libexec directory] [--sandbox on|off|require]\n"
	    "       stockaded --version\n");
	exit(status);
}

#ifdef ENABLE_HARDENING
#define BUILT_HARDENED ""
#else
#define BUILT_HARDENED ", built without hardening flags"
#endif
#ifdef ENABLE_SANITIZERS
#define BUILT_SANITIZED ", built with sanitizers"
#else
#define BUILT_SANITIZED ""
#endif

static void __attribute__((noreturn)) version(void)
{
	(void)puts("stockaded " PACKAGE_VERSION BUILT_HARDENED BUILT_SANITIZED);
	exit(0);
}

static void
parse_options(int argc, char **argv, struct options *options)
{
	enum { OPT_LIBEXEC = 256, OPT_SANDBOX, OPT_VERSION, OPT_HELP };
	static const struct option longs[] = {
		{ "libexec", required_argument, NULL, OPT_LIBEXEC },
		{ "sandbox", required_argument, NULL, OPT_SANDBOX },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "df:nv", longs, NULL)) != -1) {
		if (c == 'd') {
			options->to_stderr = true;
		} else if (c == 'f') {
			options->conf_file = optarg;
			options->conf_given = true;
		} else if (c == 'n') {
			options->check = true;
		} else if (c == 'v') {
			options->print = true;
		} else if (c == OPT_LIBEXEC) {
			options->libexec_dir = optarg;
		} else if (c == OPT_SANDBOX) {
			options->sandbox = optarg;
			options->sandbox_source = "option";
		} else if (c == OPT_VERSION) {
			version();
		} else {
			usage(c == OPT_HELP ? stdout : stderr,
			    c == OPT_HELP ? 0 : EXIT_USAGE);
		}
	}
	if (optind != argc || (options->print && !options->check))
		usage(stderr, EXIT_USAGE);
}

/* SPEC A12: the option, else the environment, else what control reads. The
 * value is passed on unread; control judges it. */
static void
finish_options(struct options *options)
{
	static char libexec[PATH_MAX];

	if (options->conf_file == NULL)
		options->conf_file = DEFAULT_CONFIG;
	if (options->libexec_dir == NULL)
		options->libexec_dir = PKGLIBEXECDIR;
	if (options->sandbox == NULL &&
	    (options->sandbox = getenv("CC_SERVER_SANDBOX")) != NULL)
		options->sandbox_source = "environment";
	if (realpath(options->libexec_dir, libexec) == NULL)
		proc_fatal("%s: %s; --libexec names another directory",
		    options->libexec_dir, strerror(errno));
	options->libexec_dir = libexec;
}

/* ------------------------------------------------ start */

/* Descriptors 0 to 2 exist, so that none of ours becomes one of them. */
static void
fill_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
	(void)close_range(STDERR_FILENO + 1, ~0u, 0);
}

/* An empty directory without a name: without -f a missing configuration
 * directory is a missing file, and that means all defaults (SPEC Z1). */
static int
open_nothing(void)
{
	char name[] = "/tmp/stockaded-XXXXXX";
	int fd;

	if (mkdtemp(name) == NULL)
		return -1;
	fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* control looks into it as its own user. */
	if (fd >= 0)
		(void)fchmod(fd, 0755);
	(void)rmdir(name);
	return fd;
}

/* The directory of the configuration and the name of the file in it. */
static void
open_conf(struct supervisor *s)
{
	static char dir[PATH_MAX];
	const char *file = s->options.conf_file;
	const char *slash = strrchr(file, '/');
	size_t len = slash == NULL ? 0 : (size_t)(slash - file);
	struct stat st;

	s->conf_name = slash == NULL ? file : slash + 1;
	if (*s->conf_name == '\0' || len >= sizeof(dir))
		proc_fatal("%s: no file name", file);
	if (slash == NULL)
		(void)snprintf(dir, sizeof(dir), ".");
	else
		(void)snprintf(dir, sizeof(dir), "%.*s",
		    len == 0 ? 1 : (int)len, file);
	s->conf_dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->conf_dir < 0 && errno == ENOENT && !s->options.conf_given)
		s->conf_dir = open_nothing();
	if (s->conf_dir < 0)
		proc_fatal("%s: %s", errno == ENOENT ? file : dir,
		    strerror(errno));
	/* Told here with its whole name; control sees a component only. */
	if (s->options.conf_given &&
	    fstatat(s->conf_dir, s->conf_name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno == ENOENT)
		proc_fatal("%s: %s", file, strerror(errno));
}

static size_t
conf_arguments(const struct supervisor *s, const char **argv)
{
	size_t n = 0;

	argv[n++] = "-f";
	argv[n++] = s->conf_name;
	if (!s->options.conf_given)
		argv[n++] = "-m";
	if (s->options.sandbox != NULL) {
		argv[n++] = "-s";
		argv[n++] = s->options.sandbox;
		argv[n++] = "-S";
		argv[n++] = s->options.sandbox_source;
	}
	return n;
}

void
supervisor_arguments(const struct supervisor *s, const struct child_kind *kind,
    const char **argv)
{
	static char level[8];
	static char root[sizeof(s->conf.runtime_dir) + 8];
	size_t n = 0;

	argv[n++] = kind->program;
	if (kind->args == CHILD_ARGS_CONF)
		n += conf_arguments(s, argv + n);
	if (kind->args == CHILD_ARGS_LEVEL || kind->args == CHILD_ARGS_ROOT) {
		(void)snprintf(level, sizeof(level), "%d",
		    (int)s->conf.log_level);
		argv[n++] = "-l";
		argv[n++] = level;
	}
	if (kind->args == CHILD_ARGS_ROOT) {
		(void)snprintf(root, sizeof(root), "%s/" RUNTIME_EMPTY,
		    s->conf.runtime_dir);
		argv[n++] = "-r";
		argv[n++] = root;
	}
	argv[n] = NULL;
}

/* -n: control in our place; it has descriptor 4 and no channel. */
static void __attribute__((noreturn)) check_conf(const struct supervisor *s)
{
	const char *plain[10] = { NULL };
	const char *argv[11];
	union {
		const char **in;
		char *const *out;
	} a = { argv };
	char path[PATH_MAX + 64];
	size_t n = 0;
	int fd = fcntl(s->conf_dir, F_DUPFD_CLOEXEC, 16);

	supervisor_arguments(s, &child_kinds[CHILD_CONTROL], plain);
	argv[n++] = plain[0];
	argv[n++] = s->options.print ? "-nv" : "-n";
	for (size_t i = 1; plain[i] != NULL; i++)
		argv[n++] = plain[i];
	argv[n] = NULL;
	(void)snprintf(path, sizeof(path), "%s/%s", s->options.libexec_dir,
	    plain[0]);
	if (fd < 0 || dup2(fd, CHILD_EXTRA_FD) < 0)
		proc_fatal("descriptors: %s", strerror(errno));
	(void)close(CHILD_CHANNEL_FD);
	(void)execv(path, a.out);
	proc_fatal("%s: %s", path, strerror(errno));
}

/* ------------------------------------------------ signals and timers */

static void
on_stop_signal(evutil_socket_t signal, short what, void *arg)
{
	(void)signal;
	(void)what;
	service_stop(arg, 0);
}

static void
on_reload_signal(evutil_socket_t signal, short what, void *arg)
{
	(void)signal;
	(void)what;
	service_reload(arg);
}

static void
on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	notify_send("WATCHDOG=1");
}

static void
add_signal(struct supervisor *s, size_t i, int signal, event_callback_fn fn)
{
	s->signals[i] = evsignal_new(s->base, signal, fn, s);
	if (s->signals[i] == NULL || event_add(s->signals[i], NULL) < 0)
		proc_fatal("signals: out of memory");
}

static void
make_events(struct supervisor *s, uint64_t watchdog_ms)
{
	const struct timeval tv = { .tv_sec = (time_t)(watchdog_ms / 1000),
		.tv_usec = (suseconds_t)(watchdog_ms % 1000 * 1000) };
	struct event_config *config = event_config_new();

	/* The environment does not choose how we wait. */
	if (config == NULL ||
	    event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV) < 0 ||
	    (s->base = event_base_new_with_config(config)) == NULL)
		proc_fatal("event loop: out of memory");
	event_config_free(config);
	add_signal(s, 0, SIGTERM, on_stop_signal);
	add_signal(s, 1, SIGINT, on_stop_signal);
	add_signal(s, 2, SIGHUP, on_reload_signal);
	if (watchdog_ms == 0)
		return;
	s->watchdog = event_new(s->base, -1, EV_PERSIST, on_watchdog, s);
	if (s->watchdog == NULL || event_add(s->watchdog, &tv) < 0)
		proc_fatal("watchdog: out of memory");
}

static void
make_tables(struct supervisor *s)
{
	s->runtime_fd = -1;
	s->listen_fd = -1;
	clients_init(&s->clients);
	sandboxes_init(&s->sandboxes);
	requests_init(&s->requests);
	for (size_t i = 0; i < CHILD_COUNT; i++) {
		child_init(&s->children[i], s, (enum child_id)i,
		    &child_kinds[i]);
		if (s->children[i].timer == NULL ||
		    s->children[i].resume == NULL)
			proc_fatal("timers: out of memory");
	}
}

static void
clean_up(struct supervisor *s)
{
	for (size_t i = 0; i < CHILD_COUNT; i++)
		child_done(&s->children[i]);
	runtime_close(s);
	clients_done(&s->clients);
	sandboxes_done(&s->sandboxes);
	requests_done(&s->requests);
	for (size_t i = 0; i < ARRAY_LEN(s->signals); i++)
		event_free(s->signals[i]);
	if (s->watchdog != NULL)
		event_free(s->watchdog);
	if (s->stop_timer != NULL)
		event_free(s->stop_timer);
	event_base_free(s->base);
	(void)close(s->conf_dir);
}

int
main(int argc, char **argv)
{
	struct supervisor *s = &supervisor;
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	uint64_t watchdog_ms;
	unsigned long limit;

	parse_options(argc, argv, &s->options);
	fill_standard_fds();
	(void)umask(077);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	if (s->options.to_stderr)
		(void)unsetenv("JOURNAL_STREAM");
	log_init("stockaded", LOG_LEVEL_INFO);
	finish_options(&s->options);
	open_conf(s);
	if (s->options.check)
		check_conf(s);
	if (chdir("/") < 0)
		proc_fatal("/: %s", strerror(errno));
	watchdog_ms = notify_init();
	confine_capabilities();
	children_save_limits();
	limit = proc_raise_nofile();
	s->sandboxes_max =
	    limit > SPARE_FDS ? (limit - SPARE_FDS) / SANDBOX_FDS : 0;
	confine_supervisor();
	make_events(s, watchdog_ms);
	make_tables(s);
	service_start(s);
	(void)event_base_dispatch(s->base);
	clean_up(s);
	return s->exit_status;
}
