/*
 * stockade-resolver: turns names into addresses for stockade-proxyd, by the
 * C library and so with the same answers as everything else on the host.
 * Started by stockaded, as a user of its own; trusts neither proxyd nor DNS,
 * and is trusted by nobody: proxyd checks every address it gives.
 */
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/priv.h"
#include "common/proc.h"
#include "common/size.h"
#include "config.h"
#include "protocol/peer.h"
#include "proxyd/resolver/confine.h"
#include "proxyd/resolver/queue.h"

struct resolver {
	struct event_base *base;
	struct peer *supervisor;
	struct peer *proxyd;
	uint64_t link; /* number of the link in use */
	struct queue *queue;
	struct event *answers;
};

static void
send_answer(struct resolver *r, const struct queue_answer *answer)
{
	struct msg_resolve_answer msg = { .unused_ = 0 };
	size_t i;

	msg.request = answer->request;
	msg.status = answer->status;
	for (i = 0; i < answer->n; i++) {
		uint8_t *rec = msg.addresses.data + i * 17;

		rec[0] = answer->addrs[i].family;
		memcpy(rec + 1, answer->addrs[i].bytes, 16);
	}
	msg.addresses.len = (uint16_t)(answer->n * 17);
	(void)peer_send(r->proxyd, MSG_resolve_answer, &msg, NULL, 0);
}

static void
on_answers(int fd, short what, void *arg)
{
	struct resolver *r = arg;
	struct queue_answer answer;
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) < 0)
		return;
	while (queue_take(r->queue, &answer))
		if (answer.link == r->link)
			send_answer(r, &answer);
}

static int
on_ask(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	const struct msg_resolve_ask *ask = &msg->resolve_ask;
	struct resolver *r = ctx;
	struct queue_answer answer;
	int error;

	(void)peer;
	close_all(fds, nfds);
	error = queue_ask(r->queue, r->link, ask->request, ask->name);
	if (error == 0)
		return 0;
	/* proxyd sends checked names only. */
	if (error == -EINVAL)
		return -EPROTO;
	memset(&answer, 0, sizeof(answer));
	answer.request = ask->request;
	answer.status = RESOLVE_BUSY;
	send_answer(r, &answer);
	return 0;
}

/* proxyd ended or broke the rules; the supervisor makes a new link. */
static void
on_proxyd_end(void *ctx, struct peer *peer, enum chan_end why, const char *text)
{
	struct resolver *r = ctx;

	(void)why;
	(void)text;
	if (r->proxyd == peer) {
		r->proxyd = NULL;
		r->link++;
	}
	peer_free(peer);
}

static const struct peer_handler proxyd_handlers[] = {
	{ MSG_resolve_ask, PEER_ANY, false, on_ask },
};

static const struct peer_ops proxyd_ops = {
	.handlers = proxyd_handlers,
	.nhandlers = ARRAY_LEN(proxyd_handlers),
	.on_end = on_proxyd_end,
};

static int
on_link(void *ctx, struct peer *peer, const union msg_any *msg, int *fds,
    size_t nfds)
{
	struct resolver *r = ctx;

	(void)peer;
	(void)msg;
	if (nfds != 1) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	peer_free(r->proxyd);
	r->link++;
	r->proxyd = peer_new(r->base, take_fd(&fds[0]), PROC_RESOLVER,
	    PROC_PROXYD, &proxyd_ops, r);
	if (r->proxyd == NULL)
		log_event(EV_INTERNAL, LF_STR(LK_STEP, "link to proxyd"));
	return 0;
}

static void
on_supervisor_end(void *ctx, struct peer *peer, enum chan_end why,
    const char *text)
{
	struct resolver *r = ctx;

	(void)why;
	(void)text;
	r->supervisor = NULL;
	peer_free(peer);
	(void)event_base_loopbreak(r->base);
}

static const struct peer_handler supervisor_handlers[] = {
	{ MSG_resolver_link, PEER_ANY, false, on_link },
};

static const struct peer_ops supervisor_ops = {
	.handlers = supervisor_handlers,
	.nhandlers = ARRAY_LEN(supervisor_handlers),
	.on_end = on_supervisor_end,
};

static void
usage(void)
{
	(void)fprintf(stderr,
	    "usage: stockade-resolver [-u user] [-l level]\n");
	exit(1);
}

/* One look-up of each kind, so that modules are loaded and files were seen
 * to be readable before confinement. */
static void
load_modules(void)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;

	if (getaddrinfo("localhost", NULL, &hints, &list) == 0)
		freeaddrinfo(list);
}

static void
give_up_privilege(const char *name, pid_t parent)
{
	struct priv_user user;
	int r;

	r = priv_lookup_user(name, &user);
	if (r < 0)
		proc_fatal("user %s: %s", name, strerror(-r));
	load_modules();
	if (chdir("/") < 0)
		proc_fatal("chdir: %s", strerror(errno));
	priv_enter(&user, parent);
	r = resolver_confine_files();
	if (r < 0)
		proc_fatal("Landlock: %s", strerror(-r));
}

static void
start(struct resolver *r)
{
	int error;

	r->queue = queue_new();
	r->base = event_base_new();
	if (r->queue == NULL || r->base == NULL)
		proc_fatal("threads cannot be started");
	r->answers = event_new(r->base, queue_fd(r->queue),
	    EV_READ | EV_PERSIST, on_answers, r);
	if (r->answers == NULL || event_add(r->answers, NULL) < 0)
		proc_fatal("out of memory");
	error = resolver_confine_calls();
	if (error < 0)
		proc_fatal("seccomp: %s", strerror(-error));
	r->supervisor = peer_new(r->base, PROC_CHANNEL_FD, PROC_RESOLVER,
	    PROC_SUPERVISOR, &supervisor_ops, r);
	if (r->supervisor == NULL ||
	    PEER_SEND(r->supervisor, ready, .unused_ = 0) < 0)
		proc_fatal("the channel cannot be used");
}

int
main(int argc, char **argv)
{
	static struct resolver r;
	const char *user = RESOLVE_USER;
	enum log_level level = LOG_LEVEL_INFO;
	pid_t parent = getppid();
	int c;

	while ((c = getopt(argc, argv, "u:l:V")) != -1) {
		if (c == 'u')
			user = optarg;
		else if (c == 'l' && optarg[0] >= '3' && optarg[0] <= '7' &&
		    optarg[1] == '\0')
			level = (enum log_level)(optarg[0] - '0');
		else if (c == 'V')
			return puts("stockade-resolver " PACKAGE_VERSION) < 0;
		else
			usage();
	}
	if (optind != argc)
		usage();
	proc_begin("stockade-resolver", PROC_CHANNEL_FD + 1);
	log_init("resolver", level);
	/* Three tries of 3 s fit into the 15 s of a connection (SPEC AB). */
	if (setenv("RES_OPTIONS", "timeout:3 attempts:2", 1) < 0)
		proc_fatal("out of memory");
	give_up_privilege(user, parent);
	start(&r);
	log_event(EV_STARTED, LF_STR(LK_NAME, user));
	(void)event_base_dispatch(r.base);
	/* Threads may be inside the C library: no tidying up. */
	_exit(0);
}
