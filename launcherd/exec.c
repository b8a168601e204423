/*
 * launcherd: commands; see exec.h. Numbers and descriptors come from control
 * through the supervisor, answers from stockade-init, which has the run's uid:
 * what it says concerns its own run only.
 */
#include "launcherd/exec.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/memfd.h"
#include "common/proc.h"
#include "common/size.h"
#include "launcherd/broker_run.h"
#include "launcherd/launcherd.h"
#include "launcherd/probe.h"
#include "protocol/message.h"
#include "protocol/plan.h"

#define STDIO 3
#define END_TTY 3 /* index of EXEC_IO_TTY in ends[] */
#define FD_FLOOR 4

/* SPEC K23. */
static const int permitted_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT,
	SIGKILL, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGSTOP };

static uint64_t
now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static struct exec *
exec_find(struct run *run, uint64_t id)
{
	struct exec *exec;

	TAILQ_FOREACH (exec, &run->execs, entry)
		if (exec->id == id)
			return exec;
	return NULL;
}

static void
exec_free(struct exec *exec)
{
	struct run *run = exec->run;

	TAILQ_REMOVE(&run->execs, exec, entry);
	if (exec->ended) {
		TAILQ_REMOVE(&run->l->runs.ended, exec, ended_entry);
		run->l->runs.nended--;
	} else {
		run->nexecs--;
	}
	close_all(exec->ends, EXEC_ENDS);
	free(exec);
}

void
exec_free_all(struct run *run)
{
	struct exec *exec;

	while ((exec = TAILQ_FIRST(&run->execs)) != NULL)
		exec_free(exec);
}

static struct exec *
exec_new(struct run *run, uint64_t id)
{
	struct exec *exec = calloc(1, sizeof(*exec));

	if (exec == NULL)
		return NULL;
	exec->run = run;
	exec->id = id;
	for (size_t i = 0; i < EXEC_ENDS; i++)
		exec->ends[i] = -1;
	TAILQ_INSERT_TAIL(&run->execs, exec, entry);
	run->nexecs++;
	return exec;
}

/* ---------------------------------------------------------------- answering */

/* Duplicates of the ends, lowest bit first. Returns the count or -errno. */
static int
dup_ends(const struct exec *exec, int fds[EXEC_ENDS], uint64_t *ret_io)
{
	size_t n = 0;
	uint64_t io = 0;

	for (size_t i = 0; i < EXEC_ENDS; i++) {
		if (exec->ends[i] < 0)
			continue;
		fds[n] = fcntl(exec->ends[i], F_DUPFD_CLOEXEC, FD_FLOOR);
		if (fds[n] < 0) {
			int error = -errno;

			close_all(fds, n);
			return error;
		}
		n++;
		io |= UINT64_C(1) << i;
	}
	*ret_io = io;
	return (int)n;
}

static void
answer_error(struct launcherd *l, uint64_t sandbox, uint64_t id, int error,
    const char *step)
{
	struct msg_exec_answer msg = { .sandbox = sandbox,
		.exec = id,
		.error = (uint64_t)error };

	MSG_SET_STR(msg.step, step);
	(void)peer_send(l->supervisor, MSG_exec_answer, &msg, NULL, 0);
}

/* ---------------------------------------------------------------- starting */

/* One pipe: `ours` is non-blocking, since control uses it on its loop; the
 * other end is the command's and blocks. */
static int
make_pipe(bool ours_writes, int *ret_ours, int *ret_theirs)
{
	int fds[2];
	int ours;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	ours = ours_writes ? fds[1] : fds[0];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0) {
		int error = -errno;

		close_all(fds, 2);
		return error;
	}
	*ret_ours = ours;
	*ret_theirs = ours_writes ? fds[0] : fds[1];
	return 0;
}

/* The command's 0, 1 and 2, from `passed` on. */
static int
make_stdio(struct launcherd *l, struct exec *exec,
    const struct msg_exec_ask *msg, int theirs[STDIO])
{
	for (size_t i = (size_t)msg->passed; i < STDIO; i++) {
		int error = 0;

		if (i == 0 && msg->stdin_open == 0) {
			theirs[0] =
			    fcntl(l->null_fd, F_DUPFD_CLOEXEC, FD_FLOOR);
			if (theirs[0] < 0)
				error = -errno;
		} else {
			error = make_pipe(i == 0, &exec->ends[i], &theirs[i]);
		}
		if (error < 0)
			return error;
	}
	return 0;
}

/*
 * Sends init_exec: plan, then the command's descriptors. Takes those it sends;
 * fds[0] is the plan, the client's follow.
 */
static int
send_exec(struct run *run, struct exec *exec, const struct msg_exec_ask *msg,
    int *fds, size_t nfds)
{
	const struct msg_init_exec order = { .exec = msg->exec,
		.tty = msg->tty,
		.rows = msg->rows,
		.cols = msg->cols };
	int send[1 + STDIO] = { -1, -1, -1, -1 };
	size_t n = 1 + STDIO;
	int error = 0;

	for (size_t i = 0; i < nfds; i++)
		send[i] = take_fd(&fds[i]);
	if (msg->tty != 0)
		n = nfds;
	else
		error = make_stdio(run->l, exec, msg, send + 1);
	if (error < 0) {
		close_all(send, 1 + STDIO);
		return error;
	}
	return peer_send(run->init, MSG_init_exec, &order, send, n);
}

/* A directory of the host would be a way out of the view. Landlock closes it
 * too; here the caller is told. */
static bool
has_directory(const int *fds, size_t n)
{
	struct stat st;

	for (size_t i = 0; i < n; i++)
		if (fstat(fds[i], &st) < 0 || S_ISDIR(st.st_mode))
			return true;
	return false;
}

static const char *
refusal(struct run *run, const struct msg_exec_ask *msg, const int *fds,
    int *ret_error)
{
	ptrdiff_t size;

	*ret_error = ENOENT;
	if (run == NULL)
		return "session";
	*ret_error = EBUSY;
	if (run->state != RUN_READY || run->frozen || run->freezing ||
	    run->init == NULL)
		return "state";
	*ret_error = EAGAIN;
	if (run->nexecs >= EXECS_PER_RUN ||
	    peer_pending(run->init) >= EXEC_PENDING_MAX)
		return "limit";
	*ret_error = EMFILE;
	if (proc_descriptors_left() < FDS_FOR_EXEC)
		return "descriptors";
	*ret_error = EEXIST;
	if (exec_find(run, msg->exec) != NULL)
		return "exec";
	*ret_error = EISDIR;
	if (has_directory(fds + 1, (size_t)msg->passed))
		return "stdio";
	*ret_error = EPERM;
	if (!guarding_passes(run->guarding, fds + 1, (size_t)msg->passed))
		return "stdio: a protected name";
	size = memfd_check(fds[0], PLAN_BYTES_MAX);
	*ret_error = size < 0 ? (int)-size : 0;
	return size < 0 ? "plan" : NULL;
}

int
exec_start_in(struct run *run, const struct msg_exec_ask *msg, int *fds,
    size_t nfds)
{
	struct exec *exec = exec_new(run, msg->exec);
	int error = -ENOMEM;

	if (exec != NULL) {
		exec->tty = msg->tty != 0;
		exec->timeout_ms = msg->timeout_ms;
		exec->deadline_ms = msg->deadline_ms;
		exec->silence_ms = msg->silence_ms;
		error = send_exec(run, exec, msg, fds, nfds);
		if (error < 0)
			exec_free(exec);
		else
			run_poll_pids(run);
	}
	close_all(fds, nfds);
	return error;
}

int
exec_ask(struct launcherd *l, const struct msg_exec_ask *msg, int *fds,
    size_t nfds)
{
	struct run *run = run_find(l, msg->sandbox);
	const char *step;
	int error;

	if (nfds != 1 + msg->passed || (msg->tty != 0 && msg->passed > 1)) {
		close_all(fds, nfds);
		return -EPROTO;
	}
	step = refusal(run, msg, fds, &error);
	if (step == NULL) {
		step = "start";
		error = -exec_start_in(run, msg, fds, nfds);
		if (error == 0)
			return 0;
	}
	close_all(fds, nfds);
	answer_error(l, msg->sandbox, msg->exec, error, step);
	return 0;
}

/* ---------------------------------------------------------------- init says */

/* The descriptor that a hostile init hands over as a terminal goes to control:
 * only a real pty master will do. */
static bool
is_pty_master(int fd)
{
	unsigned number;

	return ioctl(fd, TIOCGPTN, &number) == 0;
}

/* Nobody could talk to it or end it. As it is not answered, its end is not told
 * either. */
static void
kill_unknown(struct exec *exec)
{
	const struct msg_init_signal kill = { .exec = exec->id,
		.signal = SIGKILL };

	(void)peer_send(exec->run->init, MSG_init_signal, &kill, NULL, 0);
	exec->answered = false;
}

static void
send_answer(struct exec *exec)
{
	struct run *run = exec->run;
	struct msg_exec_answer msg = { .sandbox = run->sandbox,
		.exec = exec->id,
		.pid = exec->pid };
	int fds[EXEC_ENDS];
	int n = dup_ends(exec, fds, &msg.io);

	if (n < 0) {
		kill_unknown(exec);
		answer_error(run->l, run->sandbox, exec->id, -n, "start");
		return;
	}
	(void)peer_send(run->l->supervisor, MSG_exec_answer, &msg, fds,
	    (size_t)n);
}

static int
take_master(struct exec *exec, int *fds, size_t nfds)
{
	if (!exec->tty || nfds != 1 || !is_pty_master(fds[0]))
		return -EPROTO;
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	exec->ends[END_TTY] = take_fd(&fds[0]);
	return 0;
}

int
exec_init_answer(struct run *run, const struct msg_init_exec_answer *msg,
    int *fds, size_t nfds)
{
	struct exec *exec = exec_find(run, msg->exec);
	int error = 0;

	if (exec == NULL || exec->answered || exec->ended)
		error = -EPROTO;
	else if (msg->error != 0 || !exec->tty)
		error = nfds == 0 ? 0 : -EPROTO;
	else
		error = take_master(exec, fds, nfds);
	close_all(fds, nfds);
	if (error < 0)
		return error;
	if (run->probe != NULL && msg->error != 0) {
		exec_free(exec);
		probe_exec_answer(run->probe, run, (int)msg->error);
		return 0;
	}
	if (msg->error != 0) {
		exec_free(exec);
		answer_error(run->l, run->sandbox, msg->exec, (int)msg->error,
		    msg->step);
		return 0;
	}
	exec->answered = true;
	exec->pid = msg->pid;
	if (exec->orphan)
		kill_unknown(exec);
	else if (run->probe == NULL)
		send_answer(exec);
	return 0;
}

/* ---------------------------------------------------------------- the end */

void
exec_expire(struct launcherd *l)
{
	struct exec *exec;
	uint64_t now = now_ms();

	while ((exec = TAILQ_FIRST(&l->runs.ended)) != NULL &&
	    (l->runs.nended > EXEC_KEEP_MAX ||
		now - exec->ended_ms >= EXEC_KEEP_MS))
		exec_free(exec);
}

static void
on_ended_timer(evutil_socket_t fd, short what, void *arg)
{
	struct launcherd *l = arg;
	const struct timeval tv = { EXEC_KEEP_MS / 1000, 0 };

	(void)fd;
	(void)what;
	exec_expire(l);
	if (l->runs.nended > 0)
		(void)evtimer_add(l->runs.ended_timer, &tv);
}

/* Kept for a while: if control is away, this is how it learns of the end. */
static void
keep_ended(struct exec *exec)
{
	struct launcherd *l = exec->run->l;
	const struct timeval tv = { EXEC_KEEP_MS / 1000, 0 };

	exec->ended = true;
	exec->ended_ms = now_ms();
	exec->run->nexecs--;
	TAILQ_INSERT_TAIL(&l->runs.ended, exec, ended_entry);
	l->runs.nended++;
	if (l->runs.ended_timer == NULL)
		l->runs.ended_timer = evtimer_new(l->base, on_ended_timer, l);
	if (l->runs.ended_timer != NULL &&
	    !evtimer_pending(l->runs.ended_timer, NULL))
		(void)evtimer_add(l->runs.ended_timer, &tv);
	exec_expire(l);
}

int
exec_init_exit(struct run *run, const struct msg_init_exit *msg)
{
	struct exec *exec = exec_find(run, msg->exec);

	if (exec == NULL || exec->ended)
		return -EPROTO;
	/* Killed for memory: the run ends, and run_ended says so first. */
	if (msg->signal == SIGKILL && run_check_oom(run))
		return 0;
	if (run->state == RUN_KILLED || run->state == RUN_REMOVING)
		return 0;
	run_check_pids(run);
	if (run->probe != NULL) {
		probe_exec_exit(run->probe, run, msg->status, msg->signal);
		return 0;
	}
	if (!exec->answered) { /* could not be handed over */
		exec_free(exec);
		return 0;
	}
	exec->status = msg->status;
	exec->signal = msg->signal;
	keep_ended(exec);
	(void)PEER_SEND(run->l->supervisor, exec_exit, .sandbox = run->sandbox,
	    .exec = msg->exec, .status = msg->status, .signal = msg->signal);
	return 0;
}

/* ---------------------------------------------------------------- requests */

static struct exec *
find_live(struct launcherd *l, uint64_t sandbox, uint64_t id)
{
	struct run *run = run_find(l, sandbox);
	struct exec *exec = run == NULL ? NULL : exec_find(run, id);

	return exec == NULL || exec->ended ? NULL : exec;
}

/*
 * Who asks: a client, as often as it likes, and its run may not read at all.
 * More of the same signal says no more than the one that waits already; what
 * ends a command comes through.
 */
static bool
may_signal(struct exec *exec, uint64_t signal)
{
	if (exec->run->init == NULL)
		return false;
	if (peer_pending(exec->run->init) < EXEC_PENDING_MAX) {
		exec->kill_waits = false;
		return true;
	}
	if (signal != SIGKILL || exec->kill_waits)
		return false;
	exec->kill_waits = true;
	return true;
}

void
exec_send_signal(struct launcherd *l, const struct msg_exec_signal *msg)
{
	struct exec *exec = find_live(l, msg->sandbox, msg->exec);
	const struct msg_init_signal order = { .exec = msg->exec,
		.signal = msg->signal };
	bool permitted = false;

	for (size_t i = 0; i < ARRAY_LEN(permitted_signals); i++)
		permitted =
		    permitted || (uint64_t)permitted_signals[i] == msg->signal;
	if (exec != NULL && permitted && may_signal(exec, msg->signal))
		(void)peer_send(exec->run->init, MSG_init_signal, &order, NULL,
		    0);
}

void
exec_resize(struct launcherd *l, const struct msg_exec_resize *msg)
{
	const struct exec *exec = find_live(l, msg->sandbox, msg->exec);
	const struct winsize size = { .ws_row = (unsigned short)msg->rows,
		.ws_col = (unsigned short)msg->cols };

	if (exec != NULL && exec->ends[END_TTY] >= 0)
		(void)ioctl(exec->ends[END_TTY], TIOCSWINSZ, &size);
}

void
exec_eof(struct launcherd *l, uint64_t sandbox, uint64_t id)
{
	struct exec *exec = find_live(l, sandbox, id);

	if (exec != NULL)
		close_all(&exec->ends[0], 1);
}

static void
restore_one(struct exec *exec)
{
	struct msg_restore_exec msg = {
		.sandbox = exec->run->sandbox,
		.exec = exec->id,
		.pid = exec->pid,
		.ended = exec->ended,
		.status = exec->status,
		.signal = exec->signal,
		.timeout_ms = exec->timeout_ms,
		.deadline_ms = exec->deadline_ms,
		.silence_ms = exec->silence_ms,
	};
	int fds[EXEC_ENDS];
	int n = dup_ends(exec, fds, &msg.io);

	if (n < 0) {
		msg.io = 0;
		n = 0;
	}
	(void)peer_send(exec->run->l->supervisor, MSG_restore_exec, &msg, fds,
	    (size_t)n);
}

static void
restore_run(struct run *run)
{
	struct exec *exec;

	for (exec = TAILQ_FIRST(&run->execs); exec != NULL;
	     exec = TAILQ_NEXT(exec, entry))
		if (exec->answered)
			restore_one(exec);
		else
			exec->orphan = true;
}

void
exec_restore(struct launcherd *l, uint64_t generation)
{
	struct run *run;

	exec_expire(l);
	for (run = TAILQ_FIRST(&l->runs.list); run != NULL;
	     run = TAILQ_NEXT(run, entry))
		if (run->probe == NULL)
			restore_run(run);
	(void)PEER_SEND(l->supervisor, restore_done, .generation = generation);
}
