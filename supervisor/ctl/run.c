/*
 * `run`: a sandbox for one command, from the options to the exit status; and
 * `exec`: one more command in a session. The session belongs to this
 * process's connection (goneMs 0): killed in any way, it ends its run.
 */
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/path.h"
#include "common/size.h"
#include "protocol/cause.h"
#include "protocol/client.h"
#include "protocol/rpc.h"
#include "supervisor/ctl/ctl.h"
#include "supervisor/ctl/run.h"
#include "supervisor/ctl/text.h"
#include "supervisor/ctl/tty.h"

#define AT(m) offsetof(struct run_options, m)
const struct option_row run_rows[RUN_ROWS] = {
	{ "-C", true, option_set_text, AT(dir), "DIR",
	    "mount DIR writable and run in it" },
	{ "--mount", true, option_add_text, AT(mounts), "SRC[:ro]",
	    "mount one more path, writable or read-only" },
	{ "--mode", true, option_set_text, AT(mode), "MODE",
	    "chat, review, plan or orchestrate" },
	{ "--allow", true, option_add_text, AT(allow), "HOST[:PORT]",
	    "allow connections to a host" },
	{ "--no-network", false, option_set_flag, AT(no_network), NULL,
	    "allow no connection at all" },
	{ "--backend", true, option_set_text, AT(backend), "BACKEND",
	    "native, the only one of this version" },
	{ "--env", true, option_add_text, AT(env), "NAME[=VALUE]",
	    "set a variable, or pass the caller's" },
	{ "--memory", true, option_set_size, AT(memory_bytes), "SIZE",
	    "limit memory, such as 512M or 2G" },
	{ "--pids", true, option_set_count, AT(pids), "N",
	    "limit processes and threads" },
	{ "--cpus", true, option_set_decimal, AT(cpus), "N",
	    "limit processors, such as 2 or 1.5" },
	{ "--timeout", true, option_set_time, AT(timeout_ms), "TIME",
	    "end the command then, such as 90s or 5m" },
	{ "--user", true, option_set_text, AT(user), "USER",
	    "run as another user; for operators" },
	{ "--adapter", true, option_set_text, AT(adapter), "AGENT",
	    "claude-code, codex, gemini-cli or acp" },
	{ "--no-toolchains", false, option_set_flag, AT(no_toolchains), NULL,
	    "do not mount the toolchains of PATH" },
	{ "--json", false, option_set_flag, AT(json), NULL,
	    "print events as JSON" },
	{ "--quiet", false, option_set_flag, AT(quiet), NULL,
	    "no notices and no lines about refusals" },
	{ "--new-repositories", false, option_set_flag, AT(new_repositories),
	    NULL, "let new repositories be configured" },
	{ "--name-exempt", true, option_add_text, AT(exempt), "GLOB",
	    "permit names like this below a mount" },
	/* SPEC Y2, Y19: of a part that is not built. */
	{ "--repo", true, NULL, 0, NULL, NULL },
};

static const struct option_row exec_rows[] = {
	{ "-C", true, option_set_text, AT(dir), "DIR",
	    "run in DIR of the sandbox" },
	{ "--env", true, option_add_text, AT(env), "NAME[=VALUE]",
	    "set a variable, or pass the caller's" },
	{ "--timeout", true, option_set_time, AT(timeout_ms), "TIME",
	    "end the command then, such as 90s or 5m" },
	{ "--json", false, option_set_flag, AT(json), NULL,
	    "print events as JSON" },
	{ "--quiet", false, option_set_flag, AT(quiet), NULL,
	    "no notices and no lines about refusals" },
};

/* ---------------------------------------------------------------- launch */

static int
make_session_id(char ret[RUN_SESSION_MAX])
{
	unsigned char raw[6];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw)) {
		ctl_say("no random numbers");
		return CTL_FAILED;
	}
	(void)snprintf(ret, RUN_SESSION_MAX, "run-%02x%02x%02x%02x%02x%02x",
	    raw[0], raw[1], raw[2], raw[3], raw[4], raw[5]);
	return 0;
}

/* SPEC Y4: never without a sandbox unless that was asked for. */
static int
launch_refused(const struct ctl *ctl, const msgpack_object *error)
{
	uint64_t code = rpc_u64(error, "code", API_INTERNAL);
	int r = service_error(ctl, error);

	if (code == API_UNAVAILABLE || code == API_UNCONFINED)
		ctl_say("nothing was run; a run without a sandbox must be "
			"asked for with --backend none, which is not in this "
			"version");
	return r;
}

/* What the service says of the run itself, where it says: nothing. */
static void
warn_of_names(const msgpack_object *result)
{
	static const char *const way[] = { "handle", "details", "confinement",
		"names" };

	for (size_t i = 0; i < ARRAY_LEN(way) && result != NULL; i++)
		result = rpc_map(result, way[i]);
	if (strcmp(text_of(result, "value", "none"), "none") == 0)
		ctl_say("warning: no rules by file name (.env, *.key and "
			"others) hold in this run: %s",
		    text_of(result, "reason", "unknown"));
}

static int
launch(struct run *run)
{
	struct ctl *ctl = run->ctl;
	struct rpc_message msg;
	uint32_t id;
	int r = run_spec_put(run, service_begin(ctl, "sandbox.launch"));

	if (r != 0)
		return r;
	id = rpc_client_end(ctl->client);
	if (id == 0) {
		ctl_say("the options are too long for one request");
		return CTL_FAILED;
	}
	r = rpc_client_flush(ctl->client, NULL, 0);
	if (r < 0 && r != -EPIPE)
		return service_lost(r);
	r = rpc_client_wait(ctl->client, id, -1, &msg);
	if (r == -EPIPE)
		return service_wait(ctl, id, &msg);
	if (r < 0)
		return service_lost(r);
	if (msg.error != NULL)
		r = launch_refused(ctl, msg.error);
	else if (!run->options->quiet)
		warn_of_names(msg.result);
	rpc_done(&msg);
	return r;
}

/* ---------------------------------------------------------------- exec */

/* Which events we need; with --json all of them are printed. */
static uint32_t
subscribe(struct run *run, bool since_start)
{
	static const char *const types[] = { "exit", "killed", "violation",
		"notice", "state" };
	struct rpc_out *out = service_begin(run->ctl, "events.subscribe");

	rpc_add_str(out, "sessionId", run->session);
	if (since_start)
		rpc_add_u64(out, "since", 1);
	if (!run->ctl->json) {
		rpc_add_array(out, "types");
		for (size_t i = 0; i < ARRAY_LEN(types); i++)
			rpc_put_str(out, types[i]);
		rpc_close(out);
	}
	return rpc_client_end(run->ctl->client);
}

/*
 * Descriptors for the command: our own, but a pipe for one that is a terminal,
 * so that nothing inside can read or set the caller's terminal. With --json
 * output comes as events. Returns how many, or -errno.
 */
static int
make_stdio(struct run *run, int fds[3])
{
	int n = run->ctl->json ? 1 : 3;

	for (int i = 0; i < n; i++) {
		int ends[2];
		bool input = i == STDIN_FILENO;

		fds[i] = i;
		if (isatty(i) == 0)
			continue;
		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		fds[i] = ends[input ? 0 : 1];
		run->pipes[i] = ends[input ? 1 : 0];
	}
	return n;
}

/* With a terminal of its own only standard error may be ours. */
static int
make_tty_stdio(int fds[3])
{
	if (isatty(STDERR_FILENO) != 0)
		return 0;
	fds[0] = STDERR_FILENO;
	return 1;
}

/* A closed one of 0, 1, 2 would make the next descriptor take its number. */
static int
fill_stdio(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			return -errno;
	} while (fd <= STDERR_FILENO);
	(void)close(fd);
	return 0;
}

static void
put_exec(struct run *run, char **argv, int argc, size_t nfds,
    struct rpc_out *out)
{
	const struct run_options *o = run->options;
	struct tty_size size;

	rpc_add_str(out, "sessionId", run->session);
	rpc_add_array(out, "argv");
	for (int i = 0; i < argc; i++)
		rpc_put_str(out, argv[i]);
	rpc_close(out);
	if (o->timeout_ms != 0)
		rpc_add_u64(out, "timeoutMs", o->timeout_ms);
	rpc_add_u64(out, "passFds", nfds);
	if (!run->tty)
		return;
	rpc_add_bool(out, "tty", true);
	if (tty_size_get(STDIN_FILENO, &size) == 0) {
		rpc_add_u64(out, "rows", size.rows);
		rpc_add_u64(out, "cols", size.cols);
	}
}

/* Our ends of the command's ends are not needed once they were sent. */
static void
close_passed(const struct run *run, const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		if (!run->tty && run->pipes[i] >= 0)
			(void)close(fds[i]);
}

static int
exec_answered(struct run *run, uint32_t id)
{
	struct rpc_message msg;
	const char *exec;
	int r = service_wait(run->ctl, id, &msg);

	if (r != 0)
		return r;
	exec = rpc_str(msg.result, "execId");
	if (exec != NULL && strlen(exec) < sizeof(run->exec))
		memcpy(run->exec, exec, strlen(exec) + 1);
	run->pid = rpc_u64(msg.result, "pid", 0);
	for (size_t i = 0; i < rpc_count(msg.result, "stripped"); i++)
		follow_note(run, "%s was left out of the environment",
		    text_clean(rpc_str_at(msg.result, "stripped", i)));
	rpc_done(&msg);
	return run->exec[0] == '\0' ? service_lost(-EPROTO) : 0;
}

/* Subscribes and starts the command with one write. */
static int
start(struct run *run, char **argv, int argc, bool since_start, bool own_env)
{
	struct rpc_client *c = run->ctl->client;
	int fds[3] = { -1, -1, -1 }, n, r;
	uint32_t sub, id;
	struct rpc_out *out;

	n = run->tty ? make_tty_stdio(fds) : make_stdio(run, fds);
	if (n < 0) {
		ctl_say("no pipe: %s", strerror(-n));
		return CTL_FAILED;
	}
	sub = subscribe(run, since_start);
	out = service_begin(run->ctl, "sandbox.exec");
	put_exec(run, argv, argc, (size_t)n, out);
	if (own_env) {
		rpc_add_text(out, "cwd", run->options->dir);
		r = run_spec_put_env(&run->options->env, out);
		if (r != 0)
			return r;
	}
	id = rpc_client_end(c);
	if (sub == 0 || id == 0) {
		ctl_say("the command line is too long for one request");
		return CTL_FAILED;
	}
	/* From here on the command may act, and signals are for it. */
	follow_begin(run);
	r = rpc_client_flush(c, fds, (size_t)n);
	close_passed(run, fds, n);
	return r < 0 ? service_lost(r) : exec_answered(run, id);
}

/* Every run has these of the host; what is not found there has another cause,
 * such as the interpreter of a script. */
static const char *const shown[] = { "/usr", "/bin", "/sbin", "/lib" };

static bool
is_shown(const char *path)
{
	char dir[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (path_is_within(path, shown[i]))
			return true;
	return getcwd(dir, sizeof(dir)) != NULL && path_is_within(path, dir);
}

static bool
is_outside(const char *path)
{
	struct stat st;

	return path_is_clean(path) && !is_shown(path) &&
	    access(path, X_OK) == 0 && stat(path, &st) == 0 &&
	    S_ISREG(st.st_mode);
}

/* Where the caller's PATH, or the name itself, finds a program that the run
 * has not. */
static bool
find_outside(const char *program, char ret[PATH_MAX])
{
	const char *path = getenv("PATH");

	if (strchr(program, '/') != NULL) {
		if (strlen(program) >= PATH_MAX || !is_outside(program))
			return false;
		memcpy(ret, program, strlen(program) + 1);
		return true;
	}
	while (path != NULL && *path != '\0') {
		size_t len = strcspn(path, ":");
		int n =
		    snprintf(ret, PATH_MAX, "%.*s/%s", (int)len, path, program);

		if (n > 0 && n < PATH_MAX && is_outside(ret))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static void
say_not_found(const char *program)
{
	char path[PATH_MAX];
	const char *slash;

	if (!find_outside(program, path) ||
	    (slash = strrchr(path, '/')) == path) {
		ctl_say("%s: not found in the sandbox", text_clean(program));
		return;
	}
	ctl_say("%s: not found in the sandbox; it lies outside at %s, "
		"--mount %.*s:ro shows it",
	    text_clean(program), text_clean(path),
	    (int)strlen(path) - (int)strlen(slash), text_clean(path));
}

/* What a shell would say (SPEC K11); the service told it to nobody. */
static void
say_not_run(const struct run *run, const char *program)
{
	if (run->pid != 0 || run->ctl->json)
		return;
	if (run->status == CTL_NOT_FOUND)
		say_not_found(program);
	else if (run->status == CTL_DENIED)
		ctl_say("%s: cannot be executed", text_clean(program));
}

static int
follow(struct run *run)
{
	int master, r;

	if (!run->tty)
		return follow_pipes(run);
	/* A program that was not found has no terminal. */
	master = rpc_client_take_fd(run->ctl->client);
	if (master < 0)
		return follow_pipes(run);
	r = follow_tty(run, master);
	(void)close(master);
	return r;
}

/* ---------------------------------------------------------------- the end */

/* Ends the session and waits until nothing is left of it; what was refused and
 * not yet told comes before the answer. */
static void
finish(struct run *run)
{
	struct ctl *ctl = run->ctl;
	uint32_t id = service_start(ctl, "sandbox.destroy", run->session);
	struct rpc_message msg;

	if (rpc_client_flush(ctl->client, NULL, 0) < 0)
		return;
	if (rpc_client_wait(ctl->client, id, -1, &msg) == 0)
		rpc_done(&msg);
	run->over = true;
	follow_rest(run);
}

static void
say_end(struct run *run)
{
	if (!run->options->quiet) {
		follow_notes(run);
		if (!run->ctl->json)
			denied_print(&run->denied, "stockade: ", stderr);
	}
	denied_done(&run->denied);
}

static int
begin(struct run *run, struct ctl *ctl, const struct run_options *options)
{
	memset(run, 0, sizeof(*run));
	run->ctl = ctl;
	run->options = options;
	run->status = CTL_FAILED;
	for (size_t i = 0; i < ARRAY_LEN(run->pipes); i++)
		run->pipes[i] = -1;
	ctl->json = ctl->json || options->json;
	if (fill_stdio() < 0) {
		ctl_say("no /dev/null");
		return CTL_FAILED;
	}
	run->tty = !ctl->json && isatty(STDIN_FILENO) != 0 &&
	    isatty(STDOUT_FILENO) != 0;
	return service_connect(ctl);
}

static int
no_command(const char *name)
{
	ctl_say("%s: a command is missing; usage: stockadectl %s -- CMD...",
	    name, name);
	return CTL_USAGE;
}

int
ctl_run(struct ctl *ctl, int argc, char **argv)
{
	static struct run_options options;
	static struct run run;
	int at = option_read("run", run_rows, ARRAY_LEN(run_rows), &options,
	    argc, argv, NULL);
	int r;

	if (at < 0)
		return CTL_USAGE;
	if (at >= argc)
		return no_command("run [options]");
	if (options.no_network && options.allow.n > 0) {
		ctl_say("run: --no-network and --allow exclude each other");
		return CTL_USAGE;
	}
	ctl->mounts = options.mounts.n > 0;
	r = begin(&run, ctl, &options);
	if (r == 0)
		r = make_session_id(run.session);
	if (r == 0)
		r = launch(&run);
	if (r != 0)
		return r;
	r = start(&run, argv + at, argc - at, true, false);
	if (r == 0) {
		if (!options.quiet)
			follow_notes(&run);
		r = follow(&run);
	}
	follow_end(&run);
	finish(&run);
	if (r == 0)
		say_not_run(&run, argv[at]);
	say_end(&run);
	return r != 0 ? r : run.status;
}

int
ctl_exec(struct ctl *ctl, int argc, char **argv)
{
	static struct run_options options;
	static struct run run;
	char session[SERVICE_ID_MAX];
	int at = option_read("exec", exec_rows, ARRAY_LEN(exec_rows), &options,
	    argc, argv, NULL);
	int r;

	if (at < 0)
		return CTL_USAGE;
	if (at + 1 < argc && strcmp(argv[at + 1], "--") == 0) {
		argv[at + 1] = argv[at];
		at++;
	}
	if (at + 1 >= argc)
		return no_command("exec [options] SESSION");
	r = begin(&run, ctl, &options);
	if (r == 0)
		r = service_resolve(ctl, argv[at], session);
	if (r != 0)
		return r;
	memcpy(run.session, session, sizeof(run.session));
	ctl->session = run.session;
	r = start(&run, argv + at + 1, argc - at - 1, false, true);
	if (r == 0)
		r = follow(&run);
	follow_end(&run);
	if (r == 0)
		say_not_run(&run, argv[at + 1]);
	say_end(&run);
	return r != 0 ? r : run.status;
}
