/*
 * stockade-guard: puts the guard's BPF programs into the kernel, or takes them
 * out. Started by launcherd at its own start, and by an administrator who
 * uninstalls. It reads nothing but its two arguments, the kernel's BTF and the
 * pins of an earlier start, and ends.
 *
 * It keeps CAP_SYS_ADMIN alone, which holds what loading needs (CAP_BPF and
 * CAP_PERFMON) and making the directory does not; launcherd has no more to
 * give. The last line of its output is the result:
 *
 *	ok loaded|kept PROGRAMS [MISSING HOOK]...
 *	no REASON
 */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

#include "common/priv.h"
#include "launcherd/guard/load.h"

#define LIMIT_S 120 /* an emulated machine needs a tenth of it */

static int
usage(void)
{
	(void)fprintf(stderr,
	    "usage: stockade-guard load|remove DIRECTORY\n"
	    "       stockade-guard --version\n");
	return 2;
}

static int
no(const char *why)
{
	(void)printf("no %s\n", why);
	return 1;
}

static int
load(const char *dir)
{
	struct guard_loaded loaded;

	if (guard_load(dir, &loaded) < 0)
		return no(loaded.why);
	(void)printf("ok %s %u%s%s\n", loaded.kept ? "kept" : "loaded",
	    loaded.programs, loaded.missing[0] != '\0' ? " " : "",
	    loaded.missing);
	return 0;
}

int
main(int argc, char **argv)
{
	int error, missing = -1;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		(void)printf("stockade-guard %s\n", PACKAGE_VERSION);
		return 0;
	}
	if (argc != 3)
		return usage();
	(void)alarm(LIMIT_S);
	if (priv_limit(UINT64_C(1) << CAP_SYS_ADMIN, &missing) < 0)
		return no("CAP_SYS_ADMIN is missing");
	if (strcmp(argv[1], "load") == 0)
		return load(argv[2]);
	if (strcmp(argv[1], "remove") != 0)
		return usage();
	error = guard_unload(argv[2]);
	if (error < 0)
		return no(strerror(-error));
	(void)printf("ok removed\n");
	return 0;
}
