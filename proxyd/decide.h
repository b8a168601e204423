/*
 * A session's lists and the verdict on a target: pure, no I/O.  The lists are
 * compiled once from what stockade-control sent; a decision asks nobody
 * (SPEC G5, G9).  Deny wins over allow (H8).  What is not allowed is refused:
 * an empty or broken list allows nothing (H7).
 */
#ifndef PROXYD_DECIDE_H
#define PROXYD_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hostname.h"

/* The reason phrase has 100 bytes, 20 of them "Blocked by sandbox: ". */
#define DECIDE_PHRASE_MAX 80
#define DECIDE_TEXT_MAX 256

enum decide_reason {
	DECIDE_ALLOWED = 0,
#define REASON(code, words, rule, remedy) DECIDE_##code,
#define REASON_AS(name, code, words, rule, remedy) DECIDE_##name,
#include "proxyd/reasons.def"
#undef REASON_AS
#undef REASON
	DECIDE_REASONS
};

struct decide_lists;

/*
 * Lists under construction: text is borrowed during the call only.  Each
 * pattern must be in the normal form of hostname_pattern_parse(), or -EINVAL:
 * control checked it, and control is not believed.  -ENOMEM, or -E2BIG for
 * more than 1 MiB of text.
 */
struct decide_lists *decide_lists_new(bool network);
void decide_lists_free(struct decide_lists *lists);
int decide_lists_allow(struct decide_lists *lists, const char *pattern,
    size_t len, uint16_t port, const char *origin, size_t origin_len);
int decide_lists_deny(struct decide_lists *lists, const char *pattern,
    size_t len, const char *origin, size_t origin_len);
int decide_lists_private(struct decide_lists *lists, const char *cidr,
    size_t cidr_len, const char *host, size_t host_len);

struct decide_verdict {
	enum decide_reason reason; /* DECIDE_ALLOWED permits */
	const char *pattern; /* rule that decided or "", owned by lists */
	const char *origin;
};

/* The name and port against the lists, before any look-up. */
void decide_target(const struct decide_lists *lists,
    const struct hostname *host, uint16_t port, struct decide_verdict *ret);

/*
 * Whether the session may connect to this address for this host.  own: the
 * address is one of this host's own.
 */
bool decide_address(const struct decide_lists *lists,
    const struct hostname *host, const struct hostname_addr *addr, bool own);

/* Whether an operator could permit this address at all: then the refusal is
 * DECIDE_private_address, else DECIDE_never_address. */
bool decide_permittable(const struct hostname_addr *addr);

/* Texts for people.  host is shown as is: it must be canonical or cleaned. */
const char *decide_reason_code(enum decide_reason reason);
/* ASCII, at most DECIDE_PHRASE_MAX bytes; a longer host is cut inside. */
void decide_phrase(enum decide_reason reason, const char *host, uint16_t port,
    char ret_text[DECIDE_PHRASE_MAX + 1]);
void decide_rule_text(const struct decide_verdict *verdict, const char *host,
    uint16_t port, char ret_text[DECIDE_TEXT_MAX + 1]);
void decide_remedy_text(enum decide_reason reason, const char *host,
    uint16_t port, char ret_text[DECIDE_TEXT_MAX + 1]);

#endif
