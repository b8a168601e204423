/*
 * Numbers of the command line (SPEC Y2). Pure; no locale, no sign, no blank,
 * no exponent, no text after the unit: anything else is a usage error.
 *
 * How to use it: units_size(optarg, &spec.memory) for --memory,
 * units_time(optarg, &spec.wall_ms) for --timeout and --ttl,
 * units_count(optarg, &spec.pids) for --pids, units_decimal(optarg,
 * &spec.cpus) for --cpus. Not 0: print "usage" with the option's name and exit
 * 2; the service checks the ranges (badParams names the field).
 *
 * All return 0, -EINVAL (not of this form, or zero) or -ERANGE (does not fit);
 * *ret is then untouched.
 */
#ifndef SUPERVISOR_CTL_UNITS_H
#define SUPERVISOR_CTL_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes: digits, then nothing (bytes) or K, M, G (1024, 1024^2, 1024^3). */
int units_size(const char *text, uint64_t *ret_bytes);

/* Milliseconds: digits, then nothing or s (seconds), m (minutes), h (hours). */
int units_time(const char *text, uint64_t *ret_ms);

/* Digits only. */
int units_count(const char *text, uint64_t *ret);

/* Digits, optionally a point and up to three digits ("1.5"). */
int units_decimal(const char *text, double *ret);

/* The other direction, for ps: "512M", "1.5G", "17K", "900"; at most 4
 * significant characters and the unit. ret has room for UNITS_TEXT bytes. */
#define UNITS_TEXT 24
const char *units_size_text(uint64_t bytes, char ret[UNITS_TEXT]);

/* "45s", "12m", "3h05m", "2d04h". */
const char *units_age_text(uint64_t ms, char ret[UNITS_TEXT]);

#endif
