/*
 * What stockade-proxyd may ask of the kernel once it runs.
 */
#ifndef PROXYD_CONFINE_H
#define PROXYD_CONFINE_H

/* Landlock, then seccomp; the last step of start-up.  0 or -errno. */
int proxyd_confine(void);

#endif
