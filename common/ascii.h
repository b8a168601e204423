/*
 * Classes of ASCII bytes without a locale, for readers of hostile text
 * (<ctype.h> depends on the locale and wants an unsigned char). Pure.
 */
#ifndef COMMON_ASCII_H
#define COMMON_ASCII_H

#include <stdbool.h>

static inline bool
ascii_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline char
ascii_to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

#endif
