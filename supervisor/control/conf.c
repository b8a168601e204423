/*
 * The configuration object and the list of errors.  Runs in stockade-control.
 */
#include "supervisor/control/conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/control/conf_build.h"

int
conf_parse(const char *name, const char *text, size_t len,
    conf_include_fn *include, void *include_arg, struct conf **ret_conf,
    struct conf_errors *errors)
{
	struct build b = {
		.errors = errors,
		.include = include,
		.include_arg = include_arg,
	};
	size_t before = errors->n + errors->dropped;
	int r;

	r = build_init(&b, name, text, len);
	if (r == 0)
		r = build_parse(&b);
	if (r == 0)
		build_finish(&b);
	if (b.no_memory)
		r = -ENOMEM;
	else if (r == 0 && (b.failed || errors->n + errors->dropped > before))
		r = -EINVAL;
	if (r == 0)
		*ret_conf = b.conf;
	else
		conf_free(b.conf);
	build_done(&b);
	return r;
}

static void
hosts_done(struct conf_hosts *hosts)
{
	for (size_t i = 0; i < hosts->n; i++)
		free(hosts->list[i].pattern);
	free(hosts->list);
}

static void
paths_done(struct conf_paths *paths)
{
	for (size_t i = 0; i < paths->n; i++)
		free(paths->list[i].path);
	free(paths->list);
}

static void
names_done(struct conf_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i].name);
	free(names->list);
}

void
conf_free(struct conf *conf)
{
	if (conf == NULL)
		return;
	free(conf->run_user);
	free(conf->runtime_dir);
	free(conf->state_dir);
	free(conf->socket_path);
	free(conf->client_group);
	free(conf->admin_group);
	hosts_done(&conf->allow_hosts);
	hosts_done(&conf->deny_hosts);
	names_done(&conf->baseline_except);
	names_done(&conf->deny_names);
	for (size_t i = 0; i < conf->privates.n; i++) {
		free(conf->privates.list[i].cidrs);
		hosts_done(&conf->privates.list[i].hosts);
	}
	free(conf->privates.list);
	paths_done(&conf->deny_read);
	paths_done(&conf->deny_write);
	paths_done(&conf->system_paths);
	paths_done(&conf->home_mounts);
	names_done(&conf->files);
	free(conf);
}

/* Arrays of errors grow by doubling at powers of two. */
int
conf_errors_add(struct conf_errors *errors, const char *file, unsigned line,
    const char *text)
{
	autofree char *file_copy = NULL;
	autofree char *text_copy = NULL;
	struct conf_error *list = errors->list;
	size_t n = errors->n;

	if (n >= CONF_ERRORS_MAX) {
		errors->dropped++;
		return 0;
	}
	file_copy = strdup(file);
	text_copy = strdup(text);
	if (file_copy == NULL || text_copy == NULL)
		return -ENOMEM;
	if ((n & (n - 1)) == 0 || n == 0) {
		list = reallocarray(list, n == 0 ? 1 : 2 * n, sizeof(*list));
		if (list == NULL)
			return -ENOMEM;
		errors->list = list;
	}
	list[n].file = take_ptr(&file_copy);
	list[n].text = take_ptr(&text_copy);
	list[n].line = line;
	errors->n++;
	return 0;
}

void
conf_errors_done(struct conf_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++) {
		free(errors->list[i].file);
		free(errors->list[i].text);
	}
	free(errors->list);
	memset(errors, 0, sizeof(*errors));
}

void
conf_errors_print(const struct conf_errors *errors, FILE *out)
{
	for (size_t i = 0; i < errors->n; i++) {
		const struct conf_error *e = &errors->list[i];

		if (e->line == 0)
			(void)fprintf(out, "%s: %s\n", e->file, e->text);
		else
			(void)fprintf(out, "%s:%u: %s\n", e->file, e->line,
			    e->text);
	}
	if (errors->dropped > 0)
		(void)fprintf(out, "and %zu more errors\n", errors->dropped);
}

static bool
differ(const char *a, const char *b)
{
	return strcmp(a, b) != 0;
}

size_t
conf_restart_needed(const struct conf *before, const struct conf *after,
    const char **names, size_t max)
{
	const struct {
		const char *name;
		bool changed;
	} rows[] = {
		{ "socket", differ(before->socket_path, after->socket_path) },
		{ "runtime-dir",
		    differ(before->runtime_dir, after->runtime_dir) },
		{ "state-dir", differ(before->state_dir, after->state_dir) },
		{ "client-group",
		    differ(before->client_group, after->client_group) },
		{ "admin-group",
		    differ(before->admin_group, after->admin_group) },
		/* what the other daemons were told when they started */
		{ "sandbox", before->sandbox != after->sandbox },
		{ "guard", before->guard != after->guard },
		{ "log level", before->log_level != after->log_level },
		{ "permit user-namespaces",
		    before->user_namespaces != after->user_namespaces },
		{ "limit sessions",
		    before->limits[LIMIT_SESSIONS] !=
			after->limits[LIMIT_SESSIONS] },
		{ "limit tunnels",
		    before->limits[LIMIT_TUNNELS] !=
			after->limits[LIMIT_TUNNELS] },
		/* a run's own number is in its lists, proxyd's is above it */
		{ "limit tunnels-session",
		    before->limits[LIMIT_TUNNELS_SESSION] <
			after->limits[LIMIT_TUNNELS_SESSION] },
		{ "limit tunnel-idle",
		    before->limits[LIMIT_TUNNEL_IDLE] !=
			after->limits[LIMIT_TUNNEL_IDLE] },
	};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].changed && n < max)
			names[n++] = rows[i].name;
	return n;
}
