/*
 * stockadectl: a client like any other, with no privilege and no
 * configuration (SPEC Y). One context, passed first.
 *
 *	main.c		subcommand table, options before the subcommand
 *	option.c units.c	option tables, sizes and times
 *	service.c	connection, hello, calls, errors
 *	remedy.c	the service's words in those of the options
 *	json.c text.c escape.c	both forms of output
 *	show.c		ps inspect events violations kill pause resume probe status
 *			reload
 *	why.c		why
 *	run.c		run and exec, from the options to the exit status
 *	run_spec.c	the spec, with toolchains.c and adapters.c
 *	follow.c	events, signals and bytes until the command has ended
 *	tty.c		the caller's terminal
 *	denied.c	the lines about what was refused
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <msgpack.h>

struct rpc_client;
struct rpc_message;
struct rpc_out;

/* SPEC Y6. */
#define CTL_OK 0
#define CTL_NO 1
#define CTL_USAGE 2
#define CTL_TIMEOUT 124
#define CTL_FAILED 125
#define CTL_DENIED 126
#define CTL_NOT_FOUND 127
#define CTL_SIGNAL 128 /* + its number */

struct ctl {
	const char *socket;
	bool json;
	bool quiet;
	const char *session; /* that the call is about, as typed; or NULL */
	bool mounts; /* --mount was given */
	struct rpc_client *client;
};

/* ------------------------------------------------ service.c */

/*
 * Connects and puts `hello` in front of what is sent next, so that it costs no
 * round trip. 0, or CTL_FAILED after saying why.
 */
int service_connect(struct ctl *ctl);
void service_close(struct ctl *ctl);

/* Starts a call; the caller fills the parameter map and calls
 * service_finish(). */
struct rpc_out *service_begin(struct ctl *ctl, const char *method);
/* A call with one parameter `sessionId`, unless session is NULL. */
uint32_t
service_start(struct ctl *ctl, const char *method, const char *session);
/*
 * Sends and waits. 0 with *ret (rpc_done() it), else an exit status after
 * saying why (an error of the service: its message).
 */
int service_finish(struct ctl *ctl, uint32_t id, struct rpc_message *ret);
int service_wait(struct ctl *ctl, uint32_t id, struct rpc_message *ret);
int service_call(struct ctl *ctl, const char *method, const char *session,
    struct rpc_message *ret);

/* Says an error map of an answer on standard error; the exit status for it. */
int service_error(const struct ctl *ctl, const msgpack_object *error);
/* Says that the connection failed, from -errno of rpc_client_*(). */
int service_lost(int error);

/* Full sessionId for what a person typed: a sessionId, the number that `ps`
 * shows, or an unambiguous beginning. 0, or an exit status after saying why. */
#define SERVICE_ID_MAX 129
int
service_resolve(struct ctl *ctl, const char *typed, char ret[SERVICE_ID_MAX]);

/* ------------------------------------------------ subcommands */

int ctl_run(struct ctl *ctl, int argc, char **argv);
int ctl_exec(struct ctl *ctl, int argc, char **argv);
int ctl_ps(struct ctl *ctl, int argc, char **argv);
int ctl_inspect(struct ctl *ctl, int argc, char **argv);
int ctl_events(struct ctl *ctl, int argc, char **argv);
int ctl_violations(struct ctl *ctl, int argc, char **argv);
int ctl_kill(struct ctl *ctl, int argc, char **argv);
int ctl_pause(struct ctl *ctl, int argc, char **argv);
int ctl_resume(struct ctl *ctl, int argc, char **argv);
int ctl_probe(struct ctl *ctl, int argc, char **argv);
int ctl_status(struct ctl *ctl, int argc, char **argv);
int ctl_reload(struct ctl *ctl, int argc, char **argv);
int ctl_why(struct ctl *ctl, int argc, char **argv);

/* "stockade: ..." on standard error; never with text from outside that was
 * not cleaned. */
void ctl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
