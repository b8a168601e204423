/*
 * Name rules as one table for paths that are read from their last byte to
 * their first.
 *
 * A path below guarded root i, c1/c2/.../cn, is read as cn, ..., c1, each
 * backwards, and then the root. Both sides come by that cheaply: from a string
 * by going backwards, from a dentry by going to its parent. Each name is given
 * a class first, and the path is judged by the classes of its names: a single
 * automaton over the bytes would need the states that tell names apart again
 * for each state that a path can be in, and the rules of an ordinary run would
 * not fit.
 *
 * Rules that are nothing but names, and there may be thousands of them
 * (protected paths), are not in that automaton: they stand in a tree of names
 * beside it, where each costs one entry for each of its components and the
 * time to find it grows with the logarithm of their number.
 *
 * Patterns (SPEC D8, D9), on bytes, not on text:
 *	*	any run of bytes within one component
 *	?	one byte
 *	[a-z]	one byte of a class; ']' first in it is a member, '-' first or
 *		last too; a class that begins with ! or ^ and has more members
 *		is refused, because others read it as its opposite; [*] [?] [[]
 *		are how these three are written literally; a '[' without ']' in
 *		its component is literal
 *	**	as a whole component: any number of components, none included
 *	/x	begins at the root; everything else matches at any depth
 * There is no other escape: everything else is literal.
 *
 * Compiling allocates and frees; it is pure otherwise. Walking allocates
 * nothing, has no branch that depends on the patterns, and cannot read outside
 * of a table that dfa_check() accepts, whoever wrote it. Used by control
 * (compile), the broker and the tests (walk); struct dfa is also what the BPF
 * programs are to read.
 */
#ifndef COMMON_DFA_H
#define COMMON_DFA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DFA_ROOTS_MAX 16
#define DFA_NEXT_MAX 65536u
#define DFA_VERDICTS_MAX 1024
#define DFA_RULES_MAX 16384
#define DFA_PLACES_MAX 65536u
#define DFA_EXEMPTIONS_MAX 1024
#define DFA_ASIDE_MAX 1024
#define DFA_DEPTH_MAX 256 /* that many components fail closed (D7) */
#define DFA_NAME_MAX 255
#define DFA_GLOB_MAX 4095

/* What a verdict denies. */
#define DFA_WRITE 1u
#define DFA_READ 2u
#define DFA_EXEC 4u
/*
 * Made by the compiler for each proper prefix of a write rule: asked when a
 * directory or a symbolic link is moved or exchanged (both ends), when a
 * symbolic link is made, and when one is hard-linked (D6). A verdict with
 * WRITE always has MOVE too.
 */
#define DFA_MOVE 8u
#define DFA_CONNECT 16u
#define DFA_ALL 31u

#define DFA_RULE_NONE 0xffffu
#define DFA_RULE_TOO_DEEP 0xfffeu /* too deep, a name too long: all masks */

enum dfa_class {
	DFA_BUILTIN, /* App.7: the ones that exemptions may lift */
	DFA_GIT,
	DFA_PROTECTED, /* App.6 and protected paths */
	DFA_SPEC, /* of a spec or the configuration */
	DFA_CLASSES
};

struct dfa_rule {
	const char *glob;
	uint16_t mask; /* DFA_WRITE, READ, EXEC, CONNECT; not 0, not MOVE */
	uint16_t roots; /* bit i: holds below root i */
	enum dfa_class class;
	bool ignore_case; /* ASCII letters */
};

/* Lifts rules of class DFA_BUILTIN, nothing else, and never MOVE (D10). */
struct dfa_exemption {
	const char *glob;
	uint16_t roots;
	bool ignore_case;
};

struct dfa_rules {
	const struct dfa_rule *rules;
	size_t nrules;
	const struct dfa_exemption *exemptions;
	size_t nexemptions;
	unsigned nroots;
	uint16_t empty_roots; /* bit i: no rule holds below root i */
};

struct dfa_verdict {
	uint16_t mask; /* 0: nothing is denied */
	uint16_t rule; /* index into the rules, or DFA_RULE_* */
};

/*
 * A place in the tree of literal rules: a name below another place. The places
 * that have the same parent stand in one row, in growing order of `name`.
 */
struct dfa_place {
	uint64_t name; /* dfa_name() without its class: >> DFA_HASH_SHIFT */
	uint32_t child; /* the first of them, an index into place[] */
	uint32_t nchildren;
	struct dfa_verdict own; /* of the path that ends here */
	struct dfa_verdict below; /* of each path that leads on from here */
};

/* place[i] for i below it is the top of the tree of root i, without a name;
 * then the top of the tree that holds at any depth, in every root that is not
 * empty. */
#define DFA_PLACE_ANY DFA_ROOTS_MAX
#define DFA_PLACE_TREES (DFA_ROOTS_MAX + 1)

/* FNV-1a of a name, its last byte first. Names whose numbers are alike by
 * chance would share what is denied, never what is allowed. */
#define DFA_HASH_BEGIN 0xcbf29ce484222325u
#define DFA_HASH_SHIFT 16

static inline uint64_t
dfa_hash(uint64_t hash, unsigned char byte)
{
	return (hash ^ byte) * 0x100000001b3u;
}

/*
 * Two tables in `next`, one behind the other. States are the offsets of their
 * rows in it.
 *
 * Rows of names, from 0, each ncls + 1 wide. A name begins at state 0; for each
 * of its bytes, the last first, s = next[s + cls[byte]]; then next[s + ncls]
 * is the class of the name.
 *
 * Rows of paths, from `start`, each nnames + nroots wide. A path begins at
 * state `start`; for the class of each name, the leaf's first,
 * p = next[p + class]; then next[p + nnames + root] is 0 (no rule) or 1 + the
 * index of a verdict.
 *
 * The tree in `place` is walked from the root on, with the names that were
 * kept: from place[root], and, beginning at each component in turn, from
 * place[DFA_PLACE_ANY]. From a place one goes to that of its children which has
 * the next name, until there is none; each place that is left behind adds
 * `below`, and the one where the path ends `own`. All that and the automaton's
 * verdict are joined (dfa_verdict_join()). nplaces is 0 where no rule is
 * literal; what stands behind nplaces has no meaning and need not be copied.
 */
struct dfa {
	uint32_t nnext;
	uint16_t start;
	uint16_t ncls;
	uint16_t nnames;
	uint16_t nverdicts;
	uint16_t nroots;
	uint16_t empty_roots;
	uint16_t masks; /* union of all verdicts: what need not be asked */
	uint32_t nplaces;
	uint8_t cls[256];
	struct dfa_verdict verdict[DFA_VERDICTS_MAX];
	uint16_t next[DFA_NEXT_MAX];
	struct dfa_place place[DFA_PLACES_MAX];
};

/*
 * Why a pattern is not one: static text, NULL when it is. Empty, too long, an
 * empty component (also a final slash), "." or "..", a class with a negation
 * or with a range that goes backwards, a component that cannot match any name.
 */
const char *dfa_glob_why(const char *glob);

/*
 * Fills *ret (large: allocate it). 0; -EINVAL: rule or exemption *ret_bad
 * (exemptions count on from nrules) has a bad pattern, mask or root; -E2BIG:
 * too many rules, or they need a larger table than there is; -ENOMEM. On
 * failure *ret is as it was. ret_bad may be NULL.
 *
 * The verdict's mask is the union over all rules that match and are not
 * lifted. Its rule is a literal one, or it stands for the rules of one class,
 * mask and roots, one of which matches: the first of them. Which one it is, is
 * no matter for the verdict and would multiply the table; dfa_rule_matches()
 * tells it apart.
 */
int dfa_compile(const struct dfa_rules *, struct dfa *ret, size_t *ret_bad);

/*
 * The same, but where the rules need a larger table than there is, those of
 * class DFA_SPEC that are not literal are left out of it, up to DFA_ASIDE_MAX.
 * ret_aside[i] tells of each rule whether it was; for these, who walks the
 * table asks dfa_rule_matches() beside it.
 */
int dfa_compile_some(const struct dfa_rules *, struct dfa *ret, bool *ret_aside,
    size_t *ret_bad);

/*
 * Whether one rule alone denies this path: its mask (with MOVE), MOVE alone for
 * what it needs on the way, or 0. Exemptions and roots are not looked at. Path:
 * relative, clean. Slow, and apart from any table: to name a rule in an event.
 * No allocation; 0 for what is no pattern.
 */
uint16_t dfa_rule_matches(const char *glob, bool ignore_case, uint16_t mask,
    const char *path, size_t len);

/*
 * Whether a walk of this table stays inside of it, for any path: 0 or -EPROTO.
 * nrules: verdicts name rules below it. For tables that come from outside.
 */
int dfa_check(const struct dfa *, size_t nrules);

/* Adds a mask; the rule is the lower one, but one that has more than MOVE
 * before one that has not. */
void dfa_verdict_join(struct dfa_verdict *, struct dfa_verdict);

/* A walk. Names come leaf first; no '/' in a name. */
struct dfa_walk {
	uint16_t state;
	uint16_t depth;
	bool too_deep;
	uint64_t names[DFA_DEPTH_MAX]; /* the first `depth` of them */
};

void dfa_walk_start(const struct dfa *, struct dfa_walk *);
void dfa_walk_name(const struct dfa *, struct dfa_walk *, const char *name,
    size_t len);
/* The same in two steps, for who meets a name often: what it is to the rules
 * (its class in the lowest 16 bits, its hash above), and one that is known. len
 * at most DFA_NAME_MAX, no '/' in it. */
uint64_t dfa_name(const struct dfa *, const char *name, size_t len);
void dfa_walk_known(const struct dfa *, struct dfa_walk *, uint64_t name);
/* The components of a relative path, from its last on. Empty components do not
 * count; an empty path adds nothing. */
void dfa_walk_path(const struct dfa *, struct dfa_walk *, const char *path,
    size_t len);
/* root >= nroots fails closed; an empty root has no verdict, however deep. */
struct dfa_verdict
dfa_walk_end(const struct dfa *, const struct dfa_walk *, unsigned root);

/* All of it for a path relative to root. */
struct dfa_verdict
dfa_match(const struct dfa *, const char *path, size_t len, unsigned root);

#endif
