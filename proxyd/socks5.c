/*
 * SOCKS5 readers; see socks5.h.  Nothing is kept between calls, so bytes that
 * come one at a time and bytes that come all at once are read the same.
 */
#include "proxyd/socks5.h"

#include <errno.h>
#include <string.h>

#define VERSION 5
#define METHOD_NONE 0
#define COMMAND_CONNECT 1

int
socks5_read_greeting(const uint8_t *data, size_t len, bool *ret_none)
{
	size_t i, n;
	bool none = false;

	if (len > 0 && data[0] != VERSION)
		return -EPROTO;
	if (len < 2)
		return 0;
	n = data[1];
	if (len < 2 + n)
		return 0;
	for (i = 0; i < n; i++)
		none = none || data[2 + i] == METHOD_NONE;
	*ret_none = none;
	return (int)(2 + n);
}

/* Where the address starts, or its length; 0 for an unknown type. */
static size_t
address_length(uint8_t kind)
{
	if (kind == SOCKS5_IPV4)
		return 4;
	return kind == SOCKS5_IPV6 ? 16 : 0;
}

int
socks5_read_request(const uint8_t *data, size_t len, struct socks5_request *ret)
{
	size_t at = 4, host_len;

	if (len > 0 && data[0] != VERSION)
		return -EPROTO;
	if (len < 4)
		return 0;
	if (data[2] != 0)
		return -EPROTO;
	memset(ret, 0, sizeof(*ret));
	host_len = address_length(data[3]);
	if (host_len == 0 && data[3] != SOCKS5_NAME) {
		/* The length of an unknown type cannot be known. */
		ret->refuse = SOCKS5_BAD_ADDRESS;
		return 4;
	}
	if (data[3] == SOCKS5_NAME) {
		if (len < 5)
			return 0;
		host_len = data[4];
		at = 5;
	}
	if (len < at + host_len + 2)
		return 0;
	ret->kind = (enum socks5_kind)data[3];
	ret->host = data + at;
	ret->host_len = (uint8_t)host_len;
	at += host_len;
	ret->port = (uint16_t)(data[at] << 8 | data[at + 1]);
	if (data[1] != COMMAND_CONNECT)
		ret->refuse = SOCKS5_BAD_COMMAND;
	return (int)(at + 2);
}

void
socks5_write_reply(enum socks5_reply_code code,
    uint8_t ret_reply[SOCKS5_REPLY_SIZE])
{
	memset(ret_reply, 0, SOCKS5_REPLY_SIZE);
	ret_reply[0] = VERSION;
	ret_reply[1] = (uint8_t)code;
	ret_reply[3] = SOCKS5_IPV4;
}
