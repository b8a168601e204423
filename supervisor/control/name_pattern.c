/*
 * A name rule's pattern as it is written.
 */
#include "supervisor/control/name_pattern.h"

#include <string.h>

#include "common/dfa.h"

#define IGNORE_CASE "(?i)"

const char *
name_pattern_behind_case(const char *text, bool *ret_ignore)
{
	size_t n = sizeof(IGNORE_CASE) - 1;

	*ret_ignore = strncmp(text, IGNORE_CASE, n) == 0;
	return *ret_ignore ? text + n : text;
}

const char *
name_pattern_why(const char *text)
{
	bool ignore;
	const char *glob = name_pattern_behind_case(text, &ignore);

	/* D8 leaves open what a/b means; nobody shall have to guess. */
	if (*glob != '/' && strncmp(glob, "**/", 3) != 0 &&
	    strchr(glob, '/') != NULL)
		return "a pattern of several parts begins with / or **/";
	return dfa_glob_why(glob);
}
