/*
 * Who is connected. Control hands up each connection that it accepted; the
 * kernel tells whose it is, and control gets a number for it. The number is
 * never given out again, so that a late message cannot reach the next owner.
 */
#ifndef SUPERVISOR_CLIENTS_H
#define SUPERVISOR_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* More than control accepts (SPEC AB, 256): a control that is taken over
 * cannot eat our memory. */
#define CLIENTS_MAX 4096
#define CLIENTS_BUCKETS 64

struct sockunix_peer;

struct client {
	LIST_ENTRY(client) next;
	uint64_t number;
	uid_t uid;
	bool is_operator;
	size_t ngroups;
	gid_t *groups; /* supplementary, less the two service groups */
};

struct clients {
	uint64_t last;
	size_t count;
	LIST_HEAD(client_bucket, client) buckets[CLIENTS_BUCKETS];
};

/* The groups of conf_service. */
struct client_gids {
	gid_t client;
	gid_t admin;
};

void clients_init(struct clients *);
void clients_done(struct clients *);

/*
 * Asks the kernel about the connection `fd` (borrowed) and enters its owner.
 * `local` is the name that our listening socket is bound to: a socket that was
 * not accepted from it is refused, because the peer of a connection that
 * control itself made to somebody else's socket is that somebody, root for
 * instance. Returns 0 and the entry, which the table owns; -EPERM: refused,
 * *ret_uid is set when the kernel told one; -ENOSPC, -ENOMEM.
 */
int clients_add(struct clients *, int fd, const char *local,
    const struct client_gids *, struct client **ret, uid_t *ret_uid);

/* The same without the kernel: may this peer connect, and in which role? */
bool clients_judge(const struct sockunix_peer *, const struct client_gids *,
    bool *ret_operator);

struct client *clients_find(struct clients *, uint64_t number);
void clients_remove(struct clients *, struct client *);
/* All of them: their control is gone. Numbers go on from where they were. */
void clients_clear(struct clients *);

/* May this client start a run as `uid`, or touch what `uid` owns? */
bool client_may_be(const struct client *, uid_t uid);

#endif
