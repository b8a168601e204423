/*
 * A command that runs: its events, our signals, and the bytes of descriptors
 * that are terminals. Everything that an event says comes from a run or a host
 * and is printed cleaned.
 */
#include <sys/signalfd.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/size.h"
#include "protocol/client.h"
#include "protocol/rpc.h"
#include "supervisor/ctl/ctl.h"
#include "supervisor/ctl/json.h"
#include "supervisor/ctl/run.h"
#include "supervisor/ctl/text.h"
#include "supervisor/ctl/tty.h"
#include "supervisor/ctl/units.h"

#define NOTE_MAX 1024
#define CHUNK 4096 /* what a pipe that polls writable takes at once */
#define DRAIN_MS \
	100 /* of silence after the end, if something inside still
			 * holds a pipe */
#define BACKGROUND_MS 500 /* until we look whether the terminal is ours */

/* ---------------------------------------------------------------- notes */

void
follow_note(struct run *run, const char *fmt, ...)
{
	char text[NOTE_MAX];
	va_list ap;

	if (run->nnotes == RUN_NOTES_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	run->notes[run->nnotes] = strdup(text);
	if (run->notes[run->nnotes] != NULL)
		run->nnotes++;
}

void
follow_notes(struct run *run)
{
	for (size_t i = 0; i < run->nnotes; i++) {
		ctl_say("%s", run->notes[i]);
		free(run->notes[i]);
	}
	run->nnotes = 0;
}

/* ---------------------------------------------------------------- events */

static void
on_exit_event(struct run *run, const msgpack_object *e)
{
	const char *exec = rpc_str(e, "execId");
	uint64_t status = rpc_u64(e, "exitCode", CTL_FAILED);

	if (exec == NULL || strcmp(exec, run->exec) != 0)
		return;
	run->status = status <= 255 ? (int)status : CTL_FAILED;
	run->over = true;
}

static void
on_killed_event(struct run *run, const msgpack_object *e)
{
	const char *cause = text_of(e, "cause", "unknown");
	uint64_t limit = rpc_u64(e, "limit", 0);
	char size[UNITS_TEXT];

	/* Our own doing, or told by the line of the time-out. */
	if (strcmp(cause, "manual") == 0 && run->over)
		return;
	if (strcmp(cause, "timeout") == 0)
		follow_note(run, "command exceeded %llus; more with --timeout",
		    (unsigned long long)(run->options->timeout_ms + 999) /
			1000);
	else if (strcmp(cause, "manual") == 0)
		follow_note(run,
		    "the run was ended by stockadectl kill or "
		    "another client");
	else if (limit != 0)
		follow_note(run,
		    "the run was killed: %s (limit %s; give more with "
		    "--memory)",
		    cause, units_size_text(limit, size));
	else
		follow_note(run, "the run was killed: %s", cause);
}

static void
on_violation_event(struct run *run, const msgpack_object *e)
{
	denied_add(&run->denied, e);
}

/* Notices with a remedy: the words behind the detail, or behind the code. */
static const struct notice_row {
	const char *code;
	bool by_detail;
	const char *behind;
} notice_rows[] = {
	{ "stateDirMissing", true,
	    " does not exist, so nothing is kept there; make it first" },
	{ "pidLimit", false, "; more with --pids" },
};

static void
on_notice_event(struct run *run, const msgpack_object *e)
{
	const char *code = text_of(e, "code", "unknown");
	const char *detail = text_of(e, "detail", "");
	const char *behind = "";

	for (size_t i = 0; i < ARRAY_LEN(notice_rows); i++) {
		const struct notice_row *row = &notice_rows[i];

		if (strcmp(row->code, code) != 0)
			continue;
		behind = row->behind;
		if (row->by_detail && detail[0] != '\0')
			code = "";
	}
	follow_note(run, "notice: %s%s%s%s", code,
	    code[0] == '\0' || detail[0] == '\0' ? "" : ": ", detail, behind);
}

static void
on_state_event(struct run *run, const msgpack_object *e)
{
	const char *state = rpc_str(e, "state");

	if (state != NULL && strcmp(state, "destroyed") == 0)
		run->gone = true;
	if (state == NULL || run->over ||
	    (strcmp(state, "destroyed") != 0 && strcmp(state, "error") != 0))
		return;
	follow_note(run, "the session ended before the command did");
	run->status = CTL_FAILED;
	run->over = true;
}

static const struct event_row {
	const char *type;
	void (*fn)(struct run *, const msgpack_object *);
} event_rows[] = {
	{ "exit", on_exit_event },
	{ "killed", on_killed_event },
	{ "violation", on_violation_event },
	{ "notice", on_notice_event },
	{ "state", on_state_event },
};

static void
on_event(struct run *run, const msgpack_object *e)
{
	const char *session = rpc_str(e, "sessionId");
	const char *type = rpc_str(e, "type");

	if (session == NULL || strcmp(session, run->session) != 0 ||
	    type == NULL)
		return;
	if (run->ctl->json) {
		struct json j;

		json_init(&j, stdout);
		json_object(&j, e);
		(void)json_end(&j);
	}
	for (size_t i = 0; i < ARRAY_LEN(event_rows); i++)
		if (strcmp(type, event_rows[i].type) == 0)
			event_rows[i].fn(run, e);
}

void
follow_events(struct run *run)
{
	struct rpc_message msg;

	while (rpc_client_next(run->ctl->client, &msg) == 1) {
		if (msg.type == RPC_NOTIFY && msg.params != NULL &&
		    strcmp(msg.method, "event") == 0)
			on_event(run, msg.params);
		rpc_done(&msg);
	}
}

#define REST_MS 3000
#define REST_STEP_MS 100

void
follow_rest(struct run *run)
{
	struct pollfd p = { rpc_client_fd(run->ctl->client), POLLIN, 0 };

	follow_events(run);
	for (int ms = 0; !run->gone && ms < REST_MS;) {
		int n = poll(&p, 1, REST_STEP_MS), r;

		if (n < 0 && errno != EINTR)
			return;
		if (n <= 0) {
			ms += REST_STEP_MS;
			continue;
		}
		r = rpc_client_read(run->ctl->client);
		follow_events(run);
		if (r < 0 && r != -EAGAIN)
			return;
	}
}

void
follow_signal(struct run *run, const char *name)
{
	struct rpc_client *c = run->ctl->client;
	struct rpc_out *out = rpc_client_begin(c, "sandbox.signal");

	rpc_add_str(out, "sessionId", run->session);
	rpc_add_str(out, "execId", run->exec);
	rpc_add_str(out, "signal", name);
	/* A connection that fails is noticed when it is read. */
	if (rpc_client_end(c) != 0)
		(void)rpc_client_flush(c, NULL, 0);
}

/* Reads the service: 0 go on, 1 over, or -errno. */
static int
on_service(void *arg)
{
	struct run *run = arg;
	int r = rpc_client_read(run->ctl->client);

	follow_events(run);
	if (run->over)
		return 1;
	return r < 0 && r != -EAGAIN ? r : 0;
}

/* ---------------------------------------------------------------- signals */

static const struct signal_row {
	int number;
	const char *name;
} signal_rows[] = {
	{ SIGINT, "INT" },
	{ SIGTERM, "TERM" },
	{ SIGHUP, "HUP" },
	{ SIGQUIT, "QUIT" },
	{ SIGWINCH, "WINCH" },
};

static void
on_signal(void *arg, int number)
{
	for (size_t i = 0; i < ARRAY_LEN(signal_rows); i++)
		if (signal_rows[i].number == number)
			follow_signal(arg, signal_rows[i].name);
}

static void
on_stop(void *arg)
{
	follow_signal(arg, "STOP");
}

static void
on_continue(void *arg)
{
	follow_signal(arg, "CONT");
}

/* Signals that the caller ignores (nohup) are not taken from him. */
void
follow_begin(struct run *run)
{
	(void)sigemptyset(&run->signals);
	for (size_t i = 0; i <= ARRAY_LEN(signal_rows); i++) {
		int number = i < ARRAY_LEN(signal_rows) ?
		    signal_rows[i].number :
		    SIGTSTP;
		struct sigaction sa;

		if (sigaction(number, NULL, &sa) == 0 &&
		    sa.sa_handler != SIG_IGN)
			(void)sigaddset(&run->signals, number);
	}
	run->blocked = sigprocmask(SIG_BLOCK, &run->signals, &run->before) == 0;
}

void
follow_end(struct run *run)
{
	if (run->blocked)
		(void)sigprocmask(SIG_SETMASK, &run->before, NULL);
	run->blocked = false;
}

/* ---------------------------------------------------------------- terminal */

static void
on_resize(void *arg, const struct tty_size *size)
{
	struct run *run = arg;
	struct rpc_client *c = run->ctl->client;
	struct rpc_out *out = rpc_client_begin(c, "sandbox.resize");

	rpc_add_str(out, "sessionId", run->session);
	rpc_add_str(out, "execId", run->exec);
	rpc_add_u64(out, "rows", size->rows);
	rpc_add_u64(out, "cols", size->cols);
	if (rpc_client_end(c) != 0)
		(void)rpc_client_flush(c, NULL, 0);
}

int
follow_tty(struct run *run, int master)
{
	const struct tty_relay relay = { .in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.master = master,
		.wake = rpc_client_fd(run->ctl->client),
		.on_wake = on_service,
		.on_resize = on_resize,
		.on_signal = on_signal,
		.on_stop = on_stop,
		.on_continue = on_continue,
		.arg = run };
	int r;

	follow_events(run);
	r = tty_raw(STDIN_FILENO);
	if (r < 0 && r != -EAGAIN) {
		ctl_say("the terminal: %s", strerror(-r));
		return CTL_FAILED;
	}
	r = tty_relay(&relay);
	tty_restore();
	if (run->over)
		return 0;
	return r < 0 ? service_lost(r) : CTL_FAILED;
}

/* ---------------------------------------------------------------- pipes */

/* Bytes from one descriptor to another; done when from is -1 and nothing is
 * left. `to` is closed then if it is ours. */
struct flow {
	int from;
	int to;
	bool to_ours;
	bool terminal; /* from is the terminal: only read while it is ours */
	size_t at;
	size_t len;
	char buf[CHUNK];
};

struct flows {
	struct flow flow[3];
	int signals;
};

static void
flow_end(struct flow *f)
{
	if (f->to_ours && f->to >= 0)
		(void)close(f->to);
	f->to = -1;
	f->from = -1;
	f->len = f->at = 0;
}

static void
flow_read(struct flow *f)
{
	ssize_t n = read(f->from, f->buf, sizeof(f->buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	f->at = 0;
	f->len = n > 0 ? (size_t)n : 0;
	if (n <= 0)
		flow_end(f);
}

static void
flow_write(struct flow *f)
{
	ssize_t n = write(f->to, f->buf + f->at, f->len - f->at);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) {
		flow_end(f);
		return;
	}
	f->at += (size_t)n;
	if (f->at == f->len)
		f->at = f->len = 0;
}

/* Stops this process as its shell expects, with the run stopped meanwhile. */
static void
stop_self(struct run *run)
{
	follow_signal(run, "STOP");
	(void)raise(SIGSTOP);
	follow_signal(run, "CONT");
}

static void
take_signals(struct run *run, int fd)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if ((int)info.ssi_signo == SIGTSTP)
			stop_self(run);
		else
			on_signal(run, (int)info.ssi_signo);
	}
}

/* A terminal that another job has would stop us for reading it. */
static bool
may_read(const struct flow *f)
{
	return !f->terminal || tcgetpgrp(f->from) == getpgrp();
}

/* One turn. 0, 1 when the command has ended, or -errno. */
static int
turn(struct run *run, struct flows *all)
{
	struct pollfd p[5] = { { rpc_client_fd(run->ctl->client), POLLIN, 0 },
		{ all->signals, POLLIN, 0 } };
	int timeout = -1, r;

	for (size_t i = 0; i < 3; i++) {
		struct flow *f = &all->flow[i];

		p[2 + i] = (struct pollfd){ -1, 0, 0 };
		if (f->len > 0)
			p[2 + i] = (struct pollfd){ f->to, POLLOUT, 0 };
		else if (f->from >= 0 && may_read(f))
			p[2 + i] = (struct pollfd){ f->from, POLLIN, 0 };
		else if (f->from >= 0)
			timeout = BACKGROUND_MS;
	}
	r = poll(p, 5, timeout);
	for (size_t i = 0; i < 3; i++) {
		struct flow *f = &all->flow[i];

		if (r <= 0 || p[2 + i].revents == 0)
			continue;
		if (f->len > 0)
			flow_write(f);
		else
			flow_read(f);
	}
	if (r > 0 && p[1].revents != 0)
		take_signals(run, all->signals);
	return r > 0 && p[0].revents != 0 ? on_service(run) : 0;
}

static void
flows_begin(const struct run *run, struct flows *all)
{
	for (int i = 0; i < 3; i++) {
		struct flow *f = &all->flow[i];
		bool input = i == STDIN_FILENO;

		*f = (struct flow){ .from = -1, .to = -1 };
		if (run->pipes[i] < 0)
			continue;
		f->from = input ? i : run->pipes[i];
		f->to = input ? run->pipes[i] : i;
		f->to_ours = input;
		f->terminal = input;
		(void)fcntl(run->pipes[i], F_SETFL, O_NONBLOCK);
	}
}

/*
 * What the command wrote before it ended is still in the pipes. A process that
 * it left behind may hold them open: a silence ends it.
 */
static void
drain(struct flow *f)
{
	while (f->from >= 0) {
		struct pollfd p = { f->len > 0 ? f->to : f->from,
			f->len > 0 ? POLLOUT : POLLIN, 0 };
		int r = poll(&p, 1, f->len > 0 ? -1 : DRAIN_MS);

		if (r == 0 || (r < 0 && errno != EINTR))
			return;
		if (r > 0 && f->len > 0)
			flow_write(f);
		else if (r > 0)
			flow_read(f);
	}
}

int
follow_pipes(struct run *run)
{
	struct flows *all = calloc(1, sizeof(*all));
	int r;

	if (all == NULL)
		return service_lost(-ENOMEM);
	flows_begin(run, all);
	run->pipes[STDIN_FILENO] = -1;
	all->signals = signalfd(-1, &run->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	r = all->signals < 0 ? -errno : 0;
	follow_events(run);
	while (r == 0 && !run->over)
		r = turn(run, all);
	flow_end(&all->flow[STDIN_FILENO]);
	if (all->signals >= 0)
		(void)close(all->signals);
	follow_end(run);
	if (run->over) {
		drain(&all->flow[STDOUT_FILENO]);
		drain(&all->flow[STDERR_FILENO]);
	}
	free(all);
	return run->over ? 0 : service_lost(r);
}
