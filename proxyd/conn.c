/*
 * Client connections; see conn.h.  Everything that arrives here is hostile:
 * from the client, from the origin, and from the resolver.  What a callback
 * may free is its own connection only, as its last act.
 */
#include "proxyd/conn.h"

#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/size.h"
#include "protocol/cause.h"
#include "proxyd/answer.h"
#include "proxyd/dial.h"
#include "proxyd/own.h"
#include "proxyd/plain.h"
#include "proxyd/proxyd.h"
#include "proxyd/relay.h"
#include "proxyd/report.h"
#include "proxyd/session.h"
#include "proxyd/socks5.h"

/* SPEC AB, G12, G27; CONN_TUNNEL is the context's tunnel_idle_s. */
static const unsigned phase_limit_s[CONN_PHASES] = {
	[CONN_HEAD] = 10,
	[CONN_KEPT] = 60,
	[CONN_CONNECT] = 15,
	[CONN_EXCHANGE] = 0,
	[CONN_TUNNEL] = 0,
	[CONN_HALF] = 300,
	[CONN_LINGER] = 5,
};

#define LINGER_BYTES (4u << 20) /* discarded before the connection ends */

void
conn_set_phase(struct conn *conn, enum conn_phase phase)
{
	TAILQ_REMOVE(&conn->p->phases[conn->phase], conn, phase_link);
	conn->phase = (uint8_t)phase;
	conn->since = proxyd_now(conn->p);
	TAILQ_INSERT_TAIL(&conn->p->phases[phase], conn, phase_link);
}

void
conn_touch(struct conn *conn)
{
	/* Within one second the order does not matter. */
	if (conn->since != proxyd_now(conn->p))
		conn_set_phase(conn, (enum conn_phase)conn->phase);
}

void
conn_start(struct proxyd *p, struct session *session, int fd,
    enum conn_listener listener, bool overflow)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL) {
		(void)close(fd);
		return;
	}
	conn->p = p;
	conn->session = session;
	conn->listener = (uint8_t)listener;
	conn->mode = listener == CONN_HTTP ? CONN_MODE_HTTP : CONN_MODE_SOCKS;
	conn->ask = listener == CONN_HTTP ? CONN_ASK_CONNECT : CONN_ASK_SOCKS;
	conn->overflow = overflow;
	side_init(&conn->client);
	side_init(&conn->upstream);
	side_open(conn, &conn->client, fd);
	LIST_INSERT_HEAD(&session->conns, conn, session_link);
	session->nconns++;
	p->nconns++;
	conn->phase = CONN_HEAD;
	conn->since = proxyd_now(p);
	TAILQ_INSERT_TAIL(&p->phases[CONN_HEAD], conn, phase_link);
	side_read(&conn->client, true);
}

static void
cancel_want(struct conn *conn)
{
	if (conn->request == NULL)
		return;
	if (conn->request->wait.entry != NULL) {
		names_cancel(&conn->request->wait);
		conn->session->nlookups--;
	}
	dial_cancel(conn->request->dial);
	conn->request->dial = NULL;
}

static void
request_free(struct conn *conn)
{
	cancel_want(conn);
	free(conn->request);
	conn->request = NULL;
}

void
conn_free(struct conn *conn, bool reset)
{
	if (conn->gone != NULL)
		*conn->gone = true;
	request_free(conn);
	plain_free(conn);
	side_close(conn->p, &conn->client, reset);
	side_close(conn->p, &conn->upstream, reset);
	buf_done(&conn->in);
	TAILQ_REMOVE(&conn->p->phases[conn->phase], conn, phase_link);
	LIST_REMOVE(conn, session_link);
	conn->session->nconns--;
	conn->p->nconns--;
	free(conn);
}

/* Answers. */

/*
 * Send an answer of ours.  With keep the next request follows it, else the
 * connection ends.
 */
static void
answer(struct conn *conn, const void *data, size_t len, bool keep)
{
	int r = side_send(conn->p, &conn->client, data, len);

	if (r < 0) {
		conn_free(conn, true);
		return;
	}
	if (!keep) {
		conn_linger(conn);
		return;
	}
	conn->mode = CONN_MODE_ANSWER;
	conn_set_phase(conn, CONN_KEPT);
	if (r == 0)
		conn_next_request(conn);
}

void
conn_linger(struct conn *conn)
{
	request_free(conn);
	plain_free(conn);
	side_close(conn->p, &conn->upstream, false);
	buf_done(&conn->in);
	conn->mode = CONN_MODE_LINGER;
	conn_set_phase(conn, CONN_LINGER);
	side_shut(&conn->client);
	if (!conn->client.eof)
		side_read(&conn->client, true);
	else if (conn->client.shut)
		conn_free(conn, false);
}

static void
answer_socks(struct conn *conn, enum socks5_reply_code code)
{
	uint8_t reply[SOCKS5_REPLY_SIZE];

	socks5_write_reply(code, reply);
	answer(conn, reply, sizeof(reply), false);
}

void
conn_refuse(struct conn *conn, const struct decide_verdict *verdict)
{
	const struct conn_request *req = conn->request;
	struct answer_how how = { .keep = false, .no_body = false };
	char text[ANSWER_MAX];
	size_t len;

	report_refusal(conn->session, verdict, req->host.text, conn->port);
	if (conn->ask == CONN_ASK_SOCKS) {
		answer_socks(conn, answer_socks_refusal(verdict->reason));
		return;
	}
	if (conn->ask == CONN_ASK_PLAIN) {
		how.keep = req->keep && !conn->overflow;
		how.no_body = req->no_answer_body;
	}
	len = answer_refusal(verdict, req->host.text, conn->port, &how, text);
	answer(conn, text, len, how.keep);
}

void
conn_malformed(struct conn *conn, enum http1_fault fault)
{
	char text[ANSWER_MAX];
	size_t len = answer_malformed(fault, text);

	log_event(EV_EGRESS_FAILED, LF_NUM(LK_SANDBOX, conn->session->id),
	    LF_NUM(LK_STATUS, http1_fault_status(fault)),
	    LF_STR(LK_REASON, http1_fault_text(fault)));
	answer(conn, text, len, false);
}

void
conn_failed(struct conn *conn, int error)
{
	const struct conn_request *req = conn->request;
	struct answer_how how = { .keep = false, .no_body = false };
	char text[ANSWER_MAX];
	size_t len;

	log_event(EV_EGRESS_FAILED, LF_NUM(LK_SANDBOX, conn->session->id),
	    LF_STR(LK_HOST, req->host.text), LF_NUM(LK_PORT, conn->port),
	    LF_NUM(LK_ERRNO, -error));
	if (conn->ask == CONN_ASK_SOCKS) {
		answer_socks(conn, answer_socks_failure(error));
		return;
	}
	how.no_body = conn->ask == CONN_ASK_PLAIN && req->no_answer_body;
	len = answer_failure(error, req->host.text, conn->port, &how, text);
	answer(conn, text, len, false);
}

/* Judge, resolve, connect. */

/* The answers that a client of each kind waits for. */
static void
connected_tunnel(struct conn *conn)
{
	static const char ok[] = "HTTP/1.1 200 Connection Established\r\n\r\n";
	uint8_t reply[SOCKS5_REPLY_SIZE];
	int r;

	if (conn->ask == CONN_ASK_SOCKS) {
		socks5_write_reply(SOCKS5_OK, reply);
		r = side_send(conn->p, &conn->client, reply, sizeof(reply));
	} else {
		r = side_send(conn->p, &conn->client, ok, sizeof(ok) - 1);
	}
	request_free(conn);
	if (r < 0)
		conn_free(conn, true);
	else
		relay_start(conn);
}

static void
on_dialed(void *ctx, int fd)
{
	struct conn *conn = ctx;

	conn->request->dial = NULL;
	if (fd < 0) {
		conn_failed(conn, fd);
		return;
	}
	side_open(conn, &conn->upstream, fd);
	log_event(EV_EGRESS_ALLOWED, LF_NUM(LK_SANDBOX, conn->session->id),
	    LF_STR(LK_HOST, conn->request->host.text),
	    LF_NUM(LK_PORT, conn->port));
	if (conn->ask == CONN_ASK_PLAIN)
		plain_connected(conn, false);
	else
		connected_tunnel(conn);
}

static int
status_error(unsigned status)
{
	static const int errors[RESOLVE_STATUS_COUNT] = {
		[RESOLVE_OK] = 0,
		[RESOLVE_NOT_FOUND] = -ENOENT,
		[RESOLVE_FAILED] = -ENOENT,
		[RESOLVE_TIMEOUT] = -ETIMEDOUT,
		[RESOLVE_BUSY] = -EAGAIN,
	};

	return status < RESOLVE_STATUS_COUNT ? errors[status] : -ENOENT;
}

/*
 * Candidates from the resolver or a literal.  Each is checked for this
 * session and host; the connection goes to one that passed (G16).
 */
static void
use_addresses(struct conn *conn, const struct names_answer *got)
{
	struct decide_verdict refused = {
		.reason = DECIDE_never_address,
		.pattern = "",
		.origin = "",
	};
	const struct decide_lists *lists = conn->session->lists;
	struct hostname_addr good[CONN_ADDRS];
	size_t i, n = 0;

	if (got->status != RESOLVE_OK) {
		conn_failed(conn, status_error(got->status));
		return;
	}
	for (i = 0; i < got->n && n < CONN_ADDRS; i++) {
		if (decide_address(lists, &conn->request->host, &got->addrs[i],
			own_has(conn->p->own, &got->addrs[i])))
			good[n++] = got->addrs[i];
		if (decide_permittable(&got->addrs[i]))
			refused.reason = DECIDE_private_address;
	}
	if (n == 0) {
		conn_refuse(conn, &refused);
		return;
	}
	dial_interleave(good, n);
	conn->request->dial =
	    dial_start(conn->p, good, n, conn->port, on_dialed, conn);
	if (conn->request->dial == NULL)
		conn_failed(conn, -ENOMEM);
}

static void
on_resolved(void *ctx, const struct names_answer *got)
{
	struct conn *conn = ctx;

	conn->session->nlookups--;
	use_addresses(conn, got);
}

static void
resolve(struct conn *conn)
{
	struct conn_request *req = conn->request;
	const struct names_answer *got;

	/* A run that waits for many names still has those that are known. */
	got = names_known(conn->p->names, req->host.text);
	if (got != NULL) {
		use_addresses(conn, got);
		return;
	}
	if (conn->session->nlookups >= SESSION_LOOKUPS_MAX) {
		conn_failed(conn, -EAGAIN);
		return;
	}
	req->wait.fn = on_resolved;
	req->wait.ctx = conn;
	got = names_ask(conn->p->names, req->host.text, &req->wait);
	if (got == NULL)
		conn->session->nlookups++;
	else
		use_addresses(conn, got);
}

void
conn_want(struct conn *conn)
{
	struct conn_request *req = conn->request;
	struct decide_verdict verdict = { DECIDE_limit, "", "" };
	struct names_answer literal;

	conn->mode = CONN_MODE_WAIT;
	conn_set_phase(conn, CONN_CONNECT);
	if (!conn->overflow)
		decide_target(conn->session->lists, &req->host, conn->port,
		    &verdict);
	if (verdict.reason != DECIDE_ALLOWED) {
		conn_refuse(conn, &verdict);
		return;
	}
	if (conn->ask == CONN_ASK_PLAIN && plain_can_reuse(conn)) {
		plain_connected(conn, true);
		return;
	}
	side_close(conn->p, &conn->upstream, false);
	if (req->host.kind == HOSTNAME_NAME) {
		resolve(conn);
		return;
	}
	memset(&literal, 0, sizeof(literal));
	literal.status = RESOLVE_OK;
	literal.n = 1;
	literal.addrs[0] = req->host.addr;
	use_addresses(conn, &literal);
}

/* A well-formed request for a name that is not one (H5, H6); its cleaned
 * text is in the request. */
static void
refuse_name(struct conn *conn)
{
	const struct decide_verdict bad_name = { DECIDE_bad_name, "", "" };

	conn_refuse(conn, &bad_name);
}

/* HTTP heads. */

static struct conn_request *
need_request(struct conn *conn)
{
	if (conn->request == NULL)
		conn->request = calloc(1, sizeof(*conn->request));
	return conn->request;
}

/*
 * The CONNECT head in buf.  HTTP1_OK, or the fault; *ret_bad_name as in
 * plain_take().  A body of CONNECT has no meaning (RFC 9110 9.3.6), so one
 * that is announced is doubt.
 */
static enum http1_fault
take_connect(struct conn *conn, const char *buf, bool *ret_bad_name)
{
	struct conn_request *req = conn->request;
	enum http1_fault fault = HTTP1_OK;
	enum http1_framing framing;
	struct http1_span host;
	uint64_t length;

	conn->ask = CONN_ASK_CONNECT;
	if (http1_head_framing(&req->head, buf, false, &framing, &length,
		&fault) < 0)
		return fault;
	if (framing != HTTP1_NO_BODY)
		return HTTP1_LENGTH_BAD;
	if (http1_target_authority(buf, req->head.target, &host, &conn->port,
		&fault) < 0)
		return fault;
	if (hostname_parse(buf + host.at, host.len, &req->host, NULL) < 0) {
		*ret_bad_name = true;
		(void)log_clean(req->host.text, sizeof(req->host.text),
		    buf + host.at, host.len);
	}
	return HTTP1_OK;
}

/* Keeps what was read behind the first used bytes. */
static int
keep_rest(struct conn *conn, const char *data, size_t len, size_t used)
{
	if (data == conn->in.data) {
		buf_drop(&conn->in, used);
		return 0;
	}
	return buf_add(&conn->in, data + used, len - used);
}

/* A complete head lies in data; the bytes behind it are kept. */
static void
take_head(struct conn *conn, const char *data, size_t len)
{
	struct conn_request *req = conn->request;
	bool connect = http1_span_is(data, req->head.method, "CONNECT");
	bool bad_name = false;
	enum http1_fault fault;

	fault = connect ? take_connect(conn, data, &bad_name) :
			  plain_take(conn, data, &bad_name);
	if (keep_rest(conn, data, len, req->head.size) < 0) {
		conn_free(conn, true);
		return;
	}
	if (fault != HTTP1_OK) {
		conn_malformed(conn, fault);
		return;
	}
	if (bad_name)
		refuse_name(conn);
	else
		conn_want(conn);
}

/* data[0..len) is all that waits: conn->in, or a fresh read. */
static void
read_head(struct conn *conn, const char *data, size_t len)
{
	struct conn_request *req = need_request(conn);
	enum http1_fault fault;
	int r;

	if (req == NULL) {
		conn_free(conn, true);
		return;
	}
	if (!req->head_started) {
		http1_head_init(&req->head, HTTP1_REQUEST);
		req->head_started = true;
		if (conn->phase != CONN_HEAD)
			conn_set_phase(conn, CONN_HEAD);
	}
	r = http1_head_read(&req->head, data, len, &fault);
	if (r < 0) {
		conn_malformed(conn, fault);
		return;
	}
	if (r > 0) {
		take_head(conn, data, len);
		return;
	}
	if (data != conn->in.data && buf_add(&conn->in, data, len) < 0)
		conn_free(conn, true);
}

/*
 * Reads what the client has.  false: nothing to be done now, and the
 * connection may be gone.  *ret_data is conn->in with the new bytes, or the
 * scratch buffer if nothing waited.
 */
static bool
read_client(struct conn *conn, const char **ret_data, size_t *ret_len)
{
	ssize_t n =
	    side_recv(conn->p, &conn->client, conn->p->scratch, HTTP1_HEAD_MAX);

	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		conn_free(conn, n < 0);
		return false;
	}
	*ret_data = conn->p->scratch;
	*ret_len = (size_t)n;
	if (conn->in.len == 0)
		return true;
	if (buf_add(&conn->in, conn->p->scratch, (size_t)n) < 0) {
		conn_free(conn, true);
		return false;
	}
	*ret_data = conn->in.data;
	*ret_len = conn->in.len;
	return true;
}

static void
http_readable(struct conn *conn, struct side *side)
{
	const char *data;
	size_t len;

	if (side == &conn->upstream) {
		/* A kept upstream ended, or speaks unasked: drop it. */
		side_close(conn->p, side, false);
		return;
	}
	if (read_client(conn, &data, &len))
		read_head(conn, data, len);
}

/*
 * The next request, from what was read already if there is any.  Requests
 * that are refused on the spot would nest, so an inner call only leaves a
 * mark for the outer one, which also learns whether the connection is gone.
 */
void
conn_next_request(struct conn *conn)
{
	bool gone = false;

	free(conn->request);
	conn->request = NULL;
	conn->mode = CONN_MODE_HTTP;
	conn_set_phase(conn, CONN_KEPT);
	conn->more = conn->in.len > 0;
	if (conn->gone != NULL)
		return;
	/* cppcheck-suppress autoVariables; taken back before it ends */
	conn->gone = &gone;
	while (!gone && conn->more) {
		conn->more = false;
		read_head(conn, conn->in.data, conn->in.len);
	}
	if (gone)
		return;
	conn->gone = NULL;
	if (conn->mode != CONN_MODE_HTTP)
		return;
	side_read(&conn->client, true);
	side_read(&conn->upstream, true);
}

/* SOCKS. */

/* Used bytes of data, 0 for more, or -errno after which conn may be gone. */
static int
read_greeting(struct conn *conn, const uint8_t *data, size_t len)
{
	static const uint8_t accept[] = { 5, 0 }, refuse[] = { 5, 0xff };
	bool none = false;
	int used = socks5_read_greeting(data, len, &none);

	if (used < 0) {
		conn_free(conn, false);
		return used;
	}
	if (used == 0)
		return 0;
	if (!none) {
		answer(conn, refuse, sizeof(refuse), false);
		return -EPROTO;
	}
	if (side_send(conn->p, &conn->client, accept, sizeof(accept)) < 0) {
		conn_free(conn, true);
		return -EPIPE;
	}
	conn->request->greeted = true;
	return used;
}

static void
take_request(struct conn *conn, const struct socks5_request *got,
    const uint8_t *host)
{
	struct hostname_addr addr = { .family = 0 };

	conn->port = got->port;
	if (got->refuse != SOCKS5_OK) {
		answer_socks(conn, got->refuse);
		return;
	}
	if (got->kind != SOCKS5_NAME) {
		addr.family = got->kind == SOCKS5_IPV4 ? 4 : 6;
		memcpy(addr.bytes, host, got->host_len);
		hostname_from_addr(&addr, &conn->request->host);
	} else if (hostname_parse((const char *)(const void *)host,
		       got->host_len, &conn->request->host, NULL) < 0) {
		(void)log_clean(conn->request->host.text,
		    sizeof(conn->request->host.text), host, got->host_len);
		refuse_name(conn);
		return;
	}
	conn_want(conn);
}

static void
read_socks(struct conn *conn)
{
	struct socks5_request got;
	uint8_t host[255];
	int used;

	if (!conn->request->greeted) {
		used = read_greeting(conn,
		    (const uint8_t *)(const void *)conn->in.data, conn->in.len);
		if (used <= 0)
			return;
		buf_drop(&conn->in, (size_t)used);
	}
	used = socks5_read_request((const uint8_t *)(const void *)conn->in.data,
	    conn->in.len, &got);
	if (used < 0) {
		conn_free(conn, false);
		return;
	}
	if (used == 0)
		return;
	if (got.host_len > 0)
		memcpy(host, got.host, got.host_len);
	buf_drop(&conn->in, (size_t)used);
	take_request(conn, &got, host);
}

static void
socks_readable(struct conn *conn, struct side *side)
{
	const char *data;
	size_t len;

	(void)side;
	if (!read_client(conn, &data, &len))
		return;
	if (need_request(conn) == NULL ||
	    (data != conn->in.data && buf_add(&conn->in, data, len) < 0)) {
		conn_free(conn, true);
		return;
	}
	read_socks(conn);
}

/* The end. */

static void
linger_readable(struct conn *conn, struct side *side)
{
	ssize_t n = side_recv(conn->p, side, conn->p->scratch, PROXYD_SCRATCH);

	if (n == -EAGAIN)
		return;
	if (n > 0) {
		conn->discarded += (size_t)n;
		if (conn->discarded > LINGER_BYTES)
			conn_free(conn, true);
		return;
	}
	if (n < 0 || conn->client.shut)
		conn_free(conn, n < 0);
}

static void
linger_drained(struct conn *conn, struct side *side)
{
	if (side->eof)
		conn_free(conn, false);
}

static void
answer_drained(struct conn *conn, struct side *side)
{
	(void)side;
	conn_next_request(conn);
}

/* Reading stops only when something comes: mostly nothing does, and taking
 * the descriptor out of the poll set and in again costs two calls. */
static void
not_now(struct conn *conn, struct side *side)
{
	(void)conn;
	side_read(side, false);
}

static void
ignore(struct conn *conn, struct side *side)
{
	(void)conn;
	(void)side;
}

static void
broken(struct conn *conn, struct side *side, int error)
{
	(void)side;
	(void)error;
	conn_free(conn, true);
}

static const struct {
	void (*readable)(struct conn *, struct side *);
	void (*drained)(struct conn *, struct side *);
	void (*broken)(struct conn *, struct side *, int);
} modes[CONN_MODES] = {
	[CONN_MODE_HTTP] = { http_readable, ignore, broken },
	[CONN_MODE_SOCKS] = { socks_readable, ignore, broken },
	[CONN_MODE_WAIT] = { not_now, ignore, broken },
	[CONN_MODE_TUNNEL] = { relay_readable, relay_drained, broken },
	[CONN_MODE_PLAIN] = { plain_readable, plain_drained, plain_broken },
	[CONN_MODE_ANSWER] = { not_now, answer_drained, broken },
	[CONN_MODE_LINGER] = { linger_readable, linger_drained, broken },
};

static struct side *
side_of(struct conn *conn, int fd)
{
	return conn->client.fd == fd ? &conn->client : &conn->upstream;
}

void
conn_readable(int fd, short what, void *arg)
{
	struct conn *conn = arg;

	(void)what;
	modes[conn->mode].readable(conn, side_of(conn, fd));
}

void
conn_writable(int fd, short what, void *arg)
{
	struct conn *conn = arg;
	struct side *side = side_of(conn, fd);
	int r = side_flush(conn->p, side);

	(void)what;
	if (r < 0)
		modes[conn->mode].broken(conn, side, r);
	else if (r == 0)
		modes[conn->mode].drained(conn, side);
	else
		conn_touch(conn);
}

/* Time is up. */
static void
expire(struct conn *conn)
{
	char text[ANSWER_MAX];
	size_t len;

	if (conn->phase == CONN_CONNECT && conn->request != NULL) {
		cancel_want(conn);
		conn_failed(conn, -ETIMEDOUT);
		return;
	}
	if (conn->phase == CONN_HEAD && conn->listener == CONN_HTTP &&
	    conn->request != NULL) {
		len = answer_slow(text);
		answer(conn, text, len, false);
		return;
	}
	if (conn->phase == CONN_EXCHANGE)
		plain_lost(conn, -ETIMEDOUT);
	else
		conn_free(conn, false);
}

void
conn_expire(struct proxyd *p)
{
	time_t now = proxyd_now(p), limit;
	struct conn *conn;
	size_t i;

	for (i = 0; i < CONN_PHASES; i++) {
		limit = phase_limit_s[i] != 0 ? (time_t)phase_limit_s[i] :
						p->tunnel_idle_s;
		while ((conn = TAILQ_FIRST(&p->phases[i])) != NULL &&
		    now - conn->since >= limit)
			expire(conn);
	}
}
