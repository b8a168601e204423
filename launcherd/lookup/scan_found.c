/*
 * What the parts of the scan share: findings and their texts, the budget of
 * work, and paths that trees and git's files name. See scan_private.h.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "launcherd/lookup/scan_private.h"

/* Between looks at the clock. */
#define STEPS_PER_LOOK 256u

/* --- keeping ------------------------------------------------------------ */

const char *
scan_keep(struct scan *s, const char *text)
{
	size_t len = strlen(text) + 1;
	char *p = s->text + s->text_len;

	if (s->text_size - s->text_len < len) {
		s->results->stopped |= LOOKUP_STOP_FOUND;
		return NULL;
	}
	s->text_len += len;
	return memcpy(p, text, len);
}

static void
found(struct scan *s, enum lookup_what what, const char *path,
    enum lookup_kind kind, size_t item, const char *source)
{
	struct lookup_results *res = s->results;
	const char *kept = NULL;

	if (res->nfound < LOOKUP_FOUND_MAX && path_is_clean(path))
		kept = scan_keep(s, path);
	if (kept == NULL) {
		res->stopped |= LOOKUP_STOP_FOUND;
		res->dropped++;
		return;
	}
	res->found[res->nfound++] =
	    (struct lookup_found){ what, kept, kind, item, source };
}

void
scan_found(struct scan *s, enum lookup_what what, const char *path,
    enum lookup_kind kind)
{
	found(s, what, path, kind, LOOKUP_NO_ITEM, "");
}

void
scan_found_link(struct scan *s, const char *path, enum lookup_kind kind,
    const struct scan_link *link)
{
	found(s, LOOKUP_LINK, path, kind, link->item, link->path);
}

uint64_t
scan_now_ms(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool
scan_step(struct scan *s)
{
	if (!s->out_of_time && s->ticks++ % STEPS_PER_LOOK == 0 &&
	    scan_now_ms() > s->end_ms) {
		s->out_of_time = true;
		s->results->stopped |= LOOKUP_STOP_TIME;
	}
	return !s->out_of_time;
}

bool
scan_step_entry(struct scan *s)
{
	if (s->left == 0) {
		s->results->stopped |= LOOKUP_STOP_ENTRIES;
		return false;
	}
	s->left--;
	s->results->entries++;
	return scan_step(s);
}

bool
scan_in_roots(const struct scan *s, const char *path)
{
	for (size_t i = 0; i < s->nroots; i++)
		if (path_is_within(path, s->roots[i].path))
			return true;
	return false;
}

/* --- paths -------------------------------------------------------------- */

/* As it is spelled, links not followed. False: it has no clean form. */
static bool
clean_path(const char *path, char ret[SCAN_PATH_MAX + 1])
{
	size_t len = 0;

	if (*path != '/')
		return false;
	for (;;) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 0)
			break;
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (len > 0 && ret[--len] != '/')
				;
		} else if (n != 1 || path[0] != '.') {
			if (len + 1 + n > SCAN_PATH_MAX)
				return false;
			ret[len++] = '/';
			memcpy(ret + len, path, n);
			len += n;
		}
		path += n;
	}
	if (len == 0)
		ret[len++] = '/';
	ret[len] = '\0';
	return true;
}

/* One component more. False: too long. */
static bool
append(char path[SCAN_PATH_MAX + 1], const char *name, size_t len)
{
	size_t have = strlen(path);

	if (have + 1 + len > SCAN_PATH_MAX)
		return false;
	path[have] = '/';
	memcpy(path + have + 1, name, len);
	path[have + 1 + len] = '\0';
	return true;
}

/* If path is a link, its text before what is left of the whole. -ENAMETOOLONG
 * when that does not fit, -EINVAL when it is none. */
static int
follow(const char *path, const char *left, char ret[2 * SCAN_PATH_MAX + 2])
{
	char text[SCAN_PATH_MAX + 1];
	ssize_t len = readlink(path, text, sizeof(text));

	if (len <= 0)
		return -EINVAL;
	if ((size_t)len == sizeof(text) || strlen(left) > SCAN_PATH_MAX)
		return -ENAMETOOLONG;
	memmove(ret + len, left, strlen(left) + 1);
	memcpy(ret, text, (size_t)len);
	return 0;
}

/* See scan_absent; s, if there is one, is told of each link on the way. */
static bool
walk(struct scan *s, const char *path, char ret[SCAN_PATH_MAX + 1])
{
	char left[2 * SCAN_PATH_MAX + 2];
	const char *at = left;
	unsigned links = 0;

	if (*path != '/' || strlen(path) > SCAN_PATH_MAX)
		return false;
	memcpy(left, path, strlen(path) + 1);
	ret[0] = '\0';
	for (;;) {
		size_t have = strlen(ret), n;
		int r;

		at += strspn(at, "/");
		n = strcspn(at, "/");
		if (n == 0)
			break;
		if (n == 2 && at[0] == '.' && at[1] == '.') {
			while (have > 0 && ret[--have] != '/')
				;
			ret[have] = '\0';
		} else if (n != 1 || *at != '.') {
			if (!append(ret, at, n))
				return false;
			r = follow(ret, at + n, left);
			if (r == -ENAMETOOLONG ||
			    (r == 0 && ++links > SCAN_LINKS_MAX))
				return false;
			if (r == 0) {
				if (s != NULL)
					scan_found(s, LOOKUP_TARGET, ret,
					    LOOKUP_NONE);
				ret[*left == '/' ? 0 : have] = '\0';
				at = left;
				continue;
			}
		}
		at += n;
	}
	if (ret[0] == '\0')
		memcpy(ret, "/", 2);
	return true;
}

bool
scan_absent(const char *path, char ret[SCAN_PATH_MAX + 1])
{
	return walk(NULL, path, ret);
}

void
scan_way(struct scan *s, const char *path)
{
	char end[SCAN_PATH_MAX + 1];

	(void)walk(s, path, end);
}

int
scan_resolve(const char *path, char ret[SCAN_PATH_MAX + 1],
    enum lookup_kind *ret_kind)
{
	autoclose int fd = path_open(path, O_PATH);
	struct stat st;
	int r;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP) {
		*ret_kind = LOOKUP_NONE;
		return scan_absent(path, ret) || clean_path(path, ret) ? 0 : fd;
	}
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = path_of_fd(fd, ret, SCAN_PATH_MAX + 1);
	if (r == 0)
		*ret_kind = lookup_kind_of(st.st_mode);
	return r;
}

void
scan_target(struct scan *s, const char *path)
{
	char resolved[SCAN_PATH_MAX + 1];
	enum lookup_kind kind;

	/* What the user cannot look at, the run cannot write. */
	if (scan_resolve(path, resolved, &kind) == 0)
		scan_found(s, LOOKUP_TARGET, resolved, kind);
	scan_way(s, path);
}
