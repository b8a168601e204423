/*
 * A look-up's question and results, msgpack in sealed memfds, between control
 * and stockade-lookup (relayed unread). The question is control's and may be
 * hostile; the results are made with the run's ids and tell what the run's
 * user could find out anyway: control trusts them for nothing but that user's
 * own paths.
 *
 * Two things are asked: what paths are, and (the start scan, SPEC J4, J8, C12)
 * what lies in some of them that a run may not touch.
 */
#ifndef PROTOCOL_LOOKUP_H
#define PROTOCOL_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dfa.h"
#include "protocol/wire.h"

#define LOOKUP_VERSION 3
#define LOOKUP_ITEMS_MAX 8192
#define LOOKUP_FOUND_MAX 16384
#define LOOKUP_BYTES_MAX (8u << 20)
#define LOOKUP_SEEN_MAX (2u << 20)
#define LOOKUP_TABLE_MAX (256u << 10)
#define LOOKUP_NO_ITEM LOOKUP_ITEMS_MAX

enum lookup_kind {
	LOOKUP_NONE,
	LOOKUP_DIR,
	LOOKUP_FILE,
	LOOKUP_SOCKET,
	LOOKUP_OTHER
};

/* What an item is for the scan. */
enum lookup_use {
	LOOKUP_USE_NONE, /* nothing */
	/* A place to search, when it is a directory: for sockets and for other
	 * names of denied files; a writable one for names too. */
	LOOKUP_USE_READABLE,
	LOOKUP_USE_WRITABLE,
	/* Denied: another name of it, or of a file below it, is told. */
	LOOKUP_USE_DENIED,
};

/* A path to resolve; a leading "~/" means the user's home. */
struct lookup_item {
	const char *path;
	enum lookup_use use;
};

/*
 * The scan judges absolute paths, without their first slash, with rules of
 * LOOKUP_ROOT_ALL, and what lies in a git directory that is not called .git,
 * relative to it, with those of LOOKUP_ROOT_GIT. All rules are for writing. It
 * may find more than a run's table denies, never less: who asks judges again.
 */
#define LOOKUP_ROOT_ALL 0u
#define LOOKUP_ROOT_GIT 1u
#define LOOKUP_ROOTS 2u
struct lookup_scan {
	uint64_t entries_max; /* directory entries; 0: no scan */
	uint64_t time_ms;
	size_t nrules;
	struct dfa_rule rules[DFA_RULES_MAX];
	size_t nexemptions;
	struct dfa_exemption exemptions[DFA_EXEMPTIONS_MAX];
	/* These rules compiled (guard_tables_encode()), all of them; or empty:
	 * whoever scans compiles them. */
	struct wire_view table;
	/* `seen` of an earlier answer to the same question, or empty. */
	struct wire_view seen;
};

struct lookup_question {
	size_t nitems;
	struct lookup_item items[LOOKUP_ITEMS_MAX];
	struct lookup_scan scan;
};

/*
 * One result per item, in order. error: 0 found; ENOENT and ENOTDIR mean
 * absent; EACCES: the user may not look (kind NONE); anything else is a failed
 * look-up. `resolved` is the path with every link followed; of an absent one,
 * where it would come to be, or empty. `literal` is the path after "~/" was
 * replaced.
 */
struct lookup_result {
	const char *literal;
	const char *resolved;
	uint64_t error;
	enum lookup_kind kind;
	uint64_t dev;
	uint64_t ino;
	uint64_t mode;
	uint64_t uid;
	bool readable; /* by the user: R_OK (and X_OK for directories) */
	bool writable;
};

enum lookup_what {
	LOOKUP_NAME, /* a name that a rule denies */
	LOOKUP_LINK, /* another name of `source`, which is `item` or below it;
			* with LOOKUP_NO_ITEM, a file that a rule denies */
	LOOKUP_SOCK, /* a socket file */
	LOOKUP_GIT, /* a git directory that is not called .git */
	/* What a denied link, git's core.hooksPath or include.path lead to, and
	 * a .git that is a file; kind LOOKUP_NONE: it does not exist. */
	LOOKUP_TARGET,
};

/* Absolute and clean; with every link followed where it exists. */
struct lookup_found {
	enum lookup_what what;
	const char *path;
	enum lookup_kind kind;
	uint64_t item;
	const char *source; /* "" but with LOOKUP_LINK */
};

/* Why a scan is not complete; bits. */
#define LOOKUP_STOP_ENTRIES 1u /* more entries than entries_max */
#define LOOKUP_STOP_TIME 2u
#define LOOKUP_STOP_DEPTH 4u /* paths longer than PATH_MAX */
#define LOOKUP_STOP_CLOSED 8u /* a directory that the user cannot read */
#define LOOKUP_STOP_FOUND 16u /* `dropped` findings did not fit */
#define LOOKUP_STOP_CONFIG 32u /* a git configuration that is not readable */
#define LOOKUP_STOP_GIT \
	64u /* more git directories or includes than looked at */
#define LOOKUP_STOP_ALL 127u

struct lookup_results {
	size_t nresults;
	struct lookup_result results[LOOKUP_ITEMS_MAX];
	size_t nfound;
	struct lookup_found found[LOOKUP_FOUND_MAX];
	uint64_t stopped;
	uint64_t dropped;
	uint64_t entries; /* looked at */
	/* For the next scan: stockade-lookup's own, nobody else reads it. */
	struct wire_view seen;
};

/* Strings point into the data. 0 or -EPROTO; whether a rule's glob is one is
 * for dfa_compile() to tell. All structs are large: allocate them. */
int lookup_question_decode(const void *, size_t, struct lookup_question *ret);
void lookup_question_encode(const struct lookup_question *, struct wire_out *);
int lookup_results_decode(const void *, size_t, struct lookup_results *ret);
void lookup_results_encode(const struct lookup_results *, struct wire_out *);

#endif
