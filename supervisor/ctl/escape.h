/*
 * Output for people. Text from a run, a repository or a host is printed with
 * its control bytes escaped (SPEC Y15), so that it cannot move the cursor, set
 * a title or answer a query.
 *
 * How to use it: never printf("%s") text that the service sent; call
 * escape_puts(stdout, text), or escape_column() for a table, or
 * escape_printf(), in which every %s is escaped. Wrap with
 * escape_colour_begin(f, ESCAPE_RED) and escape_colour_end(f): both write
 * nothing unless f is a terminal and NO_COLOR is unset or empty.
 */
#ifndef SUPERVISOR_CTL_ESCAPE_H
#define SUPERVISOR_CTL_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum escape_colour {
	ESCAPE_BOLD,
	ESCAPE_DIM,
	ESCAPE_RED,
	ESCAPE_GREEN,
	ESCAPE_YELLOW,
	ESCAPE_COLOURS
};

/* Control bytes, DEL and broken UTF-8 as \xNN; any length. */
void escape_put(FILE *, const char *text, size_t len);
void escape_puts(FILE *, const char *text); /* NULL: "-" */

/* Escaped, cut and padded with blanks to `width` columns; a character counts
 * as one column. */
void escape_column(FILE *, const char *text, unsigned width);

/* printf(3) whose whole result is escaped, but newlines and tabs of the format
 * are not possible: write those with fputc(). */
void escape_printf(FILE *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

bool escape_colour_on(FILE *);
void escape_colour_begin(FILE *, enum escape_colour);
void escape_colour_end(FILE *);

#endif
