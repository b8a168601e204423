/*
 * The network namespace of a run: made by launcherd in its own process, with
 * loopback up and the two proxy listeners bound inside, then left again. So
 * there is no bridge process and no port on the host, and which socket accepts
 * a connection says whose it is. network_namespaces(7).
 */
#ifndef LAUNCHERD_NETNS_H
#define LAUNCHERD_NETNS_H

#include <stdint.h>
#include <sys/types.h>

#define NETNS_HTTP_PORT 3128
#define NETNS_SOCKS_PORT 1080

/* Where launcherd itself lives, to come back to. */
struct netns_home {
	int fd;
	dev_t dev;
	ino_t ino;
};

/* 0 or -errno. */
int netns_home_open(struct netns_home *ret);
void netns_home_close(struct netns_home *);

struct netns {
	int fd; /* the namespace, for setns(2) */
	int http_fd; /* 127.0.0.1:3128, listening */
	int socks_fd; /* 127.0.0.1:1080, listening */
};

/*
 * Makes a namespace. 0 or -errno with nothing left. -ENOTRECOVERABLE: the
 * process could not return to its own namespace and must exit at once, since
 * everything it makes from then on would be in the run's.
 */
int netns_make(const struct netns_home *, struct netns *ret);
void netns_close(struct netns *);

#endif
