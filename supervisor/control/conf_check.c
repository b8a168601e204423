/*
 * What can only be checked when the whole configuration is read: sentences
 * that contradict each other (SPEC Z2), and values that follow from others.
 * Runs in stockade-control.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "protocol/egress.h"
#include "supervisor/control/conf_build.h"
#include "supervisor/control/conf_value.h"
#include "supervisor/control/lists.h"

#define SOCKET_NAME "control.sock"

/* The place of a sentence that may stand once; the file if it does not. */
static struct conf_origin
place_of(const struct build *b, enum build_once which)
{
	struct conf_origin at = b->once[which];

	if (at.file == NULL)
		at = (struct conf_origin){ b->conf->files.list[0].name, 0 };
	return at;
}

/* A host that is opened, against what is always or here denied. */
static void
check_denied(struct build *b, const struct conf_host *host, const char *what)
{
	const struct conf_hosts *deny = &b->conf->deny_hosts;
	const char *fixed = lists_deny_find(host->pattern);

	if (fixed != NULL) {
		build_error(b, &host->origin,
		    "%s \"%s\": \"%s\" is always "
		    "denied",
		    what, host->pattern, fixed);
		return;
	}
	for (size_t i = 0; i < deny->n; i++) {
		const struct conf_host *d = &deny->list[i];

		if (!hostname_deny_match(d->pattern, host->pattern))
			continue;
		build_error(b, &host->origin,
		    "%s \"%s\" contradicts "
		    "deny host \"%s\" in %s:%u",
		    what, host->pattern, d->pattern, d->origin.file,
		    d->origin.line);
		return;
	}
}

static void
check_hosts(struct build *b)
{
	const struct conf *conf = b->conf;

	for (size_t i = 0; i < conf->allow_hosts.n; i++)
		check_denied(b, &conf->allow_hosts.list[i], "allow host");
	for (size_t i = 0; i < conf->privates.n; i++) {
		const struct conf_hosts *hosts = &conf->privates.list[i].hosts;

		for (size_t j = 0; j < hosts->n; j++)
			check_denied(b, &hosts->list[j], "permit private for");
	}
	for (size_t i = 0; i < conf->baseline_except.n; i++) {
		const struct conf_name *except = &conf->baseline_except.list[i];

		for (size_t j = 0; j < conf->allow_hosts.n; j++) {
			const struct conf_host *h = &conf->allow_hosts.list[j];

			/* with a port it is a narrower rule of its own */
			if (h->port != 0 ||
			    strcmp(h->pattern, except->name) != 0)
				continue;
			build_error(b, &h->origin,
			    "allow host \"%s\" "
			    "contradicts baseline except in %s:%u",
			    h->pattern, except->origin.file,
			    except->origin.line);
		}
	}
}

/* A path that is given, against what is denied and against our own places. */
static void
check_given(struct build *b, const struct conf_paths *given, const char *what)
{
	const struct conf *conf = b->conf;
	const char *const own[] = { conf->state_dir, conf->runtime_dir };

	for (size_t i = 0; i < given->n; i++) {
		const struct conf_path *p = &given->list[i];

		for (size_t j = 0; j < sizeof(own) / sizeof(own[0]); j++)
			if (value_path_below(p->path, own[j]) ||
			    value_path_below(own[j], p->path))
				build_error(b, &p->origin,
				    "%s \"%s\": "
				    "holds the service's own \"%s\"",
				    what, p->path, own[j]);
		for (size_t j = 0; j < conf->deny_read.n; j++) {
			const struct conf_path *d = &conf->deny_read.list[j];

			if (value_path_below(p->path, d->path))
				build_error(b, &p->origin,
				    "%s \"%s\" "
				    "contradicts deny read \"%s\" in %s:%u",
				    what, p->path, d->path, d->origin.file,
				    d->origin.line);
		}
	}
}

static void
check_service(struct build *b)
{
	const struct conf *conf = b->conf;
	struct conf_origin at;

	if (strcmp(conf->client_group, conf->admin_group) == 0) {
		at = place_of(b,
		    b->once[BUILD_ADMIN_GROUP].file != NULL ?
			BUILD_ADMIN_GROUP :
			BUILD_CLIENT_GROUP);
		build_error(b, &at,
		    "client-group and admin-group are the "
		    "same: every client would be an operator");
	}
	if (strcmp(conf->state_dir, conf->runtime_dir) == 0) {
		at = place_of(b,
		    b->once[BUILD_STATE_DIR].file != NULL ? BUILD_STATE_DIR :
							    BUILD_RUNTIME_DIR);
		build_error(b, &at, "state-dir and runtime-dir are the same");
	}
	if (conf->sandbox == SETTING_REQUIRE &&
	    conf->backend_default == BACKEND_NONE) {
		at = place_of(b, BUILD_BACKEND);
		build_error(b, &at,
		    "backend default none contradicts sandbox require");
	}
}

/* A share that is larger than the whole, where both were written. */
static void
check_limits(struct build *b)
{
	static const struct {
		enum limit_id part;
		enum limit_id whole;
	} pairs[] = {
		{ LIMIT_CONNECTIONS_UID, LIMIT_CONNECTIONS },
		{ LIMIT_SESSIONS_UID, LIMIT_SESSIONS },
	};
	const struct conf *conf = b->conf;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		enum limit_id part = pairs[i].part, whole = pairs[i].whole;

		if (conf->limit_set[part] && conf->limit_set[whole] &&
		    conf->limits[part] > conf->limits[whole])
			build_error(b, &b->limit[part],
			    "limit %s is larger "
			    "than limit %s",
			    limit_table[part].word, limit_table[whole].word);
	}
}

/*
 * What a session's egress record can carry, so that a configuration that is
 * accepted can start a run: the baseline (an entry may need two rules) and
 * the most that a spec adds stand beside it.
 */
static void
check_amounts(struct build *b)
{
	const struct conf *conf = b->conf;
	const size_t allow_max =
	    EGRESS_RULES_MAX - 2 * lists_allow_rows - LIMIT_FIXED_EGRESS_ALLOW;
	const size_t deny_max = EGRESS_RULES_MAX - lists_deny_rows;
	size_t pairs = 0;

	if (conf->allow_hosts.n > allow_max)
		build_error(b, &conf->allow_hosts.list[allow_max].origin,
		    "more than %zu allowed hosts", allow_max);
	if (conf->deny_hosts.n > deny_max)
		build_error(b, &conf->deny_hosts.list[deny_max].origin,
		    "more than %zu denied hosts", deny_max);
	for (size_t i = 0; i < conf->privates.n; i++) {
		const struct conf_private *p = &conf->privates.list[i];

		pairs += p->ncidrs * p->hosts.n;
		if (pairs <= EGRESS_PRIVATE_MAX)
			continue;
		build_error(b, &p->origin,
		    "more than %u pairs of private "
		    "range and host",
		    (unsigned)EGRESS_PRIVATE_MAX);
		return;
	}
}

/* The socket lies in the runtime directory unless the file says else. */
static void
set_socket(struct build *b)
{
	struct conf *conf = b->conf;
	struct conf_origin at;

	if (conf->socket_path != NULL)
		return;
	if (asprintf(&conf->socket_path, "%s/%s", conf->runtime_dir,
		SOCKET_NAME) < 0) {
		conf->socket_path = NULL;
		b->no_memory = true;
		return;
	}
	if (strlen(conf->socket_path) <
	    sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return;
	at = place_of(b, BUILD_RUNTIME_DIR);
	build_error(b, &at, "runtime-dir is too long for the socket in it");
}

void
build_finish(struct build *b)
{
	if (b->no_memory || b->too_much)
		return;
	check_service(b);
	check_limits(b);
	check_amounts(b);
	check_hosts(b);
	check_given(b, &b->conf->system_paths, "system-path");
	check_given(b, &b->conf->home_mounts, "permit home-mount");
	set_socket(b);
}
