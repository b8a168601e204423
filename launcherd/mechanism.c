/*
 * See mechanism.h.
 */
#include "launcherd/mechanism.h"

#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/landlock.h"
#include "common/size.h"
#include "launcherd/launcherd.h"

#define LANDLOCK_NEEDED 2 /* REFER; see launcherd/init/guard.c */
#define WAIT_KILLABLE (1u << 5) /* Linux 5.19 */

static int
missing(char why[MECHANISM_WHY_MAX], int error, const char *text)
{
	(void)snprintf(why, MECHANISM_WHY_MAX, "%s", text);
	return error;
}

/* Without a program the kernel gets as far as its flags: EFAULT says that it
 * knows them, EINVAL that it does not. */
static bool
knows_listener(void)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		   (unsigned)SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE,
		   NULL) < 0 &&
	    errno == EFAULT;
}

/* Yama's level 3 refuses every look into another process, with or without the
 * capability, until the next boot. */
static bool
no_attach(void)
{
	autoclose int fd =
	    open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char level = '0';

	return fd >= 0 && read(fd, &level, 1) == 1 && level == '3';
}

static int
check_broker(const struct launcherd *l, char why[MECHANISM_WHY_MAX])
{
	unsigned abi = landlock_abi();

	if (l->broker_fd < 0)
		return missing(why, -ENOENT,
		    "the program stockade-broker is not there");
	if (l->broker_user.uid == 0)
		return missing(why, -ENOENT,
		    "the user stockade-broker is not there");
	if (abi == 0)
		return missing(why, -EOPNOTSUPP, "the kernel has no Landlock");
	if (abi < LANDLOCK_NEEDED)
		return missing(why, -EOPNOTSUPP,
		    "the kernel's Landlock lacks the right REFER (Linux 5.19)");
	if (!knows_listener())
		return missing(why, -EOPNOTSUPP,
		    "the kernel's seccomp lacks WAIT_KILLABLE_RECV "
		    "(Linux 5.19)");
	if (no_attach())
		return missing(why, -EPERM, "kernel.yama.ptrace_scope is 3");
	return 0;
}

static int
check_bpf(const struct launcherd *l, char why[MECHANISM_WHY_MAX])
{
	return l->kernel != NULL ? 0 : missing(why, -EOPNOTSUPP, l->kernel_why);
}

/* In the order of `auto`. */
static const struct {
	enum guard_mechanism id;
	int (*check)(const struct launcherd *, char why[MECHANISM_WHY_MAX]);
} table[] = {
	{ GUARD_BPF_LSM, check_bpf },
	{ GUARD_BROKER, check_broker },
};

enum guard_mechanism
mechanism_next(enum guard_mechanism choice, enum guard_mechanism tried)
{
	if (choice != GUARD_AUTO)
		return tried == GUARD_AUTO ? choice : GUARD_AUTO;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (tried == GUARD_AUTO)
			return table[i].id;
		else if (table[i].id == tried)
			tried = GUARD_AUTO;
	return GUARD_AUTO;
}

int
mechanism_check(const struct launcherd *l, enum guard_mechanism mechanism,
    char why[MECHANISM_WHY_MAX])
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].id == mechanism)
			return table[i].check(l, why);
	return missing(why, -EOPNOTSUPP,
	    "no mechanism for name rules has passed its test");
}
