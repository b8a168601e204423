/* See remedy.h. A message that no row knows is printed as it came. */
#include "supervisor/ctl/remedy.h"

#include <stdio.h>
#include <string.h>

#include "common/size.h"
#include "protocol/rpc.h"
#include "supervisor/ctl/ctl.h"
#include "supervisor/ctl/text.h"

/* How a message about a field begins, and the option that made the field. */
static const struct {
	const char *begin;
	const char *option;
} fields[] = {
	{ "egressAllowlist: ", "--allow: " },
	{ "runnerStateDirs: ", "--adapter: " },
	{ "guestWorkdir: ", "-C: " },
	{ "cwd: ", "-C: " },
	{ "limits.memoryBytes ", "--memory: " },
	{ "limits.pids ", "--pids: " },
	{ "limits.cpus ", "--cpus: " },
	{ "limits: ", "--cpus: " },
	{ "timeoutMs ", "--timeout: " },
	{ "timeoutMs: ", "--timeout: " },
	{ "user: ", "--user: " },
	{ "mode: ", "--mode: " },
	{ "env: ", "--env: " },
};

/* What helps, for a message that begins so or has the words in it. */
static const struct {
	const char *begin;
	const char *words;
	const char *behind;
} remedies[] = {
	{ "", "a run needs a user that is not root",
	    "; use --user NAME, or run-user in stockade.conf" },
	{ "unknown backend ", "", "; only native is in this version" },
	{ "bindMounts: ", "cannot be given as a whole",
	    "; name a directory below it" },
	{ "bindMounts: ", "is given twice", "; give it once" },
	{ "limits.memoryBytes ", "out of range", "; 1M is the least" },
	{ "limits.pids ", "out of range", "; 2 to 4194304" },
	{ "mode: ", "", "; chat, review, plan or orchestrate" },
};

static void
find_option(const struct ctl *ctl, const char *message, struct remedy *ret)
{
	static const char mounts[] = "bindMounts: ";

	/* Others are the directory and what PATH reaches. */
	if (strncmp(message, mounts, strlen(mounts)) == 0) {
		ret->option = ctl->mounts ? "--mount " : "the mount of ";
		ret->skip = strlen(mounts);
	}
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strncmp(message, fields[i].begin,
			strlen(fields[i].begin)) == 0) {
			ret->option = fields[i].option;
			ret->skip = strlen(fields[i].begin);
			return;
		}
}

/* The names that --types takes. */
static void
put_types(char *to, size_t size)
{
	size_t len = 0;

	for (unsigned i = 0; i < RPC_EVENT_COUNT && len < size; i++)
		len += (size_t)snprintf(to + len, size - len, "%s%s",
		    i == 0 ? "; the types are " : ", ", rpc_event_name(i));
}

void
remedy_find(const struct ctl *ctl, const char *message, struct remedy *ret)
{
	*ret = (struct remedy){ .option = NULL };
	find_option(ctl, message, ret);
	if (strcmp(message, "the session is suspended") == 0 &&
	    ctl->session != NULL) {
		(void)snprintf(ret->behind, sizeof(ret->behind),
		    "; stockadectl resume %s", text_clean(ctl->session));
		return;
	}
	if (strcmp(message, "types has a name that is no event type") == 0) {
		put_types(ret->behind, sizeof(ret->behind));
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(remedies); i++)
		if (strncmp(message, remedies[i].begin,
			strlen(remedies[i].begin)) == 0 &&
		    strstr(message, remedies[i].words) != NULL) {
			(void)snprintf(ret->behind, sizeof(ret->behind), "%s",
			    remedies[i].behind);
			return;
		}
}
