/*
 * sandbox.explain: of a live session or of what a spec would become; the plan,
 * or what the rules say of one path. In stockade-control. What the run's user
 * finds at the path is asked of stockade-lookup; without an answer the rules
 * alone are told.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "protocol/lookup.h"
#include "protocol/peer.h"
#include "protocol/rpc.h"
#include "supervisor/control/client.h"
#include "supervisor/control/control.h"
#include "supervisor/control/explain_path.h"
#include "supervisor/control/methods.h"
#include "supervisor/control/session.h"

void
explain_answer(struct call *call, const struct plan *plan,
    const struct guard *guard, const struct session_facts *facts,
    const struct launch *l)
{
	autofree struct explain_path *e = malloc(sizeof(*e));
	struct explain_path_in in = {
		.plan = plan,
		.guard = guard,
		.found = l->found,
		.read_only_mode = facts->mode != SPEC_CHAT,
	};
	struct pool pool = { NULL };

	in.path = explain_path_clean(&pool, l->path, plan);
	if (in.path == NULL) {
		call_fail(call, API_BAD_PATH, "path",
		    "path: a path without .. is expected");
	} else if (e == NULL) {
		call_fail_internal(call, -ENOMEM, "explain");
	} else {
		explain_path(&in, e);
		explain_path_put(e, call_begin(call));
		call_end(call);
	}
	pool_done(&pool);
}

static void
answer_plan(struct session *s, struct call *call)
{
	char digest[2 * PLAN_DIGEST + 1];
	struct rpc_out *out = call_begin(call);

	session_hex(s->digest, PLAN_DIGEST, digest);
	rpc_add_map(out, "plan");
	rpc_add_str(out, "digest", digest);
	explain_put_plan(session_plan_of(s), session_facts_of(s),
	    session_egress_of(s), session_guard_of(s), out);
	rpc_close(out);
	call_end(call);
}

void
method_sandbox_explain(struct control *control, struct call *call)
{
	const char *id = call_str(call, "sessionId");
	bool has_spec = rpc_find(call_params(call), "spec") != NULL;
	struct session *s;

	if (has_spec == (id != NULL)) {
		call_fail(call, API_BAD_PARAMS, "spec",
		    "exactly one of spec and sessionId is expected");
		return;
	}
	if (has_spec) {
		launch_start(control, call, true);
		return;
	}
	s = session_find(control, call_caller(call), id);
	if (s == NULL)
		call_fail(call, API_NOT_FOUND, NULL,
		    "there is no such session");
	else if (s->sandbox == 0 || s->state == SESSION_ERROR)
		call_fail(call, API_BAD_STATE, NULL, "the session is %s",
		    session_state_name(s->state));
	else if (call_str(call, "path") != NULL)
		launch_explain_path(s, call);
	else
		answer_plan(s, call);
}
