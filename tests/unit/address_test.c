/*
 * The address table of SPEC App.4: first and last address of every range, the
 * ones beside it, and IPv4 addresses inside IPv6.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/hostname.h"
#include "common/size.h"

static struct hostname_addr
addr_of(const char *text)
{
	struct hostname_addr addr = { .family = 6 };

	if (strchr(text, ':') == NULL) {
		addr.family = 4;
		assert_int_equal(inet_pton(AF_INET, text, addr.bytes), 1);
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, addr.bytes), 1);
	}
	return addr;
}

static void
every_range_is_classified(void **state)
{
	static const struct {
		const char *text;
		enum hostname_class cls;
	} rows[] = {
		{ "0.0.0.0", HOSTNAME_UNSPECIFIED },
		{ "0.255.255.255", HOSTNAME_UNSPECIFIED },
		{ "1.0.0.0", HOSTNAME_PUBLIC },
		{ "9.255.255.255", HOSTNAME_PUBLIC },
		{ "10.0.0.0", HOSTNAME_PRIVATE },
		{ "10.255.255.255", HOSTNAME_PRIVATE },
		{ "11.0.0.0", HOSTNAME_PUBLIC },
		{ "100.63.255.255", HOSTNAME_PUBLIC },
		{ "100.64.0.0", HOSTNAME_SHARED },
		{ "100.127.255.255", HOSTNAME_SHARED },
		{ "100.128.0.0", HOSTNAME_PUBLIC },
		{ "100.100.100.200", HOSTNAME_METADATA },
		{ "126.255.255.255", HOSTNAME_PUBLIC },
		{ "127.0.0.0", HOSTNAME_LOOPBACK },
		{ "127.255.255.255", HOSTNAME_LOOPBACK },
		{ "128.0.0.0", HOSTNAME_PUBLIC },
		{ "168.63.129.15", HOSTNAME_PUBLIC },
		{ "168.63.129.16", HOSTNAME_METADATA },
		{ "169.253.255.255", HOSTNAME_PUBLIC },
		{ "169.254.0.0", HOSTNAME_LINK_LOCAL },
		{ "169.254.169.254", HOSTNAME_METADATA },
		{ "169.254.170.2", HOSTNAME_METADATA },
		{ "169.254.255.255", HOSTNAME_LINK_LOCAL },
		{ "169.255.0.0", HOSTNAME_PUBLIC },
		{ "172.15.255.255", HOSTNAME_PUBLIC },
		{ "172.16.0.0", HOSTNAME_PRIVATE },
		{ "172.31.255.255", HOSTNAME_PRIVATE },
		{ "172.32.0.0", HOSTNAME_PUBLIC },
		{ "192.0.0.1", HOSTNAME_PROTOCOL },
		{ "192.0.1.0", HOSTNAME_PUBLIC },
		{ "192.0.2.1", HOSTNAME_DOCUMENTATION },
		{ "192.88.99.1", HOSTNAME_PROTOCOL },
		{ "192.167.255.255", HOSTNAME_PUBLIC },
		{ "192.168.0.0", HOSTNAME_PRIVATE },
		{ "192.168.255.255", HOSTNAME_PRIVATE },
		{ "192.169.0.0", HOSTNAME_PUBLIC },
		{ "198.17.255.255", HOSTNAME_PUBLIC },
		{ "198.18.0.0", HOSTNAME_BENCHMARK },
		{ "198.19.255.255", HOSTNAME_BENCHMARK },
		{ "198.20.0.0", HOSTNAME_PUBLIC },
		{ "198.51.100.7", HOSTNAME_DOCUMENTATION },
		{ "203.0.113.7", HOSTNAME_DOCUMENTATION },
		{ "223.255.255.255", HOSTNAME_PUBLIC },
		{ "224.0.0.1", HOSTNAME_MULTICAST },
		{ "239.255.255.255", HOSTNAME_MULTICAST },
		{ "240.0.0.0", HOSTNAME_RESERVED },
		{ "255.255.255.255", HOSTNAME_RESERVED },
		{ "::", HOSTNAME_UNSPECIFIED },
		{ "::1", HOSTNAME_LOOPBACK },
		{ "::2", HOSTNAME_TUNNEL },
		{ "::8.8.8.8", HOSTNAME_TUNNEL },
		{ "::ffff:8.8.8.8", HOSTNAME_PUBLIC },
		{ "::ffff:127.0.0.1", HOSTNAME_LOOPBACK },
		{ "::ffff:169.254.169.254", HOSTNAME_METADATA },
		{ "64:ff9b::8.8.8.8", HOSTNAME_PUBLIC },
		{ "64:ff9b::10.0.0.1", HOSTNAME_PRIVATE },
		{ "64:ff9b::169.254.169.254", HOSTNAME_METADATA },
		{ "64:ff9b:1::8.8.8.8", HOSTNAME_TUNNEL },
		{ "2002:808:808::1", HOSTNAME_PUBLIC },
		{ "2002:a00:1::1", HOSTNAME_PRIVATE },
		{ "2002:7f00:1::", HOSTNAME_LOOPBACK },
		{ "100::1", HOSTNAME_PROTOCOL },
		{ "100:0:0:1::1", HOSTNAME_PUBLIC },
		{ "2001::1", HOSTNAME_TUNNEL },
		{ "2001:1::1", HOSTNAME_PUBLIC },
		{ "2001:db8::1", HOSTNAME_DOCUMENTATION },
		{ "2001:4860:4860::8888", HOSTNAME_PUBLIC },
		{ "fbff:ffff::1", HOSTNAME_PUBLIC },
		{ "fc00::1", HOSTNAME_UNIQUE_LOCAL },
		{ "fd73:746b::1", HOSTNAME_UNIQUE_LOCAL },
		{ "fdff:ffff::1", HOSTNAME_UNIQUE_LOCAL },
		{ "fd00:ec2::254", HOSTNAME_METADATA },
		{ "fe80::1", HOSTNAME_LINK_LOCAL },
		{ "febf::1", HOSTNAME_LINK_LOCAL },
		{ "fec0::1", HOSTNAME_SITE_LOCAL },
		{ "feff::1", HOSTNAME_SITE_LOCAL },
		{ "ff02::1", HOSTNAME_MULTICAST },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct hostname_addr addr = addr_of(rows[i].text);

		if (hostname_classify(&addr) != rows[i].cls)
			fail_msg("%s is %s", rows[i].text,
			    hostname_class_name(hostname_classify(&addr)));
	}
}

static void
some_classes_can_never_be_permitted(void **state)
{
	static const enum hostname_class never[] = { HOSTNAME_LOOPBACK,
		HOSTNAME_METADATA, HOSTNAME_UNSPECIFIED, HOSTNAME_MULTICAST,
		HOSTNAME_RESERVED, HOSTNAME_TUNNEL };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(never); i++)
		assert_false(hostname_class_permittable(never[i]));
	assert_true(hostname_class_permittable(HOSTNAME_PRIVATE));
	assert_true(hostname_class_permittable(HOSTNAME_UNIQUE_LOCAL));
	assert_false(hostname_class_permittable(HOSTNAME_CLASSES));
}

static void
ranges_are_read_strictly(void **state)
{
	static const struct {
		const char *raw;
		const char *text; /* NULL: refused */
		enum hostname_fault fault;
	} rows[] = {
		{ "10.0.0.0/8", "10.0.0.0/8", HOSTNAME_OK },
		{ "10.1.2.3", "10.1.2.3/32", HOSTNAME_OK },
		{ "0.0.0.0/0", "0.0.0.0/0", HOSTNAME_OK },
		{ "fd00::/8", "fd00::/8", HOSTNAME_OK },
		{ "[fd00::]/8", "fd00::/8", HOSTNAME_OK },
		{ "fd00::1", "fd00::1/128", HOSTNAME_OK },
		{ "10.0.0.1/8", NULL, HOSTNAME_HOST_BITS },
		{ "fd00::1/8", NULL, HOSTNAME_HOST_BITS },
		{ "", NULL, HOSTNAME_EMPTY },
		{ "10.0.0.0/33", NULL, HOSTNAME_BAD_PREFIX },
		{ "10.0.0.0/", NULL, HOSTNAME_BAD_PREFIX },
		{ "10.0.0.0/08", NULL, HOSTNAME_BAD_PREFIX },
		{ "10.0.0.0/+8", NULL, HOSTNAME_BAD_PREFIX },
		{ "10.0.0.0/8/8", NULL, HOSTNAME_BAD_PREFIX },
		{ "10/8", NULL, HOSTNAME_BAD_PREFIX },
		{ "example.com/8", NULL, HOSTNAME_BAD_PREFIX },
		{ "fd00::/129", NULL, HOSTNAME_BAD_PREFIX },
	};
	struct hostname_cidr cidr;
	enum hostname_fault fault;
	char text[HOSTNAME_CIDR_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		int r = hostname_cidr_parse(rows[i].raw, strlen(rows[i].raw),
		    &cidr, &fault);

		assert_int_equal(r, rows[i].text == NULL ? -EINVAL : 0);
		if (r < 0) {
			assert_int_equal(fault, rows[i].fault);
			continue;
		}
		hostname_cidr_format(&cidr, text);
		assert_string_equal(text, rows[i].text);
	}
}

static void
ranges_match_their_family_only(void **state)
{
	struct hostname_addr in = addr_of("10.255.0.1");
	struct hostname_addr out = addr_of("11.0.0.1");
	struct hostname_addr six = addr_of("a00::1");
	struct hostname_cidr cidr;

	(void)state;
	assert_int_equal(hostname_cidr_parse("10.0.0.0/8", 10, &cidr, NULL), 0);
	assert_true(hostname_cidr_match(&cidr, &in));
	assert_false(hostname_cidr_match(&cidr, &out));
	assert_false(hostname_cidr_match(&cidr, &six));
}

static void
scopes_and_other_families_are_refused(void **state)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		.sin6_scope_id = 2 };
	struct sockaddr_storage un = { .ss_family = AF_UNIX };
	struct sockaddr_storage ss;
	struct hostname_addr addr, back;

	(void)state;
	assert_int_equal(inet_pton(AF_INET6, "fe80::1", &in6.sin6_addr), 1);
	assert_int_equal(hostname_addr_from_sockaddr((struct sockaddr *)&in6,
			     &addr),
	    -EINVAL);
	assert_int_equal(hostname_addr_from_sockaddr((struct sockaddr *)&un,
			     &addr),
	    -EAFNOSUPPORT);
	in6.sin6_scope_id = 0;
	assert_int_equal(inet_pton(AF_INET6, "::ffff:1.2.3.4", &in6.sin6_addr),
	    1);
	assert_int_equal(hostname_addr_from_sockaddr((struct sockaddr *)&in6,
			     &addr),
	    0);
	assert_int_equal(addr.family, 4);
	assert_int_equal(hostname_addr_to_sockaddr(&addr, 80, &ss),
	    sizeof(struct sockaddr_in));
	assert_int_equal(hostname_addr_from_sockaddr((struct sockaddr *)&ss,
			     &back),
	    0);
	assert_true(hostname_addr_equal(&addr, &back));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_range_is_classified),
		cmocka_unit_test(some_classes_can_never_be_permitted),
		cmocka_unit_test(ranges_are_read_strictly),
		cmocka_unit_test(ranges_match_their_family_only),
		cmocka_unit_test(scopes_and_other_families_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
