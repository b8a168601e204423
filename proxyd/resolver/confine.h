/*
 * What stockade-resolver may ask of the kernel.
 */
#ifndef PROXYD_RESOLVER_CONFINE_H
#define PROXYD_RESOLVER_CONFINE_H

/* Files: before any thread exists, since Landlock holds for one thread and
 * those it starts. */
int resolver_confine_files(void);

/* System calls, for all threads; the last step of start-up. */
int resolver_confine_calls(void);

#endif
