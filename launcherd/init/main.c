/*
 * stockade-init: pid 1 of a sandbox, started by bubblewrap as root with
 * SETUID, SETGID, SETPCAP and CHOWN and nothing else. It takes launcherd's
 * word for the run's ids, gives everything up, confines itself and with that
 * everything that comes after, then starts commands, reaps and signals.
 *
 * It trusts its channel (launcherd), not the plan and nothing inside. It has
 * the run's uid: so it is non-dumpable from its first call on, its channel is
 * close-on-exec, and what the channel permits ends at this sandbox (SPEC K26).
 * A broken rule or the end of the channel ends it, and with pid 1 the kernel
 * ends all others.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/chan.h"
#include "common/cleanup.h"
#include "common/memfd.h"
#include "common/path.h"
#include "common/size.h"
#include "launcherd/init/channel.h"
#include "launcherd/init/confine.h"
#include "launcherd/init/exec.h"
#include "launcherd/init/guard.h"
#include "launcherd/init/ids.h"
#include "launcherd/init/probe.h"
#include "launcherd/init/verify.h"
#include "launcherd/init/setup.h"
#include "protocol/message.h"
#include "protocol/plan.h"

#define EXECS_MAX 64

enum state {
	INIT_WAIT = 1 << 0, /* for init_setup */
	INIT_READY = 1 << 1,
	INIT_STOPPING = 1 << 2,
	INIT_ARMED = 1 << 3 /* the listener is sent: for init_go */
};

/* A command; free when pid is 0. */
struct command {
	uint64_t exec;
	pid_t pid;
	int report; /* -1 once it was answered */
	int master;
	bool failed; /* answered with an error: no init_exit */
};

struct init {
	enum state state;
	int signals;
	unsigned landlock_abi;
	struct command commands[EXECS_MAX];
	size_t nplaces; /* guarded, with rules; until they are verified */
	char *places[PLAN_ROOTS_MAX];
};

static void
say(struct init *in, enum msg_type type, const void *msg, int *fds, size_t nfds)
{
	(void)in;
	/* Nobody left to tell: the sandbox is over. */
	if (channel_send(PROC_INIT, type, msg, fds, nfds) < 0)
		_exit(EXIT_RULES);
}

static _Noreturn void
setup_failed(struct init *in, int error, const char *step)
{
	struct msg_init_failed msg = { .error = (uint64_t)-error };

	MSG_SET_STR(msg.step, step);
	say(in, MSG_init_failed, &msg, NULL, 0);
	_exit(EXIT_START);
}

/* init keeps nothing of the host open: what bubblewrap left on 0..2 goes. */
static int
null_stdio(void)
{
	autoclose int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (int i = 0; i < EXEC_STDIO; i++)
		if (dup2(fd, i) < 0)
			return -errno;
	return 0;
}

static void
enter_guard_domain(struct init *in, const struct plan *plan)
{
	struct guard_places places;
	const char *step = "guard: places";
	int r = guard_check_plan(plan, &places);

	if (r == 0)
		r = guard_landlock(&places, &step);
	if (r < 0)
		setup_failed(in, r, step);
}

/*
 * The last filter. From here to init_go nothing here may open for writing or
 * make a name: there is nobody yet to answer, and we would wait for ever.
 */
static void
arm_guard(struct init *in, bool kernel)
{
	static const struct msg_init_listener msg;
	int fd;

	if (kernel) {
		in->state = INIT_ARMED;
		say(in, MSG_init_listener, &msg, NULL, 0);
		return;
	}
	fd = guard_listener();

	if (fd == -EBUSY)
		setup_failed(in, fd,
		    "guard: another program has a seccomp listener above");
	if (fd < 0)
		setup_failed(in, fd, "guard: listener");
	in->state = INIT_ARMED;
	say(in, MSG_init_listener, &msg, &fd, 1);
	close_all(&fd, 1);
}

static void
tell_ready(struct init *in)
{
	const struct msg_init_ready msg = { .landlock_abi = in->landlock_abi };

	in->state = INIT_READY;
	say(in, MSG_init_ready, &msg, NULL, 0);
}

/*
 * From root to the run: each step is the last one that its right allows.
 * Called once; any failure is told and ends the sandbox before a process of
 * the run exists.
 */
static unsigned
become_run(struct init *in, const struct msg_init_setup *m,
    const struct plan *plan)
{
	static struct ids ids;
	const char *step = "ids";
	unsigned abi = 0;
	int r = ids_from_message(m->uid, m->gid, m->groups.data, m->groups.len,
	    &ids);

	if (r < 0)
		setup_failed(in, r, step);
	if (!path_is_clean(m->home) || m->home[1] == '\0')
		setup_failed(in, -EINVAL, "home");
	r = setup_owners(plan, m->home, &ids);
	if (r < 0)
		setup_failed(in, r, "owners");
	r = ids_drop_bounding();
	if (r < 0)
		setup_failed(in, r, "bounding set");
	r = ids_take(&ids);
	if (r < 0)
		setup_failed(in, r, step);
	/* The change of ids reset it to what fs.suid_dumpable says. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		setup_failed(in, -EPERM, "dumpable");
	r = null_stdio();
	if (r < 0)
		setup_failed(in, r, "stdio");
	r = confine_landlock_run(plan, m->home, &abi, &step);
	if (r < 0)
		setup_failed(in, r, step);
	/* Before the filter, which refuses a domain to the run. */
	if (plan->nroots > 0 && m->kernel == 0)
		enter_guard_domain(in, plan);
	r = confine_seccomp_run(m->userns != 0);
	if (r < 0)
		setup_failed(in, r, "seccomp");
	return abi;
}

/* For on_go. */
static void
keep_places(struct init *in, const struct plan *plan)
{
	for (size_t i = 0; i < plan->nroots; i++) {
		char *copy;

		if (plan->roots[i].empty)
			continue;
		copy = strdup(plan->roots[i].path);
		if (copy == NULL)
			setup_failed(in, -ENOMEM, "guard: places");
		in->places[in->nplaces++] = copy;
	}
}

static int
on_setup(struct init *in, const union msg_any *any, const int *fds, size_t nfds)
{
	const char *field = "plan";
	struct memfd_map map;
	struct plan *plan;
	bool guarded;
	int r;

	(void)nfds;
	r = memfd_open_map(fds[0], PLAN_BYTES_MAX, &map);
	if (r < 0)
		setup_failed(in, r, "plan");
	plan = malloc(sizeof(*plan));
	if (plan == NULL)
		setup_failed(in, -ENOMEM, "plan");
	r = plan_decode(map.data, map.len, plan, &field);
	if (r < 0)
		setup_failed(in, r, "plan");
	in->landlock_abi = become_run(in, &any->init_setup, plan);
	guarded = plan->nroots > 0;
	keep_places(in, plan);
	free(plan);
	memfd_unmap(&map);
	if (guarded)
		arm_guard(in, any->init_setup.kernel != 0);
	else
		tell_ready(in);
	return 0;
}

/* Everything is mounted, and the guard answers from now on. */
static int
on_go(struct init *in, const union msg_any *any, const int *fds, size_t nfds)
{
	char step[VERIFY_STEP_MAX];
	int r = verify_guard(in->places, in->nplaces, step);

	if (r < 0)
		setup_failed(in, r, step);
	while (in->nplaces > 0)
		free(in->places[--in->nplaces]);
	(void)any;
	(void)fds;
	(void)nfds;
	tell_ready(in);
	return 0;
}

static struct command *
find_command(struct init *in, uint64_t exec)
{
	for (size_t i = 0; i < EXECS_MAX; i++)
		if (in->commands[i].pid != 0 && in->commands[i].exec == exec)
			return &in->commands[i];
	return NULL;
}

/* error is positive here, as in the message. */
static void
answer_exec(struct init *in, uint64_t exec, int error, const char *step,
    pid_t pid, int master)
{
	struct msg_init_exec_answer msg = { .exec = exec,
		.error = (uint64_t)error,
		.pid = (uint64_t)pid };

	MSG_SET_STR(msg.step, step);
	say(in, MSG_init_exec_answer, &msg, &master, master >= 0 ? 1 : 0);
}

static void
fill_ask(struct exec_ask *ask, const struct msg_init_exec *m, const int *fds,
    size_t nfds)
{
	*ask = (struct exec_ask){ .plan_fd = fds[0],
		.tty = m->tty != 0,
		.rows = (uint16_t)m->rows,
		.cols = (uint16_t)m->cols,
		.stdio = { -1, -1, -1 } };
	if (ask->tty) {
		if (nfds == 2)
			ask->stdio[STDERR_FILENO] = fds[1];
	} else {
		memcpy(ask->stdio, fds + 1, sizeof(ask->stdio));
	}
}

static int
on_exec(struct init *in, const union msg_any *any, const int *fds, size_t nfds)
{
	const struct msg_init_exec *m = &any->init_exec;
	struct exec_child child = { 0, -1, -1 };
	struct command *c = NULL;
	const char *step = "";
	struct exec_ask ask;
	int r;

	if (m->tty != 0 ? nfds > 2 : nfds != 1 + EXEC_STDIO)
		return -EPROTO;
	if (find_command(in, m->exec) != NULL)
		return -EPROTO;
	for (size_t i = 0; i < EXECS_MAX && c == NULL; i++)
		if (in->commands[i].pid == 0)
			c = &in->commands[i];
	if (in->state == INIT_STOPPING || c == NULL) {
		answer_exec(in, m->exec, c == NULL ? EAGAIN : ESHUTDOWN,
		    "limit", 0, -1);
		return 0;
	}
	fill_ask(&ask, m, fds, nfds);
	r = exec_start(&ask, &child, &step);
	if (r < 0) {
		answer_exec(in, m->exec, -r, step, 0, -1);
		return 0;
	}
	*c = (struct command){ m->exec, child.pid, child.report, child.master,
		false };
	return 0;
}

/* Answers init_exec once the child has said how its start went. */
static void
settle(struct init *in, struct command *c)
{
	const char *step = "";
	int r = exec_read_report(c->report, &step);

	if (r == -EAGAIN)
		return;
	if (r < 0) {
		r = -r;
		step = "exec";
	}
	answer_exec(in, c->exec, r, step, r == 0 ? c->pid : 0,
	    r == 0 ? c->master : -1);
	c->failed = r != 0;
	close_all(&c->report, 1);
	close_all(&c->master, 1);
}

/* SPEC K23. */
static const int permitted_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT,
	SIGKILL, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGSTOP };

/*
 * To the process group that the command leads, as long as its leader is not
 * reaped: until then the kernel gives the number to nobody else.
 */
static int
on_signal(struct init *in, const union msg_any *any, const int *fds,
    size_t nfds)
{
	const struct msg_init_signal *m = &any->init_signal;
	const struct command *c = find_command(in, m->exec);

	(void)fds;
	(void)nfds;
	for (size_t i = 0; i < ARRAY_LEN(permitted_signals); i++)
		if (c != NULL && (int)m->signal == permitted_signals[i])
			(void)kill(-c->pid, permitted_signals[i]);
	return 0;
}

static int
on_stop(struct init *in, const union msg_any *any, const int *fds, size_t nfds)
{
	(void)any;
	(void)fds;
	(void)nfds;
	in->state = INIT_STOPPING;
	(void)kill(-1, SIGTERM);
	/* A stopped process would not see it. */
	(void)kill(-1, SIGCONT);
	return 0;
}

static const struct handler {
	enum msg_type type;
	unsigned states;
	int (*fn)(struct init *, const union msg_any *, const int *, size_t);
} handlers[] = {
	{ MSG_init_setup, INIT_WAIT, on_setup },
	{ MSG_init_go, INIT_ARMED, on_go },
	{ MSG_init_exec, INIT_READY | INIT_STOPPING, on_exec },
	{ MSG_init_signal, INIT_READY | INIT_STOPPING, on_signal },
	{ MSG_init_stop, INIT_READY | INIT_STOPPING, on_stop },
};

static int
dispatch(struct init *in, unsigned type, const union msg_any *any,
    const int *fds, size_t nfds)
{
	for (size_t i = 0; i < ARRAY_LEN(handlers); i++)
		if ((unsigned)handlers[i].type == type)
			return (handlers[i].states & in->state) == 0 ?
			    -EPROTO :
			    handlers[i].fn(in, any, fds, nfds);
	return -EPROTO;
}

/* One packet; end of file or a broken rule ends pid 1 and so the run. */
static void
on_channel(struct init *in)
{
	static union msg_any any;
	int fds[CHAN_FDS_MAX];
	size_t nfds = 0;
	unsigned type = channel_receive(PROC_INIT, &any, fds, &nfds);

	if (dispatch(in, type, &any, fds, nfds) < 0)
		_exit(EXIT_RULES);
	close_all(fds, nfds);
}

static void
ended(struct init *in, pid_t pid, int status)
{
	for (size_t i = 0; i < EXECS_MAX; i++) {
		struct command *c = &in->commands[i];
		struct msg_init_exit msg;

		if (c->pid != pid)
			continue;
		/* Its end closed the pipe: the answer comes first. */
		if (c->report >= 0)
			settle(in, c);
		c->pid = 0;
		if (c->failed)
			return;
		memset(&msg, 0, sizeof(msg));
		msg.exec = c->exec;
		if (WIFSIGNALED(status))
			msg.signal = (uint64_t)WTERMSIG(status);
		else
			msg.status = (uint64_t)WEXITSTATUS(status);
		say(in, MSG_init_exit, &msg, NULL, 0);
		return;
	}
}

/* Everything that dies inside ends up here: children and orphans. */
static void
on_child(struct init *in)
{
	struct signalfd_siginfo info[8];
	int status;
	pid_t pid;

	while (read(in->signals, info, sizeof(info)) > 0)
		continue;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		ended(in, pid, status);
	if (in->state == INIT_STOPPING && pid < 0 && errno == ECHILD)
		_exit(0);
}

static _Noreturn void
loop(struct init *in)
{
	struct pollfd fds[2 + EXECS_MAX];
	struct command *of[2 + EXECS_MAX];

	for (;;) {
		nfds_t n = 2;

		if (in->state == INIT_STOPPING)
			on_child(in);
		fds[0] = (struct pollfd){ CHANNEL, POLLIN, 0 };
		fds[1] = (struct pollfd){ in->signals, POLLIN, 0 };
		for (size_t i = 0; i < EXECS_MAX; i++) {
			struct command *c = &in->commands[i];

			if (c->pid == 0 || c->report < 0)
				continue;
			fds[n] = (struct pollfd){ c->report, POLLIN, 0 };
			of[n++] = c;
		}
		if (poll(fds, n, -1) < 0 && errno != EINTR)
			_exit(EXIT_START);
		for (nfds_t i = 2; i < n; i++)
			if (fds[i].revents != 0)
				settle(in, of[i]);
		if (fds[1].revents != 0)
			on_child(in);
		if (fds[0].revents != 0)
			on_channel(in);
	}
}

static _Noreturn void
start_failed(const char *what)
{
	(void)fprintf(stderr, "stockade-init: %s\n", what);
	_exit(EXIT_START);
}

static void
start(struct init *in)
{
	struct rlimit none = { 0, 0 };
	const char *why;
	sigset_t all;

	/* First of all: from here on nobody of the run's uid can look in. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		start_failed("cannot become non-dumpable");
	if (getpid() != 1)
		start_failed("is started by stockade-launcherd, as pid 1");
	why = channel_open();
	if (why != NULL)
		start_failed(why);
	(void)umask(022);
	if (chdir("/") < 0)
		start_failed("no root directory");
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	/* Ignored signals would be inherited by every command. */
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&all);
	(void)sigaddset(&all, SIGCHLD);
	in->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (in->signals < 0)
		start_failed("signals");
	/* The soft limit only: a run may raise its own. */
	if (getrlimit(RLIMIT_CORE, &none) == 0) {
		none.rlim_cur = 0;
		(void)setrlimit(RLIMIT_CORE, &none);
	}
}

int
main(int argc, char **argv)
{
	static struct init in = { .state = INIT_WAIT };

	if (argc == 2 && strcmp(argv[1], "probe") == 0)
		return probe_main(false);
	if (argc == 3 && strcmp(argv[1], "probe") == 0 &&
	    strcmp(argv[2], "guard") == 0)
		return probe_main(true);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		(void)printf("stockade-init %s\n", PACKAGE_VERSION);
		return 0;
	}
	if (argc != 1)
		start_failed(
		    "usage: stockade-init [probe [guard] | --version]");
	start(&in);
	loop(&in);
}
