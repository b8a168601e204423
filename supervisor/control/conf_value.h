/*
 * Numbers, sizes, times, paths and names as the configuration writes them.
 * Pure; no locale.  Integers are decimal digits without sign or leading
 * blank; all readers return 0, -EINVAL for the form or -ERANGE for a number
 * that does not fit.
 */
#ifndef SUPERVISOR_CONTROL_CONF_VALUE_H
#define SUPERVISOR_CONTROL_CONF_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int value_count(const char *text, uint64_t *ret);
/* Bytes; K, M and G are powers of 1024. */
int value_bytes(const char *text, uint64_t *ret);
/* A whole number with s, m or h, in milliseconds; the unit is required. */
int value_time_ms(const char *text, uint64_t *ret);
/* "2", "1.5", "0.125" in thousandths. */
int value_milli(const char *text, uint64_t *ret);
/* 1..65535 */
int value_port(const char *text, uint16_t *ret);
/* "on" and "off" */
int value_switch(const char *text, bool *ret);

/* The shortest text that reads back to the same; size >= LIMIT_TEXT. */
void value_format_bytes(uint64_t value, char *out, size_t size);
void value_format_time_ms(uint64_t value, char *out, size_t size);
void value_format_milli(uint64_t value, char *out, size_t size);

/*
 * Why a path cannot be used, or NULL: it must be absolute, or begin with
 * "~/" where home is true, without empty, "." or ".." components, at most
 * 4,095 bytes.  One trailing slash is the caller's to cut.
 */
const char *value_path_why(const char *path, bool home);
/* It has a '*' or '?' and is a pattern (SPEC J3). */
bool value_path_is_pattern(const char *path);
/* path is dir or lies below it; both pass value_path_why(). */
bool value_path_below(const char *path, const char *dir);

/* A user or group name as useradd(8) takes it, at most 32 bytes. */
bool value_account_ok(const char *name);
/* A file name that is a single component and may be an include. */
bool value_component_ok(const char *name);

#endif
