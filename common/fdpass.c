/* See fdpass.h. Used by every process that has a channel. */
#include "common/fdpass.h"

#include <string.h>
#include <unistd.h>

void
fdpass_put(struct msghdr *mh, void *buffer, const int *fds, size_t n)
{
	struct cmsghdr *cm;

	if (n == 0)
		return;
	memset(buffer, 0, CMSG_SPACE(sizeof(int) * n));
	mh->msg_control = buffer;
	mh->msg_controllen = CMSG_LEN(sizeof(int) * n);
	cm = CMSG_FIRSTHDR(mh);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(cm), fds, sizeof(int) * n);
}

bool
fdpass_take(struct msghdr *mh, int *fds, size_t max, size_t *n)
{
	bool ok = (mh->msg_flags & MSG_CTRUNC) == 0;
	struct cmsghdr *cm;

	for (cm = CMSG_FIRSTHDR(mh); cm != NULL; cm = CMSG_NXTHDR(mh, cm)) {
		size_t count;

		if (cm->cmsg_level != SOL_SOCKET ||
		    cm->cmsg_type != SCM_RIGHTS) {
			ok = false;
			continue;
		}
		count = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cm) + i * sizeof(int),
			    sizeof(fd));
			if (*n < max) {
				fds[(*n)++] = fd;
			} else {
				(void)close(fd);
				ok = false;
			}
		}
	}
	return ok;
}
