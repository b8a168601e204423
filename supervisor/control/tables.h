/*
 * Compiled name rules, kept for the next launch: most launches of a host have
 * the same rules, and a table depends on nothing but its rules; the paths of
 * the guarded places are not in it (common/dfa.h). In stockade-control; no I/O.
 */
#ifndef SUPERVISOR_CONTROL_TABLES_H
#define SUPERVISOR_CONTROL_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/dfa.h"

#define TABLES_KEPT_MAX 8 /* the one not used for the longest time goes */

/*
 * dfa_compile_some(), or its result of an earlier call with equal rules; -ENOMEM
 * without SHA-256 too. *ret and *ret_aside (one for each rule) are borrowed
 * until the next call.
 */
int tables_compile(const struct dfa_rules *, const struct dfa **ret,
    const bool **ret_aside, size_t *ret_bad);

/* Of *from, what has a meaning. */
void tables_copy(struct dfa *to, const struct dfa *from);

#endif
