/*
 * SOCKS5.  Property: a prefix of what is accepted asks for more, a longer
 * input is read the same, and host and port are those of the bytes.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/socks5.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define CHECK(x) \
	do { \
		if (!(x)) \
			abort(); \
	} while (0)

static void
check_greeting(const uint8_t *data, size_t len)
{
	bool none = false, none2 = false;
	int r = socks5_read_greeting(data, len, &none);
	size_t i;

	if (r <= 0)
		return;
	CHECK((size_t)r <= len && r <= SOCKS5_GREETING_MAX);
	CHECK(none == (memchr(data + 2, 0, (size_t)r - 2) != NULL));
	for (i = 0; i < (size_t)r; i++)
		CHECK(socks5_read_greeting(data, i, &none2) == 0);
	CHECK(socks5_read_greeting(data, (size_t)r, &none2) == r);
	CHECK(none == none2);
}

static void
check_request(const uint8_t *data, size_t len)
{
	struct socks5_request req, again;
	int r = socks5_read_request(data, len, &req);
	size_t i;

	if (r <= 0)
		return;
	CHECK((size_t)r <= len && r <= SOCKS5_REQUEST_MAX);
	for (i = 0; i < (size_t)r; i++)
		CHECK(socks5_read_request(data, i, &again) == 0);
	CHECK(socks5_read_request(data, (size_t)r, &again) == r);
	CHECK(again.refuse == req.refuse && again.port == req.port &&
	    again.host == req.host && again.host_len == req.host_len);
	if (req.refuse == SOCKS5_BAD_ADDRESS)
		return;
	CHECK(req.host >= data && req.host + req.host_len + 2 == data + r);
	CHECK(req.port == (data[r - 2] << 8 | data[r - 1]));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	check_greeting(data, len);
	check_request(data, len);
	return 0;
}
