/*
 * Lists and verdicts; see decide.h.  Rules are kept as offsets into one block
 * of text, since a thousand sessions hold a copy each.
 */
#include "proxyd/decide.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"

struct rule {
	uint32_t pattern; /* offsets into text */
	uint32_t origin;
	uint16_t port; /* 0: the default ports */
	bool exact;
};

struct private_range {
	struct hostname_cidr cidr;
	uint32_t host;
};

struct decide_lists {
	bool network;
	struct rule *allow;
	size_t nallow;
	struct rule *deny;
	size_t ndeny;
	struct private_range *ranges;
	size_t nranges;
	char *text;
	size_t text_len;
	size_t text_cap;
	uint32_t last_origin; /* equal origins follow each other */
};

#define TEXT_MAX (1u << 20)

static const uint16_t default_ports[] = { 443, 80 };

struct decide_lists *
decide_lists_new(bool network)
{
	struct decide_lists *lists = calloc(1, sizeof(*lists));

	if (lists != NULL)
		lists->network = network;
	return lists;
}

void
decide_lists_free(struct decide_lists *lists)
{
	if (lists == NULL)
		return;
	free(lists->allow);
	free(lists->deny);
	free(lists->ranges);
	free(lists->text);
	free(lists);
}

/* Appends text with a NUL; its offset, or -errno. */
static int64_t
add_text(struct decide_lists *lists, const char *text, size_t len)
{
	size_t need = lists->text_len + len + 1, cap;
	char *grown;

	if (len > TEXT_MAX || need > TEXT_MAX)
		return -E2BIG;
	if (need > lists->text_cap) {
		cap = need < 4096 ? 4096 : need + need / 2;
		grown = realloc(lists->text, cap);
		if (grown == NULL)
			return -ENOMEM;
		lists->text = grown;
		lists->text_cap = cap;
	}
	memcpy(lists->text + lists->text_len, text, len);
	lists->text[need - 1] = '\0';
	cap = lists->text_len;
	lists->text_len = need;
	return (int64_t)cap;
}

/* The pattern's offset if it is in normal form, else -EINVAL or as above. */
static int64_t
add_pattern(struct decide_lists *lists, const char *pattern, size_t len)
{
	char text[HOSTNAME_MAX + 1];

	if (hostname_pattern_parse(pattern, len, text, NULL) < 0 ||
	    strlen(text) != len || memcmp(text, pattern, len) != 0)
		return -EINVAL;
	return add_text(lists, pattern, len);
}

static int64_t
add_origin(struct decide_lists *lists, const char *origin, size_t len)
{
	const char *last;
	int64_t at;

	if (lists->last_origin != 0) {
		last = lists->text + lists->last_origin;
		if (strlen(last) == len && memcmp(last, origin, len) == 0)
			return lists->last_origin;
	}
	at = add_text(lists, origin, len);
	if (at > 0)
		lists->last_origin = (uint32_t)at;
	return at;
}

static int
add_rule(struct decide_lists *lists, struct rule **rules, size_t *n,
    const char *pattern, size_t len, uint16_t port, const char *origin,
    size_t origin_len)
{
	struct rule *grown;
	int64_t p, o;

	p = add_pattern(lists, pattern, len);
	if (p < 0)
		return (int)p;
	o = add_origin(lists, origin, origin_len);
	if (o < 0)
		return (int)o;
	if (*n % 32 == 0) {
		grown = reallocarray(*rules, *n + 32, sizeof(**rules));
		if (grown == NULL)
			return -ENOMEM;
		*rules = grown;
	}
	(*rules)[(*n)++] = (struct rule){
		.pattern = (uint32_t)p,
		.origin = (uint32_t)o,
		.port = port,
		.exact = memchr(pattern, '*', len) == NULL,
	};
	return 0;
}

int
decide_lists_allow(struct decide_lists *lists, const char *pattern, size_t len,
    uint16_t port, const char *origin, size_t origin_len)
{
	return add_rule(lists, &lists->allow, &lists->nallow, pattern, len,
	    port, origin, origin_len);
}

int
decide_lists_deny(struct decide_lists *lists, const char *pattern, size_t len,
    const char *origin, size_t origin_len)
{
	return add_rule(lists, &lists->deny, &lists->ndeny, pattern, len, 0,
	    origin, origin_len);
}

int
decide_lists_private(struct decide_lists *lists, const char *cidr,
    size_t cidr_len, const char *host, size_t host_len)
{
	struct private_range range, *grown;
	int64_t at;

	memset(&range, 0, sizeof(range));
	if (hostname_cidr_parse(cidr, cidr_len, &range.cidr, NULL) < 0)
		return -EINVAL;
	at = add_pattern(lists, host, host_len);
	if (at < 0)
		return (int)at;
	range.host = (uint32_t)at;
	grown = reallocarray(lists->ranges, lists->nranges + 1, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	lists->ranges = grown;
	lists->ranges[lists->nranges++] = range;
	return 0;
}

static void
set_verdict(const struct decide_lists *lists, const struct rule *rule,
    enum decide_reason reason, struct decide_verdict *ret)
{
	ret->reason = reason;
	ret->pattern = rule == NULL ? "" : lists->text + rule->pattern;
	ret->origin = rule == NULL ? "" : lists->text + rule->origin;
}

static const struct rule *
find_deny(const struct decide_lists *lists, const char *host)
{
	size_t i;

	for (i = 0; i < lists->ndeny; i++)
		if (hostname_deny_match(lists->text + lists->deny[i].pattern,
			host))
			return &lists->deny[i];
	return NULL;
}

static bool
port_is_default(uint16_t port)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(default_ports); i++)
		if (default_ports[i] == port)
			return true;
	return false;
}

/*
 * The rule that allows host and port, or NULL with *ret_near set to a rule
 * that has the host but not the port.  An exact rule decides the ports of its
 * name even where a wildcard covers it too, so the default ports of a
 * wildcard do not open ssh.github.com:443 (App.1); a rule that names its port
 * always holds.
 */
static const struct rule *
find_allow(const struct decide_lists *lists, const char *host, uint16_t port,
    const struct rule **ret_near)
{
	const struct rule *wild = NULL, *found = NULL;
	bool have_exact = false;
	size_t i;

	*ret_near = NULL;
	for (i = 0; i < lists->nallow; i++) {
		const struct rule *r = &lists->allow[i];

		if (!hostname_pattern_match(lists->text + r->pattern, host))
			continue;
		if (*ret_near == NULL || (r->exact && !have_exact))
			*ret_near = r;
		have_exact = have_exact || r->exact;
		if (r->port == 0 ? !port_is_default(port) : r->port != port)
			continue;
		if (r->exact || r->port != 0)
			found = found == NULL ? r : found;
		else
			wild = wild == NULL ? r : wild;
	}
	if (found == NULL && !have_exact)
		found = wild;
	return found;
}

void
decide_target(const struct decide_lists *lists, const struct hostname *host,
    uint16_t port, struct decide_verdict *ret)
{
	const struct rule *rule, *near;
	bool literal = host->kind != HOSTNAME_NAME;

	set_verdict(lists, NULL, DECIDE_host_not_allowed, ret);
	if (!lists->network) {
		set_verdict(lists, NULL, DECIDE_network_off, ret);
		return;
	}
	rule = find_deny(lists, host->text);
	if (rule != NULL) {
		set_verdict(lists, rule, DECIDE_host_denied, ret);
		return;
	}
	rule = find_allow(lists, host->text, port, &near);
	if (rule == NULL && near != NULL) {
		set_verdict(lists, near, DECIDE_port_not_allowed, ret);
		return;
	}
	if (rule == NULL) {
		if (literal)
			ret->reason = DECIDE_ip_literal;
		return;
	}
	/* One label would be completed by the search list of the host. */
	if (!literal && host->labels < 2) {
		set_verdict(lists, rule, DECIDE_bad_name, ret);
		return;
	}
	if (port != 0)
		set_verdict(lists, rule, DECIDE_ALLOWED, ret);
}

/* An operator's `permit private` covers this address for this host. */
static bool
is_permitted(const struct decide_lists *lists, const char *host,
    const struct hostname_addr *addr)
{
	size_t i;

	for (i = 0; i < lists->nranges; i++)
		if (hostname_cidr_match(&lists->ranges[i].cidr, addr) &&
		    hostname_pattern_match(lists->text + lists->ranges[i].host,
			host))
			return true;
	return false;
}

bool
decide_address(const struct decide_lists *lists, const struct hostname *host,
    const struct hostname_addr *addr, bool own)
{
	enum hostname_class cls = hostname_classify(addr);

	if (cls == HOSTNAME_PUBLIC && !own)
		return true;
	return hostname_class_permittable(cls) &&
	    is_permitted(lists, host->text, addr);
}

bool
decide_permittable(const struct hostname_addr *addr)
{
	return hostname_class_permittable(hostname_classify(addr));
}

static const struct {
	const char *code;
	const char *words;
	const char *rule;
	const char *remedy;
} reasons[DECIDE_REASONS] = {
	[DECIDE_ALLOWED] = { "allowed", "", "%r", "" },
#define REASON(code, words, rule, remedy) \
	[DECIDE_##code] = { #code, words, rule, remedy },
#define REASON_AS(name, code, words, rule, remedy) \
	[DECIDE_##name] = { #code, words, rule, remedy },
#include "proxyd/reasons.def"
#undef REASON_AS
#undef REASON
};

const char *
decide_reason_code(enum decide_reason reason)
{
	return (unsigned)reason < DECIDE_REASONS ? reasons[reason].code :
						   "unknown";
}

/* Text so far; what does not fit is left out. */
struct out {
	char *text;
	size_t len;
	size_t max;
};

static void
put(struct out *out, const char *text, size_t len)
{
	if (len > out->max - out->len)
		len = out->max - out->len;
	memcpy(out->text + out->len, text, len);
	out->len += len;
	out->text[out->len] = '\0';
}

/* At most room bytes; a longer text loses its middle. */
static void
put_cut(struct out *out, const char *text, size_t room)
{
	size_t len = strlen(text), head;

	if (len <= room) {
		put(out, text, len);
		return;
	}
	head = room > 3 ? (room - 3) / 2 : 0;
	put(out, text, head);
	put(out, "...", 3);
	if (room > 3 + head)
		put(out, text + len - (room - 3 - head), room - 3 - head);
}

static void
put_rule(struct out *out, const struct decide_verdict *verdict)
{
	if (verdict == NULL || verdict->pattern[0] == '\0') {
		put(out, "the lists", 9);
		return;
	}
	put(out, "\"", 1);
	put_cut(out, verdict->pattern, 120);
	put(out, "\"", 1);
	if (verdict->origin[0] != '\0') {
		put(out, " (", 2);
		put_cut(out, verdict->origin, 60);
		put(out, ")", 1);
	}
}

/* The fixed bytes of a template and those of the port. */
static size_t
fixed_length(const char *template, const char *port)
{
	size_t n = 0;

	for (; *template != '\0'; template ++) {
		if (*template != '%') {
			n++;
			continue;
		}
		template ++;
		if (*template == 'p')
			n += strlen(port);
	}
	return n;
}

static void
expand(const char *template, const struct decide_verdict *verdict,
    const char *host, uint16_t port, struct out *out)
{
	char digits[8];
	size_t fixed;

	(void)snprintf(digits, sizeof(digits), "%u", (unsigned)port);
	fixed = fixed_length(template, digits);
	out->len = 0;
	out->text[0] = '\0';
	for (; *template != '\0'; template ++) {
		if (*template != '%') {
			put(out, template, 1);
			continue;
		}
		template ++;
		if (*template == 'h')
			put_cut(out, host, out->max - fixed);
		else if (*template == 'p')
			put(out, digits, strlen(digits));
		else
			put_rule(out, verdict);
	}
}

void
decide_phrase(enum decide_reason reason, const char *host, uint16_t port,
    char ret_text[DECIDE_PHRASE_MAX + 1])
{
	struct out out = { ret_text, 0, DECIDE_PHRASE_MAX };

	expand(reasons[reason].words, NULL, host, port, &out);
}

void
decide_rule_text(const struct decide_verdict *verdict, const char *host,
    uint16_t port, char ret_text[DECIDE_TEXT_MAX + 1])
{
	struct out out = { ret_text, 0, DECIDE_TEXT_MAX };

	expand(reasons[verdict->reason].rule, verdict, host, port, &out);
}

void
decide_remedy_text(enum decide_reason reason, const char *host, uint16_t port,
    char ret_text[DECIDE_TEXT_MAX + 1])
{
	struct out out = { ret_text, 0, DECIDE_TEXT_MAX };

	expand(reasons[reason].remedy, NULL, host, port, &out);
}
