/*
 * A run's egress lists (SPEC G5, G6, G18, H8..H10, App.1, App.2) from the
 * fixed lists, the configuration and the spec. Pure. Each entry carries its
 * origin, which refusals show as the rule.
 */
#ifndef SUPERVISOR_CONTROL_EGRESS_MAKE_H
#define SUPERVISOR_CONTROL_EGRESS_MAKE_H

#include <stddef.h>

#include "protocol/egress.h"
#include "supervisor/control/pool.h"

struct conf;
struct spec;
struct spec_fault;

/*
 * Makes the lists in `pool`, in canonical order, so that equal sets give equal
 * bytes. 0, or -EINVAL with *fault filled: a pattern of the spec that is none
 * (H3), additions while the configuration forbids them, too many entries.
 */
int egress_make(const struct spec *spec, const struct conf *conf,
    struct pool *pool, struct egress_lists **ret, struct spec_fault *fault);

#endif
