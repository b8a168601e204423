/*
 * Commands of a session (SPEC K9..K16): one struct for each, from the call
 * that asks for it to its exit event. Output is read from pipe ends that
 * launcherd made and sent as events; what a slow reader has not taken is not
 * read, so that the run waits and nothing is lost.
 *
 * For exec.c, exec_io.c and restore.c alone.
 */
#ifndef SUPERVISOR_CONTROL_EXEC_H
#define SUPERVISOR_CONTROL_EXEC_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/cause.h"
#include "protocol/rpc.h"
#include "supervisor/control/refusals.h"

struct call;
struct event;
struct exec;
struct session;

#define EXEC_STREAMS 2
#define EXEC_GHOSTS_MAX 64 /* ended, pipe still held by a background child */
#define EXEC_LINGER_MS 250 /* quiet time after the end, then `exit` */
#define EXEC_GRACE_MS 2000 /* between TERM and KILL, SPEC K12 */

struct exec_stream {
	struct exec *exec;
	int fd;
	struct event *readable;
	enum rpc_event_type type;
	bool stopped; /* the client has to take events first */
};

enum exec_stage {
	EXEC_RUNNING,
	EXEC_TERM_SENT,
	EXEC_KILL_SENT,
};

struct exec {
	TAILQ_ENTRY(exec) entry;
	struct session *session;
	uint64_t number; /* ours, never repeated */
	char id[24];
	char *program; /* argv[0], for a text when it is not found */
	uint64_t client; /* whose reading it waits for; 0: nobody's */
	struct call *call; /* until the answer */
	char **stripped;
	size_t nstripped;
	uint64_t pid;
	bool tty;
	bool give_master; /* the answer carries the terminal */
	bool quiet; /* its output is not seen here (K16) */
	bool started;
	bool exited;
	bool told; /* `exit` was sent */
	bool hold; /* perhaps out of memory: wait for run_ended */
	uint64_t status;
	uint64_t signal;
	enum run_cause cause; /* EXIT: nobody killed it */
	enum exec_stage stage;
	uint64_t timeout_ms; /* 0: none */
	uint64_t silence_ms; /* 0: none */
	struct exec_stream out[EXEC_STREAMS];
	struct refusals refusals; /* that its standard error told (L4) */
	int in_fd;
	struct event *writable;
	uint8_t *in;
	size_t in_len;
	bool in_eof;
	struct event *timeout_timer;
	struct event *silence_timer;
	struct event *end_timer;
};

/* NULL: no memory. In the session's list, not running yet. */
struct exec *exec_new(struct session *, uint64_t number);
void exec_free(struct exec *);
struct exec *exec_find(struct session *, uint64_t number);

/* Gives it its pipe ends (mask of EXEC_IO_*, descriptors in that order, taken)
 * and lets it run. 0 or -errno, then it is to be killed. */
int exec_attach(struct exec *, uint64_t io, int *fds, size_t nfds);
/* It has ended. */
void exec_exited(struct exec *, uint64_t status, uint64_t signal);

/* exec_io.c ------------------------------------------------ */

/* Sends `exit` if its output is complete; the exec may be freed. */
void exec_try_tell(struct exec *);
void exec_stream_open(struct exec *, size_t i, int fd, enum rpc_event_type);
void exec_stream_close(struct exec_stream *);
bool exec_streams_open(const struct exec *);
/* Queues input; returns how much was taken. */
size_t exec_input(struct exec *, const void *data, size_t len, size_t max);
/* End of file behind what is queued. */
void exec_input_eof(struct exec *);
void exec_input_close(struct exec *, bool tell);
/* left_ms: until the time-out, if it has one. */
void exec_start_timers(struct exec *, uint64_t left_ms);
void exec_restart_silence(struct exec *);
void exec_send_signal(struct exec *, int signal);

#endif
