/*
 * What a refused or failed request is told, in HTTP and SOCKS (SPEC G11, G12,
 * G15, App.3).  Most clients hide the body of a refused CONNECT, so the
 * reason phrase carries the reason.  Pure text; sending is conn.c's.
 */
#ifndef PROXYD_ANSWER_H
#define PROXYD_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/http1.h"
#include "proxyd/decide.h"
#include "proxyd/socks5.h"

#define ANSWER_MAX 2048

struct answer_how {
	bool keep; /* without it: Connection: close */
	bool no_body; /* HEAD */
};

size_t answer_refusal(const struct decide_verdict *verdict, const char *host,
    uint16_t port, const struct answer_how *how, char out[ANSWER_MAX]);
size_t answer_malformed(enum http1_fault fault, char out[ANSWER_MAX]);
size_t answer_slow(char out[ANSWER_MAX]);
/* error: -errno of resolver or connect. */
size_t answer_failure(int error, const char *host, uint16_t port,
    const struct answer_how *how, char out[ANSWER_MAX]);

enum socks5_reply_code answer_socks_refusal(enum decide_reason reason);
enum socks5_reply_code answer_socks_failure(int error);

#endif
