/*
 * The main of a fuzz target in an ordinary build: feeds every file of the
 * target's corpus to LLVMFuzzerTestOneInput() and prints one TAP line. A
 * property that does not hold aborts, so the line is missing and the test
 * fails; the file's name has been printed before.
 *
 * fuzz_x reads tests/fuzz/corpus/x below STOCKADE_SOURCE; files named as
 * arguments are read instead of it. An empty corpus is a failure: a target
 * that sees no input tests nothing.
 */

#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INPUT_MAX (16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/*
 * Feeds one file. The buffer has exactly the input's size, so that a sanitizer
 * sees the first byte read beyond it.
 */
static void
replay_file(int dirfd, const char *name)
{
	struct stat sb;
	uint8_t *bytes;
	size_t have = 0, want;
	ssize_t n;
	int fd;

	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &sb) == -1)
		err(1, "%s", name);
	if (!S_ISREG(sb.st_mode) || sb.st_size > INPUT_MAX)
		errx(1, "%s: not a file of at most %d bytes", name, INPUT_MAX);
	want = (size_t)sb.st_size;
	bytes = malloc(want > 0 ? want : 1);
	if (bytes == NULL)
		err(1, "malloc");
	while (have < want) {
		n = read(fd, bytes + have, want - have);
		if (n == -1)
			err(1, "%s", name);
		if (n == 0)
			errx(1, "%s: became shorter", name);
		have += (size_t)n;
	}
	(void)close(fd);
	printf("# %s\n", name);
	(void)fflush(stdout);
	(void)LLVMFuzzerTestOneInput(bytes, want);
	free(bytes);
}

/* Feeds all files of a directory in the order of their names. */
static int
replay_dir(const char *path)
{
	struct dirent **names;
	int count = 0, dirfd, i, n;

	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd == -1)
		err(1, "%s", path);
	n = scandirat(dirfd, ".", &names, NULL, alphasort);
	if (n == -1)
		err(1, "%s", path);
	for (i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			replay_file(dirfd, names[i]->d_name);
			count++;
		}
		free(names[i]);
	}
	free(names);
	(void)close(dirfd);
	return (count);
}

int
main(int argc, char *argv[])
{
	char path[PATH_MAX];
	const char *name, *source;
	int count = 0, i, len;

	name = strrchr(argv[0], '/');
	name = name == NULL ? argv[0] : name + 1;
	if (strncmp(name, "fuzz_", 5) == 0)
		name += 5;
	printf("1..1\n");
	for (i = 1; i < argc; i++, count++)
		replay_file(AT_FDCWD, argv[i]);
	if (argc < 2) {
		source = getenv("STOCKADE_SOURCE");
		len = snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s",
		    source == NULL ? "." : source, name);
		if (len < 0 || (size_t)len >= sizeof(path))
			errx(1, "STOCKADE_SOURCE: too long");
		count = replay_dir(path);
	}
	if (count == 0) {
		printf("not ok 1 - %s: no inputs\n", name);
		return (1);
	}
	printf("ok 1 - %s: %d inputs\n", name, count);
	return (0);
}
