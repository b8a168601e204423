/*
 * SOCKS5 (RFC 1928) as stockade-proxyd speaks it: no authentication, CONNECT
 * only (SPEC G15).  Pure readers of hostile bytes; the caller collects what
 * arrives and calls again with more until a reader is satisfied.
 */
#ifndef PROXYD_SOCKS5_H
#define PROXYD_SOCKS5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOCKS5_GREETING_MAX 257 /* 2 + 255 */
#define SOCKS5_REQUEST_MAX 262 /* 4 + 1 + 255 + 2 */
#define SOCKS5_REPLY_SIZE 10

enum socks5_reply_code {
	SOCKS5_OK = 0,
	SOCKS5_GENERAL = 1,
	SOCKS5_NOT_ALLOWED = 2,
	SOCKS5_NET_UNREACHABLE = 3,
	SOCKS5_HOST_UNREACHABLE = 4,
	SOCKS5_REFUSED = 5,
	SOCKS5_TIMED_OUT = 6,
	SOCKS5_BAD_COMMAND = 7,
	SOCKS5_BAD_ADDRESS = 8
};

enum socks5_kind { SOCKS5_IPV4 = 1, SOCKS5_NAME = 3, SOCKS5_IPV6 = 4 };

struct socks5_request {
	enum socks5_reply_code refuse; /* not SOCKS5_OK: answer and close */
	enum socks5_kind kind;
	const uint8_t *host; /* in the caller's buffer; unchecked */
	uint8_t host_len; /* 0..255, 4 or 16 */
	uint16_t port; /* 0..65535 */
};

/*
 * The client's first message.  Bytes consumed, 0 if more are needed, -EPROTO
 * for another version (SOCKS4 begins with 4): close without an answer.
 * *ret_none: the method "no authentication" is offered; else FF is answered.
 */
int socks5_read_greeting(const uint8_t *data, size_t len, bool *ret_none);

/* The request.  As above; a reserved byte that is not 0 is -EPROTO too. */
int socks5_read_request(const uint8_t *data, size_t len,
    struct socks5_request *ret);

/* The address in an answer is not used by clients and stays zero. */
void socks5_write_reply(enum socks5_reply_code code,
    uint8_t ret_reply[SOCKS5_REPLY_SIZE]);

#endif
