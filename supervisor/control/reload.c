/*
 * Reading the configuration again (SPEC W10, Z10). In stockade-control. The
 * whole is read and checked into a fresh tree; only a complete one is swapped
 * in, between two events of the loop, so no request sees a mixture.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "protocol/rpc.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/control.h"

static void
log_errors(const struct conf_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++)
		log_event(EV_CONFIG_ERROR,
		    LF_STR(LK_PATH, errors->list[i].file),
		    LF_NUM(LK_LINE, errors->list[i].line),
		    LF_STR(LK_REASON, errors->list[i].text));
}

int
control_reload(struct control *control, struct conf **ret_before,
    struct conf_errors *errors)
{
	struct conf *fresh, *before = control->conf;
	int r = conf_load(control->conf_dir, control->conf_name,
	    control->conf_missing_ok, &fresh, errors);

	if (r != 0) {
		log_errors(errors);
		log_event(EV_CONFIG_KEPT, LF_NUM(LK_ERRNO, -r));
		return r;
	}
	control->conf = fresh;
	log_set_level((enum log_level)(LOG_LEVEL_ERR + (int)fresh->log_level));
	log_event(EV_CONFIG_LOADED, LF_STR(LK_PATH, control->conf_name),
	    LF_NUM(LK_COUNT, fresh->sentences));
	sessions_conf_changed(control, before);
	*ret_before = before;
	return 0;
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
	for (const char *p = ret->text; *p != '\0'; p++)
		ret->n += *p == '\n';
	ret->line = calloc(ret->n + 1, sizeof(*ret->line));
	if (ret->line == NULL)
		return -ENOMEM;
	ret->n = 0;
	for (char *save = NULL, *p = strtok_r(ret->text, "\n", &save);
	     p != NULL; p = strtok_r(NULL, "\n", &save))
		ret->line[ret->n++] = p;
	qsort(ret->line, ret->n, sizeof(*ret->line), compare_lines);
	return 0;
}

static void
put_change(struct rpc_out *out, char sign, const char *text)
{
	autofree char *line = NULL;

	if (asprintf(&line, "%c %s", sign, text) < 0) {
		line = NULL;
		out->err = true;
		return;
	}
	rpc_put_str(out, line);
}

/* Both are sorted: what is in one only stands before what the other has. */
static void
put_difference(const struct lines *a, const struct lines *b,
    struct rpc_out *out)
{
	size_t i = 0, j = 0;

	while (i < a->n || j < b->n) {
		int order = i == a->n ? 1 :
		    j == b->n         ? -1 :
					strcmp(a->line[i], b->line[j]);

		if (order < 0)
			put_change(out, '-', a->line[i++]);
		else if (order > 0)
			put_change(out, '+', b->line[j++]);
		else
			i++, j++;
	}
}

void
control_put_changes(const struct conf *before, const struct conf *after,
    struct rpc_out *out)
{
	struct lines a = { 0 }, b = { 0 };

	if (lines_make(before, &a) == 0 && lines_make(after, &b) == 0)
		put_difference(&a, &b, out);
	else
		out->err = true;
	lines_done(&a);
	lines_done(&b);
}
