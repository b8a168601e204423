/*
 * Deny comes first where it is judged (proxyd); here both lists are only
 * written down. A spec adds to the allow list and to nothing else.
 */
#include "supervisor/control/egress_make.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostname.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/lists.h"
#include "supervisor/control/spec.h"

struct maker {
	struct pool *pool;
	struct egress_lists *lists;
	struct spec_fault *fault;
	int error; /* sticky: -ENOMEM, -E2BIG */
};

static struct wire_view
view_of(struct maker *m, const char *text)
{
	struct wire_view view = { NULL, 0 };
	char *copy = pool_strdup(m->pool, text);

	if (copy == NULL) {
		m->error = -ENOMEM;
		return view;
	}
	view.data = (const uint8_t *)copy;
	view.len = strlen(copy);
	return view;
}

static void
add_rule(struct maker *m, struct egress_rule *list, size_t *n,
    const char *pattern, uint64_t port, const char *origin)
{
	if (*n >= EGRESS_RULES_MAX) {
		m->error = -E2BIG;
		return;
	}
	list[*n].pattern = view_of(m, pattern);
	list[*n].origin = view_of(m, origin);
	list[*n].port = port;
	(*n)++;
}

static void
allow(struct maker *m, const char *pattern, uint64_t port, const char *origin)
{
	add_rule(m, m->lists->allow, &m->lists->nallow, pattern, port, origin);
}

static void
deny(struct maker *m, const char *pattern, const char *origin)
{
	add_rule(m, m->lists->deny, &m->lists->ndeny, pattern, 0, origin);
}

static bool
is_excepted(const struct conf *conf, const char *pattern)
{
	for (size_t i = 0; i < conf->baseline_except.n; i++)
		if (strcmp(conf->baseline_except.list[i].name, pattern) == 0)
			return true;
	return false;
}

static const char *
line_of(char *buf, size_t size, const struct conf_origin *origin)
{
	(void)snprintf(buf, size, "configuration line %u", origin->line);
	return buf;
}

static void
add_baseline(struct maker *m, const struct conf *conf)
{
	for (size_t i = 0; i < lists_allow_rows; i++) {
		const struct lists_host *row = &lists_allow[i];

		if (is_excepted(conf, row->pattern))
			continue;
		if ((row->ports & LISTS_WEB) != 0)
			allow(m, row->pattern, 0, "baseline");
		if ((row->ports & LISTS_SSH) != 0)
			allow(m, row->pattern, 22, "baseline");
	}
}

static void
add_conf(struct maker *m, const struct conf *conf)
{
	char buf[64];

	for (size_t i = 0; i < conf->allow_hosts.n; i++)
		allow(m, conf->allow_hosts.list[i].pattern,
		    conf->allow_hosts.list[i].port,
		    line_of(buf, sizeof(buf),
			&conf->allow_hosts.list[i].origin));
}

static void
add_deny(struct maker *m, const struct conf *conf)
{
	char buf[64];

	for (size_t i = 0; i < lists_deny_rows; i++)
		deny(m, lists_deny[i], "deny list");
	for (size_t i = 0; i < conf->deny_hosts.n; i++)
		deny(m, conf->deny_hosts.list[i].pattern,
		    line_of(buf, sizeof(buf),
			&conf->deny_hosts.list[i].origin));
}

static void
add_private(struct maker *m, const struct conf_private *permit)
{
	struct egress_lists *lists = m->lists;
	char cidr[HOSTNAME_CIDR_TEXT];

	for (size_t i = 0; i < permit->ncidrs; i++) {
		hostname_cidr_format(&permit->cidrs[i], cidr);
		for (size_t j = 0; j < permit->hosts.n; j++) {
			if (lists->nprivate >= EGRESS_PRIVATE_MAX) {
				m->error = -E2BIG;
				return;
			}
			lists->private_[lists->nprivate].cidr =
			    view_of(m, cidr);
			lists->private_[lists->nprivate++].host =
			    view_of(m, permit->hosts.list[j].pattern);
		}
	}
}

/* Splits "host:port". An IPv6 literal stands in brackets, so a colon after
 * them, or the only one of all, begins a port. 0 without, -1 for a bad one. */
static long
split_port(const char *entry, size_t *ret_len)
{
	const char *colon = strrchr(entry, ':'), *p;
	long port = 0;

	*ret_len = strlen(entry);
	if (colon == NULL || strchr(colon, ']') != NULL)
		return 0;
	for (p = colon + 1; *p >= '0' && *p <= '9' && port <= 65535; p++)
		port = port * 10 + (*p - '0');
	if (*p != '\0' || p == colon + 1 || port < 1 || port > 65535)
		return -1;
	*ret_len = (size_t)(colon - entry);
	return port;
}

static int
add_spec(struct maker *m, const struct spec *spec)
{
	char pattern[HOSTNAME_MAX + 1];
	enum hostname_fault why;
	const char *entry;
	size_t len;
	long port;

	for (size_t i = 0; i < spec->egress_allow.n; i++) {
		entry = spec->egress_allow.items[i];
		port = split_port(entry, &len);
		if (port < 0)
			return spec_fault_set(m->fault, API_BAD_PARAMS,
			    "egressAllowlist",
			    "egressAllowlist: %s: the port "
			    "is not valid",
			    entry);
		if (hostname_pattern_parse(entry, len, pattern, &why) != 0)
			return spec_fault_set(m->fault, API_BAD_PARAMS,
			    "egressAllowlist", "egressAllowlist: %s: %s", entry,
			    hostname_why(why));
		allow(m, pattern, (uint64_t)port, "spec");
	}
	return 0;
}

static int
compare_views(const struct wire_view *a, const struct wire_view *b)
{
	size_t n = a->len < b->len ? a->len : b->len;
	int c = n == 0 ? 0 : memcmp(a->data, b->data, n);

	if (c != 0)
		return c;
	return a->len < b->len ? -1 : a->len > b->len;
}

static int
compare_rules(const void *pa, const void *pb)
{
	const struct egress_rule *a = pa, *b = pb;
	int c = compare_views(&a->pattern, &b->pattern);

	if (c != 0)
		return c;
	if (a->port != b->port)
		return a->port < b->port ? -1 : 1;
	return compare_views(&a->origin, &b->origin);
}

static int
compare_private(const void *pa, const void *pb)
{
	const struct egress_private *a = pa, *b = pb;
	int c = compare_views(&a->host, &b->host);

	return c != 0 ? c : compare_views(&a->cidr, &b->cidr);
}

/* Sorts; of equal pattern and port the first origin stays. */
static void
settle(struct egress_rule *list, size_t *n)
{
	size_t kept = 0;

	if (*n == 0)
		return;
	qsort(list, *n, sizeof(*list), compare_rules);
	for (size_t i = 1; i < *n; i++)
		if (list[i].port != list[kept].port ||
		    compare_views(&list[i].pattern, &list[kept].pattern) != 0)
			list[++kept] = list[i];
	*n = kept + 1;
}

int
egress_make(const struct spec *spec, const struct conf *conf, struct pool *pool,
    struct egress_lists **ret, struct spec_fault *fault)
{
	struct maker m = { pool, NULL, fault, 0 };

	if (spec->egress_allow.n > 0 && !conf->egress_additions)
		return spec_fault_set(fault, API_BAD_PARAMS, "egressAllowlist",
		    "egressAllowlist: the configuration forbids additions");
	m.lists = pool_alloc_sparse(pool, 1, sizeof(*m.lists));
	if (m.lists == NULL)
		return spec_fault_set(fault, API_INTERNAL, NULL,
		    "out of memory");
	m.lists->network = spec->network;
	m.lists->tunnels_max = conf->limits[LIMIT_TUNNELS_SESSION];
	add_baseline(&m, conf);
	add_conf(&m, conf);
	if (add_spec(&m, spec) != 0)
		return -EINVAL;
	add_deny(&m, conf);
	for (size_t i = 0; i < conf->privates.n; i++)
		add_private(&m, &conf->privates.list[i]);
	if (m.error == -ENOMEM)
		return spec_fault_set(fault, API_INTERNAL, NULL,
		    "out of memory");
	if (m.error != 0)
		return spec_fault_set(fault, API_LIMIT, "egressAllowlist",
		    "too many egress rules");
	if (!spec->network) /* G6: the proxies start, nothing is allowed */
		m.lists->nallow = 0;
	settle(m.lists->allow, &m.lists->nallow);
	settle(m.lists->deny, &m.lists->ndeny);
	if (m.lists->nprivate > 1)
		qsort(m.lists->private_, m.lists->nprivate,
		    sizeof(m.lists->private_[0]), compare_private);
	*ret = m.lists;
	return 0;
}
