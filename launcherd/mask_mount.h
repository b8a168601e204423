/*
 * Puts the masks of a run into its view: what a child of launcherd does that
 * has one task (spawn.h). bubblewrap makes the view without them: it takes
 * 9,000 arguments and reads the whole mount table for each bind, so that the
 * time would grow with the square of their number. open_tree(2), Linux 5.2;
 * mount_setattr(2), Linux 5.12.
 */
#ifndef LAUNCHERD_MASK_MOUNT_H
#define LAUNCHERD_MASK_MOUNT_H

#include <stddef.h>
#include <sys/types.h>

#include "launcherd/source.h"

struct mask_job {
	const struct source_mask *masks; /* in their order (source.h) */
	size_t nmasks;
	struct source_user user;
	int mnt_fd; /* the run's mount namespace, not ours */
	int empty_fd; /* O_PATH, of ours: an empty directory, and a file */
	int denied_fd; /* that nobody may open */
};

/*
 * Enters mnt_fd for good, takes the user's file-system ids and keeps
 * CAP_SYS_ADMIN alone; the caller is a process of one thread that ends
 * afterwards. A mask goes on the file that the look-up saw or not at all. 0;
 * or -errno with a sentence, the path in it cleaned:
 *	-ESTALE		another file is there now (none that the start scan
 *			found: that one is left out)
 * What was mounted before a failure stays: the caller ends the run.
 */
int mask_mount(const struct mask_job *, char ret_reason[SOURCE_REASON_MAX]);

#endif
