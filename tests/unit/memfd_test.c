/*
 * Sealed memfds: what a receiver may map, and what it must refuse.
 */
#include <sys/mman.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fcntl.h>

#include <cmocka.h>

#include "common/memfd.h"

static void
a_sealed_memfd_is_read_back(void **state)
{
	struct memfd_map map = { NULL, 0 };
	int fd = memfd_seal("test", "hello", 5);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(memfd_check(fd, 5), 5);
	assert_int_equal(memfd_open_map(fd, 5, &map), 0);
	(void)close(fd);
	assert_int_equal(map.len, 5);
	assert_memory_equal(map.data, "hello", 5);
	memfd_unmap(&map);
	memfd_unmap(&map);
}

static void
an_empty_one_is_an_empty_map(void **state)
{
	struct memfd_map map = { (const uint8_t *)"", 9 };
	int fd = memfd_seal("test", "", 0);

	(void)state;
	assert_int_equal(memfd_open_map(fd, 5, &map), 0);
	assert_int_equal(map.len, 0);
	memfd_unmap(&map);
	(void)close(fd);
}

static void
what_is_too_large_is_refused(void **state)
{
	int fd = memfd_seal("test", "hello", 5);

	(void)state;
	assert_int_equal(memfd_check(fd, 4), -EFBIG);
	(void)close(fd);
}

static void
nothing_can_be_written_any_more(void **state)
{
	int fd = memfd_seal("test", "hello", 5);

	(void)state;
	assert_int_equal(pwrite(fd, "J", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 1), -1);
	assert_int_equal(ftruncate(fd, 99), -1);
	assert_ptr_equal(mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			     0),
	    MAP_FAILED);
	(void)close(fd);
}

/* Each seal missing in turn. */
static void
a_missing_seal_is_refused(void **state)
{
	static const int seals[] = { F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW,
		F_SEAL_WRITE };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		int fd = memfd_create("test", MFD_ALLOW_SEALING);
		int set = 0;

		for (size_t k = 0; k < 4; k++)
			if (k != i)
				set |= seals[k];
		assert_int_equal(write(fd, "hello", 5), 5);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, set), 0);
		assert_int_equal(memfd_check(fd, 100), -EPERM);
		(void)close(fd);
	}
}

/* The twin: without the write seal the bytes change after the check. */
static void
twin_an_unsealed_memfd_changes_under_the_reader(void **state)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING);
	const char *map;

	(void)state;
	assert_int_equal(write(fd, "hello", 5), 5);
	map = mmap(NULL, 5, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(pwrite(fd, "J", 1, 0), 1);
	assert_int_equal(map[0], 'J');
	(void)close(fd);
}

static void
other_descriptors_are_refused(void **state)
{
	int pair[2];
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(memfd_check(fd, 100), -EPERM);
	(void)close(fd);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(memfd_check(fd, SIZE_MAX), -EPERM);
	(void)close(fd);
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(memfd_check(pair[0], 100), -EPERM);
	(void)close(pair[0]);
	(void)close(pair[1]);
	assert_int_equal(memfd_check(-1, 100), -EBADF);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sealed_memfd_is_read_back),
		cmocka_unit_test(an_empty_one_is_an_empty_map),
		cmocka_unit_test(what_is_too_large_is_refused),
		cmocka_unit_test(nothing_can_be_written_any_more),
		cmocka_unit_test(a_missing_seal_is_refused),
		cmocka_unit_test(
		    twin_an_unsealed_memfd_changes_under_the_reader),
		cmocka_unit_test(other_descriptors_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
