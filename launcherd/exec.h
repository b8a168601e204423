/*
 * Commands in a run. launcherd makes the pipes that the client did not pass,
 * hands their one end to stockade-init and the other to control, and keeps
 * duplicates of control's ends, so that a restarted control gets them again
 * (SPEC A23). No byte of a pipe is read here.
 */
#ifndef LAUNCHERD_EXEC_H
#define LAUNCHERD_EXEC_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct launcherd;
struct msg_exec_ask;
struct msg_exec_resize;
struct msg_exec_signal;
struct msg_init_exec_answer;
struct msg_init_exit;
struct peer;
struct run;

#define EXECS_PER_RUN 64
/* An ended command is kept for a restart of control: it is back within two
 * seconds (SPEC A23). */
#define EXEC_KEEP_MS 5000
#define EXEC_KEEP_MAX 256

/* Packets that may wait for a stockade-init that does not read (it is frozen,
 * or a client floods it). Beyond them a command is refused with EAGAIN and a
 * signal is left out, but for one SIGKILL of each command. */
#define EXEC_PENDING_MAX 256

/* Our ends by EXEC_IO_* bit: standard input, output, error, pty master. */
#define EXEC_ENDS 4

struct exec {
	TAILQ_ENTRY(exec) entry; /* of its run */
	TAILQ_ENTRY(exec) ended_entry; /* of all ended ones, oldest first */
	struct run *run;
	uint64_t id;
	uint64_t pid;
	int ends[EXEC_ENDS]; /* -1: none */
	bool tty;
	bool answered;
	bool kill_waits; /* a SIGKILL was sent past EXEC_PENDING_MAX */
	bool orphan; /* the control that asked is gone */
	bool ended;
	uint64_t status;
	uint64_t signal;
	uint64_t ended_ms;
	/* Control's, kept for its restart. */
	uint64_t timeout_ms;
	uint64_t deadline_ms;
	uint64_t silence_ms;
};

/* fds as in messages.def, owned. Negative: the supervisor broke the rules. */
int exec_ask(struct launcherd *, const struct msg_exec_ask *, int *fds,
    size_t nfds);
/* Starts a command in a run that is ready; takes fds. 0 or -errno. The answer
 * follows from init. */
int
exec_start_in(struct run *, const struct msg_exec_ask *, int *fds, size_t nfds);
/* From stockade-init, hostile: negative means that it broke the rules. Takes
 * the descriptor. */
int exec_init_answer(struct run *, const struct msg_init_exec_answer *,
    int *fds, size_t nfds);
int exec_init_exit(struct run *, const struct msg_init_exit *);

void exec_send_signal(struct launcherd *, const struct msg_exec_signal *);
void exec_resize(struct launcherd *, const struct msg_exec_resize *);
void exec_eof(struct launcherd *, uint64_t sandbox, uint64_t exec);
/* restore_exec for every command, then restore_done. */
void exec_restore(struct launcherd *, uint64_t generation);

/* Closes and frees all commands of a run. */
void exec_free_all(struct run *);
/* Ended ones that are old enough, or too many. */
void exec_expire(struct launcherd *);

#endif
