/*
 * The method table, and the methods that need no session code: hello, ping,
 * probe, status, events.*, admin.*. In stockade-control; parameters passed the
 * table's checks before they come here.
 */
#include "supervisor/control/methods.h"

#include <sys/sysinfo.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/size.h"
#include "config.h"
#include "supervisor/control/client.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/violations.h"

#define MEMORY_LEAST (UINT64_C(512) << 20)
#define NOFILE_OTHER 512 /* descriptors of proxyd that are no tunnel's */
#define VIOLATION_ROWS 100 /* of admin.violations without a limit */
#define ROWS_MAX 10000
#define UIDS_MAX 256 /* rows of admin.status */

/* ---------------------------------------------------------------- table */

/* Macro tables are laid out by hand. */
/* clang-format off */
#define REQUIRED true
#define OPTIONAL false
#define METHOD_BEGIN(id, name, who, errors, doc) \
	static const struct rpc_param params_##id[] = {
#define PARAM(name, kind, need, min, max, doc) \
		{ (name), RPC_##kind, (need), (min), (max) },
#define RESULT(name, type, doc)
#define METHOD_END(id) { NULL, RPC_ANY, false, 0, 0 } };
#define EVENT_BEGIN(id, name, doc)
#define FIELD(name, type, doc)
#define EVENT_END(id)
#include "protocol/methods.def"
#include "protocol/methods_undef.h"

#define ANYONE false
#define OPERATOR true
#define E(code) (UINT64_C(1) << API_##code)
const struct method method_table[] = {
#define METHOD_BEGIN(id, name, who, errors, doc) \
	{ (name), method_##id, (who), (errors), params_##id, \
	    ARRAY_LEN(params_##id) - 1 },
#define PARAM(name, kind, need, min, max, doc)
#define RESULT(name, type, doc)
#define METHOD_END(id)
#define EVENT_BEGIN(id, name, doc)
#define FIELD(name, type, doc)
#define EVENT_END(id)
#include "protocol/methods.def"
#include "protocol/methods_undef.h"
};
/* clang-format on */
const size_t method_rows = ARRAY_LEN(method_table);

const struct method *
method_find(const char *name)
{
	for (size_t i = 0; i < method_rows; i++)
		if (strcmp(method_table[i].name, name) == 0)
			return &method_table[i];
	return NULL;
}

/* ---------------------------------------------------------------- service */

/* The value that a row has on this host. */
static uint64_t
limit_value(const struct control *control, size_t row)
{
	uint64_t value = control->conf->limits[row];
	uint64_t most = (control->nofile - NOFILE_OTHER) / 2;
	struct sysinfo si;

	/* proxyd has the same limit of descriptors (SPEC AB). */
	if (row == LIMIT_TUNNELS && control->nofile > NOFILE_OTHER &&
	    most < value)
		return most;
	if (value != LIMIT_AUTO)
		return value;
	if (sysinfo(&si) != 0)
		return MEMORY_LEAST;
	value = (uint64_t)si.totalram * si.mem_unit / 2;
	return value > MEMORY_LEAST ? value : MEMORY_LEAST;
}

static void
put_limits(const struct control *control, struct rpc_out *out)
{
	rpc_add_map(out, "limits");
	for (size_t i = 0; i < LIMIT_ROWS; i++) {
		uint64_t value = limit_value(control, i);

		if (limit_table[i].announced == NULL)
			continue;
		rpc_put_key(out, limit_table[i].announced);
		if (value == LIMIT_NONE)
			rpc_put_nil(out);
		else
			rpc_put_u64(out, value);
	}
	for (size_t i = 0; i < limit_fixed_rows; i++)
		if (limit_fixed_table[i].announced != NULL)
			rpc_add_u64(out, limit_fixed_table[i].announced,
			    limit_fixed_table[i].value);
	rpc_close(out);
}

void
method_hello(struct control *control, struct call *call)
{
	struct client *client = call_client(call);
	const struct caller *who = call_caller(call);
	struct rpc_out *out;

	if (call_u64(call, "protocol", 0) != RPC_PROTOCOL) {
		call_fail(call, API_VERSION_MISMATCH, NULL,
		    "this service speaks version %d of the protocol",
		    RPC_PROTOCOL);
		client_welcome(client, false);
		return;
	}
	client_welcome(client, true);
	log_event(EV_CLIENT_ACCEPTED, LF_NUM(LK_CLIENT, who->client),
	    LF_NUM(LK_PEER_UID, who->uid),
	    LF_STR(LK_NAME, call_str(call, "client")));
	out = call_begin(call);
	rpc_add_str(out, "server", "stockade");
	rpc_add_str(out, "version", PACKAGE_VERSION);
	rpc_add_u64(out, "protocol", RPC_PROTOCOL);
	rpc_add_u64(out, "uid", who->uid);
	rpc_add_str(out, "role", who->is_operator ? "operator" : "client");
	put_limits(control, out);
	call_end(call);
}

void
method_ping(struct control *control, struct call *call)
{
	(void)control;
	rpc_add_u64(call_begin(call), "time", control_time_ms());
	call_end(call);
}

static const enum backend backends_shown[] = { BACKEND_MICROVM, BACKEND_NATIVE,
	BACKEND_NONE };

void
method_probe(struct control *control, struct call *call)
{
	const struct probe_report *report = &control->probe.report;
	struct rpc_out *out = call_begin(call);

	rpc_add_map(out, "platform");
	rpc_add_str(out, "system", control->host.sysname);
	rpc_add_str(out, "release", control->host.release);
	rpc_add_str(out, "machine", control->host.machine);
	rpc_close(out);
	rpc_add_str(out, "recommendation",
	    backend_name(report->recommendation));
	rpc_add_array(out, "results");
	for (size_t i = 0; i < ARRAY_LEN(backends_shown); i++) {
		const struct probe_result *r =
		    &report->results[backends_shown[i]];

		rpc_open_map(out);
		rpc_add_str(out, "backend", backend_name(r->backend));
		rpc_add_bool(out, "available", r->available);
		rpc_add_bool(out, "requiresInstall", r->requires_install);
		rpc_add_text(out, "installHint", r->install_hint);
		rpc_add_str(out, "note", r->note);
		if (r->backend == BACKEND_NATIVE)
			rpc_add_bool(out, "dispatchable", r->dispatchable);
		rpc_close(out);
	}
	rpc_close(out);
	rpc_add_array(out, "mechanisms");
	for (size_t i = 0; i < PROBE_MECHANISMS; i++) {
		rpc_open_map(out);
		rpc_add_str(out, "name", report->mechanisms[i].name);
		rpc_add_bool(out, "available", report->mechanisms[i].available);
		rpc_add_str(out, "detail", report->mechanisms[i].detail);
		rpc_close(out);
	}
	call_end(call);
}

void
method_status(struct control *control, struct call *call)
{
	const struct probe_report *report = &control->probe.report;
	const struct probe_mechanism *guard =
	    &report->mechanisms[PROBE_GUARD_CREATE];
	struct rpc_out *out = call_begin(call);

	rpc_add_str(out, "setting", setting_name(control->setting.setting));
	rpc_add_str(out, "line", report->line);
	rpc_add_array(out, "backends");
	for (size_t i = 0; i < ARRAY_LEN(backends_shown); i++) {
		const struct probe_result *r =
		    &report->results[backends_shown[i]];

		rpc_open_map(out);
		rpc_add_str(out, "backend", backend_name(r->backend));
		rpc_add_str(out, "label", backend_label(r->backend));
		rpc_add_bool(out, "available", r->available);
		rpc_add_str(out, "note", r->note);
		rpc_close(out);
	}
	rpc_close(out);
	rpc_add_map(out, "guard");
	rpc_add_bool(out, "available", guard->available);
	rpc_add_str(out, "detail", guard->detail);
	rpc_close(out);
	rpc_add_str(out, "version", PACKAGE_VERSION);
	rpc_add_u64(out, "uptimeMs", control_clock_ms() - control->started_ms);
	rpc_add_u64(out, "sessions",
	    sessions_count(control, call_caller(call)));
	call_end(call);
}

/* ---------------------------------------------------------------- events */

/* The mask of parameter `types`; false when one of them is no type. */
static bool
read_types(const struct call *call, uint32_t *ret_mask)
{
	const msgpack_object *params = call_params(call);
	size_t n = rpc_count(params, "types");
	uint32_t mask = 0;

	for (size_t i = 0; i < n; i++) {
		int type = rpc_event_find(rpc_str_at(params, "types", i));

		if (type < 0)
			return false;
		mask |= UINT32_C(1) << type;
	}
	*ret_mask = mask;
	return true;
}

static void
fail_subscribe(struct call *call, int error)
{
	if (error == -ESTALE)
		call_fail(call, API_GONE, "since",
		    "events from there on are no longer kept");
	else if (error == -ENOSPC)
		call_fail(call, API_LIMIT, NULL,
		    "more than %d subscriptions of one connection",
		    EVENTS_SUBSCRIPTIONS_MAX);
	else
		call_fail_internal(call, error, "subscribe");
}

void
method_events_subscribe(struct control *control, struct call *call)
{
	const char *session = call_str(call, "sessionId");
	uint64_t since = call_u64(call, "since", 0), number, next = 0;
	struct events_source *src = NULL;
	struct rpc_out *out;
	uint32_t types;
	int r;

	if (!read_types(call, &types)) {
		call_fail(call, API_BAD_PARAMS, "types",
		    "types has a name that is no event type");
		return;
	}
	if (since != 0 && session == NULL) {
		call_fail(call, API_BAD_PARAMS, "since",
		    "since needs sessionId");
		return;
	}
	if (session != NULL) {
		src = sessions_source(control, call_caller(call), session);
		if (src == NULL) {
			call_fail(call, API_NOT_FOUND, NULL, "no such session");
			return;
		}
	}
	r = events_subscribe(control->events, call_client(call), src, types,
	    since, &number, &next);
	if (r != 0) {
		fail_subscribe(call, r);
		return;
	}
	out = call_begin(call);
	rpc_add_u64(out, "subscription", number);
	if (src != NULL)
		rpc_add_u64(out, "next", next);
	call_end(call);
}

void
method_events_unsubscribe(struct control *control, struct call *call)
{
	(void)control;
	if (events_unsubscribe(call_client(call),
		call_u64(call, "subscription", 0)) != 0)
		call_fail(call, API_NOT_FOUND, NULL, "no such subscription");
	else
		call_ok(call);
}

/* ---------------------------------------------------------------- operator */

/* The filters of the admin.* methods. */
struct filter {
	const struct caller *who;
	bool has_uid;
	uint64_t uid;
	const char *session;
	uint64_t since_ms;
	size_t limit;
};

static struct filter
read_filter(const struct call *call, size_t limit)
{
	struct filter f = {
		.who = call_caller(call),
		.has_uid = rpc_find(call_params(call), "uid") != NULL,
		.uid = call_u64(call, "uid", 0),
		.session = call_str(call, "sessionId"),
		.since_ms = call_u64(call, "since", 0),
		.limit = (size_t)call_u64(call, "limit", limit),
	};

	return f;
}

static bool
filter_uid(const struct filter *f, uid_t uid)
{
	return caller_may_see(f->who, uid) && (!f->has_uid || f->uid == uid);
}

/* Connections and sessions by user. */
struct tally {
	const struct filter *filter;
	size_t n;
	struct {
		uid_t uid;
		uint64_t connections;
		uint64_t sessions;
	} row[UIDS_MAX];
};

static void
tally_add(struct tally *t, uid_t uid, uint64_t connections, uint64_t sessions)
{
	size_t i;

	if (!filter_uid(t->filter, uid))
		return;
	for (i = 0; i < t->n; i++)
		if (t->row[i].uid == uid)
			break;
	if (i == UIDS_MAX)
		return;
	if (i == t->n) {
		t->row[i].uid = uid;
		t->row[i].connections = t->row[i].sessions = 0;
		t->n++;
	}
	t->row[i].connections += connections;
	t->row[i].sessions += sessions;
}

static void
tally_client(void *arg, const struct caller *who)
{
	tally_add(arg, who->uid, 1, 0);
}

static void
tally_source(void *arg, struct events_source *src)
{
	tally_add(arg, events_source_owner(src), 0, 1);
}

void
method_admin_status(struct control *control, struct call *call)
{
	struct filter filter = read_filter(call, ROWS_MAX);
	struct tally t = { .filter = &filter };
	struct rpc_out *out;

	clients_each(control->clients, tally_client, &t);
	events_each(control->events, filter.who, tally_source, &t);
	out = call_begin(call);
	rpc_add_array(out, "rows");
	for (size_t i = 0; i < t.n && i < filter.limit; i++) {
		rpc_open_map(out);
		rpc_add_u64(out, "uid", t.row[i].uid);
		rpc_add_u64(out, "connections", t.row[i].connections);
		rpc_add_u64(out, "sessions", t.row[i].sessions);
		rpc_close(out);
	}
	call_end(call);
}

void
method_admin_sessions(struct control *control, struct call *call)
{
	struct filter filter = read_filter(call, ROWS_MAX);
	struct sessions_filter f = { filter.has_uid, filter.uid, filter.session,
		filter.limit };
	struct rpc_out *out = call_begin(call);

	rpc_add_array(out, "rows");
	sessions_put_rows(control, filter.who, &f, out);
	call_end(call);
}

struct violation_rows {
	const struct filter *filter;
	size_t left;
	struct rpc_out *out;
};

static void
put_violations(void *arg, struct events_source *src)
{
	struct violation_rows *rows = arg;

	if (!filter_uid(rows->filter, events_source_owner(src)))
		return;
	if (rows->filter->session != NULL &&
	    strcmp(rows->filter->session, events_source_session(src)) != 0)
		return;
	rows->left -= violations_put_rows(events_source_violations(src),
	    rows->filter->since_ms, rows->left, rows->out);
}

void
method_admin_violations(struct control *control, struct call *call)
{
	struct filter filter = read_filter(call, VIOLATION_ROWS);
	struct violation_rows rows = { &filter, filter.limit, NULL };

	rows.out = call_begin(call);
	rpc_add_array(rows.out, "rows");
	events_each(control->events, filter.who, put_violations, &rows);
	call_end(call);
}

void
method_admin_reload(struct control *control, struct call *call)
{
	reload_for(control, call);
}
