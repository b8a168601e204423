/*
 * HTTP/1.1 heads and body framing, strictly: readers without I/O and without
 * allocation, used by stockade-proxyd and stockade-gatewayd.  Input is
 * hostile on both sides, the agent's and the origin's.  Any doubt about
 * where a message ends is an error, never a guess, since a guess that
 * differs from the next reader's is request smuggling.  RFC 9110, RFC 9112
 * (sections 2.2, 3.2, 5, 6, 7.1, 11.2); SPEC G10, G13, G14, AB.
 *
 * Accepted: CRLF line ends only; no folded lines, no blank before the colon,
 * no control bytes, at most one Host, Content-Length or Transfer-Encoding
 * but not both, each at most once; Transfer-Encoding exactly "chunked".
 */
#ifndef COMMON_HTTP1_H
#define COMMON_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP1_HEAD_MAX 16384 /* bytes, with the empty line */
#define HTTP1_LINE_MAX 4096 /* request or status line without CRLF */
#define HTTP1_FIELDS_MAX 100
#define HTTP1_METHOD_MAX 32
#define HTTP1_CHUNK_EXT_MAX 256
#define HTTP1_TRAILER_MAX 8192 /* bytes of all trailer lines of a body */
#define HTTP1_LENGTH_MAX (UINT64_C(1) << 53)

enum http1_kind { HTTP1_REQUEST, HTTP1_RESPONSE };

/* Why a message was refused; status and words by http1_fault_*(). */
enum http1_fault {
	HTTP1_OK = 0,
	HTTP1_BAD_LINE,
	HTTP1_BAD_VERSION,
	HTTP1_LINE_TOO_LONG,
	HTTP1_HEAD_TOO_LARGE,
	HTTP1_TOO_MANY_FIELDS,
	HTTP1_BARE_CR_LF,
	HTTP1_CONTROL_BYTE,
	HTTP1_FOLDED,
	HTTP1_BAD_FIELD,
	HTTP1_HOST_REPEATED,
	HTTP1_HOST_MISSING,
	HTTP1_LENGTH_BAD,
	HTTP1_LENGTH_REPEATED,
	HTTP1_LENGTH_AND_CODING,
	HTTP1_CODING_BAD,
	HTTP1_CHUNK_BAD,
	HTTP1_CHUNK_TOO_LARGE,
	HTTP1_TRAILER_BAD,
	HTTP1_TARGET_BAD,
	HTTP1_TARGET_HTTPS,
	HTTP1_TARGET_ORIGIN,
	HTTP1_PORT_BAD,
	HTTP1_FAULTS
};

/* Part of the caller's buffer. */
struct http1_span {
	uint16_t at;
	uint16_t len;
};

struct http1_field {
	struct http1_span name;
	struct http1_span value; /* without blanks at both ends */
};

/*
 * A head being read.  Spans are offsets into the buffer that was given, so
 * the buffer may move between calls as long as its bytes stay.
 */
struct http1_head {
	/* Results, valid once http1_head_read() returned 1. */
	struct http1_span method; /* request */
	struct http1_span target; /* request */
	uint16_t status; /* response, 100..999 */
	struct http1_span reason; /* response, may be empty */
	uint8_t minor; /* HTTP/1.<minor>: 0 or 1 */
	uint16_t nfields;
	uint16_t size; /* bytes of the head with its empty line */
	/* Set by the reader for http1_head_framing(). */
	uint16_t nhost;
	uint16_t nlength;
	uint16_t ncoding;
	uint16_t length_index;
	uint16_t coding_index;
	/* Position of the reader. */
	uint8_t kind;
	bool have_line;
	uint16_t line;
	uint16_t scan;
	struct http1_field fields[HTTP1_FIELDS_MAX];
};

void http1_head_init(struct http1_head *head, enum http1_kind kind);

/*
 * Read on in buf[0..len), the same bytes as before and more behind them.
 * Bytes behind the head are not looked at.  1: the head is complete,
 * head->size says where it ends.  0: more bytes are needed.  -EPROTO: refused,
 * *ret_fault says why; further calls must not follow.
 */
int http1_head_read(struct http1_head *head, const char *buf, size_t len,
    enum http1_fault *ret_fault);

/* Compares a span with a text, case-sensitively or as field names are. */
bool http1_span_is(const char *buf, struct http1_span span, const char *text);
bool
http1_span_is_nocase(const char *buf, struct http1_span span, const char *text);

/* Next field of that name from *index on (moved behind it), or NULL. */
const struct http1_field *http1_field_next(const struct http1_head *head,
    const char *buf, const char *name, unsigned *index);

/* A comma list in any field `name` has this token (RFC 9110 5.6.1). */
bool http1_field_has_token(const struct http1_head *head, const char *buf,
    const char *name, const char *token);

/*
 * The field belongs to one connection only and is not passed on: the fixed
 * set of RFC 9110 7.6.1, every Proxy-*, or named by a Connection field.
 */
bool http1_field_is_hop(const struct http1_head *head, const char *buf,
    const struct http1_field *field);

/* Whether the sender keeps its connection after this message. */
bool http1_head_keeps(const struct http1_head *head, const char *buf);

enum http1_framing {
	HTTP1_NO_BODY,
	HTTP1_BY_LENGTH,
	HTTP1_BY_CHUNKS,
	HTTP1_UNTIL_CLOSE /* responses only */
};

/*
 * How the body of a complete head is framed.  For a response the caller says
 * whether the request was HEAD; CONNECT responses are not for this function.
 * 0, or -EPROTO with *ret_fault.
 */
int http1_head_framing(const struct http1_head *head, const char *buf,
    bool request_was_head, enum http1_framing *ret_framing,
    uint64_t *ret_length, enum http1_fault *ret_fault);

/* A body being read. */
struct http1_body {
	uint64_t left; /* bytes of the body or of the chunk */
	uint16_t count; /* bytes of the current ext or of all trailers */
	uint8_t digits;
	uint8_t state;
	uint8_t framing;
};

void http1_body_init(struct http1_body *body, enum http1_framing framing,
    uint64_t length);
bool http1_body_done(const struct http1_body *body);

/*
 * Take from data[0..len) up to the end of one run of content.  *ret_used
 * bytes were consumed, of which the last *ret_content are content (may be 0:
 * only framing was read).  Call again with the rest until done or nothing is
 * left.  Chunk extensions and trailers are checked and dropped.  At the end
 * of the connection a body that is not done is cut short, unless its framing
 * is HTTP1_UNTIL_CLOSE.  0, or -EPROTO with *ret_fault.
 */
int http1_body_read(struct http1_body *body, const char *data, size_t len,
    size_t *ret_used, size_t *ret_content, enum http1_fault *ret_fault);

/* Strict decimal port 1..65535 without sign or leading zero, or -EINVAL. */
int http1_port_parse(const char *text, size_t len, uint16_t *ret_port);

/*
 * authority-form "name:port" or "[v6]:port" (CONNECT).  The host is not
 * checked here but has no '@', '/', or colon outside brackets.  0, or
 * -EINVAL with *ret_fault.
 */
int http1_target_authority(const char *buf, struct http1_span target,
    struct http1_span *ret_host, uint16_t *ret_port,
    enum http1_fault *ret_fault);

/*
 * absolute-form with scheme http only (SPEC G13).  The path starts at '/'
 * or '?' and may be empty.  User info and fragments are refused.  0, or
 * -EINVAL with *ret_fault.
 */
int http1_target_absolute(const char *buf, struct http1_span target,
    struct http1_span *ret_host, uint16_t *ret_port,
    struct http1_span *ret_path, enum http1_fault *ret_fault);

/* The status a server answers a refused request with, and its words. */
unsigned http1_fault_status(enum http1_fault fault);
const char *http1_fault_text(enum http1_fault fault);

#endif
