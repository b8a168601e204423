/*
 * launcherd: finds our own control groups from the kernel's texts. Pure.
 */
#include "launcherd/cgroup_layout.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "launcherd/mountinfo.h"

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
		const char *second = first == NULL ?
		    NULL :
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

/*
 * The directory at which our cgroup `path` is seen through a mount whose root
 * is `root`: only what lies below that root is visible. A cgroup namespace
 * shows itself as "/", a mount made outside as "/.." and more: not ours.
 */
static bool
place_of(const struct mountinfo *mount, const char *path, size_t len, char *out,
    size_t size)
{
	size_t rlen = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);
	int n;

	if (len < rlen || memcmp(path, mount->root, rlen) != 0 ||
	    (len > rlen && path[rlen] != '/') ||
	    memmem(path, len, "/..", 3) != NULL)
		return false;
	path += rlen;
	len -= rlen;
	if (len == 1) /* "/" */
		len = 0;
	n = snprintf(out, size, "%s%.*s", mount->point, (int)len, path);
	return n > 0 && (size_t)n < size;
}

static void
take_mount(const struct mountinfo *mount, const char *self,
    struct cgroup_layout *ret)
{
	const char *path = NULL;
	size_t len;

	if (strcmp(mount->type, "cgroup2") == 0 && ret->unified[0] == '\0') {
		len = self_path(self, "", &path);
		if (len > 0 &&
		    place_of(mount, path, len, ret->unified,
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
		if (ret->legacy[i][0] != '\0' ||
		    !list_has(mount->options, mount->options_len,
			controller_names[i]))
			continue;
		len = self_path(self, controller_names[i], &path);
		if (len == 0 ||
		    !place_of(mount, path, len, ret->legacy[i],
			sizeof(ret->legacy[i])))
			ret->legacy[i][0] = '\0';
	}
}

int
cgroup_layout_parse(const char *mountinfo, const char *self,
    struct cgroup_layout *ret)
{
	struct mountinfo mount;

	memset(ret, 0, sizeof(*ret));
	for (const char *line = mountinfo; *line != '\0';) {
		size_t len = strcspn(line, "\n");

		if (mountinfo_read(line, len, &mount))
			take_mount(&mount, self, ret);
		line += len + (line[len] == '\n');
	}
	return ret->unified[0] == '\0' ? -ENOENT : 0;
}
