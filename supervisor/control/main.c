/*
 * stockade-control: start-up and the event loop. Started by stockaded with
 * descriptor 3 = channel, 4 = the configuration's directory; with -n it is
 * executed in the place of stockaded, without a channel, and only checks.
 *
 * Order: user looked up, empty root, everything dropped, Landlock, seccomp;
 * then the configuration is read, the supervisor is told what it needs of it,
 * and `ready` is sent. So the grammar runs confined, too.
 */
#include <sys/prctl.h>

#include <event2/event.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/priv.h"
#include "common/proc.h"
#include "config.h"
#include "supervisor/control/client.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"

#define FIRST_FREE_FD 5
#define MMAP_FROM 65536 /* bytes; see own_pages() */
#define HEAP_SLACK (1 << 20)
#define CHECK_USER "nobody" /* where the service's users do not exist */

struct options {
	const char *file;
	const char *setting;
	const char *source;
	bool missing_ok;
	bool check;
	bool show;
};

/* ---------------------------------------------------------------- clocks */

static uint64_t
clock_ms(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint64_t
control_clock_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

uint64_t
control_time_ms(void)
{
	return clock_ms(CLOCK_REALTIME);
}

/*
 * Starts at the microseconds since boot: a later process starts higher, since
 * none gives out numbers faster than the clock runs.
 */
uint64_t
control_number(struct control *control)
{
	struct timespec ts;

	if (control->next_number == 0) {
		(void)clock_gettime(CLOCK_BOOTTIME, &ts);
		control->next_number = (uint64_t)ts.tv_sec * 1000000 +
		    (uint64_t)ts.tv_nsec / 1000 + 1;
	}
	return control->next_number++;
}

/* ---------------------------------------------------------------- options */

static void
usage(void)
{
	(void)fprintf(stderr,
	    "usage: stockade-control -f name [-m] "
	    "[-s setting -S option|environment]\n"
	    "       stockade-control -n [-v] -f name [-m]\n");
	exit(2);
}

static void
read_options(int argc, char **argv, struct options *ret)
{
	int c;

	while ((c = getopt(argc, argv, "f:mnvs:S:")) != -1) {
		if (c == 'f')
			ret->file = optarg;
		else if (c == 'm')
			ret->missing_ok = true;
		else if (c == 's')
			ret->setting = optarg;
		else if (c == 'S')
			ret->source = optarg;
		else if (c == 'n')
			ret->check = true;
		else if (c == 'v')
			ret->show = true;
		else
			usage();
	}
	if (optind != argc || ret->file == NULL ||
	    strchr(ret->file, '/') != NULL ||
	    (ret->setting == NULL) != (ret->source == NULL))
		usage();
	if (ret->source != NULL && strcmp(ret->source, "option") != 0 &&
	    strcmp(ret->source, "environment") != 0)
		usage();
}

/* The setting of option or environment, configuration, default (SPEC A12);
 * ends the process when its value is none. */
static struct setting_choice
choose_setting(const struct conf *conf, const struct options *opt)
{
	bool by_option =
	    opt->source != NULL && strcmp(opt->source, "option") == 0;
	struct setting_choice choice;
	char message[256];
	int r = setting_choose(by_option ? opt->setting : NULL,
	    by_option ? NULL : opt->setting,
	    conf->sandbox_set ? setting_name(conf->sandbox) : NULL, &choice,
	    message, sizeof(message));

	if (r == 0)
		return choice;
	(void)fprintf(stderr, "stockade-control: %s\n", message);
	exit(r);
}

/* ---------------------------------------------------------------- checking */

/* The grammar never runs as root. Somebody who is not root stays himself. */
static void
drop_for_check(void)
{
	struct priv_user user;

	if (geteuid() != 0)
		return;
	if (priv_lookup_user(CONTROL_USER, &user) != 0 &&
	    priv_lookup_user(CHECK_USER, &user) != 0)
		proc_fatal("there is neither a user %s nor %s", CONTROL_USER,
		    CHECK_USER);
	if (priv_drop(&user) != 0)
		proc_fatal("cannot drop privileges");
}

static int
check_configuration(const struct options *opt)
{
	struct conf_errors errors = { 0 };
	struct conf *conf = NULL;
	int r;

	drop_for_check();
	r = conf_load(CONTROL_CONF_FD, opt->file, opt->missing_ok, &conf,
	    &errors);
	conf_errors_print(&errors, stderr);
	conf_errors_done(&errors);
	if (r != 0)
		return 1;
	(void)choose_setting(conf, opt);
	if (opt->show)
		r = conf_print(conf, stdout);
	else
		(void)puts("configuration OK");
	conf_free(conf);
	return r == 0 && fflush(stdout) == 0 ? 0 : 1;
}

/* ---------------------------------------------------------------- start */

/* Numbers of conf_service: off, on, require. */
static uint64_t
setting_number(enum setting setting)
{
	return setting == SETTING_OFF ? 0 : setting == SETTING_ON ? 1 : 2;
}

static void
load_configuration(struct control *control)
{
	struct conf_errors errors = { 0 };
	int r = conf_load(control->conf_dir, control->conf_name,
	    control->conf_missing_ok, &control->conf, &errors);

	if (r != 0) {
		conf_errors_print(&errors, stderr);
		for (size_t i = 0; i < errors.n; i++)
			log_event(EV_CONFIG_ERROR,
			    LF_STR(LK_PATH, errors.list[i].file),
			    LF_NUM(LK_LINE, errors.list[i].line),
			    LF_STR(LK_REASON, errors.list[i].text));
		exit(1);
	}
	log_set_level(
	    (enum log_level)(LOG_LEVEL_ERR + (int)control->conf->log_level));
	log_event(EV_CONFIG_LOADED, LF_STR(LK_PATH, control->conf_name),
	    LF_NUM(LK_COUNT, control->conf->sentences));
}

static void
send_service(const struct control *control)
{
	const struct conf *conf = control->conf;
	struct msg_conf_service m = {
		.sandbox = setting_number(control->setting.setting),
		.log_level = (uint64_t)LOG_LEVEL_ERR + conf->log_level,
		.allow_userns = conf->user_namespaces,
		.guard = conf->guard,
		.tunnels_session = conf->limits[LIMIT_TUNNELS_SESSION],
		.tunnels_all = conf->limits[LIMIT_TUNNELS],
		.tunnel_idle_s = conf->limits[LIMIT_TUNNEL_IDLE] / 1000,
		.sessions_all = conf->limits[LIMIT_SESSIONS],
	};
	const struct msg_ready ready = { 0 };

	MSG_SET_STR(m.socket_path, conf->socket_path);
	MSG_SET_STR(m.runtime_dir, conf->runtime_dir);
	MSG_SET_STR(m.state_dir, conf->state_dir);
	MSG_SET_STR(m.client_group, conf->client_group);
	MSG_SET_STR(m.admin_group, conf->admin_group);
	if (peer_send(control->supervisor, MSG_conf_service, &m, NULL, 0) !=
		0 ||
	    peer_send(control->supervisor, MSG_ready, &ready, NULL, 0) != 0)
		proc_fatal("cannot report to the supervisor");
}

/* Before the drop: the sessions' part reads what it needs of the host. */
static void
make_parts(struct control *control)
{
	if (events_new(control, &control->events) != 0 ||
	    clients_new(control, &control->clients) != 0 ||
	    sessions_new(control, &control->sessions) != 0)
		proc_fatal("no memory");
}

static void
open_channel(struct control *control)
{
	control->supervisor = peer_new(control->base, PROC_CHANNEL_FD,
	    PROC_CONTROL, PROC_SUPERVISOR, &control_peer_ops, control);
	if (control->supervisor == NULL)
		proc_fatal("the channel is not usable");
}

/* Everything is freed, so that leak checking means something. */
static void
control_done(struct control *control)
{
	reload_done(control);
	clients_free(control->clients);
	sessions_free(control->sessions);
	events_free(control->events);
	peer_free(control->supervisor);
	conf_free(control->conf);
	event_base_free(control->base);
}

/*
 * A plan while it is made, and a look-up's answer, are arrays of their
 * greatest size, most of which is never touched. Pages of their own cost what
 * is touched and go back when they are freed; in the heap they would leave
 * holes. A fixed threshold also stops malloc from raising it, and the one of
 * giving back with it (mallopt(3)): a launch should find the pages of the one
 * before.
 */
static void
own_pages(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, MMAP_FROM);
	(void)mallopt(M_TRIM_THRESHOLD, HEAP_SLACK);
}

static int
serve(const struct options *opt)
{
	struct control control = { .conf_dir = CONTROL_CONF_FD,
		.conf_name = opt->file,
		.conf_missing_ok = opt->missing_ok };
	pid_t parent = getppid();
	struct priv_user user;

	own_pages();
	proc_begin("stockade-control", FIRST_FREE_FD);
	log_init("control", LOG_LEVEL_INFO);
	if (priv_lookup_user(CONTROL_USER, &user) != 0)
		proc_fatal("there is no user %s", CONTROL_USER);
	if (uname(&control.host) != 0)
		proc_fatal("uname");
	control.base = event_base_new();
	if (control.base == NULL)
		proc_fatal("no event loop");
	make_parts(&control);
	control.nofile = proc_raise_nofile();
	control_confine(&user, parent);
	control.started_ms = control_clock_ms();
	load_configuration(&control);
	control.setting = choose_setting(control.conf, opt);
	open_channel(&control);
	send_service(&control);
	if (event_base_dispatch(control.base) < 0)
		control.failed = true;
	control_done(&control);
	return control.failed ? 1 : 0;
}

int
main(int argc, char **argv)
{
	struct options opt = { 0 };

	read_options(argc, argv, &opt);
	if (opt.show && !opt.check)
		usage();
	return opt.check ? check_configuration(&opt) : serve(&opt);
}
