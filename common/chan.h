/*
 * A channel: one end of a SOCK_SEQPACKET socket pair on a libevent loop.
 * The kernel keeps message boundaries and ties descriptors to their message
 * (unix(7)). This module knows packets and descriptors, no message types;
 * protocol/peer.h puts the types on top.
 *
 * What arrives is hostile until decoded. A packet over CHAN_PACKET_MAX, a
 * truncated one (MSG_TRUNC), one with more than CHAN_FDS_MAX descriptors
 * (MSG_CTRUNC) and a zero-length packet end the channel; descriptors that came
 * with it are closed. Received descriptors are close-on-exec.
 *
 * Sending never blocks: what the socket does not take waits in a queue of at
 * most CHAN_QUEUE_BYTES and CHAN_QUEUE_PACKETS; beyond it the channel ends,
 * since a peer that does not read would otherwise eat our memory.
 */
#ifndef COMMON_CHAN_H
#define COMMON_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct chan;

#define CHAN_PACKET_MAX 65536 /* bytes */
#define CHAN_FDS_MAX 8
#define CHAN_QUEUE_BYTES (4u << 20)
#define CHAN_QUEUE_PACKETS 8192

enum chan_end {
	CHAN_END_EOF, /* the peer closed its end or is gone */
	CHAN_END_RULES, /* a packet broke the rules above */
	CHAN_END_QUEUE, /* the peer does not read */
	CHAN_END_ERROR, /* system error */
};

/*
 * on_packet: `fds` are owned by the callee from this moment (it closes what it
 * does not keep); `data` is valid until it returns. It may call chan_free().
 * on_end: called once, from the loop, never from inside chan_send(); the
 * channel is dead, and the callee frees it.
 */
struct chan_ops {
	void (*on_packet)(void *ctx, const uint8_t *data, size_t len, int *fds,
	    size_t nfds);
	void (*on_end)(void *ctx, enum chan_end why);
};

/*
 * Takes `fd` (also on failure), makes it non-blocking and close-on-exec.
 * Returns NULL when out of memory or when fd is no SEQPACKET socket. Reading
 * starts at once. `base` and `ops` are borrowed and must outlive the channel.
 */
struct chan *chan_new(struct event_base *base, int fd,
    const struct chan_ops *ops, void *ctx);
void chan_free(struct chan *); /* NULL is fine; closes queued fds */

/*
 * Sends one packet. Takes the descriptors in every case (they are closed after
 * sending or on failure); pass duplicates to keep one. Returns 0 (sent or
 * queued), -EMSGSIZE, -ENOBUFS (queue full: on_end follows from the loop),
 * -EPIPE when the channel has ended.
 */
int
chan_send(struct chan *, const void *data, size_t len, int *fds, size_t nfds);

/* Packets still waiting in user space; 0 when the socket took everything. */
size_t chan_pending(const struct chan *);
int chan_fd(const struct chan *);

/* Stops and resumes reading (back-pressure). */
void chan_pause(struct chan *, bool paused);

/*
 * The same rules on a blocking descriptor without a loop, for processes that
 * have none (stockade-init, stockade-lookup, start-up before the loop).
 * chan_recv_fd: returns the length, 0 at end of file, -EPROTO when the packet
 * broke the rules (its descriptors are closed), or -errno. `fds` has room for
 * CHAN_FDS_MAX. These two are in common/chanfd.c, which needs no libevent.
 */
ptrdiff_t
chan_recv_fd(int fd, void *buf, size_t size, int *fds, size_t *ret_nfds);
int
chan_send_fd(int fd, const void *data, size_t len, const int *fds, size_t nfds);

#endif
