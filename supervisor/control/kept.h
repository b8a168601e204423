/*
 * The plan, the egress lists and the guard's table of a session, kept as the
 * bytes that were handed over and taken apart when they are asked for. Taken
 * apart they are arrays of their greatest size, 600 KiB; as bytes 20 KiB. There is one
 * place to take them apart in, which holds one session's at a time.
 */
#ifndef SUPERVISOR_CONTROL_KEPT_H
#define SUPERVISOR_CONTROL_KEPT_H

#include <stddef.h>
#include <stdint.h>

struct egress_lists;
struct guard;
struct opened;
struct plan;
struct session_facts;

/* A session's; its bytes are owned. data NULL: nothing is kept. */
struct kept {
	uint8_t *data;
	size_t plan_len;
	size_t egress_len; /* behind the plan */
	size_t guard_len; /* behind both; 0: no name rules */
	size_t facts_at; /* in the plan */
	size_t facts_len;
};

/* The place; the one of all sessions. NULL: no memory. */
struct opened *opened_new(void);
void opened_free(struct opened *);

/*
 * Copies all and takes them apart once, so that the functions below find what
 * they look for. 0; -ENOMEM; -EPROTO: they cannot be read, or a plan with roots
 * comes without their table or with another's. On an error nothing is kept.
 */
struct kept_bytes {
	const void *data;
	size_t len;
};
int kept_set(struct kept *, struct opened *, struct kept_bytes plan,
    struct kept_bytes egress, struct kept_bytes guard);
/* Gives it to another owner, who has none; nothing is left in `from`. */
void kept_move(struct kept *from, struct kept *to, struct opened *);
/* Wipes and frees; the place forgets it. */
void kept_done(struct kept *, struct opened *);

/*
 * Valid until another session's is asked for; what the fields point to is
 * valid until the session gets others. Never NULL but for the table of a plan
 * without roots.
 */
const struct plan *kept_plan(const struct kept *, struct opened *);
const struct session_facts *kept_facts(const struct kept *, struct opened *);
const struct egress_lists *kept_egress(const struct kept *, struct opened *);
const struct guard *kept_guard(const struct kept *, struct opened *);

#endif
