/*
 * HTTP/1.1 heads and bodies.  Every head is read whole and byte by byte; the
 * two must agree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "common/http1.h"
#include "common/size.h"

#define S(text) text, sizeof(text) - 1

/* As http1_head_read() at once and in single bytes. */
static int
read_both(struct http1_head *head, enum http1_kind kind, const char *buf,
    size_t len, enum http1_fault *ret_fault)
{
	enum http1_fault fault = HTTP1_OK;
	struct http1_head slow;
	size_t n;
	int r, r2 = 0;

	*ret_fault = HTTP1_OK;
	http1_head_init(head, kind);
	r = http1_head_read(head, buf, len, ret_fault);
	http1_head_init(&slow, kind);
	for (n = 0; n <= len && r2 == 0; n++)
		r2 = http1_head_read(&slow, buf, n, &fault);
	assert_int_equal(r, r2);
	assert_int_equal(*ret_fault, fault);
	if (r == 1) {
		assert_int_equal(head->size, slow.size);
		assert_int_equal(head->nfields, slow.nfields);
		assert_memory_equal(head->fields, slow.fields,
		    head->nfields * sizeof(head->fields[0]));
	}
	return r;
}

static void
requests_are_read(void **state)
{
	static const char text[] =
	    "GET http://a.test/x HTTP/1.1\r\n"
	    "Host: a.test\r\nX:\t v \t\r\nEmpty:\r\n\r\nrest";
	enum http1_fault fault;
	struct http1_head head;
	unsigned index = 0;
	const struct http1_field *field;

	(void)state;
	assert_int_equal(read_both(&head, HTTP1_REQUEST, S(text), &fault), 1);
	assert_int_equal(head.size, sizeof(text) - 5);
	assert_true(http1_span_is(text, head.method, "GET"));
	assert_true(http1_span_is(text, head.target, "http://a.test/x"));
	assert_int_equal(head.minor, 1);
	assert_int_equal(head.nfields, 3);
	field = http1_field_next(&head, text, "x", &index);
	assert_non_null(field);
	assert_true(http1_span_is(text, field->value, "v"));
	assert_null(http1_field_next(&head, text, "x", &index));
}

static void
responses_are_read(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		unsigned status;
		const char *reason;
	} rows[] = {
		{ S("HTTP/1.1 200 OK\r\n\r\n"), 200, "OK" },
		{ S("HTTP/1.0 404 Not Found\r\nA: b\r\n\r\n"), 404,
		    "Not Found" },
		{ S("HTTP/1.1 200 \r\n\r\n"), 200, "" },
		{ S("HTTP/1.1 200\r\n\r\n"), 200, "" },
	};
	enum http1_fault fault;
	struct http1_head head;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(read_both(&head, HTTP1_RESPONSE, rows[i].text,
				     rows[i].len, &fault),
		    1);
		assert_int_equal(head.status, rows[i].status);
		assert_true(
		    http1_span_is(rows[i].text, head.reason, rows[i].reason));
	}
}

#define L "GET http://a/ HTTP/1.1\r\n"
#define H "Host: a\r\n"

static void
malformed_requests_are_refused(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		enum http1_fault fault;
	} rows[] = {
		{ S("\r\n" L H "\r\n"), HTTP1_BAD_LINE },
		{ S("GET  http://a/ HTTP/1.1\r\n"), HTTP1_BAD_LINE },
		{ S("GET http://a/  HTTP/1.1\r\n"), HTTP1_BAD_LINE },
		{ S("GET http://a/ HTTP/1.1 \r\n"), HTTP1_BAD_LINE },
		{ S("GET http://a/\r\n"), HTTP1_BAD_LINE },
		{ S(" GET http://a/ HTTP/1.1\r\n"), HTTP1_BAD_LINE },
		{ S("G(T http://a/ HTTP/1.1\r\n"), HTTP1_BAD_LINE },
		{ S("GET http://a/\x80 HTTP/1.1\r\n"), HTTP1_BAD_LINE },
		{ S("GET http://a/ http/1.1\r\n"), HTTP1_BAD_LINE },
		{ S("GET http://a/ HTTP/1.2\r\n"), HTTP1_BAD_VERSION },
		{ S("GET http://a/ HTTP/2.0\r\n"), HTTP1_BAD_VERSION },
		{ S("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), HTTP1_BAD_VERSION },
		{ S("GET http://a/ HTTP/1.1\n"), HTTP1_BARE_CR_LF },
		{ S(L "Host: a\nB: c\r\n\r\n"), HTTP1_BARE_CR_LF },
		{ S(L "A: b\rc\r\n\r\n"), HTTP1_BARE_CR_LF },
		{ S(L "A: b\r\r\n\r\n"), HTTP1_BARE_CR_LF },
		{ S(L "A: b\0c\r\n\r\n"), HTTP1_CONTROL_BYTE },
		{ S(L "A: b\x7f\r\n\r\n"), HTTP1_CONTROL_BYTE },
		{ S(L H "A: b\r\n c\r\n\r\n"), HTTP1_FOLDED },
		{ S(L " A: b\r\n\r\n"), HTTP1_FOLDED },
		{ S(L "A : b\r\n\r\n"), HTTP1_BAD_FIELD },
		{ S(L "A\r\n\r\n"), HTTP1_BAD_FIELD },
		{ S(L ": b\r\n\r\n"), HTTP1_BAD_FIELD },
		{ S(L "A(: b\r\n\r\n"), HTTP1_BAD_FIELD },
		{ S(L H "host: b\r\n\r\n"), HTTP1_HOST_REPEATED },
		{ S(L H H "\r\n"), HTTP1_HOST_REPEATED },
		{ S(L "\r\n"), HTTP1_HOST_MISSING },
	};
	enum http1_fault fault;
	struct http1_head head;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		int r = read_both(&head, HTTP1_REQUEST, rows[i].text,
		    rows[i].len, &fault);

		if (r != -EPROTO || fault != rows[i].fault)
			fail_msg("row %zu: %d %s", i, r,
			    http1_fault_text(fault));
	}
	assert_int_equal(read_both(&head, HTTP1_REQUEST,
			     S("CONNECT a:1 HTTP/1.1\r\n\r\n"), &fault),
	    1);
	assert_int_equal(read_both(&head, HTTP1_REQUEST,
			     S("GET http://a/ HTTP/1.0\r\n\r\n"), &fault),
	    1);
}

static void
heads_have_limits(void **state)
{
	static char buf[HTTP1_HEAD_MAX + 100];
	enum http1_fault fault;
	struct http1_head head;
	size_t len, i;

	(void)state;
	memset(buf, 'a', sizeof(buf));
	memcpy(buf, "GET http://", 11);
	http1_head_init(&head, HTTP1_REQUEST);
	assert_int_equal(http1_head_read(&head, buf, HTTP1_LINE_MAX, &fault),
	    0);
	assert_int_equal(http1_head_read(&head, buf, HTTP1_LINE_MAX + 10,
			     &fault),
	    -EPROTO);
	assert_int_equal(fault, HTTP1_LINE_TOO_LONG);
	assert_int_equal(http1_fault_status(fault), 431);

	len = (size_t)sprintf(buf, L H "B: ");
	buf[len] = 'x';
	http1_head_init(&head, HTTP1_REQUEST);
	assert_int_equal(http1_head_read(&head, buf, HTTP1_HEAD_MAX - 1,
			     &fault),
	    0);
	assert_int_equal(http1_head_read(&head, buf, sizeof(buf), &fault),
	    -EPROTO);
	assert_int_equal(fault, HTTP1_HEAD_TOO_LARGE);

	len = (size_t)sprintf(buf, L H);
	for (i = 0; i < HTTP1_FIELDS_MAX - 1; i++)
		len += (size_t)sprintf(buf + len, "A: b\r\n");
	(void)sprintf(buf + len, "\r\n");
	assert_int_equal(read_both(&head, HTTP1_REQUEST, buf, len + 2, &fault),
	    1);
	(void)sprintf(buf + len, "A: b\r\n\r\n");
	assert_int_equal(read_both(&head, HTTP1_REQUEST, buf, len + 8, &fault),
	    -EPROTO);
	assert_int_equal(fault, HTTP1_TOO_MANY_FIELDS);
}

static int
frame(enum http1_kind kind, const char *text, size_t len, bool was_head,
    enum http1_framing *ret, uint64_t *ret_length, enum http1_fault *fault)
{
	struct http1_head head;

	assert_int_equal(read_both(&head, kind, text, len, fault), 1);
	return http1_head_framing(&head, text, was_head, ret, ret_length,
	    fault);
}

static void
framing_in_doubt_is_refused(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		enum http1_fault fault;
	} rows[] = {
		{ S(L H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
			"\r\n"),
		    HTTP1_LENGTH_AND_CODING },
		{ S(L H "Content-Length: 5\r\ncontent-length: 5\r\n\r\n"),
		    HTTP1_LENGTH_REPEATED },
		{ S(L H "Content-Length: 5, 5\r\n\r\n"), HTTP1_LENGTH_BAD },
		{ S(L H "Content-Length: +5\r\n\r\n"), HTTP1_LENGTH_BAD },
		{ S(L H "Content-Length: -5\r\n\r\n"), HTTP1_LENGTH_BAD },
		{ S(L H "Content-Length: 0x5\r\n\r\n"), HTTP1_LENGTH_BAD },
		{ S(L H "Content-Length: 5 5\r\n\r\n"), HTTP1_LENGTH_BAD },
		{ S(L H "Content-Length:\r\n\r\n"), HTTP1_LENGTH_BAD },
		{ S(L H "Content-Length: 9007199254740993\r\n\r\n"),
		    HTTP1_LENGTH_BAD },
		{ S(L H "Content-Length: 18446744073709551621\r\n\r\n"),
		    HTTP1_LENGTH_BAD },
		{ S(L H "Transfer-Encoding: xchunked\r\n\r\n"),
		    HTTP1_CODING_BAD },
		{ S(L H "Transfer-Encoding: chunked, identity\r\n\r\n"),
		    HTTP1_CODING_BAD },
		{ S(L H "Transfer-Encoding: identity\r\n\r\n"),
		    HTTP1_CODING_BAD },
		{ S(L H "Transfer-Encoding: gzip, chunked\r\n\r\n"),
		    HTTP1_CODING_BAD },
		{ S(L H "Transfer-Encoding: chunked\r\n"
			"Transfer-Encoding: chunked\r\n\r\n"),
		    HTTP1_CODING_BAD },
		{ S(L H "Transfer-Encoding: \"chunked\"\r\n\r\n"),
		    HTTP1_CODING_BAD },
		{ S("GET http://a/ HTTP/1.0\r\n"
		    "Transfer-Encoding: chunked\r\n\r\n"),
		    HTTP1_CODING_BAD },
	};
	enum http1_framing framing;
	enum http1_fault fault;
	uint64_t length;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(frame(HTTP1_REQUEST, rows[i].text, rows[i].len,
				     false, &framing, &length, &fault),
		    -EPROTO);
		if (fault != rows[i].fault)
			fail_msg("row %zu: %s", i, http1_fault_text(fault));
	}
}

static void
framing_is_found(void **state)
{
	static const struct {
		enum http1_kind kind;
		const char *text;
		size_t len;
		bool was_head;
		enum http1_framing framing;
		uint64_t length;
	} rows[] = {
		{ HTTP1_REQUEST, S(L H "\r\n"), false, HTTP1_NO_BODY, 0 },
		{ HTTP1_REQUEST, S(L H "Content-Length: 05\r\n\r\n"), false,
		    HTTP1_BY_LENGTH, 5 },
		{ HTTP1_REQUEST, S(L H "Content-Length: 0\r\n\r\n"), false,
		    HTTP1_NO_BODY, 0 },
		{ HTTP1_REQUEST, S(L H "Transfer-Encoding: Chunked\r\n\r\n"),
		    false, HTTP1_BY_CHUNKS, 0 },
		{ HTTP1_RESPONSE, S("HTTP/1.1 200 OK\r\n\r\n"), false,
		    HTTP1_UNTIL_CLOSE, 0 },
		{ HTTP1_RESPONSE,
		    S("HTTP/1.1 200 OK\r\nContent-Length: 9"
		      "\r\n\r\n"),
		    true, HTTP1_NO_BODY, 0 },
		{ HTTP1_RESPONSE,
		    S("HTTP/1.1 304 x\r\nContent-Length: 9"
		      "\r\n\r\n"),
		    false, HTTP1_NO_BODY, 0 },
		{ HTTP1_RESPONSE, S("HTTP/1.1 204 x\r\n\r\n"), false,
		    HTTP1_NO_BODY, 0 },
		{ HTTP1_RESPONSE, S("HTTP/1.1 100 x\r\n\r\n"), false,
		    HTTP1_NO_BODY, 0 },
		{ HTTP1_RESPONSE,
		    S("HTTP/1.1 200 x\r\n"
		      "Transfer-Encoding: chunked\r\n\r\n"),
		    false, HTTP1_BY_CHUNKS, 0 },
	};
	enum http1_framing framing;
	enum http1_fault fault;
	uint64_t length;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(frame(rows[i].kind, rows[i].text, rows[i].len,
				     rows[i].was_head, &framing, &length,
				     &fault),
		    0);
		assert_int_equal(framing, rows[i].framing);
		assert_int_equal(length, rows[i].length);
	}
}

/* Reads a body in pieces of step bytes; content goes to out. */
static int
read_body(enum http1_framing framing, uint64_t length, const char *text,
    size_t len, size_t step, char *out, size_t *ret_out, size_t *ret_used,
    enum http1_fault *fault)
{
	struct http1_body body;
	size_t at = 0, end = 0, used, content;

	*ret_out = 0;
	http1_body_init(&body, framing, length);
	while (at < len && !http1_body_done(&body)) {
		end = at + step < len ? at + step : len;
		while (at < end && !http1_body_done(&body)) {
			if (http1_body_read(&body, text + at, end - at, &used,
				&content, fault) < 0)
				return -EPROTO;
			assert_true(used > 0);
			at += used;
			memcpy(out + *ret_out, text + at - content, content);
			*ret_out += content;
		}
	}
	*ret_used = at;
	return http1_body_done(&body) ? 1 : 0;
}

static void
bodies_are_read_at_any_split(void **state)
{
	static const struct {
		enum http1_framing framing;
		uint64_t length;
		const char *text;
		size_t len;
		const char *content;
		size_t rest;
	} rows[] = {
		{ HTTP1_BY_LENGTH, 5, S("helloGET"), "hello", 3 },
		{ HTTP1_BY_CHUNKS, 0, S("5\r\nhello\r\n0\r\n\r\nGET"), "hello",
		    3 },
		{ HTTP1_BY_CHUNKS, 0,
		    S("5;a=\"b c\"\r\nhello\r\n"
		      "00A\r\n0123456789\r\n000\r\nT: v\r\nU:\r\n\r\nx"),
		    "hello0123456789", 1 },
	};
	enum http1_fault fault;
	char out[64];
	size_t i, step, n, used;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		for (step = 1; step <= rows[i].len; step++) {
			assert_int_equal(read_body(rows[i].framing,
					     rows[i].length, rows[i].text,
					     rows[i].len, step, out, &n, &used,
					     &fault),
			    1);
			assert_int_equal(n, strlen(rows[i].content));
			assert_memory_equal(out, rows[i].content, n);
			assert_int_equal(used, rows[i].len - rows[i].rest);
		}
}

static void
malformed_chunks_are_refused(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		enum http1_fault fault;
	} rows[] = {
		{ S("\r\n"), HTTP1_CHUNK_BAD },
		{ S("g\r\n"), HTTP1_CHUNK_BAD },
		{ S("0x5\r\n"), HTTP1_CHUNK_BAD },
		{ S("+5\r\n"), HTTP1_CHUNK_BAD },
		{ S(" 5\r\n"), HTTP1_CHUNK_BAD },
		{ S("5 \r\n"), HTTP1_CHUNK_BAD },
		{ S("5\n"), HTTP1_CHUNK_BAD },
		{ S("5\rx"), HTTP1_CHUNK_BAD },
		{ S("5;a\nb\r\n"), HTTP1_CHUNK_BAD },
		{ S("5\r\nhelloX"), HTTP1_CHUNK_BAD },
		{ S("5\r\nhello\n"), HTTP1_CHUNK_BAD },
		{ S("5\r\nhello\r\r"), HTTP1_CHUNK_BAD },
		{ S("ffffffffffffffff\r\n"), HTTP1_CHUNK_TOO_LARGE },
		{ S("20000000000001\r\n"), HTTP1_CHUNK_TOO_LARGE },
		{ S("00000000000000005\r\n"), HTTP1_CHUNK_TOO_LARGE },
		{ S("0\r\nx"), HTTP1_OK },
		{ S("0\r\n:v\r\n"), HTTP1_TRAILER_BAD },
		{ S("0\r\na b\r\n"), HTTP1_TRAILER_BAD },
		{ S("0\r\n a: b\r\n"), HTTP1_TRAILER_BAD },
		{ S("0\r\na: b\n"), HTTP1_TRAILER_BAD },
		{ S("0\r\n\rx"), HTTP1_TRAILER_BAD },
	};
	enum http1_fault fault;
	char out[64];
	size_t i, n, used;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		int r;

		fault = HTTP1_OK;
		r = read_body(HTTP1_BY_CHUNKS, 0, rows[i].text, rows[i].len, 1,
		    out, &n, &used, &fault);
		if (fault != rows[i].fault ||
		    r != (fault == HTTP1_OK ? 0 : -EPROTO))
			fail_msg("row %zu: %d %s", i, r,
			    http1_fault_text(fault));
	}
}

static void
extensions_and_trailers_have_limits(void **state)
{
	static char text[HTTP1_TRAILER_MAX + 64], out[8];
	enum http1_fault fault;
	size_t n, used;

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "5;", 2);
	assert_int_equal(read_body(HTTP1_BY_CHUNKS, 0, text,
			     2 + HTTP1_CHUNK_EXT_MAX, 7, out, &n, &used,
			     &fault),
	    0);
	assert_int_equal(read_body(HTTP1_BY_CHUNKS, 0, text,
			     3 + HTTP1_CHUNK_EXT_MAX, 7, out, &n, &used,
			     &fault),
	    -EPROTO);
	memcpy(text, "0\r\na:", 5);
	assert_int_equal(read_body(HTTP1_BY_CHUNKS, 0, text, sizeof(text), 9,
			     out, &n, &used, &fault),
	    -EPROTO);
	assert_int_equal(fault, HTTP1_TRAILER_BAD);
}

static void
authority_targets_are_strict(void **state)
{
	static const struct {
		const char *text;
		const char *host;
		unsigned port;
		enum http1_fault fault;
	} rows[] = {
		{ "a.test:443", "a.test", 443, HTTP1_OK },
		{ "[::1]:443", "[::1]", 443, HTTP1_OK },
		{ "a.test:65535", "a.test", 65535, HTTP1_OK },
		{ "a.test", NULL, 0, HTTP1_PORT_BAD },
		{ "a.test:", NULL, 0, HTTP1_PORT_BAD },
		{ "a.test:0", NULL, 0, HTTP1_PORT_BAD },
		{ "a.test:65536", NULL, 0, HTTP1_PORT_BAD },
		{ "a.test:65979", NULL, 0, HTTP1_PORT_BAD },
		{ "a.test:9080x", NULL, 0, HTTP1_PORT_BAD },
		{ "a.test:+80", NULL, 0, HTTP1_PORT_BAD },
		{ "a.test:0443", NULL, 0, HTTP1_PORT_BAD },
		{ "a.test:80:80", NULL, 0, HTTP1_PORT_BAD },
		{ "a@b:80", NULL, 0, HTTP1_TARGET_BAD },
		{ "a:443@evil:80", NULL, 0, HTTP1_TARGET_BAD },
		{ "a.test:80/", NULL, 0, HTTP1_TARGET_BAD },
		{ "http://a.test:80", NULL, 0, HTTP1_TARGET_BAD },
		{ ":80", NULL, 0, HTTP1_TARGET_BAD },
		{ "[::1:80", NULL, 0, HTTP1_TARGET_BAD },
		{ "[::1]80", NULL, 0, HTTP1_TARGET_BAD },
		{ "[::1]", NULL, 0, HTTP1_PORT_BAD },
	};
	struct http1_span host;
	enum http1_fault fault;
	uint16_t port;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct http1_span span = { 0, (uint16_t)strlen(rows[i].text) };

		fault = HTTP1_OK;
		assert_int_equal(http1_target_authority(rows[i].text, span,
				     &host, &port, &fault),
		    rows[i].host ? 0 : -EINVAL);
		assert_int_equal(fault, rows[i].fault);
		if (rows[i].host != NULL) {
			assert_true(
			    http1_span_is(rows[i].text, host, rows[i].host));
			assert_int_equal(port, rows[i].port);
		}
	}
}

static void
absolute_targets_are_strict(void **state)
{
	static const struct {
		const char *text;
		const char *host;
		unsigned port;
		const char *path;
		enum http1_fault fault;
	} rows[] = {
		{ "http://a.test/x?y=@z:1", "a.test", 80, "/x?y=@z:1",
		    HTTP1_OK },
		{ "HTTP://a.test:8080", "a.test", 8080, "", HTTP1_OK },
		{ "http://a.test?q", "a.test", 80, "?q", HTTP1_OK },
		{ "http://[::1]:81/", "[::1]", 81, "/", HTTP1_OK },
		{ "https://a.test/", NULL, 0, NULL, HTTP1_TARGET_HTTPS },
		{ "/x", NULL, 0, NULL, HTTP1_TARGET_ORIGIN },
		{ "*", NULL, 0, NULL, HTTP1_TARGET_ORIGIN },
		{ "ftp://a.test/", NULL, 0, NULL, HTTP1_TARGET_BAD },
		{ "a.test:80", NULL, 0, NULL, HTTP1_TARGET_BAD },
		{ "http:///x", NULL, 0, NULL, HTTP1_TARGET_BAD },
		{ "http://", NULL, 0, NULL, HTTP1_TARGET_BAD },
		{ "http://u@a.test/", NULL, 0, NULL, HTTP1_TARGET_BAD },
		{ "http://a.test:80@b/", NULL, 0, NULL, HTTP1_TARGET_BAD },
		{ "http://a.test/#f", NULL, 0, NULL, HTTP1_TARGET_BAD },
		{ "http://a.test:/", NULL, 0, NULL, HTTP1_PORT_BAD },
		{ "http://a.test:x/", NULL, 0, NULL, HTTP1_PORT_BAD },
		{ "http://a.test:99999/", NULL, 0, NULL, HTTP1_PORT_BAD },
	};
	struct http1_span host, path;
	enum http1_fault fault;
	uint16_t port;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct http1_span span = { 0, (uint16_t)strlen(rows[i].text) };

		fault = HTTP1_OK;
		assert_int_equal(http1_target_absolute(rows[i].text, span,
				     &host, &port, &path, &fault),
		    rows[i].host ? 0 : -EINVAL);
		assert_int_equal(fault, rows[i].fault);
		if (rows[i].host != NULL) {
			assert_true(
			    http1_span_is(rows[i].text, host, rows[i].host));
			assert_true(
			    http1_span_is(rows[i].text, path, rows[i].path));
			assert_int_equal(port, rows[i].port);
		}
	}
}

static void
hop_by_hop_fields_are_known(void **state)
{
	static const char text[] =
	    L H "Connection: close, X-Secret\r\nX-Secret: 1\r\nTE: a\r\n"
		"Keep-Alive: 1\r\nProxy-Authorization: b\r\nProxy-Foo: c\r\n"
		"Trailer: d\r\nUpgrade: e\r\nAccept: f\r\n"
		"X-Secretive: g\r\n\r\n";
	enum http1_fault fault;
	struct http1_head head;
	unsigned i, kept = 0;

	(void)state;
	assert_int_equal(read_both(&head, HTTP1_REQUEST, S(text), &fault), 1);
	for (i = 0; i < head.nfields; i++)
		if (!http1_field_is_hop(&head, text, &head.fields[i]))
			kept++;
	assert_int_equal(kept, 3);
	assert_false(http1_head_keeps(&head, text));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_read),
		cmocka_unit_test(responses_are_read),
		cmocka_unit_test(malformed_requests_are_refused),
		cmocka_unit_test(heads_have_limits),
		cmocka_unit_test(framing_in_doubt_is_refused),
		cmocka_unit_test(framing_is_found),
		cmocka_unit_test(bodies_are_read_at_any_split),
		cmocka_unit_test(malformed_chunks_are_refused),
		cmocka_unit_test(extensions_and_trailers_have_limits),
		cmocka_unit_test(authority_targets_are_strict),
		cmocka_unit_test(absolute_targets_are_strict),
		cmocka_unit_test(hop_by_hop_fields_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
