/*
 * Calls in flight: the checks before a handler (SPEC X3, X5, X6, X14) and the
 * answer behind it. In stockade-control; parameters are hostile.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/size.h"
#include "supervisor/control/client_private.h"
#include "supervisor/control/control.h"
#include "supervisor/control/methods.h"
#include "supervisor/control/redact.h"

#define TEXT_MAX 1024 /* of an error's message */
#define REFUSALS_LOGGED 10 /* of one connection in a window */
#define REFUSALS_WINDOW_MS 5000

/* What every method may answer (SPEC X11), and what precedes a handler. */
#define ERROR_BIT(code) (UINT64_C(1) << (code))
static const uint64_t common_errors = ERROR_BIT(API_UNKNOWN_METHOD) |
    ERROR_BIT(API_BAD_PARAMS) | ERROR_BIT(API_BAD_STATE) |
    ERROR_BIT(API_TOO_LARGE) | ERROR_BIT(API_FORBIDDEN) | ERROR_BIT(API_LIMIT) |
    ERROR_BIT(API_RESTARTING);

const struct caller *
call_caller(const struct call *call)
{
	return &call->who;
}

bool
call_connected(const struct call *call)
{
	return call->client != NULL;
}

struct client *
call_client(struct call *call)
{
	return call->client;
}

const msgpack_object *
call_params(const struct call *call)
{
	return call->msg.params;
}

const char *
call_str(const struct call *call, const char *name)
{
	return rpc_str(call->msg.params, name);
}

uint64_t
call_u64(const struct call *call, const char *name, uint64_t fallback)
{
	return rpc_u64(call->msg.params, name, fallback);
}

bool
call_bool(const struct call *call, const char *name, bool fallback)
{
	return rpc_bool(call->msg.params, name, fallback);
}

struct rpc_span
call_bin(const struct call *call, const char *name)
{
	return rpc_bin(call->msg.params, name);
}

size_t
call_nfds(const struct call *call)
{
	return call->nfds;
}

int
call_take_fd(struct call *call, size_t i)
{
	return i < call->nfds ? take_fd(&call->fds[i]) : -1;
}

int
call_give_fd(struct call *call, int fd)
{
	if (call->client == NULL || call->give_fd >= 0 ||
	    client_fd_waits(call->client)) {
		(void)close(fd);
		return call->client == NULL ? -ENOTCONN : -EBUSY;
	}
	call->give_fd = fd;
	return 0;
}

/* ---------------------------------------------------------------- answering */

static void
call_free(struct call *call)
{
	if (call->client != NULL) {
		TAILQ_REMOVE(&call->client->calls, call, entry);
		call->client->ncalls--;
	}
	close_all(call->fds, call->nfds);
	close_all(&call->give_fd, 1);
	rpc_out_done(&call->out);
	rpc_done(&call->msg);
	free(call);
}

void
call_orphan(struct call *call)
{
	TAILQ_REMOVE(&call->client->calls, call, entry);
	call->client->ncalls--;
	call->client = NULL;
}

struct rpc_out *
call_begin(struct call *call)
{
	rpc_begin_result(&call->out, call->msg.id);
	return &call->out;
}

void
call_end(struct call *call)
{
	int r = rpc_end_message(&call->out);

	if (r == -EMSGSIZE) {
		call_fail(call, API_TOO_LARGE, NULL,
		    "the answer would be longer than a message may be");
		return;
	}
	if (call->client != NULL) {
		if (r == 0 && call->give_fd >= 0)
			client_send_fd(call->client, call->out.data,
			    call->out.len, take_fd(&call->give_fd));
		else if (r == 0)
			client_send(call->client, call->out.data,
			    call->out.len);
		else
			client_doom(call->client, "no memory for its answer");
	}
	call_free(call);
}

void
call_ok(struct call *call)
{
	(void)call_begin(call);
	call_end(call);
}

/* Counts refusals of a connection, so that a flood is not a flood of logs. */
static bool
refusal_is_logged(struct client *c)
{
	uint64_t now = control_clock_ms();

	if (c == NULL)
		return true;
	if (now - c->refused_from_ms >= REFUSALS_WINDOW_MS) {
		if (c->refused > REFUSALS_LOGGED)
			log_event(EV_CALL_REFUSED,
			    LF_NUM(LK_CLIENT, c->who.client),
			    LF_STR(LK_REASON, "more were not logged"),
			    LF_NUM(LK_COUNT, c->refused - REFUSALS_LOGGED));
		c->refused_from_ms = now;
		c->refused = 0;
	}
	return ++c->refused <= REFUSALS_LOGGED;
}

static void
add_detail(struct rpc_out *out, const struct call_detail *d)
{
	if (d == NULL ||
	    (d->field == NULL && d->step == NULL && d->hint == NULL &&
		d->file == NULL && d->error == 0))
		return;
	rpc_add_map(out, "detail");
	rpc_add_text(out, "field", d->field);
	rpc_add_text(out, "step", d->step);
	rpc_add_text(out, "hint", d->hint);
	rpc_add_text(out, "file", d->file);
	if (d->line != 0)
		rpc_add_u64(out, "line", d->line);
	if (d->error != 0)
		rpc_add_u64(out, "errno", (uint64_t)d->error);
	rpc_close(out);
}

/* One line without secrets (SPEC X8). */
static void __attribute__((format(printf, 2, 0)))
make_text(char ret[TEXT_MAX], const char *fmt, va_list ap)
{
	char raw[TEXT_MAX], bare[TEXT_MAX];
	size_t n;
	int len = vsnprintf(raw, sizeof(raw), fmt, ap);

	if (len < 0)
		len = 0;
	n = (size_t)len < sizeof(raw) ? (size_t)len : sizeof(raw) - 1;
	n = redact_copy(raw, n, bare, sizeof(bare));
	(void)log_clean(ret, TEXT_MAX, bare, n);
}

static void
answer_error(struct call *call, enum api_error code,
    const struct call_detail *detail, const char *text)
{
	struct rpc_out *out = &call->out;

	rpc_begin_error(out, call->msg.id);
	rpc_add_u64(out, "code", (uint64_t)code);
	rpc_add_str(out, "name", api_error_name(code));
	rpc_add_str(out, "message", text);
	add_detail(out, detail);
	call_end(call);
}

static void
fail(struct call *call, enum api_error code, const struct call_detail *detail,
    const char *text)
{
	uint64_t allowed = common_errors;

	if (call->method != NULL)
		allowed |= call->method->errors;
	if (code != API_INTERNAL &&
	    (code >= 64 || (allowed & ERROR_BIT(code)) == 0)) {
		log_event(EV_INTERNAL,
		    LF_STR(LK_METHOD,
			call->method != NULL ? call->method->name : "unknown"),
		    LF_STR(LK_CAUSE, api_error_name(code)),
		    LF_STR(LK_REASON,
			"an error that the method must not "
			"answer"));
		code = API_INTERNAL;
	}
	if (refusal_is_logged(call->client))
		log_event(EV_CALL_REFUSED, LF_NUM(LK_CLIENT, call->who.client),
		    LF_NUM(LK_PEER_UID, call->who.uid),
		    LF_STR(LK_METHOD,
			call->method != NULL ? call->method->name : "unknown"),
		    LF_STR(LK_CAUSE, api_error_name(code)),
		    LF_STR(LK_REASON, text));
	answer_error(call, code, detail, text);
}

void
call_fail(struct call *call, enum api_error code, const char *field,
    const char *fmt, ...)
{
	struct call_detail detail = { .field = field };
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	make_text(text, fmt, ap);
	va_end(ap);
	fail(call, code, &detail, text);
}

void
call_fail_detail(struct call *call, enum api_error code,
    const struct call_detail *detail, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	make_text(text, fmt, ap);
	va_end(ap);
	fail(call, code, detail, text);
}

void
call_fail_internal(struct call *call, int error, const char *step)
{
	struct call_detail detail = { .step = step };

	log_event(EV_INTERNAL, LF_NUM(LK_ERRNO, error < 0 ? -error : error),
	    LF_STR(LK_STEP, step));
	fail(call, API_INTERNAL, &detail,
	    error == -ENOMEM ? "the service has no memory left" :
			       "the service failed, see its log");
}

/* ---------------------------------------------------------------- starting */

/*
 * The descriptors that a request says it brought, from the front of the
 * queue, in whatever way the call ends, so that the next one finds its own.
 */
static bool
claim_fds(struct client *c, struct call *call)
{
	uint64_t n = rpc_u64(call->msg.params, "passFds", 0);

	if (n > RPC_FDS_MAX || n > c->nfds)
		return false;
	for (size_t i = 0; i < n; i++)
		call->fds[i] = c->fds[i];
	call->nfds = (size_t)n;
	c->nfds -= (size_t)n;
	memmove(c->fds, c->fds + n, c->nfds * sizeof(c->fds[0]));
	return true;
}

static bool
id_in_flight(const struct client *c, uint32_t id)
{
	const struct call *call;

	TAILQ_FOREACH (call, &c->calls, entry)
		if (call->msg.id == id)
			return true;
	return false;
}

static struct call *
call_new(struct client *c, struct rpc_message *msg)
{
	struct call *call = calloc(1, sizeof(*call));

	if (call == NULL) {
		rpc_done(msg);
		return NULL;
	}
	call->control = c->clients->control;
	call->give_fd = -1;
	call->client = c;
	call->who = c->who;
	call->msg = *msg;
	memset(msg, 0, sizeof(*msg));
	call->method = method_find(call->msg.method);
	TAILQ_INSERT_TAIL(&c->calls, call, entry);
	c->ncalls++;
	return call;
}

/* hello first (X3); what else comes first ends the connection. */
static bool
check_hello(struct client *c, struct call *call)
{
	bool hello = strcmp(call->msg.method, "hello") == 0;

	if (c->state == CLIENT_OPEN && !hello)
		return true;
	if (c->state == CLIENT_OPEN) {
		call_fail(call, API_BAD_STATE, NULL,
		    "hello was already said on this connection");
		return false;
	}
	if (c->over_limit) {
		call_fail(call, API_LIMIT, NULL,
		    "too many connections of this user");
		client_drain(c);
		return false;
	}
	if (!hello) {
		call_fail(call, API_BAD_STATE, NULL,
		    "the first call of a connection is hello");
		client_drain(c);
		return false;
	}
	return true;
}

/* True when the handler may see it; else it was answered. */
static bool
check_call(struct client *c, struct call *call)
{
	bool claimed = claim_fds(c, call);
	char field[RPC_FIELD_MAX];
	const char *why;

	if (c->ncalls > CLIENT_CALLS_MAX) {
		call_fail(call, API_LIMIT, NULL,
		    "more than %d calls are in flight", CLIENT_CALLS_MAX);
		return false;
	}
	if (!check_hello(c, call))
		return false;
	if (call->method == NULL) {
		call_fail(call, API_UNKNOWN_METHOD, NULL,
		    "there is no method of this name");
		return false;
	}
	if (call->method->operator_only && !call->who.is_operator) {
		call_fail(call, API_FORBIDDEN, NULL, "%s is for operators",
		    call->method->name);
		return false;
	}
	if (rpc_check(call->msg.params, call->method->params,
		call->method->nparams, field, &why) != 0) {
		call_fail(call, API_BAD_PARAMS, field, "%s %s", field, why);
		return false;
	}
	if (!claimed) {
		call_fail(call, API_BAD_PARAMS, "passFds",
		    "passFds is more than the descriptors that came");
		return false;
	}
	return true;
}

void
call_start(struct client *c, struct rpc_message *msg)
{
	struct call *call;

	if (id_in_flight(c, msg->id)) {
		rpc_done(msg);
		client_doom(c, "an id of a call that is in flight");
		return;
	}
	call = call_new(c, msg);
	if (call == NULL) {
		client_doom(c, "no memory for its call");
		return;
	}
	if (check_call(c, call))
		call->method->fn(call->control, call);
}
