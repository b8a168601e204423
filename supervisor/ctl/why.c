/*
 * `why`: which rule decides about a path, in a live session or in what `run`
 * with the same options would start here (SPEC Y10). The service answers, from
 * what it enforces.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/size.h"
#include "protocol/client.h"
#include "protocol/rpc.h"
#include "supervisor/ctl/ctl.h"
#include "supervisor/ctl/json.h"
#include "supervisor/ctl/run.h"
#include "supervisor/ctl/text.h"

/* What can be asked about some day. */
static const char *const later[] = { "host", "command", "ref", "env" };

/* ------------------------------------------------ what is typed */

static int
bad_kind(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(later); i++)
		if (kind != NULL && strcmp(kind, later[i]) == 0) {
			ctl_say("why %s: not in this version", kind);
			return CTL_USAGE;
		}
	ctl_say("why: `path` and a path are expected; usage: stockadectl why "
		"path PATH");
	return CTL_USAGE;
}

/*
 * Absolute: a path of `run` is relative to its directory. A directory that is
 * written with .. is taken as it is on the host. NULL: no memory.
 */
static char *
make_path(const char *typed, const char *dir)
{
	autofree char *joined = NULL, *cwd = NULL;
	int n;

	if (typed[0] == '/' || strncmp(typed, "~/", 2) == 0)
		return strdup(typed);
	cwd = getcwd(NULL, 0);
	if (cwd == NULL)
		return NULL;
	n = dir == NULL ? asprintf(&joined, "%s/%s", cwd, typed) :
	    *dir == '/' ? asprintf(&joined, "%s/%s", dir, typed) :
			  asprintf(&joined, "%s/%s/%s", cwd, dir, typed);
	if (n < 0) {
		joined = NULL;
		return NULL;
	}
	return take_ptr(&joined);
}

static char *
without_dots(char *path)
{
	autofree char *real = NULL;
	char *slash = strrchr(path, '/'), *whole;

	if (slash == NULL || strstr(path, "/..") == NULL)
		return strdup(path);
	*slash = '\0';
	real = realpath(*path == '\0' ? "/" : path, NULL);
	*slash = '/';
	if (real == NULL)
		return strdup(path);
	return asprintf(&whole, "%s%s", real, slash) < 0 ? NULL : whole;
}

/* Options may stand before the two words and behind them. */
static int
read_words(const struct option_row *rows, size_t n, struct run_options *options,
    int argc, char **argv, const char *ret_words[2])
{
	size_t words = 0;
	int at = 0;

	while (at < argc) {
		int more = option_read("why", rows, n, options, argc - at,
		    argv + at, NULL);

		if (more < 0)
			return CTL_USAGE;
		at += more;
		if (at == argc)
			break;
		if (words == 2) {
			ctl_say("why: too many arguments");
			return CTL_USAGE;
		}
		ret_words[words++] = argv[at];
	}
	return 0;
}

/* ------------------------------------------------ the answer */

static void
put_line(const msgpack_object *why)
{
	const char *rule = rpc_str(why, "rule");
	const char *remedy = rpc_str(why, "remedy");

	(void)printf("%s: ", text_of(why, "operation", "-"));
	(void)printf("%s", text_of(why, "decision", "-"));
	if (rule != NULL)
		(void)printf(" by %s", text_clean(rule));
	(void)printf(": %s", text_of(why, "reason", "-"));
	if (remedy != NULL)
		(void)printf("; allow with %s", text_clean(remedy));
	(void)putchar('\n');
}

static int
put_answer(const struct ctl *ctl, const char *path,
    const msgpack_object *answer)
{
	const char *decision = rpc_str(answer, "decision");
	struct json j;

	if (ctl->json) {
		json_init(&j, stdout);
		json_object(&j, answer);
		if (json_end(&j) != 0)
			return CTL_FAILED;
	} else {
		(void)printf("%s: %s\n", text_clean(path),
		    text_of(answer, "decision", "-"));
		for (size_t i = 0; i < rpc_count(answer, "why"); i++)
			put_line(rpc_map_at(answer, "why", i));
	}
	if (fflush(stdout) != 0)
		return CTL_FAILED;
	return decision != NULL && strcmp(decision, "allowed") == 0 ? CTL_OK :
								      CTL_NO;
}

static int
ask(struct ctl *ctl, const struct run_options *options, const char *path)
{
	static struct run run;
	char id[SERVICE_ID_MAX];
	struct rpc_message msg;
	struct rpc_out *out;
	int r = 0;

	ctl->session = options->session;
	if (options->session != NULL)
		r = service_resolve(ctl, options->session, id);
	if (r != 0)
		return r;
	out = service_begin(ctl, "sandbox.explain");
	if (options->session != NULL) {
		rpc_add_str(out, "sessionId", id);
	} else {
		run.ctl = ctl;
		run.options = options;
		(void)snprintf(run.session, sizeof(run.session), "why");
		r = run_spec_put(&run, out);
		if (r != 0)
			return r;
	}
	rpc_add_str(out, "path", path);
	r = service_finish(ctl, rpc_client_end(ctl->client), &msg);
	if (r != 0)
		return r;
	r = put_answer(ctl, path, msg.result);
	rpc_done(&msg);
	return r;
}

int
ctl_why(struct ctl *ctl, int argc, char **argv)
{
	static const struct option_row session = { "--session", true,
		option_set_text, offsetof(struct run_options, session), "ID",
		"in this live session, not in a new run" };
	static struct run_options options;
	struct option_row rows[RUN_ROWS + 1];
	const char *words[2] = { NULL, NULL };
	autofree char *whole = NULL, *path = NULL;
	int r;

	memcpy(rows, run_rows, sizeof(run_rows));
	rows[RUN_ROWS] = session;
	r = read_words(rows, ARRAY_LEN(rows), &options, argc, argv, words);
	if (r != 0)
		return r;
	if (words[0] == NULL || strcmp(words[0], "path") != 0 ||
	    words[1] == NULL)
		return bad_kind(words[0]);
	/* What is relative in a live session is so to its directory. */
	whole = options.session != NULL ? strdup(words[1]) :
					  make_path(words[1], options.dir);
	path = whole == NULL ? NULL : without_dots(whole);
	if (path == NULL) {
		ctl_say("why: %s", strerror(errno));
		return CTL_FAILED;
	}
	ctl->json = ctl->json || options.json;
	ctl->mounts = options.mounts.n > 0;
	r = service_connect(ctl);
	return r != 0 ? r : ask(ctl, &options, path);
}
