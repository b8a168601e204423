/*
 * The parts of a run's view that are the same for every run: a directory in
 * the runtime directory with an empty directory, a file that nobody may open,
 * and a copy of the host's /etc entries of SPEC App.5. Copied once and bound
 * with a single mount per run instead of some forty; the host's files are
 * watched, and a change makes a new copy for the launches that follow, while
 * live runs keep theirs.
 *
 * Only world-readable files are copied, as text of links and bytes of files;
 * nothing is executed or parsed.
 */
#ifndef LAUNCHERD_VIEW_H
#define LAUNCHERD_VIEW_H

#include <stddef.h>

struct view;

/* An entry of /etc as the run sees it: a link to `link`. */
struct view_entry {
	char *path; /* "/etc/ssl/certs" */
	char *link; /* text of the link */
};

/* Where the copy is bound inside. */
#define VIEW_ETC_INSIDE "/run/stockade/etc"

struct view_tree {
	unsigned refs;
	unsigned number;
	int fd; /* O_PATH directory */
	size_t nentries;
	struct view_entry *entries;
};

/* `runtime_fd` is borrowed for the call; removes what an earlier process left
 * there. 0 or -errno. */
int view_open(int runtime_fd, struct view **ret);
/* Removes everything; NULL is fine. */
void view_close(struct view *);

/* Descriptor that tells of changes (inotify), to be read by view_changed. */
int view_watch_fd(const struct view *);
void view_changed(struct view *);

/* O_PATH descriptors, borrowed. */
int view_empty_fd(const struct view *);
int view_denied_fd(const struct view *);

/* An empty directory that any run may write in, for the probe: a descriptor
 * that is the caller's, or -errno. There is one at a time. */
int view_scratch(const struct view *);
void view_scratch_done(const struct view *);

/* The current copy, made at the first call (the probe's, at start) and anew if
 * the host's changed. Take and give back; the
 * last one that gives back an old copy removes it. NULL: it could not be
 * made. */
struct view_tree *view_tree_get(struct view *);
void view_tree_put(struct view *, struct view_tree *);

#endif
