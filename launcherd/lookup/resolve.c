/*
 * See resolve.h. The paths are control's and may be hostile, the file system
 * is the user's and may change while we look. What is answered is what the
 * kernel told about one descriptor: the path is opened once with O_PATH and no
 * magic links, and kind, inode, spelling and access are asked of that
 * descriptor. It is the run's user who asks, so nothing comes out that this
 * user could not find out alone.
 */
#include "launcherd/lookup/resolve.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "launcherd/lookup/scan.h"
#include "protocol/lookup.h"

/* Longest literal: "~/" and the home directory of a message. */
#define LITERAL_MAX 4095

/* Texts of what the scan finds; the rest of the answer is left for items. */
#define SCAN_TEXT_MAX (4u << 20)

/* Strings of the results live here until they are encoded. */
struct arena {
	char *text;
	size_t len;
	size_t size;
};

static const char *
arena_add(struct arena *a, const char *text)
{
	size_t need = strlen(text) + 1;
	char *p;

	if (a->size - a->len < need)
		return NULL;
	p = memcpy(a->text + a->len, text, need);
	a->len += need;
	return p;
}

static uint64_t
now_ms(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int
make_literal(const char *path, const char *home, char *ret, size_t size)
{
	const char *head = "", *tail = path;
	size_t head_len, tail_len;

	if (path[0] == '~' && (path[1] == '/' || path[1] == '\0')) {
		head = home;
		tail = path + 1;
	}
	head_len = strlen(head);
	tail_len = strlen(tail);
	/* A home of "/" would make "//x". */
	if (head_len > 0 && head[head_len - 1] == '/')
		head_len--;
	if (head_len + tail_len >= size)
		return -ENAMETOOLONG;
	memcpy(ret, head, head_len);
	memcpy(ret + head_len, tail, tail_len + 1);
	return ret[0] == '/' ? 0 : -EINVAL;
}

enum lookup_kind
lookup_kind_of(mode_t mode)
{
	if (S_ISDIR(mode))
		return LOOKUP_DIR;
	if (S_ISREG(mode))
		return LOOKUP_FILE;
	return S_ISSOCK(mode) ? LOOKUP_SOCKET : LOOKUP_OTHER;
}

ssize_t
lookup_read(int fd, char *buf, size_t size)
{
	struct stat st;
	size_t len = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	while (len < size) {
		ssize_t n = read(fd, buf + len, size - len);

		if (n < 0)
			return -errno;
		if (n == 0)
			return (ssize_t)len;
		len += (size_t)n;
	}
	return -EFBIG;
}

static bool
may(int fd, int mode)
{
	return syscall(SYS_faccessat2, fd, "", mode,
		   AT_EMPTY_PATH | AT_EACCESS) == 0;
}

/* Fills everything but the literal. Returns 0 or the errno of the look. */
static int
look(const char *literal, char *resolved, size_t size,
    struct lookup_result *ret)
{
	autoclose int fd = path_open(literal, O_PATH);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = path_of_fd(fd, resolved, size);
	if (r < 0)
		return r;
	ret->kind = lookup_kind_of(st.st_mode);
	ret->dev = (uint64_t)st.st_dev;
	ret->ino = (uint64_t)st.st_ino;
	ret->mode = (uint64_t)(st.st_mode & 07777);
	ret->uid = (uint64_t)st.st_uid;
	ret->readable = may(fd, ret->kind == LOOKUP_DIR ? R_OK | X_OK : R_OK);
	ret->writable = may(fd, W_OK);
	return 0;
}

static int
resolve_one(const char *path, const char *home, struct arena *a,
    struct lookup_result *ret)
{
	char made[LITERAL_MAX + 1], resolved[LITERAL_MAX + 1];
	const char *literal = made;
	int r = make_literal(path, home, made, sizeof(made));

	memset(ret, 0, sizeof(*ret));
	ret->kind = LOOKUP_NONE;
	resolved[0] = '\0';
	if (r == 0)
		r = look(literal, resolved, sizeof(resolved), ret);
	else
		literal = path;
	if ((r != -ENOENT && r != -ENOTDIR) || !scan_absent(literal, resolved))
		resolved[r < 0 ? 0 : strlen(resolved)] = '\0';
	ret->error = (uint64_t)-r;
	ret->literal = arena_add(a, literal);
	ret->resolved = arena_add(a, resolved);
	return ret->literal == NULL || ret->resolved == NULL ? -E2BIG : 0;
}

int
resolve_all(const struct lookup_question *question, const char *home,
    uint64_t budget_ms, struct wire_out *out)
{
	autofree struct lookup_results *results = calloc(1, sizeof(*results));
	autofree char *text = malloc(LOOKUP_BYTES_MAX + SCAN_TEXT_MAX);
	struct arena a = { text, 0, LOOKUP_BYTES_MAX };
	uint64_t end = now_ms() + budget_ms;
	struct wire_out seen;
	int r;

	if (results == NULL || text == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < question->nitems; i++) {
		if (now_ms() > end)
			return -ETIMEDOUT;
		r = resolve_one(question->items[i].path, home, &a,
		    &results->results[i]);
		if (r < 0)
			return r;
	}
	results->nresults = question->nitems;
	wire_out_init(&seen);
	r = scan_all(question, home, text + LOOKUP_BYTES_MAX, SCAN_TEXT_MAX,
	    results, &seen);
	if (r == 0) {
		if (!seen.err)
			results->seen =
			    (struct wire_view){ seen.data, seen.len };
		lookup_results_encode(results, out);
	}
	wire_out_done(&seen);
	if (r < 0)
		return r;
	if (out->err)
		return -ENOMEM;
	return out->len > LOOKUP_BYTES_MAX ? -E2BIG : 0;
}
