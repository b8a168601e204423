/* See calls.h: the table, and the calls that change what is remembered. */
#include "launcherd/broker/calls.h"

#include <sys/syscall.h>

#include <stddef.h>
#include <stdint.h>

#include "common/size.h"
#include "launcherd/broker/broker.h"

#define NUMBERS_MAX 512

static const struct call rows[] = {
#define BROKER_CALL(n, fn, dir, path, dir2, path2, extra) \
	{ #n, SYS_##n, fn, dir, path, dir2, path2, extra },
#include "launcherd/broker/calls.def"
#undef BROKER_CALL
};

const struct call *
calls_find(int nr)
{
	/* Row + 1 of each number. */
	static uint8_t index[NUMBERS_MAX];
	static bool made;

	if (!made) {
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			if (rows[i].nr >= 0 && rows[i].nr < NUMBERS_MAX)
				index[rows[i].nr] = (uint8_t)(i + 1);
		made = true;
	}
	if (nr < 0 || nr >= NUMBERS_MAX || index[nr] == 0)
		return NULL;
	return &rows[index[nr] - 1];
}

int
call_change(struct broker *b, struct request *rq)
{
	target_changes(b, rq);
	return ANSWER_CONTINUE;
}

/* From now on an absolute path may begin elsewhere for some process. */
int
call_chroot(struct broker *b, struct request *rq)
{
	b->chrooted = true;
	return call_change(b, rq);
}
