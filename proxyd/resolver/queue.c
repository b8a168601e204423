/*
 * Threads that look names up; see queue.h.  What getaddrinfo(3) parses is
 * hostile (DNS answers), which is why this is a process of its own without
 * files, credentials or other business.
 */
#include "proxyd/resolver/queue.h"

#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <resolv.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/cause.h"

#define THREADS 8
#define WAIT_MAX 256
#define STACK_SIZE (256u * 1024)

struct job {
	STAILQ_ENTRY(job) link;
	struct queue_answer answer;
	char name[HOSTNAME_MAX + 1];
};

STAILQ_HEAD(job_list, job);

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct job_list waiting;
	struct job_list done;
	size_t nwaiting;
	int fd;
};

/* EAI_* to enum resolve_status; anything else is a failure. EAI_AGAIN is one
 * too: it stands for servers that refuse, fail or cannot be reached as well as
 * for silent ones, and the 15 s of a connection are proxyd's to count. */
static unsigned
status_of(int error)
{
	if (error == EAI_NONAME || error == EAI_NODATA ||
	    error == EAI_ADDRFAMILY)
		return RESOLVE_NOT_FOUND;
	return RESOLVE_FAILED;
}

static bool
have(const struct queue_answer *answer, const struct hostname_addr *addr)
{
	size_t i;

	for (i = 0; i < answer->n; i++)
		if (hostname_addr_equal(&answer->addrs[i], addr))
			return true;
	return false;
}

static void
look_up(struct job *job)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL, *ai;
	struct queue_answer *answer = &job->answer;
	struct hostname_addr addr;
	int r;

	r = getaddrinfo(job->name, NULL, &hints, &list);
	if (r != 0) {
		answer->status = status_of(r);
		return;
	}
	for (ai = list; ai != NULL && answer->n < QUEUE_ADDRS;
	     ai = ai->ai_next) {
		/* An address with a scope is left out here. */
		if (hostname_addr_from_sockaddr(ai->ai_addr, &addr) < 0 ||
		    have(answer, &addr))
			continue;
		answer->addrs[answer->n++] = addr;
	}
	freeaddrinfo(list);
	answer->status = answer->n > 0 ? RESOLVE_OK : RESOLVE_NOT_FOUND;
}

/*
 * The search list of resolv.conf(5) would turn a name that does not exist
 * into one of the host's own domain; without these options names are asked
 * for as they are, and hosts(5) still holds (a final dot would not match
 * there).  The C library no longer follows changes of the file once options
 * are changed, so it is read again when it changed.
 */
static void
set_up_resolver(struct timespec *seen)
{
	struct stat st;

	memset(&st, 0, sizeof(st));
	(void)stat("/etc/resolv.conf", &st);
	if (seen->tv_sec == st.st_mtim.tv_sec &&
	    seen->tv_nsec == st.st_mtim.tv_nsec &&
	    (_res.options & RES_INIT) != 0)
		return;
	*seen = st.st_mtim;
	(void)res_init();
	_res.options &= ~(unsigned long)(RES_DNSRCH | RES_DEFNAMES);
}

static void *
thread_main(void *arg)
{
	struct queue *queue = arg;
	struct timespec seen = { 0, 0 };
	const uint64_t one = 1;
	struct job *job;

	for (;;) {
		(void)pthread_mutex_lock(&queue->lock);
		while ((job = STAILQ_FIRST(&queue->waiting)) == NULL)
			(void)pthread_cond_wait(&queue->work, &queue->lock);
		STAILQ_REMOVE_HEAD(&queue->waiting, link);
		(void)pthread_mutex_unlock(&queue->lock);
		set_up_resolver(&seen);
		look_up(job);
		(void)pthread_mutex_lock(&queue->lock);
		STAILQ_INSERT_TAIL(&queue->done, job, link);
		(void)pthread_mutex_unlock(&queue->lock);
		/* Cannot fail: the counter does not overflow. */
		if (write(queue->fd, &one, sizeof(one)) < 0)
			continue;
	}
	return NULL;
}

static int
start_threads(struct queue *queue)
{
	pthread_attr_t attr;
	pthread_t thread;
	int i, r;

	if (pthread_attr_init(&attr) != 0)
		return -ENOMEM;
	(void)pthread_attr_setstacksize(&attr, STACK_SIZE);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (i = 0, r = 0; i < THREADS && r == 0; i++)
		r = pthread_create(&thread, &attr, thread_main, queue);
	(void)pthread_attr_destroy(&attr);
	return -r;
}

struct queue *
queue_new(void)
{
	struct queue *queue = calloc(1, sizeof(*queue));

	if (queue == NULL)
		return NULL;
	STAILQ_INIT(&queue->waiting);
	STAILQ_INIT(&queue->done);
	(void)pthread_mutex_init(&queue->lock, NULL);
	(void)pthread_cond_init(&queue->work, NULL);
	queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->fd < 0 || start_threads(queue) < 0) {
		/* Threads may run on: the caller ends the process. */
		return NULL;
	}
	return queue;
}

int
queue_fd(const struct queue *queue)
{
	return queue->fd;
}

int
queue_ask(struct queue *queue, uint64_t link, uint64_t request,
    const char *name)
{
	struct hostname host;
	struct job *job;
	int r = 0;

	if (hostname_parse(name, strlen(name), &host, NULL) < 0 ||
	    host.kind != HOSTNAME_NAME || host.labels < 2 ||
	    strcmp(host.text, name) != 0)
		return -EINVAL;
	job = calloc(1, sizeof(*job));
	if (job == NULL)
		return -ENOMEM;
	job->answer.link = link;
	job->answer.request = request;
	memcpy(job->name, host.text, sizeof(job->name));
	(void)pthread_mutex_lock(&queue->lock);
	if (queue->nwaiting >= WAIT_MAX) {
		r = -ENOBUFS;
	} else {
		queue->nwaiting++;
		STAILQ_INSERT_TAIL(&queue->waiting, job, link);
		(void)pthread_cond_signal(&queue->work);
	}
	(void)pthread_mutex_unlock(&queue->lock);
	if (r < 0)
		free(job);
	return r;
}

int
queue_take(struct queue *queue, struct queue_answer *ret)
{
	struct job *job;

	(void)pthread_mutex_lock(&queue->lock);
	job = STAILQ_FIRST(&queue->done);
	if (job != NULL) {
		STAILQ_REMOVE_HEAD(&queue->done, link);
		queue->nwaiting--;
	}
	(void)pthread_mutex_unlock(&queue->lock);
	if (job == NULL)
		return 0;
	*ret = job->answer;
	free(job);
	return 1;
}
