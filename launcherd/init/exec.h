/*
 * One more process inside the sandbox: from an exec plan and descriptors to a
 * running child, or to the step that failed. Used by stockade-init only; no
 * thread, no allocation.
 */
#ifndef INIT_EXEC_H
#define INIT_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define EXEC_STDIO 3

/* What the child says over its close-on-exec pipe when it cannot start. */
struct exec_report {
	int32_t error; /* errno, positive */
	uint32_t step; /* enum exec_step */
};

enum exec_step {
	EXEC_STEP_STDIO,
	EXEC_STEP_TTY,
	EXEC_STEP_CWD,
	EXEC_STEP_EXEC,
	EXEC_STEP_COUNT
};

/* "stdio", "tty", "cwd", "exec"; "exec" for a number out of range. */
const char *exec_step_name(uint32_t step);

/* A request. Descriptors are borrowed. */
struct exec_ask {
	int plan_fd; /* sealed memfd, protocol/plan.h */
	bool tty;
	uint16_t rows;
	uint16_t cols;
	int stdio[EXEC_STDIO]; /* -1: none; with tty only [2] may be set */
};

struct exec_child {
	pid_t pid;
	int report; /* our end of the pipe; end of file: it runs */
	int master; /* pty master or -1 */
};

/*
 * Starts the child in a session and process group of its own, with exactly
 * descriptors 0, 1 and 2, default signals, the plan's environment and working
 * directory. Returns 0 (the descriptors in *ret are the caller's), or -errno
 * with *ret_step a static text.
 */
int exec_start(const struct exec_ask *ask, struct exec_child *ret,
    const char **ret_step);

/*
 * Reads the report after the pipe became readable. 0: the program runs; a
 * positive errno with *ret_step: it does not; negative: nothing was read, with
 * -EAGAIN nothing yet.
 */
int exec_read_report(int fd, const char **ret_step);

#endif
