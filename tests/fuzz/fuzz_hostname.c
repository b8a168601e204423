/*
 * Names, patterns, ranges.  Properties: what is accepted is in normal form
 * (reading it again gives the same), has only the bytes of names, and matches
 * as a slow comparison says.  The input is a pattern, a NUL, and a host.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostname.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define CHECK(x) \
	do { \
		if (!(x)) \
			abort(); \
	} while (0)

/* Labels of text in order; their number. */
static size_t
split(char *text, char *labels[128])
{
	size_t n = 0;

	for (;;) {
		char *dot = strchr(text, '.');

		labels[n++] = text;
		if (dot == NULL)
			return n;
		*dot = '\0';
		text = dot + 1;
	}
}

/* The specification's words (H1, H2, H4) taken literally. */
static bool
slow_match(const char *pattern, const char *host)
{
	char p[HOSTNAME_MAX + 1], h[HOSTNAME_MAX + 1];
	char *pl[128], *hl[128];
	size_t np, nh, i;

	(void)strcpy(p, pattern);
	(void)strcpy(h, host);
	np = split(p, pl);
	nh = split(h, hl);
	if (strcmp(pl[0], "*") == 0) {
		if (nh < np)
			return false;
		for (i = 1; i < np; i++)
			if (strcmp(pl[np - i], hl[nh - i]) != 0)
				return false;
		return true;
	}
	if (np != nh)
		return false;
	for (i = 0; i < np; i++)
		if (strcmp(pl[i], "*") != 0 && strcmp(pl[i], hl[i]) != 0)
			return false;
	return true;
}

static void
check_text(const char *text)
{
	CHECK(strlen(text) > 0 && strlen(text) <= HOSTNAME_MAX);
	CHECK(strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.*[:]") ==
	    strlen(text));
	CHECK(strstr(text, "..") == NULL);
}

static bool
check_host(const char *raw, size_t len, struct hostname *ret)
{
	enum hostname_fault fault = HOSTNAME_OK;
	struct hostname again;
	struct hostname from;

	if (hostname_parse(raw, len, ret, &fault) < 0) {
		CHECK(fault != HOSTNAME_OK);
		return false;
	}
	check_text(ret->text);
	CHECK(strchr(ret->text, '*') == NULL);
	CHECK(hostname_parse(ret->text, strlen(ret->text), &again, NULL) == 0);
	CHECK(memcmp(ret, &again, sizeof(again)) == 0);
	if (ret->kind != HOSTNAME_NAME) {
		hostname_from_addr(&ret->addr, &from);
		CHECK(strcmp(from.text, ret->text) == 0);
		(void)hostname_classify(&ret->addr);
	}
	return true;
}

static void
check_range(const char *raw, size_t len)
{
	struct hostname_cidr cidr, again;
	char text[HOSTNAME_CIDR_TEXT];

	if (hostname_cidr_parse(raw, len, &cidr, NULL) < 0)
		return;
	hostname_cidr_format(&cidr, text);
	CHECK(hostname_cidr_parse(text, strlen(text), &again, NULL) == 0);
	CHECK(memcmp(&cidr, &again, sizeof(cidr)) == 0);
	CHECK(hostname_cidr_match(&cidr, &cidr.addr));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	const char *nul = memchr(text, '\0', len);
	size_t n = nul == NULL ? len : (size_t)(nul - text);
	char pattern[HOSTNAME_MAX + 1], again[HOSTNAME_MAX + 1];
	struct hostname host;
	bool have_host;

	check_range(text, n);
	if (nul == NULL) {
		(void)check_host(text, len, &host);
		return 0;
	}
	have_host = check_host(nul + 1, len - n - 1, &host);
	if (hostname_pattern_parse(text, n, pattern, NULL) < 0)
		return 0;
	check_text(pattern);
	CHECK(
	    hostname_pattern_parse(pattern, strlen(pattern), again, NULL) == 0);
	CHECK(strcmp(pattern, again) == 0);
	if (!have_host)
		return 0;
	CHECK(hostname_pattern_match(pattern, host.text) ==
	    slow_match(pattern, host.text));
	if (hostname_pattern_match(pattern, host.text))
		CHECK(hostname_deny_match(pattern, host.text));
	return 0;
}
