/*
 * sandbox.exec and what belongs to it: the exec plan, the answer, and the
 * calls that name a running command.
 */
#include "supervisor/control/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/size.h"
#include "protocol/peer.h"
#include "supervisor/control/client.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/methods.h"
#include "supervisor/control/plan_view.h"
#include "supervisor/control/session.h"

#define SHELL_PROGRAM "/bin/bash"
#define SHELL_TIMEOUT_MS 120000u
#define SHELL_TIMEOUT_MAX_MS 3600000u
#define MINUTE_MS 60000u

/* SPEC AB, by mode. */
static const uint64_t silence_ms[SPEC_MODES] = { 15 * MINUTE_MS, 10 * MINUTE_MS,
	10 * MINUTE_MS, 15 * MINUTE_MS };

/* ------------------------------------------------ life */

struct exec *
exec_new(struct session *s, uint64_t number)
{
	struct exec *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->session = s;
	e->number = number;
	(void)snprintf(e->id, sizeof(e->id), "x%llu",
	    (unsigned long long)number);
	e->in_fd = -1;
	e->cause = RUN_CAUSE_EXIT;
	for (size_t i = 0; i < EXEC_STREAMS; i++)
		e->out[i].fd = -1;
	TAILQ_INSERT_TAIL(&s->execs, e, entry);
	s->running++;
	return e;
}

static void
timer_free(struct event *timer)
{
	if (timer != NULL)
		event_free(timer);
}

void
exec_free(struct exec *e)
{
	TAILQ_REMOVE(&e->session->execs, e, entry);
	for (size_t i = 0; i < EXEC_STREAMS; i++)
		exec_stream_close(&e->out[i]);
	exec_input_close(e, false);
	timer_free(e->timeout_timer);
	timer_free(e->silence_timer);
	timer_free(e->end_timer);
	if (e->call != NULL)
		call_fail(e->call, API_BAD_STATE, NULL,
		    "the session has ended");
	for (size_t i = 0; i < e->nstripped; i++)
		free(e->stripped[i]);
	free(e->stripped);
	free(e->program);
	free(e);
}

/* One that never ran. */
static void
exec_drop(struct exec *e)
{
	e->session->running--;
	exec_free(e);
}

void
exec_free_all(struct session *s)
{
	struct exec *e;

	while ((e = TAILQ_FIRST(&s->execs)) != NULL)
		exec_free(e);
	s->running = 0;
	s->ghosts = 0;
}

struct exec *
exec_find(struct session *s, uint64_t number)
{
	struct exec *e;

	TAILQ_FOREACH (e, &s->execs, entry)
		if (e->number == number)
			return e;
	return NULL;
}

size_t
exec_alive(const struct session *s)
{
	return s->running;
}

/* Those that ended with the run, without a word of their own. */
void
exec_end_all(struct session *s)
{
	struct exec *e, *next;

	for (e = TAILQ_FIRST(&s->execs); e != NULL; e = next) {
		next = TAILQ_NEXT(e, entry);
		if (e->told) {
			s->ghosts--;
			exec_free(e);
		} else if (!e->started) {
			exec_drop(e);
		} else {
			e->hold = false;
			if (!e->exited)
				exec_exited(e, 0, SIGKILL);
			else
				exec_try_tell(e);
		}
	}
}

void
exec_put_all(const struct session *s, struct rpc_out *out)
{
	const struct exec *e;

	TAILQ_FOREACH (e, &s->execs, entry) {
		if (e->told || !e->started)
			continue;
		rpc_open_map(out);
		rpc_add_str(out, "execId", e->id);
		rpc_add_u64(out, "pid", e->pid);
		rpc_add_bool(out, "tty", e->tty);
		rpc_close(out);
	}
}

/* ------------------------------------------------ sandbox.exec: checks */

struct wanted {
	struct session *session;
	struct call *call;
	struct pool pool;
	struct exec_plan *plan;
	struct environ_result env;
	const char *cwd;
	size_t passed;
	bool tty;
	bool has_pass;
	bool stdin_open;
	struct rpc_span input;
	bool input_stays;
	uint64_t timeout_ms;
	uint64_t silence_ms;
};

static bool
refuse(struct wanted *w, enum api_error code, const char *field,
    const char *text)
{
	call_fail(w->call, code, field, "%s", text);
	w->call = NULL;
	return false;
}

static bool
want_session(struct wanted *w, struct control *control)
{
	const char *id = call_str(w->call, "sessionId");
	struct session *s = session_find(control, call_caller(w->call), id);

	w->session = s;
	if (s == NULL)
		return refuse(w, API_NOT_FOUND, NULL,
		    "there is no such "
		    "session");
	if ((s->state != SESSION_WARM && s->state != SESSION_ACTIVE) ||
	    s->ending || s->ended)
		return refuse(w, API_BAD_STATE, NULL,
		    s->state == SESSION_SUSPENDED ?
			"the session is suspended" :
			"the session is not ready for a command");
	if (s->running >= control->conf->limits[LIMIT_EXECS])
		return refuse(w, API_LIMIT, NULL,
		    "too many commands run in this session");
	return true;
}

static bool
want_argv(struct wanted *w)
{
	const msgpack_object *params = call_params(w->call);
	const char *shell = call_str(w->call, "shell");
	size_t n = rpc_count(params, "argv");
	struct exec_plan *plan = w->plan;

	if ((shell != NULL) == (rpc_find(params, "argv") != NULL))
		return refuse(w, API_BAD_PARAMS, "argv",
		    "exactly one of argv and shell is expected");
	if (shell != NULL) {
		plan->argv[0] = SHELL_PROGRAM;
		plan->argv[1] = "-c";
		plan->argv[2] = shell;
		plan->nargv = 3;
		return true;
	}
	for (size_t i = 0; i < n; i++)
		plan->argv[plan->nargv++] = rpc_str_at(params, "argv", i);
	if (n == 0 || plan->argv[0][0] == '\0')
		return refuse(w, API_BAD_PARAMS, "argv",
		    "argv: the program is missing");
	return true;
}

static bool
want_cwd(struct wanted *w)
{
	const struct plan *plan = session_plan_of(w->session);
	const char *raw = call_str(w->call, "cwd");

	w->cwd = plan->cwd;
	if (raw != NULL)
		w->cwd = spec_path_clean(&w->pool, raw, strlen(raw));
	if (w->cwd == NULL)
		return refuse(w, API_BAD_PARAMS, "cwd",
		    "cwd: an absolute path without .. is expected");
	if (strcmp(w->cwd, plan->cwd) != 0 && !plan_view_has(plan, w->cwd))
		return refuse(w, API_BAD_PATH, "cwd",
		    "cwd: the directory lies in no mount");
	w->plan->cwd = w->cwd;
	return true;
}

static bool
want_env(struct wanted *w)
{
	const msgpack_object *map = rpc_find(call_params(w->call), "env");
	struct spec_env given = { 0 };
	struct spec_fault fault;
	struct environ_set set = { NULL, 0 };
	struct environ_pair *pairs;
	char bad[ENVIRON_NAME_MAX + 1], *with_sign, *entry;
	int r;

	if (map != NULL &&
	    spec_env_read(&w->pool, "env", map, &given, &fault) != 0)
		return refuse(w, fault.code, "env", fault.text);
	pairs = pool_alloc(&w->pool, given.n, sizeof(*pairs));
	if (pairs == NULL)
		return refuse(w, API_INTERNAL, NULL, "out of memory");
	for (size_t i = 0; i < given.n; i++) {
		pairs[i].name = given.names[i];
		pairs[i].value = given.values[i];
	}
	set.pairs = pairs;
	set.n = given.n;
	r = plan_environ(session_facts_of(w->session),
	    session_plan_of(w->session), &set, &w->env, bad);
	if (r == -ENOMEM)
		return refuse(w, API_INTERNAL, NULL, "out of memory");
	if (r < 0 || w->env.n > PLAN_ENV_MAX)
		return refuse(w, API_BAD_PARAMS, "env",
		    r == -EINVAL ? "env: a name is not valid" :
				   "env: too much");
	for (size_t i = 0; i < w->env.n; i++) {
		with_sign = pool_concat(&w->pool, w->env.names[i], "=");
		entry = with_sign == NULL ?
		    NULL :
		    pool_concat(&w->pool, with_sign, w->env.values[i]);
		if (entry == NULL)
			return refuse(w, API_INTERNAL, NULL, "out of memory");
		if (strlen(entry) > PLAN_ENV_BYTES_MAX)
			return refuse(w, API_BAD_PARAMS, "env",
			    "env: a value is longer than 32 KiB");
		w->plan->env[w->plan->nenv++] = entry;
	}
	return true;
}

/* `stdin`: bytes and then its end, true for a stream, else its end at once. */
static bool
want_input(struct wanted *w)
{
	const msgpack_object *params = call_params(w->call);
	const msgpack_object *v = rpc_find(params, "stdin");

	if (v == NULL)
		return true;
	if (w->passed > 0 && !w->tty)
		return refuse(w, API_BAD_PARAMS, "stdin",
		    "stdin: a descriptor was passed for it");
	w->stdin_open = true;
	if (v->type == MSGPACK_OBJECT_BOOLEAN && v->via.boolean) {
		w->input_stays = true;
	} else if (v->type == MSGPACK_OBJECT_BIN) {
		w->input.data = (const uint8_t *)v->via.bin.ptr;
		w->input.len = v->via.bin.size;
	} else {
		return refuse(w, API_BAD_PARAMS, "stdin",
		    "stdin: bytes or true expected");
	}
	return true;
}

/* Bytes of what the client passed do not pass us, so that their silence cannot
 * be noticed (K16, K20). */
static bool
sees_output(const struct wanted *w)
{
	return w->tty ? !w->has_pass : w->passed < 2;
}

static bool
want_io(struct wanted *w)
{
	const msgpack_object *params = call_params(w->call);

	w->tty = call_bool(w->call, "tty", false);
	w->has_pass = rpc_find(params, "passFds") != NULL;
	w->passed = call_nfds(w->call);
	if (w->tty && w->passed > 1)
		return refuse(w, API_BAD_PARAMS, "passFds",
		    "passFds: with tty only standard error may be passed");
	if (!w->tty &&
	    (rpc_find(params, "rows") != NULL ||
		rpc_find(params, "cols") != NULL))
		return refuse(w, API_BAD_PARAMS, "rows",
		    "rows and cols are of a terminal");
	return want_input(w);
}

static bool
want_times(struct wanted *w)
{
	const msgpack_object *params = call_params(w->call);
	const struct session_facts *facts = session_facts_of(w->session);
	bool shell = call_str(w->call, "shell") != NULL;
	uint64_t given = call_u64(w->call, "timeoutMs", 0);

	w->timeout_ms = given;
	if (shell && rpc_find(params, "timeoutMs") == NULL)
		w->timeout_ms = SHELL_TIMEOUT_MS;
	else if (shell && (given == 0 || given > SHELL_TIMEOUT_MAX_MS))
		w->timeout_ms = SHELL_TIMEOUT_MAX_MS;
	else if (shell && given < 1000)
		w->timeout_ms = 1000;
	if (rpc_find(params, "silenceMs") != NULL)
		w->silence_ms = call_u64(w->call, "silenceMs", 0);
	else if (facts->adapter[0] != '\0' && sees_output(w))
		w->silence_ms = silence_ms[facts->mode];
	if (w->silence_ms != 0 && !sees_output(w))
		return refuse(w, API_BAD_PARAMS, "silenceMs",
		    "silenceMs: the output does not pass the service");
	return true;
}

/* ------------------------------------------------ sandbox.exec: sending */

static int
send_ask(struct wanted *w, const struct exec *e)
{
	struct msg_exec_ask msg = {
		.sandbox = w->session->sandbox,
		.exec = e->number,
		.client = call_caller(w->call)->client,
		.passed = w->passed,
		.tty = w->tty,
		.stdin_open = w->stdin_open || w->tty,
		.rows = call_u64(w->call, "rows", w->tty ? 24 : 0),
		.cols = call_u64(w->call, "cols", w->tty ? 80 : 0),
		.timeout_ms = e->timeout_ms,
		.deadline_ms =
		    e->timeout_ms == 0 ? 0 : control_clock_ms() + e->timeout_ms,
		.silence_ms = e->silence_ms,
	};
	struct wire_out bytes;
	int fds[1 + RPC_FDS_MAX];

	wire_out_init(&bytes);
	exec_plan_encode(w->plan, &bytes);
	fds[0] =
	    bytes.err ? -ENOMEM : memfd_seal("exec", bytes.data, bytes.len);
	wire_out_done(&bytes);
	if (fds[0] < 0)
		return fds[0];
	for (size_t i = 0; i < w->passed; i++)
		fds[1 + i] = call_take_fd(w->call, i);
	return peer_send(w->session->control->supervisor, MSG_exec_ask, &msg,
	    fds, 1 + w->passed);
}

/* Input that came with the call waits in the exec; there is no pipe yet. */
static int
keep_input(struct wanted *w, struct exec *e)
{
	if (w->input.len > 0) {
		e->in = malloc(w->input.len);
		if (e->in == NULL)
			return -ENOMEM;
		memcpy(e->in, w->input.data, w->input.len);
		e->in_len = w->input.len;
	}
	e->in_eof = !w->input_stays;
	return 0;
}

static void
start(struct wanted *w)
{
	struct session *s = w->session;
	struct exec *e = exec_new(s, control_number(s->control));
	int r;

	if (e == NULL) {
		call_fail_internal(w->call, -ENOMEM, "exec");
		return;
	}
	e->client = sees_output(w) ? call_caller(w->call)->client : 0;
	e->tty = w->tty;
	e->give_master = w->tty && w->has_pass;
	e->quiet = !sees_output(w);
	e->timeout_ms = w->timeout_ms;
	e->silence_ms = w->silence_ms;
	e->program = strdup(w->plan->argv[0]);
	e->stripped = take_ptr(&w->env.stripped);
	e->nstripped = w->env.nstripped;
	w->env.nstripped = 0;
	r = e->program == NULL ? -ENOMEM : keep_input(w, e);
	if (r == 0)
		r = send_ask(w, e);
	if (r < 0) {
		exec_drop(e);
		call_fail_internal(w->call, r, "exec");
		return;
	}
	e->call = w->call;
}

void
method_sandbox_exec(struct control *control, struct call *call)
{
	struct wanted w = { .call = call };

	w.plan = calloc(1, sizeof(*w.plan));
	if (w.plan == NULL)
		call_fail_internal(call, -ENOMEM, "exec");
	else if (want_session(&w, control) && want_argv(&w) && want_cwd(&w) &&
	    want_env(&w) && want_io(&w) && want_times(&w))
		start(&w);
	environ_done(&w.env);
	pool_done(&w.pool);
	free(w.plan);
}

/* ------------------------------------------------ the answers of the run */

struct io_bit {
	uint64_t bit;
	size_t stream; /* EXEC_STREAMS: input */
	enum rpc_event_type type;
};
static const struct io_bit io_bits[] = {
	{ EXEC_IO_STDIN, EXEC_STREAMS, RPC_EVENT_STDOUT },
	{ EXEC_IO_STDOUT, 0, RPC_EVENT_STDOUT },
	{ EXEC_IO_STDERR, 1, RPC_EVENT_STDERR },
	{ EXEC_IO_TTY, 0, RPC_EVENT_STDOUT },
};

static int
attach_tty(struct exec *e, int fd)
{
	e->in_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	exec_stream_open(e, 0, fd, RPC_EVENT_STDOUT);
	return e->in_fd < 0 ? -errno : 0;
}

int
exec_attach(struct exec *e, uint64_t io, int *fds, size_t nfds)
{
	size_t next = 0;
	int fd, r = 0;

	for (size_t i = 0; i < ARRAY_LEN(io_bits); i++) {
		if ((io & io_bits[i].bit) == 0)
			continue;
		if (next >= nfds)
			return -EPROTO;
		fd = take_fd(&fds[next++]);
		if (io_bits[i].bit == EXEC_IO_TTY) {
			r = attach_tty(e, fd);
		} else if (io_bits[i].stream == EXEC_STREAMS) {
			e->in_fd = fd;
		} else {
			exec_stream_open(e, io_bits[i].stream, fd,
			    io_bits[i].type);
		}
	}
	if (e->in_fd >= 0)
		(void)evutil_make_socket_nonblocking(e->in_fd);
	return next == nfds ? r : -EPROTO;
}

/* Input that waited since the call. */
static void
send_kept_input(struct exec *e)
{
	uint8_t *data = take_ptr(&e->in);
	size_t len = e->in_len;
	bool eof = e->in_eof;

	e->in_len = 0;
	e->in_eof = false;
	if (len > 0)
		(void)exec_input(e, data, len, len);
	if (eof && !e->tty)
		exec_input_eof(e);
	else if (eof && len > 0)
		exec_input_eof(e);
	if (data != NULL)
		explicit_bzero(data, len);
	free(data);
}

static void
answer(struct exec *e)
{
	struct rpc_out *out = call_begin(e->call);

	rpc_add_str(out, "execId", e->id);
	rpc_add_u64(out, "pid", e->pid);
	rpc_add_array(out, "stripped");
	for (size_t i = 0; i < e->nstripped; i++)
		rpc_put_str(out, e->stripped[i]);
	rpc_close(out);
	call_end(e->call);
	e->call = NULL;
}

/* What a shell would say and answer (SPEC K11). */
static bool
exit_instead(struct exec *e, uint64_t error)
{
	static const uint64_t not_found[] = { ENOENT, ENOTDIR };
	static const uint64_t not_run[] = { EACCES, EPERM, ENOEXEC, EISDIR,
		ELOOP, ETXTBSY };
	uint64_t status = 0;
	struct rpc_out *out;
	char name[256], text[512];

	for (size_t i = 0; i < ARRAY_LEN(not_found); i++)
		if (error == not_found[i])
			status = 127;
	for (size_t i = 0; i < ARRAY_LEN(not_run); i++)
		if (error == not_run[i])
			status = 126;
	if (status == 0)
		return false;
	answer(e);
	if (!e->quiet) {
		(void)log_clean(name, sizeof(name), e->program,
		    strlen(e->program));
		(void)snprintf(text, sizeof(text), "stockade: %s: %s\n", name,
		    strerror((int)error));
		out = events_begin(e->session->source, RPC_EVENT_STDERR, e->id);
		rpc_add_bin(out, "data", text, strlen(text));
		events_end(e->session->source);
	}
	e->started = true;
	exec_exited(e, status, 0);
	return true;
}

static void
not_started(struct exec *e, const struct msg_exec_answer *m)
{
	struct call_detail detail = { .step = m->step, .error = (int)m->error };

	log_event(EV_EXEC_REFUSED, LF_STR(LK_SESSION, e->session->id),
	    LF_NUM(LK_SANDBOX, e->session->sandbox), LF_STR(LK_EXEC, e->id),
	    LF_STR(LK_STEP, m->step), LF_NUM(LK_ERRNO, m->error));
	if (strcmp(m->step, "exec") == 0 && exit_instead(e, m->error))
		return;
	if (strcmp(m->step, "cwd") == 0) {
		detail.field = "cwd";
		call_fail_detail(e->call, API_BAD_PATH, &detail, "cwd: %s",
		    strerror((int)m->error));
	} else if (strcmp(m->step, "limit") == 0) {
		call_fail_detail(e->call, API_LIMIT, &detail,
		    "the session takes no more commands now: try again");
	} else {
		call_fail_detail(e->call, API_HOST_ERROR, &detail,
		    "the command could not be started: %s: %s", m->step,
		    strerror((int)m->error));
	}
	e->call = NULL;
	exec_drop(e);
}

int
sessions_on_exec_answer(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_exec_answer *m = &msg->exec_answer;
	struct session *s = session_of_sandbox(ctx, m->sandbox);
	struct exec *e = s == NULL ? NULL : exec_find(s, m->exec);
	int r;

	(void)peer;
	if (e == NULL || e->started) {
		close_all(fds, nfds);
		return 0;
	}
	if (m->error != 0) {
		close_all(fds, nfds);
		not_started(e, m);
		return 0;
	}
	e->started = true;
	e->pid = m->pid;
	r = e->give_master && m->io == EXEC_IO_TTY && nfds == 1 ?
	    call_give_fd(e->call, take_fd(&fds[0])) :
	    exec_attach(e, m->io, fds, nfds);
	close_all(fds, nfds);
	if (r < 0)
		exec_send_signal(e, SIGKILL);
	log_event(EV_EXEC_STARTED, LF_STR(LK_SESSION, s->id),
	    LF_NUM(LK_SANDBOX, s->sandbox), LF_STR(LK_EXEC, e->id),
	    LF_NUM(LK_PID, e->pid));
	answer(e);
	session_settle(s);
	send_kept_input(e);
	exec_start_timers(e, e->timeout_ms);
	return 0;
}

void
exec_exited(struct exec *e, uint64_t status, uint64_t signal)
{
	const struct session *s = e->session;

	if (e->exited)
		return;
	e->exited = true;
	e->status = status;
	e->signal = signal;
	/* Killed by nobody that we know: if the run was out of memory, that is
	 * told first (K8). */
	e->hold = signal == SIGKILL && e->stage != EXEC_KILL_SENT &&
	    !s->ending && !s->ended;
	exec_try_tell(e);
}

int
sessions_on_exec_exit(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_exec_exit *m = &msg->exec_exit;
	struct session *s = session_of_sandbox(ctx, m->sandbox);
	struct exec *e = s == NULL ? NULL : exec_find(s, m->exec);

	(void)peer;
	(void)fds;
	(void)nfds;
	if (e != NULL && e->started)
		exec_exited(e, m->status, m->signal);
	return 0;
}

/* ------------------------------------------------ calls that name a command */

/* The command of a call, or NULL after the answer (X7: one text for all). */
static struct exec *
named(struct control *control, struct call *call)
{
	struct session *s = session_find(control, call_caller(call),
	    call_str(call, "sessionId"));
	const char *id = call_str(call, "execId");
	struct exec *e;

	if (s != NULL)
		TAILQ_FOREACH (e, &s->execs, entry)
			if (e->started && !e->told && strcmp(e->id, id) == 0)
				return e;
	call_fail(call, API_NOT_FOUND, NULL,
	    s == NULL ? "there is no such session" :
			"there is no such command");
	return NULL;
}

void
method_sandbox_stdin(struct control *control, struct call *call)
{
	struct rpc_span data = call_bin(call, "data");
	struct exec *e = named(control, call);
	size_t taken;

	if (e == NULL)
		return;
	if (e->in_fd < 0 || e->in_eof) {
		call_fail(call, API_BAD_STATE, NULL,
		    "its standard input is closed");
		return;
	}
	taken = exec_input(e, data.data, data.len, LIMIT_FIXED_STDIN_QUEUE);
	if (data.len > 0 && taken == 0) {
		call_fail(call, API_BUSY, NULL,
		    "it has not read what was sent before");
		return;
	}
	if (taken == data.len && call_bool(call, "eof", false))
		exec_input_eof(e);
	rpc_add_u64(call_begin(call), "accepted", taken);
	call_end(call);
}

struct signal_name {
	const char *name;
	int number;
};
static const struct signal_name signals[] = {
	{ "INT", SIGINT },
	{ "TERM", SIGTERM },
	{ "HUP", SIGHUP },
	{ "QUIT", SIGQUIT },
	{ "KILL", SIGKILL },
	{ "USR1", SIGUSR1 },
	{ "USR2", SIGUSR2 },
	{ "WINCH", SIGWINCH },
	{ "CONT", SIGCONT },
	{ "STOP", SIGSTOP },
};

void
method_sandbox_signal(struct control *control, struct call *call)
{
	const char *name = call_str(call, "signal");
	struct exec *e;

	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		if (strcmp(signals[i].name, name) != 0)
			continue;
		e = named(control, call);
		if (e == NULL)
			return;
		if (signals[i].number == SIGKILL && e->stage == EXEC_RUNNING)
			e->stage = EXEC_KILL_SENT;
		exec_send_signal(e, signals[i].number);
		call_ok(call);
		return;
	}
	call_fail(call, API_BAD_PARAMS, "signal",
	    "signal: INT TERM HUP QUIT "
	    "KILL USR1 USR2 WINCH CONT or STOP expected");
}

void
method_sandbox_resize(struct control *control, struct call *call)
{
	struct exec *e = named(control, call);

	if (e == NULL)
		return;
	if (!e->tty) {
		call_fail(call, API_BAD_STATE, NULL, "it has no terminal");
		return;
	}
	(void)PEER_SEND(control->supervisor, exec_resize,
	    .sandbox = e->session->sandbox, .exec = e->number,
	    .rows = call_u64(call, "rows", 24),
	    .cols = call_u64(call, "cols", 80));
	call_ok(call);
}
