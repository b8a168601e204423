/*
 * See scan.h. Runs in stockade-lookup with the run's ids. The trees are the
 * user's and may be made to harm us or to change while we look: directories
 * are opened below their root without following links, work is counted in
 * entries and time, and what is found is judged again by control and opened
 * again by launcherd. Who changes a tree meanwhile gains nothing that a file
 * made after the launch would not give.
 *
 * A name costs one table walk; stat(2) is called for what a rule denies alone.
 * A hard link to a denied file shows as more than one link on the denied side
 * and by its inode number in the directory on the other, so the rest is never
 * looked at.
 */
#include "launcherd/lookup/scan.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "common/size.h"
#include "launcherd/lookup/scan_private.h"
#include "protocol/guard.h"

#define BUFFER_SIZE (128u << 10)
#define NAMES_MAX (64u << 10)
#define NO_ROOT SCAN_ROOTS_MAX

/* As the kernel writes it, getdents64(2). */
struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

/* What is asked of a directory's entries. */
enum mode {
	MODE_ALL,
	MODE_COVERED, /* below a denied one: more than one link, sockets */
	MODE_DENIED, /* below a denied item: more than one link, for all */
};

struct pending {
	char *rel;
	enum mode mode;
};

/* One tree. */
struct walk {
	struct scan *s;
	const char *path;
	const char *literal; /* NULL: the same */
	int fd;
	unsigned dfa_root;
	bool writable;
	bool prune; /* only where a rule can match below */
	size_t item; /* MODE_DENIED */
	size_t root; /* number of a scan_root, or NO_ROOT */
	size_t npending;
	size_t room;
	struct pending *pending;
};

/* What a directory's names are to the rules, the leaf's first. */
struct chain {
	size_t n;
	uint64_t names[DFA_DEPTH_MAX];
};

struct dir {
	struct walk *w;
	const char *rel;
	enum mode mode;
	int fd;
	uint64_t dev;
	bool inodes_lie; /* of the file system's directories */
	size_t nchains;
	struct chain chains[2];
	unsigned bare; /* marks of a git directory */
	bool plain; /* nothing was found in it so far */
	char *names; /* of subdirectories, NAMES_MAX bytes */
	size_t names_len;
};

static const char *const bare_marks[] = { "HEAD", "objects", "refs" };
#define BARE ((1u << ARRAY_LEN(bare_marks)) - 1)

/* The absolute path of an entry; false: too long, which is told. */
static bool
path_at(const struct dir *d, const char *name, char ret[SCAN_PATH_MAX + 1])
{
	const char *base = strcmp(d->w->path, "/") == 0 ? "" : d->w->path;
	int n = snprintf(ret, SCAN_PATH_MAX + 1, "%s%s%s%s%s", base,
	    *d->rel == '\0' ? "" : "/", d->rel, *name == '\0' ? "" : "/", name);

	if (n > 0 && n <= SCAN_PATH_MAX)
		return true;
	d->w->s->results->stopped |= LOOKUP_STOP_DEPTH;
	return false;
}

/* --- rules -------------------------------------------------------------- */

/* The names of a path, the last one first. */
static void
chain_add(const struct dfa *dfa, struct chain *chain, const char *path)
{
	size_t end = strlen(path), begin;

	for (; end > 0; end = begin - (begin > 0)) {
		for (begin = end; begin > 0 && path[begin - 1] != '/';)
			begin--;
		if (begin < end && chain->n < DFA_DEPTH_MAX)
			chain->names[chain->n++] =
			    dfa_name(dfa, path + begin, end - begin);
	}
}

static void
make_chains(struct dir *d)
{
	const struct walk *w = d->w;
	const struct dfa *dfa = w->s->dfa;

	d->nchains = 1;
	d->chains[0].n = 0;
	chain_add(dfa, &d->chains[0], d->rel);
	if (w->dfa_root == LOOKUP_ROOT_GIT)
		return;
	if (w->literal != NULL) {
		d->nchains = 2;
		d->chains[1] = d->chains[0];
		chain_add(dfa, &d->chains[1], w->literal);
	}
	chain_add(dfa, &d->chains[0], w->path);
}

/* What those say that are not in the table. */
static unsigned
judge_aside(const struct dir *d, const char *top, const char *name)
{
	const struct scan *s = d->w->s;
	char path[2 * SCAN_PATH_MAX + DFA_NAME_MAX + 4], *p = path;
	unsigned mask = 0;

	(void)snprintf(path, sizeof(path), "%s/%s%s%s", top, d->rel,
	    *d->rel == '\0' ? "" : "/", name);
	p += strspn(p, "/");
	for (size_t i = 0; i < s->naside; i++)
		if ((s->aside[i]->roots & (1u << d->w->dfa_root)) != 0)
			mask |= dfa_rule_matches(s->aside[i]->glob,
			    s->aside[i]->ignore_case, s->aside[i]->mask, p,
			    strlen(p));
	return mask;
}

/* What the rules say of an entry, by either spelling of the root. */
static unsigned
judge(const struct dir *d, const char *name)
{
	const struct dfa *dfa = d->w->s->dfa;
	uint64_t known = dfa_name(dfa, name, strlen(name));
	unsigned mask = 0;

	for (size_t i = 0; i < d->nchains; i++) {
		const struct chain *chain = &d->chains[i];
		struct dfa_walk walk;

		dfa_walk_start(dfa, &walk);
		dfa_walk_known(dfa, &walk, known);
		for (size_t k = 0; k < chain->n; k++)
			dfa_walk_known(dfa, &walk, chain->names[k]);
		mask |= dfa_walk_end(dfa, &walk, d->w->dfa_root).mask;
	}
	if (d->w->s->naside > 0)
		mask |= judge_aside(d,
		    d->w->dfa_root == LOOKUP_ROOT_GIT ? "" : d->w->path, name);
	if (d->w->s->naside > 0 && d->nchains > 1)
		mask |= judge_aside(d, d->w->literal, name);
	return mask;
}

/* --- entries ------------------------------------------------------------ */

static int
push(struct dir *d, const char *name, enum mode mode)
{
	struct walk *w = d->w;
	struct pending *more;
	char *rel = NULL;

	if (w->npending == w->room) {
		size_t room = w->room == 0 ? 256 : 2 * w->room;

		more = reallocarray(w->pending, room, sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		w->pending = more;
		w->room = room;
	}
	if (asprintf(&rel, "%s%s%s", d->rel, *d->rel == '\0' ? "" : "/", name) <
	    0)
		return -ENOMEM;
	w->pending[w->npending++] = (struct pending){ rel, mode };
	return 0;
}

/* A place that is searched for itself is not entered from above. */
static bool
is_root(const struct scan *s, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < s->nroots; i++)
		if (s->roots[i].len == len &&
		    memcmp(s->roots[i].path, path, len) == 0)
			return true;
	return false;
}

/* Keeps the name for scans to come. */
static void
keep_name(struct dir *d, const char *name)
{
	size_t len = strlen(name) + 1;

	if (!d->plain)
		return;
	d->plain = NAMES_MAX - d->names_len >= len;
	if (d->plain)
		memcpy(d->names + d->names_len, name, len);
	d->names_len += d->plain ? len : 0;
}

static int
enter(struct dir *d, const char *name, enum mode mode)
{
	char path[SCAN_PATH_MAX + 1];

	keep_name(d, name);
	if (!path_at(d, name, path))
		return 0;
	if (d->w->dfa_root == LOOKUP_ROOT_ALL && is_root(d->w->s, path))
		return 0;
	return push(d, name, mode);
}

/* Whether this link is known already, so that no second pass is needed. */
static bool
knows(const struct scan_links *links, uint64_t dev, uint64_t ino)
{
	const struct scan_link *l = scan_links_find(links, ino);

	while (l != NULL && l->dev != dev)
		l = scan_links_next(links, l);
	return l != NULL;
}

/* A denied file: with more links, the others are looked for. */
static int
note_links(struct dir *d, const char *name, size_t item)
{
	struct scan *s = d->w->s;
	struct scan_links *to = item == LOOKUP_NO_ITEM ? &s->later : &s->links;
	char path[SCAN_PATH_MAX + 1];
	struct scan_link link = { .item = item };
	struct stat st;

	if (s->again || fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_nlink < 2 || !path_at(d, name, path))
		return 0;
	if (item == LOOKUP_NO_ITEM &&
	    knows(&s->links, (uint64_t)st.st_dev, (uint64_t)st.st_ino))
		return 0;
	link.dev = (uint64_t)st.st_dev;
	link.ino = (uint64_t)st.st_ino;
	link.path = scan_keep(s, path);
	return link.path == NULL ? 0 : scan_links_add(to, &link);
}

/* Tells an entry that is another name of something denied. */
static bool
is_link(struct dir *d, const struct entry *e)
{
	struct scan *s = d->w->s;
	const struct scan_link *l;
	char path[SCAN_PATH_MAX + 1];
	uint64_t ino = e->ino;
	bool told = false;
	struct stat st;

	if (s->links.n == 0 || (e->type != DT_REG && e->type != DT_DIR))
		return false;
	if (d->inodes_lie &&
	    fstatat(d->fd, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		ino = (uint64_t)st.st_ino;
	l = scan_links_find(&s->links, ino);
	if (l == NULL ||
	    fstatat(d->fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !path_at(d, e->name, path))
		return false;
	for (; l != NULL; l = scan_links_next(&s->links, l)) {
		if (l->dev != (uint64_t)st.st_dev || l->ino != st.st_ino ||
		    path_is_within(path, l->path))
			continue;
		scan_found_link(s, path, lookup_kind_of(st.st_mode), l);
		told = true;
	}
	return told;
}

/* What a link with a denied name leads to is denied with it (SPEC J3). */
static void
found_link(struct dir *d, const char *name, const char *path)
{
	char text[SCAN_PATH_MAX + 1], joined[2 * SCAN_PATH_MAX + 2];
	ssize_t len = readlinkat(d->fd, name, text, sizeof(text) - 1);

	if (len <= 0)
		return;
	text[len] = '\0';
	if (*text == '/') {
		scan_target(d->w->s, text);
		return;
	}
	(void)snprintf(joined, sizeof(joined), "%.*s/%s",
	    (int)(strlen(path) - strlen(name) - 1), path, text);
	scan_target(d->w->s, strlen(joined) > SCAN_PATH_MAX ? path : joined);
}

static int
found_name(struct dir *d, const struct entry *e)
{
	struct scan *s = d->w->s;
	char path[SCAN_PATH_MAX + 1];
	enum lookup_kind kind = LOOKUP_OTHER;

	if (e->type == DT_DIR)
		kind = LOOKUP_DIR;
	else if (e->type == DT_REG)
		kind = LOOKUP_FILE;
	if (!s->again && path_at(d, e->name, path)) {
		if (e->type == DT_LNK)
			found_link(d, e->name, path);
		else if (e->type != DT_SOCK)
			scan_found(s, LOOKUP_NAME, path, kind);
	}
	if (e->type == DT_DIR)
		return enter(d, e->name, MODE_COVERED);
	return e->type == DT_REG ? note_links(d, e->name, LOOKUP_NO_ITEM) : 0;
}

static void
found_git(struct dir *d)
{
	char path[SCAN_PATH_MAX + 1];

	if (!d->w->s->again && path_at(d, "", path))
		scan_git_entry(d->w->s, path);
}

static void
look_for_bare(struct dir *d, const struct entry *e)
{
	for (size_t i = 0; i < ARRAY_LEN(bare_marks); i++)
		if (strcmp(e->name, bare_marks[i]) == 0) {
			d->bare |= 1u << i;
			d->plain = false;
		}
}

/* An entry of a tree whose names are judged. */
static int
visit_judged(struct dir *d, const struct entry *e)
{
	unsigned mask = judge(d, e->name);

	if ((mask & DFA_WRITE) != 0) {
		d->plain = false;
		return found_name(d, e);
	}
	if (strcmp(e->name, ".git") == 0) {
		d->plain = false;
		found_git(d);
	}
	look_for_bare(d, e);
	if (e->type != DT_DIR || (d->w->prune && (mask & DFA_MOVE) == 0))
		return 0;
	return enter(d, e->name, MODE_ALL);
}

static int
visit(struct dir *d, const struct entry *e)
{
	struct scan *s = d->w->s;
	char path[SCAN_PATH_MAX + 1];

	if (d->mode == MODE_DENIED) {
		if (e->type == DT_DIR)
			return enter(d, e->name, MODE_DENIED);
		return e->type == DT_REG ? note_links(d, e->name, d->w->item) :
					   0;
	}
	if (e->type == DT_SOCK)
		d->plain = false;
	if (e->type == DT_SOCK && !s->again && path_at(d, e->name, path))
		scan_found(s, LOOKUP_SOCK, path, LOOKUP_SOCKET);
	if (d->mode == MODE_ALL && is_link(d, e)) {
		d->plain = false;
		return 0;
	}
	if (d->mode == MODE_ALL && d->w->writable)
		return visit_judged(d, e);
	if (e->type == DT_DIR)
		return enter(d, e->name, d->mode);
	if (d->mode == MODE_COVERED && e->type == DT_REG)
		return note_links(d, e->name, LOOKUP_NO_ITEM);
	return 0;
}

/* --- directories -------------------------------------------------------- */

static bool
is_dot(const char *name)
{
	return name[0] == '.' &&
	    (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int
read_entries(struct dir *d)
{
	static union {
		struct entry align;
		char bytes[BUFFER_SIZE];
	} buf;
	struct entry *e;
	struct stat st;
	int r = 0;

	for (;;) {
		long n = syscall(SYS_getdents64, d->fd, buf.bytes,
		    sizeof(buf.bytes));

		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (long at = 0; at < n && r == 0; at += e->reclen) {
			e = (struct entry *)(void *)(buf.bytes + at);
			if (is_dot(e->name))
				continue;
			if (!scan_step_entry(d->w->s)) {
				d->plain = false;
				return 0;
			}
			if (e->type == DT_UNKNOWN &&
			    fstatat(d->fd, e->name, &st, AT_SYMLINK_NOFOLLOW) ==
				0)
				e->type = IFTODT(st.st_mode);
			r = visit(d, e);
		}
		if (r < 0)
			return r;
	}
}

/* Without this right nothing below can be named either. */
static bool
may_pass(const struct walk *w, const char *rel)
{
	return syscall(SYS_faccessat2, w->fd, rel, X_OK,
		   AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) == 0;
}

/* Whether the directory is as an earlier scan saw it: then its subdirectories
 * are all there is to it. */
static bool
is_seen(struct walk *w, const struct pending *p, int *ret)
{
	struct dir d = { .w = w, .rel = p->rel, .mode = p->mode };
	struct scan_seen_dir key = { .root = w->root, .rel = p->rel };
	const struct scan_seen_dir *seen;
	struct stat st;

	if (w->root == NO_ROOT || w->s->seen.n == 0 || w->s->again ||
	    p->mode != MODE_ALL ||
	    fstatat(w->fd, p->rel, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) <
		0)
		return false;
	key.dev = (uint64_t)st.st_dev;
	key.ino = (uint64_t)st.st_ino;
	key.ctime_ns = scan_seen_time(&st.st_ctim);
	seen = scan_seen_find(w->s, &key);
	if (seen == NULL)
		return false;
	scan_seen_note(w->s, seen);
	*ret = 0;
	for (size_t at = 0; at < seen->names.len && *ret == 0;) {
		const char *name = (const char *)seen->names.data + at;

		if (!scan_step_entry(w->s))
			break;
		*ret = enter(&d, name, MODE_ALL);
		at += strlen(name) + 1;
	}
	return true;
}

static void
note_seen(struct dir *d, const struct stat *st, const struct statfs *fs)
{
	const struct scan_seen_dir seen = {
		.root = d->w->root,
		.dev = d->dev,
		.ino = (uint64_t)st->st_ino,
		.ctime_ns = scan_seen_time(&st->st_ctim),
		.rel = d->rel,
		.names = { (const uint8_t *)d->names, d->names_len },
	};

	if (d->plain && d->w->root != NO_ROOT && d->mode == MODE_ALL &&
	    !d->w->s->again && scan_seen_trusts((unsigned long)fs->f_type))
		scan_seen_note(d->w->s, &seen);
}

/* The descriptor of a directory with what is asked of it, or -errno. */
static int
open_dir(struct walk *w, const struct pending *p, struct stat *st,
    struct statfs *fs)
{
	autoclose int fd =
	    path_open_beneath(w->fd, *p->rel == '\0' ? "." : p->rel,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return fd;
	/* Before the entries are read: what changes meanwhile is newer. */
	if (fstat(fd, st) < 0 || fstatfs(fd, fs) < 0)
		return -errno;
	return take_fd(&fd);
}

/* -ENOMEM, or 0: what cannot be read is told. */
static int
read_dir(struct walk *w, const struct pending *p)
{
	static char names[NAMES_MAX];
	struct dir d = { .w = w,
		.rel = p->rel,
		.mode = p->mode,
		.plain = true,
		.names = names };
	char path[SCAN_PATH_MAX + 1];
	autoclose int fd = -1;
	struct statfs fs;
	struct stat st;
	int r;

	if (is_seen(w, p, &r))
		return r;
	fd = open_dir(w, p, &st, &fs);
	if (fd < 0) {
		if (fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP &&
		    (fd != -EACCES || may_pass(w, p->rel)))
			w->s->results->stopped |= LOOKUP_STOP_CLOSED;
		return 0;
	}
	d.fd = fd;
	d.dev = (uint64_t)st.st_dev;
	/* A FUSE server need not fill them in. */
	d.inodes_lie = fs.f_type == FUSE_SUPER_MAGIC;
	if (w->writable && d.mode == MODE_ALL)
		make_chains(&d);
	r = read_entries(&d);
	if (r == 0)
		note_seen(&d, &st, &fs);
	if (r == 0 && d.bare == BARE && !w->s->again && path_at(&d, "", path))
		scan_git_add(w->s, path, NULL);
	if (r < 0 && r != -ENOMEM)
		w->s->results->stopped |= LOOKUP_STOP_CLOSED;
	return r == -ENOMEM ? r : 0;
}

static int
walk_tree(struct walk *w, enum mode mode)
{
	struct dir top = { .w = w, .rel = "" };
	struct scan *s = w->s;
	int r;

	w->fd = path_open(w->path, O_PATH | O_DIRECTORY);
	if (w->fd < 0) {
		s->results->stopped |= LOOKUP_STOP_CLOSED;
		return 0;
	}
	r = push(&top, "", mode);
	while (r == 0 && w->npending > 0 && s->left > 0 && scan_step(s)) {
		struct pending p = w->pending[--w->npending];

		r = read_dir(w, &p);
		free(p.rel);
	}
	while (w->npending > 0)
		free(w->pending[--w->npending].rel);
	free(w->pending);
	(void)close(w->fd);
	return r;
}

int
scan_git_tree(struct scan *s, const char *path)
{
	struct walk w = {
		.s = s,
		.path = path,
		.dfa_root = LOOKUP_ROOT_GIT,
		.root = NO_ROOT,
		.writable = true,
		.prune = true,
	};

	return walk_tree(&w, MODE_ALL);
}

static int
walk_roots(struct scan *s)
{
	int r = 0;

	for (size_t i = 0; i < s->nroots && r == 0; i++) {
		struct walk w = {
			.s = s,
			.path = s->roots[i].path,
			.literal = s->roots[i].literal,
			.dfa_root = LOOKUP_ROOT_ALL,
			.root = i,
			.writable = s->roots[i].writable,
		};

		r = walk_tree(&w, MODE_ALL);
	}
	return r;
}

/* --- all of it ---------------------------------------------------------- */

static int
take_root(struct scan *s, const struct lookup_result *r, bool writable)
{
	struct scan_root *root;

	for (size_t i = 0; i < s->nroots; i++)
		if (strcmp(s->roots[i].path, r->resolved) == 0) {
			s->roots[i].writable |= writable;
			return 0;
		}
	if (s->nroots == SCAN_ROOTS_MAX)
		return -E2BIG;
	root = &s->roots[s->nroots++];
	root->path = r->resolved;
	root->len = strlen(r->resolved);
	root->dev = r->dev;
	root->writable = writable;
	if (strcmp(r->literal, r->resolved) != 0)
		root->literal = r->literal;
	return 0;
}

static int
take_roots(struct scan *s)
{
	int r = 0;

	for (size_t i = 0; i < s->question->nitems && r == 0; i++) {
		const struct lookup_result *res = &s->results->results[i];
		enum lookup_use use = s->question->items[i].use;

		if (res->error == 0 && res->kind == LOOKUP_DIR &&
		    (use == LOOKUP_USE_READABLE || use == LOOKUP_USE_WRITABLE))
			r = take_root(s, res, use == LOOKUP_USE_WRITABLE);
	}
	return r;
}

static bool
has_device(const struct scan *s, uint64_t dev)
{
	for (size_t i = 0; i < s->nroots; i++)
		if (s->roots[i].dev == dev)
			return true;
	return false;
}

/* Denied items by their inodes: a hard link, or the same directory through
 * another mount. */
static int
take_denied(struct scan *s)
{
	int r = 0;

	s->left = SCAN_DENIED_MAX;
	for (size_t i = 0; i < s->question->nitems && r == 0; i++) {
		const struct lookup_result *res = &s->results->results[i];
		const struct scan_link link = { res->ino, res->dev, i,
			res->resolved };
		struct walk w = { .s = s,
			.path = res->resolved,
			.item = i,
			.root = NO_ROOT };

		if (s->question->items[i].use != LOOKUP_USE_DENIED ||
		    res->error != 0)
			continue;
		r = scan_links_add(&s->links, &link);
		/* A link is never to another file system. */
		if (r == 0 && res->kind == LOOKUP_DIR &&
		    has_device(s, res->dev))
			r = walk_tree(&w, MODE_DENIED);
	}
	s->left = s->question->scan.entries_max;
	return r;
}

/* The first pass met a denied name with more links: all names again, for their
 * inode numbers alone. */
static int
look_again(struct scan *s)
{
	if (s->later.n == 0)
		return 0;
	scan_links_done(&s->links);
	s->links = s->later;
	s->later = (struct scan_links){ NULL, 0, 0 };
	s->again = true;
	s->left = s->question->scan.entries_max;
	return walk_roots(s);
}

static int
compile(struct scan *s)
{
	const struct lookup_scan *scan = &s->question->scan;
	const struct dfa_rules rules = {
		.rules = scan->rules,
		.nrules = scan->nrules,
		.exemptions = scan->exemptions,
		.nexemptions = scan->nexemptions,
		.nroots = LOOKUP_ROOTS,
	};
	autofree bool *aside = NULL;
	int r;

	s->dfa = malloc(sizeof(*s->dfa));
	if (s->dfa == NULL)
		return -ENOMEM;
	if (scan->table.len > 0)
		return guard_tables_decode(scan->table.data, scan->table.len,
		    LOOKUP_ROOTS, scan->nrules, s->dfa);
	aside = calloc(scan->nrules + 1, sizeof(*aside));
	if (aside == NULL)
		return -ENOMEM;
	r = dfa_compile_some(&rules, s->dfa, aside, NULL);
	for (size_t i = 0; i < scan->nrules && r == 0; i++)
		if (aside[i])
			s->aside[s->naside++] = &scan->rules[i];
	return r;
}

static int
walk_first(struct scan *s)
{
	scan_seen_begin(s);
	return walk_roots(s);
}

int
scan_all(const struct lookup_question *question, const char *home, char *text,
    size_t size, struct lookup_results *results, struct wire_out *seen)
{
	static int (*const steps[])(struct scan *) = { take_denied, walk_first,
		scan_git_finish, look_again };
	struct scan *s;
	int r;

	if (question->scan.entries_max == 0)
		return 0;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->question = question;
	s->results = results;
	s->home = home;
	s->text = text;
	s->text_size = size;
	r = take_roots(s);
	if (r == 0 && s->nroots > 0)
		r = compile(s);
	s->end_ms = scan_now_ms() + question->scan.time_ms;
	if (r == 0 && s->nroots > 0) {
		scan_git_global(s);
		for (size_t i = 0; i < ARRAY_LEN(steps) && r == 0; i++)
			r = steps[i](s);
	}
	scan_seen_finish(s, seen);
	scan_links_done(&s->links);
	scan_links_done(&s->later);
	free(s->dfa);
	free(s);
	return r;
}
