/*
 * launcherd: bubblewrap's arguments. Pure: no I/O, descriptors are numbers.
 * The order matters (facts of bubblewrap 0.8.0): a missing parent would be
 * made with mode 0700, so each is made first; the root becomes read-only last.
 * Masks are not bubblewrap's: see mask_mount.h.
 */
#include "launcherd/bwrap_args.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/size.h"
#include "launcherd/source.h"
#include "launcherd/view.h"
#include "protocol/plan.h"

/* Provided by the fixed view, or never there: no mount at or below these
 * (SPEC C2, App.5). */
static const char *const fixed_below[] = { "/bin", "/dev", "/etc", "/lib",
	"/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys",
	"/usr" };
/* No mount at these, but below. */
static const char *const fixed_whole[] = { "/", "/home", "/tmp", "/var",
	"/var/tmp" };

/* ---------------------------------------------------------------- the text */

static void
put_n(struct bwrap_args *a, const char *text, size_t len)
{
	size_t need;

	if (a->error != 0)
		return;
	if (++a->count > BWRAP_ARGS_MAX) {
		a->error = -E2BIG;
		return;
	}
	if (!size_add(a->len, len + 1, &need)) {
		a->error = -E2BIG;
		return;
	}
	if (need > a->cap) {
		size_t cap = need * 2 < 4096 ? 4096 : need * 2;
		char *data = realloc(a->data, cap);

		if (data == NULL) {
			a->error = -ENOMEM;
			return;
		}
		a->data = data;
		a->cap = cap;
	}
	memcpy(a->data + a->len, text, len);
	a->data[a->len + len] = '\0';
	a->len = need;
}

static void
put(struct bwrap_args *a, const char *text)
{
	put_n(a, text, strlen(text));
}

static void
put_number(struct bwrap_args *a, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	put(a, text);
}

static void
put_fd(struct bwrap_args *a, int fd)
{
	if (a->error != 0)
		return;
	if (a->nfds == a->cap_fds) {
		size_t cap = a->cap_fds == 0 ? 64 : a->cap_fds * 2;
		int *fds = realloc(a->fds, cap * sizeof(*fds));

		if (fds == NULL) {
			a->error = -ENOMEM;
			return;
		}
		a->fds = fds;
		a->cap_fds = cap;
	}
	a->fds[a->nfds++] = fd;
	put_number(a, (uint64_t)(unsigned)fd);
}

static void
put2(struct bwrap_args *a, const char *one, const char *two)
{
	put(a, one);
	put(a, two);
}

static void
put3(struct bwrap_args *a, const char *one, const char *two, const char *three)
{
	put2(a, one, two);
	put(a, three);
}

static void
put_bind_fd(struct bwrap_args *a, bool read_only, int fd, const char *target)
{
	put(a, read_only ? "--ro-bind-fd" : "--bind-fd");
	put_fd(a, fd);
	put(a, target);
}

static void
put_dir(struct bwrap_args *a, const char *mode, const char *path, size_t len)
{
	put3(a, "--perms", mode, "--dir");
	put_n(a, path, len);
}

/* size 0: the kernel's default, half of the memory; the run's memory limit
 * counts it anyway. */
static void
put_tmpfs(struct bwrap_args *a, const char *mode, uint64_t size,
    const char *path)
{
	put2(a, "--perms", mode);
	if (size != 0) {
		put(a, "--size");
		put_number(a, size);
	}
	put2(a, "--tmpfs", path);
}

/* ---------------------------------------------------------------- parents */

/* Paths that exist in the view already, so that each directory is made once.
 * `whole` ones have their inside from elsewhere. */
struct known {
	const char *path;
	size_t len;
	bool mount;
};

struct builder {
	struct bwrap_args *a;
	const struct bwrap_input *in;
	size_t nknown;
	size_t cap_known;
	struct known *known;
};

static void
know(struct builder *b, const char *path, size_t len, bool mount)
{
	if (b->nknown == b->cap_known) {
		size_t cap = b->cap_known == 0 ? 64 : b->cap_known * 2;
		struct known *more = realloc(b->known, cap * sizeof(*more));

		if (more == NULL) {
			b->a->error = -ENOMEM;
			return;
		}
		b->known = more;
		b->cap_known = cap;
	}
	b->known[b->nknown++] = (struct known){ path, len, mount };
}

static bool
is_known(const struct builder *b, const char *path, size_t len)
{
	for (size_t i = 0; i < b->nknown; i++) {
		const struct known *k = &b->known[i];

		if (k->len == len && memcmp(k->path, path, len) == 0)
			return true;
		/* Inside a mounted tree: it exists there, or the source
		 * check would have refused the plan. */
		if (k->mount && len > k->len && path[k->len] == '/' &&
		    memcmp(k->path, path, k->len) == 0)
			return true;
	}
	return false;
}

/* Makes the missing directories above `path`, root 0755. */
static void
put_parents(struct builder *b, const char *path)
{
	for (const char *p = strchr(path + 1, '/'); p != NULL;
	     p = strchr(p + 1, '/')) {
		size_t len = (size_t)(p - path);

		if (is_known(b, path, len))
			continue;
		put_dir(b->a, "0755", path, len);
		know(b, path, len, false);
	}
}

/* ---------------------------------------------------------------- parts */

static void
put_namespaces(struct builder *b)
{
	struct bwrap_args *a = b->a;

	put2(a, "--unshare-pid", "--unshare-ipc");
	put2(a, "--unshare-uts", "--unshare-cgroup");
	put2(a, "--hostname", b->in->plan->hostname);
	put3(a, "--as-pid-1", "--die-with-parent", "--new-session");
	put(a, "--clearenv");
	put3(a, "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin");
	/* What init needs to become the run's user; it drops them. */
	put2(a, "--cap-drop", "ALL");
	put2(a, "--cap-add", "CAP_SETUID");
	put2(a, "--cap-add", "CAP_SETGID");
	put2(a, "--cap-add", "CAP_SETPCAP");
	put2(a, "--cap-add", "CAP_CHOWN");
}

static void
put_system(struct builder *b)
{
	struct bwrap_args *a = b->a;
	const struct bwrap_input *in = b->in;
	const struct plan_limits *limits = &in->plan->limits;

	put3(a, "--ro-bind", "/usr", "/usr");
	for (const char *const *p = in->root_links; *p != NULL; p += 2)
		put3(a, "--symlink", p[1], p[0]);
	for (const char *const *p = in->root_binds; *p != NULL; p++)
		put3(a, "--ro-bind", *p, *p);
	put2(a, "--proc", "/proc");
	/* Bubblewrap run by root leaves these writable to uid 0 (SPEC C9). */
	put3(a, "--ro-bind", "/proc/sys", "/proc/sys");
	put3(a, "--ro-bind-try", "/proc/irq", "/proc/irq");
	put3(a, "--ro-bind-try", "/proc/bus", "/proc/bus");
	put3(a, "--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger");
	/* A device without the right to use devices: open says EACCES. */
	for (const char *const *p = in->proc_hidden; p != NULL && *p != NULL;
	     p++)
		put3(a, "--ro-bind", "/dev/null", *p);
	put2(a, "--dev", "/dev");
	/* The one that --dev makes is root's, 0755. */
	put_tmpfs(a, "1777", limits->shm_bytes, "/dev/shm");
	put_tmpfs(a, "1777", limits->tmp_bytes, "/tmp");
	put_tmpfs(a, "0755", limits->tmp_bytes, "/run");
	put_dir(a, "0755", "/run/stockade", strlen("/run/stockade"));
	put_dir(a, "0700", "/run/stockade/run", strlen("/run/stockade/run"));
	put_bind_fd(a, true, in->etc_fd, VIEW_ETC_INSIDE);
	put_bind_fd(a, true, in->init_fd, "/run/stockade/init");
	if (in->connect_fd >= 0)
		put_bind_fd(a, true, in->connect_fd, "/run/stockade/connect");
	know(b, "/tmp", strlen("/tmp"), false);
}

/* True when the plan brings this path of /etc itself. */
static bool
is_generated(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->nfiles; i++)
		if (strcmp(plan->files[i].path, path) == 0)
			return true;
	return false;
}

/* A generated file below a link would be written through it. */
static bool
file_crosses_link(const struct bwrap_input *in)
{
	for (size_t i = 0; i < in->plan->nfiles; i++)
		for (size_t k = 0; k < in->etc->nentries; k++)
			if (strcmp(in->plan->files[i].path,
				in->etc->entries[k].path) != 0 &&
			    path_is_within(in->plan->files[i].path,
				in->etc->entries[k].path))
				return true;
	return false;
}

static int
put_etc(struct builder *b, const char **why)
{
	const struct bwrap_input *in = b->in;
	const struct plan *plan = in->plan;

	if (file_crosses_link(in)) {
		*why =
		    "a generated file lies in a directory of the host's /etc";
		return -EPERM;
	}
	for (size_t i = 0; i < in->etc->nentries; i++) {
		const struct view_entry *e = &in->etc->entries[i];

		if (is_generated(plan, e->path))
			continue;
		put_parents(b, e->path);
		put3(b->a, "--symlink", e->link, e->path);
	}
	for (size_t i = 0; i < plan->nfiles; i++) {
		put_parents(b, plan->files[i].path);
		put3(b->a, "--perms", "0444", "--file");
		put_fd(b->a, in->file_fds[i]);
		put(b->a, plan->files[i].path);
	}
	return 0;
}

static bool
target_permitted(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(fixed_whole); i++)
		if (strcmp(path, fixed_whole[i]) == 0)
			return false;
	for (size_t i = 0; i < ARRAY_LEN(fixed_below); i++)
		if (path_is_within(path, fixed_below[i]))
			return false;
	return true;
}

/* HOME is private and empty, unless the plan mounts it as a whole. */
static int
put_home(struct builder *b, const char **why)
{
	const struct plan *plan = b->in->plan;
	bool mounted = false;

	if (!target_permitted(plan->home)) {
		*why = "the home directory lies in the system view";
		return -EPERM;
	}
	for (size_t i = 0; i < plan->nmounts; i++) {
		const char *target = plan->mounts[i].target;

		if (strcmp(target, plan->home) == 0) {
			mounted = true;
		} else if (path_is_within(plan->home, target)) {
			*why = "a mount would hide the home directory";
			return -EPERM;
		}
	}
	put_parents(b, plan->home);
	if (mounted)
		return 0;
	put_tmpfs(b->a, "0700", plan->limits.home_bytes, plan->home);
	know(b, plan->home, strlen(plan->home), false);
	return 0;
}

static int
put_mounts(struct builder *b, const char **why)
{
	const struct plan *plan = b->in->plan;

	for (size_t i = 0; i < plan->nmounts; i++) {
		const struct plan_mount *m = &plan->mounts[i];

		if (!target_permitted(m->target)) {
			*why = "a mount lies in the system view";
			return -EPERM;
		}
		put_parents(b, m->target);
		put_bind_fd(b->a, m->read_only, b->in->sources->mounts[i],
		    m->target);
		know(b, m->target, strlen(m->target), true);
	}
	return 0;
}

int
bwrap_args_build(const struct bwrap_input *in, struct bwrap_args *ret,
    const char **ret_why)
{
	struct builder b = { .a = ret, .in = in };
	int error;

	memset(ret, 0, sizeof(*ret));
	*ret_why = "out of memory";
	put_namespaces(&b);
	if (in->info_fd >= 0) {
		put(ret, "--info-fd");
		put_fd(ret, in->info_fd);
	}
	put_system(&b);
	error = put_etc(&b, ret_why);
	if (error == 0)
		error = put_home(&b, ret_why);
	if (error == 0)
		error = put_mounts(&b, ret_why);
	put2(ret, "--remount-ro", "/");
	put2(ret, "--chdir", "/");
	free(b.known);
	if (error == 0 && ret->error != 0) {
		error = ret->error;
		if (error == -E2BIG)
			*ret_why = "more mounts than bubblewrap takes";
	}
	if (error < 0)
		bwrap_args_done(ret);
	return error;
}

void
bwrap_args_done(struct bwrap_args *a)
{
	free(a->data);
	free(a->fds);
	memset(a, 0, sizeof(*a));
}
