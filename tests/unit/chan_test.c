/*
 * The rules of a channel, kept against a far end that breaks each of them.
 */
#include <sys/socket.h>
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
#include <event2/event.h>

#include <cmocka.h>

#include "common/chan.h"
#include "common/cleanup.h"

struct rig {
	struct event_base *base;
	struct chan *chan;
	int far;
	size_t packets;
	size_t fds;
	size_t last_len;
	int ends;
	enum chan_end why;
	bool free_in_packet;
};

static void
on_packet(void *ctx, const uint8_t *data, size_t len, int *fds, size_t nfds)
{
	struct rig *rig = ctx;

	(void)data;
	rig->packets++;
	rig->fds += nfds;
	rig->last_len = len;
	for (size_t i = 0; i < nfds; i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
	close_all(fds, nfds);
	if (rig->free_in_packet) {
		chan_free(rig->chan);
		rig->chan = NULL;
	}
}

static void
on_end(void *ctx, enum chan_end why)
{
	struct rig *rig = ctx;

	rig->ends++;
	rig->why = why;
	chan_free(rig->chan);
	rig->chan = NULL;
}

static const struct chan_ops ops = { on_packet, on_end };

static int
setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			     pair),
	    0);
	rig->base = event_base_new();
	rig->chan = chan_new(rig->base, pair[0], &ops, rig);
	rig->far = pair[1];
	assert_non_null(rig->chan);
	*state = rig;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *rig = *state;

	chan_free(rig->chan);
	if (rig->far >= 0)
		(void)close(rig->far);
	event_base_free(rig->base);
	free(rig);
	return 0;
}

static void
turn(struct rig *rig)
{
	for (int i = 0; i < 4; i++)
		(void)event_base_loop(rig->base, EVLOOP_NONBLOCK);
}

static size_t
open_fds(void)
{
	size_t n = 0;

	for (int i = 0; i < 256; i++)
		n += fcntl(i, F_GETFD) >= 0;
	return n;
}

static void
packets_and_descriptors_arrive_whole(void **state)
{
	struct rig *rig = *state;
	int fds[2] = { 0, 1 };
	static uint8_t big[CHAN_PACKET_MAX];

	assert_int_equal(chan_send_fd(rig->far, "abc", 3, fds, 2), 0);
	assert_int_equal(chan_send_fd(rig->far, big, sizeof(big), NULL, 0), 0);
	turn(rig);
	assert_int_equal(rig->packets, 2);
	assert_int_equal(rig->fds, 2);
	assert_int_equal(rig->last_len, sizeof(big));
	assert_int_equal(rig->ends, 0);
}

/* Sends `len` bytes and `nfds` copies of descriptor 0 past our own checks. */
static void
send_raw(int fd, size_t len, size_t nfds)
{
	static uint8_t bytes[CHAN_PACKET_MAX + 64];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 32)];
	} control;
	struct iovec iov = { bytes, len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	memset(&control, 0, sizeof(control));
	if (nfds > 0) {
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_LEN(sizeof(int) * nfds);
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
	}
	assert_int_equal(sendmsg(fd, &mh, 0), (ssize_t)len);
}

static void
a_packet_too_long_ends_the_channel(void **state)
{
	struct rig *rig = *state;

	send_raw(rig->far, CHAN_PACKET_MAX + 1, 0);
	turn(rig);
	assert_int_equal(rig->packets, 0);
	assert_int_equal(rig->ends, 1);
	assert_int_equal(rig->why, CHAN_END_RULES);
}

static void
one_descriptor_too_many_ends_the_channel_and_none_leaks(void **state)
{
	struct rig *rig = *state;
	size_t before = open_fds();

	send_raw(rig->far, 4, CHAN_FDS_MAX + 1);
	turn(rig);
	assert_int_equal(rig->packets, 0);
	assert_int_equal(rig->ends, 1);
	assert_int_equal(rig->why, CHAN_END_RULES);
	/* The channel's own end is closed now. */
	assert_int_equal(open_fds(), before - 1);
}

/* The twin: with room for padding, as CMSG_SPACE gives it, a receiver of one
 * descriptor gets two. */
static void
twin_cmsg_space_lets_a_second_descriptor_in(void **state)
{
	struct rig *rig = *state;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char byte[8];
	struct iovec iov = { byte, sizeof(byte) };
	struct msghdr mh = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	struct cmsghdr *cm;
	int fds[2];

	chan_pause(rig->chan, true);
	send_raw(rig->far, 4, 2);
	assert_int_equal(recvmsg(chan_fd(rig->chan), &mh, 0), 4);
	cm = CMSG_FIRSTHDR(&mh);
	if (cm == NULL) {
		fail();
		return;
	}
	assert_int_equal(cm->cmsg_len, CMSG_LEN(sizeof(int) * 2));
	memcpy(fds, CMSG_DATA(cm), sizeof(fds));
	close_all(fds, 2);
}

static void
an_empty_packet_ends_the_channel(void **state)
{
	struct rig *rig = *state;
	size_t before = open_fds();

	send_raw(rig->far, 0, 1);
	turn(rig);
	assert_int_equal(rig->ends, 1);
	assert_int_equal(rig->why, CHAN_END_EOF);
	assert_int_equal(open_fds(), before - 1);
}

static void
what_was_sent_before_the_close_is_read(void **state)
{
	struct rig *rig = *state;
	int none = 0;

	/* Unread bytes at the far end make the kernel tell ECONNRESET. */
	assert_int_equal(chan_send(rig->chan, "x", 1, &none, 0), 0);
	assert_int_equal(chan_send_fd(rig->far, "last", 4, NULL, 0), 0);
	(void)close(rig->far);
	rig->far = -1;
	assert_int_equal(chan_send(rig->chan, "y", 1, &none, 0), -EPIPE);
	turn(rig);
	assert_int_equal(rig->packets, 1);
	assert_int_equal(rig->ends, 1);
	assert_int_equal(rig->why, CHAN_END_EOF);
}

static void
what_was_sent_before_the_close_is_read_without_a_loop(void **state)
{
	int pair[2], fds[CHAN_FDS_MAX];
	size_t nfds = 0;
	char buf[16];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			     pair),
	    0);
	assert_int_equal(chan_send_fd(pair[1], "last", 4, NULL, 0), 0);
	assert_int_equal(chan_send_fd(pair[0], "unread", 6, NULL, 0), 0);
	(void)close(pair[1]);
	assert_int_equal(chan_recv_fd(pair[0], buf, sizeof(buf), fds, &nfds),
	    4);
	assert_memory_equal(buf, "last", 4);
	assert_int_equal(chan_recv_fd(pair[0], buf, sizeof(buf), fds, &nfds),
	    0);
	(void)close(pair[0]);
}

static void
a_peer_that_does_not_read_is_bounded(void **state)
{
	struct rig *rig = *state;
	static uint8_t data[1024];
	size_t before = open_fds();
	size_t sent = 0;
	int r = 0;

	while (r == 0) {
		int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

		r = chan_send(rig->chan, data, sizeof(data), &fd,
		    fd < 0 ? 0 : 1);
		sent++;
		assert_true(sent < 2 * CHAN_QUEUE_BYTES / sizeof(data));
	}
	assert_int_equal(r, -ENOBUFS);
	assert_int_equal(rig->ends, 0); /* never from inside chan_send */
	turn(rig);
	assert_int_equal(rig->ends, 1);
	assert_int_equal(rig->why, CHAN_END_QUEUE);
	assert_int_equal(open_fds(), before - 1);
}

static void
the_queue_keeps_the_order(void **state)
{
	struct rig *rig = *state;
	uint32_t want = 0, got;
	int none = 0;

	for (uint32_t i = 0; i < 2000; i++)
		assert_int_equal(chan_send(rig->chan, &i, sizeof(i), &none, 0),
		    0);
	assert_true(chan_pending(rig->chan) > 0);
	(void)fcntl(rig->far, F_SETFL, O_NONBLOCK);
	while (want < 2000) {
		ssize_t n = recv(rig->far, &got, sizeof(got), 0);

		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			turn(rig);
			continue;
		}
		assert_int_equal(got, want++);
	}
	turn(rig);
	assert_int_equal(chan_pending(rig->chan), 0);
}

static void
it_may_be_freed_while_a_packet_is_handled(void **state)
{
	struct rig *rig = *state;

	rig->free_in_packet = true;
	assert_int_equal(chan_send_fd(rig->far, "a", 1, NULL, 0), 0);
	assert_int_equal(chan_send_fd(rig->far, "b", 1, NULL, 0), 0);
	turn(rig);
	assert_int_equal(rig->packets, 1);
	assert_int_equal(rig->ends, 0);
}

static void
a_paused_channel_reads_later(void **state)
{
	struct rig *rig = *state;

	chan_pause(rig->chan, true);
	assert_int_equal(chan_send_fd(rig->far, "a", 1, NULL, 0), 0);
	turn(rig);
	assert_int_equal(rig->packets, 0);
	chan_pause(rig->chan, false);
	turn(rig);
	assert_int_equal(rig->packets, 1);
}

static void
a_stream_socket_is_refused(void **state)
{
	struct rig *rig = *state;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_null(chan_new(rig->base, pair[0], &ops, rig));
	assert_int_equal(fcntl(pair[0], F_GETFD), -1);
	(void)close(pair[1]);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(packets_and_descriptors_arrive_whole),
		T(a_packet_too_long_ends_the_channel),
		T(one_descriptor_too_many_ends_the_channel_and_none_leaks),
		T(twin_cmsg_space_lets_a_second_descriptor_in),
		T(an_empty_packet_ends_the_channel),
		T(what_was_sent_before_the_close_is_read),
		cmocka_unit_test(
		    what_was_sent_before_the_close_is_read_without_a_loop),
		T(a_peer_that_does_not_read_is_bounded),
		T(the_queue_keeps_the_order),
		T(it_may_be_freed_while_a_packet_is_handled),
		T(a_paused_channel_reads_later),
		T(a_stream_socket_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
