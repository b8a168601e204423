/*
 * The service's words for people of the command line: it names fields of the
 * client protocol, the tool their options, and what helps stands behind. What
 * the specification words exactly stays as it is, in front.
 */
#ifndef CTL_REMEDY_H
#define CTL_REMEDY_H

#include <stddef.h>

struct ctl;

/* What a message is turned into: `option` instead of the first `skip` bytes of
 * it (NULL: nothing is left out), and `behind` it ("" for nothing). */
struct remedy {
	const char *option;
	size_t skip;
	char behind[256];
};

/* `message` is not yet cleaned, and nothing of it is in *ret. */
void
remedy_find(const struct ctl *ctl, const char *message, struct remedy *ret);

#endif
