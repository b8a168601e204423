/*
 * Writer of seccomp programs from a table of system calls, for filter_gen
 * (build time) and its test. No I/O, no allocation.
 *
 * The program checks the architecture, refuses x32, then finds the call's
 * number by a binary search over ranges of equal rows. Jumps are computed
 * here, never counted by hand. Source: seccomp(2), bpf(4);
 * Documentation/userspace-api/seccomp_filter.rst.
 */
#ifndef INIT_BPF_H
#define INIT_BPF_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a row asks about its argument. */
enum bpf_test {
	BPF_TEST_NONE, /* always fits */
	BPF_TEST_EQ, /* (low 32 bits & mask) == value */
	BPF_TEST_NE
};

/* One row of a table; `nr` is the number of the call, -1 when this machine
 * has none. */
struct bpf_call {
	const char *name;
	int nr;
	enum bpf_test test;
	unsigned arg; /* 0..5 */
	uint32_t mask;
	uint32_t value;
	uint32_t action; /* SECCOMP_RET_* with its data */
};

#define BPF_CALLS_MAX 640
#define BPF_PROGRAM_MAX 4096 /* the kernel's BPF_MAXINSNS */

/*
 * Writes the program for `calls` (n <= BPF_CALLS_MAX), whose rows of one call
 * stand together. What is not named, and calls whose rows all fail to fit, get
 * `otherwise`; other entry points get `foreign`. Returns the length in
 * instructions or -EINVAL (a call named in two places, too many), -E2BIG.
 */
ptrdiff_t bpf_write(const struct bpf_call *calls, size_t n, uint32_t otherwise,
    uint32_t foreign, struct sock_filter *out, size_t size);

#endif
