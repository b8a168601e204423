/*
 * See probe.h. A row is ok only when the forbidden act was tried here and the
 * kernel refused it, in the way that the mechanism refuses; an act that could
 * not be tried is a failure. Runs with the run's ids inside the confinement,
 * so it may do no more than any command of a run; outside of one its rows
 * fail, which the tests use as the twin.
 */
#include "launcherd/init/probe.h"

#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/size.h"

#define STATUS_MAX 8192
#define DETAIL_MAX 200

/* A row's result; detail is one line of our own words. */
struct result {
	bool ok;
	char detail[DETAIL_MAX];
};

static void __attribute__((format(printf, 3, 4)))
set(struct result *r, bool ok, const char *fmt, ...)
{
	va_list ap;

	r->ok = ok;
	va_start(ap, fmt);
	(void)vsnprintf(r->detail, sizeof(r->detail), fmt, ap);
	va_end(ap);
}

/* Value of a line of /proc/self/status, "" when there is none. */
static void
status_value(const char *key, char *ret, size_t size)
{
	char text[STATUS_MAX];
	autoclose int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	size_t key_len = strlen(key);
	ssize_t n;

	ret[0] = '\0';
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	for (const char *p = text; p != NULL; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, key, key_len) != 0 || p[key_len] != ':')
			continue;
		p += key_len + 1;
		p += strspn(p, "\t ");
		(void)snprintf(ret, size, "%.*s", (int)strcspn(p, "\n"), p);
		return;
	}
}

static bool
status_is(struct result *r, const char *key, const char *want)
{
	char got[64];

	status_value(key, got, sizeof(got));
	if (strcmp(got, want) == 0)
		return true;
	set(r, false, "%s is %s, not %s", key, got[0] == '\0' ? "unknown" : got,
	    want);
	return false;
}

static void
probe_identity(struct result *r)
{
	uid_t ruid = 0, euid = 0, suid = 0;

	if (getresuid(&ruid, &euid, &suid) < 0 || ruid == 0 || euid == 0 ||
	    suid == 0)
		set(r, false, "uid 0 inside");
	else if (setuid(0) == 0)
		set(r, false, "uid 0 can be regained");
	else
		set(r, true, "uid %u", (unsigned)ruid);
}

static void
probe_capabilities(struct result *r)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff",
		"CapBnd", "CapAmb" };

	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		if (!status_is(r, sets[i], "0000000000000000"))
			return;
	if (status_is(r, "NoNewPrivs", "1"))
		set(r, true, "no capability in any set, no_new_privs");
}

static void
probe_seccomp(struct result *r)
{
	char byte = 'x';

	if (!status_is(r, "Seccomp", "2"))
		return;
	/* Refused by the filter before the descriptor is looked at. */
	if (ioctl(-1, TIOCSTI, &byte) == 0 || errno != EPERM)
		set(r, false, "TIOCSTI: %s", strerror(errno));
	else if (syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, 1u) >=
		0 ||
	    errno != EOPNOTSUPP)
		set(r, false, "landlock_create_ruleset: %s", strerror(errno));
	else if (socket(AF_PACKET, SOCK_DGRAM, 0) >= 0 || errno != EPERM)
		set(r, false, "AF_PACKET: %s", strerror(errno));
	else
		set(r, true, "allow-list in force");
}

/*
 * Landlock is asked before capabilities are (do_mknodat() of the kernel:
 * security_path_mknod, then vfs_mknod), so the errno of a device in a private
 * directory tells which of them refused: EACCES is Landlock's, EPERM says that
 * only CAP_MKNOD was missing. A pipe in the same place shows that the place is
 * writable. Not the device 0:0, which overlayfs takes for a deleted file:
 * kernels of 2026 count it as an ordinary file (MAKE_REG), which is granted.
 */
static void
probe_landlock(struct result *r)
{
	char dir[] = "/tmp/.stockade-probe-XXXXXX";
	char node[sizeof(dir) + 2];
	int made, e;

	if (mkdtemp(dir) == NULL) {
		set(r, false, "/tmp is not writable: %s", strerror(errno));
		return;
	}
	(void)snprintf(node, sizeof(node), "%s/n", dir);
	if (mkfifo(node, 0600) < 0) {
		set(r, false, "no pipe in /tmp: %s", strerror(errno));
		(void)rmdir(dir);
		return;
	}
	(void)unlink(node);
	made = mknod(node, S_IFCHR | 0600, makedev(1, 3));
	e = errno;
	if (made == 0) {
		(void)unlink(node);
		set(r, false, "a device was made that Landlock forbids");
	} else {
		set(r, e == EACCES, "refused with %s", strerror(e));
	}
	(void)rmdir(dir);
}

static void
probe_create(struct result *r)
{
	static const char *const paths[] = { "/.stockade-probe",
		"/usr/.stockade-probe", "/etc/.stockade-probe",
		"/run/.stockade-probe", "/run/stockade/.stockade-probe",
		"/home/.stockade-probe" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		int fd = open(paths[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		if (fd >= 0) {
			(void)close(fd);
			(void)unlink(paths[i]);
			set(r, false, "%s was made", paths[i]);
			return;
		}
		if (errno != EROFS && errno != EACCES && errno != EPERM) {
			set(r, false, "%s: %s", paths[i], strerror(errno));
			return;
		}
	}
	set(r, true, "refused outside the mounts");
}

static void
probe_read(struct result *r)
{
	static const char *const paths[] = { "/etc/shadow", "/root", "/boot",
		"/var/lib", "/sys/kernel", "/proc/1/mem", "/proc/1/root",
		"/proc/1/fd/3" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0) {
			(void)close(fd);
			set(r, false, "%s can be opened", paths[i]);
			return;
		}
	}
	set(r, true, "nothing outside the view, nothing of pid 1");
}

static bool
connect_fails(const struct sockaddr *sa, socklen_t len, int family)
{
	autoclose int fd =
	    socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return true;
	/* At once: EINPROGRESS would mean that a packet has left. */
	return connect(fd, sa, len) < 0 && errno != EINPROGRESS;
}

static void
probe_egress(struct result *r)
{
	static const char *const v4[] = { "192.0.2.1", "1.1.1.1",
		"169.254.169.254", "10.0.0.1" };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		.sin6_port = htons(443) };

	for (size_t i = 0; i < ARRAY_LEN(v4); i++) {
		struct sockaddr_in four = { .sin_family = AF_INET,
			.sin_port = htons(443) };
		union {
			const struct sockaddr_in *in;
			const struct sockaddr *sa;
		} p = { .in = &four };

		if (inet_pton(AF_INET, v4[i], &four.sin_addr) != 1 ||
		    !connect_fails(p.sa, sizeof(four), AF_INET)) {
			set(r, false, "%s can be reached", v4[i]);
			return;
		}
	}
	if (inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr) != 1 ||
	    !connect_fails((const struct sockaddr *)&six, sizeof(six),
		AF_INET6)) {
		set(r, false, "2001:db8::1 can be reached");
		return;
	}
	set(r, true, "no route but the proxy");
}

static void
probe_userns(struct result *r)
{
	/* unshare itself is allowed for other flags: it must be the flag. */
	if (unshare(CLONE_FS) < 0)
		set(r, false, "unshare cannot be tried: %s", strerror(errno));
	else if (unshare(CLONE_NEWUSER) == 0)
		set(r, false, "a user namespace was made");
	else if (errno != EPERM)
		set(r, false, "unshare: %s", strerror(errno));
	else if (syscall(SYS_clone3, NULL, (size_t)0) >= 0 || errno != ENOSYS)
		set(r, false, "clone3: %s", strerror(errno));
	else if (mount("none", "/tmp", "tmpfs", 0, NULL) == 0)
		set(r, false, "a mount was made");
	else
		set(r, true, "refused with EPERM");
}

static void
probe_procsys(struct result *r)
{
	static const char *const paths[] = { "/proc/sys/kernel/core_pattern",
		"/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_forward",
		"/proc/sysrq-trigger", "/proc/irq/default_smp_affinity" };
	struct statvfs fs;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		int fd = open(paths[i], O_WRONLY | O_CLOEXEC);

		if (fd >= 0) {
			(void)close(fd);
			set(r, false, "%s can be written", paths[i]);
			return;
		}
	}
	/* For every uid: the mount, not the mode of a file, must say no. */
	if (statvfs("/proc/sys", &fs) < 0 || (fs.f_flag & ST_RDONLY) == 0)
		set(r, false, "/proc/sys is not mounted read-only");
	else
		set(r, true, "read-only for every uid");
}

static void
probe_namespaces(struct result *r)
{
	/* pid 1 is ours, and nobody else's processes are seen. */
	if (kill(1, 0) < 0)
		set(r, false, "pid 1: %s", strerror(errno));
	else if (access("/sys/class/net", F_OK) == 0)
		set(r, false, "/sys is there");
	else if (access("/run/stockade/init", X_OK) < 0)
		set(r, false, "not the run's view");
	else
		set(r, true, "pid %d of its own", (int)getpid());
}

/* A name could be made all the same: it must not stay. */
static bool
refused(struct result *r, int ret, const char *made, const char *what)
{
	int error = errno;

	if (ret < 0 && error == EPERM)
		return true;
	if (ret >= 0)
		(void)unlinkat(AT_FDCWD, made, 0);
	set(r, false, "%s: %s", what,
	    ret >= 0 ? "not refused" : strerror(error));
	return false;
}

static int
create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -1 : close(fd);
}

/* launcherd counts the refusals (PROBE_GUARD_DENIALS, and one for each of the
 * other rows that is ok) and looks whether something was left. */
static void
probe_guard_create(struct result *r)
{
	static const char plain[] = PROBE_TREE "/plain";
	static const char protected[] = PROBE_TREE "/.env";
	static const char tree[] = PROBE_TREE "/.git2";
	static const char hooks[] = PROBE_TREE "/.git2/hooks";
	static const char hook[] = PROBE_TREE "/.git2/hooks/x";
	static const char git[] = PROBE_TREE "/.git";

	if (create(plain) < 0 || mkdir(tree, 0700) < 0 ||
	    mkdir(hooks, 0700) < 0 || create(hook) < 0) {
		set(r, false, "what is allowed fails: %s", strerror(errno));
		return;
	}
	if (!refused(r, create(protected), protected, "creating .env") ||
	    !refused(r, rename(plain, protected), protected,
		"renaming to .env") ||
	    !refused(r, rename(tree, git), git, "renaming a tree to .git") ||
	    !refused(r, create(git), git, "creating a file .git"))
		return;
	if (unlink(hook) < 0 || rmdir(hooks) < 0 || rmdir(tree) < 0 ||
	    unlink(plain) < 0)
		set(r, false, "removing what is allowed: %s", strerror(errno));
	else
		set(r, true, "refused with EPERM");
}

/* The rule is about reading alone: it can be made and removed. */
static void
probe_guard_read(struct result *r)
{
	static const char secret[] = PROBE_TREE "/" PROBE_READ_NAME;
	int fd;

	if (create(secret) < 0) {
		set(r, false, "what is allowed fails: %s", strerror(errno));
		return;
	}
	fd = open(secret, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == EPERM)
		set(r, true, "refused with EPERM");
	else
		set(r, false, "%s", fd < 0 ? strerror(errno) : "not refused");
	close_all(&fd, 1);
	(void)unlink(secret);
}

/* A socket of its own, which nothing but the rule stands before. */
static void
probe_guard_connect(struct result *r)
{
	static const struct sockaddr_un address = { .sun_family = AF_UNIX,
		.sun_path = PROBE_TREE "/" PROBE_CONNECT_NAME };
	union {
		const struct sockaddr_un *in;
		const struct sockaddr *sa;
	} p = { .in = &address };
	autoclose int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	autoclose int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (server < 0 || client < 0 ||
	    bind(server, p.sa, sizeof(address)) < 0 || listen(server, 1) < 0)
		set(r, false, "what is allowed fails: %s", strerror(errno));
	else if (connect(client, p.sa, sizeof(address)) == 0)
		set(r, false, "not refused");
	else
		set(r, errno == EPERM, "refused with %s",
		    errno == EPERM ? "EPERM" : strerror(errno));
	(void)unlink(address.sun_path);
}

struct row {
	const char *name;
	void (*fn)(struct result *);
};
static const struct row rows[] = {
	{ "identity", probe_identity },
	{ "capabilities", probe_capabilities },
	{ "seccomp", probe_seccomp },
	{ "landlock", probe_landlock },
	{ "files.create", probe_create },
	{ "files.read", probe_read },
	{ "egress.refuse", probe_egress },
	{ "userns.refused", probe_userns },
	{ "procsys.readonly", probe_procsys },
	{ "namespaces", probe_namespaces },
};

static const struct row guard_rows[] = {
	{ "guard.create", probe_guard_create },
	{ "guard.read", probe_guard_read },
	{ "guard.connect", probe_guard_connect },
};

int
probe_main(bool guard)
{
	const struct row *row = guard ? guard_rows : rows;
	size_t n = guard ? ARRAY_LEN(guard_rows) : ARRAY_LEN(rows);
	bool all = true;

	for (size_t i = 0; i < n; i++) {
		struct result r = { false, "not tried" };

		row[i].fn(&r);
		(void)printf("%s %s %s\n", row[i].name, r.ok ? "ok" : "fail",
		    r.detail);
		all = all && r.ok;
	}
	(void)printf("end ok rows=%zu\n", n);
	if (fflush(stdout) != 0)
		return 1;
	return all ? 0 : 1;
}
