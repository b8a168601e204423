/*
 * The three Landlock calls and the rights by level of the kernel (landlock(7),
 * Documentation/userspace-api/landlock.rst): for stockade-init and
 * stockade-lookup, and below confine_landlock() for the daemons. Own numbers,
 * since the build machine's headers may be older than the kernel that runs the
 * program.
 */
#ifndef COMMON_LANDLOCK_H
#define COMMON_LANDLOCK_H

#include <stdint.h>

#define LANDLOCK_EXECUTE (1ull << 0)
#define LANDLOCK_WRITE_FILE (1ull << 1)
#define LANDLOCK_READ_FILE (1ull << 2)
#define LANDLOCK_READ_DIR (1ull << 3)
#define LANDLOCK_REMOVE_DIR (1ull << 4)
#define LANDLOCK_REMOVE_FILE (1ull << 5)
#define LANDLOCK_MAKE_CHAR (1ull << 6)
#define LANDLOCK_MAKE_DIR (1ull << 7)
#define LANDLOCK_MAKE_REG (1ull << 8)
#define LANDLOCK_MAKE_SOCK (1ull << 9)
#define LANDLOCK_MAKE_FIFO (1ull << 10)
#define LANDLOCK_MAKE_BLOCK (1ull << 11)
#define LANDLOCK_MAKE_SYM (1ull << 12)
#define LANDLOCK_REFER (1ull << 13) /* level 2, Linux 5.19 */
#define LANDLOCK_TRUNCATE (1ull << 14) /* level 3, Linux 6.2 */
#define LANDLOCK_IOCTL_DEV (1ull << 15) /* level 5, Linux 6.10 */

#define LANDLOCK_READ \
	(LANDLOCK_EXECUTE | LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
/* No device is ever made: MAKE_CHAR and MAKE_BLOCK are granted nowhere. */
#define LANDLOCK_WRITE \
	(LANDLOCK_WRITE_FILE | LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE | \
	    LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SOCK | \
	    LANDLOCK_MAKE_FIFO | LANDLOCK_MAKE_SYM | LANDLOCK_REFER | \
	    LANDLOCK_TRUNCATE)
/* The rights that the kernel accepts for what is not a directory. */
#define LANDLOCK_OF_FILE \
	(LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | \
	    LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV)

/* Level of the kernel, 0 without Landlock. */
unsigned landlock_abi(void);

/* Every right of that level. */
uint64_t landlock_rights(unsigned abi);

/* What a ruleset may take away besides files, where the level has it. */
#define LANDLOCK_TCP_BIND 1u /* level 4, Linux 6.7 */
#define LANDLOCK_TCP_CONNECT 2u
#define LANDLOCK_SCOPES 4u /* abstract sockets, signals: level 6, Linux 6.12 */

/* A ruleset that handles every file right of the level, and what `more` adds.
 * Descriptor or -errno. */
int landlock_new(unsigned abi, unsigned more);

/* A ruleset that handles these file rights alone, which the level must have.
 * Descriptor or -errno. */
int landlock_new_rights(uint64_t rights);

/* Grants rights beneath the O_PATH descriptor: some, all of the level, and of
 * something else than a directory only LANDLOCK_OF_FILE. 0 or -errno. */
int landlock_grant(int ruleset, int path_fd, uint64_t rights);

/* Needs no_new_privs. */
int landlock_enter(int ruleset);

#endif
