/*
 * Seccomp programs; see bpf.h. Runs at build time on our own tables, so what
 * it must not do is be wrong in silence: tests/unit/bpf_test.c executes the
 * programs on every number.
 */
#include "launcherd/init/bpf.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdlib.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the low half of an argument is read at its first byte"
#endif

#if defined(__x86_64__)
#define BPF_ARCH AUDIT_ARCH_X86_64
#define BPF_X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define BPF_ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp architecture known for this machine"
#endif

/* Rows calls[from..to) for all numbers from `first` up to the next range. */
struct range {
	uint32_t first;
	size_t from;
	size_t to; /* == from: unnamed numbers */
};

struct writer {
	const struct bpf_call *calls;
	uint32_t otherwise;
	struct sock_filter *out;
	size_t size;
	size_t len; /* counts on beyond size */
};

static void
emit(struct writer *w, uint16_t code, uint32_t k, size_t jt, size_t jf)
{
	if (w->len < w->size)
		w->out[w->len] =
		    (struct sock_filter){ code, (uint8_t)jt, (uint8_t)jf, k };
	w->len++;
}

/* What decides a number: its rows in order, then `otherwise`. */
static void
emit_rows(struct writer *w, const struct range *r)
{
	for (size_t i = r->from; i < r->to; i++) {
		const struct bpf_call *c = &w->calls[i];
		bool eq = c->test == BPF_TEST_EQ;

		if (c->test == BPF_TEST_NONE) {
			emit(w, BPF_RET | BPF_K, c->action, 0, 0);
			return;
		}
		emit(w, BPF_LD | BPF_W | BPF_ABS,
		    (uint32_t)(offsetof(struct seccomp_data, args) +
			c->arg * sizeof(uint64_t)),
		    0, 0);
		if (c->mask != UINT32_MAX)
			emit(w, BPF_ALU | BPF_AND | BPF_K, c->mask, 0, 0);
		emit(w, BPF_JMP | BPF_JEQ | BPF_K, c->value, eq ? 0 : 1,
		    eq ? 1 : 0);
		emit(w, BPF_RET | BPF_K, c->action, 0, 0);
	}
	emit(w, BPF_RET | BPF_K, w->otherwise, 0, 0);
}

/* Binary search over ranges[lo..hi); recursion is as deep as log2 of them. */
static void
emit_search(struct writer *w, const struct range *ranges, size_t lo, size_t hi)
{
	struct writer dry = *w;
	size_t mid = lo + (hi - lo) / 2, left;

	if (hi - lo == 1) {
		emit_rows(w, &ranges[lo]);
		return;
	}
	dry.size = 0;
	dry.len = 0;
	emit_search(&dry, ranges, lo, mid);
	left = dry.len;
	if (left <= UINT8_MAX) {
		emit(w, BPF_JMP | BPF_JGE | BPF_K, ranges[mid].first, left, 0);
	} else {
		emit(w, BPF_JMP | BPF_JGE | BPF_K, ranges[mid].first, 0, 1);
		emit(w, BPF_JMP | BPF_JA, (uint32_t)left, 0, 0);
	}
	emit_search(w, ranges, lo, mid);
	emit_search(w, ranges, mid, hi);
}

static int
range_compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* Both decide alike for every argument. */
static bool
same_rows(const struct writer *w, const struct range *a, const struct range *b)
{
	if (a->from == a->to || b->from == b->to)
		return a->from == a->to && b->from == b->to;
	return w->calls[a->from].test == BPF_TEST_NONE &&
	    w->calls[b->from].test == BPF_TEST_NONE &&
	    w->calls[a->from].action == w->calls[b->from].action;
}

/* Groups rows by call, sorts them by number; -EINVAL when a call stands in
 * two places. */
static ptrdiff_t
group(const struct bpf_call *calls, size_t n, struct range *ret)
{
	size_t ngroups = 0;

	for (size_t i = 0; i < n;) {
		size_t j = i + 1;

		while (j < n && calls[j].nr == calls[i].nr)
			j++;
		if (calls[i].nr >= 0)
			ret[ngroups++] =
			    (struct range){ (uint32_t)calls[i].nr, i, j };
		i = j;
	}
	qsort(ret, ngroups, sizeof(ret[0]), range_compare);
	for (size_t i = 1; i < ngroups; i++)
		if (ret[i].first == ret[i - 1].first)
			return -EINVAL;
	return (ptrdiff_t)ngroups;
}

/* Fills the gaps between groups and joins neighbours that decide alike. */
static size_t
make_ranges(const struct writer *w, const struct range *groups, size_t n,
    struct range *ret)
{
	size_t len = 0;
	uint32_t next = 0;

	for (size_t i = 0; i <= n; i++) {
		struct range gap = { next, 0, 0 };

		if ((i == n || groups[i].first != next) &&
		    (len == 0 || !same_rows(w, &ret[len - 1], &gap)))
			ret[len++] = gap;
		if (i == n)
			break;
		if (len == 0 || !same_rows(w, &ret[len - 1], &groups[i]))
			ret[len++] = groups[i];
		next = groups[i].first + 1;
	}
	return len;
}

ptrdiff_t
bpf_write(const struct bpf_call *calls, size_t n, uint32_t otherwise,
    uint32_t foreign, struct sock_filter *out, size_t size)
{
	static struct range groups[BPF_CALLS_MAX];
	static struct range ranges[2 * BPF_CALLS_MAX + 1];
	struct writer w = { calls, otherwise, out, size, 0 };
	ptrdiff_t ngroups;

	if (n > BPF_CALLS_MAX)
		return -EINVAL;
	ngroups = group(calls, n, groups);
	if (ngroups < 0)
		return ngroups;
	emit(&w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch),
	    0, 0);
	emit(&w, BPF_JMP | BPF_JEQ | BPF_K, BPF_ARCH, 1, 0);
	emit(&w, BPF_RET | BPF_K, foreign, 0, 0);
	emit(&w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0,
	    0);
#ifdef BPF_X32_BIT
	emit(&w, BPF_JMP | BPF_JGE | BPF_K, BPF_X32_BIT, 0, 1);
	emit(&w, BPF_RET | BPF_K, foreign, 0, 0);
#endif
	emit_search(&w, ranges, 0,
	    make_ranges(&w, groups, (size_t)ngroups, ranges));
	return w.len > size ? -E2BIG : (ptrdiff_t)w.len;
}
