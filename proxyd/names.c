/*
 * Name cache and the link to stockade-resolver; see names.h.  The resolver
 * reads DNS answers and may be taken over by them, so its messages are
 * decoded strictly, answers are matched by a number that is never used
 * again, and an address is only ever a candidate.
 */
#include "proxyd/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/size.h"
#include "protocol/peer.h"
#include "proxyd/proxyd.h"

/* SPEC AB: resolver cache 256 names, 60 s, failures 5 s. */
#define CACHE_MAX 256
#define CACHE_S 60
#define CACHE_FAILED_S 5
#define PENDING_MAX 512
#define BUCKETS 256
#define ADDR_BYTES 17

struct names_entry {
	TAILQ_ENTRY(names_entry) age; /* oldest first */
	SLIST_ENTRY(names_entry) bucket;
	TAILQ_HEAD(, names_wait) waits;
	uint64_t request; /* 0: answered */
	time_t expires;
	struct names_answer *answer;
	unsigned hash;
	char name[];
};

TAILQ_HEAD(age_list, names_entry);

struct names {
	struct proxyd *p;
	struct peer *resolver;
	uint64_t last_request;
	struct age_list known;
	struct age_list pending;
	size_t nknown;
	size_t npending;
	SLIST_HEAD(, names_entry) buckets[BUCKETS];
};

static const struct names_answer answer_failed = {
	.status = RESOLVE_FAILED,
};
static const struct names_answer answer_busy = { .status = RESOLVE_BUSY };

static unsigned
hash_name(const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a; names passed the lists */

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h % BUCKETS;
}

struct names *
names_new(struct proxyd *p)
{
	struct names *names = calloc(1, sizeof(*names));

	if (names == NULL)
		return NULL;
	names->p = p;
	TAILQ_INIT(&names->known);
	TAILQ_INIT(&names->pending);
	return names;
}

static void
entry_free(struct names *names, struct names_entry *entry)
{
	SLIST_REMOVE(&names->buckets[entry->hash], entry, names_entry, bucket);
	if (entry->request != 0) {
		TAILQ_REMOVE(&names->pending, entry, age);
		names->npending--;
	} else {
		TAILQ_REMOVE(&names->known, entry, age);
		names->nknown--;
	}
	free(entry->answer);
	free(entry);
}

/* Tells everyone who waits; the list is emptied first, since a callback may
 * ask and cancel. */
static void
tell(struct names_entry *entry, const struct names_answer *answer)
{
	struct names_wait *wait;

	while ((wait = TAILQ_FIRST(&entry->waits)) != NULL) {
		TAILQ_REMOVE(&entry->waits, wait, link);
		wait->entry = NULL;
		wait->fn(wait->ctx, answer);
	}
}

static void
fail_pending(struct names *names)
{
	struct names_entry *entry;

	while ((entry = TAILQ_FIRST(&names->pending)) != NULL) {
		tell(entry, &answer_failed);
		entry_free(names, entry);
	}
}

void
names_free(struct names *names)
{
	struct names_entry *entry;

	if (names == NULL)
		return;
	peer_free(names->resolver);
	names->resolver = NULL;
	fail_pending(names);
	while ((entry = TAILQ_FIRST(&names->known)) != NULL)
		entry_free(names, entry);
	free(names);
}

static struct names_entry *
find(struct names *names, const char *name, unsigned hash)
{
	struct names_entry *entry;

	SLIST_FOREACH (entry, &names->buckets[hash], bucket)
		if (strcmp(entry->name, name) == 0)
			return entry;
	return NULL;
}

static struct names_entry *
entry_new(struct names *names, const char *name, unsigned hash)
{
	size_t len = strlen(name) + 1;
	struct names_entry *entry = calloc(1, sizeof(*entry) + len);

	if (entry == NULL)
		return NULL;
	memcpy(entry->name, name, len);
	entry->hash = hash;
	entry->request = ++names->last_request;
	TAILQ_INIT(&entry->waits);
	SLIST_INSERT_HEAD(&names->buckets[hash], entry, bucket);
	TAILQ_INSERT_TAIL(&names->pending, entry, age);
	names->npending++;
	return entry;
}

const struct names_answer *
names_known(struct names *names, const char *name)
{
	struct names_entry *entry = find(names, name, hash_name(name));

	if (entry == NULL || entry->request != 0)
		return NULL;
	if (proxyd_now(names->p) < entry->expires)
		return entry->answer;
	entry_free(names, entry);
	return NULL;
}

const struct names_answer *
names_ask(struct names *names, const char *name, struct names_wait *wait)
{
	const struct names_answer *known = names_known(names, name);
	unsigned hash = hash_name(name);
	struct msg_resolve_ask ask = { .unused_ = 0 };
	struct names_entry *entry;

	if (known != NULL)
		return known;
	entry = find(names, name, hash);
	if (entry == NULL) {
		if (names->resolver == NULL)
			return &answer_failed;
		if (names->npending >= PENDING_MAX)
			return &answer_busy;
		entry = entry_new(names, name, hash);
		if (entry == NULL)
			return &answer_failed;
		ask.request = entry->request;
		MSG_SET_STR(ask.name, name);
		if (peer_send(names->resolver, MSG_resolve_ask, &ask, NULL, 0) <
		    0) {
			entry_free(names, entry);
			return &answer_failed;
		}
	}
	wait->entry = entry;
	TAILQ_INSERT_TAIL(&entry->waits, wait, link);
	return NULL;
}

void
names_cancel(struct names_wait *wait)
{
	if (wait->entry == NULL)
		return;
	TAILQ_REMOVE(&wait->entry->waits, wait, link);
	wait->entry = NULL;
}

/* Whole records of 17 bytes, families 4 and 6 only, at most NAMES_ADDRS. */
static int
read_addresses(const struct msg_resolve_answer *msg, struct names_answer *ret)
{
	size_t i;

	if (msg->addresses.len % ADDR_BYTES != 0 ||
	    msg->addresses.len / ADDR_BYTES > NAMES_ADDRS)
		return -EPROTO;
	ret->status = (unsigned)msg->status;
	ret->n = msg->addresses.len / ADDR_BYTES;
	for (i = 0; i < ret->n; i++) {
		const uint8_t *rec = msg->addresses.data + i * ADDR_BYTES;

		if (rec[0] != 4 && rec[0] != 6)
			return -EPROTO;
		ret->addrs[i].family = rec[0];
		memcpy(ret->addrs[i].bytes, rec + 1, 16);
	}
	if ((ret->status == RESOLVE_OK) != (ret->n > 0))
		return -EPROTO;
	return 0;
}

/* The entry becomes known; the oldest known one makes room. */
static void
remember(struct names *names, struct names_entry *entry, unsigned status)
{
	TAILQ_REMOVE(&names->pending, entry, age);
	names->npending--;
	entry->request = 0;
	entry->expires = proxyd_now(names->p) +
	    (status == RESOLVE_OK ? CACHE_S : CACHE_FAILED_S);
	TAILQ_INSERT_TAIL(&names->known, entry, age);
	if (++names->nknown > CACHE_MAX)
		entry_free(names, TAILQ_FIRST(&names->known));
}

static int
on_answer(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct names *names = ctx;
	const struct msg_resolve_answer *got = &msg->resolve_answer;
	struct names_entry *entry;
	struct names_answer *answer;

	(void)peer;
	close_all(fds, nfds);
	TAILQ_FOREACH (entry, &names->pending, age)
		if (entry->request == got->request)
			break;
	/* Numbers are never reused, so one that is not known was made up. */
	if (entry == NULL)
		return -EPROTO;
	answer = calloc(1, sizeof(*answer));
	if (answer == NULL) {
		tell(entry, &answer_failed);
		entry_free(names, entry);
		return 0;
	}
	if (read_addresses(got, answer) < 0) {
		free(answer);
		return -EPROTO;
	}
	entry->answer = answer;
	remember(names, entry, answer->status);
	tell(entry, answer);
	return 0;
}

/*
 * The resolver is gone or broke the rules.  The supervisor starts another and
 * sends a new link; until then look-ups fail.
 */
static void
on_end(void *ctx, struct peer *peer, enum chan_end why, const char *text)
{
	struct names *names = ctx;

	if (why == CHAN_END_RULES)
		log_event(EV_PEER_RULES, LF_STR(LK_PEER, "resolver"),
		    LF_STR(LK_REASON, text));
	if (names->resolver == peer)
		names->resolver = NULL;
	peer_free(peer);
	fail_pending(names);
}

static const struct peer_handler handlers[] = {
	{ MSG_resolve_answer, PEER_ANY, false, on_answer },
};

static const struct peer_ops ops = {
	.handlers = handlers,
	.nhandlers = ARRAY_LEN(handlers),
	.on_end = on_end,
};

int
names_link(struct names *names, int fd)
{
	struct peer *peer = peer_new(names->p->base, fd, PROC_PROXYD,
	    PROC_RESOLVER, &ops, names);

	if (peer == NULL)
		return -ENOMEM;
	if (names->resolver != NULL) {
		peer_free(names->resolver);
		names->resolver = NULL;
		fail_pending(names);
	}
	names->resolver = peer;
	return 0;
}
