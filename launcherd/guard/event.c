/* See event.h. Pure. */
#include "launcherd/guard/event.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/guard.h"
#include "protocol/message.h"

void
guard_entry_paths_free(struct guard_entry_paths *paths)
{
	for (size_t i = 0; i < GUARD_ENTRIES; i++) {
		free(paths->path[i]);
		paths->path[i] = NULL;
	}
}

/* Appends "/" and the names, the last one first; what does not fit is left
 * out, leaf first, so that it shows. */
static size_t
append_names(char *out, size_t at, size_t size, const char *names, size_t len)
{
	while (len > 0) {
		size_t end = len - 1, begin = end; /* at the NUL */
		size_t n;

		while (begin > 0 && names[begin - 1] != '\0')
			begin--;
		n = end - begin;
		if (n + 1 >= size - at)
			break;
		out[at++] = '/';
		memcpy(out + at, names + begin, n);
		at += n;
		len = begin;
	}
	out[at] = '\0';
	return at;
}

static size_t
limit(size_t len, const char *names, size_t size)
{
	if (len > size || len == 0 || names[len - 1] != '\0')
		return 0;
	return len;
}

static void
put_rule(const struct guard_event *ev, const struct guard *guard,
    struct msg_denial *ret)
{
	const struct dfa_verdict v = { ev->denied, ev->rule };
	const struct guard_rule *rule;
	unsigned number = ev->rule;

	if (number != DFA_RULE_TOO_DEEP)
		number = guard_exact_rule(guard, v, ev->asked, ret->path,
		    strlen(ret->path), "", 0);
	rule = guard_rule(guard, number);
	if (rule == NULL)
		return;
	MSG_SET_STR(ret->rule, rule->text);
	MSG_SET_STR(ret->remedy, rule->remedy);
}

void
guard_event_denial(const struct guard_event *ev, const struct guard *guard,
    const struct guard_entry_paths *paths, struct msg_denial *ret)
{
	size_t len = limit(ev->path_len, ev->path, sizeof(ev->path));
	size_t exe = limit(ev->exe_len, ev->exe, sizeof(ev->exe));
	size_t at;

	memset(ret, 0, sizeof(*ret));
	ret->action =
	    ev->action < VIOLATION_COUNT ? ev->action : VIOLATION_FILE_DATA;
	ret->pid = ev->pid;
	ret->count = 1;
	if (ev->entry < GUARD_ENTRIES && paths->path[ev->entry] != NULL)
		MSG_SET_STR(ret->path, paths->path[ev->entry]);
	at = strlen(ret->path);
	(void)append_names(ret->path, at, sizeof(ret->path), ev->path, len);
	if (append_names(ret->exe, 0, sizeof(ret->exe), ev->exe, exe) == 0) {
		memcpy(ret->exe, ev->comm, sizeof(ev->comm));
		ret->exe[sizeof(ev->comm)] = '\0';
	}
	put_rule(ev, guard, ret);
}
