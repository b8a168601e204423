/*
 * How people write name rules (SPEC D8, D9). No I/O.
 */
#ifndef SUPERVISOR_CONTROL_NAME_PATTERN_H
#define SUPERVISOR_CONTROL_NAME_PATTERN_H

#include <stdbool.h>

/* Behind a leading (?i), or text itself. */
const char *name_pattern_behind_case(const char *text, bool *ret_ignore);

/* Why `text` is no entry of `deny name {...}`: static text, or NULL. */
const char *name_pattern_why(const char *text);

#endif
