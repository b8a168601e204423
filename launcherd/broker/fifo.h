/*
 * Opens that wait for somebody: a named pipe for its reader, a leased file for
 * its holder. The broker must not wait itself, and an interrupted caller never
 * says so: what waits is tried again every few milliseconds, with a question
 * whether the caller is still there. What is held is the thing, never a name.
 */
#ifndef BROKER_FIFO_H
#define BROKER_FIFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct broker;
struct request;

#define FIFOS_MAX 256
#define FIFO_TICK_MS 5

struct fifo {
	uint64_t id;
	int object; /* O_PATH */
	int flags; /* of open(2) */
	bool cloexec;
	int64_t length; /* of truncate(2), which gets no descriptor; or -1 */
};

struct fifos {
	struct fifo rows[FIFOS_MAX];
	size_t n;
};

/* Takes `object` in every case. ANSWER_LATER, or -ENFILE. */
int fifo_wait(struct broker *, const struct request *, int object, int flags);

/* truncate(2) of a pinned regular file; takes *object when it has to wait. 0,
 * -errno or ANSWER_LATER. */
int fifo_truncate(struct broker *, const struct request *, int *object,
    int64_t length);

/* Tries all of them once. While the run freezes: only when no message of
 * launcherd's waits that was sent after the last of them came. */
void fifo_tick(struct broker *);

/*
 * Opens a pinned thing again with `flags`, never waiting: descriptor, or
 * -errno, which is -ENXIO or -EAGAIN when it would have to wait. The flags of
 * the result are those that were asked for.
 */
int fifo_open(const struct broker *, int object, int flags);

/* F_SETFL back to what was asked for, after an open with O_NONBLOCK. */
void fifo_settle(int fd, int flags);

#endif
