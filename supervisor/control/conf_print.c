/*
 * The effective configuration in its own syntax, for `stockaded -nv`.  What
 * is printed reads back to the same (SPEC Z2); a unit test and the fuzz
 * target hold that.
 */
#include <errno.h>
#include <string.h>

#include "supervisor/control/conf.h"

static void
put_string(FILE *out, const char *text)
{
	(void)fputc('"', out);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
	(void)fputc('"', out);
}

static void
put_value(FILE *out, const char *sentence, const char *value)
{
	(void)fprintf(out, "%s ", sentence);
	put_string(out, value);
	(void)fputc('\n', out);
}

static const char *
on_off(bool on)
{
	return on ? "on" : "off";
}

/* Entries without a port, as one list. */
static void
put_hosts(FILE *out, const char *sentence, const struct conf_hosts *hosts)
{
	bool any = false;

	for (size_t i = 0; i < hosts->n; i++) {
		if (hosts->list[i].port != 0)
			continue;
		(void)fprintf(out, any ? "\n\t" : "%s {\n\t", sentence);
		put_string(out, hosts->list[i].pattern);
		any = true;
	}
	if (any)
		(void)fputs("\n}\n", out);
}

static void
put_ports(FILE *out, const struct conf_hosts *hosts)
{
	for (size_t i = 0; i < hosts->n; i++) {
		if (hosts->list[i].port == 0)
			continue;
		(void)fputs("allow host ", out);
		put_string(out, hosts->list[i].pattern);
		(void)fprintf(out, " port %u\n", (unsigned)hosts->list[i].port);
	}
}

static void
put_paths(FILE *out, const char *sentence, const struct conf_paths *paths)
{
	if (paths->n == 0)
		return;
	(void)fprintf(out, "%s {\n", sentence);
	for (size_t i = 0; i < paths->n; i++) {
		(void)fputc('\t', out);
		put_string(out, paths->list[i].path);
		(void)fputc('\n', out);
	}
	(void)fputs("}\n", out);
}

static void
put_names(FILE *out, const char *sentence, const struct conf_names *names)
{
	if (names->n == 0)
		return;
	(void)fprintf(out, "%s {\n", sentence);
	for (size_t i = 0; i < names->n; i++) {
		(void)fputc('\t', out);
		put_string(out, names->list[i].name);
		(void)fputc('\n', out);
	}
	(void)fputs("}\n", out);
}

static void
put_private(FILE *out, const struct conf_private *rule)
{
	char text[HOSTNAME_CIDR_TEXT];

	(void)fputs("permit private {", out);
	for (size_t i = 0; i < rule->ncidrs; i++) {
		hostname_cidr_format(&rule->cidrs[i], text);
		(void)fputc(' ', out);
		put_string(out, text);
	}
	(void)fputs(" } for {", out);
	for (size_t i = 0; i < rule->hosts.n; i++) {
		(void)fputc(' ', out);
		put_string(out, rule->hosts.list[i].pattern);
	}
	(void)fputs(" }\n", out);
}

static void
put_service(FILE *out, const struct conf *conf)
{
	static const char *const levels[] = {
		[CONF_LOG_ERR] = "err",
		[CONF_LOG_WARNING] = "warning",
		[CONF_LOG_NOTICE] = "notice",
		[CONF_LOG_INFO] = "info",
		[CONF_LOG_DEBUG] = "debug",
	};

	(void)fprintf(out, "sandbox %s\n", setting_name(conf->sandbox));
	(void)fprintf(out, "backend default %s\n",
	    backend_name(conf->backend_default));
	(void)fputs("terminal default none\n", out);
	(void)fprintf(out, "guard %s\n",
	    conf->guard == GUARD_AUTO ? "auto" :
					guard_mechanism_name(conf->guard));
	if (conf->run_user != NULL)
		put_value(out, "run-user", conf->run_user);
	put_value(out, "runtime-dir", conf->runtime_dir);
	put_value(out, "state-dir", conf->state_dir);
	put_value(out, "socket", conf->socket_path);
	put_value(out, "client-group", conf->client_group);
	put_value(out, "admin-group", conf->admin_group);
	(void)fprintf(out, "log level %s\n", levels[conf->log_level]);
	(void)fputs("metrics off\n", out);
}

int
conf_print(const struct conf *conf, FILE *out)
{
	char text[LIMIT_TEXT];

	put_service(out, conf);
	(void)fprintf(out, "egress additions %s\n",
	    on_off(conf->egress_additions));
	put_hosts(out, "allow host", &conf->allow_hosts);
	put_ports(out, &conf->allow_hosts);
	put_hosts(out, "deny host", &conf->deny_hosts);
	put_names(out, "baseline except", &conf->baseline_except);
	for (size_t i = 0; i < conf->privates.n; i++)
		put_private(out, &conf->privates.list[i]);
	put_paths(out, "deny read", &conf->deny_read);
	put_paths(out, "deny write", &conf->deny_write);
	put_paths(out, "system-path", &conf->system_paths);
	put_paths(out, "permit home-mount", &conf->home_mounts);
	put_names(out, "deny name", &conf->deny_names);
	(void)fprintf(out, "permit name-exemptions %s\n",
	    on_off(conf->name_exemptions));
	(void)fprintf(out, "permit user-namespaces %s\n",
	    on_off(conf->user_namespaces));
	for (int i = 0; i < LIMIT_ROWS; i++) {
		limit_format((enum limit_id)i, conf->limits[i], text);
		(void)fprintf(out, "limit %s %s\n", limit_table[i].word, text);
	}
	return ferror(out) != 0 ? -EIO : 0;
}
