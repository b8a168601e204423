/*
 * The look-up itself: a question's paths to results, and the scan, with the
 * process's own ids. No channel, no confinement; tested as any user.
 */
#ifndef LOOKUP_RESOLVE_H
#define LOOKUP_RESOLVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/lookup.h"

struct lookup_question;
struct wire_out;

/*
 * Resolves every item in order and encodes the results (protocol/lookup.h)
 * into `out`, which the caller has made. `home` replaces a leading "~/".
 * Returns 0; -ETIMEDOUT after `budget_ms`; -E2BIG when the results do not fit,
 * or the rules; -EINVAL: a rule is no pattern; -ENOMEM. An item that cannot be
 * looked at is a result, not an error.
 */
int resolve_all(const struct lookup_question *question, const char *home,
    uint64_t budget_ms, struct wire_out *out);

enum lookup_kind lookup_kind_of(mode_t mode);

/* All of a regular file, opened so that nothing waits: its length, -EFBIG when
 * it is longer than `size`, -EINVAL when it is another kind, or -errno. */
ssize_t lookup_read(int fd, char *buf, size_t size);

#endif
