/*
 * The table of clients; see clients.h. Asked by control, which may be hostile:
 * it chooses the descriptor and the number of calls, never a uid.
 */
#include "supervisor/clients.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/sockunix.h"

static struct client_bucket *
bucket(struct clients *clients, uint64_t number)
{
	return &clients->buckets[number % CLIENTS_BUCKETS];
}

void
clients_init(struct clients *clients)
{
	memset(clients, 0, sizeof(*clients));
	for (size_t i = 0; i < CLIENTS_BUCKETS; i++)
		LIST_INIT(&clients->buckets[i]);
}

void
clients_remove(struct clients *clients, struct client *client)
{
	LIST_REMOVE(client, next);
	clients->count--;
	free(client->groups);
	free(client);
}

void
clients_clear(struct clients *clients)
{
	struct client *client;

	for (size_t i = 0; i < CLIENTS_BUCKETS; i++)
		while ((client = LIST_FIRST(&clients->buckets[i])) != NULL)
			clients_remove(clients, client);
}

void
clients_done(struct clients *clients)
{
	clients_clear(clients);
}

struct client *
clients_find(struct clients *clients, uint64_t number)
{
	struct client *client;

	LIST_FOREACH (client, bucket(clients, number), next)
		if (client->number == number)
			return client;
	return NULL;
}

static bool
has_group(const struct sockunix_peer *peer, gid_t gid)
{
	if (peer->gid == gid)
		return true;
	for (size_t i = 0; i < peer->ngroups; i++)
		if (peer->groups[i] == gid)
			return true;
	return false;
}

bool
clients_judge(const struct sockunix_peer *peer, const struct client_gids *gids,
    bool *ret_operator)
{
	bool is_operator = peer->uid == 0 || has_group(peer, gids->admin);

	if (!is_operator && !has_group(peer, gids->client))
		return false;
	*ret_operator = is_operator;
	return true;
}

/* True when fd was accepted from the socket bound to `local`: only an accepted
 * socket bears the listener's name, and only root can bind in its directory. */
static bool
is_accepted_from(int fd, const char *local)
{
	struct sockaddr_un sun;
	socklen_t size = sizeof(sun);
	socklen_t int_size = sizeof(int);
	int type = 0, listens = 1;

	memset(&sun, 0, sizeof(sun));
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &int_size) < 0 ||
	    type != SOCK_STREAM)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_size) <
		0 ||
	    listens != 0)
		return false;
	if (getsockname(fd, (struct sockaddr *)&sun, &size) < 0 ||
	    size > sizeof(sun) || sun.sun_family != AF_UNIX)
		return false;
	return strnlen(sun.sun_path, sizeof(sun.sun_path)) == strlen(local) &&
	    memcmp(sun.sun_path, local, strlen(local)) == 0;
}

/* Takes the peer's groups, without the two that are only permissions to talk
 * to us: a run does not inherit those. */
static void
take_groups(struct client *client, struct sockunix_peer *peer,
    const struct client_gids *gids)
{
	size_t n = 0;

	for (size_t i = 0; i < peer->ngroups; i++)
		if (peer->groups[i] != gids->client &&
		    peer->groups[i] != gids->admin)
			peer->groups[n++] = peer->groups[i];
	client->groups = peer->groups;
	client->ngroups = n;
	peer->groups = NULL;
	peer->ngroups = 0;
}

int
clients_add(struct clients *clients, int fd, const char *local,
    const struct client_gids *gids, struct client **ret, uid_t *ret_uid)
{
	struct sockunix_peer peer;
	struct client *client;
	bool is_operator = false;
	int r;

	if (!is_accepted_from(fd, local))
		return -EPERM;
	r = sockunix_peer_of(fd, &peer);
	if (r < 0)
		return r == -ENOMEM ? r : -EPERM;
	*ret_uid = peer.uid;
	if (!clients_judge(&peer, gids, &is_operator)) {
		sockunix_peer_done(&peer);
		return -EPERM;
	}
	client =
	    clients->count < CLIENTS_MAX ? calloc(1, sizeof(*client)) : NULL;
	if (client == NULL) {
		sockunix_peer_done(&peer);
		return clients->count < CLIENTS_MAX ? -ENOMEM : -ENOSPC;
	}
	client->number = ++clients->last;
	client->uid = peer.uid;
	client->is_operator = is_operator;
	take_groups(client, &peer, gids);
	LIST_INSERT_HEAD(bucket(clients, client->number), client, next);
	clients->count++;
	*ret = client;
	return 0;
}

bool
client_may_be(const struct client *client, uid_t uid)
{
	return client->is_operator || client->uid == uid;
}
