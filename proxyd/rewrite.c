/*
 * Heads of plain HTTP as they go on; see rewrite.h. Runs in stockade-proxyd, on
 * heads that http1.c has read and found well-formed.
 */
#include "proxyd/rewrite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/hostname.h"

struct out {
	char *text;
	size_t len;
	size_t size;
	bool full;
};

static void
put(struct out *out, const char *data, size_t len)
{
	if (len > out->size - out->len) {
		out->full = true;
		return;
	}
	memcpy(out->text + out->len, data, len);
	out->len += len;
}

static void __attribute__((format(printf, 2, 3)))
put_format(struct out *out, const char *format, ...)
{
	char line[HOSTNAME_MAX + 64];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(line)) {
		out->full = true;
		return;
	}
	put(out, line, (size_t)n);
}

static void
put_span(struct out *out, const char *buf, struct http1_span span)
{
	put(out, buf + span.at, span.len);
}

static void
put_field(struct out *out, const char *buf, const struct http1_field *field)
{
	put_span(out, buf, field->name);
	put(out, ": ", 2);
	put_span(out, buf, field->value);
	put(out, "\r\n", 2);
}

static void
put_framing(struct out *out, enum http1_framing framing, uint64_t length)
{
	if (framing == HTTP1_BY_CHUNKS)
		put_format(out, "Transfer-Encoding: chunked\r\n");
	else if (framing == HTTP1_BY_LENGTH)
		put_format(out, "Content-Length: %" PRIu64 "\r\n", length);
}

static ptrdiff_t
finish(struct out *out)
{
	put(out, "\r\n", 2);
	return out->full ? -ENOSPC : (ptrdiff_t)out->len;
}

ptrdiff_t
rewrite_request(const struct http1_head *head, const char *buf,
    const struct hostname *host, uint16_t port, struct http1_span path,
    enum http1_framing framing, uint64_t length, char *text, size_t size)
{
	struct out out = { text, 0, size, false };
	const struct http1_field *field;
	unsigned i;

	put_span(&out, buf, head->method);
	put(&out, " ", 1);
	/* RFC 9112 3.2.4: OPTIONS for the server itself. */
	if (path.len == 0 && http1_span_is(buf, head->method, "OPTIONS"))
		put(&out, "*", 1);
	else if (path.len == 0 || buf[path.at] != '/')
		put(&out, "/", 1);
	put_span(&out, buf, path);
	put_format(&out, " HTTP/1.1\r\nHost: %s", host->text);
	if (port != 80)
		put_format(&out, ":%u", (unsigned)port);
	put(&out, "\r\n", 2);
	for (i = 0; i < head->nfields; i++) {
		field = &head->fields[i];
		if (http1_span_is_nocase(buf, field->name, "host") ||
		    http1_span_is_nocase(buf, field->name, "content-length") ||
		    http1_field_is_hop(head, buf, field))
			continue;
		put_field(&out, buf, field);
	}
	/* A body of no bytes was announced: say so, or POST gets 411. */
	if (framing == HTTP1_NO_BODY && head->nlength == 1)
		put_framing(&out, HTTP1_BY_LENGTH, 0);
	else
		put_framing(&out, framing, length);
	return finish(&out);
}

ptrdiff_t
rewrite_response(const struct http1_head *head, const char *buf,
    const struct rewrite_answer *answer, char *text, size_t size)
{
	struct out out = { text, 0, size, false };
	const struct http1_field *field;
	bool keep_length = answer->framing == HTTP1_NO_BODY &&
	    head->status >= 200 && head->status != 204;
	unsigned i;

	put_format(&out, "HTTP/1.1 %u ", (unsigned)head->status);
	put_span(&out, buf, head->reason);
	put(&out, "\r\n", 2);
	for (i = 0; i < head->nfields; i++) {
		field = &head->fields[i];
		if (http1_span_is_nocase(buf, field->name, "x-deny-reason") ||
		    http1_field_is_hop(head, buf, field))
			continue;
		if (http1_span_is_nocase(buf, field->name, "content-length") &&
		    !keep_length)
			continue;
		put_field(&out, buf, field);
	}
	put_framing(&out, answer->framing, answer->length);
	if (head->status >= 200 && !answer->keep)
		put_format(&out, "Connection: close\r\n");
	else if (head->status >= 200 && answer->client_http10)
		put_format(&out, "Connection: keep-alive\r\n");
	return finish(&out);
}
