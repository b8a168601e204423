/*
 * stockade-connect: a connection through the sandbox's proxy on standard
 * input and output, for ssh's ProxyCommand.  Static, so that it runs in any
 * sandbox.  Runs as the run's user with the run's rights, decides nothing:
 * the proxy does.
 */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hostname.h"
#include "common/http1.h"
#include "config.h"
#include "proxyd/socks5.h"

#define HTTP_PORT 3128
#define SOCKS_PORT 1080
#define BUFFER 65536

static void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *format, ...)
{
	va_list ap;

	(void)fprintf(stderr, "stockade-connect: ");
	va_start(ap, format);
	(void)vfprintf(stderr, format, ap);
	va_end(ap);
	(void)fprintf(stderr, "\n");
	exit(1);
}

static void __attribute__((noreturn)) usage(void)
{
	(void)fprintf(stderr,
	    "usage: stockade-connect [-5] [-x address:port]"
	    " host port\n");
	exit(2);
}

/* A bare IPv6 address, as ssh's %h gives it, gets its brackets. */
static void
read_host(const char *arg, struct hostname *ret)
{
	char bracketed[INET6_ADDRSTRLEN + 3];
	enum hostname_fault fault = HOSTNAME_OK;

	if (arg[0] != '[' && strchr(arg, ':') != NULL &&
	    strlen(arg) < INET6_ADDRSTRLEN) {
		(void)snprintf(bracketed, sizeof(bracketed), "[%s]", arg);
		arg = bracketed;
	}
	if (hostname_parse(arg, strlen(arg), ret, &fault) < 0)
		fail("host: %s", hostname_why(fault));
}

static void
read_proxy(const char *arg, struct sockaddr_in *ret)
{
	const char *colon = strrchr(arg, ':');
	char text[INET_ADDRSTRLEN];
	uint16_t port;

	if (colon == NULL || (size_t)(colon - arg) >= sizeof(text) ||
	    http1_port_parse(colon + 1, strlen(colon + 1), &port) < 0)
		usage();
	memcpy(text, arg, (size_t)(colon - arg));
	text[colon - arg] = '\0';
	if (inet_pton(AF_INET, text, &ret->sin_addr) != 1)
		usage();
	ret->sin_port = htons(port);
}

static void
write_all(int fd, const void *data, size_t len)
{
	const char *at = data;
	ssize_t n;

	while (len > 0) {
		n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			fail("write: %s", strerror(errno));
		at += n;
		len -= (size_t)n;
	}
}

static size_t
read_some(int fd, void *data, size_t size)
{
	ssize_t n;

	do {
		n = read(fd, data, size);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		fail("proxy: %s", strerror(errno));
	return (size_t)n;
}

/* Bytes behind the answer's head belong to the far end. */
static void
http_open(int fd, const struct hostname *host, uint16_t port)
{
	static struct http1_head head;
	static char buf[HTTP1_HEAD_MAX + 1];
	enum http1_fault fault;
	char line[2 * HOSTNAME_MAX + 64];
	size_t len = 0, n;
	int r;

	n = (size_t)snprintf(line, sizeof(line),
	    "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n", host->text,
	    (unsigned)port, host->text, (unsigned)port);
	write_all(fd, line, n);
	http1_head_init(&head, HTTP1_RESPONSE);
	while ((r = http1_head_read(&head, buf, len, &fault)) == 0) {
		n = read_some(fd, buf + len, sizeof(buf) - 1 - len);
		if (n == 0)
			fail("the proxy closed the connection");
		len += n;
	}
	if (r < 0)
		fail("proxy: %s", http1_fault_text(fault));
	if (head.status != 200)
		fail("%.*s", (int)head.reason.len, buf + head.reason.at);
	write_all(STDOUT_FILENO, buf + head.size, len - head.size);
}

static void
read_exactly(int fd, uint8_t *data, size_t len)
{
	size_t n;

	while (len > 0) {
		n = read_some(fd, data, len);
		if (n == 0)
			fail("the proxy closed the connection");
		data += n;
		len -= n;
	}
}

static const char *
socks_text(uint8_t code)
{
	static const char *const texts[] = {
		[SOCKS5_GENERAL] = "general failure",
		[SOCKS5_NOT_ALLOWED] = "Blocked by sandbox (SOCKS reply 2)",
		[SOCKS5_NET_UNREACHABLE] = "network unreachable",
		[SOCKS5_HOST_UNREACHABLE] = "the name cannot be resolved",
		[SOCKS5_REFUSED] = "connection refused",
		[SOCKS5_TIMED_OUT] = "connection timed out",
		[SOCKS5_BAD_COMMAND] = "command not supported",
		[SOCKS5_BAD_ADDRESS] = "address type not supported",
	};

	if (code == 0 || code > SOCKS5_BAD_ADDRESS)
		return "unknown answer of the proxy";
	return texts[code];
}

static void
socks_open(int fd, const struct hostname *host, uint16_t port)
{
	static const uint8_t greeting[] = { 5, 1, 0 };
	uint8_t msg[SOCKS5_REQUEST_MAX] = { 5, 1, 0 };
	size_t len = 4, n;

	write_all(fd, greeting, sizeof(greeting));
	read_exactly(fd, msg + 4, 2);
	if (msg[4] != 5 || msg[5] != 0)
		fail("the proxy wants authentication");
	if (host->kind == HOSTNAME_NAME) {
		n = strlen(host->text);
		msg[3] = SOCKS5_NAME;
		msg[len++] = (uint8_t)n;
		memcpy(msg + len, host->text, n);
	} else {
		n = host->kind == HOSTNAME_IPV4 ? 4 : 16;
		msg[3] =
		    host->kind == HOSTNAME_IPV4 ? SOCKS5_IPV4 : SOCKS5_IPV6;
		memcpy(msg + len, host->addr.bytes, n);
	}
	len += n;
	msg[len++] = (uint8_t)(port >> 8);
	msg[len++] = (uint8_t)port;
	write_all(fd, msg, len);
	read_exactly(fd, msg, SOCKS5_REPLY_SIZE);
	if (msg[1] != SOCKS5_OK)
		fail("%s", socks_text(msg[1]));
}

/* Copies what is there; false at the end of from. */
static bool
copy(int from, int to)
{
	static char buf[BUFFER];
	size_t n = read_some(from, buf, sizeof(buf));

	if (n == 0)
		return false;
	write_all(to, buf, n);
	return true;
}

/* Both ways until the far end is done; our end of file is passed on. */
static void
relay(int fd)
{
	struct pollfd p[2] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	for (;;) {
		if (poll(p, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			fail("poll: %s", strerror(errno));
		}
		if (p[0].revents != 0 && !copy(STDIN_FILENO, fd)) {
			(void)shutdown(fd, SHUT_WR);
			p[0].fd = -1;
		}
		if (p[1].revents != 0 && !copy(fd, STDOUT_FILENO))
			return;
	}
}

int
main(int argc, char **argv)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	const char *proxy = NULL;
	struct hostname host;
	bool socks = false;
	uint16_t port;
	int c, fd;

	while ((c = getopt(argc, argv, "5x:V")) != -1) {
		if (c == '5')
			socks = true;
		else if (c == 'x')
			proxy = optarg;
		else if (c == 'V')
			return puts("stockade-connect " PACKAGE_VERSION) < 0;
		else
			usage();
	}
	if (argc - optind != 2)
		usage();
	read_host(argv[optind], &host);
	if (http1_port_parse(argv[optind + 1], strlen(argv[optind + 1]),
		&port) < 0)
		fail("port: not a number from 1 to 65535");
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sin.sin_port = htons(socks ? SOCKS_PORT : HTTP_PORT);
	if (proxy != NULL)
		read_proxy(proxy, &sin);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    connect(fd, (const struct sockaddr *)&sin, sizeof(sin)) < 0)
		fail("proxy: %s", strerror(errno));
	if (socks)
		socks_open(fd, &host, port);
	else
		http_open(fd, &host, port);
	relay(fd);
	return 0;
}
