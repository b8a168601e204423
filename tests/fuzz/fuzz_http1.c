/*
 * HTTP/1.1 heads, bodies, and the heads that go on.  Properties:
 *   a head read in pieces is read as in one;
 *   a body read in pieces has the content that it has in one, and the length
 *     that its framing says;
 *   a rewritten head is accepted by the same strict reader, has exactly one
 *     Host of the URI, the same framing, and no hop-by-hop field.
 * The first byte says: bit 0 a response, bits 1-3 size of the pieces, bit 4
 * the request was HEAD.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostname.h"
#include "common/http1.h"
#include "proxyd/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define CHECK(x) \
	do { \
		if (!(x)) \
			abort(); \
	} while (0)
#define INPUT_MAX 65536

static int
read_in_pieces(struct http1_head *head, enum http1_kind kind, const char *buf,
    size_t len, size_t step, enum http1_fault *fault)
{
	size_t n = 0;
	int r = 0;

	http1_head_init(head, kind);
	for (;;) {
		r = http1_head_read(head, buf, n, fault);
		if (r != 0 || n == len)
			return r;
		n = n + step < len ? n + step : len;
	}
}

/* Content into out; 1 done, 0 cut, -EPROTO. */
static int
read_body(enum http1_framing framing, uint64_t length, const char *data,
    size_t len, size_t step, char *out, size_t *ret_out, size_t *ret_used)
{
	size_t at = 0, end, used, content;
	enum http1_fault fault;
	struct http1_body body;

	*ret_out = 0;
	http1_body_init(&body, framing, length);
	while (at < len && !http1_body_done(&body)) {
		end = len - at > step ? at + step : len;
		while (at < end && !http1_body_done(&body)) {
			if (http1_body_read(&body, data + at, end - at, &used,
				&content, &fault) < 0)
				return -1;
			CHECK(used > 0 && content <= used);
			at += used;
			memcpy(out + *ret_out, data + at - content, content);
			*ret_out += content;
		}
	}
	*ret_used = at;
	return http1_body_done(&body) ? 1 : 0;
}

static void
check_body(enum http1_framing framing, uint64_t length, const char *data,
    size_t len, size_t step)
{
	static char one[INPUT_MAX], two[INPUT_MAX];
	size_t n1, n2, used1 = 0, used2 = 0;
	int r1 =
	    read_body(framing, length, data, len, len + 1, one, &n1, &used1);
	int r2 = read_body(framing, length, data, len, step, two, &n2, &used2);

	CHECK(r1 == r2 && n1 == n2 && memcmp(one, two, n1) == 0);
	CHECK(used1 == used2);
	if (r1 == 1 && framing == HTTP1_BY_LENGTH)
		CHECK(n1 == length && used1 == length);
	if (framing == HTTP1_UNTIL_CLOSE)
		CHECK(n1 == len && r1 == 0);
}

static void
check_no_hops(const struct http1_head *head, const char *buf)
{
	unsigned i;

	for (i = 0; i < head->nfields; i++) {
		const struct http1_field *field = &head->fields[i];

		if (!http1_field_is_hop(head, buf, field))
			continue;
		/* Those that we write ourselves. */
		CHECK(http1_span_is(buf, field->name, "Connection") ||
		    http1_span_is(buf, field->name, "Transfer-Encoding"));
	}
}

static void
check_request(const struct http1_head *head, const char *buf,
    enum http1_framing framing, uint64_t length)
{
	static char out[HTTP1_HEAD_MAX + REWRITE_MORE];
	static struct http1_head again;
	struct http1_span host, path;
	enum http1_framing framing2;
	enum http1_fault fault;
	struct hostname name;
	uint64_t length2;
	uint16_t port;
	ptrdiff_t n;

	if (http1_target_authority(buf, head->target, &host, &port, &fault) ==
	    0)
		CHECK(port > 0);
	if (http1_target_absolute(buf, head->target, &host, &port, &path,
		&fault) < 0 ||
	    hostname_parse(buf + host.at, host.len, &name, NULL) < 0)
		return;
	n = rewrite_request(head, buf, &name, port, path, framing, length, out,
	    sizeof(out));
	if (n < 0 || n > HTTP1_HEAD_MAX)
		return;
	http1_head_init(&again, HTTP1_REQUEST);
	if (http1_head_read(&again, out, (size_t)n, &fault) != 1) {
		/* Our own bytes may pass a limit that the input kept. */
		CHECK(fault == HTTP1_TOO_MANY_FIELDS ||
		    fault == HTTP1_HEAD_TOO_LARGE ||
		    fault == HTTP1_LINE_TOO_LONG);
		return;
	}
	CHECK(again.size == n && again.nhost == 1);
	CHECK(http1_head_framing(&again, out, false, &framing2, &length2,
		  &fault) == 0);
	CHECK(framing2 == framing && length2 == length);
	check_no_hops(&again, out);
}

static void
check_response(const struct http1_head *head, const char *buf, bool was_head,
    enum http1_framing framing, uint64_t length)
{
	static char out[HTTP1_HEAD_MAX + REWRITE_MORE];
	static struct http1_head again;
	struct rewrite_answer how = { .framing = framing,
		.length = length,
		.keep = true };
	enum http1_framing framing2;
	enum http1_fault fault;
	uint64_t length2;
	unsigned index = 0;
	ptrdiff_t n;

	n = rewrite_response(head, buf, &how, out, sizeof(out));
	if (n < 0 || n > HTTP1_HEAD_MAX)
		return;
	http1_head_init(&again, HTTP1_RESPONSE);
	if (http1_head_read(&again, out, (size_t)n, &fault) != 1) {
		CHECK(fault == HTTP1_TOO_MANY_FIELDS ||
		    fault == HTTP1_HEAD_TOO_LARGE ||
		    fault == HTTP1_LINE_TOO_LONG);
		return;
	}
	CHECK(again.size == n && again.status == head->status);
	CHECK(http1_head_framing(&again, out, was_head, &framing2, &length2,
		  &fault) == 0);
	CHECK(framing2 == framing && length2 == length);
	CHECK(http1_field_next(&again, out, "x-deny-reason", &index) == NULL);
	check_no_hops(&again, out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct http1_head head, slow;
	enum http1_fault fault = HTTP1_OK, fault2 = HTTP1_OK;
	enum http1_framing framing;
	enum http1_kind kind;
	const char *buf;
	uint64_t length;
	size_t step;
	bool was_head;
	int r;

	if (len < 1 || len > INPUT_MAX)
		return 0;
	kind = data[0] & 1 ? HTTP1_RESPONSE : HTTP1_REQUEST;
	step = 1 + (data[0] >> 1 & 7);
	was_head = data[0] >> 4 & 1;
	buf = (const char *)data + 1;
	len--;
	http1_head_init(&head, kind);
	r = http1_head_read(&head, buf, len, &fault);
	CHECK(read_in_pieces(&slow, kind, buf, len, step, &fault2) == r);
	CHECK(fault == fault2);
	if (r != 1)
		return 0;
	CHECK(head.size == slow.size && head.nfields == slow.nfields);
	CHECK(head.size <= len && head.size <= HTTP1_HEAD_MAX);
	if (http1_head_framing(&head, buf, was_head, &framing, &length,
		&fault) < 0)
		return 0;
	check_body(framing, length, buf + head.size, len - head.size, step);
	if (kind == HTTP1_REQUEST)
		check_request(&head, buf, framing, length);
	else
		check_response(&head, buf, was_head, framing, length);
	return 0;
}
