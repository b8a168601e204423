/*
 * Descriptors beside bytes on a Unix socket (unix(7), SCM_RIGHTS; cmsg(3)),
 * for channels and for the client socket. The far end may be hostile.
 *
 *	FDPASS_BUFFER(4) control;
 *	struct msghdr mh = { ... };
 *	fdpass_put(&mh, &control, fds, n);	before sendmsg(2)
 *
 * Receiving: point msg_control at such a buffer, pass MSG_CMSG_CLOEXEC, and
 * call fdpass_take() after every recvmsg(2) that succeeded, for else the
 * descriptors stay open.
 */
#ifndef COMMON_FDPASS_H
#define COMMON_FDPASS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define FDPASS_BUFFER(n) \
	union { \
		struct cmsghdr align; \
		char bytes[CMSG_SPACE(sizeof(int) * (n))]; \
	}

/* Lets *mh carry the descriptors, which stay the caller's; `buffer` is an
 * FDPASS_BUFFER of at least n and outlives the call of sendmsg(2). */
void fdpass_put(struct msghdr *mh, void *buffer, const int *fds, size_t n);

/*
 * Appends what came to fds, *n of which are in use, up to max; the rest is
 * closed. False when some were closed or cut off (MSG_CTRUNC), or when
 * something else than descriptors came; what was taken is in fds even then.
 */
bool fdpass_take(struct msghdr *mh, int *fds, size_t max, size_t *n);

#endif
