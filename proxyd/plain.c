/*
 * Exchanges of plain HTTP; see plain.h.  Both peers are hostile.  The origin
 * may answer early, late, twice or wrongly; none of it may reach another
 * request than the one it answers.
 */
#include "proxyd/plain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/size.h"
#include "proxyd/conn.h"
#include "proxyd/proxyd.h"
#include "proxyd/rewrite.h"

struct plain {
	struct hostname host; /* that the upstream is connected to */
	uint16_t port;
	bool reused; /* the upstream answered before */
	bool retry; /* safe to send again on a new connection */
	bool keep_client;
	bool keep_upstream;
	bool was_head;
	bool http10; /* the client speaks HTTP/1.0 */
	bool got_any; /* bytes of the answer */
	bool answered; /* its final head is with the client */
	struct buf head; /* of the request, as it goes on */
	struct buf early; /* incomplete head of the answer */
	struct http1_head res;
	struct http1_body req_body;
	struct http1_body res_body;
	enum http1_framing req_framing;
	uint64_t req_length;
	enum http1_framing out_framing; /* of the answer, to the client */
};

void
plain_free(struct conn *conn)
{
	if (conn->plain == NULL)
		return;
	buf_done(&conn->plain->head);
	buf_done(&conn->plain->early);
	free(conn->plain);
	conn->plain = NULL;
}

/* RFC 9110 9.2.2, those that carry no body here. */
static bool
is_repeatable(const struct http1_head *head, const char *buf)
{
	static const char *const methods[] = { "GET", "HEAD", "OPTIONS" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(methods); i++)
		if (http1_span_is(buf, head->method, methods[i]))
			return true;
	return false;
}

/* The head that goes on, into plain->head. */
static enum http1_fault
build_head(struct conn *conn, const char *buf, struct http1_span path)
{
	struct plain *plain = conn->plain;
	struct conn_request *req = conn->request;
	ptrdiff_t n;

	n = rewrite_request(&req->head, buf, &req->host, conn->port, path,
	    plain->req_framing, plain->req_length, conn->p->encode,
	    PROXYD_ENCODE);
	buf_done(&plain->head);
	if (n < 0 || buf_add(&plain->head, conn->p->encode, (size_t)n) < 0)
		return HTTP1_HEAD_TOO_LARGE;
	return HTTP1_OK;
}

enum http1_fault
plain_take(struct conn *conn, const char *buf, bool *ret_bad_name)
{
	struct conn_request *req = conn->request;
	enum http1_fault fault = HTTP1_OK;
	struct http1_span host, path;
	struct plain *plain;

	conn->ask = CONN_ASK_PLAIN;
	if (conn->plain == NULL)
		conn->plain = calloc(1, sizeof(*conn->plain));
	plain = conn->plain;
	if (plain == NULL)
		return HTTP1_HEAD_TOO_LARGE;
	if (http1_head_framing(&req->head, buf, false, &plain->req_framing,
		&plain->req_length, &fault) < 0 ||
	    http1_target_absolute(buf, req->head.target, &host, &conn->port,
		&path, &fault) < 0)
		return fault;
	plain->was_head = http1_span_is(buf, req->head.method, "HEAD");
	plain->http10 = req->head.minor == 0;
	plain->keep_client = http1_head_keeps(&req->head, buf);
	plain->retry = plain->req_framing == HTTP1_NO_BODY &&
	    is_repeatable(&req->head, buf);
	req->no_answer_body = plain->was_head;
	req->keep = plain->keep_client && !plain->http10 &&
	    plain->req_framing == HTTP1_NO_BODY;
	if (hostname_parse(buf + host.at, host.len, &req->host, NULL) < 0) {
		*ret_bad_name = true;
		(void)log_clean(req->host.text, sizeof(req->host.text),
		    buf + host.at, host.len);
		return HTTP1_OK;
	}
	return build_head(conn, buf, path);
}

bool
plain_can_reuse(const struct conn *conn)
{
	const struct plain *plain = conn->plain;

	return conn->upstream.fd >= 0 && !conn->upstream.eof &&
	    plain->port == conn->port &&
	    strcmp(plain->host.text, conn->request->host.text) == 0;
}

/*
 * Reads content from data into out, in chunks or as it is.  Stops at the end
 * of the body.  *ret_used of data, *ret_len in out, which has room for len
 * bytes and 64 more: a chunk that was read took at least as much as it takes
 * again, but for the first one, the last one and the end.
 */
static int
encode_body(struct http1_body *body, enum http1_framing framing,
    const char *data, size_t len, char *out, size_t *ret_used, size_t *ret_len,
    enum http1_fault *ret_fault)
{
	size_t at = 0, put = 0, used, content;
	bool chunks = framing == HTTP1_BY_CHUNKS;

	while (at < len && !http1_body_done(body)) {
		if (http1_body_read(body, data + at, len - at, &used, &content,
			ret_fault) < 0)
			return -EPROTO;
		at += used;
		if (content == 0)
			continue;
		if (chunks)
			put += (size_t)sprintf(out + put, "%zx\r\n", content);
		memcpy(out + put, data + at - content, content);
		put += content;
		if (chunks) {
			memcpy(out + put, "\r\n", 2);
			put += 2;
		}
	}
	if (chunks && http1_body_done(body)) {
		memcpy(out + put, "0\r\n\r\n", 5);
		put += 5;
	}
	*ret_used = at;
	*ret_len = put;
	return 0;
}

/* The request cannot be completed; an answer may still come. */
static void
stop_request(struct conn *conn)
{
	side_discard(conn->p, &conn->upstream);
	side_read(&conn->client, false);
}

static bool
request_done(const struct conn *conn)
{
	return http1_body_done(&conn->plain->req_body);
}

/*
 * Body bytes of the request.  Bytes used, or -errno after which the
 * connection is gone or answered.
 */
static ptrdiff_t
pump_request(struct conn *conn, const char *data, size_t len)
{
	struct plain *plain = conn->plain;
	enum http1_fault fault;
	size_t used, put;
	int r;

	if (request_done(conn))
		return 0;
	r = encode_body(&plain->req_body, plain->req_framing, data, len,
	    conn->p->encode, &used, &put, &fault);
	if (r < 0 && !plain->answered) {
		/* Not FIN: the origin must not take it for the whole. */
		side_close(conn->p, &conn->upstream, true);
		conn_malformed(conn, fault);
		return r;
	}
	if (r < 0) {
		conn_free(conn, true);
		return r;
	}
	r = put == 0 ?
	    0 :
	    side_send(conn->p, &conn->upstream, conn->p->encode, put);
	if (r < 0)
		stop_request(conn);
	else if (r > 0)
		side_read(&conn->client, false);
	return (ptrdiff_t)used;
}

void
plain_connected(struct conn *conn, bool reused)
{
	struct plain *plain = conn->plain;
	ptrdiff_t used;

	plain->host = conn->request->host;
	plain->port = conn->port;
	plain->reused = reused;
	plain->got_any = false;
	plain->answered = false;
	buf_done(&plain->early);
	http1_head_init(&plain->res, HTTP1_RESPONSE);
	http1_body_init(&plain->req_body, plain->req_framing,
	    plain->req_length);
	conn->mode = CONN_MODE_PLAIN;
	conn_set_phase(conn, CONN_EXCHANGE);
	if (side_send(conn->p, &conn->upstream, plain->head.data,
		plain->head.len) < 0) {
		plain_lost(conn, -EPIPE);
		return;
	}
	if (!reused || !plain->retry)
		buf_done(&plain->head);
	side_read(&conn->upstream, true);
	if (!request_done(conn))
		side_read(&conn->client, conn->upstream.out.len == 0);
	if (conn->in.len == 0 || request_done(conn))
		return;
	used = pump_request(conn, conn->in.data, conn->in.len);
	if (used > 0)
		buf_drop(&conn->in, (size_t)used);
}

void
plain_lost(struct conn *conn, int error)
{
	struct plain *plain = conn->plain;

	/* A kept connection may have ended while the request was sent. */
	if (plain->reused && plain->retry && !plain->got_any &&
	    error != -ETIMEDOUT && plain->head.len > 0) {
		side_close(conn->p, &conn->upstream, false);
		conn_want(conn);
		return;
	}
	if (plain->answered)
		conn_free(conn, true);
	else
		conn_failed(conn, error);
}

/* The answer is complete; rest: bytes came behind it. */
static void
finish(struct conn *conn, bool rest)
{
	struct plain *plain = conn->plain;
	bool done = request_done(conn);

	if (!plain->keep_upstream || rest || !done ||
	    conn->upstream.out.len > 0 || conn->upstream.shut)
		side_close(conn->p, &conn->upstream, false);
	buf_done(&plain->head);
	if (!plain->keep_client || !done) {
		conn_linger(conn);
		return;
	}
	conn->mode = CONN_MODE_ANSWER;
	conn_set_phase(conn, CONN_KEPT);
	if (conn->client.out.len == 0)
		conn_next_request(conn);
}

/*
 * Body bytes of the answer; encode holds ahead bytes that go first.  A body
 * that is not framed anew and has nothing ahead is sent from where it lies.
 */
static void
pump_answer(struct conn *conn, const char *data, size_t len, size_t ahead)
{
	struct plain *plain = conn->plain;
	struct proxyd *p = conn->p;
	enum http1_fault fault;
	const char *from = p->encode;
	size_t used, put;
	int r;

	if (ahead == 0 && plain->out_framing != HTTP1_BY_CHUNKS &&
	    plain->res_body.framing != HTTP1_BY_CHUNKS) {
		r = http1_body_read(&plain->res_body, data, len, &used, &put,
		    &fault);
		from = data;
	} else {
		r = encode_body(&plain->res_body, plain->out_framing, data, len,
		    p->encode + ahead, &used, &put, &fault);
	}
	if (r == 0 && ahead + put > 0)
		r = side_send(p, &conn->client, from, ahead + put);
	if (r < 0) {
		conn_free(conn, true);
		return;
	}
	conn_touch(conn);
	if (http1_body_done(&plain->res_body))
		finish(conn, used < len);
	else if (r > 0)
		side_read(&conn->upstream, false);
}

/*
 * A final head in data: decide framing to the client and write it to encode.
 * Bytes written, or -EPROTO.
 */
static ptrdiff_t
take_answer(struct conn *conn, const char *data)
{
	struct plain *plain = conn->plain;
	struct rewrite_answer how = { .client_http10 = plain->http10 };
	enum http1_framing framing;
	enum http1_fault fault;
	uint64_t length;

	/* An origin must not make clients look for a proxy password. */
	if (plain->res.status == 407 ||
	    http1_head_framing(&plain->res, data, plain->was_head, &framing,
		&length, &fault) < 0)
		return -EPROTO;
	http1_body_init(&plain->res_body, framing, length);
	how.framing = framing;
	how.length = length;
	if (framing == HTTP1_BY_CHUNKS || framing == HTTP1_UNTIL_CLOSE)
		how.framing =
		    plain->http10 ? HTTP1_UNTIL_CLOSE : HTTP1_BY_CHUNKS;
	plain->out_framing = how.framing;
	if (how.framing == HTTP1_UNTIL_CLOSE || !request_done(conn))
		plain->keep_client = false;
	plain->keep_upstream =
	    framing != HTTP1_UNTIL_CLOSE && http1_head_keeps(&plain->res, data);
	how.keep = plain->keep_client;
	plain->answered = true;
	return rewrite_response(&plain->res, data, &how, conn->p->encode,
	    HTTP1_HEAD_MAX + REWRITE_MORE);
}

/*
 * An interim head (100, 103): passed on to HTTP/1.1.  101 cannot come, since
 * Upgrade is not passed on.
 */
static int
pass_interim(struct conn *conn, const char *data)
{
	const struct rewrite_answer how = { .framing = HTTP1_NO_BODY };
	struct plain *plain = conn->plain;
	ptrdiff_t n;

	if (plain->res.status == 101)
		return -EPROTO;
	if (plain->http10)
		return 0;
	n = rewrite_response(&plain->res, data, &how, conn->p->encode,
	    PROXYD_ENCODE);
	if (n < 0)
		return (int)n;
	return side_send(conn->p, &conn->client, conn->p->encode, (size_t)n);
}

/* Heads of the answer at the start of data; true: body bytes may follow. */
static void
read_answer(struct conn *conn, const char *data, size_t len)
{
	struct plain *plain = conn->plain;
	enum http1_fault fault;
	ptrdiff_t n;
	int r;

	for (;;) {
		r = http1_head_read(&plain->res, data, len, &fault);
		if (r <= 0)
			break;
		if (plain->res.status >= 200) {
			size_t size = plain->res.size;

			n = take_answer(conn, data);
			if (n < 0) {
				plain->answered = false;
				conn_failed(conn, -EPROTO);
				return;
			}
			pump_answer(conn, data + size, len - size, (size_t)n);
			return;
		}
		if (pass_interim(conn, data) < 0) {
			conn_failed(conn, -EPROTO);
			return;
		}
		data += plain->res.size;
		len -= plain->res.size;
		http1_head_init(&plain->res, HTTP1_RESPONSE);
	}
	if (r < 0) {
		conn_failed(conn, -EPROTO);
		return;
	}
	/* The rest of a head: data lies in scratch, early is empty. */
	if (buf_add(&plain->early, data, len) < 0)
		conn_free(conn, true);
}

/* The upstream sent its end of file. */
static void
answer_eof(struct conn *conn)
{
	static const char end[] = "0\r\n\r\n";
	struct plain *plain = conn->plain;

	if (!plain->answered || plain->res_body.framing != HTTP1_UNTIL_CLOSE) {
		plain_lost(conn, -EPIPE);
		return;
	}
	if (plain->out_framing == HTTP1_BY_CHUNKS &&
	    side_send(conn->p, &conn->client, end, sizeof(end) - 1) < 0) {
		conn_free(conn, true);
		return;
	}
	finish(conn, false);
}

static void
upstream_readable(struct conn *conn)
{
	struct plain *plain = conn->plain;
	struct proxyd *p = conn->p;
	size_t before = plain->early.len;
	ssize_t n;

	/* An incomplete head goes in front again, so it stays in one piece. */
	n = side_recv(p, &conn->upstream, p->scratch + before,
	    PROXYD_SCRATCH - before);
	if (n == -EAGAIN)
		return;
	if (n == 0) {
		answer_eof(conn);
		return;
	}
	if (n < 0) {
		plain_lost(conn, (int)n);
		return;
	}
	plain->got_any = true;
	if (plain->answered) {
		pump_answer(conn, p->scratch, (size_t)n, 0);
		return;
	}
	if (before > 0) {
		memcpy(p->scratch, plain->early.data, before);
		buf_done(&plain->early);
	}
	read_answer(conn, p->scratch, before + (size_t)n);
}

static void
client_readable(struct conn *conn)
{
	struct proxyd *p = conn->p;
	ptrdiff_t used;
	ssize_t n;

	if (request_done(conn)) {
		/* The next request, or its end: after this answer. */
		side_read(&conn->client, false);
		return;
	}
	n = side_recv(p, &conn->client, p->scratch, PROXYD_SCRATCH / 4);
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		/* The body is cut short: nobody may take it for whole. */
		conn_free(conn, true);
		return;
	}
	conn_touch(conn);
	used = pump_request(conn, p->scratch, (size_t)n);
	if (used >= 0 && used < n &&
	    buf_add(&conn->in, p->scratch + used, (size_t)(n - used)) < 0)
		conn_free(conn, true);
}

void
plain_readable(struct conn *conn, struct side *side)
{
	if (side == &conn->client)
		client_readable(conn);
	else
		upstream_readable(conn);
}

void
plain_drained(struct conn *conn, struct side *side)
{
	conn_touch(conn);
	if (side == &conn->client)
		side_read(&conn->upstream, !conn->upstream.eof);
	else
		side_read(&conn->client,
		    !conn->client.eof && !conn->upstream.shut);
}

void
plain_broken(struct conn *conn, struct side *side, int error)
{
	(void)error;
	if (side == &conn->client)
		conn_free(conn, true);
	else
		stop_request(conn);
}
