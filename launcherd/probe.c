/*
 * launcherd: the probe; see probe.h. It runs once, before any launch, so
 * asking bubblewrap for its version may wait for it (at most two seconds).
 */
#include "launcherd/probe.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/size.h"
#include "launcherd/cgroup.h"
#include "launcherd/exec.h"
#include "launcherd/init/probe.h"
#include "launcherd/launcherd.h"
#include "launcherd/mechanism.h"
#include "launcherd/probe_guard.h"
#include "launcherd/run.h"
#include "launcherd/spawn.h"
#include "launcherd/view.h"
#include "protocol/message.h"
#include "protocol/plan.h"

#define TOOL_FOUND 1u
#define TOOL_USABLE 2u
#define TOOL_WAIT_MS 2000
#define PROBE_TIMEOUT_MS 10000
#define PROBE_ID 65534 /* nobody */
#define PROBE_EXEC 1
#define NOT_TRIED "not tried, since no sandbox could be started"

struct probe {
	struct launcherd *l;
	struct run *run;
	struct probe_result rows[PROBE_ROW_COUNT];
	unsigned tools;
	char error[PROBE_DETAIL_MAX + 1];
	char text[PROBE_TEXT_MAX];
	size_t len;
	int out_fd;
	bool out_ended;
	bool exited;
	struct event *out_event;
	struct event *timer;
	/* The second part, once for each mechanism that may be there. */
	enum guard_mechanism guard; /* being tried */
	int scratch_fd; /* -1: the first part */
	uint64_t denials;
	bool no_sandbox; /* the first part failed */
	bool tried[GUARD_MECHANISMS];
	char why[PROBE_DETAIL_MAX + 1]; /* the others are not in force */
};

static void __attribute__((format(printf, 4, 5)))
set_row(struct probe *p, unsigned row, bool available, const char *fmt, ...)
{
	va_list ap;

	p->rows[row].known = true;
	p->rows[row].available = available;
	va_start(ap, fmt);
	(void)vsnprintf(p->rows[row].detail, sizeof(p->rows[row].detail), fmt,
	    ap);
	va_end(ap);
}

static void
set_error(struct probe *p, const char *text)
{
	if (p->error[0] == '\0')
		(void)log_clean(p->error, sizeof(p->error), text, strlen(text));
}

/* ---------------------------------------------------------------- tools */

static size_t
read_all(int fd, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	return len;
}

/* What `bwrap OPTION` prints; empty when it cannot be run. */
static void
ask_bwrap(struct probe *p, const char *option, char *buf, size_t size)
{
	struct spawned child = { 0, -1 };
	struct pollfd pfd;
	int fds[2];

	buf[0] = '\0';
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	if (spawn_bwrap_option(option, p->l->null_fd, fds[1], &child) < 0) {
		close_all(fds, 2);
		return;
	}
	(void)close(fds[1]);
	/* All it prints fits into a pipe, so it ends without being read. */
	pfd = (struct pollfd){ .fd = child.pidfd, .events = POLLIN };
	if (poll(&pfd, 1, TOOL_WAIT_MS) != 1) {
		spawn_kill(&child);
		(void)poll(&pfd, 1, TOOL_WAIT_MS);
	} else {
		(void)read_all(fds[0], buf, size);
	}
	(void)spawn_reap(&child);
	close_all(&child.pidfd, 1);
	(void)close(fds[0]);
}

static void
check_bwrap(struct probe *p)
{
	char text[16384];
	char version[64];

	if (access(BWRAP_PATH, X_OK) < 0) {
		set_row(p, PROBE_BUBBLEWRAP, false, "%s is not there",
		    BWRAP_PATH);
		return;
	}
	p->tools |= TOOL_FOUND;
	ask_bwrap(p, "--version", text, sizeof(text));
	(void)snprintf(version, sizeof(version), "%.*s",
	    (int)strcspn(text, "\n"), text);
	if (!probe_version_ok(text)) {
		set_row(p, PROBE_BUBBLEWRAP, false,
		    "0.8.0 or newer is needed, this is: %s", version);
		return;
	}
	ask_bwrap(p, "--help", text, sizeof(text));
	if (strstr(text, "--bind-fd") == NULL ||
	    strstr(text, "--ro-bind-fd") == NULL) {
		set_row(p, PROBE_BUBBLEWRAP, false, "%s lacks --bind-fd",
		    version);
		return;
	}
	p->tools |= TOOL_USABLE;
	set_row(p, PROBE_BUBBLEWRAP, true, "%s", version);
}

static int
try_cgroup(struct cgroup_tree *tree, struct cgroup *cg)
{
	struct cgroup_state state = { false, false };
	int error = cgroup_freeze(cg->fd, true);

	if (error == 0)
		error = cgroup_state(cg->fd, &state);
	/* Nothing is in it, so it is frozen at once. */
	if (error == 0 && !state.frozen)
		error = -EBUSY;
	if (error == 0)
		error = cgroup_freeze(cg->fd, false);
	if (error == 0)
		error = cgroup_kill(cg->fd);
	(void)cgroup_remove(tree, cg);
	cgroup_close(cg);
	return error;
}

static void
check_cgroup(struct probe *p)
{
	struct cgroup_tree *tree = p->l->cgroups;
	const struct cgroup_limits none = { 0, 0, 0 };
	struct cgroup cg;
	unsigned unset;
	int error;

	if (tree == NULL) {
		set_row(p, PROBE_CGROUP, false,
		    "no cgroup tree that can be killed and frozen: %s",
		    strerror(-p->l->cgroup_error));
		return;
	}
	error = cgroup_make(tree, "probe", &none, &cg, &unset);
	if (error == 0)
		error = try_cgroup(tree, &cg);
	if (error < 0)
		set_row(p, PROBE_CGROUP, false, "%s", strerror(-error));
	else
		set_row(p, PROBE_CGROUP, true,
		    "kill and freeze; limits:%s%s%s%s",
		    cgroup_tree_has(tree, CGROUP_MEMORY) ? " memory" : "",
		    cgroup_tree_has(tree, CGROUP_PIDS) ? " pids" : "",
		    cgroup_tree_has(tree, CGROUP_CPU) ? " cpu" : "",
		    !cgroup_tree_has(tree, CGROUP_MEMORY) &&
			    !cgroup_tree_has(tree, CGROUP_PIDS) &&
			    !cgroup_tree_has(tree, CGROUP_CPU) ?
			" none" :
			"");
}

/* ---------------------------------------------------------------- report */

static void
probe_report(struct probe *p)
{
	struct launcherd *l = p->l;
	struct msg_probe_done done = { .tools = p->tools, .guard = l->guard };
	for (unsigned i = 0; i < PROBE_ROW_COUNT; i++) {
		struct msg_probe_row row = { .row = i,
			.available = p->rows[i].available };

		MSG_SET_STR(row.detail,
		    p->rows[i].known ? p->rows[i].detail : NOT_TRIED);
		log_event(EV_PROBE_ROW, LF_STR(LK_NAME, probe_row_name(i)),
		    LF_STR(LK_DECISION, row.available ? "yes" : "no"),
		    LF_STR(LK_REASON, row.detail));
		(void)peer_send(l->supervisor, MSG_probe_row, &row, NULL, 0);
	}
	MSG_SET_STR(done.error, p->error);
	(void)peer_send(l->supervisor, MSG_probe_done, &done, NULL, 0);
	lookups_prepare(l, 0);
	l->probe = NULL;
	probe_free(p);
}

void
probe_free(struct probe *p)
{
	if (p == NULL)
		return;
	if (p->out_event != NULL)
		event_free(p->out_event);
	if (p->timer != NULL)
		event_free(p->timer);
	close_all(&p->out_fd, 1);
	close_all(&p->scratch_fd, 1);
	free(p);
}

/* ---------------------------------------------------------------- sandbox */

/* Both the text and the exit status are there: judge, and take it down. */
static void
probe_settle(struct probe *p)
{
	if (p->run == NULL || !p->out_ended || !p->exited)
		return;
	probe_parse_rows(p->text, p->len, p->rows);
	if (p->scratch_fd < 0 && !p->rows[PROBE_NAMESPACES].known)
		set_error(p, "the confined child printed no complete result");
	run_kill(p->run, RUN_CAUSE_EXIT);
}

static void
on_output(evutil_socket_t fd, short what, void *arg)
{
	struct probe *p = arg;
	ssize_t n = 0;

	(void)what;
	if (p->len < sizeof(p->text))
		n = read(fd, p->text + p->len, sizeof(p->text) - p->len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		p->len += (size_t)n;
		return;
	}
	p->out_ended = true;
	event_free(p->out_event);
	p->out_event = NULL;
	probe_settle(p);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct probe *p = arg;

	(void)fd;
	(void)what;
	set_error(p, "the confined child did not end");
	if (p->run != NULL)
		run_kill(p->run, RUN_CAUSE_TIMEOUT);
}

static int
seal_exec_plan(bool guard)
{
	struct exec_plan *plan = calloc(1, sizeof(*plan));
	struct wire_out out;
	int fd = -ENOMEM;

	if (plan == NULL)
		return fd;
	plan->cwd = "/";
	plan->nargv = guard ? 3 : 2;
	plan->argv[0] = "/run/stockade/init";
	plan->argv[1] = "probe";
	plan->argv[2] = "guard";
	plan->nenv = 1;
	plan->env[0] = "PATH=/usr/bin:/bin";
	wire_out_init(&out);
	exec_plan_encode(plan, &out);
	if (!out.err)
		fd = memfd_seal("probe", out.data, out.len);
	wire_out_done(&out);
	free(plan);
	return fd;
}

static int
start_child(struct probe *p)
{
	const struct msg_exec_ask ask = { .exec = PROBE_EXEC, .passed = 3 };
	int fds[4] = { -1, -1, -1, -1 };
	int out[2];

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	p->out_fd = out[0];
	fds[2] = out[1];
	fds[0] = seal_exec_plan(p->scratch_fd >= 0);
	fds[1] = fcntl(p->l->null_fd, F_DUPFD_CLOEXEC, 4);
	fds[3] = fcntl(p->l->null_fd, F_DUPFD_CLOEXEC, 4);
	if (fds[0] < 0 || fds[1] < 0 || fds[3] < 0 ||
	    fcntl(p->out_fd, F_SETFL, O_NONBLOCK) < 0) {
		close_all(fds, 4);
		return -EMFILE;
	}
	p->out_event = event_new(p->l->base, p->out_fd, EV_READ | EV_PERSIST,
	    on_output, p);
	if (p->out_event == NULL || event_add(p->out_event, NULL) < 0) {
		close_all(fds, 4);
		return -ENOMEM;
	}
	return exec_start_in(p->run, &ask, fds, 4);
}

void
probe_run_ready(struct probe *p, struct run *run)
{
	const struct timeval tv = { PROBE_TIMEOUT_MS / 1000, 0 };
	int error;

	p->run = run;
	(void)evtimer_add(p->timer, &tv);
	error = start_child(p);
	if (error < 0) {
		set_error(p, "the confined child could not be started");
		run_kill(run, RUN_CAUSE_SERVICE);
	}
}

void
probe_exec_answer(struct probe *p, struct run *run, int error)
{
	set_error(p, strerror(error));
	run_kill(run, RUN_CAUSE_SERVICE);
}

void
probe_exec_exit(struct probe *p, struct run *run, uint64_t status,
    uint64_t signal)
{
	(void)run;
	(void)status; /* 1 when a row failed: the rows say which */
	if (signal != 0)
		set_error(p, "the confined child was killed");
	p->exited = true;
	probe_settle(p);
}

static void guard_next(struct probe *);
static void guard_gone(struct probe *, const struct run_failure *);

/* What the second part needs, the first has found to work. */
static bool
can_go_on(const struct probe *p, bool was_ready)
{
	return was_ready && p->error[0] == '\0' &&
	    p->rows[PROBE_NAMESPACES].available &&
	    p->rows[PROBE_SECCOMP].available;
}

void
probe_run_gone(struct probe *p, const struct run_failure *failure)
{
	bool was_ready = p->run != NULL;
	char text[RUN_STEP_MAX + RUN_REASON_MAX + 4];

	p->run = NULL;
	(void)evtimer_del(p->timer);
	if (p->scratch_fd >= 0) {
		guard_gone(p, failure);
		return;
	}
	if (!was_ready) {
		(void)snprintf(text, sizeof(text), "%s: %s",
		    failure != NULL ? failure->step : "start",
		    failure != NULL ? failure->reason : "out of memory");
		set_error(p, text);
		set_row(p, PROBE_NAMESPACES, false, "%.*s", PROBE_DETAIL_MAX,
		    text);
	}
	p->no_sandbox = !can_go_on(p, was_ready);
	guard_next(p);
}

/* The plan of an empty run, and of one with a guarded place. */
static int
seal_plan(bool guard)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	struct wire_out out;
	int fd = -ENOMEM;

	if (plan == NULL)
		return fd;
	plan->home = "/home/probe";
	plan->cwd = "/";
	plan->hostname = "probe";
	plan->limits.tmp_bytes = 1u << 20;
	plan->limits.home_bytes = 1u << 20;
	plan->limits.shm_bytes = 1u << 20;
	if (guard)
		probe_guard_plan(plan);
	wire_out_init(&out);
	plan_encode(plan, &out);
	if (!out.err)
		fd = memfd_seal("probe", out.data, out.len);
	wire_out_done(&out);
	free(plan);
	return fd;
}

/* ---------------------------------------------------------------- guard */

void
probe_denial(struct probe *p, uint64_t count)
{
	p->denials += count;
}

/* Why a mechanism is not in force. */
static void
not_in_force(struct probe *p, enum guard_mechanism m, const char *why)
{
	size_t len = strlen(p->why);

	(void)snprintf(p->why + len, sizeof(p->why) - len, "%s%s: %s",
	    len > 0 ? "; " : "", guard_mechanism_name(m), why);
}

/* The rows that guard.create does not hang on: what its test found, where the
 * mechanism covers that at all. */
static void
guard_rest(struct probe *p)
{
	static const unsigned rows[] = { PROBE_GUARD_READ,
		PROBE_GUARD_CONNECT };
	static const char *const instead[] = {
		"not by broker: what is there at launch is masked",
		"not by broker: sockets that are there at launch are masked",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (p->l->guard == GUARD_AUTO)
			set_row(p, rows[i], false, "no mechanism is in force");
		else if (p->l->guard == GUARD_BROKER)
			set_row(p, rows[i], false, "%s", instead[i]);
}

static void
guard_report(struct probe *p)
{
	const char *untried =
	    p->l->guard_choice == GUARD_AUTO ? "not needed" : "not chosen";

	for (unsigned m = 0; m < GUARD_MECHANISMS; m++)
		if (m != GUARD_AUTO && !p->tried[m])
			not_in_force(p, (enum guard_mechanism)m, untried);
	if (p->l->guard == GUARD_AUTO)
		set_row(p, PROBE_GUARD_CREATE, false, "%s", p->why);
	else
		set_row(p, PROBE_GUARD_CREATE, true, "%s; %s",
		    guard_mechanism_name(p->l->guard), p->why);
	guard_rest(p);
	probe_report(p);
}

/* The same run as any guarded one, with the mechanism that is tried in force. */
static int
guard_launch(struct probe *p)
{
	struct run_order order = {
		.user = { .uid = PROBE_ID, .gid = PROBE_ID },
		.probe = p,
	};
	int plan_fd, table_fd;

	p->len = 0;
	p->out_ended = p->exited = false;
	p->denials = 0;
	close_all(&p->out_fd, 1);
	close_all(&p->scratch_fd, 1);
	p->rows[PROBE_GUARD_CREATE].known = false;
	p->rows[PROBE_GUARD_READ].known = false;
	p->rows[PROBE_GUARD_CONNECT].known = false;
	p->scratch_fd = view_scratch(p->l->view);
	if (p->scratch_fd < 0)
		return p->scratch_fd;
	order.scratch_fd = p->scratch_fd;
	plan_fd = seal_plan(true);
	table_fd = probe_guard_table();
	if (plan_fd < 0 || table_fd < 0) {
		close_all(&plan_fd, 1);
		close_all(&table_fd, 1);
		return -ENOMEM;
	}
	p->l->guard = p->guard;
	run_launch(p->l, &order, plan_fd, table_fd);
	return 0;
}

/* Tries the mechanisms that are left, until one passes. */
static void
guard_next(struct probe *p)
{
	char why[MECHANISM_WHY_MAX];
	int error;

	for (;;) {
		p->guard = mechanism_next(p->l->guard_choice, p->guard);
		if (p->guard == GUARD_AUTO)
			break;
		p->tried[p->guard] = true;
		error = mechanism_check(p->l, p->guard, why);
		if (error == 0 && p->no_sandbox) {
			(void)snprintf(why, sizeof(why), NOT_TRIED);
		} else if (error == 0) {
			error = guard_launch(p);
			if (error == 0)
				return; /* guard_gone() goes on */
			(void)snprintf(why, sizeof(why), "%s",
			    strerror(-error));
		}
		not_in_force(p, p->guard, why);
	}
	guard_report(p);
}

/* The run of the test is over. NULL: it passed. */
static const char *
guard_verdict(const struct probe *p, const struct run_failure *failure,
    char *text, size_t size)
{
	const struct probe_result *row = &p->rows[PROBE_GUARD_CREATE];

	if (failure != NULL) {
		(void)snprintf(text, size, "%.200s", failure->reason);
		return text;
	}
	if (!row->known)
		return p->error[0] != '\0' ? p->error :
					     "its test printed no result";
	if (!row->available) {
		(void)snprintf(text, size, "%s", row->detail);
		return text;
	}
	if (!probe_guard_clean(p->scratch_fd))
		return "its test left something on disk";
	if (p->denials !=
	    PROBE_GUARD_DENIALS +
		(unsigned)p->rows[PROBE_GUARD_READ].available +
		(unsigned)p->rows[PROBE_GUARD_CONNECT].available)
		return "its test was not told as one event for each refusal";
	return NULL;
}

static void
guard_gone(struct probe *p, const struct run_failure *failure)
{
	char text[PROBE_DETAIL_MAX + 1];
	const char *why = guard_verdict(p, failure, text, sizeof(text));

	view_scratch_done(p->l->view);
	/* Its faults are not those of the sandbox. */
	p->error[0] = '\0';
	if (why == NULL) {
		guard_report(p);
		return;
	}
	p->l->guard = GUARD_AUTO;
	not_in_force(p, p->guard, why);
	guard_next(p);
}

void
probe_start(struct launcherd *l)
{
	struct run_order order = {
		.user = { .uid = PROBE_ID, .gid = PROBE_ID },
	};
	struct probe *p = calloc(1, sizeof(*p));
	int fd;

	if (p != NULL)
		p->timer = evtimer_new(l->base, on_timer, p);
	if (p == NULL || p->timer == NULL) {
		free(p);
		(void)PEER_SEND(l->supervisor, probe_done,
		    .error = "out of memory");
		return;
	}
	p->l = l;
	p->out_fd = p->scratch_fd = -1;
	l->probe = p;
	set_row(p, PROBE_EGRESS_TRANSPARENT, false, "not in this version");
	check_bwrap(p);
	check_cgroup(p);
	if ((p->tools & TOOL_USABLE) == 0 || !p->rows[PROBE_CGROUP].available) {
		p->no_sandbox = true;
		guard_next(p);
		return;
	}
	fd = seal_plan(false);
	if (fd < 0) {
		set_error(p, strerror(-fd));
		probe_report(p);
		return;
	}
	order.probe = p;
	run_launch(l, &order, fd, -1);
}
