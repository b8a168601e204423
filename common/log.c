/*
 * Log records; see log.h. Values may come from a client, a run or the network:
 * each is cleaned here, so no caller can forget it, and no value can begin a
 * new field or a new line.
 */
#include "common/log.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/utf8.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define VALUE_MAX 4096
#define RECORD_MAX 65536

static const struct {
	const char *name;
	int priority;
	const char *sentence;
} events[EV_COUNT] = {
#define LOG_EVENT(name, priority, sentence) { #name, priority, sentence },
#include "common/events.def"
#undef LOG_EVENT
};

static const char *const keys[LOG_KEY_COUNT] = {
#define X(k) #k,
	LOG_KEYS(X)
#undef X
};

static struct {
	const char *proc;
	enum log_level level;
	int fd;
} state = { .proc = "stockade", .level = LOG_LEVEL_INFO, .fd = -1 };

/* ------------------------------------------------ cleaning */

/* Length of the character at p, 0 when it is none or a control character. */
static size_t
text_length(const unsigned char *p, size_t left)
{
	size_t n = utf8_length(p, left);

	return utf8_is_control(p, n) ? 0 : n;
}

size_t
log_clean(char *dst, size_t size, const void *src, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *p = src;
	size_t out = 0;

	if (size == 0)
		return 0;
	for (size_t i = 0; i < len;) {
		size_t n = text_length(p + i, len - i);

		if (out + (n == 0 ? 4 : n) >= size)
			break;
		if (n == 0) {
			dst[out++] = '\\';
			dst[out++] = 'x';
			dst[out++] = hex[p[i] >> 4];
			dst[out++] = hex[p[i] & 15];
			i++;
			continue;
		}
		memcpy(dst + out, p + i, n);
		out += n;
		i += n;
	}
	dst[out] = '\0';
	return out;
}

/* ------------------------------------------------ where it goes */

/* JOURNAL_STREAM is "device:inode" of what standard error is connected to
 * (systemd.exec(5)); after a redirection it does not match any more. */
static bool
stderr_is_journal(void)
{
	const char *text = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;
	char *end;

	if (text == NULL || fstat(STDERR_FILENO, &st) < 0)
		return false;
	errno = 0;
	dev = strtoumax(text, &end, 10);
	if (errno != 0 || end == text || *end != ':')
		return false;
	text = end + 1;
	ino = strtoumax(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' &&
	    dev == (uintmax_t)st.st_dev && ino == (uintmax_t)st.st_ino;
}

static int
open_journal(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	memcpy(sun.sun_path, JOURNAL_SOCKET, sizeof(JOURNAL_SOCKET));
	if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

void
log_init(const char *proc, enum log_level level)
{
	state.proc = proc;
	state.level = level;
	if (state.fd < 0 && stderr_is_journal())
		state.fd = open_journal();
}

void
log_set_level(enum log_level level)
{
	state.level = level;
}

int
log_fd(void)
{
	return state.fd;
}

/* ------------------------------------------------ records */

struct record {
	size_t len;
	char data[RECORD_MAX];
};

/* Adds text; what does not fit is left out. */
static void __attribute__((format(printf, 2, 3)))
put(struct record *rec, const char *fmt, ...)
{
	size_t room = sizeof(rec->data) - rec->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(rec->data + rec->len, room, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < room)
		rec->len += (size_t)n;
}

/* A value on a terminal: quoted when it holds a blank, a quote or nothing. */
static void
put_quoted(struct record *rec, const char *value)
{
	if (*value != '\0' && strpbrk(value, " \"") == NULL) {
		put(rec, "%s", value);
		return;
	}
	put(rec, "\"");
	for (; *value != '\0'; value++)
		put(rec, *value == '"' ? "\\%c" : "%c", *value);
	put(rec, "\"");
}

/* The journal's form ends each field with a newline, which a cleaned value
 * does not contain; the other form is one line. */
static void
put_field(struct record *rec, const char *name, const char *value)
{
	if (state.fd >= 0) {
		put(rec, "%s=%s\n", name, value);
		return;
	}
	put(rec, "%s%s=", rec->len == 0 ? "" : " ", name);
	put_quoted(rec, value);
}

static void
send_record(struct record *rec)
{
	ssize_t n;

	if (state.fd >= 0) {
		n = send(state.fd, rec->data, rec->len, MSG_NOSIGNAL);
		if (n >= 0)
			return;
		/* A journal that restarts or is full: the text is not lost. */
		for (size_t i = 0; i < rec->len; i++)
			if (rec->data[i] == '\n')
				rec->data[i] = ' ';
	}
	put(rec, "\n");
	do {
		n = write(STDERR_FILENO, rec->data, rec->len);
	} while (n < 0 && errno == EINTR);
}

static void
begin_record(struct record *rec, int priority, const char *sentence)
{
	char text[16];

	rec->len = 0;
	(void)snprintf(text, sizeof(text), "%d", priority);
	put_field(rec, "PRIORITY", text);
	if (state.fd >= 0)
		put_field(rec, "SYSLOG_IDENTIFIER", state.proc);
	put_field(rec, "MESSAGE", sentence);
	put_field(rec, "STOCKADE_PROC", state.proc);
}

void
log_record(enum log_event_id id, const struct log_field *fields, size_t n)
{
	static struct record rec;
	static char value[VALUE_MAX];

	if ((unsigned)id >= EV_COUNT || events[id].priority > (int)state.level)
		return;
	begin_record(&rec, events[id].priority, events[id].sentence);
	put_field(&rec, "STOCKADE_EVENT", events[id].name);
	for (size_t i = 0; i < n; i++) {
		char name[40];

		if ((unsigned)fields[i].key >= LOG_KEY_COUNT)
			continue;
		(void)snprintf(name, sizeof(name), "STOCKADE_%s",
		    keys[fields[i].key]);
		if (fields[i].str == NULL)
			(void)snprintf(value, sizeof(value), "%" PRIu64,
			    fields[i].num);
		else
			(void)log_clean(value, sizeof(value), fields[i].str,
			    strlen(fields[i].str));
		put_field(&rec, name, value);
	}
	send_record(&rec);
}

void
log_line(enum log_level level, const char *fmt, ...)
{
	static struct record rec;
	static char text[VALUE_MAX];
	static char clean[VALUE_MAX];
	va_list ap;

	if (level > state.level)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)log_clean(clean, sizeof(clean), text, strlen(text));
	rec.len = 0;
	if (state.fd >= 0)
		begin_record(&rec, (int)level, clean);
	else
		put(&rec, "%s: %s", state.proc, clean);
	send_record(&rec);
}
