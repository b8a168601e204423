/*
 * The client half of the protocol, against a service that this test plays,
 * and the lines that are made of violations.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/client.h"
#include "protocol/rpc.h"
#include "supervisor/ctl/denied.h"

struct pair {
	char dir[32];
	char path[64];
	int listener;
	int far;
	struct rpc_client *client;
};

static int
set_up(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	assert_non_null(p);
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/stockade-client-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->path, sizeof(p->path), "%s/s", p->dir);
	(void)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", p->path);
	p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p->listener, (const struct sockaddr *)&sun,
			     sizeof(sun)),
	    0);
	assert_int_equal(listen(p->listener, 1), 0);
	assert_int_equal(rpc_client_open(p->path, &p->client), 0);
	p->far = accept(p->listener, NULL, NULL);
	assert_true(p->far >= 0);
	*state = p;
	return 0;
}

static int
tear_down(void **state)
{
	struct pair *p = *state;

	rpc_client_close(p->client);
	if (p->far >= 0)
		(void)close(p->far);
	(void)close(p->listener);
	(void)unlink(p->path);
	(void)rmdir(p->dir);
	free(p);
	return 0;
}

static void
send_answer(int fd, uint32_t id, const char *word)
{
	struct rpc_out out;

	rpc_out_init(&out);
	rpc_begin_result(&out, id);
	rpc_add_str(&out, "word", word);
	assert_int_equal(rpc_end_message(&out), 0);
	assert_int_equal(send(fd, out.data, out.len, 0), out.len);
	rpc_out_done(&out);
}

static void
send_event(int fd, const char *word)
{
	struct rpc_out out;

	rpc_out_init(&out);
	rpc_begin_notify(&out, "event");
	rpc_add_str(&out, "word", word);
	assert_int_equal(rpc_end_message(&out), 0);
	assert_int_equal(send(fd, out.data, out.len, 0), out.len);
	rpc_out_done(&out);
}

static void
requests_go_out_together_with_their_descriptors(void **state)
{
	struct pair *p = *state;
	uint8_t buf[4096], control[256];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr mh = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	struct rpc_scan scan = { 0 };
	struct rpc_message msg;
	size_t len, first;
	int fds[1] = { p->listener }, fd;
	ssize_t n;

	rpc_add_u64(rpc_client_begin(p->client, "one"), "a", 1);
	assert_int_equal(rpc_client_end(p->client), 1);
	(void)rpc_client_begin(p->client, "two");
	assert_int_equal(rpc_client_end(p->client), 2);
	assert_int_equal(rpc_client_flush(p->client, fds, 1), 0);
	n = recvmsg(p->far, &mh, MSG_CMSG_CLOEXEC);
	assert_true(n > 0);
	assert_non_null(CMSG_FIRSTHDR(&mh));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&mh)), sizeof(fd));
	assert_int_equal(close(fd), 0);
	assert_int_equal(rpc_scan(&scan, buf, (size_t)n, &first, NULL), 1);
	assert_int_equal(rpc_unpack(buf, first, &msg), 0);
	assert_string_equal(msg.method, "one");
	assert_int_equal(rpc_u64(msg.params, "a", 0), 1);
	rpc_done(&msg);
	memset(&scan, 0, sizeof(scan));
	assert_int_equal(rpc_scan(&scan, buf + first, (size_t)n - first, &len,
			     NULL),
	    1);
	assert_int_equal(first + len, n);
}

static void
answers_are_found_among_events_that_stay(void **state)
{
	struct pair *p = *state;
	struct rpc_message msg;

	send_event(p->far, "e1");
	send_answer(p->far, 2, "second");
	send_event(p->far, "e2");
	send_answer(p->far, 1, "first");
	assert_int_equal(rpc_client_wait(p->client, 1, 1000, &msg), 0);
	assert_string_equal(rpc_str(msg.result, "word"), "first");
	rpc_done(&msg);
	assert_int_equal(rpc_client_next(p->client, &msg), 1);
	assert_string_equal(rpc_str(msg.params, "word"), "e1");
	rpc_done(&msg);
	assert_int_equal(rpc_client_wait(p->client, 2, 1000, &msg), 0);
	rpc_done(&msg);
	assert_int_equal(rpc_client_next(p->client, &msg), 1);
	assert_string_equal(rpc_str(msg.params, "word"), "e2");
	rpc_done(&msg);
	assert_int_equal(rpc_client_next(p->client, &msg), 0);
}

static void
messages_may_come_byte_by_byte(void **state)
{
	struct pair *p = *state;
	struct rpc_message msg;
	struct rpc_out out;

	rpc_out_init(&out);
	rpc_begin_result(&out, 1);
	rpc_add_str(&out, "word", "slow");
	assert_int_equal(rpc_end_message(&out), 0);
	for (size_t i = 0; i < out.len; i++) {
		assert_int_equal(rpc_client_next(p->client, &msg), 0);
		assert_int_equal(send(p->far, out.data + i, 1, 0), 1);
		assert_int_equal(rpc_client_read(p->client), 0);
	}
	rpc_out_done(&out);
	assert_int_equal(rpc_client_wait(p->client, 1, 1000, &msg), 0);
	assert_string_equal(rpc_str(msg.result, "word"), "slow");
	rpc_done(&msg);
}

static void
a_broken_message_ends_it(void **state)
{
	static const char *const broken[] = { "\xc1", "\x01",
		"\xdd\xff\xff\xff\xff", "\x93\x01\x01\x01" };
	struct pair *p = *state;
	struct rpc_message msg;

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		assert_int_equal(send(p->far, broken[i], strlen(broken[i]), 0),
		    strlen(broken[i]));
		assert_int_equal(rpc_client_wait(p->client, 9, 1000, &msg),
		    -EPROTO);
		(void)tear_down(state);
		(void)set_up(state);
		p = *state;
	}
}

static void
silence_and_the_end_are_told(void **state)
{
	struct pair *p = *state;
	struct rpc_message msg;

	assert_int_equal(rpc_client_wait(p->client, 1, 20, &msg), -ETIMEDOUT);
	send_answer(p->far, 1, "last");
	(void)close(p->far);
	p->far = -1;
	assert_int_equal(rpc_client_wait(p->client, 1, 1000, &msg), 0);
	rpc_done(&msg);
	assert_int_equal(rpc_client_wait(p->client, 2, 1000, &msg), -EPIPE);
}

static void
more_descriptors_than_may_wait_end_it(void **state)
{
	struct pair *p = *state;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 4)];
	} control;
	char byte = '\x94';
	struct iovec iov = { &byte, 1 };
	struct msghdr mh = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_LEN(sizeof(int) * 4) };
	const int fds[4] = { 0, 0, 0, 0 };

	memset(&control, 0, sizeof(control));
	CMSG_FIRSTHDR(&mh)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&mh)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&mh)->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), fds, sizeof(fds));
	assert_int_equal(sendmsg(p->far, &mh, 0), 1);
	assert_int_equal(rpc_client_read(p->client), -EPROTO);
}

/* ---------------------------------------------------------------- lines */

struct fields {
	const char *target;
	const char *rule;
	const char *reason;
	const char *remedy;
	uint64_t count;
};

static void
make(const struct fields *f, struct rpc_out *ret_out, struct rpc_message *ret)
{
	struct rpc_out out;

	rpc_out_init(&out);
	rpc_begin_notify(&out, "event");
	rpc_add_str(&out, "action", "network-outbound");
	rpc_add_str(&out, "target", f->target);
	rpc_add_text(&out, "rule", f->rule);
	rpc_add_text(&out, "reason", f->reason);
	rpc_add_text(&out, "remedy", f->remedy);
	rpc_add_u64(&out, "count", f->count);
	assert_int_equal(rpc_end_message(&out), 0);
	assert_int_equal(rpc_unpack(out.data, out.len, ret), 0);
	*ret_out = out;
}

static void
add(struct denied *d, const struct fields *f)
{
	struct rpc_out out;
	struct rpc_message msg;

	make(f, &out, &msg);
	denied_add(d, msg.params);
	rpc_done(&msg);
	rpc_out_done(&out);
}

/* SPEC L10. */
static void
a_violation_has_a_summary_line(void **state)
{
	static const struct {
		struct fields fields;
		const char *want;
	} rows[] = {
		{ { "a.example", "the list", "r", "--allow a.example", 1 },
		    "[sandbox] denied network-outbound on a.example (the list; "
		    "allow with: --allow a.example)\n" },
		{ { "b.example", NULL, "host_denied", NULL, 3 },
		    "[sandbox] denied network-outbound on b.example "
		    "(host_denied) (3 times)\n" },
		{ { "x\x1b[2J", NULL, NULL, NULL, 1 },
		    "[sandbox] denied network-outbound on x\\x1b[2J\n" },
	};
	struct rpc_message msg;
	struct rpc_out out;
	char *text = NULL;
	size_t len = 0;
	FILE *f;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make(&rows[i].fields, &out, &msg);
		f = open_memstream(&text, &len);
		assert_non_null(f);
		denied_summary(msg.params, f);
		assert_int_equal(fclose(f), 0);
		assert_string_equal(text, rows[i].want);
		free(text);
		rpc_done(&msg);
		rpc_out_done(&out);
	}
}

static void
equal_refusals_are_one_line(void **state)
{
	static const struct fields rows[] = {
		{ "a.example", "the list", "r", "--allow a.example", 1 },
		{ "b.example", NULL, "host_denied", NULL, 1 },
		{ "a.example", "the list", "r", "--allow a.example", 2 },
		{ "x\x1b[2J", "y\n", NULL, NULL, 1 },
	};
	static const char want[] =
	    "stockade: denied network-outbound a.example (the list); allow "
	    "with --allow a.example (3 times)\n"
	    "stockade: denied network-outbound b.example (host_denied)\n"
	    "stockade: denied network-outbound x\\x1b[2J (y\\x0a)\n";
	static struct denied d;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add(&d, &rows[i]);
	denied_print(&d, "stockade: ", f);
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text, want);
	free(text);
	denied_done(&d);
}

static void
a_flood_of_refusals_is_counted(void **state)
{
	static struct denied d;
	char name[32];

	(void)state;
	for (unsigned i = 0; i < DENIED_MAX + 10; i++) {
		struct fields f = { name, "r", NULL, NULL, 1 };

		(void)snprintf(name, sizeof(name), "h%u.example", i);
		add(&d, &f);
	}
	assert_int_equal(d.n, DENIED_MAX);
	assert_int_equal(d.more, 10);
	denied_done(&d);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    requests_go_out_together_with_their_descriptors, set_up,
		    tear_down),
		cmocka_unit_test_setup_teardown(
		    answers_are_found_among_events_that_stay, set_up,
		    tear_down),
		cmocka_unit_test_setup_teardown(messages_may_come_byte_by_byte,
		    set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_broken_message_ends_it,
		    set_up, tear_down),
		cmocka_unit_test_setup_teardown(silence_and_the_end_are_told,
		    set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    more_descriptors_than_may_wait_end_it, set_up, tear_down),
		cmocka_unit_test(a_violation_has_a_summary_line),
		cmocka_unit_test(equal_refusals_are_one_line),
		cmocka_unit_test(a_flood_of_refusals_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
