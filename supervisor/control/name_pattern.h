/*
 * How people write name rules (SPEC D8, D9), and the switch of that part. No
 * I/O.
 */
#ifndef SUPERVISOR_CONTROL_NAME_PATTERN_H
#define SUPERVISOR_CONTROL_NAME_PATTERN_H

#include <stdbool.h>

/*
 * While this is 0, the configuration's sentences `deny name` and `permit
 * name-exemptions` are refused as `not in this version` (Z13).
 */
#ifndef NAME_RULES_READY
#define NAME_RULES_READY 0
#endif

/* Behind a leading (?i), or text itself. */
const char *name_pattern_behind_case(const char *text, bool *ret_ignore);

/* Why `text` is no entry of `deny name {...}`: static text, or NULL. */
const char *name_pattern_why(const char *text);

#endif
