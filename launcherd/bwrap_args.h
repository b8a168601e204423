/*
 * Builds bubblewrap's argument vector for a run (bwrap(1), 0.8.0): a pure
 * function of the decoded plan and of descriptors that are open already. The
 * result is NUL-separated text for `--args FD`, so no argument list on the
 * host shows a path or a rule (SPEC C21).
 *
 * Every path in it comes from a plan that protocol/plan.c has checked to be
 * clean; it is checked here once more that none lies in the fixed view, since
 * this is the last place that can tell.
 */
#ifndef LAUNCHERD_BWRAP_ARGS_H
#define LAUNCHERD_BWRAP_ARGS_H

#include <stddef.h>

struct plan;
struct sources;
struct view_tree;

/* bubblewrap refuses more (MAX_ARGS in its source). */
#define BWRAP_ARGS_MAX 9000

struct bwrap_input {
	const struct plan *plan;
	const struct sources *sources;
	const struct view_tree *etc;
	const int *file_fds; /* one for each of plan->files, at its start */
	int init_fd; /* O_PATH, stockade-init */
	int connect_fd; /* O_PATH, stockade-connect; -1: none */
	int etc_fd; /* the copy of /etc */
	int info_fd; /* told when the run's namespaces are there; -1: not */
	const char *const *root_links; /* "bin", "usr/bin", ... pairs, NULL */
	const char *const *root_binds; /* "/lib64", ..., NULL */
	const char *const *proc_hidden; /* "/proc/keys", ..., NULL; may be
					 * NULL itself: none */
};

struct bwrap_args {
	char *data;
	size_t len;
	size_t cap;
	size_t count;
	size_t nfds; /* descriptors named in the text: bubblewrap's */
	int *fds; /* process must inherit exactly these */
	size_t cap_fds;
	int error; /* sticky: -ENOMEM, -E2BIG */
};

/*
 * 0, or -errno with ret_why a static sentence:
 *	-EPERM	a target lies in the fixed view or hides the home
 *	-E2BIG	more arguments than bubblewrap takes
 */
int bwrap_args_build(const struct bwrap_input *, struct bwrap_args *ret,
    const char **ret_why);
void bwrap_args_done(struct bwrap_args *);

#endif
