/*
 * The handler of every method of protocol/methods.def, method_<id>. Those of
 * `hello` to `admin.reload` that need no session are in methods.c; sandbox.* is
 * in the session code.
 */
#ifndef SUPERVISOR_CONTROL_METHODS_H
#define SUPERVISOR_CONTROL_METHODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/rpc.h"

struct call;
struct control;

/* Parameters were checked and the caller may call it. Answers exactly once,
 * now or later (client.h). */
typedef void method_fn(struct control *, struct call *);

#define METHOD_BEGIN(id, name, who, errors, doc) method_fn method_##id;
#define PARAM(name, kind, need, min, max, doc)
#define RESULT(name, type, doc)
#define METHOD_END(id)
#define EVENT_BEGIN(id, name, doc)
#define FIELD(name, type, doc)
#define EVENT_END(id)
#include "protocol/methods.def"
#include "protocol/methods_undef.h"

struct method {
	const char *name;
	method_fn *fn;
	bool operator_only;
	uint64_t errors; /* 1 << enum api_error */
	const struct rpc_param *params;
	size_t nparams;
};

/* NULL when there is no such method. */
const struct method *method_find(const char *name);
extern const struct method method_table[];
extern const size_t method_rows;

#endif
