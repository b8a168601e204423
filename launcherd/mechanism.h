/*
 * The mechanisms that hold name rules (SPEC D2, D3, Z6), and which of them is
 * in force. Which one it is, the probe decides by what it executes: it tries
 * them in the order of the configuration's choice, and the first that passes is
 * launcherd's `guard` for all its runs.
 */
#ifndef LAUNCHERD_MECHANISM_H
#define LAUNCHERD_MECHANISM_H

#include <stddef.h>

#include "protocol/cause.h"

#define MECHANISM_WHY_MAX 256

struct launcherd;

/*
 * The mechanism to try after `tried` (GUARD_AUTO: the first one); GUARD_AUTO
 * when there is no other. One that is named is never replaced.
 */
enum guard_mechanism
mechanism_next(enum guard_mechanism choice, enum guard_mechanism tried);

/*
 * What the host lacks for it, found without a side effect: 0, or -errno with a
 * sentence in why. 0 does not say that it works: that the self-test does.
 */
int mechanism_check(const struct launcherd *, enum guard_mechanism,
    char why[MECHANISM_WHY_MAX]);

#endif
