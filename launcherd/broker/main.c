/*
 * stockade-broker: one per guarded run, in the run's pid namespace and its
 * cgroup, with the channel to launcherd on descriptor 3. It waits for the run's
 * view and joins its mount namespace, takes the run's file-system ids, confines
 * itself, reads the rules, takes the run's seccomp listener, and then does the
 * run's writes, one at a time.
 *
 * It trusts its channel; its callers it believes nothing. When it dies the
 * kernel answers the trapped calls with ENOSYS and Landlock refuses the rest:
 * a run without its broker can write nothing that is guarded.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "launcherd/broker/main.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/chan.h"
#include "common/cleanup.h"
#include "launcherd/broker/broker.h"
#include "launcherd/broker/calls.h"
#include "launcherd/broker/confine.h"
#include "launcherd/broker/ids.h"
#include "launcherd/broker/judge.h"
#include "launcherd/broker/notify.h"
#include "launcherd/init/channel.h"

bool
channel_try(enum msg_type type, const void *msg)
{
	struct pollfd p = { CHANNEL, POLLOUT, 0 };
	int r;

	if (poll(&p, 1, 0) != 1 || (p.revents & POLLOUT) == 0)
		return false;
	r = channel_send(PROC_BROKER, type, msg, NULL, 0);
	/* No message: our own bug, not again and again. */
	return r == 0 || r == -EINVAL;
}

void
channel_tell(enum msg_type type, const void *msg)
{
	(void)channel_send(PROC_BROKER, type, msg, NULL, 0);
}

static _Noreturn void
failed(int error, const char *step)
{
	struct msg_broker_failed msg = { .error = (uint64_t)-error };

	MSG_SET_STR(msg.step, step);
	channel_tell(MSG_broker_failed, &msg);
	_exit(EXIT_START);
}

static _Noreturn void
start_failed(const char *what)
{
	(void)fprintf(stderr, "stockade-broker: %s\n", what);
	_exit(EXIT_START);
}

/* It acts for many processes: their own limits are not its. */
static void
set_limits(void)
{
	static const struct {
		int resource;
		bool off;
	} limits[] = {
		{ RLIMIT_FSIZE, false },
		{ RLIMIT_NOFILE, false },
		{ RLIMIT_CORE, true },
	};

	(void)signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit l;

		if (getrlimit((__rlimit_resource_t)limits[i].resource, &l) < 0)
			continue;
		l.rlim_cur = limits[i].off ? 0 : l.rlim_max;
		(void)setrlimit((__rlimit_resource_t)limits[i].resource, &l);
	}
}

static void
start(void)
{
	const char *why;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		start_failed("cannot become non-dumpable");
	(void)umask(077);
	why = channel_open();
	if (why != NULL)
		start_failed(why);
	set_limits();
}

/* The directories that everything is looked up from. No process of the run
 * can mount anything over them. */
static void
open_directories(struct broker *b)
{
	struct statfs fs;

	b->self = getpid();
	b->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	b->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	b->self_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->root < 0 || b->proc < 0 || b->self_fd < 0 ||
	    fstatfs(b->proc, &fs) < 0)
		failed(-errno, "directories");
	if (fs.f_type != PROC_SUPER_MAGIC)
		failed(-ENOTSUP, "/proc is no proc file system");
}

/* Ours is launcherd's until the run's stands: with what ids_become() gives up,
 * and before anything of the run is looked at. */
static void
enter_view(int mnt_fd)
{
	if (setns(mnt_fd, CLONE_NEWNS) < 0 || chdir("/") < 0)
		failed(-errno, "mount namespace");
	(void)close(mnt_fd);
}

static void
set_up(struct broker *b)
{
	static union msg_any any;
	const struct msg_broker_setup *m = &any.broker_setup;
	int fds[CHAN_FDS_MAX], table, r;
	const char *step = "";
	size_t nfds;

	if (channel_receive(PROC_BROKER, &any, fds, &nfds) != MSG_broker_setup)
		_exit(EXIT_RULES);
	table = fds[0];
	if (nfds > 1)
		enter_view(fds[1]);
	r = ids_become(m->uid, m->gid, m->groups.data, m->groups.len, &step);
	if (r < 0)
		failed(r, step);
	open_directories(b);
	r = notify_init();
	if (r < 0)
		failed(r, "sizes of the listener");
	r = confine_broker();
	if (r < 0)
		failed(r, "seccomp");
	r = judge_open(b, table);
	if (r < 0)
		failed(r, "the table of rules");
	b->umask = 077;
	target_init(&b->targets);
	b->listener = channel_expect(PROC_BROKER, MSG_broker_listen, &any);
	notify_tune(b->listener);
}

static void
serve(struct broker *b)
{
	static struct request rq;
	int nr = notify_recv(b, &rq), r;

	if (nr == -EAGAIN || nr == -ENOSYS)
		return;
	if (nr < 0) {
		denial_flush(b);
		_exit(0);
	}
	rq.call = calls_find(nr);
	/* Trapped and not in the table: Landlock decides. */
	r = rq.call == NULL ? ANSWER_CONTINUE : rq.call->fn(b, &rq);
	if (r == ANSWER_CONTINUE)
		notify_continue(b, rq.id);
	else if (r == ANSWER_FD)
		notify_fd(b, rq.id, rq.fd, rq.fd_cloexec);
	else if (r <= 0)
		notify_answer(b, rq.id, 0, r);
}

static void
take_rules(struct broker *b, uint64_t request, int fd)
{
	const struct msg_broker_rules_answer answer = {
		.request = request,
		.error = (uint64_t)-judge_replace(b, fd),
	};

	channel_tell(MSG_broker_rules_answer, &answer);
}

/* Other rules, the run's freeze or stop, or the end of the channel. */
static void
take_message(struct broker *b)
{
	static const struct msg_broker_flushed flushed;
	static union msg_any any;
	int fds[CHAN_FDS_MAX];
	size_t nfds;
	unsigned type = channel_receive(PROC_BROKER, &any, fds, &nfds);

	if (type == MSG_broker_rules) {
		take_rules(b, any.broker_rules.request, fds[0]);
	} else if (type == MSG_broker_flush) {
		denial_flush(b);
		channel_tell(MSG_broker_flushed, &flushed);
	} else if (type == MSG_broker_freeze) {
		b->freezing = any.broker_freeze.frozen != 0;
	} else {
		_exit(EXIT_RULES);
	}
}

static int
timeout_of(const struct broker *b)
{
	return b->fifos.n > 0 ? FIFO_TICK_MS : denial_timeout(&b->denials);
}

static _Noreturn void
loop(struct broker *b)
{
	struct pollfd fds[] = { { b->listener, POLLIN, 0 },
		{ CHANNEL, POLLIN, 0 } };

	for (;;) {
		if (poll(fds, 2, timeout_of(b)) < 0 && errno != EINTR)
			_exit(EXIT_START);
		/*
		 * All of them first: rules that came before a request hold for
		 * it, and who is let go while the run freezes has waited since
		 * before a poll that found no word of its thaw.
		 */
		if (fds[1].revents != 0) {
			take_message(b);
			continue;
		}
		if (b->fifos.n > 0)
			fifo_tick(b);
		if ((fds[0].revents & POLLIN) != 0) {
			serve(b);
		} else if (fds[0].revents != 0) {
			/* The last process of the run has ended. */
			denial_flush(b);
			_exit(0);
		}
		denial_tick(b);
	}
}

int
main(int argc, char **argv)
{
	static struct broker broker;
	static const struct msg_broker_ready ready;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		(void)printf("stockade-broker %s\n", PACKAGE_VERSION);
		return 0;
	}
	if (argc != 1)
		start_failed("usage: stockade-broker [--version]");
	start();
	set_up(&broker);
	if (!channel_try(MSG_broker_ready, &ready))
		_exit(EXIT_RULES);
	loop(&broker);
}
