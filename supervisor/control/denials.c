/*
 * In stockade-control: what a run's broker refused becomes a violation. Path,
 * program and pid come from a broker that a run may own; rule and remedy are
 * ours, but went the same way.
 */
#include <stdio.h>
#include <string.h>

#include "common/path.h"
#include "protocol/guard.h"
#include "protocol/peer.h"
#include "supervisor/control/control.h"
#include "supervisor/control/events.h"
#include "supervisor/control/name_rules.h"
#include "supervisor/control/refusals.h"
#include "supervisor/control/session.h"
#include "supervisor/control/violations.h"

#define EXEMPT "--name-exempt "

/* What of path lies below the longest root that holds it, or NULL. */
static const char *
below_root(const struct plan *plan, const char *path)
{
	const char *rel = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < plan->nroots; i++) {
		size_t len = strlen(plan->roots[i].path);

		if (len < longest || path[0] != '/' || path[len] != '/' ||
		    !path_is_within(path, plan->roots[i].path))
			continue;
		longest = len;
		rel = path + len + 1;
	}
	return rel;
}

static bool
is_git_path(const char *path)
{
	const char *base = strrchr(path, '/');

	return base != NULL &&
	    (strcasestr(path, "/.git/") != NULL ||
		strcasecmp(base, "/.git") == 0);
}

/* The table says how in general; here is the path that it is about. A rule of
 * git's in a repository that was there before comes without one. */
static const char *
remedy_of(struct session *s, const struct msg_denial *m, char *buf, size_t size)
{
	const struct guard_rule rule = { .class = DFA_BUILTIN,
		.remedy = m->remedy };
	const struct plan *plan;
	const char *rel = NULL;

	if (m->remedy[0] == '\0' && is_git_path(m->path))
		return refusals_mask_remedy(m->path);
	if (strncmp(m->remedy, EXEMPT, strlen(EXEMPT)) != 0)
		return m->remedy;
	plan = kept_plan(&s->kept, s->control->sessions->opened);
	if (plan != NULL)
		rel = below_root(plan, m->path);
	if (rel == NULL)
		return m->remedy;
	name_rules_remedy(&rule, rel, buf, size);
	return buf;
}

static struct session *
find(struct control *control, uint64_t sandbox)
{
	struct session *s;

	TAILQ_FOREACH (s, &control->sessions->list, entry)
		if (s->sandbox == sandbox)
			return s;
	return NULL;
}

int
sessions_on_denial(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_denial *m = &msg->denial;
	struct session *s = find(ctx, m->sandbox);
	char remedy[GUARD_REMEDY_MAX + 1];
	struct violation v = {
		.action = (enum violation_action)m->action,
		.target = m->path,
		.rule = m->rule,
		.exe = m->exe,
		.pid = m->pid,
		.count = m->count,
	};

	(void)peer;
	(void)fds;
	(void)nfds;
	if (s == NULL)
		return 0;
	/* More than the broker could keep apart. */
	if (m->path[0] == '\0')
		v.reason = "dropped";
	v.remedy = remedy_of(s, m, remedy, sizeof(remedy));
	violations_record(events_source_violations(s->source), &v);
	return 0;
}

/* ------------------------------------------------ new repositories */

/* SPEC D18. Path and names are a run's; notices are cleaned. */
int
sessions_on_repository(void *ctx, struct peer *peer, const union msg_any *msg,
    int *fds, size_t nfds)
{
	const struct msg_repository *m = &msg->repository;
	struct session *s = find(ctx, m->sandbox);
	char text[sizeof(m->path) + sizeof(m->programs) + 128];
	const char *what = "git runs nothing by itself in it";

	(void)peer;
	(void)fds;
	(void)nfds;
	if (s == NULL)
		return 0;
	if (m->state == REPOSITORY_GONE)
		what = "it is not there any more";
	else if (m->programs[0] != '\0')
		what = "git can run programs by its ";
	else if (m->state == REPOSITORY_UNREADABLE)
		what = "it could not be read";
	(void)snprintf(text, sizeof(text), "%s: %s%s%s", m->path, what,
	    m->programs,
	    m->state == REPOSITORY_UNREADABLE && m->programs[0] != '\0' ?
		"; not all of it could be read" :
		"");
	session_notice(s, "newRepository", text);
	return 0;
}
