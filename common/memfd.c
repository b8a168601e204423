/*
 * Sealed memfds; see memfd.h. The descriptor comes from another process and
 * may be anything: only the kernel's word on its seals and size counts, and
 * both cannot change any more once WRITE, GROW and SHRINK are sealed.
 */
#include "common/memfd.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>

#include "common/cleanup.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int
write_all(int fd, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int
memfd_seal(const char *name, const void *data, size_t len)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	autoclose int fd = -1;
	int r;

	if (len > MEMFD_SIZE_MAX)
		return -EFBIG;
	fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	if (fd < 0)
		return -errno;
	r = write_all(fd, data, len);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	return take_fd(&fd);
}

ptrdiff_t
memfd_check(int fd, size_t max)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	/* EINVAL: no file that can be sealed. */
	if (seals < 0)
		return errno == EBADF ? -EBADF : -EPERM;
	if ((seals & SEALS) != SEALS)
		return -EPERM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EPERM;
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return -EFBIG;
	return (ptrdiff_t)st.st_size;
}

int
memfd_open_map(int fd, size_t max, struct memfd_map *ret)
{
	ptrdiff_t size = memfd_check(fd, max);
	void *data;

	if (size < 0)
		return (int)size;
	if (size == 0) {
		*ret = (struct memfd_map){ .data = NULL, .len = 0 };
		return 0;
	}
	/* Private, because a shared map of a WRITE-sealed file could be asked
	 * to become writable; the bytes are the same. */
	data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	*ret = (struct memfd_map){ .data = data, .len = (size_t)size };
	return 0;
}

void
memfd_unmap(struct memfd_map *map)
{
	union {
		const uint8_t *in;
		void *out;
	} p = { .in = map->data };

	if (map->data != NULL)
		(void)munmap(p.out, map->len);
	map->data = NULL;
	map->len = 0;
}
