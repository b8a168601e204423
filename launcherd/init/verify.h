/*
 * The last step of a guarded run's start (SPEC D16): once everything is mounted
 * and the guard answers, pid 1 tries to make a name that the rules of every run
 * forbid, GUARD_VERIFY_GLOB, in each guarded place and in each writable mount
 * below it. What the lists of the kernel say proves nothing; this does.
 */
#ifndef INIT_VERIFY_H
#define INIT_VERIFY_H

#include <stddef.h>

#define VERIFY_STEP_MAX 129 /* of msg_init_failed, with its end */

/*
 * Places are absolute paths. 0; or -errno with a sentence that begins with
 * "guard" in ret_step: a name could be made (and was removed), or that could
 * not be tried.
 */
int verify_guard(char *const *places, size_t n, char ret_step[VERIFY_STEP_MAX]);

#endif
