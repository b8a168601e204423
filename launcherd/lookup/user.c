/*
 * See user.h. Runs in stockade-lookup before the change of ids. What NSS
 * answers is bounded and checked for its form; launcherd judges it again.
 */
#include "launcherd/lookup/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "protocol/message.h"

#define GROUPS_MAX 1024

static int
fill_groups(const struct passwd *pw, struct msg_lookup_user *ret)
{
	gid_t groups[GROUPS_MAX];
	int n = GROUPS_MAX;

	if (getgrouplist(pw->pw_name, pw->pw_gid, groups, &n) < 0)
		return -E2BIG;
	ret->groups.len = (uint16_t)((size_t)n * sizeof(gid_t));
	memcpy(ret->groups.data, groups, ret->groups.len);
	return 0;
}

/* A name that does not fit would name somebody else when it is cut. */
static int
fill_names(const struct passwd *pw, struct msg_lookup_user *ret)
{
	if (strlen(pw->pw_name) >= sizeof(ret->user) ||
	    strlen(pw->pw_dir) >= sizeof(ret->home) ||
	    strlen(pw->pw_shell) >= sizeof(ret->shell))
		return -ENAMETOOLONG;
	MSG_SET_STR(ret->user, pw->pw_name);
	MSG_SET_STR(ret->home, pw->pw_dir);
	MSG_SET_STR(ret->shell, pw->pw_shell);
	return 0;
}

void
user_look_up(uid_t uid, struct msg_lookup_user *ret)
{
	const struct passwd *pw;
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->uid = uid;
	errno = 0;
	pw = getpwuid(uid);
	if (pw == NULL) {
		/* NSS says "no" with several numbers, getpwnam(3). */
		ret->error = errno == 0 || errno == ESRCH || errno == EBADF ||
			errno == EPERM ?
		    ENOENT :
		    (uint64_t)errno;
		return;
	}
	r = pw->pw_uid == uid ? fill_names(pw, ret) : -ENOENT;
	if (r == 0)
		r = fill_groups(pw, ret);
	if (r < 0) {
		memset(ret, 0, sizeof(*ret));
		ret->uid = uid;
		ret->error = (uint64_t)-r;
		return;
	}
	ret->gid = pw->pw_gid;
}

/* Loading the modules is most of the time of a look-up; glibc keeps them, and
 * opens the files or asks the servers anew for each question. */
void
user_prepare(void)
{
	static struct msg_lookup_user unused;

	user_look_up(0, &unused);
}
