/*
 * A host name or pattern written in Unicode, turned into A-labels (SPEC H5;
 * RFC 3492 Punycode).  Only letters without upper case and without other
 * forms are taken, so that no mapping table is needed; what could be spelled
 * in two ways is refused, because a deny entry must not miss its name.  Pure.
 */
#ifndef SUPERVISOR_CONTROL_IDNA_H
#define SUPERVISOR_CONTROL_IDNA_H

#include <stddef.h>

/*
 * Labels that are ASCII are copied as they are.  0, or -EINVAL with *ret_why
 * set to a static text, or -ENOSPC if out (size bytes, terminated) is too
 * small.
 */
int idna_to_ascii(const char *text, size_t len, char *out, size_t size,
    const char **ret_why);

#endif
