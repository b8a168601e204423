/*
 * Toolchains of PATH; see toolchains.h. What is read here (PATH, directories,
 * links) may be written by an agent of an earlier run, so every count has a
 * limit, links are resolved by the kernel without magic links, and the place of
 * what was found is judged by its resolved path. Nothing is opened for more
 * than its names.
 */
#include "supervisor/ctl/toolchains.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "common/size.h"
#include "config.h"
#include "supervisor/ctl/toolchains_child.h"

#define PATH_SIZE 4096
#define PLACES_MAX 4 /* home and opt, each in two spellings */
#define STRINGS_MAX 512

/* Rules and reasons, so that a result can name them by number. */
static const char word_root[] = "install root";
static const char word_dir[] = "directory";
static const char word_link[] = "link target";
static const char word_own[] = "directory of a link target";
static const char word_modules[] = "node_modules";
static const char why_denied[] = "on the read-deny list";
static const char why_holds[] = "holds a path of the read-deny list";
static const char why_whole[] = "the home or /opt as a whole";
static const char why_outside[] = "leads outside the home and /opt";
static const char why_unreadable[] = "the run's user cannot read it";
static const char why_kind[] = "neither a directory nor a file";
static const char why_links[] = "its links cannot be followed";
static const char why_spelling[] = "not a clean path";
static const char why_many[] = "too many toolchains";
static const char why_entries[] = "too many entries";
static const char why_file[] = "a link on PATH leads to a file in it, of which "
			       "only the file is; --mount DIR:ro shows more";

static const struct {
	const char *rule;
	const char *entry;
	unsigned up;
} rows[] = {
#define TOOLCHAIN(rule, entry, up) { rule, entry, up },
#include "supervisor/ctl/toolchains.def"
};

static const struct {
	const char *rule;
	const char *path;
} also[] = {
#define TOOLCHAIN_ALSO(rule, path) { rule, path },
#include "supervisor/ctl/toolchains.def"
};

static const char *const marks[] = {
#define TOOLCHAIN_MARK(name) name,
#include "supervisor/ctl/toolchains.def"
};

static const struct {
	const char *path;
	bool below; /* what lies below it as well */
} shared[] = {
#define TOOLCHAIN_SHARED(path, below) { path, below },
#include "supervisor/ctl/toolchains.def"
};

static const char *const denied[] = {
#define DENY_READ_HOME(path, kind) path,
#include "supervisor/control/deny_paths.def"
};

static const char *const own_dirs[] = { SYSCONFDIR, DEFAULT_RUNTIME_DIR,
	DEFAULT_STATE_DIR, PKGLIBEXECDIR };

struct strings {
	char *items[STRINGS_MAX];
	size_t n;
};

struct search {
	const struct toolchains_input *in;
	struct toolchains *found;
	char *resolved[TOOLCHAINS_MAX]; /* of found->mounts */
	struct strings places; /* home, opt: as spelled and resolved */
	struct strings deny; /* both spellings */
	struct strings given; /* resolved */
	struct strings queue; /* directories of programs, resolved */
	size_t scanned; /* of queue */
	size_t links;
	int err; /* -ENOMEM */
};

const char *
toolchains_word(size_t i)
{
	static const char *const words[] = { word_root, word_dir, word_link,
		word_own, word_modules, why_denied, why_holds, why_whole,
		why_outside, why_unreadable, why_kind, why_links, why_spelling,
		why_many, why_entries, why_file };

	if (i < ARRAY_LEN(words))
		return words[i];
	i -= ARRAY_LEN(words);
	return i < ARRAY_LEN(rows) ? rows[i].rule : NULL;
}

/* ------------------------------------------------ results and lists */

int
toolchains_add_mount(struct toolchains *t, const char *path, const char *rule)
{
	if (t->n == TOOLCHAINS_MAX)
		return toolchains_add_skipped(t, path, why_many);
	t->mounts[t->n].path = strdup(path);
	if (t->mounts[t->n].path == NULL)
		return -ENOMEM;
	t->mounts[t->n++].rule = rule;
	return 0;
}

int
toolchains_add_skipped(struct toolchains *t, const char *path, const char *why)
{
	for (size_t i = 0; i < t->nskipped; i++)
		if (strcmp(t->skipped[i].path, path) == 0)
			return 0;
	if (t->nskipped == TOOLCHAINS_SKIPPED_MAX) {
		t->more_skipped++;
		return 0;
	}
	t->skipped[t->nskipped].path = strdup(path);
	if (t->skipped[t->nskipped].path == NULL)
		return -ENOMEM;
	t->skipped[t->nskipped++].why = why;
	return 0;
}

void
toolchains_done(struct toolchains *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->mounts[i].path);
	for (size_t i = 0; i < t->nskipped; i++)
		free(t->skipped[i].path);
	memset(t, 0, sizeof(*t));
}

/* True when it is in the list now and was not before. */
static bool
strings_add(struct search *s, struct strings *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], text) == 0)
			return false;
	if (list->n == STRINGS_MAX)
		return false;
	list->items[list->n] = strdup(text);
	if (list->items[list->n] == NULL) {
		s->err = -ENOMEM;
		return false;
	}
	list->n++;
	return true;
}

static void
strings_done(struct strings *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	list->n = 0;
}

static void
skip(struct search *s, const char *path, const char *why)
{
	if (toolchains_add_skipped(s->found, path, why) != 0)
		s->err = -ENOMEM;
}

/* ------------------------------------------------ paths */

/* Joins and cleans by words alone: "." and empty components go, ".." takes the
 * one before. False when it does not fit or climbs above "/". */
static bool
join(char ret[PATH_SIZE], const char *dir, const char *rest)
{
	char out[PATH_SIZE];
	size_t len = 0;

	if (rest[0] != '/') {
		if (!path_is_clean(dir))
			return false;
		len = strlen(dir) == 1 ? 0 : strlen(dir);
		memcpy(out, dir, len);
	}
	while (*rest != '\0') {
		size_t n = strcspn(rest, "/");

		if (n == 2 && rest[0] == '.' && rest[1] == '.') {
			if (len == 0)
				return false;
			while (out[--len] != '/')
				continue;
		} else if (n > 1 || (n == 1 && rest[0] != '.')) {
			if (len + 1 + n >= sizeof(out))
				return false;
			out[len++] = '/';
			memcpy(out + len, rest, n);
			len += n;
		}
		rest += n;
		while (*rest == '/')
			rest++;
	}
	if (len == 0)
		out[len++] = '/';
	memcpy(ret, out, len);
	ret[len] = '\0';
	return true;
}

/* The directory `up` levels above a clean path. */
static void
parent(char ret[PATH_SIZE], const char *path, unsigned up)
{
	if (path != ret)
		memcpy(ret, path, strlen(path) + 1);
	while (up-- > 0) {
		char *slash = strrchr(ret, '/');

		slash[slash == ret ? 1 : 0] = '\0';
	}
}

static const char *
base_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* The path without links as the kernel finds it, and what it is. */
static int
resolve(const char *path, char ret[PATH_SIZE], mode_t *ret_mode)
{
	autoclose int fd = path_open(path, O_PATH);
	struct stat st;
	int error;

	if (fd < 0)
		return fd;
	error = path_of_fd(fd, ret, PATH_SIZE);
	if (error != 0)
		return error;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_mode = st.st_mode;
	return 0;
}

static bool
is_below(const char *path, const char *dir)
{
	return path_is_within(path, dir) && strcmp(path, dir) != 0;
}

static bool
in_any(const struct strings *list, const char *path)
{
	for (size_t i = 0; i < list->n; i++)
		if (path_is_within(path, list->items[i]))
			return true;
	return false;
}

static bool
holds_any(const struct strings *list, const char *path)
{
	for (size_t i = 0; i < list->n; i++)
		if (path_is_within(list->items[i], path))
			return true;
	return false;
}

static bool
below_a_place(const struct search *s, const char *path)
{
	for (size_t i = 0; i < s->places.n; i++)
		if (is_below(path, s->places.items[i]))
			return true;
	return false;
}

/* SPEC C2: in every run's view without a mount. */
static bool
in_system_view(const char *path)
{
	static const char *const dirs[] = { "/usr", "/bin", "/sbin", "/lib",
		"/lib64" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (path_is_within(path, dirs[i]))
			return true;
	return false;
}

/* ------------------------------------------------ proposing a mount */

/* Why a path may not be mounted, NULL when it may. */
static const char *
refusal(const struct search *s, const char *path, const char *resolved,
    mode_t mode)
{
	int want = S_ISDIR(mode) ? R_OK | X_OK : R_OK;

	if (holds_any(&s->places, path) || holds_any(&s->places, resolved))
		return why_whole;
	if (!below_a_place(s, path) || !below_a_place(s, resolved))
		return why_outside;
	if (in_any(&s->deny, path) || in_any(&s->deny, resolved))
		return why_denied;
	if (holds_any(&s->deny, path) || holds_any(&s->deny, resolved))
		return why_holds;
	if (!S_ISDIR(mode) && !S_ISREG(mode))
		return why_kind;
	if (access(resolved, want) < 0)
		return why_unreadable;
	return NULL;
}

/* Whether a mount shows `path`, and what it leads to, already. */
static bool
is_covered(const struct search *s, const char *path, const char *resolved)
{
	const struct toolchains *t = s->found;

	for (size_t i = 0; i < t->n; i++)
		if (path_is_within(resolved, s->resolved[i]) &&
		    (path_is_within(path, t->mounts[i].path) ||
			path_is_within(path, s->resolved[i])))
			return true;
	return false;
}

/* Mounts that a new one shows as well go. */
static void
drop_covered(struct search *s, const char *path, const char *resolved)
{
	struct toolchains *t = s->found;
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (path_is_within(s->resolved[i], resolved) &&
		    (path_is_within(t->mounts[i].path, path) ||
			path_is_within(t->mounts[i].path, resolved))) {
			free(t->mounts[i].path);
			free(s->resolved[i]);
			continue;
		}
		t->mounts[kept] = t->mounts[i];
		s->resolved[kept++] = s->resolved[i];
	}
	t->n = kept;
}

static void
mount_add(struct search *s, const char *path, const char *resolved,
    const char *rule)
{
	struct toolchains *t = s->found;
	char *copy;

	drop_covered(s, path, resolved);
	if (t->n == TOOLCHAINS_MAX) {
		skip(s, path, why_many);
		return;
	}
	copy = strdup(resolved);
	if (copy == NULL || toolchains_add_mount(t, path, rule) != 0) {
		free(copy);
		s->err = -ENOMEM;
		return;
	}
	s->resolved[t->n - 1] = copy;
}

/* True when the run will see `path`, by this mount or another. */
static bool
propose(struct search *s, const char *path, const char *rule)
{
	char resolved[PATH_SIZE];
	const char *why;
	mode_t mode;
	int error = resolve(path, resolved, &mode);

	if (error == -ENOENT || error == -ENOTDIR)
		return false;
	if (error != 0) {
		skip(s, path, error == -EACCES ? why_unreadable : why_links);
		return false;
	}
	if (in_system_view(resolved) || in_any(&s->given, resolved) ||
	    is_covered(s, path, resolved))
		return true;
	why = refusal(s, path, resolved, mode);
	if (why != NULL) {
		skip(s, path, why);
		return false;
	}
	mount_add(s, path, resolved, rule);
	return true;
}

/* ------------------------------------------------ install roots */

/* A directory that may be proposed: asked before a wider one is chosen. */
static bool
is_permitted(const struct search *s, const char *path)
{
	char resolved[PATH_SIZE];
	mode_t mode;

	return resolve(path, resolved, &mode) == 0 && S_ISDIR(mode) &&
	    refusal(s, path, resolved, mode) == NULL;
}

static bool
has_mark(const char *dir)
{
	char path[PATH_SIZE];
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (join(path, dir, marks[i]) && lstat(path, &st) == 0)
			return true;
	return false;
}

static bool
in_opt(const struct search *s, const char *path)
{
	/* places: home, home resolved, opt, opt resolved, less equal ones */
	return path_is_within(path, s->in->opt == NULL ? "/opt" : s->in->opt);
}

/* The table row of a directory of programs, or NULL. */
static const char *
row_root(const struct search *s, const char *dir, char ret_root[PATH_SIZE])
{
	for (size_t k = 0; k < s->places.n; k++) {
		const char *home = s->places.items[k];

		if (!is_below(dir, home))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			if (fnmatch(rows[i].entry, dir + strlen(home) + 1,
				FNM_PATHNAME | FNM_NOESCAPE) != 0)
				continue;
			parent(ret_root, dir, rows[i].up);
			return rows[i].rule;
		}
	}
	return NULL;
}

static bool
is_bin(const char *dir)
{
	static const char *const names[] = { "bin", "sbin", ".bin", "shims" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(base_of(dir), names[i]) == 0)
			return true;
	return false;
}

/*
 * What to mount for a directory of programs. Below the home the directory above
 * `bin` counts only when it looks like an install root: ~/Documents/bin does
 * not open ~/Documents. NULL: the directory is none of a toolchain's.
 */
static const char *
root_of(const struct search *s, const char *dir, char ret_root[PATH_SIZE])
{
	char above[PATH_SIZE];
	const char *rule = row_root(s, dir, ret_root);

	if (rule != NULL)
		return rule;
	if (!is_bin(dir))
		return NULL;
	parent(above, dir, 1);
	if (!is_permitted(s, above) || (!in_opt(s, above) && !has_mark(above)))
		return NULL;
	memcpy(ret_root, above, strlen(above) + 1);
	return word_root;
}

static void
propose_also(struct search *s, const char *rule)
{
	char path[PATH_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(also); i++)
		if (strcmp(also[i].rule, rule) == 0 &&
		    join(path, s->in->home, also[i].path))
			(void)propose(s, path, rule);
}

/* ------------------------------------------------ links */

static void
enqueue(struct search *s, const char *dir)
{
	char resolved[PATH_SIZE];
	mode_t mode;

	if (resolve(dir, resolved, &mode) == 0 && S_ISDIR(mode) &&
	    below_a_place(s, resolved) && !in_any(&s->deny, resolved))
		(void)strings_add(s, &s->queue, resolved);
}

/* A module needs those beside it: all of the outermost node_modules. */
static bool
modules_of(const struct search *s, const char *path, char ret_root[PATH_SIZE])
{
	static const char name[] = "/node_modules/";
	const char *at = strstr(path, name);
	size_t len;

	if (at == NULL)
		return false;
	len = (size_t)(at - path) + sizeof(name) - 2;
	memcpy(ret_root, path, len);
	ret_root[len] = '\0';
	return is_permitted(s, ret_root);
}

/* Whether a directory at this place may be one tool's: at least two components
 * below the home, and nothing that many share. */
static bool
is_own_place(const struct search *s, const char *dir)
{
	const char *rel = NULL;

	for (size_t i = 0; i < s->places.n && !in_opt(s, dir); i++)
		if (is_below(dir, s->places.items[i]))
			rel = dir + strlen(s->places.items[i]) + 1;
	if (rel == NULL || strchr(rel, '/') == NULL || is_bin(dir))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
		size_t n = strlen(shared[i].path);

		if (strncmp(rel, shared[i].path, n) == 0 &&
		    (rel[n] == '\0' || (rel[n] == '/' && shared[i].below)))
			return false;
	}
	return true;
}

/*
 * The directory of a link's target, as ~/.local/share/tool: a program finds its
 * parts beside itself. Judged where it is said to be and where it is.
 */
static bool
is_own_dir(const struct search *s, const char *dir)
{
	char resolved[PATH_SIZE];
	mode_t mode;

	return is_own_place(s, dir) && resolve(dir, resolved, &mode) == 0 &&
	    is_own_place(s, resolved) && is_permitted(s, dir);
}

/* A link of a directory of programs leads to `path`. */
static void
propose_target(struct search *s, const char *path)
{
	char dir[PATH_SIZE], root[PATH_SIZE], resolved[PATH_SIZE];
	const char *rule;
	mode_t mode;

	if (resolve(path, resolved, &mode) != 0 || in_system_view(resolved) ||
	    is_covered(s, path, resolved))
		return;
	if (S_ISREG(mode)) {
		if (modules_of(s, path, root)) {
			(void)propose(s, root, word_modules);
			return;
		}
		parent(dir, path, 1);
		rule = root_of(s, dir, root);
		if (rule != NULL && propose(s, root, rule)) {
			enqueue(s, dir);
			return;
		}
		if (is_own_dir(s, dir) && propose(s, dir, word_own))
			return;
	}
	if (propose(s, path, word_link) && S_ISREG(mode))
		skip(s, dir, why_file);
}

/* Both what the link says and where it ends: in the run each step of the way
 * has to exist. */
static void
follow(struct search *s, const char *dir, const char *name, const char *text)
{
	char path[PATH_SIZE], first[PATH_SIZE], end[PATH_SIZE];
	char first_end[PATH_SIZE];
	mode_t mode;
	int error;

	if (!join(path, dir, name))
		return;
	error = resolve(path, end, &mode);
	if (error == -EACCES)
		skip(s, path, why_unreadable);
	else if (error == -ELOOP)
		skip(s, path, why_links);
	if (error != 0)
		return; /* a link to nothing is nothing here either */
	if (join(first, dir, text) && strcmp(first, end) != 0 &&
	    below_a_place(s, first) && resolve(first, first_end, &mode) == 0 &&
	    strcmp(first_end, end) == 0)
		propose_target(s, first);
	propose_target(s, end);
}

static void
scan_name(struct search *s, int dirfd, const char *dir,
    const struct dirent *entry)
{
	char text[PATH_SIZE];
	ssize_t n;

	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return;
	if (s->links >= TOOLCHAINS_LINKS_MAX)
		return;
	n = readlinkat(dirfd, entry->d_name, text, sizeof(text));
	if (n <= 0 || (size_t)n >= sizeof(text))
		return;
	text[n] = '\0';
	s->links++;
	follow(s, dir, entry->d_name, text);
	if (s->links == TOOLCHAINS_LINKS_MAX)
		skip(s, dir, why_entries);
}

static void
scan(struct search *s, const char *dir)
{
	const struct dirent *entry;
	size_t names = 0;
	DIR *d;
	int fd;

	fd = path_open(dir, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	if (fd < 0)
		return;
	d = fdopendir(fd);
	if (d == NULL) {
		(void)close(fd);
		return;
	}
	while (s->err == 0 && (entry = readdir(d)) != NULL) {
		if (++names > TOOLCHAINS_NAMES_MAX) {
			skip(s, dir, why_entries);
			break;
		}
		scan_name(s, fd, dir, entry);
	}
	(void)closedir(d);
}

/* ------------------------------------------------ PATH */

static bool
has_parent_component(const char *path)
{
	for (; *path != '\0'; path += strcspn(path, "/")) {
		path += strspn(path, "/");
		if (strncmp(path, "..", 2) == 0 &&
		    (path[2] == '/' || path[2] == '\0'))
			return true;
	}
	return false;
}

static void
take_entry(struct search *s, const char *raw_entry)
{
	char dir[PATH_SIZE], root[PATH_SIZE], resolved[PATH_SIZE];
	const char *rule;
	mode_t mode;
	int error;

	/* Empty and relative ones reach nothing in a run (SPEC M8). */
	if (raw_entry[0] != '/')
		return;
	/* With a link before it, ".." is not what its words say. */
	if (has_parent_component(raw_entry) || !join(dir, "/", raw_entry)) {
		skip(s, raw_entry, why_spelling);
		return;
	}
	if (!below_a_place(s, dir)) {
		if (in_any(&s->places, dir))
			skip(s, dir, why_whole);
		return;
	}
	error = resolve(dir, resolved, &mode);
	if (error == -ENOENT || error == -ENOTDIR ||
	    (error == 0 && !S_ISDIR(mode)))
		return; /* reaches nothing on the host either */
	rule = error == 0 ? root_of(s, dir, root) : NULL;
	if (rule == NULL || !propose(s, root, rule)) {
		rule = word_dir;
		if (!propose(s, dir, rule))
			return;
	}
	propose_also(s, rule);
	enqueue(s, dir);
}

static void
take_path(struct search *s)
{
	const char *p = s->in->path;
	char entry[PATH_SIZE];

	for (size_t i = 0; p != NULL && s->err == 0; i++) {
		size_t len = strcspn(p, ":");

		if (i == TOOLCHAINS_ENTRIES_MAX) {
			skip(s, "PATH", why_entries);
			return;
		}
		if (len < sizeof(entry)) {
			memcpy(entry, p, len);
			entry[len] = '\0';
			take_entry(s, entry);
		} else {
			s->found->more_skipped++;
		}
		p = p[len] == ':' ? p + len + 1 : NULL;
	}
}

/* ------------------------------------------------ preparation */

/* A path in both spellings; one that does not resolve as written. */
static void
add_both(struct search *s, struct strings *list, const char *path)
{
	char resolved[PATH_SIZE];
	mode_t mode;

	(void)strings_add(s, list, path);
	if (resolve(path, resolved, &mode) == 0)
		(void)strings_add(s, list, resolved);
}

static void
prepare(struct search *s)
{
	const struct toolchains_input *in = s->in;
	char path[PATH_SIZE];
	size_t places;

	add_both(s, &s->places, in->home);
	places = s->places.n;
	for (size_t i = 0; i < ARRAY_LEN(denied); i++)
		for (size_t k = 0; k < places; k++)
			if (join(path, s->places.items[k], denied[i]))
				add_both(s, &s->deny, path);
	for (size_t i = 0; i < ARRAY_LEN(own_dirs); i++)
		add_both(s, &s->deny, own_dirs[i]);
	for (size_t i = 0; i < in->ndeny; i++)
		if (join(path, "/", in->deny[i]))
			add_both(s, &s->deny, path);
	for (size_t i = 0; i < in->ngiven; i++)
		if (join(path, "/", in->given[i]))
			add_both(s, &s->given, path);
	add_both(s, &s->places, in->opt == NULL ? "/opt" : in->opt);
}

static int
find(const struct toolchains_input *in, struct toolchains *ret)
{
	struct search *s = calloc(1, sizeof(*s));
	int error;

	if (s == NULL)
		return -ENOMEM;
	s->in = in;
	s->found = ret;
	prepare(s);
	take_path(s);
	while (s->err == 0 && s->scanned < s->queue.n)
		scan(s, s->queue.items[s->scanned++]);
	for (size_t i = 0; i < ret->n; i++)
		free(s->resolved[i]);
	strings_done(&s->places);
	strings_done(&s->deny);
	strings_done(&s->given);
	strings_done(&s->queue);
	error = s->err;
	free(s);
	return error;
}

int
toolchains_find(const struct toolchains_input *in, struct toolchains *ret)
{
	int error;

	memset(ret, 0, sizeof(*ret));
	if (in->home == NULL || !path_is_clean(in->home) || in->home[1] == '\0')
		return -EINVAL;
	if (in->opt != NULL && (!path_is_clean(in->opt) || in->opt[1] == '\0'))
		return -EINVAL;
	if (in->ids != NULL && in->ids->uid == 0)
		return -EINVAL;
	if (in->ids != NULL)
		error = toolchains_child_run(in, find, ret);
	else
		error = find(in, ret);
	if (error != 0)
		toolchains_done(ret);
	return error;
}
