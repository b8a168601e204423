/*
 * See masking.h. The child is ours and ends with what it was made for; that it
 * is in the run's cgroup puts its time and memory on the run's account, and
 * ends it with the run.
 */
#include "launcherd/masking.h"

#include <sys/wait.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "launcherd/broker_run.h"
#include "launcherd/inside.h"
#include "launcherd/launch.h"
#include "launcherd/launcherd.h"
#include "launcherd/mask_mount.h"
#include "launcherd/view.h"
#include "protocol/message.h"

struct masking {
	struct run *run;
	struct source_mask *masks;
	size_t nmasks;
	struct source_user user;
	gid_t *groups; /* of the user */
	struct spawned child;
	struct event *exit_event;
	int report_fd; /* what the child says when it fails */
};

bool
masking_alive(const struct masking *k)
{
	return k != NULL && k->child.pid > 0;
}

void
masking_free(struct masking *k)
{
	if (k == NULL)
		return;
	if (k->exit_event != NULL)
		event_free(k->exit_event);
	close_all(&k->report_fd, 1);
	close_all(&k->child.pidfd, 1);
	source_masks_free(k->masks, k->nmasks);
	free(k->groups);
	free(k);
}

int
masking_make(struct run *run, struct sources *s, const struct source_user *user)
{
	struct masking *k;

	if (s->nmasks == 0)
		return 0;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return -ENOMEM;
	k->run = run;
	k->child.pidfd = k->report_fd = -1;
	k->user = *user;
	k->groups = calloc(user->ngroups + 1, sizeof(*k->groups));
	if (k->groups == NULL) {
		masking_free(k);
		return -ENOMEM;
	}
	if (user->ngroups > 0)
		memcpy(k->groups, user->groups,
		    user->ngroups * sizeof(*k->groups));
	k->user.groups = k->groups;
	k->masks = take_ptr(&s->masks);
	k->nmasks = s->nmasks;
	s->nmasks = 0;
	run->masking = k;
	return 0;
}

/* What the child wrote, for the reason of a failed start. */
static void
fail_by_report(struct masking *k, int status)
{
	char text[SOURCE_REASON_MAX];
	ssize_t n = read(k->report_fd, text, sizeof(text) - 1);
	unsigned code = API_HOST_ERROR;

	if (n <= 0) {
		(void)snprintf(text, sizeof(text),
		    "the protected paths could not be mounted (status %d)",
		    status);
	} else {
		text[n] = '\0';
		if (WIFEXITED(status) &&
		    WEXITSTATUS(status) == SPAWN_MASKS_STALE)
			code = API_BAD_PATH;
	}
	run_fail(k->run, code, EIO, "masks", text);
}

static void
on_exit_event(evutil_socket_t fd, short what, void *arg)
{
	struct masking *k = arg;
	struct run *run = k->run;
	int status = spawn_reap(&k->child);

	(void)fd;
	(void)what;
	if (run->state == RUN_STARTING && status == 0) {
		run->masking = NULL;
		masking_free(k);
		if (run->init_ready)
			run_ready(run);
		else
			guarding_go(run);
	} else if (run->state == RUN_STARTING && !run_check_oom(run)) {
		fail_by_report(k, status);
		run_kill(run, RUN_CAUSE_SERVICE);
	}
	run_advance(run);
}

/* The child and the end of its report, which only the child keeps. */
static int
spawn(struct masking *k)
{
	const struct launcherd *l = k->run->l;
	autoclose int proc_fd = inside_open(k->run);
	autoclose int mnt_fd = -1;
	autoclose int report = -1;
	struct spawn_masks in = {
		.tree = l->cgroups,
		.cgroup = &k->run->cgroup,
		.null_fd = l->null_fd,
		.job = { .masks = k->masks,
		    .nmasks = k->nmasks,
		    .user = k->user,
		    .empty_fd = view_empty_fd(l->view),
		    .denied_fd = view_denied_fd(l->view) },
	};
	int ends[2];

	if (proc_fd < 0)
		return proc_fd;
	mnt_fd = inside_namespace(proc_fd, "mnt");
	if (mnt_fd < 0)
		return mnt_fd;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	k->report_fd = ends[0];
	report = ends[1];
	in.job.mnt_fd = mnt_fd;
	in.error_fd = report;
	return spawn_masks(&in, &k->child);
}

static int
start(struct masking *k)
{
	struct event_base *base = k->run->l->base;
	int error = spawn(k);

	if (error < 0)
		return error;
	k->exit_event =
	    event_new(base, k->child.pidfd, EV_READ, on_exit_event, k);
	if (k->exit_event != NULL && event_add(k->exit_event, NULL) == 0)
		return 0;
	/* Nobody would reap it. */
	spawn_kill(&k->child);
	(void)waitpid(k->child.pid, NULL, 0);
	k->child.pid = 0;
	return -ENOMEM;
}

int
masking_start(struct run *run)
{
	int error = run->masking == NULL ? 0 : start(run->masking);

	if (error < 0)
		run_fail(run, API_HOST_ERROR, error, "masks", strerror(-error));
	return error;
}
