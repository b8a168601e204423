/*
 * HTTP/1.1 heads and body framing; see http1.h.  No I/O, no allocation.
 * What is not understood to the last byte is refused; nothing here repairs.
 */
#include "common/http1.h"

#include <errno.h>
#include <string.h>

#include "common/ascii.h"
#include "common/size.h"

static const struct {
	uint16_t status;
	const char *text;
} faults[HTTP1_FAULTS] = {
	[HTTP1_OK] = { 200, "no fault" },
	[HTTP1_BAD_LINE] = { 400, "the first line is not HTTP/1.1" },
	[HTTP1_BAD_VERSION] = { 505, "only HTTP/1.0 and HTTP/1.1 are spoken" },
	[HTTP1_LINE_TOO_LONG] = { 431, "the first line is too long" },
	[HTTP1_HEAD_TOO_LARGE] = { 431, "the head is too large" },
	[HTTP1_TOO_MANY_FIELDS] = { 431, "too many header fields" },
	[HTTP1_BARE_CR_LF] = { 400, "a line end is not CR LF" },
	[HTTP1_CONTROL_BYTE] = { 400, "a control byte in the head" },
	[HTTP1_FOLDED] = { 400, "a folded header line" },
	[HTTP1_BAD_FIELD] = { 400, "a malformed header field" },
	[HTTP1_HOST_REPEATED] = { 400, "more than one Host field" },
	[HTTP1_HOST_MISSING] = { 400, "no Host field" },
	[HTTP1_LENGTH_BAD] = { 400, "Content-Length is not a plain number" },
	[HTTP1_LENGTH_REPEATED] = { 400, "more than one Content-Length" },
	[HTTP1_LENGTH_AND_CODING] = { 400,
	    "both Content-Length and Transfer-Encoding" },
	[HTTP1_CODING_BAD] = { 400, "a Transfer-Encoding other than chunked" },
	[HTTP1_CHUNK_BAD] = { 400, "malformed chunk" },
	[HTTP1_CHUNK_TOO_LARGE] = { 400, "chunk size out of range" },
	[HTTP1_TRAILER_BAD] = { 400, "malformed or too long trailer" },
	[HTTP1_TARGET_BAD] = { 400, "the request target is malformed" },
	[HTTP1_TARGET_HTTPS] = { 400, "https needs CONNECT" },
	[HTTP1_TARGET_ORIGIN] = { 400,
	    "this is a proxy: the target must be http://host/path" },
	[HTTP1_PORT_BAD] = { 400, "the port is missing or malformed" },
};

unsigned
http1_fault_status(enum http1_fault fault)
{
	return (unsigned)fault < HTTP1_FAULTS ? faults[fault].status : 400;
}

const char *
http1_fault_text(enum http1_fault fault)
{
	return (unsigned)fault < HTTP1_FAULTS ? faults[fault].text :
						"malformed message";
}

static int
refuse(enum http1_fault fault, enum http1_fault *ret_fault)
{
	*ret_fault = fault;
	return -EPROTO;
}

/* tchar of RFC 9110 5.6.2, one bit a byte. */
static bool
is_token(char c)
{
	static const uint32_t bits[8] = { 0x00000000, 0x03ff6cfa, 0xc7fffffe,
		0x57ffffff, 0, 0, 0, 0 };
	unsigned char u = (unsigned char)c;

	return (bits[u >> 5] >> (u & 31)) & 1;
}

bool
http1_span_is(const char *buf, struct http1_span span, const char *text)
{
	return strlen(text) == span.len &&
	    memcmp(buf + span.at, text, span.len) == 0;
}

static bool
equal_nocase(const char *a, const char *b, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (ascii_to_lower(a[i]) != ascii_to_lower(b[i]))
			return false;
	return true;
}

bool
http1_span_is_nocase(const char *buf, struct http1_span span, const char *text)
{
	return strlen(text) == span.len &&
	    equal_nocase(buf + span.at, text, span.len);
}

void
http1_head_init(struct http1_head *head, enum http1_kind kind)
{
	memset(head, 0, offsetof(struct http1_head, fields));
	head->kind = (uint8_t)kind;
}

static struct http1_span
span_of(size_t from, size_t to)
{
	/* Both are below HTTP1_HEAD_MAX, so they fit. */
	return (struct http1_span){ (uint16_t)from, (uint16_t)(to - from) };
}

/* "HTTP/1.0" or "HTTP/1.1" at exactly these eight bytes. */
static enum http1_fault
read_version(const char *p, uint8_t *ret_minor)
{
	if (memcmp(p, "HTTP/", 5) != 0 || !ascii_is_digit(p[5]) ||
	    p[6] != '.' || !ascii_is_digit(p[7]))
		return HTTP1_BAD_LINE;
	if (p[5] != '1' || (p[7] != '0' && p[7] != '1'))
		return HTTP1_BAD_VERSION;
	*ret_minor = (uint8_t)(p[7] - '0');
	return HTTP1_OK;
}

/* method SP target SP HTTP/1.x, one space each. */
static enum http1_fault
read_request_line(struct http1_head *head, const char *buf, size_t from,
    size_t to)
{
	size_t at = from, target;

	while (at < to && is_token(buf[at]))
		at++;
	if (at == from || at - from > HTTP1_METHOD_MAX || at == to ||
	    buf[at] != ' ')
		return HTTP1_BAD_LINE;
	head->method = span_of(from, at);
	target = ++at;
	while (at < to && buf[at] > ' ' && buf[at] < 0x7f)
		at++;
	if (at == target || at == to || buf[at] != ' ' || to - at != 9)
		return HTTP1_BAD_LINE;
	head->target = span_of(target, at);
	return read_version(buf + at + 1, &head->minor);
}

/* HTTP/1.x SP 3DIGIT [SP reason]; servers leave the last space out. */
static enum http1_fault
read_status_line(struct http1_head *head, const char *buf, size_t from,
    size_t to)
{
	const char *p = buf + from;
	enum http1_fault fault;

	if (to - from < 12)
		return HTTP1_BAD_LINE;
	fault = read_version(p, &head->minor);
	if (fault != HTTP1_OK)
		return fault;
	if (p[8] != ' ' || p[9] < '1' || p[9] > '9' || !ascii_is_digit(p[10]) ||
	    !ascii_is_digit(p[11]) || (to - from > 12 && p[12] != ' '))
		return HTTP1_BAD_LINE;
	head->status =
	    (uint16_t)((p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0'));
	head->reason =
	    to - from > 13 ? span_of(from + 13, to) : span_of(to, to);
	return HTTP1_OK;
}

/* Fields that decide framing are counted as they are read. */
static void
note_field(struct http1_head *head, const char *buf,
    const struct http1_field *field)
{
	if (http1_span_is_nocase(buf, field->name, "host"))
		head->nhost++;
	if (http1_span_is_nocase(buf, field->name, "content-length")) {
		head->nlength++;
		head->length_index = head->nfields;
	}
	if (http1_span_is_nocase(buf, field->name, "transfer-encoding")) {
		head->ncoding++;
		head->coding_index = head->nfields;
	}
}

static enum http1_fault
read_field(struct http1_head *head, const char *buf, size_t from, size_t to)
{
	struct http1_field *field;
	size_t at = from;

	if (buf[from] == ' ' || buf[from] == '\t')
		return HTTP1_FOLDED;
	if (head->nfields == HTTP1_FIELDS_MAX)
		return HTTP1_TOO_MANY_FIELDS;
	field = &head->fields[head->nfields];
	while (at < to && is_token(buf[at]))
		at++;
	if (at == from || at == to || buf[at] != ':')
		return HTTP1_BAD_FIELD;
	field->name = span_of(from, at);
	at++;
	while (at < to && (buf[at] == ' ' || buf[at] == '\t'))
		at++;
	while (to > at && (buf[to - 1] == ' ' || buf[to - 1] == '\t'))
		to--;
	field->value = span_of(at, to);
	note_field(head, buf, field);
	head->nfields++;
	return HTTP1_OK;
}

#define NO_END SIZE_MAX

/*
 * Move head->scan behind the LF that ends the current line, checking each
 * byte.  *ret_end is where its CR is, or NO_END if the line is not complete.
 */
static enum http1_fault
scan_line(struct http1_head *head, const char *buf, size_t len, size_t *ret_end)
{
	size_t at = head->scan;

	*ret_end = NO_END;
	for (; at < len; at++) {
		unsigned char c = (unsigned char)buf[at];

		if (c >= 0x20 && c != 0x7f)
			continue;
		if (c == '\t')
			continue;
		if (c == '\n')
			return HTTP1_BARE_CR_LF;
		if (c != '\r')
			return HTTP1_CONTROL_BYTE;
		if (at + 1 == len)
			break; /* the LF has not come yet */
		if (buf[at + 1] != '\n')
			return HTTP1_BARE_CR_LF;
		*ret_end = at;
		at += 2;
		break;
	}
	head->scan = (uint16_t)at;
	return HTTP1_OK;
}

/* The empty line was reached: rules about the head as a whole. */
static enum http1_fault
check_head(const struct http1_head *head, const char *buf)
{
	if (head->nhost > 1)
		return HTTP1_HOST_REPEATED;
	/* Without Host the target of CONNECT still is unambiguous. */
	if (head->kind == HTTP1_REQUEST && head->nhost == 0 &&
	    head->minor == 1 && !http1_span_is(buf, head->method, "CONNECT"))
		return HTTP1_HOST_MISSING;
	return HTTP1_OK;
}

static enum http1_fault
read_line(struct http1_head *head, const char *buf, size_t end)
{
	size_t from = head->line;
	enum http1_fault fault;

	if (!head->have_line) {
		if (end - from > HTTP1_LINE_MAX)
			return HTTP1_LINE_TOO_LONG;
		fault = head->kind == HTTP1_REQUEST ?
		    read_request_line(head, buf, from, end) :
		    read_status_line(head, buf, from, end);
		head->have_line = true;
		return fault;
	}
	if (end != from)
		return read_field(head, buf, from, end);
	fault = check_head(head, buf);
	if (fault == HTTP1_OK)
		head->size = head->scan;
	return fault;
}

int
http1_head_read(struct http1_head *head, const char *buf, size_t len,
    enum http1_fault *ret_fault)
{
	size_t limit = len < HTTP1_HEAD_MAX ? len : HTTP1_HEAD_MAX;
	enum http1_fault fault;
	size_t end;

	while (head->size == 0) {
		fault = scan_line(head, buf, limit, &end);
		if (fault != HTTP1_OK)
			return refuse(fault, ret_fault);
		if (end == NO_END) {
			if (!head->have_line &&
			    limit - head->line > HTTP1_LINE_MAX + 1)
				return refuse(HTTP1_LINE_TOO_LONG, ret_fault);
			if (limit == HTTP1_HEAD_MAX)
				return refuse(HTTP1_HEAD_TOO_LARGE, ret_fault);
			return 0;
		}
		fault = read_line(head, buf, end);
		if (fault != HTTP1_OK)
			return refuse(fault, ret_fault);
		head->line = head->scan;
	}
	return 1;
}

const struct http1_field *
http1_field_next(const struct http1_head *head, const char *buf,
    const char *name, unsigned *index)
{
	while (*index < head->nfields) {
		const struct http1_field *field = &head->fields[(*index)++];

		if (http1_span_is_nocase(buf, field->name, name))
			return field;
	}
	return NULL;
}

/* One comma list: does it have the token (of tlen bytes)? */
static bool
list_has(const char *value, size_t len, const char *token, size_t tlen)
{
	size_t at = 0, from, to;

	while (at < len) {
		from = at;
		while (at < len && value[at] != ',')
			at++;
		to = at++;
		while (from < to && (value[from] == ' ' || value[from] == '\t'))
			from++;
		while (to > from &&
		    (value[to - 1] == ' ' || value[to - 1] == '\t'))
			to--;
		if (to - from == tlen &&
		    equal_nocase(value + from, token, tlen))
			return true;
	}
	return false;
}

static bool
fields_have(const struct http1_head *head, const char *buf, const char *name,
    const char *token, size_t tlen)
{
	const struct http1_field *field;
	unsigned index = 0;

	while ((field = http1_field_next(head, buf, name, &index)) != NULL)
		if (list_has(buf + field->value.at, field->value.len, token,
			tlen))
			return true;
	return false;
}

bool
http1_field_has_token(const struct http1_head *head, const char *buf,
    const char *name, const char *token)
{
	return fields_have(head, buf, name, token, strlen(token));
}

bool
http1_field_is_hop(const struct http1_head *head, const char *buf,
    const struct http1_field *field)
{
	static const char *const hops[] = {
		"connection",
		"keep-alive",
		"te",
		"trailer",
		"upgrade",
		"transfer-encoding",
	};
	const char *name = buf + field->name.at;
	size_t i;

	for (i = 0; i < ARRAY_LEN(hops); i++)
		if (http1_span_is_nocase(buf, field->name, hops[i]))
			return true;
	if (field->name.len >= 6 && equal_nocase(name, "proxy-", 6))
		return true;
	return fields_have(head, buf, "connection", name, field->name.len);
}

bool
http1_head_keeps(const struct http1_head *head, const char *buf)
{
	if (http1_field_has_token(head, buf, "connection", "close"))
		return false;
	if (head->minor == 1)
		return !http1_field_has_token(head, buf, "proxy-connection",
		    "close");
	return http1_field_has_token(head, buf, "connection", "keep-alive");
}

/* 1*DIGIT up to HTTP1_LENGTH_MAX. */
static int
parse_length(const char *text, size_t len, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i;

	if (len == 0 || len > 16)
		return -EINVAL;
	for (i = 0; i < len; i++) {
		if (!ascii_is_digit(text[i]))
			return -EINVAL;
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	if (value > HTTP1_LENGTH_MAX)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* Faults of the two framing fields, whatever the message is. */
static enum http1_fault
check_framing(const struct http1_head *head, const char *buf,
    uint64_t *ret_length)
{
	struct http1_span value;

	if (head->nlength > 0 && head->ncoding > 0)
		return HTTP1_LENGTH_AND_CODING;
	if (head->nlength > 1)
		return HTTP1_LENGTH_REPEATED;
	if (head->nlength == 1) {
		value = head->fields[head->length_index].value;
		if (parse_length(buf + value.at, value.len, ret_length) < 0)
			return HTTP1_LENGTH_BAD;
	}
	if (head->ncoding > 1 || (head->ncoding == 1 && head->minor == 0))
		return HTTP1_CODING_BAD;
	if (head->ncoding == 1 &&
	    !http1_span_is_nocase(buf, head->fields[head->coding_index].value,
		"chunked"))
		return HTTP1_CODING_BAD;
	return HTTP1_OK;
}

int
http1_head_framing(const struct http1_head *head, const char *buf,
    bool request_was_head, enum http1_framing *ret_framing,
    uint64_t *ret_length, enum http1_fault *ret_fault)
{
	enum http1_framing framing;
	enum http1_fault fault;
	uint64_t length = 0;

	fault = check_framing(head, buf, &length);
	if (fault != HTTP1_OK)
		return refuse(fault, ret_fault);
	if (head->kind == HTTP1_RESPONSE &&
	    (request_was_head || head->status < 200 || head->status == 204 ||
		head->status == 304))
		framing = HTTP1_NO_BODY;
	else if (head->ncoding == 1)
		framing = HTTP1_BY_CHUNKS;
	else if (head->nlength == 1)
		framing = length == 0 ? HTTP1_NO_BODY : HTTP1_BY_LENGTH;
	else
		framing = head->kind == HTTP1_REQUEST ? HTTP1_NO_BODY :
							HTTP1_UNTIL_CLOSE;
	*ret_framing = framing;
	*ret_length = framing == HTTP1_BY_LENGTH ? length : 0;
	return 0;
}

/* Body states.  A handler takes one byte; content states are separate. */
enum body_state {
	BODY_DONE,
	BODY_CONTENT, /* by length */
	BODY_ENDLESS, /* until close */
	CHUNK_SIZE,
	CHUNK_EXT,
	CHUNK_SIZE_LF,
	CHUNK_CONTENT,
	CHUNK_CR,
	CHUNK_LF,
	TRAILER_START,
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	TRAILER_END_LF,
	BODY_STATES
};

void
http1_body_init(struct http1_body *body, enum http1_framing framing,
    uint64_t length)
{
	static const uint8_t first[] = {
		[HTTP1_NO_BODY] = BODY_DONE,
		[HTTP1_BY_LENGTH] = BODY_CONTENT,
		[HTTP1_BY_CHUNKS] = CHUNK_SIZE,
		[HTTP1_UNTIL_CLOSE] = BODY_ENDLESS,
	};

	memset(body, 0, sizeof(*body));
	body->framing = (uint8_t)framing;
	body->state = first[framing];
	if (framing == HTTP1_BY_LENGTH)
		body->left = length;
	if (body->state == BODY_CONTENT && length == 0)
		body->state = BODY_DONE;
}

bool
http1_body_done(const struct http1_body *body)
{
	return body->state == BODY_DONE;
}

static int
hex_value(char c)
{
	if (ascii_is_digit(c))
		return c - '0';
	c = ascii_to_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static enum http1_fault
on_size(struct http1_body *body, char c)
{
	int value = hex_value(c);

	if (value >= 0) {
		if (body->digits == 16)
			return HTTP1_CHUNK_TOO_LARGE;
		body->digits++;
		body->left = body->left << 4 | (uint64_t)value;
		if (body->left > HTTP1_LENGTH_MAX)
			return HTTP1_CHUNK_TOO_LARGE;
		return HTTP1_OK;
	}
	if (body->digits == 0 || (c != ';' && c != '\r'))
		return HTTP1_CHUNK_BAD;
	body->count = 0;
	body->state = c == ';' ? CHUNK_EXT : CHUNK_SIZE_LF;
	return HTTP1_OK;
}

static bool
is_text(char c)
{
	unsigned char u = (unsigned char)c;

	return (u >= 0x20 && u != 0x7f) || u == '\t';
}

static enum http1_fault
on_ext(struct http1_body *body, char c)
{
	if (c == '\r') {
		body->state = CHUNK_SIZE_LF;
		return HTTP1_OK;
	}
	if (!is_text(c) || ++body->count > HTTP1_CHUNK_EXT_MAX)
		return HTTP1_CHUNK_BAD;
	return HTTP1_OK;
}

static enum http1_fault
on_size_lf(struct http1_body *body, char c)
{
	if (c != '\n')
		return HTTP1_CHUNK_BAD;
	body->digits = 0;
	body->count = 0;
	body->state = body->left == 0 ? TRAILER_START : CHUNK_CONTENT;
	return HTTP1_OK;
}

static enum http1_fault
on_chunk_cr(struct http1_body *body, char c)
{
	body->state = CHUNK_LF;
	return c == '\r' ? HTTP1_OK : HTTP1_CHUNK_BAD;
}

static enum http1_fault
on_chunk_lf(struct http1_body *body, char c)
{
	body->state = CHUNK_SIZE;
	return c == '\n' ? HTTP1_OK : HTTP1_CHUNK_BAD;
}

static enum http1_fault
on_trailer_start(struct http1_body *body, char c)
{
	if (c == '\r') {
		body->state = TRAILER_END_LF;
		return HTTP1_OK;
	}
	if (!is_token(c) || ++body->count > HTTP1_TRAILER_MAX)
		return HTTP1_TRAILER_BAD;
	body->state = TRAILER_NAME;
	return HTTP1_OK;
}

static enum http1_fault
on_trailer_name(struct http1_body *body, char c)
{
	if ((c != ':' && !is_token(c)) || ++body->count > HTTP1_TRAILER_MAX)
		return HTTP1_TRAILER_BAD;
	if (c == ':')
		body->state = TRAILER_VALUE;
	return HTTP1_OK;
}

static enum http1_fault
on_trailer_value(struct http1_body *body, char c)
{
	if (c == '\r') {
		body->state = TRAILER_LF;
		return HTTP1_OK;
	}
	if (!is_text(c) || ++body->count > HTTP1_TRAILER_MAX)
		return HTTP1_TRAILER_BAD;
	return HTTP1_OK;
}

static enum http1_fault
on_trailer_lf(struct http1_body *body, char c)
{
	body->state = TRAILER_START;
	return c == '\n' ? HTTP1_OK : HTTP1_TRAILER_BAD;
}

static enum http1_fault
on_end_lf(struct http1_body *body, char c)
{
	body->state = BODY_DONE;
	return c == '\n' ? HTTP1_OK : HTTP1_TRAILER_BAD;
}

static enum http1_fault (*const on_byte[BODY_STATES])(struct http1_body *,
    char) = {
	[CHUNK_SIZE] = on_size,
	[CHUNK_EXT] = on_ext,
	[CHUNK_SIZE_LF] = on_size_lf,
	[CHUNK_CR] = on_chunk_cr,
	[CHUNK_LF] = on_chunk_lf,
	[TRAILER_START] = on_trailer_start,
	[TRAILER_NAME] = on_trailer_name,
	[TRAILER_VALUE] = on_trailer_value,
	[TRAILER_LF] = on_trailer_lf,
	[TRAILER_END_LF] = on_end_lf,
};

/* Content that starts at data: how much of it is here. */
static size_t
take_content(struct http1_body *body, size_t len)
{
	if (body->state == BODY_ENDLESS)
		return len;
	if (len < body->left) {
		body->left -= len;
		return len;
	}
	len = (size_t)body->left;
	body->left = 0;
	body->state = body->state == CHUNK_CONTENT ? CHUNK_CR : BODY_DONE;
	return len;
}

int
http1_body_read(struct http1_body *body, const char *data, size_t len,
    size_t *ret_used, size_t *ret_content, enum http1_fault *ret_fault)
{
	enum http1_fault fault;
	size_t at = 0, content = 0;

	while (at < len && content == 0 && body->state != BODY_DONE) {
		if (on_byte[body->state] == NULL) {
			content = take_content(body, len - at);
			at += content;
			continue;
		}
		fault = on_byte[body->state](body, data[at++]);
		if (fault != HTTP1_OK)
			return refuse(fault, ret_fault);
	}
	*ret_used = at;
	*ret_content = content;
	return 0;
}

int
http1_port_parse(const char *text, size_t len, uint16_t *ret_port)
{
	unsigned value = 0;
	size_t i;

	if (len == 0 || len > 5 || text[0] == '0')
		return -EINVAL;
	for (i = 0; i < len; i++) {
		if (!ascii_is_digit(text[i]))
			return -EINVAL;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	if (value > 65535)
		return -EINVAL;
	*ret_port = (uint16_t)value;
	return 0;
}

static int
refuse_target(enum http1_fault fault, enum http1_fault *ret_fault)
{
	*ret_fault = fault;
	return -EINVAL;
}

/*
 * Split host[:port] at the last colon outside brackets.  *ret_port_len is
 * (size_t)-1 without a colon.
 */
static int
split_authority(const char *p, size_t len, size_t *ret_host_len,
    size_t *ret_port_len)
{
	const char *end, *colon;
	size_t host;

	if (memchr(p, '@', len) != NULL)
		return -EINVAL;
	if (len > 0 && p[0] == '[') {
		end = memchr(p, ']', len);
		if (end == NULL)
			return -EINVAL;
		host = (size_t)(end - p) + 1;
		if (host < len && p[host] != ':')
			return -EINVAL;
	} else {
		colon = memchr(p, ':', len);
		host = colon == NULL ? len : (size_t)(colon - p);
	}
	if (host == 0)
		return -EINVAL;
	*ret_host_len = host;
	*ret_port_len = host == len ? (size_t)-1 : len - host - 1;
	return 0;
}

int
http1_target_authority(const char *buf, struct http1_span target,
    struct http1_span *ret_host, uint16_t *ret_port,
    enum http1_fault *ret_fault)
{
	const char *p = buf + target.at;
	size_t host_len, port_len;

	if (memchr(p, '/', target.len) != NULL ||
	    memchr(p, '?', target.len) != NULL ||
	    memchr(p, '#', target.len) != NULL ||
	    split_authority(p, target.len, &host_len, &port_len) < 0)
		return refuse_target(HTTP1_TARGET_BAD, ret_fault);
	if (port_len == (size_t)-1 ||
	    http1_port_parse(p + host_len + 1, port_len, ret_port) < 0)
		return refuse_target(HTTP1_PORT_BAD, ret_fault);
	*ret_host = span_of(target.at, target.at + host_len);
	return 0;
}

int
http1_target_absolute(const char *buf, struct http1_span target,
    struct http1_span *ret_host, uint16_t *ret_port,
    struct http1_span *ret_path, enum http1_fault *ret_fault)
{
	const char *p = buf + target.at;
	size_t len = target.len, end = 7, host_len, port_len;
	uint16_t port = 80;

	if (p[0] == '/' || p[0] == '*')
		return refuse_target(HTTP1_TARGET_ORIGIN, ret_fault);
	if (len >= 8 && equal_nocase(p, "https://", 8))
		return refuse_target(HTTP1_TARGET_HTTPS, ret_fault);
	if (len < 8 || !equal_nocase(p, "http://", 7) ||
	    memchr(p, '#', len) != NULL)
		return refuse_target(HTTP1_TARGET_BAD, ret_fault);
	while (end < len && p[end] != '/' && p[end] != '?')
		end++;
	if (split_authority(p + 7, end - 7, &host_len, &port_len) < 0)
		return refuse_target(HTTP1_TARGET_BAD, ret_fault);
	if (port_len != (size_t)-1 &&
	    http1_port_parse(p + 7 + host_len + 1, port_len, &port) < 0)
		return refuse_target(HTTP1_PORT_BAD, ret_fault);
	*ret_host = span_of(target.at + 7u, target.at + 7u + host_len);
	*ret_path = span_of(target.at + end, target.at + len);
	*ret_port = port;
	return 0;
}
