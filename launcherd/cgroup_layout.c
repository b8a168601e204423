/*
 * launcherd: finds our own control groups from the kernel's texts. Pure.
 */
#include "launcherd/cgroup_layout.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const controller_names[CGROUP_CONTROLLERS] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPU] = "cpu",
};

const char *
cgroup_controller_name(enum cgroup_controller controller)
{
	return controller_names[controller];
}

/* True when the comma-separated list holds the word. */
static bool
list_has(const char *list, size_t len, const char *word)
{
	size_t wlen = strlen(word);

	while (len > 0) {
		const char *comma = memchr(list, ',', len);
		size_t n = comma != NULL ? (size_t)(comma - list) : len;

		if (n == wlen && memcmp(list, word, n) == 0)
			return true;
		if (comma == NULL)
			break;
		len -= n + 1;
		list += n + 1;
	}
	return false;
}

/*
 * The path of our cgroup in a hierarchy: the line "ID:CONTROLLERS:PATH" whose
 * list holds `controller`; "" stands for cgroup2 ("0::PATH"). Returns its
 * length, 0 when there is none.
 */
static size_t
self_path(const char *self, const char *controller, const char **ret)
{
	for (const char *line = self; *line != '\0';) {
		size_t len = strcspn(line, "\n");
		const char *first = memchr(line, ':', len);
		const char *second = first == NULL ? NULL :
		    memchr(first + 1, ':', len - (size_t)(first + 1 - line));

		if (second != NULL) {
			size_t n = (size_t)(second - first - 1);
			bool hit = controller[0] == '\0' ?
			    n == 0 && line[0] == '0' :
			    list_has(first + 1, n, controller);

			if (hit) {
				*ret = second + 1;
				return len - (size_t)(second + 1 - line);
			}
		}
		line += len + (line[len] == '\n');
	}
	return 0;
}

/* One field of mountinfo with its octal escapes undone. */
static bool
unescape(const char *field, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; n++) {
		unsigned value = (unsigned char)field[i];

		if (n + 1 >= size)
			return false;
		if (field[i] == '\\' && len - i >= 4) {
			value = 0;
			for (size_t k = 1; k <= 3; k++) {
				if (field[i + k] < '0' || field[i + k] > '7')
					return false;
				value = value * 8 +
				    (unsigned)(field[i + k] - '0');
			}
			i += 4;
		} else {
			i++;
		}
		if (value == 0 || value > 255)
			return false;
		out[n] = (char)value;
	}
	out[n] = '\0';
	return true;
}

/* A mount as far as it matters here. */
struct mount_line {
	char root[PATH_MAX];
	char point[PATH_MAX];
	char type[32];
	const char *options;	/* of the super block */
	size_t options_len;
};

/*
 * "36 35 98:0 /root /point rw,noatime master:1 - type source options".
 * False for a line that is not of this form; it is skipped, since a mount
 * that we cannot read is a mount that we do not use.
 */
static bool
read_mount(const char *line, size_t len, struct mount_line *ret)
{
	const char *end = line + len;
	const char *fields[5];
	size_t lens[5];
	const char *p = line;
	const char *dash;

	for (size_t i = 0; i < 5; i++) {
		const char *space = memchr(p, ' ', (size_t)(end - p));

		if (space == NULL)
			return false;
		fields[i] = p;
		lens[i] = (size_t)(space - p);
		p = space + 1;
	}
	dash = memmem(p, (size_t)(end - p), " - ", 3);
	if (dash == NULL)
		return false;
	p = dash + 3;
	dash = memchr(p, ' ', (size_t)(end - p));
	if (dash == NULL || (size_t)(dash - p) >= sizeof(ret->type))
		return false;
	memcpy(ret->type, p, (size_t)(dash - p));
	ret->type[dash - p] = '\0';
	p = memchr(dash + 1, ' ', (size_t)(end - dash - 1));
	if (p == NULL)
		return false;
	ret->options = p + 1;
	ret->options_len = (size_t)(end - p - 1);
	return unescape(fields[3], lens[3], ret->root, sizeof(ret->root)) &&
	    unescape(fields[4], lens[4], ret->point, sizeof(ret->point));
}

/*
 * The directory at which our cgroup `path` is seen through a mount whose root
 * is `root`: only what lies below that root is visible. A cgroup namespace
 * shows itself as "/", a mount made outside as "/.." and more: not ours.
 */
static bool
place_of(const struct mount_line *mount, const char *path, size_t len,
    char *out, size_t size)
{
	size_t rlen = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);
	int n;

	if (len < rlen || memcmp(path, mount->root, rlen) != 0 ||
	    (len > rlen && path[rlen] != '/') ||
	    memmem(path, len, "/..", 3) != NULL)
		return false;
	path += rlen;
	len -= rlen;
	if (len == 1)		/* "/" */
		len = 0;
	n = snprintf(out, size, "%s%.*s", mount->point, (int)len, path);
	return n > 0 && (size_t)n < size;
}

static void
take_mount(const struct mount_line *mount, const char *self,
    struct cgroup_layout *ret)
{
	const char *path = NULL;
	size_t len;

	if (strcmp(mount->type, "cgroup2") == 0 && ret->unified[0] == '\0') {
		len = self_path(self, "", &path);
		if (len > 0 && place_of(mount, path, len, ret->unified,
		    sizeof(ret->unified)))
			memcpy(ret->unified_top, mount->point,
			    sizeof(ret->unified_top));
		else
			ret->unified[0] = '\0';
		return;
	}
	if (strcmp(mount->type, "cgroup") != 0)
		return;
	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (ret->legacy[i][0] != '\0' || !list_has(mount->options,
		    mount->options_len, controller_names[i]))
			continue;
		len = self_path(self, controller_names[i], &path);
		if (len == 0 || !place_of(mount, path, len, ret->legacy[i],
		    sizeof(ret->legacy[i])))
			ret->legacy[i][0] = '\0';
	}
}

int
cgroup_layout_parse(const char *mountinfo, const char *self,
    struct cgroup_layout *ret)
{
	struct mount_line mount;

	memset(ret, 0, sizeof(*ret));
	for (const char *line = mountinfo; *line != '\0';) {
		size_t len = strcspn(line, "\n");

		if (read_mount(line, len, &mount))
			take_mount(&mount, self, ret);
		line += len + (line[len] == '\n');
	}
	return ret->unified[0] == '\0' ? -ENOENT : 0;
}
