/*
 * The start scan (SPEC J4, J8, C12; protocol/lookup.h): what lies in the
 * places that a run is given and may not be touched by it. Nothing is changed,
 * nothing outside of file names, inode numbers, `.git` files and git
 * configurations is read, no link of a tree is followed to walk anywhere.
 */
#ifndef LOOKUP_SCAN_H
#define LOOKUP_SCAN_H

#include <stdbool.h>
#include <stddef.h>

struct lookup_question;
struct lookup_results;
struct wire_out;

/*
 * Fills nfound, found, stopped, dropped and entries of the results, whose
 * items have been resolved. Paths go into `text`, which must outlive them;
 * what the next scan may use goes into `seen`, which the caller has made.
 * What is not complete is told, not an error. 0; -EINVAL: a rule is no
 * pattern; -E2BIG: the rules do not fit a table, or too many places; -ENOMEM.
 */
int
scan_all(const struct lookup_question *question, const char *home, char *text,
    size_t size, struct lookup_results *results, struct wire_out *seen);

#define SCAN_PATH_MAX 4095

/*
 * Where an absolute path that does not exist would come to be: the links on
 * the way to it are followed as far as they lead. False: there is no such
 * place, or its path is too long.
 */
bool scan_absent(const char *path, char ret[SCAN_PATH_MAX + 1]);

#endif
