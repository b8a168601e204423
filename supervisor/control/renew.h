/*
 * Name rules of live runs after a change of the configuration (SPEC D13, Z10):
 * compiled anew for each run, sent as a whole, in force when its broker says
 * so. What cannot be compiled stops the change for all. In stockade-control.
 */
#ifndef SUPERVISOR_CONTROL_RENEW_H
#define SUPERVISOR_CONTROL_RENEW_H

#include <sys/queue.h>

#include <stddef.h>

struct conf;
struct conf_errors;
struct control;
struct renewal;
struct session;

TAILQ_HEAD(renewal_list, renewal);

/* Who waits for the brokers' words. `fn` is called once when none is missing,
 * and may be called before renew_send() returns. */
struct renew_wait {
	size_t pending;
	size_t frozen; /* runs that take them when they are resumed */
	size_t failed; /* runs that go on with the old ones */
	char failed_id[129]; /* one of them */
	void (*fn)(struct renew_wait *);
};

/*
 * Makes what the rules of every live run become with `fresh`; those that stay
 * as they are get nothing. 0, or -EINVAL with an entry in errors for the run
 * whose rules cannot be made: then nothing is made for any, and nothing is
 * sent.
 */
int renew_prepare(struct control *, const struct conf *fresh,
    struct conf_errors *errors);
/* Sends what was made. wait may be NULL; it must live until its fn. */
void renew_send(struct control *, struct renew_wait *);
/* Nobody waits any more. */
void renew_forget(struct control *, const struct renew_wait *);

/* The rules of one run, with the configuration in force: when it was made with
 * an earlier one. A failure is logged; the old ones stay. */
void renew_session(struct session *);
/* The run is ready, or is about to be resumed: sends what was made before. The
 * broker takes it before the run's first call. */
void renew_ready(struct session *);
/* The session is about to be freed. */
void renew_drop(struct session *);

#endif
