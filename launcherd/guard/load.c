/*
 * See load.h. libbpf reads one object, which is part of this program, and the
 * kernel's own BTF; there is no other input.
 */
#include "launcherd/guard/load.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/magic.h>

#include "common/cleanup.h"
#include "common/size.h"
#include "launcherd/guard/guard.skel.h"
#include "launcherd/guard/policy.h"

#define ARGS_MAX 4
#define DIR_MAX 512
#define PIN_MAX (DIR_MAX + 64)
#define LOG_BYTES 8192
#define LSM_LIST "/sys/kernel/security/lsm"
#define LOCKDOWN "/sys/kernel/security/lockdown"
#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

/*
 * What each program takes its arguments for: the kernel's BTF must say the
 * same, else the program is left out. NULL: not looked at.
 */
static const struct hook {
	const char *program;
	const char *hook;
	bool mandatory; /* one program of the hook must fit */
	const char *args[ARGS_MAX];
} hooks[] = {
	{ "guard_task_alloc", "task_alloc", true, { "task_struct" } },
	{ "guard_bpf", "bpf", false, { NULL } },
	{ "guard_inode_create", "inode_create", true, { NULL, "dentry" } },
	{ "guard_inode_mknod", "inode_mknod", true, { NULL, "dentry" } },
	{ "guard_inode_mkdir", "inode_mkdir", true, { NULL, "dentry" } },
	{ "guard_inode_symlink", "inode_symlink", true, { NULL, "dentry" } },
	{ "guard_inode_unlink", "inode_unlink", true, { NULL, "dentry" } },
	{ "guard_inode_rmdir", "inode_rmdir", true, { NULL, "dentry" } },
	{ "guard_inode_link", "inode_link", true,
	    { "dentry", NULL, "dentry" } },
	{ "guard_inode_rename", "inode_rename", true,
	    { NULL, "dentry", NULL, "dentry" } },
	{ "guard_inode_setattr_0", "inode_setattr", true,
	    { "dentry", "iattr" } },
	{ "guard_inode_setattr_1", "inode_setattr", true,
	    { NULL, "dentry", "iattr" } },
	{ "guard_inode_setxattr_0", "inode_setxattr", true, { "dentry" } },
	{ "guard_inode_setxattr_1", "inode_setxattr", true,
	    { NULL, "dentry" } },
	{ "guard_inode_removexattr_0", "inode_removexattr", true,
	    { "dentry" } },
	{ "guard_inode_removexattr_1", "inode_removexattr", true,
	    { NULL, "dentry" } },
	{ "guard_inode_set_acl_0", "inode_set_acl", false, { "dentry" } },
	{ "guard_inode_set_acl_1", "inode_set_acl", false, { NULL, "dentry" } },
	{ "guard_inode_remove_acl_0", "inode_remove_acl", false, { "dentry" } },
	{ "guard_inode_remove_acl_1", "inode_remove_acl", false,
	    { NULL, "dentry" } },
	{ "guard_file_open", "file_open", true, { "file" } },
	{ "guard_file_receive", "file_receive", false, { "file" } },
	{ "guard_file_truncate", "file_truncate", false, { "file" } },
	{ "guard_bprm_check_security", "bprm_check_security", false,
	    { "linux_binprm" } },
	{ "guard_unix_stream_connect", "unix_stream_connect", false,
	    { NULL, "sock" } },
	{ "guard_unix_may_send", "unix_may_send", false, { NULL, "socket" } },
};

static int __attribute__((format(printf, 3, 4)))
fail(struct guard_loaded *l, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(l->why, sizeof(l->why), fmt, ap);
	va_end(ap);
	return error;
}

static void
pin_path(char ret[PIN_MAX], const char *dir, const char *name)
{
	(void)snprintf(ret, PIN_MAX, "%.*s/%.48s", DIR_MAX, dir, name);
}

/* ---------------------------------------------------------------- the host */

/* The first bytes of a small file; false when it cannot be read. */
static bool
read_text(int dir, const char *path, char *buf, size_t size)
{
	autoclose int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (n < 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

static bool
has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; (p = strstr(p, word)) != NULL; p += len)
		if ((p == list || p[-1] == ',') &&
		    (p[len] == ',' || p[len] == '\0'))
			return true;
	return false;
}

/* The scheduler's choice, from a debugfs of our own that nobody else sees;
 * false when the kernel has none to make. */
static bool
read_preemption(char *buf, size_t size)
{
	autoclose int fs = fsopen("debugfs", FSOPEN_CLOEXEC);
	autoclose int mnt = -1;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return false;
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	return mnt >= 0 && read_text(mnt, "sched/preempt", buf, size);
}

/*
 * Before Linux 6.2 a program is skipped when the same one was interrupted by
 * the scheduler on the same processor, and the look-up of a label fails in the
 * same way: an access of a run would pass unjudged. Where the scheduler does
 * not interrupt the kernel (none, voluntary) that cannot be.
 */
const char *
guard_preemption_why(void)
{
	static const char why[] =
	    "before Linux 6.2 a fully preemptible kernel can skip BPF programs "
	    "(boot with preempt=voluntary)";
	unsigned major = 0, minor = 0;
	struct utsname name;
	char text[128];

	if (uname(&name) < 0 ||
	    sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return "the kernel's version cannot be read";
	if (major > 6 || (major == 6 && minor >= 2))
		return NULL;
	if (read_preemption(text, sizeof(text)))
		return strstr(text, "(none)") != NULL ||
			strstr(text, "(voluntary)") != NULL ?
		    NULL :
		    why;
	return strstr(name.version, "PREEMPT") == NULL ? NULL : why;
}

static int
check_host(struct guard_loaded *l)
{
	const char *why = guard_preemption_why();
	char text[256];

	if (read_text(AT_FDCWD, LSM_LIST, text, sizeof(text)) &&
	    !has_word(text, "bpf"))
		return fail(l, -EOPNOTSUPP,
		    "bpf is not among the kernel's security modules (boot with "
		    "lsm=%.128s,bpf)",
		    text);
	if (access(KERNEL_BTF, R_OK) < 0)
		return fail(l, -EOPNOTSUPP, "the kernel has no BTF (%s: %s)",
		    KERNEL_BTF, strerror(errno));
	if (read_text(AT_FDCWD, LOCKDOWN, text, sizeof(text)) &&
	    strstr(text, "[confidentiality]") != NULL)
		return fail(l, -EPERM,
		    "the kernel is locked down for confidentiality");
	if (why != NULL)
		return fail(l, -EOPNOTSUPP, "%s", why);
	return 0;
}

/* ---------------------------------------------------------------- hooks */

static bool
points_to(const struct btf *btf, uint32_t id, const char *name)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	const char *has;

	if (t == NULL || !btf_is_ptr(t))
		return false;
	do {
		t = btf__type_by_id(btf, t->type);
	} while (t != NULL && btf_is_mod(t));
	if (t == NULL || !btf_is_struct(t))
		return false;
	has = btf__name_by_offset(btf, t->name_off);
	return has != NULL && strcmp(has, name) == 0;
}

static bool
fits(const struct btf *btf, const struct hook *h)
{
	const struct btf_type *t;
	const struct btf_param *p;
	char name[64];
	int id;

	(void)snprintf(name, sizeof(name), "bpf_lsm_%s", h->hook);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	t = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);
	t = t == NULL ? NULL : btf__type_by_id(btf, t->type);
	if (t == NULL || !btf_is_func_proto(t))
		return false;
	p = btf_params(t);
	for (size_t i = 0; i < ARGS_MAX; i++)
		if (h->args[i] != NULL &&
		    (i >= btf_vlen(t) ||
			!points_to(btf, p[i].type, h->args[i])))
			return false;
	return true;
}

/* Programs whose hook is not there, or has other arguments, are left out. */
static int
choose(struct guard_bpf *skel, struct guard_loaded *l)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool seen = false;
	size_t len = 0;
	int error = 0;

	if (btf == NULL)
		return fail(l, -errno, "the kernel's BTF cannot be read: %s",
		    strerror(errno));
	for (size_t i = 0; i < ARRAY_LEN(hooks) && error == 0; i++) {
		const struct hook *h = &hooks[i];
		struct bpf_program *prog =
		    bpf_object__find_program_by_name(skel->obj, h->program);
		bool fit = prog != NULL && fits(btf, h);
		bool last = i + 1 == ARRAY_LEN(hooks) ||
		    strcmp(hooks[i + 1].hook, h->hook) != 0;

		seen |= fit;
		if (prog != NULL)
			(void)bpf_program__set_autoload(prog, fit);
		l->programs += fit;
		if (!last)
			continue;
		if (!seen && h->mandatory)
			error = fail(l, -EOPNOTSUPP,
			    "the kernel's hook %s is missing or has unknown "
			    "arguments",
			    h->hook);
		else if (!seen && len < sizeof(l->missing))
			len += (size_t)snprintf(l->missing + len,
			    sizeof(l->missing) - len, "%s%s",
			    len > 0 ? " " : "", h->hook);
		seen = false;
	}
	btf__free(btf);
	return error;
}

/* ---------------------------------------------------------------- loading */

static char kernel_log[LOG_BYTES];

/* The last line of what libbpf says: usually the verifier's reason. */
static int __attribute__((format(printf, 2, 0)))
on_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (getenv("STOCKADE_GUARD_LOG") != NULL)
		return vfprintf(stderr, fmt, ap);
	if (level == LIBBPF_WARN && kernel_log[0] == '\0')
		return vsnprintf(kernel_log, sizeof(kernel_log), fmt, ap);
	return 0;
}

static int
open_programs(struct guard_loaded *l, struct guard_bpf **ret)
{
	struct guard_bpf *skel;
	int error;

	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	(void)libbpf_set_print(on_print);
	skel = guard_bpf__open();
	if (skel == NULL)
		return fail(l, -errno, "the programs cannot be read: %s",
		    strerror(errno));
	error = choose(skel, l);
	if (error == 0) {
		error = guard_bpf__load(skel);
		kernel_log[strcspn(kernel_log, "\n")] = '\0';
		if (error == -EPERM)
			error = fail(l, error,
			    "the kernel refuses to load BPF programs for "
			    "security hooks");
		else if (error < 0)
			error = fail(l, error, "loading: %s (%.160s)",
			    strerror(-error), kernel_log);
	}
	if (error < 0)
		guard_bpf__destroy(skel);
	else
		*ret = skel;
	return error;
}

static int
attach(struct guard_bpf *skel, const char *dir, struct guard_loaded *l)
{
	for (size_t i = 0; i < ARRAY_LEN(hooks); i++) {
		struct bpf_program *prog =
		    bpf_object__find_program_by_name(skel->obj,
			hooks[i].program);
		struct bpf_link *link;
		char path[PIN_MAX];
		int error;

		if (prog == NULL || !bpf_program__autoload(prog))
			continue;
		link = bpf_program__attach_lsm(prog);
		if (link == NULL)
			return fail(l, -errno, "attaching %s: %s",
			    hooks[i].hook, strerror(errno));
		pin_path(path, dir, hooks[i].program);
		error = bpf_link__pin(link, path);
		/* The pin holds it, or nothing does. */
		(void)bpf_link__destroy(link);
		if (error < 0)
			return fail(l, error, "pinning %s: %s", path,
			    strerror(-error));
	}
	return 0;
}

static int
pin_maps(struct guard_bpf *skel, const char *dir, struct guard_loaded *l)
{
	struct {
		const char *name;
		struct bpf_map *map;
	} const maps[] = {
		{ "labels", skel->maps.labels },
		{ "runs", skel->maps.runs },
		{ "places", skel->maps.places_of_runs },
		{ "events", skel->maps.events },
		{ "lost", skel->maps.lost },
		{ "about", skel->maps.about },
	};
	char path[PIN_MAX];
	int error = 0;

	for (size_t i = 0; i < ARRAY_LEN(maps) && error == 0; i++) {
		pin_path(path, dir, maps[i].name);
		error = bpf_map__pin(maps[i].map, path);
		if (error < 0)
			return fail(l, error, "pinning %s: %s", path,
			    strerror(-error));
	}
	return 0;
}

/* FNV-1a: tells builds apart, no more. */
static uint64_t
object_hash(void)
{
	size_t size;
	const uint8_t *p = guard_bpf__elf_bytes(&size);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static int
fill(const char *dir, struct guard_loaded *l)
{
	struct guard_about about = { .layout = GUARD_LAYOUT,
		.object = object_hash(),
		.complete = 1 };
	struct guard_bpf *skel = NULL;
	const uint32_t zero = 0;
	int error = open_programs(l, &skel);

	if (error == 0)
		error = pin_maps(skel, dir, l);
	if (error == 0)
		error = attach(skel, dir, l);
	/* Last: what is not complete is not used. */
	if (error == 0 &&
	    bpf_map_update_elem(bpf_map__fd(skel->maps.about), &zero, &about,
		BPF_ANY) < 0)
		error = fail(l, -errno, "the mark of completeness: %s",
		    strerror(errno));
	if (skel != NULL)
		guard_bpf__destroy(skel);
	return error;
}

/* ---------------------------------------------------------------- the pins */

static bool
is_current(const char *dir)
{
	struct guard_about about = { .complete = 0 };
	const uint32_t zero = 0;
	autoclose int fd = -1;
	char path[PIN_MAX];

	pin_path(path, dir, "about");
	fd = bpf_obj_get(path);
	if (fd < 0 || bpf_map_lookup_elem(fd, &zero, &about) < 0 ||
	    about.complete != 1 || about.layout != GUARD_LAYOUT ||
	    about.object != object_hash())
		return false;
	/* Pins cannot be made to mean something else, but removed. */
	for (size_t i = 0; i < ARRAY_LEN(hooks); i++) {
		if (!hooks[i].mandatory ||
		    (i + 1 < ARRAY_LEN(hooks) &&
			strcmp(hooks[i].hook, hooks[i + 1].hook) == 0) ||
		    (i > 0 && strcmp(hooks[i].hook, hooks[i - 1].hook) == 0))
			continue;
		pin_path(path, dir, hooks[i].program);
		if (access(path, F_OK) < 0)
			return false;
	}
	return true;
}

static int
remove_pins(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int error = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : -errno;
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.' &&
		    unlinkat(dirfd(d), e->d_name, 0) < 0 && errno != ENOENT)
			error = -errno;
	(void)closedir(d);
	return error < 0 ? error : rmdir(dir) < 0 ? -errno : 0;
}

/* "dir" -> "dir-new", and whether dir is a name directly in a BPF file
 * system. */
static int
check_dir(const char *dir, char ret_new[DIR_MAX], struct guard_loaded *l)
{
	char parent[DIR_MAX];
	const char *slash = strrchr(dir, '/');
	struct statfs fs;

	if (slash == NULL || slash == dir || slash[1] == '\0' ||
	    snprintf(ret_new, DIR_MAX, "%s-new", dir) >= DIR_MAX)
		return fail(l, -EINVAL, "%s is no place for pins", dir);
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - dir), dir);
	if (statfs(parent, &fs) < 0 || fs.f_type != BPF_FS_MAGIC)
		return fail(l, -ENODEV, "no BPF file system is mounted at %s",
		    parent);
	return 0;
}

int
guard_unload(const char *dir)
{
	struct guard_loaded unused;
	char fresh[DIR_MAX];
	int error = check_dir(dir, fresh, &unused), other;

	if (error < 0)
		return error == -ENODEV ? 0 : error;
	error = remove_pins(fresh);
	other = remove_pins(dir);
	return error < 0 ? error : other;
}

int
guard_load(const char *dir, struct guard_loaded *ret)
{
	char fresh[DIR_MAX];
	int error;

	memset(ret, 0, sizeof(*ret));
	error = check_host(ret);
	if (error == 0)
		error = check_dir(dir, fresh, ret);
	if (error < 0)
		return error;
	(void)remove_pins(fresh);
	if (is_current(dir)) {
		ret->kept = true;
		return 0;
	}
	if (mkdir(fresh, 0700) < 0)
		return fail(ret, -errno, "%s: %s", fresh, strerror(errno));
	error = fill(fresh, ret);
	if (error == 0) {
		error = remove_pins(dir);
		if (error == 0 && rename(fresh, dir) < 0)
			error = -errno;
		if (error < 0)
			(void)fail(ret, error, "%s: %s", dir, strerror(-error));
	}
	if (error < 0)
		(void)remove_pins(fresh);
	return error;
}
