/* See denied.h. Every word of a violation comes from a run or a host. */
#include "supervisor/ctl/denied.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/rpc.h"
#include "supervisor/ctl/text.h"

#define LINE_MAX_BYTES 3072

static const char *
rule_of(const msgpack_object *v)
{
	const char *rule = rpc_str(v, "rule");

	return rule == NULL || rule[0] == '\0' ? rpc_str(v, "reason") : rule;
}

/* A record without a target counts refusals that were too many to tell one by
 * one (SPEC D15). */
static bool
is_dropped(const msgpack_object *v)
{
	const char *reason = rpc_str(v, "reason");

	return reason != NULL && strcmp(reason, "dropped") == 0;
}

/* "denied <action> <target> (<rule>); allow with <remedy>" */
static void
make_line(const msgpack_object *v, char *ret, size_t size)
{
	const char *rule = rule_of(v), *remedy = rpc_str(v, "remedy");

	if (is_dropped(v)) {
		(void)snprintf(ret, size,
		    "denied %s and others, too many to "
		    "tell one by one",
		    text_of(v, "action", "something"));
		return;
	}
	(void)snprintf(ret, size, "denied %s %s%s%s%s%s%s",
	    text_of(v, "action", "something"), text_of(v, "target", ""),
	    rule == NULL ? "" : " (", rule == NULL ? "" : text_clean(rule),
	    rule == NULL ? "" : ")", remedy == NULL ? "" : "; allow with ",
	    remedy == NULL ? "" : text_clean(remedy));
}

void
denied_add(struct denied *d, const msgpack_object *violation)
{
	uint64_t count = rpc_u64(violation, "count", 1);
	char line[LINE_MAX_BYTES];

	make_line(violation, line, sizeof(line));
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->items[i].line, line) == 0) {
			d->items[i].count += count;
			return;
		}
	if (d->n == DENIED_MAX ||
	    (d->items[d->n].line = strdup(line)) == NULL) {
		d->more += count;
		return;
	}
	d->items[d->n++].count = count;
}

void
denied_summary(const msgpack_object *v, FILE *to)
{
	const char *rule = rule_of(v), *remedy = rpc_str(v, "remedy");
	uint64_t count = rpc_u64(v, "count", 1);

	(void)fprintf(to, "[sandbox] denied %s on ",
	    text_of(v, "action", "something"));
	(void)fprintf(to, "%s",
	    is_dropped(v) ? "files, too many to tell one by one" :
			    text_of(v, "target", ""));
	if (rule != NULL && !is_dropped(v))
		(void)fprintf(to, " (%s", text_clean(rule));
	if (remedy != NULL)
		(void)fprintf(to, "%s%s",
		    rule != NULL ? "; allow with: " : " (allow with: ",
		    text_clean(remedy));
	(void)fprintf(to, "%s",
	    (rule != NULL && !is_dropped(v)) || remedy != NULL ? ")" : "");
	if (count > 1)
		(void)fprintf(to, " (%" PRIu64 " times)", count);
	(void)putc('\n', to);
}

void
denied_done(struct denied *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->items[i].line);
	memset(d, 0, sizeof(*d));
}

void
denied_print(const struct denied *d, const char *prefix, FILE *to)
{
	for (size_t i = 0; i < d->n; i++) {
		(void)fprintf(to, "%s%s", prefix, d->items[i].line);
		if (d->items[i].count > 1)
			(void)fprintf(to, " (%" PRIu64 " times)",
			    d->items[i].count);
		(void)putc('\n', to);
	}
	if (d->more > 0)
		(void)fprintf(to, "%sdenied %" PRIu64 " more\n", prefix,
		    d->more);
}
