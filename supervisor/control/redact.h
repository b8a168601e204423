/*
 * Tokens of the shapes in SPEC App.8 become "[redacted]" before a text is
 * logged, stored or sent in an error (M9).  Pure.
 *
 * It errs on the side of replacing.  It is a net below the rule that secrets
 * are not logged in the first place, not a substitute for it.
 */
#ifndef SUPERVISOR_CONTROL_REDACT_H
#define SUPERVISOR_CONTROL_REDACT_H

#include <stddef.h>

#define REDACT_MARK "[redacted]"

/*
 * Copy len bytes of in to out with tokens replaced; out has size bytes, is
 * always terminated if size is not 0, and is cut where it is full, never in
 * the middle of a mark's source.  Embedded NULs are copied.  Returns the
 * length written.  in and out must not overlap.
 */
size_t redact_copy(const char *in, size_t len, char *out, size_t size);

#endif
