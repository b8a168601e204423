/*
 * Log records: hostile values stay inside their field.
 */
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/log.h"
#include "common/size.h"

/* clang-format off */
static const struct {
	const char *in;
	size_t len;
	const char *out;
} cleaned[] = {
	{ "plain text", 10, "plain text" },
	{ "a\nb", 3, "a\\x0ab" },
	{ "\x1b[31m", 5, "\\x1b[31m" },
	{ "a\0b", 3, "a\\x00b" },
	{ "\x7f", 1, "\\x7f" },
	{ "gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f" },
	{ "\xe2\x82\xac", 3, "\xe2\x82\xac" },
	{ "\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80" },
	{ "\xc2\x9b" "31m", 5, "\\xc2\\x9b31m" },	/* C1: CSI */
	{ "\xc0\xaf", 2, "\\xc0\\xaf" },		/* overlong */
	{ "\xe0\x80\xaf", 3, "\\xe0\\x80\\xaf" },
	{ "\xed\xa0\x80", 3, "\\xed\\xa0\\x80" },	/* surrogate */
	{ "\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80" },
	{ "\xe2\x82", 2, "\\xe2\\x82" },		/* cut */
	{ "", 0, "" },
};
/* clang-format on */

static void
outside_text_is_cleaned(void **state)
{
	char buf[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cleaned); i++) {
		size_t n =
		    log_clean(buf, sizeof(buf), cleaned[i].in, cleaned[i].len);

		assert_string_equal(buf, cleaned[i].out);
		assert_int_equal(n, strlen(buf));
	}
}

static void
a_cut_never_splits_a_character(void **state)
{
	char buf[8];

	(void)state;
	assert_int_equal(log_clean(buf, 6, "abc\xe2\x82\xac", 6), 3);
	assert_string_equal(buf, "abc");
	assert_int_equal(log_clean(buf, 6, "ab\x01", 3), 2);
	assert_int_equal(log_clean(buf, 1, "ab", 2), 0);
	assert_int_equal(log_clean(NULL, 0, "ab", 2), 0);
}

/* Runs one record with standard error in a file and returns the text. */
static void
capture(char *buf, size_t size, const struct log_field *fields, size_t n,
    enum log_event_id event)
{
	int file = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	int saved = dup(STDERR_FILENO);
	ssize_t len;

	assert_true(file >= 0);
	(void)dup2(file, STDERR_FILENO);
	log_record(event, fields, n);
	(void)dup2(saved, STDERR_FILENO);
	(void)close(saved);
	len = pread(file, buf, size - 1, 0);
	assert_true(len >= 0);
	buf[len] = '\0';
	(void)close(file);
}

static void
a_value_begins_no_new_field_and_no_new_line(void **state)
{
	char buf[4096];
	const struct log_field fields[] = {
		LF_STR(LK_HOST, "evil\nPRIORITY=0 STOCKADE_RULE=\"x\""),
		LF_NUM(LK_PORT, 443),
	};

	(void)state;
	log_init("test", LOG_LEVEL_INFO);
	assert_int_equal(log_fd(), -1);
	capture(buf, sizeof(buf), fields, 2, EV_EGRESS_DENIED);
	assert_string_equal(buf,
	    "PRIORITY=5 MESSAGE=\"connection refused\" "
	    "STOCKADE_PROC=test STOCKADE_EVENT=EGRESS_DENIED "
	    "STOCKADE_HOST=\"evil\\x0aPRIORITY=0 STOCKADE_RULE=\\\"x\\\"\" "
	    "STOCKADE_PORT=443\n");
}

static void
the_level_filters(void **state)
{
	char buf[256];
	const struct log_field field = LF_NUM(LK_PORT, 1);

	(void)state;
	log_set_level(LOG_LEVEL_WARNING);
	capture(buf, sizeof(buf), &field, 1, EV_EGRESS_DENIED);
	assert_string_equal(buf, "");
	capture(buf, sizeof(buf), &field, 1, EV_INTERNAL);
	assert_string_not_equal(buf, "");
	log_set_level(LOG_LEVEL_INFO);
}

static void
many_long_values_fit_in_one_record(void **state)
{
	static char value[8192];
	static char buf[1 << 17];
	struct log_field fields[24];

	(void)state;
	memset(value, '\\', sizeof(value) - 1);
	for (size_t i = 0; i < 24; i++)
		fields[i] = (struct log_field)LF_STR(LK_TARGET, value);
	capture(buf, sizeof(buf), fields, 24, EV_VIOLATION);
	assert_true(strlen(buf) <= 65536);
	assert_ptr_equal(strchr(buf, '\n'), buf + strlen(buf) - 1);
}

/* In a mount namespace of its own: a socket where journald's is, a pipe as
 * standard error, and JOURNAL_STREAM that names it. */
static int
journal_open(int pipe_end)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX,
		.sun_path = "/run/systemd/journal/socket" };
	char text[64];
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/run", "tmpfs", 0, NULL) < 0 ||
	    mkdir("/run/systemd", 0755) < 0 ||
	    mkdir("/run/systemd/journal", 0755) < 0 ||
	    bind(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0 ||
	    fstat(pipe_end, &st) < 0 || dup2(pipe_end, STDERR_FILENO) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "%ju:%ju", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino);
	return setenv("JOURNAL_STREAM", text, 1) < 0 ? -1 : fd;
}

static int
journal_child(void)
{
	char buf[4096];
	int pair[2], fd;
	ssize_t n;

	if (pipe(pair) < 0 || (fd = journal_open(pair[1])) < 0)
		return 77;
	log_init("test", LOG_LEVEL_INFO);
	if (log_fd() < 0)
		return 1;
	log_event(EV_EGRESS_DENIED, LF_STR(LK_HOST, "a\nPRIORITY=0"),
	    LF_NUM(LK_PORT, 443));
	n = recv(fd, buf, sizeof(buf) - 1, 0);
	if (n <= 0)
		return 2;
	buf[n] = '\0';
	if (strcmp(buf,
		"PRIORITY=5\nSYSLOG_IDENTIFIER=test\n"
		"MESSAGE=connection refused\nSTOCKADE_PROC=test\n"
		"STOCKADE_EVENT=EGRESS_DENIED\nSTOCKADE_HOST=a\\x0aPRIORITY=0\n"
		"STOCKADE_PORT=443\n") != 0)
		return 3;
	/* The journal is gone: the record goes to standard error. */
	(void)close(fd);
	log_line(LOG_LEVEL_ERR, "lost");
	n = read(pair[0], buf, sizeof(buf) - 1);
	return n > 0 && memmem(buf, (size_t)n, "lost", 4) != NULL ? 0 : 4;
}

static void
the_journal_gets_fields(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(journal_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outside_text_is_cleaned),
		cmocka_unit_test(a_cut_never_splits_a_character),
		cmocka_unit_test(a_value_begins_no_new_field_and_no_new_line),
		cmocka_unit_test(the_level_filters),
		cmocka_unit_test(many_long_values_fit_in_one_record),
		/* As root only. */
		cmocka_unit_test(the_journal_gets_fields),
	};

	(void)unsetenv("JOURNAL_STREAM");
	return _cmocka_run_group_tests("log", tests,
	    ARRAY_LEN(tests) - (geteuid() == 0 ? 0 : 1), NULL, NULL);
}
