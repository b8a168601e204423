/* What --adapter adds to a run; see adapters.h. Pure. */
#include "supervisor/ctl/adapters.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/path.h"
#include "common/size.h"

static const struct adapter adapters[] = {
#define ADAPTER(name, state_dir, state_variable, always) \
	{ name, state_dir, state_variable, always },
#include "supervisor/ctl/adapters.def"
};

static const struct {
	const char *adapter;
	const char *variable;
} passed[] = {
#define ADAPTER_PASS(name, variable) { name, variable },
#include "supervisor/ctl/adapters.def"
};

char *
adapters_no_environment(const char *name)
{
	(void)name;
	return NULL;
}

const struct adapter *
adapters_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(adapters); i++)
		if (strcmp(adapters[i].name, name) == 0)
			return &adapters[i];
	return NULL;
}

const char *
adapters_name(size_t i)
{
	return i < ARRAY_LEN(adapters) ? adapters[i].name : NULL;
}

/* The caller's own value; an empty one counts as not set. */
static const char *
given(const struct adapter *a, adapters_env_fn *env)
{
	const char *value;

	if (a->state_variable == NULL)
		return NULL;
	value = env(a->state_variable);
	return value != NULL && *value != '\0' ? value : NULL;
}

int
adapters_state(const struct adapter *a, const char *home, adapters_env_fn *env,
    char ret_dir[ADAPTERS_PATH])
{
	const char *value = given(a, env);
	char path[ADAPTERS_PATH];
	size_t len;
	int n;

	if (a->state_dir == NULL)
		return 0;
	if (value != NULL)
		n = snprintf(path, sizeof(path), "%s", value);
	else
		n = snprintf(path, sizeof(path), "%s/%s", home, a->state_dir);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	/* People write a slash at the end of a directory. */
	for (len = (size_t)n; len > 1 && path[len - 1] == '/'; len--)
		path[len - 1] = '\0';
	if (!path_is_clean(path) || path[1] == '\0')
		return -EINVAL;
	memcpy(ret_dir, path, len + 1);
	return 1;
}

bool
adapters_sets_variable(const struct adapter *a, adapters_env_fn *env)
{
	return a->state_variable != NULL &&
	    (a->always || given(a, env) != NULL);
}

const char *
adapters_pass(const struct adapter *a, size_t i)
{
	for (size_t k = 0; k < ARRAY_LEN(passed); k++)
		if (strcmp(passed[k].adapter, a->name) == 0 && i-- == 0)
			return passed[k].variable;
	return NULL;
}
