/*
 * Unix stream sockets: listening without a window in which the mode is wrong,
 * and asking the kernel who the peer is (unix(7), SO_PEERCRED, SO_PEERGROUPS).
 */
#ifndef COMMON_SOCKUNIX_H
#define COMMON_SOCKUNIX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Binds and listens: the socket is made with umask 0177 under a temporary
 * name in the same directory, given group and mode, then renamed over `path`;
 * so nobody connects before it is right. A path that is no socket is never
 * replaced (-EEXIST). Returns the descriptor or -errno.
 */
int sockunix_listen(const char *path, gid_t group, mode_t mode, int backlog);

struct sockunix_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	size_t ngroups;
	gid_t *groups; /* owned; supplementary groups of the peer */
};

/* Fills *ret from the kernel. sockunix_peer_done() frees the groups. */
int sockunix_peer_of(int fd, struct sockunix_peer *ret);
void sockunix_peer_done(struct sockunix_peer *);

#endif
