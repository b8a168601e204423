/*
 * bind of an AF_UNIX socket to a path: bind(2), unix(7). The socket is
 * borrowed, and bound to the bare name in the pinned directory, which is then
 * what getsockname(2) says.
 */
#include "launcherd/broker/calls.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "launcherd/broker/broker.h"
#include "launcherd/broker/judge.h"
#include "launcherd/broker/notify.h"
#include "launcherd/broker/resolve.h"

#define PATH_AT offsetof(struct sockaddr_un, sun_path)
#define UNIX_PATH_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

/* The path of the address; false: other families, abstract names, no name. */
static bool
read_path(struct request *rq, char *ret)
{
	uint64_t len = (uint32_t)rq->args[rq->call->extra];
	struct sockaddr_un sun;

	if (len <= PATH_AT || len > sizeof(sun))
		return false;
	memset(&sun, 0, sizeof(sun));
	if (target_bytes(rq, rq->args[rq->call->path], &sun, (size_t)len) < 0)
		return false;
	if (sun.sun_family != AF_UNIX || sun.sun_path[0] == '\0')
		return false;
	memcpy(ret, sun.sun_path, UNIX_PATH_MAX);
	ret[UNIX_PATH_MAX] = '\0';
	return true;
}

static int
bind_in(struct broker *b, struct request *rq, const struct place *p, int sock)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct stat st;

	if (p->name_len >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	if (judge_denies(b, p, DFA_WRITE | JUDGE_FILE)) {
		if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return -EADDRINUSE;
		return judge_denied(b, rq, VIOLATION_FILE_CREATE);
	}
	memcpy(sun.sun_path, p->name, p->name_len);
	target_take_umask(b, rq);
	if (!notify_valid(b, rq->id))
		return ANSWER_GONE;
	if (fchdir(p->dir) < 0)
		return -errno;
	return bind(sock, (struct sockaddr *)&sun,
		   (socklen_t)(PATH_AT + p->name_len + 1)) < 0 ?
	    -errno :
	    0;
}

int
call_bind(struct broker *b, struct request *rq)
{
	static char path[UNIX_PATH_MAX + 1];
	static struct place place;
	autoclose int sock = -1;
	int domain = -1, r;
	socklen_t len = sizeof(domain);

	if (!read_path(rq, path))
		return ANSWER_CONTINUE;
	place_init(&place);
	r = resolve_parent(b, rq, AT_FDCWD, path, &place);
	if (r == 0 && (place.slash || !place.guarded))
		r = ANSWER_CONTINUE;
	if (r == 0) {
		sock = target_socket(b, rq, (int)rq->args[0]);
		/* Of another family, or no socket: the kernel says so. */
		r = sock >= 0 &&
			getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain,
			    &len) == 0 &&
			domain == AF_UNIX ?
		    bind_in(b, rq, &place, sock) :
		    ANSWER_CONTINUE;
	}
	place_done(&place);
	return r;
}
