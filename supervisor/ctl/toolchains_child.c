/*
 * The search as the run's user, and its result in bytes; see
 * toolchains_child.h.
 *
 * Privileged operation: root's stockadectl walks directories that a user chose
 * (his PATH). Done as root, it would tell the user of names in directories that
 * he may not read, and could be led by links. So the child becomes the user
 * first, verifies that there is no way back, and only then looks. The user
 * cannot reach into it: the change of ids makes it non-dumpable. A file system
 * of his that hangs holds up the child only, which is then killed.
 */
#include "supervisor/ctl/toolchains_child.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "common/size.h"
#include "supervisor/ctl/toolchains.h"

enum { KIND_MOUNT = 1, KIND_SKIPPED, KIND_END };

#define HEAD 4

_Static_assert(TOOLCHAINS_MAX + TOOLCHAINS_SKIPPED_MAX == 72,
    "TOOLCHAINS_BYTES_MAX has room for so many");

/* ------------------------------------------------ bytes */

static bool
put_record(uint8_t *out, size_t size, size_t *len, unsigned kind, unsigned word,
    const void *path, size_t n)
{
	if (n > 4095 || size - *len < HEAD + n)
		return false;
	out[*len] = (uint8_t)kind;
	out[*len + 1] = (uint8_t)word;
	out[*len + 2] = (uint8_t)(n >> 8);
	out[*len + 3] = (uint8_t)n;
	memcpy(out + *len + HEAD, path, n);
	*len += HEAD + n;
	return true;
}

static unsigned
word_index(const char *word)
{
	const char *w;

	for (unsigned i = 0; (w = toolchains_word(i)) != NULL; i++)
		if (strcmp(w, word) == 0)
			return i;
	return UINT8_MAX;
}

size_t
toolchains_encode(const struct toolchains *t, uint8_t *ret, size_t size)
{
	uint8_t more[4];
	size_t len = 0;

	for (size_t i = 0; i < t->n; i++)
		if (!put_record(ret, size, &len, KIND_MOUNT,
			word_index(t->mounts[i].rule), t->mounts[i].path,
			strlen(t->mounts[i].path)))
			return 0;
	for (size_t i = 0; i < t->nskipped; i++)
		if (!put_record(ret, size, &len, KIND_SKIPPED,
			word_index(t->skipped[i].why), t->skipped[i].path,
			strlen(t->skipped[i].path)))
			return 0;
	for (size_t i = 0; i < sizeof(more); i++)
		more[i] = (uint8_t)(t->more_skipped >> (8 * (3 - i)));
	return put_record(ret, size, &len, KIND_END, 0, more, sizeof(more)) ?
	    len :
	    0;
}

static int
take_path(struct toolchains *t, unsigned kind, unsigned index,
    const uint8_t *data, size_t n)
{
	const char *word = toolchains_word(index);
	size_t before = t->nskipped;
	char path[4096];
	int error;

	/* A word that is in the list twice has its first number. */
	if (word == NULL || word_index(word) != index || n == 0 ||
	    n >= sizeof(path) || memchr(data, '\0', n) != NULL)
		return -EPROTO;
	memcpy(path, data, n);
	path[n] = '\0';
	if (kind == KIND_MOUNT) {
		if (t->n == TOOLCHAINS_MAX || before > 0 ||
		    !path_is_clean(path))
			return -EPROTO;
		return toolchains_add_mount(t, path, word);
	}
	if (kind != KIND_SKIPPED || before == TOOLCHAINS_SKIPPED_MAX)
		return -EPROTO;
	error = toolchains_add_skipped(t, path, word);
	return error != 0 ? error : t->nskipped > before ? 0 : -EPROTO;
}

static int
decode(const uint8_t *data, size_t len, struct toolchains *t)
{
	size_t at = 0;
	int error;

	while (len - at >= HEAD) {
		const uint8_t *p = data + at;
		size_t n = (size_t)p[2] << 8 | p[3];

		if (len - at - HEAD < n)
			return -EPROTO;
		at += HEAD + n;
		if (p[0] == KIND_END) {
			if (n != 4 || p[1] != 0 || at != len)
				return -EPROTO;
			t->more_skipped = (size_t)p[4] << 24 |
			    (size_t)p[5] << 16 | (size_t)p[6] << 8 | p[7];
			return 0;
		}
		error = take_path(t, p[0], p[1], p + HEAD, n);
		if (error != 0)
			return error;
	}
	return -EPROTO;
}

int
toolchains_decode(const uint8_t *data, size_t len, struct toolchains *ret)
{
	int error;

	memset(ret, 0, sizeof(*ret));
	error = decode(data, len, ret);
	if (error != 0)
		toolchains_done(ret);
	return error;
}

/* ------------------------------------------------ the child */

static bool
no_capability(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct sets[2];

	memset(sets, 0, sizeof(sets));
	if (syscall(SYS_capget, &head, sets) < 0)
		return false;
	return (sets[0].effective | sets[0].permitted | sets[1].effective |
		   sets[1].permitted) == 0;
}

static bool
become(const struct toolchains_ids *ids)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;

	if (setgroups(ids->ngroups, ids->groups) < 0 ||
	    setresgid(ids->gid, ids->gid, ids->gid) < 0 ||
	    setresuid(ids->uid, ids->uid, ids->uid) < 0)
		return false;
	if (getresuid(&r, &e, &s) < 0 || r != ids->uid || e != ids->uid ||
	    s != ids->uid || getresgid(&rg, &eg, &sg) < 0 || rg != ids->gid ||
	    eg != ids->gid || sg != ids->gid)
		return false;
	if (setuid(0) == 0 || seteuid(0) == 0 || !no_capability())
		return false;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static bool
write_all(int fd, const uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

/* The first byte is the errno of the search, 0 when the result follows. */
_Noreturn static void
child_main(const struct toolchains_input *in, toolchains_fn *fn, int fd,
    pid_t parent)
{
	struct toolchains found;
	uint8_t status = EPERM;
	uint8_t *bytes;
	size_t len = 0;
	int error;

	memset(&found, 0, sizeof(found));
	if (become(in->ids)) {
		/* After the ids, whose change clears it. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != parent)
			_exit(1);
		error = fn(in, &found);
		bytes = malloc(TOOLCHAINS_BYTES_MAX);
		if (error == 0 && bytes != NULL)
			len = toolchains_encode(&found, bytes,
			    TOOLCHAINS_BYTES_MAX);
		status = (uint8_t)(error != 0 ? -error : len == 0 ? ENOMEM : 0);
		if (write_all(fd, &status, 1) && status == 0)
			(void)write_all(fd, bytes, len);
		_exit(0);
	}
	(void)write_all(fd, &status, 1);
	_exit(1);
}

/* ------------------------------------------------ the parent */

static int64_t
now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Reads up to end of file; the deadline is for all of it. */
static int
read_result(int fd, uint8_t *data, size_t size, size_t *ret_len)
{
	int64_t end = now_ms() + TOOLCHAINS_TIME_MS;
	size_t len = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = end - now_ms();
		ssize_t n;

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)left) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		if (p.revents == 0)
			continue;
		if (len == size)
			return -EPROTO;
		n = read(fd, data + len, size - len);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n == 0) {
			*ret_len = len;
			return 0;
		}
		if (n > 0)
			len += (size_t)n;
	}
}

int
toolchains_child_run(const struct toolchains_input *in, toolchains_fn *fn,
    struct toolchains *ret)
{
	autofree uint8_t *bytes = malloc(TOOLCHAINS_BYTES_MAX + 2);
	autoclose int reading = -1;
	pid_t parent = getpid(), pid;
	size_t len = 0;
	int fds[2], error;

	memset(ret, 0, sizeof(*ret));
	if (bytes == NULL)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	reading = fds[0];
	pid = fork();
	if (pid < 0) {
		error = -errno;
		(void)close(fds[1]);
		return error;
	}
	if (pid == 0)
		child_main(in, fn, fds[1], parent);
	(void)close(fds[1]);
	error = read_result(reading, bytes, TOOLCHAINS_BYTES_MAX + 2, &len);
	/* Ours and not waited for yet, so the number is still its. */
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (error != 0)
		return error;
	if (len == 0)
		return -EPROTO;
	if (bytes[0] != 0)
		return -(int)bytes[0];
	return toolchains_decode(bytes + 1, len - 1, ret);
}
