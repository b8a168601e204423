/*
 * Reading the configuration again (SPEC W10, Z10). In stockade-control. The
 * whole is read and checked into a fresh tree; only a complete one is swapped
 * in, between two events of the loop, so no request sees a mixture.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "protocol/rpc.h"
#include "supervisor/control/client.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/control.h"
#include "supervisor/control/renew.h"

static void
log_errors(const struct conf_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++)
		log_event(EV_CONFIG_ERROR,
		    LF_STR(LK_PATH, errors->list[i].file),
		    LF_NUM(LK_LINE, errors->list[i].line),
		    LF_STR(LK_REASON, errors->list[i].text));
}

/* Nothing is sent to a run before all of them can be made (SPEC D13). */
static int
read_conf(struct control *control, struct conf **ret,
    struct conf_errors *errors)
{
	struct conf *fresh;
	int r = conf_load(control->conf_dir, control->conf_name,
	    control->conf_missing_ok, &fresh, errors);

	if (r == 0) {
		r = renew_prepare(control, fresh, errors);
		if (r < 0)
			conf_free(fresh);
	}
	if (r < 0) {
		log_errors(errors);
		log_event(EV_CONFIG_KEPT, LF_NUM(LK_ERRNO, -r));
		return r;
	}
	*ret = fresh;
	return 0;
}

/* Returns the old one. */
static struct conf *
swap(struct control *control, struct conf *fresh)
{
	struct conf *before = control->conf;

	control->conf = fresh;
	log_set_level((enum log_level)(LOG_LEVEL_ERR + (int)fresh->log_level));
	log_event(EV_CONFIG_LOADED, LF_STR(LK_PATH, control->conf_name),
	    LF_NUM(LK_COUNT, fresh->sentences));
	return before;
}

int
control_reload(struct control *control)
{
	struct conf_errors errors = { 0 };
	struct conf *fresh;
	int r = read_conf(control, &fresh, &errors);

	if (r == 0) {
		conf_free(swap(control, fresh));
		renew_send(control, NULL);
	}
	conf_errors_done(&errors);
	return r;
}

/* ---------------------------------------------------------------- changes */

struct lines {
	char *text;
	size_t len;
	char **line;
	size_t n;
};

static void
lines_done(struct lines *l)
{
	free(l->text);
	free(l->line);
}

static int
compare_lines(const void *a, const void *b)
{
	const char *const *x = a;
	const char *const *y = b;

	return strcmp(*x, *y);
}

/* A list stands on several lines; its sentence becomes one. */
static void
join_lists(char *text)
{
	bool quoted = false, blank = false;
	unsigned depth = 0;
	char *out = text;

	for (const char *p = text; *p != '\0'; p++) {
		quoted = quoted != (*p == '"');
		if (!quoted)
			depth = *p == '{'          ? depth + 1 :
			    *p == '}' && depth > 0 ? depth - 1 :
						     depth;
		if (depth > 0 && !quoted && (*p == '\n' || *p == '\t')) {
			blank = true;
			continue;
		}
		if (blank)
			*out++ = ' ';
		blank = false;
		*out++ = *p;
	}
	*out = '\0';
}

static int
lines_split(struct lines *ret)
{
	for (const char *p = ret->text; *p != '\0'; p++)
		ret->n += *p == '\n';
	ret->line = calloc(ret->n + 1, sizeof(*ret->line));
	if (ret->line == NULL)
		return -ENOMEM;
	ret->n = 0;
	for (char *save = NULL, *p = strtok_r(ret->text, "\n", &save);
	     p != NULL; p = strtok_r(NULL, "\n", &save))
		ret->line[ret->n++] = p;
	return 0;
}

/* The effective form, one sentence a line, sorted. */
static int
lines_make(const struct conf *conf, struct lines *ret)
{
	FILE *f = open_memstream(&ret->text, &ret->len);
	int r;

	if (f == NULL)
		return -ENOMEM;
	r = conf_print(conf, f);
	if (fclose(f) != 0 || r != 0)
		return -ENOMEM;
	join_lists(ret->text);
	r = lines_split(ret);
	if (r == 0)
		qsort(ret->line, ret->n, sizeof(*ret->line), compare_lines);
	return r;
}

/* ---------------------------------------------------------------- for a call */

#define RESTART_NAMES 32
#define WAIT_S 3 /* for the brokers */

/* A call that waits until the runs have their rules. */
struct reload {
	struct renew_wait wait;
	LIST_ENTRY(reload) entry;
	struct control *control;
	struct call *call;
	struct event *timer;
	struct lines changed; /* "+ sentence", "- sentence" */
	const char *restart[RESTART_NAMES];
	size_t nrestart;
};

/* Both are sorted: what is in one only stands before what the other has. */
static int
difference(const struct lines *a, const struct lines *b, FILE *f)
{
	size_t i = 0, j = 0;

	while (i < a->n || j < b->n) {
		int order = i == a->n ? 1 :
		    j == b->n         ? -1 :
					strcmp(a->line[i], b->line[j]);

		if (order < 0)
			(void)fprintf(f, "- %s\n", a->line[i++]);
		else if (order > 0)
			(void)fprintf(f, "+ %s\n", b->line[j++]);
		else
			i++, j++;
	}
	return fclose(f) == 0 ? 0 : -ENOMEM;
}

static int
changes(const struct conf *before, const struct conf *after, struct lines *ret)
{
	struct lines a = { 0 }, b = { 0 };
	int r = lines_make(before, &a);
	FILE *f;

	if (r == 0)
		r = lines_make(after, &b);
	if (r == 0) {
		f = open_memstream(&ret->text, &ret->len);
		r = f == NULL ? -ENOMEM : difference(&a, &b, f);
	}
	if (r == 0)
		r = lines_split(ret);
	lines_done(&a);
	lines_done(&b);
	return r;
}

static void
put_warnings(const struct reload *r, struct rpc_out *out)
{
	const struct renew_wait *w = &r->wait;
	char text[256];

	rpc_add_array(out, "warnings");
	for (size_t i = 0; i < r->nrestart; i++)
		rpc_put_str(out, r->restart[i]);
	if (w->frozen > 0) {
		(void)snprintf(text, sizeof(text),
		    "suspended sessions that take the name rules when they are "
		    "resumed: %zu",
		    w->frozen);
		rpc_put_str(out, text);
	}
	if (w->failed > 0) {
		(void)snprintf(text, sizeof(text),
		    "sessions that keep their name rules: %zu, one is %s",
		    w->failed, w->failed_id);
		rpc_put_str(out, text);
	}
	if (w->pending > 0) {
		(void)snprintf(text, sizeof(text),
		    "sessions that have not yet said that they use the name "
		    "rules: %zu",
		    w->pending);
		rpc_put_str(out, text);
	}
	rpc_close(out);
}

static void
answer(struct reload *r)
{
	struct rpc_out *out = call_begin(r->call);

	rpc_add_array(out, "changed");
	for (size_t i = 0; i < r->changed.n; i++)
		rpc_put_str(out, r->changed.line[i]);
	rpc_close(out);
	put_warnings(r, out);
	call_end(r->call);
	r->call = NULL;
}

static void
reload_free(struct reload *r)
{
	renew_forget(r->control, &r->wait);
	if (r->call != NULL)
		call_fail(r->call, API_RESTARTING, NULL,
		    "the service is stopping");
	if (r->timer != NULL)
		event_free(r->timer);
	lines_done(&r->changed);
	LIST_REMOVE(r, entry);
	free(r);
}

static void
on_all(struct renew_wait *wait)
{
	struct reload *r = (struct reload *)wait; /* its first member */

	answer(r);
	reload_free(r);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	answer(arg);
	reload_free(arg);
}

static void
refuse(struct call *call, int error, const struct conf_errors *errors)
{
	const struct conf_error *e = errors->list;
	struct call_detail detail = { 0 };

	if (errors->n == 0) {
		call_fail_internal(call, error, "reload");
		return;
	}
	detail.file = e->file;
	detail.line = e->line;
	if (e->line == 0)
		call_fail_detail(call, API_BAD_PARAMS, &detail, "%s: %s",
		    e->file, e->text);
	else
		call_fail_detail(call, API_BAD_PARAMS, &detail, "%s:%u: %s",
		    e->file, e->line, e->text);
}

static int
wait_for(struct control *control, struct call *call, const struct conf *before,
    const struct conf *fresh, struct reload **ret)
{
	static const struct timeval tv = { WAIT_S, 0 };
	struct reload *r = calloc(1, sizeof(*r));
	int error = -ENOMEM;

	if (r == NULL)
		return error;
	r->control = control;
	r->wait.fn = on_all;
	LIST_INSERT_HEAD(&control->reloads, r, entry);
	r->nrestart =
	    conf_restart_needed(before, fresh, r->restart, RESTART_NAMES);
	if (r->nrestart > RESTART_NAMES)
		r->nrestart = RESTART_NAMES;
	r->timer = evtimer_new(control->base, on_time, r);
	if (r->timer != NULL && evtimer_add(r->timer, &tv) == 0)
		error = changes(before, fresh, &r->changed);
	if (error < 0) {
		reload_free(r);
		return error;
	}
	r->call = call;
	*ret = r;
	return 0;
}

void
reload_for(struct control *control, struct call *call)
{
	struct conf_errors errors = { 0 };
	struct conf *fresh, *before;
	struct reload *r;
	int error = read_conf(control, &fresh, &errors);

	if (error < 0) {
		refuse(call, error, &errors);
		conf_errors_done(&errors);
		return;
	}
	before = swap(control, fresh);
	error = wait_for(control, call, before, fresh, &r);
	conf_free(before);
	conf_errors_done(&errors);
	/* It is in force all the same. */
	if (error < 0)
		call_fail_internal(call, error, "reload");
	renew_send(control, error < 0 ? NULL : &r->wait);
}

void
reload_done(struct control *control)
{
	while (!LIST_EMPTY(&control->reloads))
		reload_free(LIST_FIRST(&control->reloads));
}
