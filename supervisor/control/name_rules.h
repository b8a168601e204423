/*
 * The name rules of one run (SPEC D, J2, J7, J8): from App.6 and App.7, the
 * configuration, the spec and what the look-up found, to the list that is
 * compiled (common/dfa.h) and sent to the broker (protocol/guard.h). Runs in
 * stockade-control; no I/O. Patterns of a spec are a client's.
 */
#ifndef SUPERVISOR_CONTROL_NAME_RULES_H
#define SUPERVISOR_CONTROL_NAME_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dfa.h"
#include "protocol/guard.h"
#include "supervisor/control/spec.h"

struct conf_names;

/* A path that must not be written, and what lies below it, nor made where it
 * does not exist. Absolute and clean, as seen inside the run. Every spelling
 * of it is an entry of its own (J3). */
struct name_rules_path {
	const char *path;
	const char *origin; /* "spec protectedPaths", "App.6" */
};

struct name_rules_in {
	const struct guard_root *roots; /* `len` is not read */
	size_t nroots;
	bool new_repositories;
	const struct conf_names *deny_names; /* or NULL */
	bool exemptions_permitted; /* permit name-exemptions */
	/* Of the spec; denyWrite entries without * or ? are not looked at:
	 * they come as paths. */
	struct spec_list deny_write;
	struct spec_list exemptions;
	const struct name_rules_path *paths;
	size_t npaths;
	/* Git directories that `.git` files name, and bare repositories. */
	const char *const *git_dirs;
	size_t ngit_dirs;
};

struct name_rules {
	struct pool pool;
	size_t nrules;
	struct dfa_rule rules[DFA_RULES_MAX];
	struct guard_rule shown[DFA_RULES_MAX]; /* the same order */
	size_t nexemptions;
	struct guard_exemption exemptions[DFA_EXEMPTIONS_MAX];
	size_t nroots;
	struct guard_root roots[DFA_ROOTS_MAX];
	bool new_repositories;
};

/*
 * 0 with a new *ret, which borrows the strings of `in`; or -EINVAL with *fault
 * filled (a bad pattern, a forbidden exemption, too many rules or roots), or
 * -ENOMEM. name_rules_free() takes NULL.
 */
int name_rules_make(const struct name_rules_in *, struct name_rules **ret,
    struct spec_fault *fault);
void name_rules_free(struct name_rules *);

/*
 * The rules of a live run after a change of the configuration (SPEC D13): those
 * of its table that do not come from `deny name`, and `deny_names`; the spec's
 * exemptions hold or not, as `exemptions_permitted` says. The same rules as
 * name_rules_make() of what the table was made from. Borrows the strings of
 * both. 0 or as name_rules_make().
 */
int name_rules_renew(const struct guard *, const struct conf_names *deny_names,
    bool exemptions_permitted, struct name_rules **ret,
    struct spec_fault *fault);

/*
 * Compiles and encodes: the bytes of the run's sealed memfd. 0, or -EINVAL
 * with *fault filled (the rules need a larger table than there is), or
 * -ENOMEM. Nothing is put into out on failure.
 */
int name_rules_encode(const struct name_rules *, struct wire_out *out,
    struct spec_fault *fault);

/* The pattern that is the first of every run's; static. */
const char *name_rules_first(void);

/* Why `text` is no entry of nameExemptions: static text, or NULL. */
const char *name_rules_exemption_why(const char *text);

/*
 * What a refusal of `path` (relative to its root) by this rule proposes: for a
 * rule that exemptions lift, the option with the path as an anchored pattern
 * that means this path alone; the rule's own remedy else. buf is terminated;
 * an option that would be cut off is not proposed.
 */
void name_rules_remedy(const struct guard_rule *, const char *path, char *buf,
    size_t size);

#endif
