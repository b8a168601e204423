/*
 * The seccomp listener: seccomp_unotify(2), Linux 5.9; WAIT_KILLABLE_RECV 5.19.
 */
#ifndef BROKER_NOTIFY_H
#define BROKER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct request;

/* Asks the kernel for the sizes of its structs; before confinement. 0, -errno,
 * -E2BIG when they are larger than this program has room for. */
int notify_init(void);

/* Where the kernel can (6.6): the caller is woken on the broker's processor. */
void notify_tune(int listener);

/* The next request: fills *ret but for its call, and returns the call's
 * number. -EAGAIN: it went away; -ENOSYS: of another entry point, answered
 * already; other -errno: the run is over. */
int notify_recv(struct broker *, struct request *ret);

/* Whether the caller still waits for this answer: asked after everything was
 * read from it, so what was read was its own and not of a process that has
 * got its number. */
bool notify_valid(const struct broker *, uint64_t id);

/* error: 0 or -errno. */
void
notify_answer(const struct broker *, uint64_t id, int64_t value, int error);
void notify_continue(const struct broker *, uint64_t id);

/*
 * Puts a copy of fd into the caller, closes fd, and only then lets the caller
 * go on: with both at once the broker would still hold a descriptor open for
 * writing when the caller executes the file (ETXTBSY).
 */
void notify_fd(const struct broker *, uint64_t id, int fd, bool cloexec);

#endif
