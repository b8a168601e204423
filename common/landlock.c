/* See landlock.h. No policy here, and nothing from outside reaches it. */
#include "common/landlock.h"

#include <sys/syscall.h>

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define CREATE_VERSION 1u
#define RULE_PATH_BENEATH 1
#define NET_BIND_TCP (1ull << 0)
#define NET_CONNECT_TCP (1ull << 1)
#define SCOPE_ABSTRACT_UNIX (1ull << 0)
#define SCOPE_SIGNAL (1ull << 1)
#define RIGHTS_1 ((1ull << 13) - 1)

/* The kernel takes a longer struct when what it does not know is zero, and a
 * shorter one always; level 6 knows all three members. */
struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

unsigned
landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0,
	    CREATE_VERSION);

	return abi < 0 ? 0 : (unsigned)abi;
}

uint64_t
landlock_rights(unsigned abi)
{
	return (abi >= 1 ? RIGHTS_1 : 0) | (abi >= 2 ? LANDLOCK_REFER : 0) |
	    (abi >= 3 ? LANDLOCK_TRUNCATE : 0) |
	    (abi >= 5 ? LANDLOCK_IOCTL_DEV : 0);
}

int
landlock_new(unsigned abi, unsigned more)
{
	struct ruleset_attr attr = {
		.handled_access_fs = landlock_rights(abi),
	};
	size_t size = sizeof(attr.handled_access_fs);
	long fd;

	if (abi >= 4) {
		size = offsetof(struct ruleset_attr, scoped);
		if ((more & LANDLOCK_TCP_BIND) != 0)
			attr.handled_access_net |= NET_BIND_TCP;
		if ((more & LANDLOCK_TCP_CONNECT) != 0)
			attr.handled_access_net |= NET_CONNECT_TCP;
	}
	if (abi >= 6) {
		size = sizeof(attr);
		if ((more & LANDLOCK_SCOPES) != 0)
			attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	}
	fd = syscall(SYS_landlock_create_ruleset, &attr, size, 0u);
	return fd < 0 ? -errno : (int)fd;
}

int
landlock_new_rights(uint64_t rights)
{
	struct ruleset_attr attr = { .handled_access_fs = rights };
	long fd = syscall(SYS_landlock_create_ruleset, &attr,
	    sizeof(attr.handled_access_fs), 0u);

	return fd < 0 ? -errno : (int)fd;
}

int
landlock_grant(int ruleset, int path_fd, uint64_t rights)
{
	struct path_beneath_attr attr = { rights, path_fd };

	return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr,
		   0u) < 0 ?
	    -errno :
	    0;
}

int
landlock_enter(int ruleset)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0u) < 0 ? -errno :
								      0;
}
