/*
 * The guard's rules of one run as bytes, in a sealed memfd: made by control,
 * relayed unread, read by the broker (and by launcherd, which fills the BPF
 * maps from it). Canonical msgpack (protocol/wire.h), the tables as little
 * endian u16 in `bin`. Hostile until decoded: guard_decode() checks every
 * entry, so that a walk cannot read outside of the tables, whoever wrote them.
 * What a hostile table can do is to have the wrong rules.
 */
#ifndef PROTOCOL_GUARD_H
#define PROTOCOL_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dfa.h"
#include "protocol/wire.h"

#define GUARD_MAGIC "stockade-guard"
#define GUARD_VERSION 4
#define GUARD_PATH_MAX 4095
#define GUARD_TEXT_MAX 4200 /* a pattern with what stands before it */
/* Forbidden by the rules of every run, at any depth: what launches verify
 * themselves with (SPEC D16). What follows is drawn at random, so that no file
 * of a tree has the name already and answers in place of the guard. */
#define GUARD_VERIFY_PREFIX ".stockade-verify-"
#define GUARD_VERIFY_GLOB GUARD_VERIFY_PREFIX "*"
#define GUARD_ORIGIN_MAX 160
#define GUARD_REMEDY_MAX 4300
#define GUARD_BYTES_MAX (16u << 20)

/* A guarded place, as its path is inside of the run: absolute and clean, not
 * "/". Roots may lie in each other; the longest one counts. */
struct guard_root {
	const char *path;
	size_t len;
	/* Mediated, since a guarded root lies below it, but without rules of
	 * its own (private home, /tmp; SPEC D11). */
	bool empty;
};

/* A rule as events show it. Strings are never NULL; remedy may be empty. */
struct guard_rule {
	const char *text; /* the pattern as it was written */
	const char *origin; /* "App.7", "configuration line 12", "spec" */
	const char *remedy; /* what would allow it, or "" */
	enum dfa_class class;
	/* What was compiled, to find the rule that matches a path. */
	const char *glob;
	uint16_t mask;
	uint16_t roots;
	bool ignore_case;
	bool aside; /* not in the table, dfa_compile_some() */
};

/* What lifts rules of class DFA_BUILTIN, as the table was compiled with it; for
 * showing it and for compiling anew. roots 0: not in force, the configuration
 * forbids it. */
struct guard_exemption {
	const char *text; /* as it was written */
	const char *origin;
	uint16_t roots;
};

struct guard {
	bool new_repositories; /* SPEC D18: `allow` */
	size_t nroots;
	struct guard_root roots[DFA_ROOTS_MAX];
	size_t nrules;
	struct guard_rule rules[DFA_RULES_MAX];
	/* The numbers of those that are not in the table: filled by
	 * guard_decode(), asked one by one by guard_judge(). */
	size_t naside;
	uint16_t aside[DFA_ASIDE_MAX];
	size_t nexemptions;
	struct guard_exemption exemptions[DFA_EXEMPTIONS_MAX];
	struct dfa dfa;
};

/*
 * Fills *ret (about 3 MiB: allocate it) with copies of the tables and with
 * pointers into data for the strings: data must outlive it. What stands behind
 * a count is left as it was. 0 or -EPROTO. No allocation, no I/O.
 */
int guard_decode(const void *data, size_t len, struct guard *ret);
/* Equal tables give equal bytes. root len is taken from its path. Errors are
 * in out->err. */
void guard_encode(const struct guard *, struct wire_out *out);

/*
 * The tables alone, as they stand in the bytes of a guard, for who judges below
 * roots that are none of a run. Decoding checks them as guard_decode() does:
 * against so many roots, of which none is empty, and rules.
 */
void guard_tables_encode(const struct dfa *, struct wire_out *out);
int guard_tables_decode(const void *data, size_t len, unsigned nroots,
    size_t nrules, struct dfa *ret);

/*
 * The root that holds an absolute clean path, or -1: outside of all roots.
 * *ret_rel is what follows the root and its slash; empty for the root itself.
 */
int guard_find_root(const struct guard *, const char *path, size_t len,
    size_t *ret_rel);

/*
 * The verdict on an absolute clean path, or on name in the directory path
 * (name_len 0: path alone). *ret_root is -1 and the mask 0 outside of all
 * roots; ret_root may be NULL. The root that decides is the one that holds the
 * directory.
 */
struct dfa_verdict guard_judge(const struct guard *, const char *path,
    size_t path_len, const char *name, size_t name_len, int *ret_root);

/*
 * The number of the rule that denied, for the event: a verdict names the first
 * of those that are alike (class, mask, roots; dfa_compile()), this finds the
 * first of its class, from that one on, that denies something of `asked` for the
 * same path. Slow,
 * no allocation; verdict.rule when there is none. The path as it was judged.
 */
unsigned guard_exact_rule(const struct guard *, struct dfa_verdict verdict,
    unsigned asked, const char *path, size_t path_len, const char *name,
    size_t name_len);

/* For events; the words of DFA_RULE_TOO_DEEP too. NULL: no such rule. */
const struct guard_rule *guard_rule(const struct guard *, unsigned rule);

/* Whether a refusal is the one that pid 1 of a run, stockade-init, asks for
 * before anything of the run is there. */
bool guard_is_verification(uint64_t pid, const char *path);

#endif
