/*
 * Unix sockets and the notification socket.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/notify.h"
#include "common/size.h"
#include "common/sockunix.h"

static char dir[64];
static char path[96];

static int
connect_to(const char *name)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", name);
	if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static void
a_socket_has_its_mode_and_replaces_an_old_one(void **state)
{
	struct stat st;
	int first, second, client;

	(void)state;
	first = sockunix_listen(path, getgid(), 0660, 8);
	assert_true(first >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_gid, getgid());
	second = sockunix_listen(path, getgid(), 0600, 8);
	assert_true(second >= 0);
	(void)close(first);
	client = connect_to(path);
	assert_true(client >= 0);
	(void)close(client);
	(void)close(second);
	assert_int_equal(connect_to(path), -1);
	(void)unlink(path);
	/* No temporary name is left. */
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void
a_file_is_never_replaced(void **state)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	(void)state;
	(void)close(fd);
	assert_int_equal(sockunix_listen(path, getgid(), 0660, 8), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(sockunix_listen(path, getgid(), 0660, 8), -EEXIST);
	assert_int_equal(unlink(path), 0);
}

static void
a_long_or_relative_name_is_refused(void **state)
{
	char name[200];

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(sockunix_listen(name, 0, 0660, 8), -ENAMETOOLONG);
	assert_int_equal(sockunix_listen("x", 0, 0660, 8), -EINVAL);
}

static void
the_kernel_tells_who_the_peer_is(void **state)
{
	struct sockunix_peer peer;
	int fd = sockunix_listen(path, getgid(), 0660, 8);
	int client = connect_to(path);
	int conn = accept(fd, NULL, NULL);

	(void)state;
	assert_true(conn >= 0);
	assert_int_equal(sockunix_peer_of(conn, &peer), 0);
	assert_int_equal(peer.uid, getuid());
	assert_int_equal(peer.gid, getgid());
	assert_int_equal(peer.pid, getpid());
	assert_int_equal((int)peer.ngroups, getgroups(0, NULL));
	sockunix_peer_done(&peer);
	sockunix_peer_done(&peer);
	(void)close(client);
	(void)close(conn);
	(void)close(fd);
	(void)unlink(path);
}

/* More groups than the first guess has room for. */
static void
many_groups_are_all_told(void **state)
{
	gid_t groups[300];
	struct sockunix_peer peer;
	int pair[2];

	(void)state;
	for (gid_t i = 0; i < 300; i++)
		groups[i] = 5000 + i;
	assert_int_equal(setgroups(300, groups), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(sockunix_peer_of(pair[0], &peer), 0);
	assert_int_equal(peer.ngroups, 300);
	assert_int_equal(peer.groups[299], 5299);
	sockunix_peer_done(&peer);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void
what_is_no_connected_socket_is_refused(void **state)
{
	struct sockunix_peer peer;
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	assert_true(sockunix_peer_of(fd, &peer) < 0);
	(void)close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(sockunix_peer_of(fd, &peer), -EPERM);
	(void)close(fd);
}

static int
notify_server(const char *name, socklen_t extra)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	size_t len = strlen(name);

	memcpy(sun.sun_path, name, len);
	if (name[0] == '@')
		sun.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (const struct sockaddr *)&sun,
			     (socklen_t)(offsetof(struct sockaddr_un,
					     sun_path) +
				 len) +
				 extra),
	    0);
	return fd;
}

static void
the_manager_is_notified(void **state)
{
	char text[64] = "", name[64], pid[16];
	int fd;

	(void)state;
	(void)snprintf(name, sizeof(name), "@notify-test-%d", (int)getpid());
	fd = notify_server(name, 0);
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	(void)setenv("NOTIFY_SOCKET", name, 1);
	(void)setenv("WATCHDOG_USEC", "3000000", 1);
	(void)setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_init(), 1500);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_null(getenv("WATCHDOG_USEC"));
	notify_send("READY=1");
	assert_int_equal(recv(fd, text, sizeof(text), 0), 7);
	assert_string_equal(text, "READY=1");
	(void)close(fd);
	notify_send("STOPPING=1"); /* nobody there: no harm */
}

static void
a_watchdog_of_another_process_is_not_ours(void **state)
{
	int fd;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/notify", dir);
	fd = notify_server(path, 1);
	(void)setenv("NOTIFY_SOCKET", path, 1);
	(void)setenv("WATCHDOG_USEC", "3000000", 1);
	(void)setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_init(), 0);
	(void)setenv("NOTIFY_SOCKET", path, 1);
	(void)setenv("WATCHDOG_USEC", "junk", 1);
	assert_int_equal(notify_init(), 0);
	(void)close(fd);
	(void)unlink(path);
}

static int
setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/sock-test-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return 1;
	(void)snprintf(path, sizeof(path), "%s/control.sock", dir);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_socket_has_its_mode_and_replaces_an_old_one),
		cmocka_unit_test(a_file_is_never_replaced),
		cmocka_unit_test(a_long_or_relative_name_is_refused),
		cmocka_unit_test(the_kernel_tells_who_the_peer_is),
		cmocka_unit_test(what_is_no_connected_socket_is_refused),
		cmocka_unit_test(the_manager_is_notified),
		cmocka_unit_test(a_watchdog_of_another_process_is_not_ours),
		/* As root only. */
		cmocka_unit_test(many_groups_are_all_told),
	};

	return _cmocka_run_group_tests("sockunix", tests,
	    ARRAY_LEN(tests) - (geteuid() == 0 ? 0 : 1), setup, teardown);
}
