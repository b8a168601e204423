/*
 * Bytes and times of a command. Everything here runs on the loop; a callback
 * that may free its exec does so as its last act.
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

#include "common/log.h"
#include "protocol/peer.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/limits.h"
#include "supervisor/control/session.h"
#include "supervisor/control/violations.h"

#define READS_A_TURN 4
#define TTY_EOF 4 /* ^D, the usual VEOF */

static struct events_source *
source_of(const struct exec *e)
{
	return e->session->source;
}

static int
arm(struct exec *e, struct event **timer, uint64_t ms,
    void (*fn)(int fd, short what, void *arg))
{
	const struct timeval tv = { .tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	if (*timer == NULL)
		*timer = evtimer_new(e->session->control->base, fn, e);
	return *timer != NULL && evtimer_add(*timer, &tv) == 0 ? 0 : -ENOMEM;
}

/* ------------------------------------------------ the end */

bool
exec_streams_open(const struct exec *e)
{
	for (size_t i = 0; i < EXEC_STREAMS; i++)
		if (e->out[i].fd >= 0)
			return true;
	return false;
}

static bool
is_stopped(const struct exec *e)
{
	for (size_t i = 0; i < EXEC_STREAMS; i++)
		if (e->out[i].stopped)
			return true;
	return false;
}

static uint64_t
exit_code(const struct exec *e)
{
	if (e->cause == RUN_CAUSE_TIMEOUT)
		return 124;
	return e->signal != 0 ? 128 + e->signal : e->status;
}

/* Pipes that a background child still holds are read on and thrown away, so
 * that it does not die of a closed one; but not without limit. */
static void
keep_as_ghost(struct exec *e)
{
	struct session *s = e->session;

	if (!exec_streams_open(e) || s->ended || s->ghosts >= EXEC_GHOSTS_MAX) {
		exec_free(e);
		return;
	}
	s->ghosts++;
	for (size_t i = 0; i < EXEC_STREAMS; i++)
		if (e->out[i].stopped) {
			e->out[i].stopped = false;
			(void)event_add(e->out[i].readable, NULL);
		}
}

static void
tell_exit(struct exec *e)
{
	struct session *s = e->session;
	struct rpc_out *out;

	e->told = true;
	if (e->cause != RUN_CAUSE_EXIT)
		session_tell_killed(s, e->id, e->cause, 0, 0);
	out = events_begin(source_of(e), RPC_EVENT_EXIT, e->id);
	rpc_add_u64(out, "exitCode", exit_code(e));
	if (e->signal != 0)
		rpc_add_u64(out, "signal", e->signal);
	events_end(source_of(e));
	log_event(EV_EXEC_ENDED, LF_STR(LK_SESSION, s->id),
	    LF_NUM(LK_SANDBOX, s->sandbox), LF_STR(LK_EXEC, e->id),
	    LF_NUM(LK_STATUS, exit_code(e)), LF_NUM(LK_SIGNAL, e->signal));
	s->running--;
	exec_input_close(e, false);
	keep_as_ghost(e);
	session_settle(s);
	session_try_finish(s);
}

static void
on_quiet(int fd, short what, void *arg)
{
	struct exec *e = arg;

	(void)fd;
	(void)what;
	if (e->told)
		return;
	e->hold = false;
	if (is_stopped(e) &&
	    arm(e, &e->end_timer, EXEC_LINGER_MS, on_quiet) == 0)
		return;
	tell_exit(e);
}

void
exec_try_tell(struct exec *e)
{
	if (!e->exited || e->told)
		return;
	if (!exec_streams_open(e) && !e->hold)
		tell_exit(e);
	else if (arm(e, &e->end_timer, EXEC_LINGER_MS, on_quiet) < 0)
		tell_exit(e);
}

/* ------------------------------------------------ output */

void
exec_stream_close(struct exec_stream *stream)
{
	if (stream->readable != NULL)
		event_free(stream->readable);
	stream->readable = NULL;
	stream->stopped = false;
	if (stream->fd >= 0)
		(void)close(stream->fd);
	stream->fd = -1;
}

/* In a run with a broker the words are mostly its own: what it refuses it has
 * told, with path and rule (SPEC D15). */
static bool
is_told(const struct exec *e, const char *line)
{
	return session_plan_of(e->session)->nroots > 0 &&
	    strstr(line, "Permission denied") == NULL;
}

/* SPEC L4: where nothing better watches. */
static void
on_refusal(void *arg, enum refusal_kind kind, enum violation_action action,
    const char *target, const char *line)
{
	struct violation v = { .action = action,
		.target = target,
		.reason = "stderr",
		.raw = line };
	const struct exec *e = arg;
	struct refusal_place place;

	if (kind == REFUSAL_DENIED && is_told(e, line))
		return;
	if (kind != REFUSAL_DENIED) {
		if (!refusals_place(session_plan_of(e->session), kind, line,
			&place))
			return;
		v.target = place.path;
		v.rule = place.rule;
		v.remedy = place.remedy;
	}
	violations_record(events_source_violations(source_of(e)), &v);
}

static void
stream_ended(struct exec_stream *stream)
{
	struct exec *e = stream->exec;

	if (stream->type == RPC_EVENT_STDERR && !e->told)
		refusals_end(&e->refusals, on_refusal, e);
	exec_stream_close(stream);
	if (!e->told) {
		exec_try_tell(e);
		return;
	}
	if (!exec_streams_open(e)) {
		e->session->ghosts--;
		exec_free(e);
	}
}

/* Whether the one who started it has more to take than it may (K15). */
static bool
must_wait(struct exec_stream *stream)
{
	const struct exec *e = stream->exec;

	if (e->told || e->client == 0 ||
	    events_backlog(source_of(e), e->client) <= LIMIT_FIXED_OUT_BUFFER)
		return false;
	stream->stopped = true;
	(void)event_del(stream->readable);
	return true;
}

static void
put_output(struct exec_stream *stream, const uint8_t *data, size_t n)
{
	struct exec *e = stream->exec;
	struct rpc_out *out;

	if (e->told)
		return;
	out = events_begin(source_of(e), stream->type, e->id);
	rpc_add_bin(out, "data", data, n);
	events_end(source_of(e));
	if (stream->type == RPC_EVENT_STDERR)
		refusals_feed(&e->refusals, data, n, on_refusal, e);
	exec_restart_silence(e);
	if (e->exited)
		exec_try_tell(e); /* starts the quiet time again */
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	static uint8_t buf[EVENTS_CHUNK];
	struct exec_stream *stream = arg;
	ssize_t n;

	(void)what;
	for (int i = 0; i < READS_A_TURN; i++) {
		if (must_wait(stream))
			return;
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) { /* EIO: nobody has the terminal open */
			stream_ended(stream);
			return;
		}
		put_output(stream, buf, (size_t)n);
	}
}

void
exec_stream_open(struct exec *e, size_t i, int fd, enum rpc_event_type type)
{
	struct exec_stream *stream = &e->out[i];

	stream->exec = e;
	stream->fd = fd;
	stream->type = type;
	(void)evutil_make_socket_nonblocking(fd);
	stream->readable = event_new(e->session->control->base, fd,
	    EV_READ | EV_PERSIST, on_readable, stream);
	if (stream->readable == NULL || event_add(stream->readable, NULL) != 0)
		exec_stream_close(stream);
}

void
exec_on_room(void *arg)
{
	struct session *s = arg;
	struct exec *e;

	TAILQ_FOREACH (e, &s->execs, entry)
		for (size_t i = 0; i < EXEC_STREAMS; i++) {
			if (!e->out[i].stopped)
				continue;
			e->out[i].stopped = false;
			(void)event_add(e->out[i].readable, NULL);
		}
}

void
exec_client_lost(struct session *s, uint64_t client)
{
	struct exec *e;

	TAILQ_FOREACH (e, &s->execs, entry)
		if (e->client == client)
			e->client = 0;
	exec_on_room(s);
}

/* ------------------------------------------------ input */

void
exec_input_close(struct exec *e, bool tell)
{
	if (e->writable != NULL)
		event_free(e->writable);
	e->writable = NULL;
	if (e->in != NULL)
		explicit_bzero(e->in, e->in_len);
	free(e->in);
	e->in = NULL;
	e->in_len = 0;
	if (e->in_fd < 0)
		return;
	(void)close(e->in_fd);
	e->in_fd = -1;
	if (tell && !e->tty)
		(void)PEER_SEND(e->session->control->supervisor, exec_eof,
		    .sandbox = e->session->sandbox, .exec = e->number);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct exec *e = arg;
	ssize_t n;

	(void)what;
	n = e->in_len == 0 ? 0 : write(fd, e->in, e->in_len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		n = 0;
	if (n < 0) { /* it reads no more */
		exec_input_close(e, true);
		return;
	}
	e->in_len -= (size_t)n;
	memmove(e->in, e->in + n, e->in_len);
	if (e->in_len > 0)
		return;
	(void)event_del(e->writable);
	if (e->in_eof && !e->tty)
		exec_input_close(e, true);
}

static int
want_writable(struct exec *e)
{
	if (e->writable == NULL)
		e->writable = event_new(e->session->control->base, e->in_fd,
		    EV_WRITE | EV_PERSIST, on_writable, e);
	return e->writable != NULL && event_add(e->writable, NULL) == 0 ?
	    0 :
	    -ENOMEM;
}

size_t
exec_input(struct exec *e, const void *data, size_t len, size_t max)
{
	size_t room = e->in_len < max ? max - e->in_len : 0;
	uint8_t *more;

	if (e->in_fd < 0 || e->in_eof)
		return 0;
	if (len > room)
		len = room;
	if (len == 0)
		return 0;
	more = realloc(e->in, e->in_len + len);
	if (more == NULL)
		return 0;
	e->in = more;
	memcpy(e->in + e->in_len, data, len);
	if (want_writable(e) < 0)
		return 0;
	e->in_len += len;
	return len;
}

void
exec_input_eof(struct exec *e)
{
	static const uint8_t eof = TTY_EOF;

	if (e->in_fd < 0 || e->in_eof)
		return;
	if (e->tty) { /* the terminal's own way, it may be read again */
		(void)exec_input(e, &eof, 1, SIZE_MAX);
		return;
	}
	e->in_eof = true;
	if (want_writable(e) < 0)
		exec_input_close(e, true);
}

/* ------------------------------------------------ times */

void
exec_send_signal(struct exec *e, int signal)
{
	(void)PEER_SEND(e->session->control->supervisor, exec_signal,
	    .sandbox = e->session->sandbox, .exec = e->number,
	    .signal = (uint64_t)signal);
}

static void
say_time_out(struct exec *e)
{
	struct rpc_out *out;
	char text[64];
	int n;

	n = snprintf(text, sizeof(text), "command exceeded %llus\n",
	    (unsigned long long)((e->timeout_ms + 999) / 1000));
	out = events_begin(source_of(e), RPC_EVENT_STDERR, e->id);
	rpc_add_bin(out, "data", text, (size_t)n);
	events_end(source_of(e));
}

static void
on_timeout(int fd, short what, void *arg)
{
	struct exec *e = arg;

	(void)fd;
	(void)what;
	if (e->exited || e->told)
		return;
	if (e->stage == EXEC_RUNNING) {
		if (e->cause == RUN_CAUSE_EXIT) {
			e->cause = RUN_CAUSE_TIMEOUT;
			say_time_out(e);
		}
		e->stage = EXEC_TERM_SENT;
		exec_send_signal(e, SIGTERM);
		if (arm(e, &e->timeout_timer, EXEC_GRACE_MS, on_timeout) == 0)
			return;
	}
	if (e->stage == EXEC_TERM_SENT) {
		e->stage = EXEC_KILL_SENT;
		exec_send_signal(e, SIGKILL);
	}
}

static void
on_silence(int fd, short what, void *arg)
{
	struct exec *e = arg;

	if (e->exited || e->told || e->stage != EXEC_RUNNING || is_stopped(e) ||
	    e->session->state == SESSION_SUSPENDED) {
		if (!e->exited)
			exec_restart_silence(e);
		return;
	}
	e->cause = RUN_CAUSE_SILENCE;
	on_timeout(fd, what, e);
}

void
exec_restart_silence(struct exec *e)
{
	if (e->silence_ms != 0 && !e->told)
		(void)arm(e, &e->silence_timer, e->silence_ms, on_silence);
}

void
exec_start_timers(struct exec *e, uint64_t left_ms)
{
	if (e->timeout_ms != 0 &&
	    arm(e, &e->timeout_timer, left_ms, on_timeout) < 0) {
		/* Without a time-out it must not run. */
		e->cause = RUN_CAUSE_TIMEOUT;
		exec_send_signal(e, SIGKILL);
	}
	exec_restart_silence(e);
}
