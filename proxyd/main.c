/*
 * stockade-proxyd: relays what a session's lists allow and refuses the rest
 * with the reason.  Started by stockaded as root, gives that up before the
 * first byte of anybody is read.  Trusts nobody: clients are runs, the
 * network is hostile, the resolver may be, and lists are checked again.
 */
#include <sys/resource.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/priv.h"
#include "common/proc.h"
#include "config.h"
#include "protocol/peer.h"
#include "proxyd/confine.h"
#include "proxyd/conn.h"
#include "proxyd/dispatch.h"
#include "proxyd/names.h"
#include "proxyd/own.h"
#include "proxyd/proxyd.h"
#include "proxyd/report.h"
#include "proxyd/session.h"

#define NOFILE_OTHER 512 /* descriptors that are no tunnel's */
#define CALLBACKS_TURN 64 /* then the poll set is asked again */

struct options {
	const char *user;
	const char *root;
	enum log_level level;
};

static void
usage(void)
{
	(void)fprintf(stderr,
	    "usage: stockade-proxyd [-u user] [-r directory] [-l level]\n");
	exit(1);
}

static long
number(const char *text, long min, long max)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value < min ||
	    value > max)
		usage();
	return value;
}

static void
read_options(int argc, char **argv, struct options *opt)
{
	int c;

	opt->user = PROXY_USER;
	opt->root = DEFAULT_RUNTIME_DIR "/empty";
	opt->level = LOG_LEVEL_INFO;
	while ((c = getopt(argc, argv, "u:r:l:V")) != -1) {
		if (c == 'u')
			opt->user = optarg;
		else if (c == 'r')
			opt->root = optarg;
		else if (c == 'l')
			opt->level = (enum log_level)number(optarg, 3, 7);
		else if (c == 'V')
			exit(puts("stockade-proxyd " PACKAGE_VERSION) < 0);
		else
			usage();
	}
	if (optind != argc)
		usage();
}

time_t
proxyd_now(struct proxyd *p)
{
	struct timeval tv;

	if (event_base_gettimeofday_cached(p->base, &tv) < 0)
		return 0;
	return tv.tv_sec;
}

static void
on_tick(int fd, short what, void *arg)
{
	struct proxyd *p = arg;
	struct session *session;

	(void)fd;
	(void)what;
	conn_expire(p);
	LIST_FOREACH (session, &p->sessions, link)
		report_tick(session);
}

static void
on_accept_again(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	session_accept_all(arg, true);
}

static struct event_base *
new_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (config == NULL)
		return NULL;
	(void)event_config_set_max_dispatch_interval(config, NULL,
	    CALLBACKS_TURN, 0);
	(void)event_config_set_flag(config,
	    EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

/* Everything that is allocated or opened before privilege is given up. */
static void
prepare(struct proxyd *p)
{
	static const struct timeval second = { 1, 0 };
	unsigned long nofile = proc_raise_nofile();
	size_t i;

	memset(p, 0, sizeof(*p));
	LIST_INIT(&p->sessions);
	for (i = 0; i < CONN_PHASES; i++)
		TAILQ_INIT(&p->phases[i]);
	if (nofile < NOFILE_OTHER + 64)
		proc_fatal("the limit of open files (%lu) is too low", nofile);
	p->nofile_max = (nofile - NOFILE_OTHER) / 2;
	p->conns_max = p->nofile_max;
	p->conns_session_max = p->nofile_max;
	p->base = new_base();
	p->scratch = malloc(PROXYD_SCRATCH);
	p->encode = malloc(PROXYD_ENCODE);
	p->names = names_new(p);
	p->own = own_new();
	if (p->own == NULL)
		proc_fatal("addresses of this host: %s", strerror(errno));
	if (p->base == NULL || p->scratch == NULL || p->encode == NULL ||
	    p->names == NULL || own_start(p->own, p->base) < 0)
		proc_fatal("out of memory");
	p->tick = event_new(p->base, -1, EV_PERSIST, on_tick, p);
	p->accept_again = event_new(p->base, -1, 0, on_accept_again, p);
	if (p->tick == NULL || p->accept_again == NULL ||
	    event_add(p->tick, &second) < 0)
		proc_fatal("out of memory");
	p->reserve_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
}

static void
give_up_privilege(const struct options *opt, pid_t parent)
{
	struct priv_user user;
	int r;

	r = priv_lookup_user(opt->user, &user);
	if (r < 0)
		proc_fatal("user %s: %s", opt->user, strerror(-r));
	r = proc_chroot_empty(opt->root);
	if (r < 0)
		proc_fatal("chroot to %s: %s", opt->root, strerror(-r));
	priv_enter(&user, parent);
	r = proxyd_confine();
	if (r < 0)
		proc_fatal("confinement: %s", strerror(-r));
}

static void
done(struct proxyd *p)
{
	while (!LIST_EMPTY(&p->sessions))
		session_free(LIST_FIRST(&p->sessions));
	names_free(p->names);
	own_free(p->own);
	peer_free(p->supervisor);
	event_free(p->tick);
	event_free(p->accept_again);
	event_base_free(p->base);
	free(p->scratch);
	free(p->encode);
	if (p->reserve_fd >= 0)
		(void)close(p->reserve_fd);
}

int
main(int argc, char **argv)
{
	pid_t parent = getppid();
	struct options opt;
	struct proxyd p;

	read_options(argc, argv, &opt);
	proc_begin("stockade-proxyd", PROC_CHANNEL_FD + 1);
	log_init("proxyd", opt.level);
	prepare(&p);
	give_up_privilege(&opt, parent);
	if (dispatch_start(&p, PROC_CHANNEL_FD) < 0)
		proc_fatal("the channel cannot be used");
	log_event(EV_STARTED, LF_NUM(LK_LIMIT, p.nofile_max));
	(void)event_base_dispatch(p.base);
	done(&p);
	return 0;
}
