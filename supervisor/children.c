/*
 * The daemons' processes; see children.h. A daemon may be taken over: it can
 * end, hang, lie about nothing here, and its process is named by a pidfd, so
 * that a signal never reaches another process with the same number.
 */
#include "supervisor/children.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/supervisor.h"

/* Packets that may wait for one daemon before its source is slowed down, and
 * how often it is looked at again. */
#define BALANCE_PACKETS 512
#define BALANCE_MS 5

static struct rlimit nofile;
static bool has_nofile;

void
children_save_limits(void)
{
	has_nofile = getrlimit(RLIMIT_NOFILE, &nofile) == 0;
}

uint64_t
child_delay_ms(unsigned failures)
{
	uint64_t delay = CHILD_DELAY_MIN_MS;

	for (unsigned i = 1; i < failures && delay < CHILD_DELAY_MAX_MS; i++)
		delay *= 2;
	return delay < CHILD_DELAY_MAX_MS ? delay : CHILD_DELAY_MAX_MS;
}

static void
set_timer(struct child *child, uint64_t ms)
{
	const struct timeval tv = { .tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	(void)event_add(child->timer, &tv);
}

static void
send_kill(const struct child *child)
{
	if (child->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL,
		    NULL, 0);
}

struct peer *
child_peer(struct child *child)
{
	return child->status == CHILD_READY ? child->peer : NULL;
}

/* ------------------------------------------------ start */

/* In the new process: descriptors 3 and 4, then the program. Only calls that
 * are safe after fork. */
static void __attribute__((noreturn)) run_program(int channel, int extra,
    const char *path, char *const *argv, char *const *env)
{
	int high_channel = fcntl(channel, F_DUPFD_CLOEXEC, 16);
	int high_extra = extra < 0 ? -1 : fcntl(extra, F_DUPFD_CLOEXEC, 16);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	if (high_channel < 0 || null < 0 || (extra >= 0 && high_extra < 0))
		_exit(CHILD_EXEC_FAILED);
	if (dup2(null, STDIN_FILENO) < 0 ||
	    dup2(high_channel, CHILD_CHANNEL_FD) < 0)
		_exit(CHILD_EXEC_FAILED);
	if (high_extra >= 0 && dup2(high_extra, CHILD_EXTRA_FD) < 0)
		_exit(CHILD_EXEC_FAILED);
	/* Close-on-exec and not closed: an error is still to be written. */
	(void)close_range(high_extra >= 0 ? CHILD_EXTRA_FD + 1 :
					    CHILD_CHANNEL_FD + 1,
	    ~0u, CLOSE_RANGE_CLOEXEC);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (has_nofile)
		(void)setrlimit(RLIMIT_NOFILE, &nofile);
	(void)execve(path, argv, env);
	(void)dprintf(STDERR_FILENO, "stockaded: %s: %s\n", path,
	    strerror(errno));
	_exit(CHILD_EXEC_FAILED);
}

/* The environment of every daemon; nothing of ours is inherited but where the
 * log goes (and, in a sanitizer build, its options). */
static void
make_environment(const char **env)
{
	static const char *const names[] = { "JOURNAL_STREAM", "ASAN_OPTIONS",
		"UBSAN_OPTIONS", "LSAN_OPTIONS" };
	static char text[4][512];
	size_t n = 0;

	env[n++] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value == NULL || strlen(value) > 400)
			continue;
		(void)snprintf(text[i], sizeof(text[i]), "%s=%s", names[i],
		    value);
		env[n++] = text[i];
	}
	env[n] = NULL;
}

/* Forks and executes; the parent's end of the channel is *ret_channel. */
static int
spawn(struct child *child, int *ret_channel)
{
	struct supervisor *s = child->supervisor;
	const char *argv[10], *env[8];
	char path[4096];
	union {
		const char **in;
		char *const *out;
	} a = { argv }, e = { env };
	int pair[2];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s",
		s->options.libexec_dir, child->kind->program) >= sizeof(path))
		return -ENAMETOOLONG;
	supervisor_arguments(s, child->kind, argv);
	make_environment(env);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	child->pid = fork();
	if (child->pid == 0)
		run_program(pair[1],
		    child->kind->args == CHILD_ARGS_CONF ? s->conf_dir : -1,
		    path, a.out, e.out);
	(void)close(pair[1]);
	if (child->pid < 0) {
		(void)close(pair[0]);
		return -EAGAIN;
	}
	*ret_channel = pair[0];
	return 0;
}

static void child_exited(evutil_socket_t, short, void *);

/* Watches the new process and its channel. */
static int
watch(struct child *child, int channel)
{
	struct supervisor *s = child->supervisor;

	child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	if (child->pidfd < 0) {
		(void)close(channel);
		return -errno;
	}
	(void)fcntl(child->pidfd, F_SETFD, FD_CLOEXEC);
	child->peer = peer_new(s->base, channel, PROC_SUPERVISOR,
	    child->kind->proc, child->kind->ops, child);
	child->exited =
	    event_new(s->base, child->pidfd, EV_READ, child_exited, child);
	if (child->peer == NULL || child->exited == NULL ||
	    event_add(child->exited, NULL) < 0)
		return -ENOMEM;
	peer_set_state(child->peer, CHILD_PEER_STARTING);
	return 0;
}

static void
schedule(struct child *child)
{
	set_timer(child, child_delay_ms(child->failures));
}

/* No process could be made or watched. */
static void
start_failed(struct child *child, int error)
{
	log_event(EV_INTERNAL, LF_STR(LK_NAME, child->kind->program),
	    LF_STR(LK_STEP, "start"), LF_NUM(LK_ERRNO, -error));
	if (child->pid > 0) {
		(void)kill(child->pid, SIGKILL);
		(void)waitpid(child->pid, NULL, 0);
	}
	peer_free(child->peer);
	child->peer = NULL;
	if (child->exited != NULL)
		event_free(child->exited);
	child->exited = NULL;
	if (child->pidfd >= 0)
		(void)close(child->pidfd);
	child->pidfd = -1;
	child->pid = -1;
	child->status = CHILD_DOWN;
	child->failures++;
	schedule(child);
}

void
child_start(struct child *child)
{
	int channel = -1;
	int r;

	if (child->status != CHILD_DOWN)
		return;
	(void)event_del(child->timer);
	child->pid = -1;
	child->starts++;
	r = spawn(child, &channel);
	if (r == 0)
		r = watch(child, channel);
	if (r < 0) {
		start_failed(child, r);
		return;
	}
	child->status = CHILD_STARTING;
	set_timer(child, CHILD_READY_MS);
	log_event(EV_CHILD_STARTED, LF_STR(LK_NAME, child->kind->program),
	    LF_NUM(LK_PID, child->pid));
}

void
child_ready(struct child *child)
{
	child->status = CHILD_READY;
	set_timer(child, CHILD_STABLE_MS);
	log_event(EV_CHILD_READY, LF_STR(LK_NAME, child->kind->program),
	    LF_NUM(LK_PID, child->pid));
}

/* ------------------------------------------------ end */

static void
close_channel(struct child *child)
{
	peer_free(child->peer);
	child->peer = NULL;
	(void)event_del(child->resume);
	child->slow = NULL;
}

void
child_end(struct child *child)
{
	if (child->status == CHILD_DOWN) {
		(void)event_del(child->timer);
		return;
	}
	if (child->status == CHILD_ENDING)
		return;
	close_channel(child);
	child->status = CHILD_ENDING;
	set_timer(child, CHILD_END_MS);
}

void
child_kill(struct child *child)
{
	if (child->status == CHILD_DOWN)
		return;
	child_end(child);
	send_kill(child);
}

void
child_on_end(void *ctx, struct peer *peer, enum chan_end why,
    const char *why_text)
{
	struct child *child = ctx;

	(void)peer;
	(void)why_text;
	/* At the end of file it is on its way out by itself. */
	if (why == CHAN_END_EOF)
		child_end(child);
	else
		child_kill(child);
}

/* delay 0: it was to end. */
static void
log_end(const struct child *child, const siginfo_t *info, uint64_t delay)
{
	bool exited = info->si_code == CLD_EXITED;

	if (delay == 0) {
		log_event(EV_CHILD_STOPPED,
		    LF_STR(LK_NAME, child->kind->program),
		    LF_NUM(LK_PID, child->pid));
		return;
	}
	log_event(EV_CHILD_ENDED, LF_STR(LK_NAME, child->kind->program),
	    LF_NUM(LK_PID, child->pid),
	    LF_NUM(LK_STATUS, exited ? info->si_status : 0),
	    LF_NUM(LK_SIGNAL, exited ? 0 : info->si_status),
	    LF_NUM(LK_DELAY_MS, delay));
}

static bool
restarts(const struct supervisor *s)
{
	return s->phase == PHASE_START || s->phase == PHASE_RUN;
}

/* Its process is a zombie. What it sent last and was not read is lost: nobody
 * can answer it any more, and on_gone settles all that it had in hand. */
static void
child_exited(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;
	struct supervisor *s = child->supervisor;
	siginfo_t info;

	(void)fd;
	(void)what;
	memset(&info, 0, sizeof(info));
	if (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG) < 0 ||
	    info.si_pid == 0) {
		(void)event_add(child->exited, NULL);
		return;
	}
	close_channel(child);
	event_free(child->exited);
	child->exited = NULL;
	(void)close(child->pidfd);
	child->pidfd = -1;
	(void)event_del(child->timer);
	child->status = CHILD_DOWN;
	child->failures++;
	child->exit_status = info.si_code == CLD_EXITED ? info.si_status : -1;
	log_end(child, &info,
	    restarts(s) ? child_delay_ms(child->failures) : 0);
	child->pid = -1;
	child->kind->on_gone(s, child);
	if (restarts(s))
		schedule(child);
	service_advance(s);
}

/* One timer, whose meaning is the child's status. */
static void
timed(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;

	(void)fd;
	(void)what;
	if (child->status == CHILD_DOWN) {
		child_start(child);
	} else if (child->status == CHILD_READY) {
		child->failures = 0;
	} else if (child->status == CHILD_STARTING) {
		log_event(EV_INTERNAL, LF_STR(LK_NAME, child->kind->program),
		    LF_STR(LK_REASON, "not ready in time"));
		child_kill(child);
	} else {
		send_kill(child);
	}
}

/* ------------------------------------------------ balance */

static void
look_again(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval tv = { .tv_usec = BALANCE_MS * 1000 };
	struct child *child = arg;

	(void)fd;
	(void)what;
	if (child->slow != NULL && child->slow->peer != NULL &&
	    chan_pending(peer_chan(child->slow->peer)) > BALANCE_PACKETS / 2) {
		(void)event_add(child->resume, &tv);
		return;
	}
	child->slow = NULL;
	if (child->peer != NULL)
		chan_pause(peer_chan(child->peer), false);
}

void
child_balance(struct child *from, struct child *to)
{
	const struct timeval tv = { .tv_usec = BALANCE_MS * 1000 };

	if (from->slow != NULL || from->peer == NULL || to->peer == NULL ||
	    chan_pending(peer_chan(to->peer)) <= BALANCE_PACKETS)
		return;
	from->slow = to;
	chan_pause(peer_chan(from->peer), true);
	(void)event_add(from->resume, &tv);
}

/* ------------------------------------------------ life */

void
child_init(struct child *child, struct supervisor *s, enum child_id id,
    const struct child_kind *kind)
{
	memset(child, 0, sizeof(*child));
	child->supervisor = s;
	child->kind = kind;
	child->id = id;
	child->pid = -1;
	child->pidfd = -1;
	child->timer = evtimer_new(s->base, timed, child);
	child->resume = evtimer_new(s->base, look_again, child);
}

void
child_done(struct child *child)
{
	send_kill(child);
	peer_free(child->peer);
	child->peer = NULL;
	if (child->exited != NULL)
		event_free(child->exited);
	if (child->timer != NULL)
		event_free(child->timer);
	if (child->resume != NULL)
		event_free(child->resume);
	if (child->pidfd >= 0)
		(void)close(child->pidfd);
	child->pidfd = -1;
}
