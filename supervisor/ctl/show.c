/*
 * The subcommands that ask and show: ps inspect events violations kill pause
 * resume probe status reload.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/size.h"
#include "protocol/client.h"
#include "protocol/rpc.h"
#include "supervisor/ctl/ctl.h"
#include "supervisor/ctl/denied.h"
#include "supervisor/ctl/json.h"
#include "supervisor/ctl/option.h"
#include "supervisor/ctl/text.h"
#include "supervisor/ctl/units.h"

/* Options of all of them; each table names those that it takes. */
struct show {
	bool json;
	const char *signal;
	const char *exec;
	const char *types;
	const char *since;
	const char *limit;
};
#define AT(m) offsetof(struct show, m)
#define OPTION_JSON \
	{ \
		"--json", false, option_set_flag, AT(json), NULL, "print JSON" \
	}

/*
 * Reads the options and the arguments behind them. Returns 0, or CTL_USAGE
 * after saying what is wrong. Takes a session's id when max is 1.
 */
static int
read_args(struct ctl *ctl, const char *command, const struct option_row *rows,
    size_t n, struct show *show, int argc, char **argv, int min, int max,
    const char **ret_arg)
{
	int at = option_read(command, rows, n, show, argc, argv, NULL);

	if (at < 0)
		return CTL_USAGE;
	ctl->json = ctl->json || show->json;
	*ret_arg = at < argc ? argv[at] : NULL;
	/* Options behind the session's id are read too. */
	if (at < argc) {
		int more = option_read(command, rows, n, show, argc - at,
		    argv + at, NULL);

		if (more < 0)
			return CTL_USAGE;
		ctl->json = ctl->json || show->json;
		at += more;
		max--;
		min--;
	}
	if (argc - at > max || min > 0) {
		ctl_say("%s: %s", command,
		    min > 0 ?
			"a session is missing; `stockadectl ps` lists them" :
			"too many arguments");
		return CTL_USAGE;
	}
	return 0;
}

static int
put_json(const msgpack_object *value)
{
	struct json j;

	json_init(&j, stdout);
	json_object(&j, value);
	return json_end(&j) == 0 ? CTL_OK : CTL_FAILED;
}

/* Prints one member of the result as JSON. */
static int
put_json_member(const struct rpc_message *msg, const char *key)
{
	const msgpack_object *v = rpc_find(msg->result, key);

	return put_json(v != NULL ? v : msg->result);
}

static uint64_t
now_ms(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Connects and resolves `typed` unless it is NULL. */
static int
begin(struct ctl *ctl, const char *typed, char id[SERVICE_ID_MAX])
{
	int r = service_connect(ctl);

	ctl->session = typed;
	if (r == 0 && typed != NULL)
		r = service_resolve(ctl, typed, id);
	return r;
}

/* ---------------------------------------------------------------- ps */

static void
ps_row(struct text_table *t, const msgpack_object *h, uint64_t now)
{
	const msgpack_object *d = rpc_map(h, "details");
	uint64_t created = rpc_u64(d, "createdMs", now);
	uint64_t memory = rpc_u64(d, "memoryBytes", 0);
	char text[UNITS_TEXT];

	text_table_add(t, text_of(d, "sandbox", "-"));
	text_table_add(t, text_of(h, "sessionId", "-"));
	text_table_add(t, text_of(h, "backend", "-"));
	text_table_add(t, text_of(h, "state", "-"));
	text_table_add(t, text_of(d, "mode", "-"));
	text_table_add(t, text_of(d, "user", "-"));
	text_table_add(t,
	    units_age_text(now > created ? now - created : 0, text));
	text_table_add(t, text_of(d, "execs", "-"));
	text_table_add(t, memory == 0 ? "-" : units_size_text(memory, text));
	text_table_add(t, text_of(d, "denied", "-"));
}

int
ctl_ps(struct ctl *ctl, int argc, char **argv)
{
	static const struct option_row rows[] = { OPTION_JSON };
	static const char *const head[] = { "ID", "SESSION", "BACKEND", "STATE",
		"MODE", "USER", "AGE", "EXECS", "MEMORY", "DENIED" };
	struct show show = { 0 };
	struct rpc_message msg;
	struct text_table t;
	const char *arg;
	int r = read_args(ctl, "ps", rows, ARRAY_LEN(rows), &show, argc, argv,
	    0, 0, &arg);

	if (r == 0)
		r = service_connect(ctl);
	if (r == 0)
		r = service_call(ctl, "sandbox.list", NULL, &msg);
	if (r != 0)
		return r;
	if (ctl->json) {
		r = put_json_member(&msg, "handles");
		rpc_done(&msg);
		return r;
	}
	text_table_init(&t, ARRAY_LEN(head));
	for (size_t i = 0; i < ARRAY_LEN(head); i++)
		text_table_add(&t, head[i]);
	for (size_t i = 0; i < rpc_count(msg.result, "handles"); i++)
		ps_row(&t, rpc_map_at(msg.result, "handles", i), now_ms());
	text_table_print(&t, stdout);
	rpc_done(&msg);
	return fflush(stdout) == 0 ? CTL_OK : CTL_FAILED;
}

/* ---------------------------------------------------------------- inspect */

/* What is known of the session, and of its plan where it has one. */
static int
put_session_json(const msgpack_object *got, const msgpack_object *plan)
{
	static const char *const shown[] = { "limits", "network" };
	struct json j;

	json_init(&j, stdout);
	json_open_object(&j);
	for (uint32_t i = 0; i < got->via.map.size; i++) {
		json_key(&j, got->via.map.ptr[i].key.via.str.ptr);
		json_object(&j, &got->via.map.ptr[i].val);
	}
	for (size_t i = 0; plan != NULL && i < ARRAY_LEN(shown); i++) {
		json_key(&j, shown[i]);
		json_object(&j, rpc_find(plan, shown[i]));
	}
	json_close(&j);
	return json_end(&j) == 0 ? CTL_OK : CTL_FAILED;
}

static void
put_session(const msgpack_object *got, const msgpack_object *plan)
{
	const msgpack_object *network = rpc_map(plan, "network");
	const msgpack_object *limits = rpc_map(plan, "limits");

	text_tree(stdout, got, 0);
	if (limits != NULL) {
		(void)puts("limits: (0: none)");
		text_tree(stdout, limits, 1);
	}
	if (network != NULL)
		(void)printf("network: %s\nhosts:\n",
		    text_of(network, "enabled", "no"));
	for (size_t i = 0; i < rpc_count(network, "allow"); i++) {
		const msgpack_object *rule = rpc_map_at(network, "allow", i);
		uint64_t port = rpc_u64(rule, "port", 0);

		(void)printf("  %s", text_of(rule, "pattern", "-"));
		if (port != 0)
			(void)printf(":%" PRIu64, port);
		(void)putchar('\n');
	}
}

int
ctl_inspect(struct ctl *ctl, int argc, char **argv)
{
	static const struct option_row rows[] = { OPTION_JSON };
	struct show show = { 0 };
	char id[SERVICE_ID_MAX];
	struct rpc_message msg, explained = { 0 };
	const msgpack_object *plan = NULL;
	const char *arg;
	int r = read_args(ctl, "inspect", rows, ARRAY_LEN(rows), &show, argc,
	    argv, 1, 1, &arg);

	if (r == 0)
		r = begin(ctl, arg, id);
	if (r == 0)
		r = service_call(ctl, "sandbox.get", id, &msg);
	if (r != 0)
		return r;
	/* One that is over has no plan. */
	if (strcmp(text_of(msg.result, "alive", "no"), "yes") == 0 &&
	    service_call(ctl, "sandbox.explain", id, &explained) == 0)
		plan = rpc_map(explained.result, "plan");
	if (ctl->json)
		r = put_session_json(msg.result, plan);
	else
		put_session(msg.result, plan);
	rpc_done(&msg);
	if (plan != NULL)
		rpc_done(&explained);
	return fflush(stdout) == 0 ? r : CTL_FAILED;
}

/* ---------------------------------------------------------------- events */

static void
put_time(uint64_t ms)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char text[32] = "-";

	if (localtime_r(&s, &tm) != NULL)
		(void)strftime(text, sizeof(text), "%H:%M:%S", &tm);
	(void)printf("%s.%03u ", text, (unsigned)(ms % 1000));
}

/* Everything of an event but what the line begins with. */
static void
put_event_fields(const msgpack_object *event)
{
	static const char *const shown[] = { "seq", "time", "sessionId",
		"type" };
	struct json j;

	for (uint32_t i = 0; i < event->via.map.size; i++) {
		const msgpack_object_kv *kv = &event->via.map.ptr[i];
		bool skip = false;

		for (size_t k = 0; k < ARRAY_LEN(shown); k++)
			skip =
			    skip || strcmp(kv->key.via.str.ptr, shown[k]) == 0;
		if (skip)
			continue;
		(void)printf(" %s=", text_clean(kv->key.via.str.ptr));
		json_init(&j, stdout);
		json_object(&j, &kv->val);
	}
}

static void
put_event(const struct ctl *ctl, const msgpack_object *event)
{
	if (ctl->json) {
		(void)put_json(event);
		return;
	}
	put_time(rpc_u64(event, "time", 0));
	(void)printf("%s %s", text_of(event, "sessionId", "-"),
	    text_of(event, "type", "-"));
	put_event_fields(event);
	(void)putchar('\n');
	(void)fflush(stdout);
}

/* Prints what was read; 1 when the one session that was asked for is gone. */
static int
put_events(const struct ctl *ctl, bool one)
{
	struct rpc_message msg;
	int gone = 0;

	while (rpc_client_next(ctl->client, &msg) == 1) {
		if (msg.type == RPC_NOTIFY && msg.params != NULL &&
		    strcmp(msg.method, "event") == 0) {
			const char *state = rpc_str(msg.params, "state");

			put_event(ctl, msg.params);
			gone = gone ||
			    (one && state != NULL &&
				strcmp(state, "destroyed") == 0);
		}
		rpc_done(&msg);
	}
	return gone;
}

static int
follow(struct ctl *ctl, bool one)
{
	struct pollfd p[2] = { { rpc_client_fd(ctl->client), POLLIN, 0 },
		{ 1, 0, 0 } };
	int r;

	while (!put_events(ctl, one)) {
		if (ferror(stdout))
			return CTL_FAILED;
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return CTL_FAILED;
		/* The reader of our output is gone. */
		if ((p[1].revents & (POLLERR | POLLNVAL)) != 0)
			return CTL_OK;
		r = rpc_client_read(ctl->client);
		if (r < 0 && r != -EAGAIN) {
			(void)put_events(ctl, one);
			return service_lost(r);
		}
	}
	return CTL_OK;
}

/* "exit,violation" as an array. */
static void
add_types(struct rpc_out *out, const char *types)
{
	if (types == NULL)
		return;
	rpc_add_array(out, "types");
	while (*types != '\0') {
		size_t len = strcspn(types, ",");

		if (len > 0)
			rpc_put_strn(out, types, len);
		types += len + (types[len] == ',');
	}
	rpc_close(out);
}

int
ctl_events(struct ctl *ctl, int argc, char **argv)
{
	static const struct option_row rows[] = { OPTION_JSON,
		{ "--types", true, option_set_text, AT(types), "A,B",
		    "only these types of events" },
		{ "--since", true, option_set_text, AT(since), "N",
		    "begin with event N of the session" } };
	struct show show = { 0 };
	char id[SERVICE_ID_MAX];
	struct rpc_message msg;
	struct rpc_out *out;
	uint64_t since = 0;
	const char *arg;
	int r = read_args(ctl, "events", rows, ARRAY_LEN(rows), &show, argc,
	    argv, 0, 1, &arg);

	if (r == 0 && show.since != NULL &&
	    (arg == NULL ||
		option_number(show.since, 1, UINT64_MAX, &since) < 0)) {
		ctl_say("events: --since takes a number and needs a session");
		r = CTL_USAGE;
	}
	if (r == 0)
		r = begin(ctl, arg, id);
	if (r != 0)
		return r;
	out = service_begin(ctl, "events.subscribe");
	if (arg != NULL)
		rpc_add_str(out, "sessionId", id);
	if (since != 0)
		rpc_add_u64(out, "since", since);
	add_types(out, show.types);
	r = service_finish(ctl, rpc_client_end(ctl->client), &msg);
	if (r != 0)
		return r;
	rpc_done(&msg);
	return follow(ctl, arg != NULL);
}

/* ------------------------------------------------------------ violations */

static void
put_violation(const msgpack_object *v)
{
	put_time(rpc_u64(v, "time", 0));
	(void)printf("%s ", text_of(v, "sessionId", "-"));
	denied_summary(v, stdout);
}

int
ctl_violations(struct ctl *ctl, int argc, char **argv)
{
	static const struct option_row rows[] = { OPTION_JSON,
		{ "--limit", true, option_set_text, AT(limit), "N",
		    "at most N, the newest" } };
	struct show show = { 0 };
	char id[SERVICE_ID_MAX];
	struct rpc_message msg;
	struct rpc_out *out;
	uint64_t limit = 1000;
	const char *arg;
	int r = read_args(ctl, "violations", rows, ARRAY_LEN(rows), &show, argc,
	    argv, 0, 1, &arg);

	if (r == 0 && show.limit != NULL &&
	    option_number(show.limit, 1, 10000, &limit) < 0) {
		ctl_say("violations: --limit takes a number up to 10000");
		r = CTL_USAGE;
	}
	if (r == 0)
		r = begin(ctl, arg, id);
	if (r != 0)
		return r;
	out = service_begin(ctl, "admin.violations");
	if (arg != NULL)
		rpc_add_str(out, "sessionId", id);
	rpc_add_u64(out, "limit", limit);
	r = service_finish(ctl, rpc_client_end(ctl->client), &msg);
	if (r != 0)
		return r;
	if (ctl->json)
		r = put_json_member(&msg, "rows");
	for (size_t i = 0; !ctl->json && i < rpc_count(msg.result, "rows"); i++)
		put_violation(rpc_map_at(msg.result, "rows", i));
	rpc_done(&msg);
	return fflush(stdout) == 0 ? r : CTL_FAILED;
}

/* ---------------------------------------------------------------- kill */

static int
signal_one(struct ctl *ctl, const char *id, const char *exec,
    const char *signal)
{
	struct rpc_out *out = service_begin(ctl, "sandbox.signal");
	struct rpc_message msg;
	int r;

	rpc_add_str(out, "sessionId", id);
	rpc_add_str(out, "execId", exec);
	rpc_add_str(out, "signal", signal);
	r = service_finish(ctl, rpc_client_end(ctl->client), &msg);
	if (r == 0)
		rpc_done(&msg);
	return r;
}

/* "TERM" of "SIGTERM" or "TERM"; NULL for what sandbox.signal does not take
 * (SPEC K23). */
static const char *
signal_name(const char *typed)
{
	static const char *const names[] = { "INT", "TERM", "HUP", "QUIT",
		"KILL", "USR1", "USR2", "WINCH", "CONT", "STOP" };

	if (strncmp(typed, "SIG", 3) == 0)
		typed += 3;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], typed) == 0)
			return names[i];
	return NULL;
}

/* To one command, or to every command of the session. */
static int
kill_signal(struct ctl *ctl, const char *id, const struct show *show)
{
	const char *signal = signal_name(show->signal);
	struct rpc_message msg;
	int r;

	if (show->exec != NULL)
		return signal_one(ctl, id, show->exec, signal);
	r = service_call(ctl, "sandbox.get", id, &msg);
	if (r != 0)
		return r;
	for (size_t i = 0; r == 0 && i < rpc_count(msg.result, "execs"); i++) {
		const char *exec =
		    rpc_str(rpc_map_at(msg.result, "execs", i), "execId");

		if (exec != NULL)
			r = signal_one(ctl, id, exec, signal);
	}
	rpc_done(&msg);
	return r;
}

/* What a call answered, as JSON where wanted. */
static int
call_and_show(struct ctl *ctl, const char *method, const char *id)
{
	struct rpc_message msg;
	int r = service_call(ctl, method, id, &msg);

	if (r != 0)
		return r;
	if (ctl->json)
		r = put_json(msg.result);
	rpc_done(&msg);
	return r;
}

int
ctl_kill(struct ctl *ctl, int argc, char **argv)
{
	static const struct option_row rows[] = { OPTION_JSON,
		{ "-s", true, option_set_text, AT(signal), "SIGNAL",
		    "send a signal instead" },
		{ "--exec", true, option_set_text, AT(exec), "ID",
		    "only to this command" } };
	struct show show = { 0 };
	char id[SERVICE_ID_MAX];
	const char *arg;
	int r = read_args(ctl, "kill", rows, ARRAY_LEN(rows), &show, argc, argv,
	    1, 1, &arg);

	if (r == 0 && show.exec != NULL && show.signal == NULL) {
		ctl_say("kill: --exec needs -s");
		r = CTL_USAGE;
	}
	if (r == 0 && show.signal != NULL && signal_name(show.signal) == NULL) {
		ctl_say("kill: -s takes INT TERM HUP QUIT KILL USR1 USR2 WINCH "
			"CONT or STOP");
		r = CTL_USAGE;
	}
	if (r == 0)
		r = begin(ctl, arg, id);
	if (r != 0)
		return r;
	if (show.signal == NULL)
		return call_and_show(ctl, "sandbox.destroy", id);
	r = kill_signal(ctl, id, &show);
	if (r == 0 && ctl->json)
		(void)puts("{}");
	return r;
}

static int
freeze(struct ctl *ctl, const char *command, const char *method, int argc,
    char **argv)
{
	static const struct option_row rows[] = { OPTION_JSON };
	struct show show = { 0 };
	char id[SERVICE_ID_MAX];
	const char *arg;
	int r = read_args(ctl, command, rows, ARRAY_LEN(rows), &show, argc,
	    argv, 1, 1, &arg);

	if (r == 0)
		r = begin(ctl, arg, id);
	return r != 0 ? r : call_and_show(ctl, method, id);
}

int
ctl_pause(struct ctl *ctl, int argc, char **argv)
{
	return freeze(ctl, "pause", "sandbox.suspend", argc, argv);
}

int
ctl_resume(struct ctl *ctl, int argc, char **argv)
{
	return freeze(ctl, "resume", "sandbox.resume", argc, argv);
}

/* ---------------------------------------------------------------- probe */

/* The service tells what the host could do; runs are another matter. */
static const char *
not_built(const msgpack_object *backend)
{
	const msgpack_object *yes = rpc_find(backend, "available");

	return strcmp(text_of(backend, "backend", ""), "native") != 0 &&
		yes != NULL && yes->type == MSGPACK_OBJECT_BOOLEAN &&
		yes->via.boolean ?
	    " (runs with it are not in this version)" :
	    "";
}

static void
probe_rows(const msgpack_object *result)
{
	struct text_table t;
	char text[1024 + 64];

	text_table_init(&t, 3);
	for (size_t i = 0; i < rpc_count(result, "results"); i++) {
		const msgpack_object *r = rpc_map_at(result, "results", i);
		const char *hint = rpc_str(r, "installHint");

		text_table_add(&t, text_of(r, "backend", "-"));
		text_table_add(&t, text_of(r, "available", "no"));
		(void)snprintf(text, sizeof(text), "%s%s",
		    hint != NULL ? text_clean(hint) : text_of(r, "note", ""),
		    not_built(r));
		text_table_add(&t, text);
	}
	for (size_t i = 0; i < rpc_count(result, "mechanisms"); i++) {
		const msgpack_object *m = rpc_map_at(result, "mechanisms", i);

		text_table_add(&t, text_of(m, "name", "-"));
		text_table_add(&t, text_of(m, "available", "no"));
		text_table_add(&t, text_of(m, "detail", ""));
	}
	text_table_print(&t, stdout);
}

int
ctl_probe(struct ctl *ctl, int argc, char **argv)
{
	static const struct option_row rows[] = { OPTION_JSON };
	struct rpc_message status, probe;
	struct show show = { 0 };
	const char *arg;
	int r = read_args(ctl, "probe", rows, ARRAY_LEN(rows), &show, argc,
	    argv, 0, 0, &arg);

	if (r == 0)
		r = service_connect(ctl);
	if (r == 0)
		r = service_call(ctl, "status", NULL, &status);
	if (r != 0)
		return r;
	r = service_call(ctl, "probe", NULL, &probe);
	if (r == 0) {
		if (ctl->json) {
			r = put_json(probe.result);
		} else {
			(void)puts(text_of(status.result, "line", "-"));
			probe_rows(probe.result);
		}
		rpc_done(&probe);
	}
	rpc_done(&status);
	return fflush(stdout) == 0 ? r : CTL_FAILED;
}

/* ---------------------------------------------------------------- status */

static void
put_status(const msgpack_object *result)
{
	char up[UNITS_TEXT];

	(void)printf("%s\nsetting: %s\nversion: %s\nup: %s\nsessions: %s\n",
	    text_of(result, "line", "-"), text_of(result, "setting", "-"),
	    text_of(result, "version", "-"),
	    units_age_text(rpc_u64(result, "uptimeMs", 0), up),
	    text_of(result, "sessions", "-"));
	for (size_t i = 0; i < rpc_count(result, "backends"); i++) {
		const msgpack_object *b = rpc_map_at(result, "backends", i);

		(void)printf("%s: %s%s\n", text_of(b, "backend", "-"),
		    text_of(b, "note", text_of(b, "available", "no")),
		    not_built(b));
	}
}

int
ctl_status(struct ctl *ctl, int argc, char **argv)
{
	static const struct option_row rows[] = { OPTION_JSON };
	struct show show = { 0 };
	struct rpc_message msg;
	const char *arg;
	int r = read_args(ctl, "status", rows, ARRAY_LEN(rows), &show, argc,
	    argv, 0, 0, &arg);

	if (r == 0)
		r = service_connect(ctl);
	if (r == 0)
		r = service_call(ctl, "status", NULL, &msg);
	if (r != 0)
		return r;
	if (ctl->json)
		r = put_json(msg.result);
	else
		put_status(msg.result);
	rpc_done(&msg);
	return fflush(stdout) == 0 ? r : CTL_FAILED;
}

/* ---------------------------------------------------------------- reload */

/* Sentences that came and went, then what has not taken effect. */
static void
put_reload(const msgpack_object *result)
{
	for (size_t i = 0; i < rpc_count(result, "changed"); i++)
		(void)puts(text_clean(rpc_str_at(result, "changed", i)));
	for (size_t i = 0; i < rpc_count(result, "warnings"); i++) {
		const char *text = rpc_str_at(result, "warnings", i);

		/* A sentence of the configuration, or one about sessions. */
		if (strstr(text, "sessions ") != NULL)
			ctl_say("%s", text_clean(text));
		else
			ctl_say("%s takes effect with a restart",
			    text_clean(text));
	}
}

int
ctl_reload(struct ctl *ctl, int argc, char **argv)
{
	static const struct option_row rows[] = { OPTION_JSON };
	struct show show = { 0 };
	struct rpc_message msg;
	const char *arg;
	int r = read_args(ctl, "reload", rows, ARRAY_LEN(rows), &show, argc,
	    argv, 0, 0, &arg);

	if (r == 0)
		r = service_connect(ctl);
	if (r == 0)
		r = service_call(ctl, "admin.reload", NULL, &msg);
	if (r != 0)
		return r;
	if (ctl->json)
		r = put_json(msg.result);
	else
		put_reload(msg.result);
	rpc_done(&msg);
	return fflush(stdout) == 0 ? r : CTL_FAILED;
}
