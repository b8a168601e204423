/*
 * Build-time program: turns a table of system calls into a seccomp program as
 * C text on standard output, so that stockade-init and stockade-lookup load a
 * constant and carry no filter compiler into every sandbox.
 *
 *	filter_gen run >launcherd/init/run_filter.h
 *	filter_gen guard >launcherd/init/guard_filter.h
 *	filter_gen lookup >launcherd/lookup/lookup_filter.h
 *	filter_gen broker >launcherd/broker/broker_filter.h
 *
 * Names become numbers by libseccomp, of the machine that builds.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>

#include "common/size.h"
#include "launcherd/init/bpf.h"

/* A row of a .def file; `number` >= 0: the call's number is declared here. */
struct row {
	const char *name;
	int number;
	bool userns;
	enum bpf_test test;
	unsigned arg;
	uint32_t mask;
	uint32_t value;
	int error; /* 0: permitted; ROW_NOTIFY */
};

#define ROW_NOTIFY (-1) /* goes to the listener */

#define CALL_NEW(n, nr) { #n, nr, false, BPF_TEST_NONE, 0, 0, 0, 0 },
#define CALL_ALLOW(n, why) { #n, -1, false, BPF_TEST_NONE, 0, 0, 0, 0 },
#define CALL_USERNS(n, why) { #n, -1, true, BPF_TEST_NONE, 0, 0, 0, 0 },
#define CALL_REFUSE(n, e, why) { #n, -1, false, BPF_TEST_NONE, 0, 0, 0, e },
#define CALL_ALLOW_EQ(n, a, m, v, why) \
	{ #n, -1, false, BPF_TEST_EQ, a, m, v, 0 },
#define CALL_REFUSE_EQ(n, a, m, v, e, why) \
	{ #n, -1, false, BPF_TEST_EQ, a, m, v, e },
#define CALL_REFUSE_NE(n, a, m, v, e, why) \
	{ #n, -1, false, BPF_TEST_NE, a, m, v, e },

#define CALL_NOTIFY(n, why) \
	{ #n, -1, false, BPF_TEST_NONE, 0, 0, 0, ROW_NOTIFY },
#define CALL_NOTIFY_ANY(n, a, m, why) \
	{ #n, -1, false, BPF_TEST_NE, a, m, 0, ROW_NOTIFY },

static const struct row run_rows[] = {
#include "launcherd/profile.def"
};
static const struct row lookup_rows[] = {
#include "launcherd/lookup/calls.def"
};
static const struct row guard_rows[] = {
#include "launcherd/guard_calls.def"
};
static const struct row broker_rows[] = {
#include "launcherd/broker/profile.def"
};

static const struct filter {
	const char *table;
	const char *symbol;
	const struct row *rows;
	size_t nrows;
	bool userns;
	uint32_t otherwise;
	uint32_t foreign;
} filters[] = {
	{ "run", "run_filter", run_rows, ARRAY_LEN(run_rows), false,
	    SECCOMP_RET_ERRNO | ENOSYS, SECCOMP_RET_ERRNO | ENOSYS },
	{ "run", "run_filter_userns", run_rows, ARRAY_LEN(run_rows), true,
	    SECCOMP_RET_ERRNO | ENOSYS, SECCOMP_RET_ERRNO | ENOSYS },
	{ "lookup", "lookup_filter", lookup_rows, ARRAY_LEN(lookup_rows), false,
	    SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_PROCESS },
	{ "guard", "guard_filter", guard_rows, ARRAY_LEN(guard_rows), false,
	    SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | ENOSYS },
	{ "broker", "broker_filter", broker_rows, ARRAY_LEN(broker_rows), false,
	    SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_PROCESS },
};

static uint32_t
action_of(const struct row *r)
{
	if (r->error == ROW_NOTIFY)
		return SECCOMP_RET_USER_NOTIF;
	return r->error == 0 ? SECCOMP_RET_ALLOW :
			       SECCOMP_RET_ERRNO | (uint32_t)r->error;
}

/* The number of a call here, -1 when this machine lacks it, -2 when nobody
 * knows the name: a spelling mistake, which must not become a refusal. */
static int
number_of(const struct filter *f, size_t index)
{
	const char *name = f->rows[index].name;
	int nr = seccomp_syscall_resolve_name(name);

	if (nr >= 0)
		return nr;
	for (size_t i = 0; i < index; i++)
		if (f->rows[i].number >= 0 &&
		    strcmp(f->rows[i].name, name) == 0)
			return f->rows[i].number;
	return nr == __NR_SCMP_ERROR ? -2 : -1;
}

static int
collect(const struct filter *f, struct bpf_call *ret, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nrows; i++) {
		const struct row *r = &f->rows[i];
		int nr = number_of(f, i);

		if (r->number >= 0 || (r->userns && !f->userns))
			continue;
		if (nr == -2) {
			(void)fprintf(stderr, "filter_gen: no call %s\n",
			    r->name);
			return -ENOENT;
		}
		if (nr < 0)
			continue;
		if (n == BPF_CALLS_MAX)
			return -E2BIG;
		ret[n++] = (struct bpf_call){ r->name, nr, r->test, r->arg,
			r->mask, r->value, action_of(r) };
	}
	*ret_n = n;
	return 0;
}

static int
print(const struct filter *f)
{
	static struct bpf_call calls[BPF_CALLS_MAX];
	static struct sock_filter out[BPF_PROGRAM_MAX];
	size_t n;
	ptrdiff_t len;
	int r = collect(f, calls, &n);

	if (r < 0)
		return r;
	len =
	    bpf_write(calls, n, f->otherwise, f->foreign, out, ARRAY_LEN(out));
	if (len < 0)
		return (int)len;
	(void)printf("static const struct sock_filter %s[] = {\n", f->symbol);
	for (ptrdiff_t i = 0; i < len; i++)
		(void)printf("\t{0x%02x, %u, %u, 0x%08x},\n", out[i].code,
		    out[i].jt, out[i].jf, out[i].k);
	(void)printf("};\n");
	return 0;
}

int
main(int argc, char **argv)
{
	bool found = false;

	(void)printf("/* Made by launcherd/init/filter_gen.c. */\n");
	for (size_t i = 0; argc == 2 && i < ARRAY_LEN(filters); i++) {
		if (strcmp(filters[i].table, argv[1]) != 0)
			continue;
		found = true;
		if (print(&filters[i]) < 0) {
			(void)fprintf(stderr, "filter_gen: %s: failed\n",
			    filters[i].symbol);
			return 1;
		}
	}
	if (!found) {
		(void)fprintf(stderr,
		    "usage: filter_gen run|guard|lookup|"
		    "broker\n");
		return 2;
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
