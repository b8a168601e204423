/*
 * The connection to the service. What it sends passed protocol/rpc.c's checks
 * and is printed cleaned all the same: it carries words of runs and hosts.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/cause.h"
#include "protocol/client.h"
#include "protocol/rpc.h"
#include "supervisor/ctl/ctl.h"
#include "supervisor/ctl/option.h"
#include "supervisor/ctl/remedy.h"
#include "supervisor/ctl/text.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

/* A launch may take 10 s, a look-up before it too (SPEC AB). */
#define CALL_TIMEOUT_MS 60000

void
ctl_say(const char *fmt, ...)
{
	va_list ap;

	(void)fputs("stockade: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)putc('\n', stderr);
}

int
service_lost(int error)
{
	if (error == -EPIPE)
		ctl_say("the service closed the connection");
	else if (error == -EPROTO)
		ctl_say("the service sent something that is no answer");
	else
		ctl_say("the service does not answer: %s", strerror(-error));
	return CTL_FAILED;
}

int
service_connect(struct ctl *ctl)
{
	struct rpc_out *out;
	int r = rpc_client_open(ctl->socket, &ctl->client);

	if (r < 0) {
		ctl_say("no service at %s: %s", text_clean(ctl->socket),
		    strerror(-r));
		if (r == -EACCES)
			ctl_say("users of the service are in its client "
				"group, usually \"stockade\"");
		return CTL_FAILED;
	}
	out = rpc_client_begin(ctl->client, "hello");
	rpc_add_u64(out, "protocol", RPC_PROTOCOL);
	rpc_add_str(out, "client", "stockadectl " PACKAGE_VERSION);
	/* Its answer is not waited for: an error ends the connection, and the
	 * call behind it then finds that error. */
	return rpc_client_end(ctl->client) == 0 ? service_lost(-ENOMEM) : 0;
}

void
service_close(struct ctl *ctl)
{
	rpc_client_close(ctl->client);
	ctl->client = NULL;
}

struct rpc_out *
service_begin(struct ctl *ctl, const char *method)
{
	return rpc_client_begin(ctl->client, method);
}

uint32_t
service_start(struct ctl *ctl, const char *method, const char *session)
{
	struct rpc_out *out = service_begin(ctl, method);

	if (session != NULL)
		rpc_add_str(out, "sessionId", session);
	return rpc_client_end(ctl->client);
}

int
service_error(const struct ctl *ctl, const msgpack_object *error)
{
	const msgpack_object *detail = rpc_map(error, "detail");
	uint64_t code = rpc_u64(error, "code", API_INTERNAL);
	const char *step = rpc_str(detail, "step");
	const char *hint = rpc_str(detail, "hint");
	const char *message = rpc_str(error, "message");
	struct remedy remedy;

	if (message == NULL)
		message = "the service failed";
	remedy_find(ctl, message, &remedy);
	ctl_say("%s%s%s%s%s%s", remedy.option == NULL ? "" : remedy.option,
	    text_clean(message + remedy.skip), step == NULL ? "" : " (",
	    step == NULL ? "" : text_clean(step), step == NULL ? "" : ")",
	    remedy.behind);
	if (hint != NULL)
		ctl_say("%s", text_clean(hint));
	if (code == API_DENIED || code == API_NO_APPROVER)
		return CTL_DENIED;
	return CTL_FAILED;
}

/* The error that `hello` was answered with, if that is why nothing came. */
static bool
say_refused_hello(struct ctl *ctl)
{
	struct rpc_message msg;
	bool said = false;

	while (rpc_client_next(ctl->client, &msg) == 1) {
		if (!said && msg.type == RPC_ANSWER && msg.error != NULL) {
			(void)service_error(ctl, msg.error);
			said = true;
		}
		rpc_done(&msg);
	}
	return said;
}

int
service_wait(struct ctl *ctl, uint32_t id, struct rpc_message *ret)
{
	int r = rpc_client_wait(ctl->client, id, CALL_TIMEOUT_MS, ret);

	if (r == -EPIPE && say_refused_hello(ctl))
		return CTL_FAILED;
	if (r < 0)
		return service_lost(r);
	if (ret->error != NULL) {
		r = service_error(ctl, ret->error);
		rpc_done(ret);
	}
	return r;
}

int
service_finish(struct ctl *ctl, uint32_t id, struct rpc_message *ret)
{
	int r;

	if (id == 0) {
		ctl_say("the request is too large");
		return CTL_FAILED;
	}
	r = rpc_client_flush(ctl->client, NULL, 0);
	/* It may have closed behind an answer that says why. */
	if (r < 0 && r != -EPIPE)
		return service_lost(r);
	return service_wait(ctl, id, ret);
}

int
service_call(struct ctl *ctl, const char *method, const char *session,
    struct rpc_message *ret)
{
	return service_finish(ctl, service_start(ctl, method, session), ret);
}

/* How well a handle fits what was typed: 3 its name, 2 its number, 1 the
 * beginning of its name, 0 not. */
static int
fit(const msgpack_object *handle, const char *typed)
{
	const char *id = rpc_str(handle, "sessionId");
	uint64_t number;

	if (id == NULL)
		return 0;
	if (strcmp(id, typed) == 0)
		return 3;
	if (option_number(typed, 1, UINT64_MAX, &number) == 0 &&
	    rpc_u64(rpc_map(handle, "details"), "sandbox", 0) == number)
		return 2;
	return strncmp(id, typed, strlen(typed)) == 0 ? 1 : 0;
}

int
service_resolve(struct ctl *ctl, const char *typed, char ret[SERVICE_ID_MAX])
{
	struct rpc_message msg;
	int best = 0, r;
	bool twice = false;

	r = service_call(ctl, "sandbox.list", NULL, &msg);
	if (r != 0)
		return r;
	for (size_t i = 0; i < rpc_count(msg.result, "handles"); i++) {
		const msgpack_object *h = rpc_map_at(msg.result, "handles", i);
		int f = fit(h, typed);

		if (f == 0 || f < best)
			continue;
		twice = f == best;
		best = f;
		(void)snprintf(ret, SERVICE_ID_MAX, "%s",
		    rpc_str(h, "sessionId"));
	}
	rpc_done(&msg);
	if (best == 0)
		ctl_say("no such session: %s", text_clean(typed));
	else if (twice)
		ctl_say("more than one session begins with %s",
		    text_clean(typed));
	return best == 0 || twice ? CTL_FAILED : 0;
}
