/*
 * Directories that an earlier scan of the same question read and found nothing
 * in. While one has the same inode and the same time of change it has the same
 * entries: adding, removing and renaming one sets ctime, and nobody but root
 * can set that back. So its subdirectories are known without reading it, which
 * is most of a scan's time in a tree of many files.
 *
 * The bytes come back from control, which kept what this program told in an
 * earlier launch of the same user and the same question. They count only for
 * the same places, rules and denied inodes, which make the key. A directory in
 * which anything was found is read again each time.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/size.h"
#include "launcherd/lookup/scan_private.h"

#define SEEN_FORMAT 1
#define FIRST_SIZE 4096u

/* A change within one tick of the clock that stamps it may not show: only what
 * has rested that long is told. */
#define REST_NS 2000000000ull

#define FNV_BEGIN 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

/* Of these, ctime of a directory is known to behave as said above. An overlay
 * copies a directory up, which makes it new, before it changes it. */
static const unsigned long file_systems[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
	BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC };

bool
scan_seen_trusts(unsigned long file_system)
{
	for (size_t i = 0; i < ARRAY_LEN(file_systems); i++)
		if (file_systems[i] == file_system)
			return true;
	return false;
}

/* --- the key ------------------------------------------------------------ */

static uint64_t
mix(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * FNV_PRIME;
	return hash;
}

static uint64_t
mix_text(uint64_t hash, const char *text)
{
	return mix(hash, text, strlen(text) + 1);
}

static uint64_t
mix_number(uint64_t hash, uint64_t n)
{
	return mix(hash, &n, sizeof(n));
}

static uint64_t
make_key(const struct scan *s)
{
	const struct lookup_scan *scan = &s->question->scan;
	uint64_t hash = FNV_BEGIN, links = 0;

	for (size_t i = 0; i < s->nroots; i++) {
		hash = mix_text(hash, s->roots[i].path);
		hash = mix_text(hash,
		    s->roots[i].literal == NULL ? "" : s->roots[i].literal);
		hash = mix_number(hash, s->roots[i].writable);
	}
	for (size_t i = 0; i < scan->nrules; i++) {
		hash = mix_text(hash, scan->rules[i].glob);
		hash = mix_number(hash,
		    (uint64_t)scan->rules[i].roots << 8 |
			(uint64_t)scan->rules[i].class << 1 |
			scan->rules[i].ignore_case);
	}
	for (size_t i = 0; i < scan->nexemptions; i++) {
		hash = mix_text(hash, scan->exemptions[i].glob);
		hash = mix_number(hash, scan->exemptions[i].ignore_case);
	}
	/* A set: without an order. */
	for (size_t i = 0; i < s->links.size; i++)
		if (s->links.table[i].path != NULL)
			links += mix_text(mix_number(mix_number(FNV_BEGIN,
							 s->links.table[i].ino),
					      s->links.table[i].dev),
			    s->links.table[i].path);
	return mix_number(hash, links);
}

/* --- reading ------------------------------------------------------------ */

static size_t
place_of(const struct scan_seen *seen, uint64_t ino)
{
	return (size_t)((ino * 0x9e3779b97f4a7c15u) >> 32) & (seen->size - 1);
}

static int
grow(struct scan_seen *seen)
{
	struct scan_seen_dir *old = seen->table;
	size_t old_size = seen->size;

	seen->size = old_size == 0 ? FIRST_SIZE : 2 * old_size;
	seen->table = calloc(seen->size, sizeof(*seen->table));
	if (seen->table == NULL) {
		seen->table = old;
		seen->size = old_size;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old_size; i++) {
		size_t k;

		if (old[i].rel == NULL)
			continue;
		k = place_of(seen, old[i].ino);
		while (seen->table[k].rel != NULL)
			k = (k + 1) & (seen->size - 1);
		seen->table[k] = old[i];
	}
	free(old);
	return 0;
}

/* The names stay encoded: they are read when the directory is found. */
static int
read_one(struct scan_seen *seen, struct wire *w)
{
	struct scan_seen_dir dir;
	size_t i;

	if (wire_array(w, 6, 6) != 6)
		return -EPROTO;
	dir.root = wire_u64(w, 0, SCAN_ROOTS_MAX - 1);
	dir.rel = wire_cstr(w, 0, SCAN_PATH_MAX);
	dir.dev = wire_u64(w, 0, UINT64_MAX);
	dir.ino = wire_u64(w, 0, UINT64_MAX);
	dir.ctime_ns = wire_u64(w, 0, UINT64_MAX);
	dir.names = wire_bin(w, 0, LOOKUP_SEEN_MAX);
	if (w->err ||
	    (dir.names.len > 0 && dir.names.data[dir.names.len - 1] != '\0'))
		return -EPROTO;
	if (2 * seen->n >= seen->size && grow(seen) < 0)
		return -ENOMEM;
	i = place_of(seen, dir.ino);
	while (seen->table[i].rel != NULL)
		i = (i + 1) & (seen->size - 1);
	seen->table[i] = dir;
	seen->n++;
	return 0;
}

static void
forget(struct scan_seen *seen)
{
	free(seen->table);
	seen->table = NULL;
	seen->size = seen->n = 0;
}

/* All of it or nothing. */
static void
read_all(struct scan *s)
{
	const struct wire_view *bytes = &s->question->scan.seen;
	struct wire_view dirs;
	struct wire w;
	int r = 0;

	wire_init(&w, bytes->data, bytes->len);
	(void)wire_array(&w, 3, 3);
	(void)wire_u64(&w, SEEN_FORMAT, SEEN_FORMAT);
	(void)wire_u64(&w, s->seen.key, s->seen.key);
	dirs = wire_bin(&w, 0, LOOKUP_SEEN_MAX);
	if (!wire_done(&w))
		return;
	wire_init(&w, dirs.data, dirs.len);
	while (r == 0 && w.p < w.end)
		r = read_one(&s->seen, &w);
	if (r < 0)
		forget(&s->seen);
}

static uint64_t
wall_ns(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return scan_seen_time(&t);
}

void
scan_seen_begin(struct scan *s)
{
	s->seen.key = make_key(s);
	s->seen.now_ns = wall_ns();
	wire_out_init(&s->seen.dirs);
	if (s->question->scan.seen.len > 0)
		read_all(s);
}

const struct scan_seen_dir *
scan_seen_find(const struct scan *s, const struct scan_seen_dir *dir)
{
	const struct scan_seen *seen = &s->seen;
	size_t i;

	if (seen->n == 0)
		return NULL;
	for (i = place_of(seen, dir->ino); seen->table[i].rel != NULL;
	     i = (i + 1) & (seen->size - 1))
		if (seen->table[i].ino == dir->ino &&
		    seen->table[i].dev == dir->dev &&
		    seen->table[i].ctime_ns == dir->ctime_ns &&
		    seen->table[i].root == dir->root &&
		    strcmp(seen->table[i].rel, dir->rel) == 0)
			return &seen->table[i];
	return NULL;
}

/* --- telling ------------------------------------------------------------ */

void
scan_seen_note(struct scan *s, const struct scan_seen_dir *dir)
{
	struct scan_seen *seen = &s->seen;

	if (dir->ctime_ns > seen->now_ns ||
	    seen->now_ns - dir->ctime_ns < REST_NS ||
	    seen->dirs.len + strlen(dir->rel) + dir->names.len + 128 >
		LOOKUP_SEEN_MAX)
		return;
	wire_put_array(&seen->dirs, 6);
	wire_put_u64(&seen->dirs, dir->root);
	wire_put_cstr(&seen->dirs, dir->rel);
	wire_put_u64(&seen->dirs, dir->dev);
	wire_put_u64(&seen->dirs, dir->ino);
	wire_put_u64(&seen->dirs, dir->ctime_ns);
	wire_put_bin(&seen->dirs, dir->names.data, dir->names.len);
	seen->ndirs++;
}

void
scan_seen_finish(struct scan *s, struct wire_out *out)
{
	struct scan_seen *seen = &s->seen;

	if (seen->ndirs > 0 && !seen->dirs.err) {
		wire_put_array(out, 3);
		wire_put_u64(out, SEEN_FORMAT);
		wire_put_u64(out, seen->key);
		wire_put_bin(out, seen->dirs.data, seen->dirs.len);
	}
	wire_out_done(&seen->dirs);
	forget(seen);
}
