/*
 * stockade-lookup: one per launch, a child of launcherd, with the channel on
 * descriptor 3. It starts as root with SETUID and SETGID, is told a uid, tells
 * who that user is, takes the run's ids for good, confines itself, and only
 * then maps the question, whose bytes are control's and may be hostile.
 *
 * After a run that made repositories one is started with that run's ids, to
 * tell what git would run in them (repository.h).
 *
 * It is started ahead of its launch and waits for the uid with the modules of
 * NSS loaded. Until then it knows nobody; it serves that launch alone, and NSS
 * is asked then, not before.
 *
 * Its answer is worth what the run's user is worth: control uses it for that
 * user's own paths and for nothing else.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/chan.h"
#include "common/cleanup.h"
#include "common/memfd.h"
#include "launcherd/init/channel.h"
#include "launcherd/init/ids.h"
#include "launcherd/lookup/confine.h"
#include "launcherd/lookup/repository.h"
#include "launcherd/lookup/resolve.h"
#include "launcherd/lookup/user.h"
#include "protocol/lookup.h"
#include "protocol/message.h"

/* Time for all paths; a launch has 10 s (SPEC AB). A single call that hangs,
 * on a dead network file system, is ended by the alarm. */
#define BUDGET_MS 6000
#define ALARM_S 8

static void
say(enum msg_type type, const void *msg, const int *fds, size_t nfds)
{
	if (channel_send(PROC_LOOKUP, type, msg, fds, nfds) < 0)
		_exit(EXIT_RULES);
}

static _Noreturn void
failed(int error, const char *reason)
{
	struct msg_lookup_result msg = { .error = (uint64_t)-error };

	MSG_SET_STR(msg.reason, reason);
	say(MSG_lookup_result, &msg, NULL, 0);
	_exit(EXIT_RULES);
}

/*
 * For good: afterwards this is an ordinary process of the user without a
 * capability or a file system right.
 */
static void
become_user(const struct ids *ids, pid_t parent)
{
	int r = ids_take(ids);

	if (r < 0)
		failed(r, "cannot take the user's ids");
	/* Both are cleared by the change of ids. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || getppid() != parent)
		_exit(EXIT_START);
	r = confine_lookup();
	if (r < 0)
		failed(r, "cannot confine the look-up");
}

static void
answer(int question_fd, const char *home)
{
	struct lookup_question *question = malloc(sizeof(*question));
	struct msg_lookup_result msg;
	struct memfd_map map = { NULL, 0 };
	struct wire_out out;
	int r, fd;

	if (question == NULL)
		failed(-ENOMEM, "out of memory");
	r = memfd_open_map(question_fd, LOOKUP_BYTES_MAX, &map);
	if (r == 0)
		r = lookup_question_decode(map.data, map.len, question);
	if (r < 0)
		failed(r, "the question is broken");
	wire_out_init(&out);
	r = resolve_all(question, home, BUDGET_MS, &out);
	if (r < 0)
		failed(r,
		    r == -ETIMEDOUT ? "the look-up took too long" :
				      "the answer is too large");
	fd = memfd_seal("lookup", out.data, out.len);
	if (fd < 0)
		failed(fd, "no memory for the answer");
	memset(&msg, 0, sizeof(msg));
	say(MSG_lookup_result, &msg, &fd, 1);
}

static _Noreturn void
start_failed(const char *what)
{
	(void)fprintf(stderr, "stockade-lookup: %s\n", what);
	_exit(EXIT_START);
}

static void
start(void)
{
	const char *why = channel_open();

	(void)umask(077);
	if (why != NULL)
		start_failed(why);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || chdir("/") < 0)
		start_failed("cannot set up");
	(void)signal(SIGALRM, SIG_DFL);
}

/* The uid must be the one that launcherd told first. */
static _Noreturn void
look_up(uid_t uid, pid_t parent)
{
	static struct msg_lookup_user user;
	static union msg_any any;
	static struct ids ids;
	const struct msg_lookup_question *m = &any.lookup_question;
	int fd;

	user_look_up(uid, &user);
	say(MSG_lookup_user, &user, NULL, 0);
	if (user.error != 0)
		_exit(0);
	fd = channel_expect(PROC_LOOKUP, MSG_lookup_question, &any);
	if (ids_from_message(m->uid, m->gid, m->groups.data, m->groups.len,
		&ids) < 0 ||
	    ids.uid != uid)
		failed(-EPERM, "not the user of this look-up");
	become_user(&ids, parent);
	answer(fd, user.home);
	_exit(0);
}

/* Repositories that a run has made, until launcherd has no more. */
static _Noreturn void
inspect(const struct msg_inspect_begin *m, pid_t parent)
{
	static struct msg_inspect_answer reply;
	static union msg_any any;
	static struct ids ids;

	if (ids_from_message(m->uid, m->gid, m->groups.data, m->groups.len,
		&ids) < 0)
		_exit(EXIT_RULES);
	become_user(&ids, parent);
	for (;;) {
		(void)channel_expect(PROC_LOOKUP, MSG_inspect_ask, &any);
		repository_look(any.inspect_ask.path, any.inspect_ask.dev,
		    any.inspect_ask.ino, &reply);
		say(MSG_inspect_answer, &reply, NULL, 0);
	}
}

int
main(int argc, char **argv)
{
	static union msg_any any;
	pid_t parent = getppid();
	int fds[CHAN_FDS_MAX];
	size_t nfds = 0;
	unsigned type;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		(void)printf("stockade-lookup %s\n", PACKAGE_VERSION);
		return 0;
	}
	if (argc != 1)
		start_failed("usage: stockade-lookup [--version]");
	start();
	user_prepare();
	type = channel_receive(PROC_LOOKUP, &any, fds, &nfds);
	(void)alarm(ALARM_S);
	if (type == MSG_inspect_begin)
		inspect(&any.inspect_begin, parent);
	if (type != MSG_lookup_begin)
		_exit(EXIT_RULES);
	look_up((uid_t)any.lookup_begin.uid, parent);
}
