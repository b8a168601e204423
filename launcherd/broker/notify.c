/* See notify.h. */
#include "launcherd/broker/notify.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <unistd.h>

#include "launcherd/broker/broker.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp architecture known for this machine"
#endif

/* Linux 6.6; not in the headers of the oldest build machine. */
#define NOTIF_SET_FLAGS SECCOMP_IOW(4, uint64_t)
#define SYNC_WAKE_UP 1ul

#define ROOM 512 /* bytes for a kernel's struct that has grown */

static union {
	struct seccomp_notif in;
	uint8_t room[ROOM];
} notif;
static union {
	struct seccomp_notif_resp out;
	uint8_t room[ROOM];
} resp;
static size_t notif_size = sizeof(struct seccomp_notif);

int
notify_init(void)
{
	struct seccomp_notif_sizes sizes;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0u, &sizes) < 0)
		return -errno;
	if (sizes.seccomp_notif > ROOM || sizes.seccomp_notif_resp > ROOM ||
	    sizes.seccomp_data < sizeof(struct seccomp_data))
		return -E2BIG;
	if (sizes.seccomp_notif > notif_size)
		notif_size = sizes.seccomp_notif;
	return 0;
}

void
notify_tune(int listener)
{
	/* Older kernels refuse it, and wake the caller more slowly. */
	(void)ioctl(listener, NOTIF_SET_FLAGS, SYNC_WAKE_UP);
}

int
notify_recv(struct broker *b, struct request *ret)
{
	/* The kernel refuses a buffer that is not zero. */
	memset(&notif, 0, notif_size);
	if (ioctl(b->listener, SECCOMP_IOCTL_NOTIF_RECV, &notif.in) < 0)
		return errno == ENOENT || errno == EINTR ? -EAGAIN : -errno;
	memset(ret, 0, sizeof(*ret));
	ret->fd = -1;
	ret->id = notif.in.id;
	ret->tid = (pid_t)notif.in.pid;
	for (size_t i = 0; i < 6; i++)
		ret->args[i] = notif.in.data.args[i];
	/* The filter lets no other one through; pid 0: not in our namespace. */
	if (notif.in.data.arch != ARCH || notif.in.pid == 0) {
		notify_answer(b, ret->id, 0, -ENOSYS);
		return -ENOSYS;
	}
	return notif.in.data.nr;
}

bool
notify_valid(const struct broker *b, uint64_t id)
{
	return ioctl(b->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static void
send_answer(const struct broker *b)
{
	/* ENOENT: the caller is gone, nobody waits. */
	(void)ioctl(b->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp.out);
}

void
notify_answer(const struct broker *b, uint64_t id, int64_t value, int error)
{
	memset(&resp, 0, sizeof(resp));
	resp.out.id = id;
	resp.out.val = error == 0 ? value : 0;
	resp.out.error = error;
	send_answer(b);
}

void
notify_continue(const struct broker *b, uint64_t id)
{
	memset(&resp, 0, sizeof(resp));
	resp.out.id = id;
	resp.out.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	send_answer(b);
}

void
notify_fd(const struct broker *b, uint64_t id, int fd, bool cloexec)
{
	struct seccomp_notif_addfd add = {
		.id = id,
		.srcfd = (uint32_t)fd,
		.newfd_flags = cloexec ? O_CLOEXEC : 0,
	};
	int number;

	do {
		number = ioctl(b->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	} while (number < 0 && errno == EINTR && notify_valid(b, id));
	if (number < 0) {
		int error = -errno;

		(void)close(fd);
		notify_answer(b, id, 0, error);
		return;
	}
	(void)close(fd);
	notify_answer(b, id, number, 0);
}
