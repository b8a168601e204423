/*
 * The rules of a run: App.6 (its third paragraph) and App.7 entry by entry as
 * the specification writes them, the git set, the configuration's and the
 * spec's patterns, protected paths, exemptions. Judged by the table as the
 * broker would read it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/size.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/name_rules.h"

#define ROOT "/home/u/proj"
#define DENIED (DFA_WRITE | DFA_MOVE)

static struct guard guard;
static struct wire_out bytes;
static struct spec_fault fault;
static struct guard_root roots[DFA_ROOTS_MAX] = { { ROOT, 0, false } };

static struct name_rules_in
input(void)
{
	return (struct name_rules_in){ .roots = roots,
		.nroots = 1,
		.exemptions_permitted = true };
}

/* To the decoded table; what name_rules_make() or _encode() says. */
static int
make(const struct name_rules_in *in)
{
	struct name_rules *rules;
	int r;

	memset(&fault, 0, sizeof(fault));
	r = name_rules_make(in, &rules, &fault);
	if (r < 0)
		return r;
	wire_out_done(&bytes);
	wire_out_init(&bytes);
	r = name_rules_encode(rules, &bytes, &fault);
	name_rules_free(rules);
	if (r == 0)
		assert_int_equal(guard_decode(bytes.data, bytes.len, &guard),
		    0);
	return r;
}

static struct dfa_verdict
judge(const char *path)
{
	return guard_judge(&guard, path, strlen(path), "", 0, NULL);
}

static unsigned
mask(const char *path)
{
	return judge(path).mask;
}

static unsigned
mask_in(const char *root, const char *rel)
{
	char path[8192];

	(void)snprintf(path, sizeof(path), "%s/%s", root, rel);
	return mask(path);
}

static void
expect_rule(const char *path, const char *text, const char *origin)
{
	struct dfa_verdict v = judge(path);
	const struct guard_rule *rule = guard_rule(&guard,
	    guard_exact_rule(&guard, v, DFA_WRITE, path, strlen(path), "", 0));

	if (rule == NULL || strcmp(rule->text, text) != 0)
		print_message("%s: mask %u, rule %s, not %s\n", path,
		    (unsigned)v.mask, rule == NULL ? "none" : rule->text, text);
	assert_non_null(rule);
	assert_string_equal(rule->text, text);
	assert_string_equal(rule->origin, origin);
}

/* At the root and deep, in both letter cases, with what is beside it. */
static void
expect_denied(const char *rel)
{
	static const char *const before[] = { "", "a/", "a/b/c/d/e/" };
	char path[512], *p;

	for (size_t i = 0; i < ARRAY_LEN(before); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s%s", ROOT, before[i],
		    rel);
		if ((mask(path) & DFA_WRITE) == 0)
			print_message("allowed: %s\n", path);
		assert_true((mask(path) & DFA_WRITE) != 0);
		for (p = path + sizeof(ROOT); *p != '\0'; p++)
			if (*p >= 'a' && *p <= 'z')
				*p = (char)(*p - 32);
		assert_true((mask(path) & DFA_WRITE) != 0);
		(void)snprintf(path, sizeof(path), "%s/%sx%s", ROOT, before[i],
		    rel);
		assert_int_equal(mask(path), 0);
		/* outside of every root nothing is judged */
		(void)snprintf(path, sizeof(path), "/home/u/other/%s", rel);
		assert_int_equal(mask(path), 0);
	}
}

static void
app_7_and_its_exemptions(void **state)
{
	static const char *const denied[] = { ".env", ".env.local", ".env.",
		".env.example.local", "a.key", ".key", "x.pem", "x.p12",
		"x.pfx", ".env.a\nb", "\xff.key" };
	static const char *const allowed[] = { "env", ".envrc2", "x.keys",
		".env.example", ".env.sample", ".env.template", ".env.dist",
		".ENV.Example", ".env ", "x.key ", ".environment", "key",
		"pem" };
	struct name_rules_in in = input();
	char name[256];

	(void)state;
	assert_int_equal(make(&in), 0);
	for (size_t i = 0; i < ARRAY_LEN(denied); i++)
		assert_int_equal(mask_in(ROOT "/a/b", denied[i]), DENIED);
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		assert_int_equal(mask_in(ROOT, allowed[i]), 0);
	assert_int_equal(mask(ROOT "/v/certifi/cacert.pem"), 0);
	assert_int_equal(mask(ROOT "/v/certifi/key.pem"), DENIED);
	assert_int_equal(mask(ROOT "/v/cacert.pem"), DENIED);
	expect_rule(ROOT "/x.PEM", "**/*.pem", "App.7");
	expect_rule(ROOT "/.env.d", "**/.env.*", "App.7");
	/* what lies below such a name is another name */
	assert_int_equal(mask(ROOT "/x.key/a"), 0);
	/* names of 255 bytes are judged, longer ones are none */
	memset(name, 'n', sizeof(name));
	memcpy(name + 251, ".key", 5);
	assert_int_equal(mask_in(ROOT, name), DENIED);
	memcpy(name + 251, ".kez", 5);
	assert_int_equal(mask_in(ROOT, name), 0);
}

static void
app_6_at_any_depth(void **state)
{
	static const char *const files[] = { ".gitconfig", ".gitmodules",
		".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile",
		".ripgreprc", ".mcp.json", ".npmrc", ".netrc",
		".git-credentials", ".envrc", ".claude/settings.json",
		".claude/settings.local.json" };
	static const char *const dirs[] = { ".vscode", ".idea",
		".claude/commands", ".claude/agents", ".claude/hooks", ".ssh",
		".aws", ".kube", ".docker", ".husky/_" };
	struct name_rules_in in = input();
	char path[256];

	(void)state;
	assert_int_equal(make(&in), 0);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		expect_denied(files[i]);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		expect_denied(dirs[i]);
		(void)snprintf(path, sizeof(path), "%s/f", dirs[i]);
		expect_denied(path);
		(void)snprintf(path, sizeof(path), "%s/d/e/f", dirs[i]);
		expect_denied(path);
	}
	assert_int_equal(mask(ROOT "/.claude/notes"), 0);
	assert_int_equal(mask(ROOT "/.claude"), DFA_MOVE);
	assert_int_equal(mask(ROOT "/.husky/pre-commit"), 0);
	expect_rule(ROOT "/a/.vscode/tasks.json", "**/.vscode/**", "App.6");
}

static void
the_git_set(void **state)
{
	static const char *const denied[] = { ".git/hooks", ".git/hooks/x",
		".git/hooks/d/x", ".git/config", ".git/config.worktree",
		".git/commondir", ".git/info/attributes",
		".git/objects/info/alternates", ".git/modules/config",
		".git/modules/a/config", ".git/modules/a/b/config",
		".git/modules/a/b/hooks/post-checkout", ".git/modules/a/hooks",
		".git/modules/a/commondir", ".git/worktrees/w/commondir",
		".git/worktrees/w/config.worktree" };
	static const char *const allowed[] = { ".git/index", ".git/config.lock",
		".git/HEAD", ".git/refs/heads/hooks", ".git/info/exclude",
		".git/objects/ab/cd", ".github/workflows/ci.yml",
		".git/logs/config" };
	static const char *const moved[] = { ".git", ".git/info",
		".git/objects", ".git/objects/info", ".git/modules",
		".git/modules/a/b" };
	struct name_rules_in in = input();

	(void)state;
	assert_int_equal(make(&in), 0);
	for (size_t i = 0; i < ARRAY_LEN(denied); i++)
		expect_denied(denied[i]);
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		assert_int_equal(mask_in(ROOT, allowed[i]), 0);
	for (size_t i = 0; i < ARRAY_LEN(moved); i++) {
		assert_int_equal(mask_in(ROOT, moved[i]), DFA_MOVE);
		assert_int_equal(mask_in(ROOT "/a/b", moved[i]), DFA_MOVE);
	}
	assert_int_equal(guard.rules[judge(ROOT "/.git/config").rule].class,
	    DFA_GIT);
}

static void
git_directories_by_other_names(void **state)
{
	static const char *const dirs[] = { ROOT "/bare.git",
		"/home/u/main/admin/w*", "/home/u" };
	struct name_rules_in in = input();

	(void)state;
	roots[1] = (struct guard_root){ "/home/u/main", 0, false };
	in.nroots = 2;
	in.git_dirs = dirs;
	in.ngit_dirs = ARRAY_LEN(dirs);
	assert_int_equal(make(&in), 0);
	assert_int_equal(mask(ROOT "/bare.git/hooks/update"), DENIED);
	assert_int_equal(mask(ROOT "/bare.git/config"), DENIED);
	assert_int_equal(mask(ROOT "/bare.git/HEAD"), 0);
	assert_int_equal(mask(ROOT "/bare.git"), DFA_MOVE);
	assert_int_equal(mask(ROOT "/other.git/config"), 0);
	assert_int_equal(mask("/home/u/main/admin/w*/commondir"), DENIED);
	assert_int_equal(mask("/home/u/main/admin/wx/commondir"), 0);
	/* the third lies above: its hooks are no part of the roots */
	assert_int_equal(mask(ROOT "/a"), 0);
}

static void
roots_inside_of_protected_places(void **state)
{
	struct name_rules_in in = input();

	(void)state;
	roots[1] = (struct guard_root){ "/srv/p/.git", 0, false };
	roots[2] = (struct guard_root){ "/srv/q/.VSCode/x", 0, false };
	roots[3] = (struct guard_root){ "/srv/s/.git/modules/a", 0, false };
	roots[4] = (struct guard_root){ "/srv/t/.env", 0, false };
	in.nroots = 5;
	assert_int_equal(make(&in), 0);
	assert_int_equal(mask("/srv/p/.git/hooks/x"), DENIED);
	assert_int_equal(mask("/srv/p/.git/config"), DENIED);
	assert_int_equal(mask("/srv/p/.git/index"), 0);
	assert_int_equal(mask(ROOT "/hooks/x"), 0);
	assert_int_equal(mask("/srv/q/.VSCode/x/any"), DENIED);
	assert_int_equal(mask("/srv/s/.git/modules/a/config"), DENIED);
	assert_int_equal(mask("/srv/s/.git/modules/a/b/hooks/x"), DENIED);
	assert_int_equal(mask("/srv/s/.git/modules/a/HEAD"), 0);
	assert_int_equal(mask("/srv/t/.env/bin"), 0);
}

static void
empty_roots_have_no_rules(void **state)
{
	struct name_rules_in in = input();
	int root;

	(void)state;
	roots[1] = (struct guard_root){ "/home/u", 0, true };
	roots[2] = (struct guard_root){ "/tmp", 0, true };
	in.nroots = 3;
	assert_int_equal(make(&in), 0);
	assert_int_equal(mask("/home/u/.env"), 0);
	assert_int_equal(mask("/home/u/project/.env"), 0);
	assert_int_equal(mask("/tmp/.git/config"), 0);
	assert_int_equal(mask(ROOT "/.env"), DENIED);
	assert_int_equal(
	    guard_judge(&guard, "/home/u", 7, ".bashrc", 7, &root).mask, 0);
	assert_int_equal(root, 1);
	assert_int_equal(guard_judge(&guard, "/home", 5, "u", 1, &root).mask,
	    0);
	assert_int_equal(root, -1);
	assert_int_equal(guard_judge(&guard, ROOT "/.git", sizeof(ROOT) + 4,
			     "config", 6, &root)
			     .mask,
	    DENIED);
	assert_int_equal(root, 0);
}

static void
protected_paths_and_their_ancestors(void **state)
{
	static const struct name_rules_path paths[] = {
		{ ROOT "/vendor/orig[1]*", "spec protectedPaths" },
		{ ROOT "/x", "App.6" },
		{ "/somewhere/else", "spec protectedPaths" },
		{ "/srv", "spec protectedPaths" },
	};
	struct name_rules_in in = input();

	(void)state;
	roots[1] = (struct guard_root){ "/srv/q", 0, false };
	in.nroots = 2;
	in.paths = paths;
	in.npaths = ARRAY_LEN(paths);
	assert_int_equal(make(&in), 0);
	assert_int_equal(mask(ROOT "/vendor/orig[1]*"), DENIED);
	assert_int_equal(mask(ROOT "/vendor/orig[1]*/a/b"), DENIED);
	assert_int_equal(mask(ROOT "/vendor/orig1x"), 0);
	assert_int_equal(mask(ROOT "/vendor/Orig[1]*"), 0);
	assert_int_equal(mask(ROOT "/vendor"), DFA_MOVE);
	assert_int_equal(mask(ROOT "/a/vendor"), 0);
	assert_int_equal(mask(ROOT "/x"), DENIED);
	assert_int_equal(mask(ROOT "/a/x"), 0);
	assert_int_equal(mask("/srv/q/anything"), DENIED);
	expect_rule(ROOT "/vendor/orig[1]*/a", ROOT "/vendor/orig[1]*",
	    "spec protectedPaths");
	/* exemptions do not lift them */
	expect_rule("/srv/q/.env.example", "/srv", "spec protectedPaths");
}

static void
names_of_the_configuration(void **state)
{
	char text[4][32] = { "*.tfstate", "(?i)Secret*", "/top",
		"**/deploy/prod.yml" };
	struct conf_name list[] = {
		{ text[0], { "c", 7 } },
		{ text[1], { "c", 8 } },
		{ text[2], { "c", 9 } },
		{ text[3], { "c", 10 } },
	};
	struct conf_names names = { list, ARRAY_LEN(list) };
	struct name_rules_in in = input();

	(void)state;
	in.deny_names = &names;
	assert_int_equal(make(&in), 0);
	expect_rule(ROOT "/a/b.tfstate", "*.tfstate", "configuration line 7");
	assert_int_equal(mask(ROOT "/a/b.TFSTATE"), 0);
	expect_rule(ROOT "/sEcrets.txt", "(?i)Secret*", "configuration line 8");
	assert_int_equal(mask(ROOT "/top"), DENIED);
	assert_int_equal(mask(ROOT "/a/top"), 0);
	expect_rule(ROOT "/a/deploy/prod.yml", "**/deploy/prod.yml",
	    "configuration line 10");
	assert_int_equal(mask(ROOT "/a/deploy"), DFA_MOVE);
	(void)strcpy(text[0], "a/b");
	assert_int_equal(make(&in), -EINVAL);
	assert_non_null(strstr(fault.text, "begins with / or **/"));
	(void)strcpy(text[0], "[!a]b");
	assert_int_equal(make(&in), -EINVAL);
	(void)strcpy(text[0], "(?i)");
	assert_int_equal(make(&in), -EINVAL);
}

static void
patterns_of_the_spec(void **state)
{
	const char *list[] = { ROOT "/gen/*.c", "/home/*/proj/out?",
		"/home/**/lock*", "/srv/q*", "/home/u/literal",
		"/elsewhere/*" };
	struct name_rules_in in = input();

	(void)state;
	roots[1] = (struct guard_root){ "/srv/q/deep", 0, false };
	in.nroots = 2;
	in.deny_write.items = list;
	in.deny_write.n = ARRAY_LEN(list);
	assert_int_equal(make(&in), 0);
	assert_int_equal(mask(ROOT "/gen/a.c"), DENIED);
	assert_int_equal(mask(ROOT "/gen/a.c/below"), DENIED);
	assert_int_equal(mask(ROOT "/gen/a.C"), 0);
	assert_int_equal(mask(ROOT "/gen"), DFA_MOVE);
	assert_int_equal(mask(ROOT "/out1"), DENIED);
	assert_int_equal(mask(ROOT "/a/out1"), 0);
	assert_int_equal(mask(ROOT "/a/b/lockfile"), DENIED);
	assert_int_equal(mask("/srv/q/deep/x"), DENIED);
	assert_int_equal(mask("/srv/q/deep/lockfile"), DENIED);
	assert_int_equal(mask(ROOT "/free"), 0);
	expect_rule(ROOT "/gen/a.c", ROOT "/gen/*.c", "spec denyWrite");
	list[0] = "gen/*.c";
	assert_int_equal(make(&in), -EINVAL);
	list[0] = ROOT "/[b-a]*";
	assert_int_equal(make(&in), -EINVAL);
}

static void
exemptions_of_the_spec(void **state)
{
	const char *list[] = { "/tests/fixtures/**/*.pem", "(?i)/Keys/*" };
	struct name_rules_in in = input();

	(void)state;
	in.exemptions.items = list;
	in.exemptions.n = ARRAY_LEN(list);
	assert_int_equal(make(&in), 0);
	assert_int_equal(mask(ROOT "/tests/fixtures/a/b/c.pem"), 0);
	assert_int_equal(mask(ROOT "/tests/fixtures/c.pem"), 0);
	assert_int_equal(mask(ROOT "/tests/fixtures/c.key"), DENIED);
	assert_int_equal(mask(ROOT "/a/tests/fixtures/c.pem"), DENIED);
	assert_int_equal(mask(ROOT "/keys/a.KEY"), 0);
	/* never git, never App.6 */
	assert_int_equal(mask(ROOT "/keys/.bashrc"), DENIED);
	assert_int_equal(mask(ROOT "/tests/fixtures/.git/hooks/a.pem"), DENIED);
	in.exemptions_permitted = false;
	assert_int_equal(make(&in), -EINVAL);
	assert_int_equal(fault.code, API_DENIED);
	in.exemptions_permitted = true;
	list[0] = "*.pem";
	assert_int_equal(make(&in), -EINVAL);
	list[0] = "/**/x.pem";
	assert_int_equal(make(&in), -EINVAL);
	list[0] = "/**";
	assert_int_equal(make(&in), -EINVAL);
}

static struct conf_names
names_of(struct conf_name *list, size_t n, char **texts)
{
	for (size_t i = 0; i < n; i++)
		list[i] = (struct conf_name){ texts[i],
			{ "stockade.conf", (unsigned)i + 3 } };
	return (struct conf_names){ list, n };
}

/* A table and other rules of the configuration: as if made of both. */
static void
expect_renewed(const struct name_rules_in *in, const struct conf_names *now,
    bool permitted)
{
	struct name_rules_in fresh = *in;
	struct name_rules *rules = NULL;
	struct wire_out kept, want;

	assert_int_equal(make(in), 0);
	kept = bytes; /* guard points into it */
	wire_out_init(&bytes);
	assert_int_equal(name_rules_renew(&guard, now, permitted, &rules,
			     &fault),
	    0);
	wire_out_init(&want);
	assert_int_equal(name_rules_encode(rules, &want, &fault), 0);
	name_rules_free(rules);
	wire_out_done(&kept);
	fresh.deny_names = now;
	fresh.exemptions_permitted = permitted;
	if (!permitted)
		fresh.exemptions.n = 0;
	assert_int_equal(make(&fresh), 0);
	if (permitted) {
		assert_int_equal(want.len, bytes.len);
		assert_memory_equal(want.data, bytes.data, bytes.len);
	} else {
		/* The spec's exemptions are remembered, not in force. */
		static struct guard renewed;

		assert_int_equal(guard_decode(want.data, want.len, &renewed),
		    0);
		assert_memory_equal(&renewed.dfa, &guard.dfa,
		    offsetof(struct dfa, next));
		assert_memory_equal(renewed.dfa.next, guard.dfa.next,
		    guard.dfa.nnext * sizeof(guard.dfa.next[0]));
		assert_memory_equal(renewed.dfa.place, guard.dfa.place,
		    guard.dfa.nplaces * sizeof(guard.dfa.place[0]));
		assert_int_equal(renewed.nexemptions,
		    guard.nexemptions + in->exemptions.n);
		assert_int_equal(
		    renewed.exemptions[renewed.nexemptions - 1].roots, 0);
		assert_int_equal(name_rules_renew(&renewed, now, true, &rules,
				     &fault),
		    0);
		assert_int_equal(
		    rules->exemptions[renewed.nexemptions - 1].roots, 1);
		name_rules_free(rules);
	}
	wire_out_done(&want);
}

static void
rules_of_a_table_are_renewed(void **state)
{
	static const struct name_rules_path paths[] = {
		{ ROOT "/kept", "spec protectedPaths" },
		{ ROOT "/conf", "configuration" },
	};
	const char *deny[] = { "/**", ROOT "/gen/*.c" };
	const char *exempt[] = { "/tests/**/*.pem" };
	const char *git[] = { ROOT "/bare" };
	struct conf_name list[2][3];
	char *old[] = { (char *)(uintptr_t) "/**", (char *)(uintptr_t) "**/old",
		(char *)(uintptr_t) "(?i)both" };
	char *new[] = { (char *)(uintptr_t) "new*",
		(char *)(uintptr_t) "(?i)both" };
	struct conf_names before = names_of(list[0], 3, old);
	struct conf_names after = names_of(list[1], 2, new), none = { 0 };
	struct name_rules_in in = input();

	(void)state;
	in.deny_names = &before;
	in.paths = paths;
	in.npaths = ARRAY_LEN(paths);
	in.git_dirs = git;
	in.ngit_dirs = ARRAY_LEN(git);
	in.deny_write.items = deny;
	in.deny_write.n = ARRAY_LEN(deny);
	in.exemptions.items = exempt;
	in.exemptions.n = ARRAY_LEN(exempt);
	in.new_repositories = true;
	expect_renewed(&in, &before, true);
	expect_renewed(&in, &after, true);
	expect_renewed(&in, &none, true);
	expect_renewed(&in, &after, false);
	in.deny_names = NULL;
	expect_renewed(&in, &after, true);
}

static void
a_remedy_means_one_path(void **state)
{
	struct name_rules_in in = input();
	char buf[128];

	(void)state;
	assert_int_equal(make(&in), 0);
	name_rules_remedy(guard_rule(&guard, judge(ROOT "/a/x*.key").rule),
	    "a/x*.key", buf, sizeof(buf));
	assert_string_equal(buf, "--name-exempt '/a/x[*].key'");
	assert_null(name_rules_exemption_why("/a/x[*].key"));
	name_rules_remedy(guard_rule(&guard, judge(ROOT "/a/x.key").rule),
	    "a'; rm/x.key", buf, sizeof(buf));
	assert_string_equal(buf, "--name-exempt GLOB");
	name_rules_remedy(guard_rule(&guard, judge(ROOT "/a/x.key").rule),
	    "a/x.key", buf, 12);
	assert_string_equal(buf, "--name-exem");
	name_rules_remedy(guard_rule(&guard, judge(ROOT "/.bashrc").rule),
	    ".bashrc", buf, sizeof(buf));
	assert_string_equal(buf, "");
}

static void
too_many_are_refused(void **state)
{
	static struct name_rules_path paths[DFA_RULES_MAX + 1];
	static char text[DFA_RULES_MAX + 1][64];
	struct name_rules_in in = input();

	(void)state;
	for (size_t i = 0; i < DFA_RULES_MAX; i++) {
		(void)snprintf(text[i], sizeof(text[i]), ROOT "/d/%zu", i);
		paths[i] =
		    (struct name_rules_path){ text[i], "spec protectedPaths" };
	}
	in.paths = paths;
	in.npaths = DFA_RULES_MAX;
	assert_int_equal(make(&in), -EINVAL);
	assert_int_equal(fault.code, API_LIMIT);
	in.npaths = 1024;
	assert_int_equal(make(&in), 0);
	assert_int_equal(mask(ROOT "/d/1023/x"), DENIED);
	assert_int_equal(mask(ROOT "/d/1024/x"), 0);
	expect_rule(ROOT "/d/1023/x", ROOT "/d/1023", "spec protectedPaths");
	in.nroots = DFA_ROOTS_MAX + 1;
	assert_int_equal(make(&in), -EINVAL);
	in.nroots = 0;
	assert_int_equal(make(&in), -EINVAL);
}

/* As many patterns as a spec may have, each of which would multiply a table by
 * those before it. */
static void
patterns_that_fit_no_table_hold(void **state)
{
	static char text[256][64];
	static const char *items[256];
	struct name_rules_in in = input();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(items); i++) {
		(void)snprintf(text[i], sizeof(text[i]),
		    ROOT "/**/d%zu/*x%zu*/**/f", i, i);
		items[i] = text[i];
	}
	in.deny_write = (struct spec_list){ items, ARRAY_LEN(items) };
	assert_int_equal(make(&in), 0);
	assert_int_equal(guard.naside, ARRAY_LEN(items));
	assert_int_equal(mask(ROOT "/a/d77/yx77z/b/f"), DENIED);
	assert_int_equal(mask(ROOT "/a/d77/yx77z/b/f/below"), DENIED);
	assert_int_equal(mask(ROOT "/a/d77/yx77z"), DFA_MOVE);
	assert_int_equal(mask(ROOT "/a/d77/yx78z/b/f"), 0);
	assert_int_equal(mask(ROOT "/a/e77/yx77z/b/f"), 0);
	expect_rule(ROOT "/d200/x200/f", text[200], "spec denyWrite");
	expect_rule(ROOT "/d200/x200/f/x.key", "**/*.key", "App.7");
	expect_rule(ROOT "/d200/x.key", "**/*.key", "App.7");
}

static void
the_ordinary_table_is_small(void **state)
{
	struct name_rules_in in = input();

	(void)state;
	assert_int_equal(make(&in), 0);
	print_message("%zu rules, %u entries, %u classes of bytes, %u of "
		      "names, %u verdicts, %zu bytes\n",
	    guard.nrules, (unsigned)guard.dfa.nnext, (unsigned)guard.dfa.ncls,
	    (unsigned)guard.dfa.nnames, (unsigned)guard.dfa.nverdicts,
	    bytes.len);
	assert_true(guard.dfa.nnext < DFA_NEXT_MAX / 2);
}

static int
group_done(void **state)
{
	(void)state;
	wire_out_done(&bytes);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(app_7_and_its_exemptions),
		cmocka_unit_test(app_6_at_any_depth),
		cmocka_unit_test(the_git_set),
		cmocka_unit_test(git_directories_by_other_names),
		cmocka_unit_test(roots_inside_of_protected_places),
		cmocka_unit_test(empty_roots_have_no_rules),
		cmocka_unit_test(protected_paths_and_their_ancestors),
		cmocka_unit_test(names_of_the_configuration),
		cmocka_unit_test(patterns_of_the_spec),
		cmocka_unit_test(exemptions_of_the_spec),
		cmocka_unit_test(rules_of_a_table_are_renewed),
		cmocka_unit_test(a_remedy_means_one_path),
		cmocka_unit_test(too_many_are_refused),
		cmocka_unit_test(patterns_that_fit_no_table_hold),
		cmocka_unit_test(the_ordinary_table_is_small),
	};

	wire_out_init(&bytes);
	return cmocka_run_group_tests_name("name_rules", tests, NULL,
	    group_done);
}
