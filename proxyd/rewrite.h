/*
 * Heads of plain HTTP as they go on: rebuilt from what was parsed, never
 * copied, so that proxy and origin cannot read them differently.  Pure.
 * RFC 9110 7.6, RFC 9112 3.2.2; SPEC G11, G13.
 */
#ifndef PROXYD_REWRITE_H
#define PROXYD_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/http1.h"

struct hostname;

/* A rewritten head is never longer than the head and this. */
#define REWRITE_MORE 512

/*
 * Origin-form request with Host made from the URI.  Dropped: Host, framing
 * fields (made anew), hop-by-hop fields and what Connection names, Proxy-*.
 * The length written, or -ENOSPC.
 */
ptrdiff_t rewrite_request(const struct http1_head *head, const char *buf,
    const struct hostname *host, uint16_t port, struct http1_span path,
    enum http1_framing framing, uint64_t length, char *out, size_t size);

struct rewrite_answer {
	enum http1_framing framing; /* towards the client */
	uint64_t length; /* HTTP1_BY_LENGTH */
	bool keep; /* the connection stays open after it */
	bool client_http10;
};

/*
 * Dropped: hop-by-hop fields, Proxy-*, and X-Deny-Reason, by which an origin
 * could fake a refusal of ours.  With HTTP1_NO_BODY a Content-Length of the
 * origin stays (HEAD, 304).  The length written, or -ENOSPC.
 */
ptrdiff_t rewrite_response(const struct http1_head *head, const char *buf,
    const struct rewrite_answer *answer, char *out, size_t size);

#endif
