/*
 * Opens what a plan wants to appear in the view, as the run's user: the kernel
 * then decides with that user's ids, and what was opened is what is mounted
 * (SPEC C5). The plan is control's word and hostile: a source that the user
 * cannot reach, a link swapped in since the look-up, a pseudo file system or a
 * place that stands for the whole host ends the launch.
 */
#ifndef LAUNCHERD_SOURCE_H
#define LAUNCHERD_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct plan;

struct source_user {
	uid_t uid;
	gid_t gid;
	size_t ngroups;
	const gid_t *groups;
};

/*
 * A mask as it is applied (mask_mount.h). What is there is remembered by its
 * numbers and not held open, since there may be more masks than descriptors.
 */
struct source_mask {
	char *target; /* in the view; owned */
	int how; /* enum plan_mask_how */
	bool system; /* below /usr: not the user's */
	bool found; /* by the start scan: left out when it is gone */
	mode_t type; /* S_IFMT bits */
	dev_t dev;
	ino_t ino;
};

struct sources {
	size_t nmounts;
	int *mounts; /* O_PATH, one for each of plan->mounts */
	char **reals; /* their real paths, NULL-terminated */
	size_t nmasks; /* in their order: a parent before what lies below */
	struct source_mask *masks;
};

#define SOURCE_REASON_MAX 512

/*
 * 0; or -errno with nothing left open and a sentence in ret_reason (cleaned
 * text). -ENOTRECOVERABLE: launcherd could not get its own ids back and must
 * exit.
 *	-ESTALE		not what the look-up found
 *	-EPERM		a place or file system that is never mounted
 */
int sources_open(const struct plan *, const struct source_user *,
    struct sources *ret, char ret_reason[SOURCE_REASON_MAX]);
/* A directory of our own as the plan's only mount; it is duplicated. 0 or
 * -errno. */
int sources_take(int fd, struct sources *ret);
void sources_close(struct sources *);
/* Writes "<what> <path>: <why>" with the path cleaned, and the error's own text
 * for a NULL. Returns error. */
int source_refuse(char *reason, int error, const char *what, const char *path,
    const char *why);
/* Frees an array that was taken out of `masks`; NULL is fine. */
void source_masks_free(struct source_mask *, size_t n);

#endif
