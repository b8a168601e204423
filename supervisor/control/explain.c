/*
 * In stockade-control: a plan as data (SPEC I16, K24), from what is in force:
 * the finished plan, the lists as they are sent, what the sandbox reported.
 * Values of variables are never shown.
 */
#include <stdio.h>
#include <string.h>

#include "common/size.h"
#include "protocol/egress.h"
#include "protocol/guard.h"
#include "protocol/rpc.h"
#include "supervisor/control/session.h"

struct mask_name {
	const char *deny;
	const char *how;
};
static const struct mask_name mask_names[] = {
	[PLAN_MASK_EMPTY_DIR] = { "read", "appears empty" },
	[PLAN_MASK_NO_FILE] = { "read", "cannot be opened or executed" },
	[PLAN_MASK_READ_ONLY] = { "write", "read-only" },
	[PLAN_MASK_PINNED] = { "rename", "stays in its place" },
};

static void
put_mounts(const struct plan *plan, struct rpc_out *out)
{
	rpc_add_array(out, "mounts");
	for (size_t i = 0; i < plan->nmounts; i++) {
		const struct plan_mount *mount = &plan->mounts[i];

		rpc_open_map(out);
		rpc_add_str(out, "path", mount->target);
		if (strcmp(mount->source, mount->target) != 0)
			rpc_add_str(out, "source", mount->source);
		rpc_add_bool(out, "readOnly", mount->read_only);
		rpc_add_str(out, "kind",
		    mount->kind == PLAN_DIR ? "directory" : "file");
		rpc_close(out);
	}
	rpc_close(out);
}

/* An answer has room for so many of the files that the start scan found; how
 * many there are is told in words. */
#define FOUND_SHOWN 2048

static void
put_masks(const struct plan *plan, struct rpc_out *out)
{
	size_t found = 0;

	rpc_add_array(out, "denied");
	for (size_t i = 0; i < plan->nmasks; i++) {
		const struct plan_mask *mask = &plan->masks[i];

		if (mask->found && found++ >= FOUND_SHOWN)
			continue;
		rpc_open_map(out);
		rpc_add_clean(out, "path", mask->path);
		rpc_add_str(out, "deny",
		    mask->system ? "execute" : mask_names[mask->how].deny);
		rpc_add_str(out, "how", mask_names[mask->how].how);
		rpc_close(out);
	}
	rpc_close(out);
}

static void
put_rules(const struct egress_rule *rules, size_t n, const char *key,
    struct rpc_out *out)
{
	rpc_add_array(out, key);
	for (size_t i = 0; i < n; i++) {
		rpc_open_map(out);
		rpc_put_key(out, "pattern");
		rpc_put_strn(out, (const char *)rules[i].pattern.data,
		    rules[i].pattern.len);
		rpc_put_key(out, "origin");
		rpc_put_strn(out, (const char *)rules[i].origin.data,
		    rules[i].origin.len);
		if (rules[i].port != 0)
			rpc_add_u64(out, "port", rules[i].port);
		rpc_close(out);
	}
	rpc_close(out);
}

static void
put_network(const struct egress_lists *egress, struct rpc_out *out)
{
	rpc_add_map(out, "network");
	rpc_add_bool(out, "enabled", egress->network);
	put_rules(egress->allow, egress->nallow, "allow", out);
	put_rules(egress->deny, egress->ndeny, "deny", out);
	rpc_add_array(out, "private");
	for (size_t i = 0; i < egress->nprivate; i++) {
		rpc_open_map(out);
		rpc_put_key(out, "range");
		rpc_put_strn(out, (const char *)egress->private_[i].cidr.data,
		    egress->private_[i].cidr.len);
		rpc_put_key(out, "host");
		rpc_put_strn(out, (const char *)egress->private_[i].host.data,
		    egress->private_[i].host.len);
		rpc_close(out);
	}
	rpc_close(out);
	rpc_close(out);
}

static void
put_limits(const struct plan *plan, const struct session_facts *facts,
    struct rpc_out *out)
{
	const struct plan_limits *limits = &plan->limits;

	/* 0: none */
	rpc_add_map(out, "limits");
	rpc_add_u64(out, "memoryBytes", limits->memory_bytes);
	rpc_add_u64(out, "pids", limits->pids);
	rpc_add_u64(out, "cpuMilli", limits->cpu_milli);
	rpc_add_u64(out, "tmpBytes", limits->tmp_bytes);
	rpc_add_u64(out, "homeBytes", limits->home_bytes);
	rpc_add_u64(out, "shmBytes", limits->shm_bytes);
	rpc_add_u64(out, "wallMs", facts->wall_ms);
	rpc_add_u64(out, "idleMs", facts->idle_ms);
	rpc_close(out);
}

static void
put_names(const struct plan *plan, const struct session_facts *facts,
    struct rpc_out *out)
{
	static const struct environ_set none = { NULL, 0 };
	struct environ_result env;

	rpc_add_array(out, "environment");
	if (plan_environ(facts, plan, &none, &env, NULL) == 0) {
		for (size_t i = 0; i < env.n; i++)
			rpc_put_str(out, env.names[i]);
		environ_done(&env);
	}
	rpc_close(out);
}

#define NAMES_SHOWN 256 /* of rules, and of exemptions */

static void
put_name_rules(const struct guard *guard, struct rpc_out *out)
{
	rpc_add_array(out, "rules");
	for (size_t i = 0; i < guard->nrules && i < NAMES_SHOWN; i++) {
		const struct guard_rule *rule = &guard->rules[i];

		rpc_open_map(out);
		rpc_add_clean(out, "pattern", rule->text);
		rpc_add_str(out, "origin", rule->origin);
		rpc_add_bool(out, "ignoreCase", rule->ignore_case);
		rpc_add_text(out, "remedy", rule->remedy);
		rpc_close(out);
	}
	rpc_close(out);
	rpc_add_array(out, "exemptions");
	for (size_t i = 0; i < guard->nexemptions && i < NAMES_SHOWN; i++) {
		const struct guard_exemption *e = &guard->exemptions[i];

		rpc_open_map(out);
		rpc_add_str(out, "pattern", e->text);
		rpc_add_str(out, "origin", e->origin);
		rpc_add_bool(out, "inForce", e->roots != 0);
		rpc_close(out);
	}
	rpc_close(out);
}

/* Below which places which names are denied; `more` of them are not listed. */
static void
put_guard(const struct guard *guard, const struct session_facts *facts,
    struct rpc_out *out)
{
	size_t more = 0;

	if (guard == NULL)
		return;
	if (guard->nrules > NAMES_SHOWN)
		more += guard->nrules - NAMES_SHOWN;
	if (guard->nexemptions > NAMES_SHOWN)
		more += guard->nexemptions - NAMES_SHOWN;
	rpc_add_map(out, "names");
	rpc_add_u64(out, "generation", facts->generation);
	rpc_add_str(out, "newRepositories",
	    guard->new_repositories ? "allow" : "deny");
	rpc_add_array(out, "places");
	for (size_t i = 0; i < guard->nroots; i++)
		if (!guard->roots[i].empty)
			rpc_put_str(out, guard->roots[i].path);
	rpc_close(out);
	put_name_rules(guard, out);
	rpc_add_u64(out, "more", more);
	rpc_close(out);
}

static size_t
exemptions_in_force(const struct guard *guard)
{
	size_t n = 0;

	for (size_t i = 0; i < guard->nexemptions; i++)
		n += guard->exemptions[i].roots != 0;
	return n;
}

static void
put_names_words(const struct guard *guard, struct rpc_out *out)
{
	char text[160];
	size_t places = 0;

	if (guard == NULL) {
		rpc_put_str(out, "writes no directory of the host");
		return;
	}
	for (size_t i = 0; i < guard->nroots; i++)
		places += !guard->roots[i].empty;
	(void)snprintf(text, sizeof(text),
	    "below %zu writable places makes, writes, moves and removes no "
	    "file that one of %zu rules names; %zu exemptions",
	    places, guard->nrules, exemptions_in_force(guard));
	rpc_put_str(out, text);
	if (guard->new_repositories)
		rpc_put_str(out,
		    "may configure the git repositories that it makes");
}

static void
put_words(const struct plan *plan, const struct session_facts *facts,
    const struct egress_lists *egress, const struct guard *guard,
    struct rpc_out *out)
{
	size_t writable = 0, masked = 0;
	char text[160];

	for (size_t i = 0; i < plan->nmounts; i++)
		writable += !plan->mounts[i].read_only;
	for (size_t i = 0; i < plan->nmasks; i++)
		masked += !plan->masks[i].system &&
		    plan->masks[i].how != PLAN_MASK_PINNED;
	rpc_add_array(out, "words");
	(void)snprintf(text, sizeof(text), "runs as %s (uid %llu) in mode %s",
	    facts->user, (unsigned long long)facts->uid,
	    spec_mode_name((enum spec_mode)facts->mode));
	rpc_put_str(out, text);
	(void)snprintf(text, sizeof(text),
	    "sees %zu mounts, %zu of them "
	    "writable, and the read-only system; %zu paths inside them are "
	    "denied",
	    plan->nmounts, writable, masked);
	rpc_put_str(out, text);
	put_names_words(guard, out);
	if (egress->network)
		(void)snprintf(text, sizeof(text),
		    "reaches the network only "
		    "through its own proxies, by %zu rules",
		    egress->nallow);
	else
		(void)snprintf(text, sizeof(text), "reaches no network");
	rpc_put_str(out, text);
	rpc_close(out);
}

void
explain_put_plan(const struct plan *plan, const struct session_facts *facts,
    const struct egress_lists *egress, const struct guard *guard,
    struct rpc_out *out)
{
	rpc_add_str(out, "backend", "native");
	rpc_add_str(out, "mode", spec_mode_name((enum spec_mode)facts->mode));
	rpc_add_str(out, "user", facts->user);
	rpc_add_u64(out, "uid", facts->uid);
	rpc_add_str(out, "home", plan->home);
	rpc_add_str(out, "workdir", plan->cwd);
	rpc_add_bool(out, "userNamespaces", plan->userns);
	put_words(plan, facts, egress, guard, out);
	put_mounts(plan, out);
	put_masks(plan, out);
	put_guard(guard, facts, out);
	put_network(egress, out);
	put_names(plan, facts, out);
	put_limits(plan, facts, out);
}

/* ------------------------------------------------ confinement */

static void
put_one(struct rpc_out *out, const char *name, const char *value,
    const char *reason)
{
	rpc_add_map(out, name);
	rpc_add_str(out, "value", value);
	rpc_add_str(out, "reason", reason);
	rpc_close(out);
}

static void
put_files(const struct session_facts *facts, const struct plan *plan,
    struct rpc_out *out)
{
	char text[256];

	if (plan->nmounts == 0 && facts->unmasked == 0) {
		put_one(out, "files", "enforced",
		    "nothing of the host but "
		    "the read-only system is in its view");
		return;
	}
	(void)snprintf(text, sizeof(text),
	    "only mounted paths exist in its "
	    "view; socket files in them are hidden as they were at the "
	    "launch%s",
	    facts->unmasked != 0 ? "; some denied programs share their file "
				   "with others and are not hidden" :
				   "");
	put_one(out, "files", "partial", text);
}

static void
put_kernel(uint64_t landlock_abi, uint64_t limits_unset, struct rpc_out *out)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
	    "namespaces and seccomp%s, no "
	    "kernel boundary%s",
	    landlock_abi == 0 ? ", no Landlock" : " and Landlock",
	    limits_unset != 0 ? "; a default limit has no controller" : "");
	put_one(out, "kernel",
	    landlock_abi == 0 || limits_unset != 0 ? "partial" : "enforced",
	    text);
}

/* The kernel judges every access by the name, so that only files that have
 * another name besides can have been overlooked. */
static void
put_names_kernel(const struct session_facts *facts, struct rpc_out *out)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
	    "no file with a protected name is made, written, moved or removed, "
	    "nor its mode, owner, times and attributes changed, whoever made "
	    "it%s%s",
	    *facts->scan_gaps == '\0' ?
		"" :
		"; other names of protected files that existed at the launch "
		"may have been overlooked: ",
	    facts->scan_gaps);
	put_one(out, "names",
	    *facts->scan_gaps == '\0' ? "enforced" : "partial", text);
}

/* What the broker does not see is said: it judges names and content. */
static void
put_names_guarded(const struct session_facts *facts, const struct plan *plan,
    struct rpc_out *out)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
	    "no file with a protected name is made, written, moved or "
	    "removed; one that a program of the host makes later has its "
	    "content guarded, but not its mode, owner, times and attributes, "
	    "and a socket file of that kind can be connected to%s%s%s",
	    facts->generation > 1 ?
		"; files that match a rule which came after the launch are "
		"guarded by their content alone" :
		"",
	    *facts->scan_gaps == '\0' ?
		"" :
		"; protected files that existed at the launch may have been "
		"overlooked: ",
	    facts->scan_gaps);
	if (plan->nroots > 0)
		put_one(out, "names", "partial", text);
	else
		put_one(out, "names", "enforced",
		    "no directory of the host is writable in it");
}

void
explain_put_confinement(const struct session *s,
    const struct session_facts *facts, const struct plan *plan,
    struct rpc_out *out)
{
	put_files(facts, plan, out);
	if (s->kernel_guard)
		put_names_kernel(facts, out);
	else
		put_names_guarded(facts, plan, out);
	put_one(out, "network", "enforced",
	    facts->network ?
		"only through its own proxies to listed names; the name inside "
		"TLS is not compared in this version" :
		"the network is off");
	put_one(out, "environment", "enforced",
	    "starts from a fixed list, injection variables are removed");
	put_one(out, "commands", "none",
	    "the command policy is not in this version");
	put_one(out, "push", "none",
	    "the push gateway is not in this "
	    "version; the run is given no credential");
	put_kernel(s->landlock_abi, s->limits_unset, out);
}
