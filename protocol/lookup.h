/*
 * A look-up's question and results, msgpack in sealed memfds, between control
 * and stockade-lookup (relayed unread). The question is control's and may be
 * hostile; the results are made with the run's ids and tell what the run's
 * user could find out anyway: control trusts them for nothing but that user's
 * own paths.
 */
#ifndef PROTOCOL_LOOKUP_H
#define PROTOCOL_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire.h"

#define LOOKUP_VERSION 1
#define LOOKUP_ITEMS_MAX 8192
#define LOOKUP_BYTES_MAX (8u << 20)

enum lookup_kind {
	LOOKUP_NONE,
	LOOKUP_DIR,
	LOOKUP_FILE,
	LOOKUP_SOCKET,
	LOOKUP_OTHER
};

/* A path to resolve; a leading "~/" means the user's home. */
struct lookup_item {
	const char *path;
};
struct lookup_question {
	size_t nitems;
	struct lookup_item items[LOOKUP_ITEMS_MAX];
};

/*
 * One result per item, in order. error: 0 found; ENOENT and ENOTDIR mean
 * absent; EACCES: the user may not look (kind NONE); anything else is a failed
 * look-up. `resolved` is the path with every link followed (empty when not
 * found), `literal` the path after "~/" was replaced.
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
struct lookup_results {
	size_t nresults;
	struct lookup_result results[LOOKUP_ITEMS_MAX];
};

int lookup_question_decode(const void *, size_t, struct lookup_question *ret);
void lookup_question_encode(const struct lookup_question *, struct wire_out *);
int lookup_results_decode(const void *, size_t, struct lookup_results *ret);
void lookup_results_encode(const struct lookup_results *, struct wire_out *);

#endif
