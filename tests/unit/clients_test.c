/*
 * The supervisor's tables: clients, sandboxes, requests.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/size.h"
#include "common/sockunix.h"
#include "supervisor/clients.h"
#include "supervisor/quota.h"
#include "supervisor/requests.h"
#include "supervisor/sandbox_table.h"

static const struct client_gids gids = { .client = 500, .admin = 600 };

static void
roles_come_from_uid_and_groups_alone(void **state)
{
	/* clang-format off */
	static const struct {
		uid_t uid;
		gid_t gid;
		gid_t groups[2];
		bool in;
		bool is_operator;
	} rows[] = {
		{ 0, 0, { 1, 2 }, true, true },
		{ 7, 7, { 1, 2 }, false, false },
		{ 7, 500, { 1, 2 }, true, false },
		{ 7, 7, { 1, 500 }, true, false },
		{ 7, 600, { 1, 2 }, true, true },
		{ 7, 7, { 600, 500 }, true, true },
		{ 600, 7, { 1, 2 }, false, false },
		{ 500, 7, { 501, 499 }, false, false },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		gid_t groups[2] = { rows[i].groups[0], rows[i].groups[1] };
		const struct sockunix_peer peer = { .uid = rows[i].uid,
			.gid = rows[i].gid,
			.pid = 1,
			.ngroups = 2,
			.groups = groups };
		bool is_operator = false;

		assert_int_equal(clients_judge(&peer, &gids, &is_operator),
		    rows[i].in);
		assert_int_equal(is_operator, rows[i].is_operator);
	}
}

static void
only_operators_are_others(void **state)
{
	const struct client user = { .uid = 7 };
	const struct client admin = { .uid = 7, .is_operator = true };

	(void)state;
	assert_true(client_may_be(&user, 7));
	assert_false(client_may_be(&user, 8));
	assert_false(client_may_be(&user, 0));
	assert_true(client_may_be(&admin, 8));
}

struct rig {
	char dir[64];
	char path[96];
	int listener;
	int client;
	int accepted;
};

static int
rig_open(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct rig *rig = calloc(1, sizeof(*rig));

	(void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/clients-test-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	(void)snprintf(rig->path, sizeof(rig->path), "%s/s", rig->dir);
	(void)snprintf(sun.sun_path, sizeof(sun.sun_path), "%.95s", rig->path);
	rig->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(rig->listener, (const struct sockaddr *)&sun,
			     sizeof(sun)),
	    0);
	assert_int_equal(listen(rig->listener, 4), 0);
	rig->client = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(rig->client, (const struct sockaddr *)&sun,
			     sizeof(sun)),
	    0);
	rig->accepted = accept(rig->listener, NULL, NULL);
	assert_true(rig->accepted >= 0);
	*state = rig;
	return 0;
}

static int
rig_close(void **state)
{
	struct rig *rig = *state;

	(void)close(rig->listener);
	(void)close(rig->client);
	(void)close(rig->accepted);
	(void)unlink(rig->path);
	(void)rmdir(rig->dir);
	free(rig);
	return 0;
}

/* Ourselves in the client group, whoever runs the test. */
static struct client_gids
own_gids(void)
{
	return (struct client_gids){ .client = getgid(), .admin = 600 };
}

static void
only_an_accepted_connection_of_our_socket_counts(void **state)
{
	struct rig *rig = *state;
	const struct client_gids own = own_gids();
	struct clients clients;
	struct client *client = NULL;
	uid_t uid = (uid_t)-1;
	int pair[2];

	clients_init(&clients);
	assert_int_equal(clients_add(&clients, rig->client, rig->path, &own,
			     &client, &uid),
	    -EPERM);
	assert_int_equal(clients_add(&clients, rig->listener, rig->path, &own,
			     &client, &uid),
	    -EPERM);
	assert_int_equal(clients_add(&clients, rig->accepted, "/other/s", &own,
			     &client, &uid),
	    -EPERM);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(clients_add(&clients, pair[0], rig->path, &own,
			     &client, &uid),
	    -EPERM);
	assert_null(client);
	assert_int_equal(clients_add(&clients, rig->accepted, rig->path, &own,
			     &client, &uid),
	    0);
	assert_int_equal(client->uid, getuid());
	assert_int_equal(uid, getuid());
	(void)close(pair[0]);
	(void)close(pair[1]);
	clients_done(&clients);
}

static void
client_numbers_are_never_reused(void **state)
{
	struct rig *rig = *state;
	const struct client_gids own = own_gids();
	struct clients clients;
	struct client *client = NULL;
	uint64_t last = 0;
	uid_t uid;

	clients_init(&clients);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(clients_add(&clients, rig->accepted, rig->path,
				     &own, &client, &uid),
		    0);
		assert_true(client->number > last);
		last = client->number;
		assert_ptr_equal(clients_find(&clients, last), client);
		if (i % 3 == 0)
			clients_remove(&clients, client);
	}
	clients_clear(&clients);
	assert_null(clients_find(&clients, last));
	assert_int_equal(clients_add(&clients, rig->accepted, rig->path, &own,
			     &client, &uid),
	    0);
	assert_true(client->number > last);
	assert_int_equal(clients.count, 1);
	clients_done(&clients);
}

static void
the_table_of_clients_is_bounded(void **state)
{
	struct rig *rig = *state;
	const struct client_gids own = own_gids();
	struct clients clients;
	struct client *client = NULL;
	uid_t uid;

	clients_init(&clients);
	for (int i = 0; i < CLIENTS_MAX; i++)
		assert_int_equal(clients_add(&clients, rig->accepted, rig->path,
				     &own, &client, &uid),
		    0);
	assert_int_equal(clients_add(&clients, rig->accepted, rig->path, &own,
			     &client, &uid),
	    -ENOSPC);
	clients_done(&clients);
}

static void
a_sandbox_number_is_live_gone_or_never(void **state)
{
	struct sandboxes table;
	struct sandbox *a, *b, *found = NULL;

	(void)state;
	sandboxes_init(&table);
	a = sandboxes_add(&table);
	b = sandboxes_add(&table);
	assert_int_equal(a->id, 1);
	assert_int_equal(b->id, 2);
	assert_int_equal(sandboxes_find(&table, 1, &found), SANDBOX_LIVE);
	assert_ptr_equal(found, a);
	sandboxes_remove(&table, a);
	assert_int_equal(sandboxes_find(&table, 1, &found), SANDBOX_GONE);
	assert_int_equal(sandboxes_find(&table, 3, &found), SANDBOX_NEVER);
	assert_int_equal(sandboxes_find(&table, UINT64_MAX, &found),
	    SANDBOX_NEVER);
	assert_int_equal(sandboxes_add(&table)->id, 3);
	assert_int_equal(table.count, 2);
	sandboxes_done(&table);
	assert_int_equal(table.count, 0);
}

static void
a_removed_sandbox_closes_what_it_held(void **state)
{
	struct sandboxes table;
	struct sandbox *sandbox;
	int pair[2];

	(void)state;
	sandboxes_init(&table);
	sandbox = sandboxes_add(&table);
	assert_int_equal(pipe(pair), 0);
	sandbox->plan_fd = pair[0];
	sandbox->socks_fd = pair[1];
	sandboxes_remove(&table, sandbox);
	assert_int_equal(fcntl(pair[0], F_GETFD), -1);
	assert_int_equal(fcntl(pair[1], F_GETFD), -1);
	sandboxes_done(&table);
}

static void
a_kill_is_written_to_the_cgroup(void **state)
{
	char dir[] = "/tmp/cgroup-test-XXXXXX", file[64], byte = 0;
	struct sandboxes table;
	struct sandbox *sandbox;
	int fd;

	(void)state;
	sandboxes_init(&table);
	sandbox = sandboxes_add(&table);
	assert_int_equal(sandbox_kill(sandbox), 0);
	assert_non_null(mkdtemp(dir));
	sandbox->cgroup_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(sandbox_kill(sandbox), -ENOENT);
	(void)snprintf(file, sizeof(file), "%s/cgroup.kill", dir);
	fd = open(file, O_CREAT | O_RDWR, 0600);
	assert_int_equal(sandbox_kill(sandbox), 0);
	assert_int_equal(pread(fd, &byte, 1, 0), 1);
	assert_int_equal(byte, '1');
	(void)close(fd);
	(void)unlink(file);
	(void)rmdir(dir);
	sandboxes_done(&table);
}

static void
request_numbers_are_ours_and_never_reused(void **state)
{
	struct requests table;
	struct request *a, *b, *c;

	(void)state;
	requests_init(&table);
	assert_int_equal(requests_add(&table, REQUEST_LOOKUP, 9, 1, &a), 0);
	assert_int_equal(requests_add(&table, REQUEST_LOOKUP, 9, 1, &b),
	    -EEXIST);
	assert_int_equal(requests_add(&table, REQUEST_STAT, 9, 1, &b), 0);
	assert_true(a->number != b->number);
	assert_null(requests_find(&table, REQUEST_STAT, a->number));
	assert_ptr_equal(requests_find(&table, REQUEST_LOOKUP, a->number), a);
	/* Its control is gone: the number is free again for the next one. */
	requests_orphan(&table);
	assert_null(requests_find_theirs(&table, REQUEST_LOOKUP, 9));
	assert_int_equal(requests_add(&table, REQUEST_LOOKUP, 9, 1, &c), 0);
	assert_true(c->number > b->number);
	assert_true(a->orphan && !c->orphan);
	requests_done(&table);
}

static void
an_answered_look_up_is_kept_for_a_while(void **state)
{
	struct requests table;
	struct request *a, *b;

	(void)state;
	requests_init(&table);
	assert_int_equal(requests_add(&table, REQUEST_LOOKUP, 1, 1000, &a), 0);
	a->answered_ms = 1000;
	assert_int_equal(requests_add(&table, REQUEST_LOOKUP, 2,
			     1000 + REQUEST_LOOKUP_MS, &b),
	    0);
	assert_ptr_equal(requests_find_theirs(&table, REQUEST_LOOKUP, 1), a);
	assert_int_equal(requests_add(&table, REQUEST_LOOKUP, 3,
			     1001 + REQUEST_LOOKUP_MS, &b),
	    0);
	assert_null(requests_find_theirs(&table, REQUEST_LOOKUP, 1));
	assert_int_equal(table.count, 2);
	requests_done(&table);
}

static void
count_failed(void *ctx, const struct request *request)
{
	(void)request;
	(*(int *)ctx)++;
}

static void
questions_are_bounded_and_fail_together(void **state)
{
	struct requests table;
	struct request *request;
	int failed = 0;

	(void)state;
	requests_init(&table);
	for (uint64_t i = 1; i <= REQUESTS_MAX; i++)
		assert_int_equal(requests_add(&table, REQUEST_STAT, i, 1,
				     &request),
		    0);
	assert_int_equal(requests_add(&table, REQUEST_STAT, 0, 1, &request),
	    -ENOSPC);
	request->orphan = true;
	requests_fail(&table, count_failed, &failed);
	assert_int_equal(failed, REQUESTS_MAX - 1);
	assert_int_equal(table.count, 0);
	requests_done(&table);
}

static void
repeats_are_counted_and_not_repeated(void **state)
{
	struct quota quota = { 0 };
	uint64_t left_out = 99;

	(void)state;
	for (unsigned i = 0; i < QUOTA_MAX; i++) {
		assert_true(quota_take(&quota, 5000, &left_out));
		assert_int_equal(left_out, 0);
	}
	for (unsigned i = 0; i < 7; i++)
		assert_false(quota_take(&quota, 5999, &left_out));
	assert_true(quota_take(&quota, 6000, &left_out));
	assert_int_equal(left_out, 7);
	assert_true(quota_take(&quota, 6001, &left_out));
	assert_int_equal(left_out, 0);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_open, rig_close)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roles_come_from_uid_and_groups_alone),
		cmocka_unit_test(only_operators_are_others),
		T(only_an_accepted_connection_of_our_socket_counts),
		T(client_numbers_are_never_reused),
		T(the_table_of_clients_is_bounded),
		cmocka_unit_test(a_sandbox_number_is_live_gone_or_never),
		cmocka_unit_test(a_removed_sandbox_closes_what_it_held),
		cmocka_unit_test(a_kill_is_written_to_the_cgroup),
		cmocka_unit_test(request_numbers_are_ours_and_never_reused),
		cmocka_unit_test(an_answered_look_up_is_kept_for_a_while),
		cmocka_unit_test(questions_are_bounded_and_fail_together),
		cmocka_unit_test(repeats_are_counted_and_not_repeated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
