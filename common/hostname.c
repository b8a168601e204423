/*
 * Host names, patterns and address classes; see hostname.h.  Linked into
 * stockade-control and stockade-proxyd.  Every byte that comes in is hostile,
 * and nothing here trusts any of it: no libc resolver, no locale, no libc
 * number parser that accepts more than the RFCs do (inet_aton and getaddrinfo
 * take "127.1", "0x7f.1" and "2130706433" for 127.0.0.1).
 */
#include "common/hostname.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/ascii.h"
#include "common/size.h"

static const char *const why_texts[HOSTNAME_FAULTS] = {
	[HOSTNAME_OK] = "no fault",
	[HOSTNAME_EMPTY] = "empty name",
	[HOSTNAME_TOO_LONG] = "longer than 253 bytes",
	[HOSTNAME_BAD_BYTE] = "a byte that no host name has",
	[HOSTNAME_NOT_ASCII] = "non-ASCII byte (write the xn-- form)",
	[HOSTNAME_EMPTY_LABEL] = "empty label",
	[HOSTNAME_LONG_LABEL] = "label longer than 63 bytes",
	[HOSTNAME_NUMERIC] = "IPv4 address not written as a.b.c.d",
	[HOSTNAME_BAD_IPV6] = "no valid IPv6 address in brackets",
	[HOSTNAME_TWO_STARS] = "more than one *",
	[HOSTNAME_STAR_IN_LABEL] = "* must be a whole label",
	[HOSTNAME_BARE_STAR] = "* alone would match every name",
	[HOSTNAME_STAR_LAST] = "* cannot be the last label",
	[HOSTNAME_STAR_TOP] = "*. before a single label",
	[HOSTNAME_BAD_PREFIX] = "not an address range a.b.c.d/n or x::/n",
	[HOSTNAME_HOST_BITS] = "address bits set below the prefix length",
};

const char *
hostname_why(enum hostname_fault fault)
{
	if ((unsigned)fault >= HOSTNAME_FAULTS)
		return "unknown fault";
	return why_texts[fault];
}

static int
refuse(enum hostname_fault fault, enum hostname_fault *ret_fault)
{
	if (ret_fault != NULL)
		*ret_fault = fault;
	return -EINVAL;
}

/* Underscore and digits are legal in DNS names (_dmarc, s3): facts 4.3. */
static bool
is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '-' ||
	    c == '_';
}

/*
 * Copy to text in lower case without one final dot, checking bytes, labels
 * and lengths.  A '*' passes only with star_allowed.
 */
static enum hostname_fault
copy_labels(const char *raw, size_t len, bool star_allowed,
    char text[HOSTNAME_MAX + 1], unsigned *ret_labels)
{
	size_t i, start = 0;
	unsigned labels = 0;

	if (len > 0 && raw[len - 1] == '.')
		len--;
	if (len == 0)
		return HOSTNAME_EMPTY;
	if (len > HOSTNAME_MAX)
		return HOSTNAME_TOO_LONG;
	for (i = 0; i <= len; i++) {
		char c = i < len ? ascii_to_lower(raw[i]) : '.';

		if (c == '.') {
			if (i == start)
				return HOSTNAME_EMPTY_LABEL;
			if (i - start > HOSTNAME_LABEL_MAX)
				return HOSTNAME_LONG_LABEL;
			labels++;
			start = i + 1;
		} else if ((unsigned char)c > 0x7f) {
			return HOSTNAME_NOT_ASCII;
		} else if (!is_name_byte(c) && !(star_allowed && c == '*')) {
			return HOSTNAME_BAD_BYTE;
		}
		text[i] = c;
	}
	text[len] = '\0';
	*ret_labels = labels;
	return HOSTNAME_OK;
}

/* The last label is all digits or begins with 0x: an IPv4 attempt (H6). */
static bool
looks_numeric(const char *text)
{
	const char *last = strrchr(text, '.');
	const char *p;

	last = last == NULL ? text : last + 1;
	if (last[0] == '0' && last[1] == 'x')
		return true;
	for (p = last; *p != '\0'; p++)
		if (!ascii_is_digit(*p))
			return false;
	return true;
}

static int
parse_ipv6(const char *raw, size_t len, struct hostname_addr *ret)
{
	char buf[INET6_ADDRSTRLEN];
	struct in6_addr in6;

	if (len == 0 || len >= sizeof(buf))
		return -EINVAL;
	/* inet_pton stops at a NUL, so one in the middle must not get there. */
	if (memchr(raw, '\0', len) != NULL)
		return -EINVAL;
	memcpy(buf, raw, len);
	buf[len] = '\0';
	if (inet_pton(AF_INET6, buf, &in6) != 1)
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	if (IN6_IS_ADDR_V4MAPPED(&in6)) {
		ret->family = 4;
		memcpy(ret->bytes, in6.s6_addr + 12, 4);
	} else {
		ret->family = 6;
		memcpy(ret->bytes, in6.s6_addr, 16);
	}
	return 0;
}

void
hostname_from_addr(const struct hostname_addr *addr, struct hostname *ret)
{
	struct hostname_addr a = *addr;
	struct in6_addr in6;
	char buf[INET6_ADDRSTRLEN];

	memcpy(&in6, a.bytes, sizeof(in6)); /* bytes is not aligned */
	if (a.family == 6 && IN6_IS_ADDR_V4MAPPED(&in6)) {
		a.family = 4;
		memmove(a.bytes, a.bytes + 12, 4);
		memset(a.bytes + 4, 0, 12);
	}
	memset(ret, 0, sizeof(*ret));
	ret->addr = a;
	if (a.family == 4) {
		ret->kind = HOSTNAME_IPV4;
		(void)inet_ntop(AF_INET, a.bytes, ret->text, sizeof(ret->text));
		return;
	}
	ret->kind = HOSTNAME_IPV6;
	(void)inet_ntop(AF_INET6, a.bytes, buf, sizeof(buf));
	(void)snprintf(ret->text, sizeof(ret->text), "[%s]", buf);
}

/* raw begins with '[': the whole must be one bracketed IPv6 address. */
static int
parse_bracketed(const char *raw, size_t len, struct hostname *ret)
{
	struct hostname_addr addr;

	if (len < 4 || raw[len - 1] != ']')
		return -EINVAL;
	if (parse_ipv6(raw + 1, len - 2, &addr) < 0)
		return -EINVAL;
	hostname_from_addr(&addr, ret);
	return 0;
}

int
hostname_parse(const char *raw, size_t len, struct hostname *ret,
    enum hostname_fault *ret_fault)
{
	struct hostname name;
	enum hostname_fault fault;

	memset(&name, 0, sizeof(name));
	if (len > 0 && raw[0] == '[') {
		if (parse_bracketed(raw, len, &name) < 0)
			return refuse(HOSTNAME_BAD_IPV6, ret_fault);
		*ret = name;
		return 0;
	}
	fault = copy_labels(raw, len, false, name.text, &name.labels);
	if (fault != HOSTNAME_OK)
		return refuse(fault, ret_fault);
	if (looks_numeric(name.text)) {
		struct hostname_addr addr = { .family = 4 };

		/* inet_pton takes four decimals without leading zeros only. */
		if (inet_pton(AF_INET, name.text, addr.bytes) != 1)
			return refuse(HOSTNAME_NUMERIC, ret_fault);
		hostname_from_addr(&addr, &name);
	}
	*ret = name;
	return 0;
}

/* text has at least one '*'. */
static enum hostname_fault
check_star(const char *text, unsigned labels)
{
	const char *star = strchr(text, '*');

	if (strchr(star + 1, '*') != NULL)
		return HOSTNAME_TWO_STARS;
	if (labels == 1 && text[1] == '\0')
		return HOSTNAME_BARE_STAR;
	if ((star != text && star[-1] != '.') ||
	    (star[1] != '.' && star[1] != '\0'))
		return HOSTNAME_STAR_IN_LABEL;
	if (star[1] == '\0')
		return HOSTNAME_STAR_LAST;
	if (star == text && labels == 2)
		return HOSTNAME_STAR_TOP;
	if (looks_numeric(text))
		return HOSTNAME_NUMERIC;
	return HOSTNAME_OK;
}

int
hostname_pattern_parse(const char *raw, size_t len,
    char ret_text[HOSTNAME_MAX + 1], enum hostname_fault *ret_fault)
{
	char text[HOSTNAME_MAX + 1];
	struct hostname name;
	enum hostname_fault fault;
	unsigned labels;

	while (len > 0 && (raw[0] == ' ' || raw[0] == '\t')) {
		raw++;
		len--;
	}
	while (len > 0 && (raw[len - 1] == ' ' || raw[len - 1] == '\t'))
		len--;
	if (len == 0 || memchr(raw, '*', len) == NULL) {
		if (hostname_parse(raw, len, &name, ret_fault) < 0)
			return -EINVAL;
		memcpy(ret_text, name.text, sizeof(name.text));
		return 0;
	}
	fault = copy_labels(raw, len, true, text, &labels);
	if (fault == HOSTNAME_OK)
		fault = check_star(text, labels);
	if (fault != HOSTNAME_OK)
		return refuse(fault, ret_fault);
	memcpy(ret_text, text, strlen(text) + 1);
	return 0;
}

bool
hostname_pattern_is_exact(const char *pattern)
{
	return strchr(pattern, '*') == NULL;
}

/* Start of the last label in text[0..end). */
static size_t
label_start(const char *text, size_t end)
{
	while (end > 0 && text[end - 1] != '.')
		end--;
	return end;
}

/*
 * Compare label by label from the right.  A leading '*' takes one or more
 * labels, another '*' exactly one.  With below, labels of the host that are
 * left over are accepted.  The only place that says yes is marked.
 */
static bool
match_labels(const char *pattern, const char *host, bool below)
{
	size_t p = strlen(pattern), h = strlen(host);
	bool yes = false;

	if (p == 0 || h == 0)
		return false;
	for (;;) {
		size_t ps = label_start(pattern, p);
		size_t hs = label_start(host, h);
		bool star = p - ps == 1 && pattern[ps] == '*';

		if (h == hs)
			break;
		if (!star &&
		    (p - ps != h - hs ||
			memcmp(pattern + ps, host + hs, p - ps) != 0))
			break;
		if (ps == 0) {
			yes = hs == 0 || below || star;
			break;
		}
		if (hs == 0)
			break;
		p = ps - 1;
		h = hs - 1;
	}
	return yes;
}

bool
hostname_pattern_match(const char *pattern, const char *host)
{
	return match_labels(pattern, host, false);
}

bool
hostname_deny_match(const char *pattern, const char *host)
{
	return match_labels(pattern, host, true);
}

/* Addresses. */

static bool
prefix_match(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

bool
hostname_cidr_match(const struct hostname_cidr *cidr,
    const struct hostname_addr *addr)
{
	if (cidr->addr.family != addr->family)
		return false;
	return prefix_match(cidr->addr.bytes, addr->bytes, cidr->prefix);
}

/* One to three digits, no leading zero, at most max; -EINVAL else. */
static int
parse_prefix(const char *raw, size_t len, unsigned max)
{
	unsigned value = 0;
	size_t i;

	if (len == 0 || len > 3 || (len > 1 && raw[0] == '0'))
		return -EINVAL;
	for (i = 0; i < len; i++) {
		if (!ascii_is_digit(raw[i]))
			return -EINVAL;
		value = value * 10 + (unsigned)(raw[i] - '0');
	}
	return value <= max ? (int)value : -EINVAL;
}

/* The address part of a range: IPv4, IPv6 with or without brackets. */
static int
parse_range_addr(const char *raw, size_t len, struct hostname_addr *ret)
{
	struct hostname name;

	if (len > 0 && raw[0] != '[' && memchr(raw, ':', len) != NULL)
		return parse_ipv6(raw, len, ret);
	if (hostname_parse(raw, len, &name, NULL) < 0 ||
	    name.kind == HOSTNAME_NAME)
		return -EINVAL;
	*ret = name.addr;
	return 0;
}

int
hostname_cidr_parse(const char *raw, size_t len, struct hostname_cidr *ret,
    enum hostname_fault *ret_fault)
{
	struct hostname_cidr cidr;
	const char *slash;
	unsigned i, max;
	int prefix;

	memset(&cidr, 0, sizeof(cidr));
	if (len == 0)
		return refuse(HOSTNAME_EMPTY, ret_fault);
	slash = memchr(raw, '/', len);
	if (parse_range_addr(raw, slash == NULL ? len : (size_t)(slash - raw),
		&cidr.addr) < 0)
		return refuse(HOSTNAME_BAD_PREFIX, ret_fault);
	max = cidr.addr.family == 4 ? 32 : 128;
	prefix = (int)max;
	if (slash != NULL)
		prefix = parse_prefix(slash + 1,
		    len - (size_t)(slash + 1 - raw), max);
	if (prefix < 0)
		return refuse(HOSTNAME_BAD_PREFIX, ret_fault);
	for (i = (unsigned)prefix; i < max; i++)
		if ((cidr.addr.bytes[i / 8] >> (7 - i % 8)) & 1)
			return refuse(HOSTNAME_HOST_BITS, ret_fault);
	cidr.prefix = (uint8_t)prefix;
	*ret = cidr;
	return 0;
}

void
hostname_cidr_format(const struct hostname_cidr *cidr,
    char ret_text[HOSTNAME_CIDR_TEXT])
{
	char buf[INET6_ADDRSTRLEN];

	(void)inet_ntop(cidr->addr.family == 4 ? AF_INET : AF_INET6,
	    cidr->addr.bytes, buf, sizeof(buf));
	(void)snprintf(ret_text, HOSTNAME_CIDR_TEXT, "%s/%u", buf,
	    (unsigned)cidr->prefix);
}

int
hostname_addr_from_sockaddr(const struct sockaddr *sa,
    struct hostname_addr *ret)
{
	struct hostname_addr addr;

	memset(&addr, 0, sizeof(addr));
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in =
		    (const struct sockaddr_in *)(const void *)sa;

		addr.family = 4;
		memcpy(addr.bytes, &in->sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 =
		    (const struct sockaddr_in6 *)(const void *)sa;

		if (in6->sin6_scope_id != 0)
			return -EINVAL;
		addr.family = 6;
		memcpy(addr.bytes, &in6->sin6_addr, 16);
		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
			memset(&addr, 0, sizeof(addr));
			addr.family = 4;
			memcpy(addr.bytes, in6->sin6_addr.s6_addr + 12, 4);
		}
	} else {
		return -EAFNOSUPPORT;
	}
	*ret = addr;
	return 0;
}

socklen_t
hostname_addr_to_sockaddr(const struct hostname_addr *addr, uint16_t port,
    struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (addr->family == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)(void *)ret;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, addr->bytes, 4);
		return sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)ret;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, addr->bytes, 16);
		return sizeof(*in6);
	}
}

bool
hostname_addr_equal(const struct hostname_addr *a,
    const struct hostname_addr *b)
{
	return a->family == b->family &&
	    memcmp(a->bytes, b->bytes, a->family == 4 ? 4 : 16) == 0;
}

/*
 * SPEC App.4.  The first match holds, so single addresses stand before the
 * range that has them.
 */
static const struct class_row {
	uint8_t bytes[16];
	uint8_t prefix;
	enum hostname_class cls;
} class_v4[] = {
	{ { 169, 254, 169, 254 }, 32, HOSTNAME_METADATA },
	{ { 169, 254, 170, 2 }, 32, HOSTNAME_METADATA }, /* ECS */
	{ { 169, 254, 170, 23 }, 32, HOSTNAME_METADATA }, /* EKS */
	{ { 100, 100, 100, 200 }, 32, HOSTNAME_METADATA }, /* Alibaba */
	{ { 168, 63, 129, 16 }, 32, HOSTNAME_METADATA }, /* Azure */
	{ { 192, 0, 0, 192 }, 32, HOSTNAME_METADATA }, /* Oracle */
	{ { 0 }, 8, HOSTNAME_UNSPECIFIED },
	{ { 10 }, 8, HOSTNAME_PRIVATE },
	{ { 100, 64 }, 10, HOSTNAME_SHARED },
	{ { 127 }, 8, HOSTNAME_LOOPBACK },
	{ { 169, 254 }, 16, HOSTNAME_LINK_LOCAL },
	{ { 172, 16 }, 12, HOSTNAME_PRIVATE },
	{ { 192, 0, 0 }, 24, HOSTNAME_PROTOCOL },
	{ { 192, 0, 2 }, 24, HOSTNAME_DOCUMENTATION },
	{ { 192, 88, 99 }, 24, HOSTNAME_PROTOCOL },
	{ { 192, 168 }, 16, HOSTNAME_PRIVATE },
	{ { 198, 18 }, 15, HOSTNAME_BENCHMARK },
	{ { 198, 51, 100 }, 24, HOSTNAME_DOCUMENTATION },
	{ { 203, 0, 113 }, 24, HOSTNAME_DOCUMENTATION },
	{ { 224 }, 4, HOSTNAME_MULTICAST },
	{ { 240 }, 4, HOSTNAME_RESERVED },
};

static const struct class_row class_v6[] = {
	{ { 0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54 },
	    128, HOSTNAME_METADATA },
	{ { 0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x23 }, 128,
	    HOSTNAME_METADATA }, /* EKS */
	{ { 0 }, 128, HOSTNAME_UNSPECIFIED },
	{ { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 }, 128,
	    HOSTNAME_LOOPBACK },
	{ { 0 }, 96, HOSTNAME_TUNNEL }, /* v4-compatible, obsolete */
	{ { 0, 0x64, 0xff, 0x9b, 0, 1 }, 48, HOSTNAME_TUNNEL },
	{ { 1 }, 64, HOSTNAME_PROTOCOL }, /* 100::/64, discard */
	{ { 0x20, 0x01 }, 32, HOSTNAME_TUNNEL }, /* Teredo */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, HOSTNAME_DOCUMENTATION },
	{ { 0xfc }, 7, HOSTNAME_UNIQUE_LOCAL },
	{ { 0xfe, 0x80 }, 10, HOSTNAME_LINK_LOCAL },
	{ { 0xfe, 0xc0 }, 10, HOSTNAME_SITE_LOCAL },
	{ { 0xff }, 8, HOSTNAME_MULTICAST },
};

/* Prefixes whose addresses embed an IPv4 address at a fixed offset. */
static const struct embed_row {
	uint8_t bytes[16];
	uint8_t prefix;
	uint8_t offset;
} embeds[] = {
	{ { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff }, 96, 12 },
	{ { 0, 0x64, 0xff, 0x9b }, 96, 12 }, /* NAT64, RFC 6052 */
	{ { 0x20, 0x02 }, 16, 2 }, /* 6to4, RFC 3056 */
};

static enum hostname_class
classify_in(const struct class_row *rows, size_t n, const uint8_t *bytes)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (prefix_match(rows[i].bytes, bytes, rows[i].prefix))
			return rows[i].cls;
	return HOSTNAME_PUBLIC;
}

enum hostname_class
hostname_classify(const struct hostname_addr *addr)
{
	size_t i;

	if (addr->family == 4)
		return classify_in(class_v4, ARRAY_LEN(class_v4), addr->bytes);
	if (addr->family != 6)
		return HOSTNAME_RESERVED;
	for (i = 0; i < ARRAY_LEN(embeds); i++)
		if (prefix_match(embeds[i].bytes, addr->bytes,
			embeds[i].prefix))
			return classify_in(class_v4, ARRAY_LEN(class_v4),
			    addr->bytes + embeds[i].offset);
	return classify_in(class_v6, ARRAY_LEN(class_v6), addr->bytes);
}

static const struct {
	const char *name;
	bool permittable;
} class_facts[HOSTNAME_CLASSES] = {
	[HOSTNAME_PUBLIC] = { "public", true },
	[HOSTNAME_UNSPECIFIED] = { "unspecified", false },
	[HOSTNAME_LOOPBACK] = { "loopback", false },
	[HOSTNAME_METADATA] = { "metadata", false },
	[HOSTNAME_MULTICAST] = { "multicast", false },
	[HOSTNAME_RESERVED] = { "reserved", false },
	[HOSTNAME_PRIVATE] = { "private", true },
	[HOSTNAME_SHARED] = { "shared", true },
	[HOSTNAME_LINK_LOCAL] = { "link-local", true },
	[HOSTNAME_UNIQUE_LOCAL] = { "unique-local", true },
	[HOSTNAME_SITE_LOCAL] = { "site-local", true },
	[HOSTNAME_DOCUMENTATION] = { "documentation", true },
	[HOSTNAME_BENCHMARK] = { "benchmark", true },
	[HOSTNAME_PROTOCOL] = { "protocol", true },
	/* What it leads to cannot be told from the address. */
	[HOSTNAME_TUNNEL] = { "tunnel", false },
	[HOSTNAME_OWN] = { "own", true },
};

bool
hostname_class_permittable(enum hostname_class cls)
{
	return (unsigned)cls < HOSTNAME_CLASSES && class_facts[cls].permittable;
}

const char *
hostname_class_name(enum hostname_class cls)
{
	if ((unsigned)cls >= HOSTNAME_CLASSES)
		return "unknown";
	return class_facts[cls].name;
}
