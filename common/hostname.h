/*
 * Strict host names, host name patterns, address ranges and the table of
 * addresses that are never connected to.  Used by stockade-control (reading
 * configuration and specs) and stockade-proxyd (judging every connection), so
 * that what was accepted into a list is compared by the code that accepted it.
 *
 * No I/O, no allocation, no locale.  All input is hostile.  SPEC H1..H8, G16,
 * G17, App.4; RFC 1035 2.3.4 (lengths), RFC 6052 (NAT64), RFC 3056 (6to4).
 *
 * Unicode: everything here is ASCII; a byte above 0x7f is HOSTNAME_NOT_ASCII.
 * A name that the configuration writes in Unicode must be turned into
 * A-labels by its reader before it is given to hostname_pattern_parse().
 */
#ifndef COMMON_HOSTNAME_H
#define COMMON_HOSTNAME_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

#define HOSTNAME_MAX 253 /* bytes of a name, RFC 1035 */
#define HOSTNAME_LABEL_MAX 63 /* bytes of a label */
#define HOSTNAME_CIDR_TEXT 50 /* buffer for hostname_cidr_format() */

/* Why a name, pattern or range was refused: the text is in hostname_why(). */
enum hostname_fault {
	HOSTNAME_OK = 0,
	HOSTNAME_EMPTY,
	HOSTNAME_TOO_LONG,
	HOSTNAME_BAD_BYTE,
	HOSTNAME_NOT_ASCII,
	HOSTNAME_EMPTY_LABEL,
	HOSTNAME_LONG_LABEL,
	HOSTNAME_NUMERIC, /* IPv4 in another form than a.b.c.d */
	HOSTNAME_BAD_IPV6,
	HOSTNAME_TWO_STARS,
	HOSTNAME_STAR_IN_LABEL,
	HOSTNAME_BARE_STAR,
	HOSTNAME_STAR_LAST,
	HOSTNAME_STAR_TOP, /* "*." before a single label */
	HOSTNAME_BAD_PREFIX,
	HOSTNAME_HOST_BITS,
	HOSTNAME_FAULTS
};

enum hostname_kind { HOSTNAME_NAME, HOSTNAME_IPV4, HOSTNAME_IPV6 };

/* An address in network byte order; IPv4 uses the first four bytes. */
struct hostname_addr {
	uint8_t family; /* 4 or 6 */
	uint8_t bytes[16];
};

/*
 * A checked target.  text is canonical: a name in lower case without final
 * dot, IPv4 as a.b.c.d, IPv6 as RFC 5952 text in brackets, so that parsing
 * it again gives the same and a name never equals an address.
 */
struct hostname {
	enum hostname_kind kind;
	unsigned labels; /* of a name; 0 for an address */
	struct hostname_addr addr; /* kind is not HOSTNAME_NAME */
	char text[HOSTNAME_MAX + 1];
};

struct hostname_cidr {
	struct hostname_addr addr; /* bits below the prefix are 0 */
	uint8_t prefix;
};

/* Class of an address, SPEC App.4; names are in hostname_class_name(). */
enum hostname_class {
	HOSTNAME_PUBLIC = 0, /* the only one connected to by default */
	HOSTNAME_UNSPECIFIED,
	HOSTNAME_LOOPBACK,
	HOSTNAME_METADATA,
	HOSTNAME_MULTICAST,
	HOSTNAME_RESERVED,
	HOSTNAME_PRIVATE,
	HOSTNAME_SHARED, /* 100.64/10, carrier-grade NAT */
	HOSTNAME_LINK_LOCAL,
	HOSTNAME_UNIQUE_LOCAL,
	HOSTNAME_SITE_LOCAL,
	HOSTNAME_DOCUMENTATION,
	HOSTNAME_BENCHMARK, /* 198.18/15, also the stub's own pool */
	HOSTNAME_PROTOCOL, /* 192.0.0/24, 192.88.99/24, 100::/64 */
	HOSTNAME_TUNNEL, /* Teredo, local NAT64, v4-compatible */
	HOSTNAME_OWN, /* an address of this host; never classified here */
	HOSTNAME_CLASSES
};

/*
 * Check and normalise a target as a client wrote it: len bytes, no
 * terminator needed.  IPv6 must stand in brackets; a v4-mapped one becomes
 * the IPv4 address it embeds (H6).  No blanks are trimmed: a blank is a bad
 * byte.  0, or -EINVAL with *ret_fault (may be NULL) set and *ret untouched.
 */
int hostname_parse(const char *raw, size_t len, struct hostname *ret,
    enum hostname_fault *ret_fault);

/* The target for an address that came in binary (SOCKS5). */
void hostname_from_addr(const struct hostname_addr *addr, struct hostname *ret);

/*
 * Check and normalise a pattern of an allow or deny list: exact name, address
 * literal, "*.example.com", or one middle label "a.*.b.c" (H1..H3).
 * Surrounding blanks and one final dot go, letters become lower case; parsing
 * the result again gives the same.  0, or -EINVAL as above.
 */
int hostname_pattern_parse(const char *raw, size_t len,
    char ret_text[HOSTNAME_MAX + 1], enum hostname_fault *ret_fault);

/*
 * Compare whole labels.  Both must be normalised texts of the functions
 * above.  An empty pattern or host matches nothing (H7).
 */
bool hostname_pattern_match(const char *pattern, const char *host);

/* As above, and everything below what the pattern matches (H8). */
bool hostname_deny_match(const char *pattern, const char *host);

/* The pattern is exact: one name or one address. */
bool hostname_pattern_is_exact(const char *pattern);

/*
 * "10.0.0.0/8", "fd00::/8", a bare address (all bits), with or without
 * brackets.  Bits below the prefix must be 0.  0 or -EINVAL as above.
 */
int hostname_cidr_parse(const char *raw, size_t len, struct hostname_cidr *ret,
    enum hostname_fault *ret_fault);
void hostname_cidr_format(const struct hostname_cidr *cidr,
    char ret_text[HOSTNAME_CIDR_TEXT]);
bool hostname_cidr_match(const struct hostname_cidr *cidr,
    const struct hostname_addr *addr);

/*
 * -EAFNOSUPPORT for other families than IPv4 and IPv6, -EINVAL for an IPv6
 * address with a scope id (App.4: any scope id is refused).  A v4-mapped
 * address becomes IPv4.  The caller guarantees the family's full length.
 */
int hostname_addr_from_sockaddr(const struct sockaddr *sa,
    struct hostname_addr *ret);

/* The sockaddr to connect to; returns its length. */
socklen_t hostname_addr_to_sockaddr(const struct hostname_addr *addr,
    uint16_t port, struct sockaddr_storage *ret);

bool hostname_addr_equal(const struct hostname_addr *a,
    const struct hostname_addr *b);

/*
 * The class of an address.  v4-mapped, NAT64 (64:ff9b::/96) and 6to4
 * addresses have the class of the IPv4 address they embed.
 */
enum hostname_class hostname_classify(const struct hostname_addr *addr);

/*
 * Whether `permit private` may open this class at all (G17): never for
 * loopback, metadata, unspecified, multicast and reserved addresses.
 */
bool hostname_class_permittable(enum hostname_class cls);

const char *hostname_class_name(enum hostname_class cls);
const char *hostname_why(enum hostname_fault fault);

#endif
