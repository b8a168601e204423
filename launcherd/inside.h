/*
 * The way into a run that is starting: its first process, found in the run's
 * own cgroup, and from it the run's namespaces.
 */
#ifndef LAUNCHERD_INSIDE_H
#define LAUNCHERD_INSIDE_H

struct run;

/*
 * O_PATH descriptor of the /proc directory of the run's first process; it
 * stays with that process, whatever becomes of the number. Only before the run
 * is ready: bubblewrap and our own programs alone are in the cgroup then. 0 or
 * above; -ESRCH when there is none, -errno.
 */
int inside_open(const struct run *);

/*
 * A namespace ("mnt", "pid", "net") of the process at proc_fd. -EPERM when it
 * is our own: what is done in there must never happen to the host. Descriptor
 * or -errno.
 */
int inside_namespace(int proc_fd, const char *name);

#endif
