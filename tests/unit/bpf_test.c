/*
 * The seccomp programs that stockade-init and stockade-lookup load, executed
 * here by a small interpreter on every number, against the tables they were
 * made from.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <sys/syscall.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cmocka.h>

#include "common/size.h"
#include "launcherd/init/bpf.h"

#include "launcherd/init/guard_filter.h"
#include "launcherd/init/run_filter.h"
#include "launcherd/lookup/lookup_filter.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif
#define FOREIGN AUDIT_ARCH_I386
#define ALLOW SECCOMP_RET_ALLOW
#define REFUSE(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))

/* The instructions that bpf_write() uses; anything else fails the test. */
static uint32_t
run(const struct sock_filter *f, size_t n, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &f[pc];

		if (i->code == (BPF_LD | BPF_W | BPF_ABS)) {
			assert_true(i->k + sizeof(a) <= sizeof(*d));
			memcpy(&a, (const char *)d + i->k, sizeof(a));
		} else if (i->code == (BPF_ALU | BPF_AND | BPF_K)) {
			a &= i->k;
		} else if (i->code == (BPF_JMP | BPF_JEQ | BPF_K)) {
			pc += a == i->k ? i->jt : i->jf;
		} else if (i->code == (BPF_JMP | BPF_JGE | BPF_K)) {
			pc += a >= i->k ? i->jt : i->jf;
		} else if (i->code == (BPF_JMP | BPF_JA)) {
			pc += i->k;
		} else {
			assert_int_equal(i->code, BPF_RET | BPF_K);
			return i->k;
		}
	}
	fail_msg("the program runs off its end");
	return 0;
}

static uint32_t
run_call(bool userns, int nr, uint64_t arg0, uint64_t arg1, uint64_t arg2)
{
	struct seccomp_data d = { .nr = nr,
		.arch = ARCH,
		.args = { arg0, arg1, arg2, 0, 0, 0 } };

	return userns ?
	    run(run_filter_userns, ARRAY_LEN(run_filter_userns), &d) :
	    run(run_filter, ARRAY_LEN(run_filter), &d);
}

static void
calls_of_a_run_are_judged_as_the_table_says(void **state)
{
	static const struct {
		int nr;
		uint64_t args[3];
		uint32_t plain;
		uint32_t userns;
	} rows[] = {
		{ SYS_read, { 0, 0, 0 }, ALLOW, ALLOW },
		{ SYS_execve, { 0, 0, 0 }, ALLOW, ALLOW },
		{ SYS_clone, { 17, 0, 0 }, ALLOW, ALLOW },
		{ SYS_clone, { 0x003d0f00, 0, 0 }, ALLOW, ALLOW },
		{ SYS_clone, { 0x10000000, 0, 0 }, REFUSE(EPERM), ALLOW },
		{ SYS_clone, { 0x00020000, 0, 0 }, REFUSE(EPERM), ALLOW },
		{ SYS_clone3, { 0, 0, 0 }, REFUSE(ENOSYS), REFUSE(ENOSYS) },
		{ SYS_unshare, { 0x400, 0, 0 }, ALLOW, ALLOW },
		{ SYS_unshare, { 0x80, 0, 0 }, REFUSE(EPERM), ALLOW },
		{ SYS_mount, { 0, 0, 0 }, REFUSE(EPERM), REFUSE(EPERM) },
		{ SYS_chroot, { 0, 0, 0 }, REFUSE(EPERM), REFUSE(EPERM) },
		{ SYS_bpf, { 0, 0, 0 }, REFUSE(EPERM), REFUSE(EPERM) },
		{ SYS_ioctl, { 0, 0x5401, 0 }, ALLOW, ALLOW },
		{ SYS_ioctl, { 0, 0x5000940e, 0 }, REFUSE(EPERM),
		    REFUSE(EPERM) },
		{ SYS_ioctl, { 0, 0x5412, 0 }, REFUSE(EPERM), REFUSE(EPERM) },
		{ SYS_ioctl, { 0, 0xffff00005412, 0 }, REFUSE(EPERM),
		    REFUSE(EPERM) },
		{ SYS_ioctl, { 0, 0x541c, 0 }, REFUSE(EPERM), REFUSE(EPERM) },
		{ SYS_socket, { 1, 1, 0 }, ALLOW, ALLOW },
		{ SYS_socket, { 10, 2, 17 }, ALLOW, ALLOW },
		{ SYS_socket, { 16, 3, 0 }, ALLOW, ALLOW },
		{ SYS_socket, { 16, 3, 12 }, REFUSE(EPERM), REFUSE(EPERM) },
		{ SYS_socket, { 17, 3, 0 }, REFUSE(EPERM), REFUSE(EPERM) },
		{ SYS_socket, { 0, 3, 0 }, REFUSE(EPERM), REFUSE(EPERM) },
		{ SYS_personality, { 0xffffffff, 0, 0 }, ALLOW, ALLOW },
		{ SYS_personality, { 8, 0, 0 }, REFUSE(EPERM), REFUSE(EPERM) },
		{ 444, { 0, 0, 0 }, REFUSE(EOPNOTSUPP), REFUSE(EOPNOTSUPP) },
		{ 462, { 0, 0, 0 }, ALLOW, ALLOW },
		{ 467, { 0, 0, 0 }, REFUSE(EPERM), REFUSE(EPERM) },
		{ SYS_reboot, { 0, 0, 0 }, REFUSE(ENOSYS), REFUSE(ENOSYS) },
		{ -1, { 0, 0, 0 }, REFUSE(ENOSYS), REFUSE(ENOSYS) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(run_call(false, rows[i].nr, rows[i].args[0],
				     rows[i].args[1], rows[i].args[2]),
		    rows[i].plain);
		assert_int_equal(run_call(true, rows[i].nr, rows[i].args[0],
				     rows[i].args[1], rows[i].args[2]),
		    rows[i].userns);
	}
}

static void
calls_that_write_by_name_go_to_the_broker(void **state)
{
	static const struct {
		int nr;
		uint64_t args[3];
		uint32_t action;
	} rows[] = {
		{ SYS_read, { 0, 0, 0 }, ALLOW },
		{ SYS_openat, { 0, 0, 0 }, ALLOW },
		{ SYS_openat, { 0, 0, 0x280000 }, ALLOW },
		{ SYS_openat, { 0, 0, 1 }, SECCOMP_RET_USER_NOTIF },
		{ SYS_openat, { 0, 0, 2 }, SECCOMP_RET_USER_NOTIF },
		{ SYS_openat, { 0, 0, 0100 }, SECCOMP_RET_USER_NOTIF },
		{ SYS_openat, { 0, 0, 01000 }, SECCOMP_RET_USER_NOTIF },
		{ SYS_openat, { 0, 0, 020000000 }, SECCOMP_RET_USER_NOTIF },
		{ SYS_openat, { 0, 0, 0xffff00000000 }, ALLOW },
		{ SYS_openat2, { 0, 0, 0 }, SECCOMP_RET_USER_NOTIF },
		{ SYS_renameat2, { 0, 0, 0 }, SECCOMP_RET_USER_NOTIF },
		{ SYS_linkat, { 0, 0, 0 }, SECCOMP_RET_USER_NOTIF },
		{ SYS_bind, { 0, 0, 0 }, SECCOMP_RET_USER_NOTIF },
		{ SYS_umask, { 0, 0, 0 }, SECCOMP_RET_USER_NOTIF },
		{ SYS_sendmsg, { 0, 0, 0 }, ALLOW },
		{ SYS_seccomp, { 1, 0, 0 }, ALLOW },
		{ SYS_seccomp, { 1, 8, 0 }, REFUSE(EBUSY) },
		{ SYS_seccomp, { 1, 9, 0 }, REFUSE(EBUSY) },
		{ SYS_ioctl, { 0, 0x5401, 0 }, ALLOW },
		{ 425, { 0, 0, 0 }, REFUSE(EPERM) },
		{ 444, { 0, 0, 0 }, REFUSE(EOPNOTSUPP) },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct seccomp_data d = { .nr = rows[i].nr,
			.arch = ARCH,
			.args = { rows[i].args[0], rows[i].args[1],
			    rows[i].args[2], 0, 0, 0 } };

		assert_int_equal(run(guard_filter, ARRAY_LEN(guard_filter), &d),
		    rows[i].action);
		d.arch = FOREIGN;
		assert_int_equal(run(guard_filter, ARRAY_LEN(guard_filter), &d),
		    REFUSE(ENOSYS));
	}
}

static void
other_entry_points_are_not_there(void **state)
{
	struct seccomp_data d = { .arch = FOREIGN };

	(void)state;
	for (int nr = 0; nr < 600; nr++) {
		d.nr = nr;
		assert_int_equal(run(run_filter, ARRAY_LEN(run_filter), &d),
		    REFUSE(ENOSYS));
		assert_int_equal(run(lookup_filter, ARRAY_LEN(lookup_filter),
				     &d),
		    SECCOMP_RET_KILL_PROCESS);
	}
#ifdef __x86_64__
	d.arch = ARCH;
	for (int nr = 0; nr < 600; nr++) {
		d.nr = 0x40000000 | nr;
		assert_int_equal(run(run_filter, ARRAY_LEN(run_filter), &d),
		    REFUSE(ENOSYS));
	}
#endif
}

static void
numbers_beyond_the_table_are_not_there(void **state)
{
	(void)state;
	for (int nr = 468; nr < 4096; nr++)
		assert_int_equal(run_call(false, nr, 0, 0, 0), REFUSE(ENOSYS));
}

static void
lookup_is_killed_for_anything_else(void **state)
{
	static const int killed[] = { SYS_execve, SYS_socket, SYS_connect,
		SYS_ptrace, SYS_kill, SYS_clone, SYS_setresuid, SYS_mount };
	struct seccomp_data d = { .arch = ARCH };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(killed); i++) {
		d.nr = killed[i];
		assert_int_equal(run(lookup_filter, ARRAY_LEN(lookup_filter),
				     &d),
		    SECCOMP_RET_KILL_PROCESS);
	}
	d.nr = SYS_openat2;
	assert_int_equal(run(lookup_filter, ARRAY_LEN(lookup_filter), &d),
	    ALLOW);
}

/* Written out by hand: rows in order, first fit decides. */
static uint32_t
oracle(const struct bpf_call *calls, size_t n, uint32_t otherwise,
    const struct seccomp_data *d)
{
	for (size_t i = 0; i < n; i++) {
		bool same = ((uint32_t)d->args[calls[i].arg] & calls[i].mask) ==
		    calls[i].value;

		if (calls[i].nr != d->nr)
			continue;
		if (calls[i].test == BPF_TEST_NONE ||
		    same == (calls[i].test == BPF_TEST_EQ))
			return calls[i].action;
	}
	return otherwise;
}

/* Rows for numbers of which many have conditions, so that the program has
 * jumps of more than 255 instructions. */
static void
written_programs_equal_the_table(void **state)
{
	static struct bpf_call calls[BPF_CALLS_MAX];
	static struct sock_filter out[BPF_PROGRAM_MAX];
	struct seccomp_data d = { .arch = ARCH };
	uint32_t seed = 12345;
	size_t n = 0;
	ptrdiff_t len;

	(void)state;
	for (int nr = 1; n + 3 < BPF_CALLS_MAX; nr += 1 + (int)(seed % 3)) {
		seed = seed * 1664525u + 1013904223u;
		for (unsigned k = 0; k <= (seed >> 8) % 3; k++)
			calls[n++] = (struct bpf_call){ "x", nr,
				(enum bpf_test)((seed >> (10 + k)) % 3),
				(seed >> (12 + k)) % 6,
				k == 0 ? UINT32_MAX : 0xf, (seed >> 16) % 4,
				REFUSE(1 + (seed >> 20) % 9) };
	}
	len = bpf_write(calls, n, REFUSE(ENOSYS), SECCOMP_RET_KILL_PROCESS, out,
	    ARRAY_LEN(out));
	assert_true(len > 600);
	for (int nr = -1; nr < 1500; nr++) {
		for (uint64_t v = 0; v < 20; v++) {
			d.nr = nr;
			for (size_t i = 0; i < 6; i++)
				d.args[i] = v | (v % 2 << 40);
			if (nr >= 0)
				assert_int_equal(run(out, (size_t)len, &d),
				    oracle(calls, n, REFUSE(ENOSYS), &d));
		}
	}
}

static void
a_call_named_in_two_places_is_refused(void **state)
{
	static const struct bpf_call calls[] = {
		{ "a", 1, BPF_TEST_NONE, 0, 0, 0, ALLOW },
		{ "b", 2, BPF_TEST_NONE, 0, 0, 0, ALLOW },
		{ "a", 1, BPF_TEST_NONE, 0, 0, 0, REFUSE(EPERM) },
	};
	struct sock_filter out[64];

	(void)state;
	assert_int_equal(bpf_write(calls, 3, 0, 0, out, ARRAY_LEN(out)),
	    -EINVAL);
	assert_int_equal(bpf_write(calls, 2, 0, 0, out, 4), -E2BIG);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_a_run_are_judged_as_the_table_says),
		cmocka_unit_test(calls_that_write_by_name_go_to_the_broker),
		cmocka_unit_test(other_entry_points_are_not_there),
		cmocka_unit_test(numbers_beyond_the_table_are_not_there),
		cmocka_unit_test(lookup_is_killed_for_anything_else),
		cmocka_unit_test(written_programs_equal_the_table),
		cmocka_unit_test(a_call_named_in_two_places_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
