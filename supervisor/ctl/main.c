/*
 * stockadectl: one table of subcommands. Runs as whoever calls it, trusts the
 * caller and the socket's path, and prints nothing of the service uncleaned.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "supervisor/ctl/ctl.h"
#include "supervisor/ctl/option.h"
#include "supervisor/ctl/text.h"

static const struct command {
	const char *name;
	int (*fn)(struct ctl *, int, char **);
	const char *arguments;
	const char *what;
} commands[] = {
	{ "run", ctl_run, "[options] -- CMD...", "run a command in a sandbox" },
	{ "exec", ctl_exec, "[options] SESSION -- CMD...",
	    "run one more command in a session" },
	{ "ps", ctl_ps, "", "list sessions" },
	{ "inspect", ctl_inspect, "SESSION",
	    "show a session and its confinement" },
	{ "events", ctl_events, "[--types A,B] [--since N] [SESSION]",
	    "follow events" },
	{ "violations", ctl_violations, "[--limit N] [SESSION]",
	    "show what was refused" },
	{ "kill", ctl_kill, "[-s SIGNAL [--exec ID]] SESSION",
	    "end a session, or signal its commands" },
	{ "pause", ctl_pause, "SESSION", "freeze a session" },
	{ "resume", ctl_resume, "SESSION", "continue a frozen session" },
	{ "why", ctl_why, "path PATH [--session ID] [options of run]",
	    "say which rule decides about a path, and what would allow it" },
	{ "probe", ctl_probe, "", "show what this host offers" },
	{ "status", ctl_status, "", "show how the service stands" },
	{ "reload", ctl_reload, "", "read the configuration again" },
};

/* Words of the specification whose parts are not built. */
static const char *const later[] = { "shell", "approvals", "approve", "deny",
	"rules", "audit", "creds", "doctor", "matrix", "worktree", "top",
	"hook" };

static void
usage(FILE *to)
{
	(void)fprintf(to,
	    "usage: stockadectl [--socket PATH] [--json] COMMAND "
	    "...\n\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		(void)fprintf(to, "  %-10s %s\n  %10s   %s\n", commands[i].name,
		    commands[i].arguments, "", commands[i].what);
	(void)fprintf(to,
	    "\nEvery command takes --json and --help. See "
	    "stockadectl(1).\n");
}

struct global {
	const char *socket;
	bool json;
	bool help;
	bool version;
};
#define AT(m) offsetof(struct global, m)
static const struct option_row global_rows[] = {
	{ "--socket", true, option_set_text, AT(socket), "PATH",
	    "the service's socket" },
	{ "--json", false, option_set_flag, AT(json), NULL, "print JSON" },
	{ "--help", false, option_set_flag, AT(help), NULL, "print this" },
	{ "-h", false, option_set_flag, AT(help), NULL, "print this" },
	{ "--version", false, option_set_flag, AT(version), NULL,
	    "print the version" },
};

static int
no_such_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(later); i++)
		if (strcmp(name, later[i]) == 0) {
			ctl_say("%s: not in this version", name);
			return CTL_USAGE;
		}
	ctl_say("%s: no such command; `stockadectl --help` lists them",
	    text_clean(name));
	return CTL_USAGE;
}

/* An empty variable is an absent one. */
static const char *
default_socket(void)
{
	const char *path = getenv("STOCKADE_SOCKET");

	return path != NULL && path[0] != '\0' ? path : DEFAULT_SOCKET;
}

int
main(int argc, char **argv)
{
	struct global global = { .socket = default_socket() };
	struct ctl ctl = { 0 };
	int at, r;

	(void)signal(SIGPIPE, SIG_IGN);
	at = option_read("stockadectl", global_rows, ARRAY_LEN(global_rows),
	    &global, argc, argv, NULL);
	if (at < 0)
		return CTL_USAGE;
	if (global.version) {
		(void)printf("stockadectl %s\n", PACKAGE_VERSION);
		return CTL_OK;
	}
	if (global.help || at >= argc) {
		usage(global.help ? stdout : stderr);
		return global.help ? CTL_OK : CTL_USAGE;
	}
	ctl.socket = global.socket;
	ctl.json = global.json;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strcmp(argv[at], commands[i].name) != 0)
			continue;
		option_about(commands[i].arguments, commands[i].what);
		r = commands[i].fn(&ctl, argc - at, argv + at);
		service_close(&ctl);
		return r;
	}
	return no_such_command(argv[at]);
}
