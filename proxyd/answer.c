/*
 * Answers of our own; see answer.h. Runs in stockade-proxyd. The host in a text
 * was checked before; nothing else of a request is repeated.
 */
#include "proxyd/answer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/size.h"

#define PHRASE_MAX 100 /* bytes; as short as that of a refusal */
#define BAD_ANSWER "Bad Gateway" /* the host was reached */

/*
 * Failures (SPEC G12): not found is -ENOENT from the resolver.  error= of
 * Proxy-Status is from RFC 9209 2.3.  The phrase follows the host's name, but
 * for BAD_ANSWER.  The last row is the default.
 */
static const struct failure {
	int error;
	uint16_t status;
	const char *phrase;
	const char *proxy_error;
	const char *words;
	enum socks5_reply_code socks;
} failures[] = {
	{ -ENOENT, 502, "cannot be resolved", "dns_error",
	    "the name cannot be resolved", SOCKS5_HOST_UNREACHABLE },
	{ -EAGAIN, 502, "cannot be resolved", "dns_error",
	    "too many look-ups are waiting", SOCKS5_GENERAL },
	{ -ECONNREFUSED, 502, "cannot be reached", "connection_refused",
	    "connection refused", SOCKS5_REFUSED },
	{ -ENETUNREACH, 502, "cannot be reached", "destination_unavailable",
	    "network unreachable", SOCKS5_NET_UNREACHABLE },
	{ -EHOSTUNREACH, 502, "cannot be reached", "destination_unavailable",
	    "host unreachable", SOCKS5_NET_UNREACHABLE },
	{ -ETIMEDOUT, 504, "did not answer in time", "connection_timeout",
	    "connection timed out", SOCKS5_TIMED_OUT },
	{ -EPROTO, 502, BAD_ANSWER, "http_protocol_error",
	    "the answer is not valid HTTP/1.1", SOCKS5_GENERAL },
	{ -EPIPE, 502, BAD_ANSWER, "connection_terminated",
	    "the connection ended before the answer", SOCKS5_GENERAL },
	{ 0, 502, "cannot be reached", "connection_terminated",
	    "connection failed", SOCKS5_GENERAL },
};

static const struct failure *
find_failure(int error)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(failures) - 1; i++)
		if (failures[i].error == error)
			break;
	return &failures[i];
}

struct text {
	size_t len;
	char data[ANSWER_MAX];
};

static void __attribute__((format(printf, 2, 3)))
add(struct text *text, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text->data + text->len, sizeof(text->data) - text->len,
	    format, ap);
	va_end(ap);
	if (n > 0)
		text->len += (size_t)n;
	if (text->len >= sizeof(text->data))
		text->len = sizeof(text->data) - 1;
}

/* Head with the fields given, then the body. */
static size_t
compose(unsigned status, const char *phrase, const char *fields,
    const struct text *body, const struct answer_how *how, char *out)
{
	struct text head = { .len = 0 };

	add(&head,
	    "HTTP/1.1 %u %s\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "%sContent-Length: %zu\r\n"
	    "Cache-Control: no-store\r\n",
	    status, phrase, fields, body->len);
	if (!how->keep)
		add(&head, "Connection: close\r\n");
	add(&head, "\r\n");
	if (!how->no_body)
		add(&head, "%s", body->data);
	memcpy(out, head.data, head.len);
	return head.len;
}

size_t
answer_refusal(const struct decide_verdict *verdict, const char *host,
    uint16_t port, const struct answer_how *how, char out[ANSWER_MAX])
{
	const char *code = decide_reason_code(verdict->reason);
	char words[DECIDE_PHRASE_MAX + 1], phrase[128], fields[256];
	char rule[DECIDE_TEXT_MAX + 1], remedy[DECIDE_TEXT_MAX + 1];
	struct text body = { .len = 0 };
	unsigned status = verdict->reason == DECIDE_limit ? 503 : 403;

	decide_phrase(verdict->reason, host, port, words);
	decide_rule_text(verdict, host, port, rule);
	decide_remedy_text(verdict->reason, host, port, remedy);
	(void)snprintf(phrase, sizeof(phrase), "Blocked by sandbox: %s", words);
	(void)snprintf(fields, sizeof(fields),
	    "X-Deny-Reason: %s\r\nProxy-Status: stockade; "
	    "error=http_request_denied; details=\"%s\"\r\n",
	    code, code);
	add(&body, "%s\nRule: %s\n", phrase, rule);
	if (remedy[0] != '\0')
		add(&body, "To allow it: %s\n", remedy);
	return compose(status, phrase, fields, &body, how, out);
}

static size_t
plain_answer(unsigned status, const char *phrase, const char *words,
    char out[ANSWER_MAX])
{
	static const struct answer_how how = { false, false };
	struct text body = { .len = 0 };

	add(&body, "%s\n", words);
	return compose(status, phrase, "", &body, &how, out);
}

static const struct {
	unsigned status;
	const char *phrase;
} phrases[] = {
	{ 400, "Bad Request" },
	{ 408, "Request Timeout" },
	{ 431, "Request Header Fields Too Large" },
	{ 505, "HTTP Version Not Supported" },
};

size_t
answer_malformed(enum http1_fault fault, char out[ANSWER_MAX])
{
	unsigned status = http1_fault_status(fault);
	size_t i;

	for (i = ARRAY_LEN(phrases) - 1; i > 0; i--)
		if (phrases[i].status == status)
			break;
	return plain_answer(phrases[i].status, phrases[i].phrase,
	    http1_fault_text(fault), out);
}

size_t
answer_slow(char out[ANSWER_MAX])
{
	return plain_answer(408, "Request Timeout",
	    "the head did not arrive in time", out);
}

/* Clients show the phrase and hide the body. A long host is cut inside: its end
 * says whose it is. */
static void
failure_phrase(const struct failure *row, const char *host,
    char ret[PHRASE_MAX + 1])
{
	size_t room = PHRASE_MAX - strlen(row->phrase) - 1;
	size_t n = strlen(host), half = (room - 3) / 2;

	if (strcmp(row->phrase, BAD_ANSWER) == 0)
		(void)snprintf(ret, PHRASE_MAX + 1, "%s", row->phrase);
	else if (n <= room)
		(void)snprintf(ret, PHRASE_MAX + 1, "%s %s", host, row->phrase);
	else
		(void)snprintf(ret, PHRASE_MAX + 1, "%.*s...%s %s", (int)half,
		    host, host + n - half, row->phrase);
}

size_t
answer_failure(int error, const char *host, uint16_t port,
    const struct answer_how *how, char out[ANSWER_MAX])
{
	const struct failure *row = find_failure(error);
	struct text body = { .len = 0 };
	char phrase[PHRASE_MAX + 1], fields[128];

	(void)snprintf(fields, sizeof(fields),
	    "Proxy-Status: stockade; error=%s\r\n", row->proxy_error);
	add(&body, "%s:%u: %s\n", host, (unsigned)port, row->words);
	failure_phrase(row, host, phrase);
	return compose(row->status, phrase, fields, &body, how, out);
}

enum socks5_reply_code
answer_socks_refusal(enum decide_reason reason)
{
	return reason == DECIDE_limit ? SOCKS5_GENERAL : SOCKS5_NOT_ALLOWED;
}

enum socks5_reply_code
answer_socks_failure(int error)
{
	return find_failure(error)->socks;
}
