/*
 * The table of questions; see requests.h. In stockaded. Numbers of both sides
 * are looked up and never believed.
 */
#include "supervisor/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

void
requests_init(struct requests *requests)
{
	memset(requests, 0, sizeof(*requests));
	TAILQ_INIT(&requests->list);
}

void
requests_remove(struct requests *requests, struct request *request)
{
	TAILQ_REMOVE(&requests->list, request, next);
	requests->count--;
	close_all(&request->plan_fd, 1);
	close_all(&request->guard_fd, 1);
	free(request);
}

void
requests_drop_rules(struct requests *requests, uint64_t sandbox)
{
	struct request *request = TAILQ_FIRST(&requests->list);

	while (request != NULL) {
		struct request *after = TAILQ_NEXT(request, next);

		if (request->kind == REQUEST_RULES &&
		    request->sandbox == sandbox)
			requests_remove(requests, request);
		request = after;
	}
}

void
requests_done(struct requests *requests)
{
	struct request *request;

	while ((request = TAILQ_FIRST(&requests->list)) != NULL)
		requests_remove(requests, request);
}

static void
drop_old(struct requests *requests, uint64_t now_ms)
{
	struct request *request = TAILQ_FIRST(&requests->list);

	while (request != NULL) {
		struct request *after = TAILQ_NEXT(request, next);

		if (request->answered_ms != 0 &&
		    now_ms - request->answered_ms > REQUEST_LOOKUP_MS)
			requests_remove(requests, request);
		request = after;
	}
}

int
requests_add(struct requests *requests, enum request_kind kind, uint64_t theirs,
    uint64_t now_ms, struct request **ret)
{
	struct request *request;

	drop_old(requests, now_ms);
	if (requests_find_theirs(requests, kind, theirs) != NULL)
		return -EEXIST;
	if (requests->count >= REQUESTS_MAX)
		return -ENOSPC;
	request = calloc(1, sizeof(*request));
	if (request == NULL)
		return -ENOMEM;
	request->number = ++requests->last;
	request->theirs = theirs;
	request->kind = kind;
	request->plan_fd = -1;
	request->guard_fd = -1;
	TAILQ_INSERT_TAIL(&requests->list, request, next);
	requests->count++;
	*ret = request;
	return 0;
}

struct request *
requests_find(struct requests *requests, enum request_kind kind,
    uint64_t number)
{
	struct request *request;

	TAILQ_FOREACH (request, &requests->list, next)
		if (request->kind == kind && request->number == number)
			return request;
	return NULL;
}

struct request *
requests_find_theirs(struct requests *requests, enum request_kind kind,
    uint64_t theirs)
{
	struct request *request;

	TAILQ_FOREACH (request, &requests->list, next)
		if (request->kind == kind && request->theirs == theirs &&
		    !request->orphan)
			return request;
	return NULL;
}

void
requests_orphan(struct requests *requests)
{
	struct request *request = TAILQ_FIRST(&requests->list);

	while (request != NULL) {
		struct request *after = TAILQ_NEXT(request, next);

		if (request->answered_ms != 0)
			requests_remove(requests, request);
		else
			request->orphan = true;
		request = after;
	}
}

void
requests_fail(struct requests *requests,
    void (*fn)(void *ctx, const struct request *), void *ctx)
{
	struct request *request;

	while ((request = TAILQ_FIRST(&requests->list)) != NULL) {
		if (request->answered_ms == 0 && !request->orphan)
			fn(ctx, request);
		requests_remove(requests, request);
	}
}
