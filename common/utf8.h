/*
 * UTF-8 as RFC 3629 permits it: no overlong form, no surrogate, at most
 * U+10FFFF. For text of any origin. Pure.
 */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at p, of which `left` (at least 1) may be read: 1..4,
 * or 0 when no character begins there. NUL is a character of one byte. */
size_t utf8_length(const void *p, size_t left);

/* Whether all of it is characters. */
bool utf8_valid(const void *p, size_t len);

/* Whether the character of `n` bytes at p, as utf8_length() measured it, drives
 * a terminal: U+0000..U+001F, U+007F..U+009F. */
bool utf8_is_control(const void *p, size_t n);

#endif
