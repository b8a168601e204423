/*
 * Log events: each is declared once in common/events.def (name, priority,
 * sentence). They go to journald with the native protocol over a socket opened
 * at start (JOURNAL_STREAM matches standard error), else as one line of
 * KEY=value on standard error. Text that came from outside is cleaned
 * (control bytes as \xNN, 4 KiB). Never pass a token, a body, a URL query or
 * an environment value: there is no field for one.
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stddef.h>
#include <stdint.h>

enum log_event_id {
#define LOG_EVENT(name, priority, sentence) EV_##name,
#include "common/events.def"
#undef LOG_EVENT
	EV_COUNT
};

/* Keys; the journal's field is STOCKADE_<name>. */
/* clang-format off */
#define LOG_KEYS(X) \
	X(SANDBOX) X(SESSION) X(REQUEST) X(CLIENT) X(EXEC) X(PEER) X(PEER_UID) \
	X(RUN_UID) X(HOST) X(PORT) X(DECISION) X(RULE) X(REASON) X(ERRNO) \
	X(STEP) X(PATH) X(NAME) X(COUNT) X(PID) X(STATUS) X(SIGNAL) X(METHOD) \
	X(BACKEND) X(DIGEST) X(CAUSE) X(DELAY_MS) X(LINE) X(LIMIT) X(PEAK) \
	X(ACTION) X(TARGET) X(MODE) X(MESSAGE_TYPE) X(EXE) X(REMEDY)
enum log_key {
#define X(k) LK_##k,
	LOG_KEYS(X)
#undef X
	LOG_KEY_COUNT
};
/* clang-format on */

struct log_field {
	enum log_key key;
	const char *str; /* NULL: number */
	uint64_t num;
};
/* clang-format off */
#define LF_STR(k, s) { (k), (s), 0 }
#define LF_NUM(k, n) { (k), NULL, (uint64_t)(n) }
/* clang-format on */

enum log_level {
	LOG_LEVEL_ERR = 3,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_NOTICE,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

/* Opens the socket; `proc` names the process in each record (static string).
 * Call while files can still be opened. */
void log_init(const char *proc, enum log_level level);
void log_set_level(enum log_level level);
/* The descriptor of the journal socket, -1 when logging to standard error. */
int log_fd(void);

void log_record(enum log_event_id, const struct log_field *fields, size_t n);
#define log_event(ev, ...) \
	log_record((ev), (const struct log_field[]){ __VA_ARGS__ }, \
	    sizeof((const struct log_field[]){ __VA_ARGS__ }) / \
		sizeof(struct log_field))

/* A plain line for start-up and for people (the line of SPEC A10). */
void log_line(enum log_level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a cleaned copy of `len` bytes: printable ASCII and valid UTF-8 stay,
 * control bytes, DEL and broken UTF-8 become \xNN; cut to fit, always
 * NUL-terminated. Returns the length written. */
size_t log_clean(char *dst, size_t size, const void *src, size_t len);

#endif
