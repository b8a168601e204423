/*
 * Handler table for messages of the supervisor; see dispatch.h.  The
 * supervisor is trusted to be root, but its bytes are decoded as strictly as
 * anybody's; the lists inside egress_open come from stockade-control.
 */
#include "proxyd/dispatch.h"

#include <errno.h>
#include <event2/event.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/size.h"
#include "protocol/peer.h"
#include "proxyd/names.h"
#include "proxyd/proxyd.h"
#include "proxyd/session.h"

/* Before and after the limits are known. */
#define STATE_NEW 0u
#define STATE_SET 1u
#define IN_NEW (1u << STATE_NEW)
#define IN_SET (1u << STATE_SET)

static int
on_setup(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	const struct msg_proxy_setup *setup = &msg->proxy_setup;
	struct proxyd *p = ctx;

	close_all(fds, nfds);
	p->conns_session_max = (size_t)setup->tunnels_session;
	p->tunnel_idle_s = (time_t)setup->tunnel_idle_s;
	if (setup->tunnels_all < p->nofile_max)
		p->conns_max = (size_t)setup->tunnels_all;
	else
		p->conns_max = p->nofile_max;
	peer_set_state(peer, STATE_SET);
	return 0;
}

/*
 * A session that cannot be opened is reported here and its listeners close,
 * so the run's connections are refused by the kernel.
 */
static int
on_open(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct proxyd *p = ctx;
	uint64_t id = msg->egress_open.sandbox;
	int r;

	(void)peer;
	if (nfds != 3) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	r = session_open(p, id, fds);
	if (r < 0)
		log_event(EV_INTERNAL, LF_STR(LK_STEP, "egress session"),
		    LF_NUM(LK_SANDBOX, id), LF_NUM(LK_ERRNO, -r));
	return r == -EEXIST ? -EPROTO : 0;
}

/* One that is not open ended before; numbers are not reused. */
static int
on_close(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct proxyd *p = ctx;

	(void)peer;
	close_all(fds, nfds);
	session_free(session_find(p, msg->egress_close.sandbox));
	return 0;
}

static int
on_link(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct proxyd *p = ctx;
	int r;

	(void)peer;
	(void)msg;
	if (nfds != 1) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	r = names_link(p->names, take_fd(&fds[0]));
	if (r < 0)
		log_event(EV_INTERNAL, LF_STR(LK_STEP, "resolver link"),
		    LF_NUM(LK_ERRNO, -r));
	return 0;
}

/* Without the supervisor there is nothing to do: leave the loop. */
static void
on_end(void *ctx, struct peer *peer, enum chan_end why, const char *text)
{
	struct proxyd *p = ctx;

	(void)text;
	if (why != CHAN_END_EOF)
		log_event(EV_STOPPING, LF_STR(LK_REASON, text));
	p->supervisor = NULL;
	peer_free(peer);
	(void)event_base_loopbreak(p->base);
}

static const struct peer_handler handlers[] = {
	{ MSG_proxy_setup, IN_NEW, true, on_setup },
	{ MSG_egress_open, IN_SET, false, on_open },
	{ MSG_egress_close, IN_SET, false, on_close },
	{ MSG_resolver_link, IN_NEW | IN_SET, false, on_link },
};

static const struct peer_ops ops = {
	.handlers = handlers,
	.nhandlers = ARRAY_LEN(handlers),
	.on_end = on_end,
};

int
dispatch_start(struct proxyd *p, int fd)
{
	p->supervisor =
	    peer_new(p->base, fd, PROC_PROXYD, PROC_SUPERVISOR, &ops, p);
	if (p->supervisor == NULL)
		return -ENOMEM;
	return PEER_SEND(p->supervisor, ready, .unused_ = 0);
}
