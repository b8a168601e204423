/*
 * What init does while it is still root inside the sandbox: it gives the
 * private directories, which bubblewrap made as root, to the run's user.
 */
#ifndef INIT_SETUP_H
#define INIT_SETUP_H

struct ids;
struct plan;

/*
 * Changes the owner of HOME, of the directories between HOME and the mounts
 * below it, and of /run/stockade/run. Never touches a mounted tree: it does
 * not follow links and does not leave HOME's own file system. The directories
 * between must be searchable by others (launcherd makes them 0755), since root
 * here has no capability but CHOWN. 0 or -errno.
 */
int
setup_owners(const struct plan *plan, const char *home, const struct ids *ids);

#endif
