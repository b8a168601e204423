/*
 * plan_ask.c, plan_view.c and plan_make.c against a file system that is a
 * table: what is granted, where it shows, and that a denied path is masked
 * wherever it shows. Each refusal has the twin that is accepted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "protocol/guard.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/etc_files.h"
#include "supervisor/control/plan_make.h"
#include "supervisor/control/plan_view.h"
#include "supervisor/control/spec.h"

#define HOME "/home/u"

/* What is there; everything else is absent. */
struct there {
	const char *path;
	const char *resolved; /* NULL: the same */
	enum lookup_kind kind;
	int error;
};

struct box {
	const struct there *fs;
	size_t nfs;
	const char *conf;
	struct spec spec;
	const char *deny_read[4];
	const char *deny_write[4];
	const char *protected_paths[4];
	const char *state_dirs[4];
	struct spec_mount mounts[4];
	/* results */
	struct plan_made *made;
	struct spec_fault fault;
	const struct lookup_found *found;
	size_t nfound;
	uint64_t stopped;
	struct wire_out question;
};

static void
answer(const struct box *b, const char *path, struct lookup_result *r,
    struct pool *pool)
{
	const char *literal = path;

	memset(r, 0, sizeof(*r));
	if (path[0] == '~')
		literal = pool_concat(pool, HOME,
		    strcmp(path, "~/.") == 0 ? "" : path + 1);
	r->literal = literal;
	r->resolved = "";
	r->error = ENOENT;
	if (strcmp(literal, HOME) == 0) {
		r->error = 0;
		r->kind = LOOKUP_DIR;
		r->resolved = HOME;
	}
	for (size_t i = 0; i < b->nfs; i++) {
		if (strcmp(b->fs[i].path, literal) != 0)
			continue;
		r->error = (uint64_t)b->fs[i].error;
		r->kind = b->fs[i].kind;
		if (r->error == 0)
			r->resolved = b->fs[i].resolved != NULL ?
			    b->fs[i].resolved :
			    literal;
	}
}

static int
run(struct box *b)
{
	static const struct etc_host host;
	struct conf_errors errors = { 0 };
	struct lookup_results *results = calloc(1, sizeof(*results));
	struct plan_asked asked;
	struct conf *conf = NULL;
	struct pool pool = { NULL };
	int r;

	assert_non_null(results);
	assert_int_equal(conf_parse("test", b->conf, strlen(b->conf), NULL,
			     NULL, &conf, &errors),
	    0);
	assert_int_equal(plan_ask(&b->spec, conf, &pool, &asked, &b->fault), 0);
	wire_out_init(&b->question);
	assert_int_equal(plan_ask_encode(&asked, &b->spec, conf,
			     (struct wire_view){ NULL, 0 }, &b->question,
			     &b->fault),
	    0);
	results->nresults = asked.n;
	results->nfound = b->nfound;
	for (size_t i = 0; i < b->nfound; i++)
		results->found[i] = b->found[i];
	results->stopped = b->stopped;
	for (size_t i = 0; i < asked.n; i++)
		answer(b, asked.items[i].path, &results->results[i], &pool);
	const struct plan_input in = { .spec = &b->spec,
		.conf = conf,
		.host = &host,
		.asked = &asked,
		.results = results,
		.user = { "u", HOME, "/bin/sh", 1000, 1000 },
		.memory_default = 1 << 30,
		.now_ms = 1 };
	r = plan_make(&in, &b->made, &b->fault);
	free(results);
	pool_done(&pool);
	conf_free(conf);
	return r;
}

#define COUNT(list) count((list), ARRAY_LEN(list))
static size_t
count(const char *const *list, size_t max)
{
	size_t n = 0;

	while (n < max && list[n] != NULL)
		n++;
	return n;
}

static int
make(struct box *b, const struct there *fs, size_t nfs)
{
	struct spec *s = &b->spec;

	b->fs = fs;
	b->nfs = nfs;
	if (b->conf == NULL)
		b->conf = "";
	s->session_id = "s";
	s->workspace_id = "w";
	s->network = true;
	s->mounts = b->mounts;
	while (s->nmounts < ARRAY_LEN(b->mounts) &&
	    b->mounts[s->nmounts].path != NULL)
		s->nmounts++;
	s->deny_read = (struct spec_list){ b->deny_read, COUNT(b->deny_read) };
	s->deny_write =
	    (struct spec_list){ b->deny_write, COUNT(b->deny_write) };
	s->protected_paths =
	    (struct spec_list){ b->protected_paths, COUNT(b->protected_paths) };
	s->state_dirs =
	    (struct spec_list){ b->state_dirs, COUNT(b->state_dirs) };
	return run(b);
}
#define MAKE(b, fs) make((b), (fs), ARRAY_LEN(fs))

static void
drop(struct box *b)
{
	plan_made_free(b->made);
	wire_out_done(&b->question);
	b->made = NULL;
}

static void
made(struct box *b, int r)
{
	const char *field;
	struct plan *again;

	if (r != 0)
		fail_msg("%s: %s", b->fault.field, b->fault.text);
	/* What we make, launcherd accepts. */
	again = calloc(1, sizeof(*again));
	assert_non_null(again);
	if (plan_decode(b->made->plan_bytes.data, b->made->plan_bytes.len,
		again, &field) != 0)
		fail_msg("the decoder refuses %s", field);
	free(again);
}

/* 'w', 'r', or 0 when nothing is mounted there. */
static int
mount_at(const struct box *b, const char *target)
{
	const struct plan *p = b->made->plan;

	for (size_t i = 0; i < p->nmounts; i++)
		if (strcmp(p->mounts[i].target, target) == 0)
			return p->mounts[i].read_only ? 'r' : 'w';
	return 0;
}

/* The mask's how, or -1. */
static int
mask_at(const struct box *b, const char *path)
{
	const struct plan *p = b->made->plan;

	for (size_t i = 0; i < p->nmasks; i++)
		if (strcmp(p->masks[i].path, path) == 0)
			return (int)p->masks[i].how;
	return -1;
}

static void
a_work_tree_is_mounted_writable(void **state)
{
	static const struct there fs[] = { { "/home/u/p", NULL, LOOKUP_DIR,
	    0 } };
	struct box b = { .mounts = { { "/home/u/p", false } } };

	(void)state;
	made(&b, MAKE(&b, fs));
	assert_int_equal(mount_at(&b, "/home/u/p"), 'w');
	assert_int_equal(b.made->plan->nmounts, 1);
	assert_string_equal(b.made->plan->cwd, "/home/u/p");
	assert_string_equal(b.made->plan->home, HOME);
	drop(&b);
}

static void
read_only_modes_make_mounts_read_only_but_not_state(void **state)
{
	static const struct there fs[] = { { "/home/u/p", NULL, LOOKUP_DIR, 0 },
		{ "/srv/state", NULL, LOOKUP_DIR, 0 } };
	struct box b = { .mounts = { { "/home/u/p", false } },
		.state_dirs = { "/srv/state", "/srv/missing" },
		.spec = { .mode = SPEC_REVIEW } };

	(void)state;
	made(&b, MAKE(&b, fs));
	assert_int_equal(mount_at(&b, "/home/u/p"), 'r');
	assert_int_equal(mount_at(&b, "/srv/state"), 'w');
	assert_int_equal(b.made->nnotices, 1);
	assert_string_equal(b.made->notices[0].code, "stateDirMissing");
	drop(&b);
}

static void
a_denied_directory_is_masked_in_both_spellings(void **state)
{
	static const struct there fs[] = { { "/link", "/data/p", LOOKUP_DIR,
					       0 },
		{ "/other", "/data/p/secret", LOOKUP_DIR, 0 } };
	struct box b = { .mounts = { { "/link", false } },
		.deny_read = { "/other" } };

	(void)state;
	made(&b, MAKE(&b, fs));
	assert_int_equal(mount_at(&b, "/link"), 'w');
	assert_int_equal(mount_at(&b, "/data/p"), 'w');
	assert_int_equal(mask_at(&b, "/link/secret"), PLAN_MASK_EMPTY_DIR);
	assert_int_equal(mask_at(&b, "/data/p/secret"), PLAN_MASK_EMPTY_DIR);
	assert_int_equal(mask_at(&b, "/other"), -1);
	drop(&b);
}

static void
a_grant_inside_a_linked_grant_shows_at_both(void **state)
{
	static const struct there fs[] = { { "/link", "/data/p", LOOKUP_DIR,
					       0 },
		{ "/data/p/sub", NULL, LOOKUP_DIR, 0 } };
	struct box b = { .mounts = { { "/link", false },
			     { "/data/p/sub", true } } };

	(void)state;
	made(&b, MAKE(&b, fs));
	assert_int_equal(mount_at(&b, "/data/p/sub"), 'r');
	/* else it would be writable by the other name */
	assert_int_equal(mount_at(&b, "/link/sub"), 'r');
	drop(&b);
}

static void
the_stronger_rule_of_one_path_stays(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/p/x", NULL, LOOKUP_DIR, 0 },
		{ "/p/x/y", NULL, LOOKUP_FILE, 0 },
		{ "/p/x-y", NULL, LOOKUP_DIR, 0 } };
	struct box b = { .mounts = { { "/p", false } },
		.deny_write = { "/p/x", "/p/x/y", "/p/x-y" },
		.deny_read = { "/p/x" } };

	(void)state;
	made(&b, MAKE(&b, fs));
	assert_int_equal(mask_at(&b, "/p/x"), PLAN_MASK_EMPTY_DIR);
	assert_int_equal(mask_at(&b, "/p/x/y"), -1); /* not there any more */
	assert_int_equal(mask_at(&b, "/p/x-y"), PLAN_MASK_READ_ONLY);
	drop(&b);
}

static void
a_read_rule_below_a_write_rule_comes_behind_it(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/p/a", NULL, LOOKUP_DIR, 0 },
		{ "/p/a/s", NULL, LOOKUP_FILE, 0 } };
	struct box b = { .mounts = { { "/p", false } },
		.deny_write = { "/p/a" },
		.deny_read = { "/p/a/s" } };
	const struct plan *p;

	(void)state;
	made(&b, MAKE(&b, fs));
	p = b.made->plan;
	assert_int_equal(p->nmasks, 2);
	assert_string_equal(p->masks[0].path, "/p/a");
	assert_string_equal(p->masks[1].path, "/p/a/s");
	assert_int_equal(p->masks[1].how, PLAN_MASK_NO_FILE);
	drop(&b);
}

static void
protected_paths_take_the_permission_of_grants_inside(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/p/repo", NULL, LOOKUP_DIR, 0 },
		{ "/p/repo/state", NULL, LOOKUP_DIR, 0 } };
	struct box b = { .mounts = { { "/p", false }, { "/p/repo", false } },
		.state_dirs = { "/p/repo/state" },
		.protected_paths = { "/p/repo", "/gone" } };

	(void)state;
	made(&b, MAKE(&b, fs));
	assert_int_equal(mount_at(&b, "/p"), 'w');
	assert_int_equal(mount_at(&b, "/p/repo"), 'r');
	assert_int_equal(mount_at(&b, "/p/repo/state"), 'r');
	drop(&b);
}

struct refusal {
	const char *what;
	const char *mount;
	struct there fs;
	const char *conf;
	enum api_error code; /* API_OK: the twin */
};
static const struct refusal refusals[] = {
	{ "root", "/", { "/", NULL, LOOKUP_DIR, 0 }, "", API_BAD_PATH },
	{ "tmp", "/tmp", { "/tmp", NULL, LOOKUP_DIR, 0 }, "", API_BAD_PATH },
	{ "below tmp", "/tmp/x", { "/tmp/x", NULL, LOOKUP_DIR, 0 }, "",
	    API_OK },
	{ "a link to etc", "/e", { "/e", "/etc", LOOKUP_DIR, 0 }, "",
	    API_BAD_PATH },
	{ "below etc", "/etc/x", { "/etc/x", NULL, LOOKUP_DIR, 0 }, "",
	    API_BAD_PATH },
	{ "usr", "/usr", { "/usr", NULL, LOOKUP_DIR, 0 }, "", API_BAD_PATH },
	{ "opt", "/opt", { "/opt", NULL, LOOKUP_DIR, 0 }, "", API_OK },
	{ "home", HOME, { HOME, NULL, LOOKUP_DIR, 0 }, "", API_BAD_PATH },
	{ "a link to home", "/h", { "/h", HOME, LOOKUP_DIR, 0 }, "",
	    API_BAD_PATH },
	{ "around home", "/home", { "/home", NULL, LOOKUP_DIR, 0 }, "",
	    API_BAD_PATH },
	{ "permitted home", HOME, { HOME, NULL, LOOKUP_DIR, 0 },
	    "permit home-mount \"/home/u\"\n", API_OK },
	{ "absent", "/x", { "/y", NULL, LOOKUP_DIR, 0 }, "", API_BAD_PATH },
	{ "hidden", "/x", { "/x", NULL, LOOKUP_NONE, EACCES }, "",
	    API_BAD_PATH },
	{ "broken", "/x", { "/x", NULL, LOOKUP_NONE, EIO }, "",
	    API_LOOKUP_FAILED },
	{ "socket", "/x", { "/x", NULL, LOOKUP_SOCKET, 0 }, "", API_BAD_PATH },
	{ "file", "/x", { "/x", NULL, LOOKUP_FILE, 0 }, "", API_OK },
	{ "service", "/srv/s", { "/srv/s", NULL, LOOKUP_DIR, 0 },
	    "state-dir \"/srv\"\n", API_BAD_PATH },
};

static void
places_are_refused_or_given(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		const struct refusal *row = &refusals[i];
		struct box b = { .mounts = { { row->mount, false } },
			.conf = row->conf };
		int r = make(&b, &row->fs, 1);

		if (row->code == API_OK) {
			made(&b, r);
			drop(&b);
			continue;
		}
		if (r == 0)
			fail_msg("%s was given", row->what);
		if (b.fault.code != row->code)
			fail_msg("%s: %d %s", row->what, (int)b.fault.code,
			    b.fault.text);
		assert_null(b.made);
	}
}

static void
contradictions_are_refused(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/l", "/p", LOOKUP_DIR, 0 } };
	struct box same = { .mounts = { { "/p", true }, { "/l", true } } };
	struct box both = { .mounts = { { "/p", true }, { "/l", false } } };
	struct box state_dir = { .mounts = { { "/p", true } },
		.state_dirs = { "/l" } };

	(void)state;
	made(&same, MAKE(&same, fs));
	drop(&same);
	assert_int_not_equal(MAKE(&both, fs), 0);
	assert_int_equal(both.fault.code, API_BAD_PARAMS);
	assert_int_not_equal(MAKE(&state_dir, fs), 0);
}

static void
a_rule_that_cannot_be_checked_refuses(void **state)
{
	static const int errors[] = { EACCES, EIO, ELOOP, ENAMETOOLONG };
	struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/q", NULL, LOOKUP_NONE, 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		struct box b = { .mounts = { { "/p", false } },
			.protected_paths = { "/q" } };

		fs[1].error = errors[i];
		assert_int_not_equal(MAKE(&b, fs), 0);
		assert_int_equal(b.fault.code, API_LOOKUP_FAILED);
		assert_string_equal(b.fault.field, "protectedPaths");
	}
	fs[1].error = ENOTDIR;
	struct box b = { .mounts = { { "/p", false } },
		.protected_paths = { "/q" } };
	made(&b, MAKE(&b, fs));
	drop(&b);
}

static void
what_is_hidden_outside_of_the_view_is_no_hindrance(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/root/x", NULL, LOOKUP_NONE, EACCES },
		{ "/p/x", NULL, LOOKUP_NONE, EACCES } };
	struct box outside = { .mounts = { { "/p", false } },
		.conf = "deny read \"/root/x\"\n" };
	struct box inside = { .mounts = { { "/p", false } },
		.conf = "deny read \"/p/x\"\n" };

	(void)state;
	made(&outside, MAKE(&outside, fs));
	drop(&outside);
	assert_int_not_equal(MAKE(&inside, fs), 0);
	assert_int_equal(inside.fault.code, API_LOOKUP_FAILED);
}

static void
only_the_state_of_the_own_adapter_is_lifted(void **state)
{
	static const struct there fs[] = {
		{ HOME "/.codex", NULL, LOOKUP_DIR, 0 },
		{ HOME "/.codex/config.toml", NULL, LOOKUP_FILE, 0 },
		{ HOME "/.gemini", NULL, LOOKUP_DIR, 0 },
		{ HOME "/.gemini/settings.json", NULL, LOOKUP_FILE, 0 },
		{ HOME "/.cursor", NULL, LOOKUP_DIR, 0 },
	};
	static const struct {
		const char *adapter;
		int codex, gemini, cursor;
	} rows[] = {
		{ NULL, 'r', 'r', 'r' },
		{ "nobody", 'r', 'r', 'r' },
		{ "claude-code", 'r', 'r', 'r' },
		{ "codex", 'w', 'r', 'r' },
		{ "gemini-cli", 'r', 'w', 'r' },
		{ "cursor", 'r', 'r', 'w' },
		{ "acp", 'r', 'r', 'w' },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct box b = { .spec = { .adapter = rows[i].adapter },
			.state_dirs = { HOME "/.codex", HOME "/.gemini",
			    HOME "/.cursor" } };

		made(&b, MAKE(&b, fs));
		assert_int_equal(mount_at(&b, HOME "/.codex"), rows[i].codex);
		assert_int_equal(mount_at(&b, HOME "/.gemini"), rows[i].gemini);
		assert_int_equal(mount_at(&b, HOME "/.cursor"), rows[i].cursor);
		assert_int_equal(mask_at(&b, HOME "/.codex/config.toml"),
		    rows[i].codex == 'w' ? PLAN_MASK_READ_ONLY : -1);
		drop(&b);
	}
}

static void
a_link_of_the_tree_does_not_deny_a_whole_grant(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/q", NULL, LOOKUP_DIR, 0 },
		{ "/p/.vscode", "/p", LOOKUP_DIR, 0 },
		{ "/p/.idea", "/", LOOKUP_DIR, 0 },
		{ "/p/.claude/hooks", "/q", LOOKUP_DIR, 0 },
		{ "/p/.aws", "/p/below", LOOKUP_DIR, 0 },
		{ "/p/.ssh", "/q/below", LOOKUP_DIR, 0 },
		{ "/p/named", "/q", LOOKUP_DIR, 0 } };
	struct box b = { .mounts = { { "/p", false }, { "/q", false } } };
	struct box named = { .mounts = { { "/p", false }, { "/q", false } },
		.deny_write = { "/p/named" } };

	(void)state;
	made(&b, MAKE(&b, fs));
	assert_int_equal(mount_at(&b, "/p"), 'w');
	assert_int_equal(mount_at(&b, "/q"), 'w');
	assert_int_equal(mask_at(&b, "/p"), -1);
	assert_int_equal(mask_at(&b, "/q"), -1);
	/* What they lead to inside is denied as ever. */
	assert_int_equal(mask_at(&b, "/p/below"), PLAN_MASK_READ_ONLY);
	assert_int_equal(mask_at(&b, "/q/below"), PLAN_MASK_READ_ONLY);
	/* And it is told. */
	assert_int_equal(b.made->nnotices, 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(b.made->notices[i].code, "linkNotDenied");
	assert_string_equal(b.made->notices[0].detail, "/p/.vscode");
	drop(&b);
	/* The twin: what the client names holds wherever it leads. */
	made(&named, MAKE(&named, fs));
	assert_int_equal(mount_at(&named, "/p"), 'w');
	assert_int_equal(mount_at(&named, "/q"), 'r');
	drop(&named);
}

static void
a_grant_with_a_denied_name_is_read_only(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/p/.vscode", NULL, LOOKUP_DIR, 0 } };
	struct box b = { .mounts = { { "/p", false },
			     { "/p/.vscode", false } } };

	(void)state;
	made(&b, MAKE(&b, fs));
	assert_int_equal(mount_at(&b, "/p/.vscode"), 'r');
	drop(&b);
}

static void
a_git_directory_stays_in_its_place(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/p/.git", NULL, LOOKUP_DIR, 0 },
		{ "/p/.git/hooks", NULL, LOOKUP_DIR, 0 },
		{ "/q", NULL, LOOKUP_DIR, 0 },
		{ "/q/.git", NULL, LOOKUP_FILE, 0 },
		{ "/r", NULL, LOOKUP_DIR, 0 },
		{ "/r/.git", "/p/.git", LOOKUP_DIR, 0 } };
	struct box b = { .mounts = { { "/p", false }, { "/q", false },
			     { "/r", false } } };
	struct box denied = { .mounts = { { "/p", false } },
		.deny_write = { "/p/.git" } };
	struct box only_read = { .mounts = { { "/p", true } } };
	struct box nested = { .mounts = { { "/p", false },
				  { "/p/.git/hooks", true } } };

	(void)state;
	made(&nested, MAKE(&nested, fs));
	assert_int_equal(mask_at(&nested, "/p/.git"), -1);
	assert_int_equal(mount_at(&nested, "/p/.git/hooks"), 'r');
	drop(&nested);
	made(&b, MAKE(&b, fs));
	assert_int_equal(mask_at(&b, "/p/.git"), PLAN_MASK_PINNED);
	assert_int_equal(mask_at(&b, "/p/.git/hooks"), PLAN_MASK_READ_ONLY);
	assert_int_equal(mask_at(&b, "/q/.git"), -1);
	assert_int_equal(mask_at(&b, "/r/.git"), -1);
	drop(&b);
	/* A pin never weakens. */
	made(&denied, MAKE(&denied, fs));
	assert_int_equal(mask_at(&denied, "/p/.git"), PLAN_MASK_READ_ONLY);
	assert_int_equal(denied.made->plan->nmasks, 1);
	drop(&denied);
	made(&only_read, MAKE(&only_read, fs));
	assert_int_equal(only_read.made->plan->nmasks, 0);
	drop(&only_read);
}

static void
programs_are_masked_where_they_are(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/usr/bin/mount", NULL, LOOKUP_FILE, 0 },
		{ "/bin/mount", "/usr/bin/mount", LOOKUP_FILE, 0 },
		{ "/usr/bin/sudo", "/usr/lib/x/sudo-rs", LOOKUP_FILE, 0 },
		{ "/usr/bin/su", "/usr/bin/busybox", LOOKUP_FILE, 0 },
		{ "/usr/sbin/mkfs.ext4", "/usr/sbin/mke2fs", LOOKUP_FILE, 0 } };
	struct box b = { .mounts = { { "/p", false } } };

	(void)state;
	made(&b, MAKE(&b, fs));
	assert_int_equal(mask_at(&b, "/usr/bin/mount"), PLAN_MASK_NO_FILE);
	assert_int_equal(mask_at(&b, "/usr/lib/x/sudo-rs"), PLAN_MASK_NO_FILE);
	assert_int_equal(mask_at(&b, "/usr/sbin/mke2fs"), PLAN_MASK_NO_FILE);
	assert_int_equal(mask_at(&b, "/usr/bin/busybox"), -1);
	assert_int_equal(b.made->facts->unmasked, 1); /* and it is told */
	assert_int_equal(b.made->plan->nmasks, 3);
	drop(&b);
}

static void
the_digest_is_of_the_set_and_not_of_the_order(void **state)
{
	static const struct there fs[] = { { "/a", NULL, LOOKUP_DIR, 0 },
		{ "/b", NULL, LOOKUP_DIR, 0 }, { "/a/x", NULL, LOOKUP_FILE, 0 },
		{ "/a/y", NULL, LOOKUP_FILE, 0 } };
	struct box one = { .mounts = { { "/a", false }, { "/b", true } },
		.deny_write = { "/a/x", "/a/y" } };
	struct box two = { .mounts = { { "/b", true }, { "/a", false } },
		.deny_write = { "/a/y", "/a/x" },
		.spec = { .detach = true, .run_id = "another" } };
	struct box three = { .mounts = { { "/a", false }, { "/b", true } },
		.deny_write = { "/a/x" } };

	(void)state;
	made(&one, MAKE(&one, fs));
	made(&two, MAKE(&two, fs));
	made(&three, MAKE(&three, fs));
	assert_memory_equal(one.made->digest, two.made->digest, PLAN_DIGEST);
	assert_memory_not_equal(one.made->digest, three.made->digest,
	    PLAN_DIGEST);
	drop(&one);
	drop(&two);
	drop(&three);
}

static void
answers_must_be_of_the_questions(void **state)
{
	static const struct there fs[] = { { "/p", "/p/../etc", LOOKUP_DIR,
	    0 } };
	struct box b = { .mounts = { { "/p", false } } };

	(void)state;
	assert_int_not_equal(MAKE(&b, fs), 0);
	assert_int_equal(b.fault.code, API_LOOKUP_FAILED);
}

static void
user_namespaces_need_the_operator(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 } };
	struct box no = { .mounts = { { "/p", false } },
		.spec = { .userns = true } };
	struct box yes = { .mounts = { { "/p", false } },
		.spec = { .userns = true },
		.conf = "permit user-namespaces on\n" };

	(void)state;
	assert_int_not_equal(MAKE(&no, fs), 0);
	assert_int_equal(no.fault.code, API_UNAVAILABLE);
	made(&yes, MAKE(&yes, fs));
	drop(&yes);
}

#define FOUND(what, path, kind) \
	{ \
		what, path, kind, LOOKUP_NO_ITEM, "" \
	}

/* What the broker would say of a write there. */
static bool
is_ruled(const struct box *b, const char *path)
{
	struct guard *guard = calloc(1, sizeof(*guard));
	bool denied;

	assert_non_null(guard);
	assert_int_equal(guard_decode(b->made->guard_bytes.data,
			     b->made->guard_bytes.len, guard),
	    0);
	denied = (guard_judge(guard, path, strlen(path), "", 0, NULL).mask &
		     DFA_WRITE) != 0;
	free(guard);
	return denied;
}

static void
found_names_are_masked_where_a_rule_denies_them(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/l", "/q", LOOKUP_DIR, 0 }, { "/r", NULL, LOOKUP_DIR, 0 } };
	static const struct lookup_found found[] = {
		FOUND(LOOKUP_NAME, "/p/a/.env", LOOKUP_FILE),
		FOUND(LOOKUP_NAME, "/p/.vscode", LOOKUP_DIR),
		FOUND(LOOKUP_NAME, "/p/plain", LOOKUP_FILE),
		FOUND(LOOKUP_NAME, "/q/x.key", LOOKUP_FILE),
		FOUND(LOOKUP_NAME, "/r/.env", LOOKUP_FILE),
		FOUND(LOOKUP_NAME, "/outside/.env", LOOKUP_FILE),
		FOUND(LOOKUP_SOCK, "/r/s", LOOKUP_SOCKET),
	};
	struct box b = { .mounts = { { "/p", false }, { "/l", false },
			     { "/r", true } } };
	struct box plain = b;

	(void)state;
	made(&plain, MAKE(&plain, fs));
	b.found = found;
	b.nfound = ARRAY_LEN(found);
	made(&b, MAKE(&b, fs));
	assert_int_equal(mask_at(&b, "/p/a/.env"), PLAN_MASK_READ_ONLY);
	assert_int_equal(mask_at(&b, "/p/.vscode"), PLAN_MASK_READ_ONLY);
	assert_int_equal(mask_at(&b, "/p/plain"), -1);
	assert_int_equal(mask_at(&b, "/q/x.key"), PLAN_MASK_READ_ONLY);
	assert_int_equal(mask_at(&b, "/l/x.key"), PLAN_MASK_READ_ONLY);
	assert_int_equal(mask_at(&b, "/r/.env"), -1);
	assert_int_equal(mask_at(&b, "/r/s"), PLAN_MASK_NO_FILE);
	assert_memory_equal(b.made->digest, plain.made->digest, PLAN_DIGEST);
	drop(&b);
	drop(&plain);
}

static void
exempt_names_are_not_masked(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 } };
	static const struct lookup_found found[] = {
		FOUND(LOOKUP_NAME, "/p/t/x.pem", LOOKUP_FILE),
		{ LOOKUP_LINK, "/p/y", LOOKUP_FILE, LOOKUP_NO_ITEM,
		    "/p/t/x.pem" },
		{ LOOKUP_LINK, "/p/z", LOOKUP_FILE, LOOKUP_NO_ITEM,
		    "/p/x.pem" },
	};
	static const char *exempt[] = { "/t/*.pem" };
	struct box b = { .mounts = { { "/p", false } },
		.found = found,
		.nfound = ARRAY_LEN(found) };

	(void)state;
	b.spec.name_exemptions = (struct spec_list){ exempt, 1 };
	made(&b, MAKE(&b, fs));
	assert_int_equal(mask_at(&b, "/p/t/x.pem"), -1);
	assert_int_equal(mask_at(&b, "/p/y"), -1);
	assert_int_equal(mask_at(&b, "/p/z"), PLAN_MASK_READ_ONLY);
	drop(&b);
}

static void
git_directories_and_targets_join_the_rules(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 } };
	static const struct lookup_found found[] = {
		FOUND(LOOKUP_GIT, "/p/sub.git", LOOKUP_DIR),
		FOUND(LOOKUP_GIT, "/elsewhere/.git/worktrees/w", LOOKUP_DIR),
		FOUND(LOOKUP_NAME, "/p/sub.git/config", LOOKUP_FILE),
		FOUND(LOOKUP_TARGET, "/p/.githooks", LOOKUP_DIR),
		FOUND(LOOKUP_TARGET, "/p/none.config", LOOKUP_NONE),
		FOUND(LOOKUP_TARGET, "/p", LOOKUP_DIR),
		FOUND(LOOKUP_TARGET, "/", LOOKUP_DIR),
	};
	struct box b = { .mounts = { { "/p", false } } };
	struct box plain = b;

	(void)state;
	made(&plain, MAKE(&plain, fs));
	assert_false(is_ruled(&plain, "/p/sub.git/hooks/x"));
	b.found = found;
	b.nfound = ARRAY_LEN(found);
	made(&b, MAKE(&b, fs));
	assert_true(is_ruled(&b, "/p/sub.git/hooks/x"));
	assert_true(is_ruled(&b, "/p/sub.git/commondir"));
	assert_true(is_ruled(&b, "/p/.githooks/pre-commit"));
	assert_true(is_ruled(&b, "/p/none.config"));
	assert_false(is_ruled(&b, "/p/sub.git/index"));
	assert_false(is_ruled(&b, "/p/plain"));
	assert_int_equal(mask_at(&b, "/p/sub.git/config"), PLAN_MASK_READ_ONLY);
	assert_int_equal(mask_at(&b, "/p/.githooks"), PLAN_MASK_READ_ONLY);
	assert_int_equal(mask_at(&b, "/p/none.config"), -1);
	assert_int_equal(mount_at(&b, "/p"), 'w');
	assert_int_equal(b.made->nnotices, 1);
	assert_string_equal(b.made->notices[0].code, "linkNotDenied");
	assert_memory_equal(b.made->digest, plain.made->digest, PLAN_DIGEST);
	drop(&b);
	drop(&plain);
}

static void
more_findings_than_masks_are_told(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 },
		{ "/l", "/p", LOOKUP_DIR, 0 } };
	static struct lookup_found found[LOOKUP_FOUND_MAX];
	static char names[LOOKUP_FOUND_MAX][24];
	struct box b = { .mounts = { { "/p", false }, { "/l", false } },
		.found = found,
		.nfound = ARRAY_LEN(found),
		.stopped = LOOKUP_STOP_TIME };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(found); i++) {
		(void)snprintf(names[i], sizeof(names[i]), "/p/%zu/.env", i);
		found[i] = (struct lookup_found)FOUND(LOOKUP_NAME, names[i],
		    LOOKUP_FILE);
	}
	made(&b, MAKE(&b, fs));
	assert_int_equal(b.made->plan->nmasks, PLAN_MASKS_MAX);
	assert_non_null(strstr(b.made->facts->scan_gaps, "out of time"));
	assert_non_null(strstr(b.made->facts->scan_gaps, "16384 files"));
	drop(&b);
}

static void
the_question_has_the_rules_and_the_places(void **state)
{
	static const struct there fs[] = { { "/p", NULL, LOOKUP_DIR, 0 } };
	struct lookup_question *q = calloc(1, sizeof(*q));
	struct box b = { .mounts = { { "/p", false }, { "/q", true } },
		.deny_write = { "/p/**/*.lock" },
		.conf = "deny name { \"/top.txt\" \"secret\" }\n" };
	struct dfa *dfa = malloc(sizeof(*dfa));
	unsigned seen = 0;

	(void)state;
	assert_non_null(q);
	assert_non_null(dfa);
	assert_int_not_equal(MAKE(&b, fs), 0); /* there is no /q */
	assert_int_equal(lookup_question_decode(b.question.data, b.question.len,
			     q),
	    0);
	for (size_t i = 0; i < q->nitems; i++) {
		seen |= strcmp(q->items[i].path, "/p") == 0 &&
			q->items[i].use == LOOKUP_USE_WRITABLE ?
		    1u :
		    0;
		seen |= strcmp(q->items[i].path, "/q") == 0 &&
			q->items[i].use == LOOKUP_USE_READABLE ?
		    2u :
		    0;
		seen |= strcmp(q->items[i].path, "~/.ssh") == 0 &&
			q->items[i].use == LOOKUP_USE_DENIED ?
		    4u :
		    0;
	}
	for (size_t i = 0; i < q->scan.nrules; i++) {
		const char *glob = q->scan.rules[i].glob;

		seen |= strcmp(glob, "**/top.txt") == 0 ? 8u : 0;
		seen |= strcmp(glob, "secret") == 0 ? 16u : 0;
		seen |= strstr(glob, "*.lock") != NULL ? 32u : 0;
		seen |= strcmp(glob, "/hooks/**") == 0 ? 64u : 0;
	}
	assert_int_equal(seen, 127);
	assert_true(q->scan.entries_max > 0);
	assert_int_equal(guard_tables_decode(q->scan.table.data,
			     q->scan.table.len, LOOKUP_ROOTS, q->scan.nrules,
			     dfa),
	    0);
	assert_int_equal(dfa_match(dfa, "x/y/.git/hooks/z", 16, 0).mask,
	    DFA_WRITE | DFA_MOVE);
	assert_int_equal(dfa_match(dfa, "x/y", 3, 0).mask, 0);
	free(dfa);
	drop(&b);
	free(q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_work_tree_is_mounted_writable),
		cmocka_unit_test(
		    read_only_modes_make_mounts_read_only_but_not_state),
		cmocka_unit_test(
		    a_denied_directory_is_masked_in_both_spellings),
		cmocka_unit_test(a_grant_inside_a_linked_grant_shows_at_both),
		cmocka_unit_test(the_stronger_rule_of_one_path_stays),
		cmocka_unit_test(
		    a_read_rule_below_a_write_rule_comes_behind_it),
		cmocka_unit_test(
		    protected_paths_take_the_permission_of_grants_inside),
		cmocka_unit_test(places_are_refused_or_given),
		cmocka_unit_test(contradictions_are_refused),
		cmocka_unit_test(a_rule_that_cannot_be_checked_refuses),
		cmocka_unit_test(
		    what_is_hidden_outside_of_the_view_is_no_hindrance),
		cmocka_unit_test(only_the_state_of_the_own_adapter_is_lifted),
		cmocka_unit_test(
		    a_link_of_the_tree_does_not_deny_a_whole_grant),
		cmocka_unit_test(a_grant_with_a_denied_name_is_read_only),
		cmocka_unit_test(a_git_directory_stays_in_its_place),
		cmocka_unit_test(programs_are_masked_where_they_are),
		cmocka_unit_test(the_digest_is_of_the_set_and_not_of_the_order),
		cmocka_unit_test(answers_must_be_of_the_questions),
		cmocka_unit_test(user_namespaces_need_the_operator),
		cmocka_unit_test(
		    found_names_are_masked_where_a_rule_denies_them),
		cmocka_unit_test(exempt_names_are_not_masked),
		cmocka_unit_test(git_directories_and_targets_join_the_rules),
		cmocka_unit_test(more_findings_than_masks_are_told),
		cmocka_unit_test(the_question_has_the_rules_and_the_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
