/*
 * Lists of the configuration: hosts, ranges and paths, checked and stored.
 * Runs in stockade-control.
 */
#include <string.h>

#include "common/size.h"
#include "supervisor/control/conf_build.h"
#include "supervisor/control/conf_value.h"
#include "supervisor/control/idna.h"
#include "supervisor/control/lists.h"
#include "supervisor/control/name_pattern.h"

/* --- hosts ------------------------------------------------------------ */

/* The normalised pattern of a word, or false with an error. */
static bool
read_pattern(struct build *b, const struct build_word *word,
    char ret_text[HOSTNAME_MAX + 1])
{
	char ascii[4 * HOSTNAME_MAX];
	enum hostname_fault fault;
	const char *why = "the name is too long";

	if (idna_to_ascii(word->text, strlen(word->text), ascii, sizeof(ascii),
		&why) < 0) {
		build_bad_value(b, word, why);
		return false;
	}
	if (hostname_pattern_parse(ascii, strlen(ascii), ret_text, &fault) <
	    0) {
		build_bad_value(b, word, hostname_why(fault));
		return false;
	}
	return true;
}

static bool
has_host(const struct conf_hosts *hosts, const char *pattern, uint16_t port)
{
	for (size_t i = 0; i < hosts->n; i++)
		if (hosts->list[i].port == port &&
		    strcmp(hosts->list[i].pattern, pattern) == 0)
			return true;
	return false;
}

/* An entry that stands already is the same rule, and dropped. */
static void
add_host(struct build *b, struct conf_hosts *hosts, const char *pattern,
    uint16_t port, const struct conf_origin *origin)
{
	struct conf_host *list;
	char *copy;

	if (has_host(hosts, pattern, port))
		return;
	list = build_grow(b, hosts->list, hosts->n, sizeof(*list));
	if (list == NULL)
		return;
	hosts->list = list;
	copy = build_copy(b, pattern);
	if (copy == NULL)
		return;
	list[hosts->n].pattern = copy;
	list[hosts->n].port = port;
	list[hosts->n].origin = *origin;
	hosts->n++;
}

static void
add_hosts(struct build *b, struct conf_hosts *hosts,
    const struct build_list *list, uint16_t port)
{
	char pattern[HOSTNAME_MAX + 1];

	for (const struct build_word *w = list->first; w != NULL;
	     w = w->next_in_list) {
		if (!build_count_entry(b, &w->origin))
			return;
		if (read_pattern(b, w, pattern))
			add_host(b, hosts, pattern, port, &w->origin);
	}
}

void
build_allow(struct build *b, const struct build_list *hosts,
    const struct build_word *port)
{
	uint16_t number = 0;

	if (port != NULL && value_port(port->text, &number) < 0) {
		build_bad_value(b, port, "a port is 1 to 65535");
		return;
	}
	add_hosts(b, &b->conf->allow_hosts, hosts, number);
}

void
build_deny(struct build *b, const struct build_list *hosts)
{
	add_hosts(b, &b->conf->deny_hosts, hosts, 0);
}

void
build_except(struct build *b, const struct build_list *hosts)
{
	struct conf_names *names = &b->conf->baseline_except;
	char pattern[HOSTNAME_MAX + 1];

	for (const struct build_word *w = hosts->first; w != NULL;
	     w = w->next_in_list) {
		size_t i;

		if (!build_count_entry(b, &w->origin))
			return;
		if (!read_pattern(b, w, pattern))
			continue;
		if (!lists_allow_has(pattern)) {
			build_bad_value(b, w, "the baseline has no such entry");
			continue;
		}
		for (i = 0; i < names->n; i++)
			if (strcmp(names->list[i].name, pattern) == 0)
				break;
		if (i == names->n)
			(void)build_add_name(b, names, pattern, &w->origin);
	}
}

/*
 * Why a range can never be permitted (G17), or NULL.  A range that merely
 * contains a forbidden address is refused as well: a later reader of the rule
 * must not have to know the exceptions.  v4-mapped ranges are not listed:
 * common/hostname.h has turned them into IPv4.
 */
static const char *
private_why(const struct hostname_cidr *cidr)
{
	static const char *const never[] = {
		"0.0.0.0/8",
		"127.0.0.0/8",
		"224.0.0.0/4",
		"240.0.0.0/4",
		"169.254.169.254",
		"169.254.170.2",
		"100.100.100.200",
		"168.63.129.16",
		"::/96",
		"64:ff9b::/96",
		"64:ff9b:1::/48",
		"2001::/32",
		"2002::/16",
		"fd00:ec2::254",
		"ff00::/8",
	};
	struct hostname_cidr other;

	for (size_t i = 0; i < ARRAY_LEN(never); i++) {
		if (hostname_cidr_parse(never[i], strlen(never[i]), &other,
			NULL) < 0)
			return "the table of forbidden ranges is damaged";
		if (hostname_cidr_match(cidr, &other.addr) ||
		    hostname_cidr_match(&other, &cidr->addr))
			return "the range holds loopback, metadata, "
			       "multicast, reserved or embedded addresses, "
			       "which are never permitted";
	}
	if (!hostname_class_permittable(hostname_classify(&cidr->addr)))
		return "addresses of this kind are never permitted";
	return NULL;
}

static bool
add_cidr(struct build *b, struct conf_private *rule,
    const struct build_word *word)
{
	struct hostname_cidr cidr;
	enum hostname_fault fault;
	const char *why;
	void *list;

	if (hostname_cidr_parse(word->text, strlen(word->text), &cidr, &fault) <
	    0) {
		build_bad_value(b, word, hostname_why(fault));
		return false;
	}
	why = private_why(&cidr);
	if (why != NULL) {
		build_bad_value(b, word, why);
		return false;
	}
	list = build_grow(b, rule->cidrs, rule->ncidrs, sizeof(*rule->cidrs));
	if (list == NULL)
		return false;
	rule->cidrs = list;
	rule->cidrs[rule->ncidrs++] = cidr;
	return true;
}

void
build_private(struct build *b, const struct build_list *cidrs,
    const struct build_list *hosts)
{
	struct conf_privates *privates = &b->conf->privates;
	struct conf_private *rule;
	void *list;

	if (cidrs->first == NULL || hosts->first == NULL) {
		build_error(b, &b->here,
		    "permit private needs at least one "
		    "range and one host");
		return;
	}
	list =
	    build_grow(b, privates->list, privates->n, sizeof(*privates->list));
	if (list == NULL)
		return;
	privates->list = list;
	rule = &privates->list[privates->n++];
	memset(rule, 0, sizeof(*rule));
	rule->origin = cidrs->first->origin;
	for (const struct build_word *w = cidrs->first; w != NULL;
	     w = w->next_in_list)
		if (!build_count_entry(b, &w->origin) ||
		    (!add_cidr(b, rule, w) && b->no_memory))
			return;
	add_hosts(b, &rule->hosts, hosts, 0);
}

/* --- names -------------------------------------------------------------- */

void
build_deny_names(struct build *b, const struct build_list *names)
{
	struct conf_names *list = &b->conf->deny_names;
	const char *why;
	size_t i;

	for (const struct build_word *w = names->first; w != NULL;
	     w = w->next_in_list) {
		if (!build_count_entry(b, &w->origin))
			return;
		why = name_pattern_why(w->text);
		if (why != NULL) {
			build_bad_value(b, w, why);
			continue;
		}
		for (i = 0; i < list->n; i++)
			if (strcmp(list->list[i].name, w->text) == 0)
				break;
		if (i == list->n)
			(void)build_add_name(b, list, w->text, &w->origin);
	}
}

/* --- paths ------------------------------------------------------------ */

/* Whole trees of the system that are never given to a run (SPEC I15). */
static const char *
mount_why(const char *path)
{
	static const char *const exact[] = {
		"/",
		"/etc",
		"/boot",
		"/root",
		"/tmp",
		"/var",
		"/var/tmp",
		"/home",
	};
	static const char *const below[] = {
		"/proc",
		"/sys",
		"/dev",
		"/run",
		"/etc/stockade",
	};

	for (size_t i = 0; i < ARRAY_LEN(exact); i++)
		if (strcmp(path, exact[i]) == 0)
			return "this directory cannot be given to a run";
	for (size_t i = 0; i < ARRAY_LEN(below); i++)
		if (value_path_below(path, below[i]))
			return "this directory cannot be given to a run";
	return NULL;
}

static void
add_path(struct build *b, struct conf_paths *paths,
    const struct build_word *word)
{
	struct conf_path *list;
	char *copy;

	for (size_t i = 0; i < paths->n; i++)
		if (strcmp(paths->list[i].path, word->text) == 0)
			return;
	list = build_grow(b, paths->list, paths->n, sizeof(*list));
	if (list == NULL)
		return;
	paths->list = list;
	copy = build_copy(b, word->text);
	if (copy == NULL)
		return;
	list[paths->n].path = copy;
	list[paths->n].origin = word->origin;
	paths->n++;
}

void
build_paths(struct build *b, enum build_paths which,
    const struct build_list *paths)
{
	struct conf_paths *const fields[] = {
		[BUILD_DENY_READ] = &b->conf->deny_read,
		[BUILD_DENY_WRITE] = &b->conf->deny_write,
		[BUILD_SYSTEM_PATH] = &b->conf->system_paths,
		[BUILD_HOME_MOUNT] = &b->conf->home_mounts,
	};
	bool deny = which == BUILD_DENY_READ || which == BUILD_DENY_WRITE;

	for (struct build_word *w = paths->first; w != NULL;
	     w = w->next_in_list) {
		size_t n = strlen(w->text);
		const char *why;

		if (!build_count_entry(b, &w->origin))
			return;
		if (n > 1 && w->text[n - 1] == '/')
			w->text[n - 1] = '\0';
		why = value_path_why(w->text, deny);
		if (why == NULL && !deny)
			why = mount_why(w->text);
		if (why == NULL && strcmp(w->text, "/") == 0)
			why = "the root directory cannot be denied";
		if (value_path_is_pattern(w->text))
			build_not_here(b, &w->origin, "a path with * or ?");
		else if (why != NULL)
			build_bad_value(b, w, why);
		else
			add_path(b, fields[which], w);
	}
}
