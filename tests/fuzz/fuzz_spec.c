/*
 * spec.c on a client's bytes, behind the scan that stands before it. What it
 * accepts has clean absolute paths, checked labels and counts within the
 * limits; what it refuses has a code and a text. Paths are cleaned to a fixed
 * point.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "protocol/rpc.h"
#include "supervisor/control/limits.h"
#include "supervisor/control/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
check_paths(const struct spec_list *list, size_t max)
{
	assert(list->n <= max);
	for (size_t i = 0; i < list->n; i++)
		assert(path_is_clean(list->items[i]));
}

static void
check_env(const struct spec_env *env)
{
	size_t total = 0;

	assert(env->n <= LIMIT_FIXED_ENV_NAMES);
	for (size_t i = 0; i < env->n; i++)
		if (env->values[i] != NULL)
			total += strlen(env->values[i]);
	assert(total <= LIMIT_FIXED_ENV_TOTAL);
}

static void
check(const struct spec *spec)
{
	assert(spec_label_ok(spec->session_id, strlen(spec->session_id)));
	assert(spec_label_ok(spec->workspace_id, strlen(spec->workspace_id)));
	assert(spec->nmounts <= LIMIT_FIXED_BIND_MOUNTS);
	for (size_t i = 0; i < spec->nmounts; i++)
		assert(path_is_clean(spec->mounts[i].path));
	check_paths(&spec->protected_paths, LIMIT_FIXED_PROTECTED_PATHS);
	check_paths(&spec->state_dirs, LIMIT_FIXED_STATE_DIRS);
	check_paths(&spec->deny_read, LIMIT_FIXED_DENY_PATHS);
	check_paths(&spec->deny_write, LIMIT_FIXED_DENY_PATHS);
	check_env(&spec->env);
	check_env(&spec->pass_env);
	assert(spec->workdir == NULL || path_is_clean(spec->workdir));
	assert(spec->mode < SPEC_MODES);
	assert(spec->gone_ms <= LIMIT_FIXED_GONE_MS);
	for (size_t i = 0; i < spec->deny_read.n; i++)
		assert(strpbrk(spec->deny_read.items[i], "*?") == NULL);
}

static void
try_path(const uint8_t *data, size_t len)
{
	struct pool pool = { NULL };
	const char *once, *twice;

	once = spec_path_clean(&pool, (const char *)data, len);
	if (once != NULL) {
		assert(path_is_clean(once));
		twice = spec_path_clean(&pool, once, strlen(once));
		assert(twice != NULL && strcmp(once, twice) == 0);
	}
	pool_done(&pool);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rpc_scan scan = { 0 };
	struct rpc_message msg = { 0 };
	struct spec_fault fault;
	struct spec *spec = NULL;
	size_t whole;

	try_path(data, len);
	if (rpc_scan(&scan, data, len, &whole, NULL) != 1 ||
	    rpc_unpack(data, whole, &msg) != 0)
		return 0;
	if (msg.params != NULL) {
		if (spec_parse(msg.params, &spec, &fault) == 0)
			check(spec);
		else
			assert(fault.code != API_OK && fault.text[0] != '\0');
	}
	spec_free(spec);
	rpc_done(&msg);
	return 0;
}
