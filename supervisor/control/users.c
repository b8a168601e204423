/*
 * In stockade-control, before it is confined. The file is the host's own;
 * fgetpwent(3) reads it and asks no service.
 */
#include "supervisor/control/users.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
add(struct users *users, const struct passwd *pw)
{
	struct user_name *more;
	char *name;

	if (users->n >= USERS_MAX)
		return;
	name = strdup(pw->pw_name);
	more = reallocarray(users->list, users->n + 1, sizeof(*more));
	if (more != NULL)
		users->list = more;
	if (name == NULL || more == NULL) {
		free(name);
		return;
	}
	users->list[users->n].name = name;
	users->list[users->n++].uid = pw->pw_uid;
}

void
users_read(struct users *ret, const char *also)
{
	FILE *in = fopen("/etc/passwd", "re");
	const struct passwd *pw;
	uid_t uid;

	memset(ret, 0, sizeof(*ret));
	while (in != NULL && (pw = fgetpwent(in)) != NULL)
		add(ret, pw);
	if (in != NULL)
		(void)fclose(in);
	if (also == NULL || users_find(ret, also, &uid) == 0)
		return;
	pw = getpwnam(also);
	if (pw != NULL)
		add(ret, pw);
}

void
users_done(struct users *users)
{
	for (size_t i = 0; i < users->n; i++)
		free(users->list[i].name);
	free(users->list);
	memset(users, 0, sizeof(*users));
}

int
users_find(const struct users *users, const char *text, uid_t *ret)
{
	unsigned long long uid = 0;
	const char *p;

	for (size_t i = 0; i < users->n; i++)
		if (strcmp(users->list[i].name, text) == 0) {
			*ret = users->list[i].uid;
			return 0;
		}
	for (p = text; *p >= '0' && *p <= '9' && uid <= UINT32_MAX; p++)
		uid = uid * 10 + (unsigned)(*p - '0');
	if (*p != '\0' || p == text)
		return -ENOENT;
	if (uid >= UINT32_MAX)
		return -EINVAL;
	*ret = (uid_t)uid;
	return 0;
}
