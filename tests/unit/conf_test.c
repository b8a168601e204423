/*
 * The configuration: every sentence, every refusal with its place, what is
 * printed reads back to the same, and who must own the files (SPEC Z).
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/size.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/idna.h"
#include "supervisor/control/lists.h"

#define SOURCE_MAX 65536

struct row {
	const char *in;
	const char *out; /* the error's text, or what -nv prints */
};

/* Includes of the tests: a name and its text. */
struct part {
	const char *name;
	const char *text;
};

static const struct part parts[] = {
	{ "more.conf", "allow host \"more.example.com\"" },
	{ "empty.conf", "" },
	{ "bad.conf", "\nallow host \"more.example.com\"\nfrob\n" },
	{ "nested.conf", "include \"more.conf\"\n" },
	{ "hosts.conf", "deny host \"h.example.com\"\n" },
	{ "deny.conf", "deny host \"x.example.com\"\n" },
};

static int
give_part(void *arg, const char *name, size_t max, char **ret_text,
    size_t *ret_len, const char **ret_why)
{
	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (strcmp(parts[i].name, name) != 0)
			continue;
		if (strlen(parts[i].text) > max)
			return -EFBIG;
		*ret_text = strdup(parts[i].text);
		*ret_len = strlen(parts[i].text);
		return *ret_text != NULL ? 0 : -ENOMEM;
	}
	if (strcmp(name, "link.conf") == 0) {
		*ret_why = "a symbolic link is not followed";
		return -ELOOP;
	}
	return -ENOENT;
}

static int
parse_len(const char *text, size_t len, struct conf **ret,
    struct conf_errors *errors)
{
	memset(errors, 0, sizeof(*errors));
	*ret = NULL;
	return conf_parse("t.conf", text, len, give_part, NULL, ret, errors);
}

static int
parse_text(const char *text, struct conf **ret, struct conf_errors *errors)
{
	return parse_len(text, strlen(text), ret, errors);
}

static struct conf *
accept_text(const char *text)
{
	struct conf_errors errors;
	struct conf *conf;
	int r = parse_text(text, &conf, &errors);

	if (r < 0)
		fail_msg("%s\n%s", text,
		    errors.n > 0 ? errors.list[0].text : "no error");
	assert_int_equal(errors.n, 0);
	conf_errors_done(&errors);
	return conf;
}

/* One error with this text, at this line. */
static void
refuse_at(const char *text, unsigned line, const char *expected)
{
	struct conf_errors errors;
	struct conf *conf;
	int r = parse_text(text, &conf, &errors);

	if (r != -EINVAL)
		fail_msg("accepted: %s", text);
	assert_null(conf);
	assert_true(errors.n >= 1);
	if (errors.n != 1)
		fail_msg("%zu errors for: %s (%s, %s)", errors.n, text,
		    errors.list[0].text, errors.list[1].text);
	if (strstr(errors.list[0].text, expected) == NULL)
		fail_msg("\"%s\" lacks \"%s\" for: %s", errors.list[0].text,
		    expected, text);
	if (errors.list[0].line != line)
		fail_msg("line %u, not %u: %s", errors.list[0].line, line,
		    text);
	conf_errors_done(&errors);
}

static char *
printed(const struct conf *conf)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(conf_print(conf, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void
an_empty_file_means_all_defaults(void **state)
{
	struct conf *conf = accept_text("");

	(void)state;
	assert_false(conf->sandbox_set);
	assert_int_equal(conf->sandbox, SETTING_ON);
	assert_int_equal(conf->backend_default, BACKEND_NATIVE);
	assert_null(conf->run_user);
	assert_string_equal(conf->runtime_dir, "/run/stockade");
	assert_string_equal(conf->state_dir, "/var/lib/stockade");
	assert_string_equal(conf->socket_path, "/run/stockade/control.sock");
	assert_string_equal(conf->client_group, "stockade");
	assert_string_equal(conf->admin_group, "stockade-admin");
	assert_int_equal(conf->log_level, CONF_LOG_INFO);
	assert_true(conf->egress_additions);
	assert_false(conf->user_namespaces);
	assert_int_equal(conf->limits[LIMIT_EXECS], 32);
	assert_int_equal(conf->limits[LIMIT_SESSIONS], 1024);
	assert_int_equal(conf->limits[LIMIT_MEMORY], LIMIT_AUTO);
	assert_int_equal(conf->limits[LIMIT_CPUS], LIMIT_NONE);
	assert_int_equal(conf->limits[LIMIT_TMP], 1 << 30);
	assert_int_equal(conf->limits[LIMIT_IDLE], 300000);
	conf_free(conf);
}

static void
every_sentence_is_stored(void **state)
{
	struct conf *conf = accept_text(
	    "# a comment\n"
	    "sandbox Require\n"
	    "backend default docker\n"
	    "terminal default none\n"
	    "run-user \"builder\"	# another\n"
	    "runtime-dir \"/run/other\"\n"
	    "state-dir \"/var/lib/other\"\n"
	    "client-group runs\n"
	    "admin-group \"ops\"\n"
	    "log level debug\n"
	    "metrics off\n"
	    "\n"
	    "egress additions off\n"
	    "allow host { \"A.Example.COM.\", *.example.org\n"
	    "\tbuild.example.net }\n"
	    "allow host git.example.com port 2222\n"
	    "deny host { tracker.example.com }\n"
	    "baseline except { \"*.cursor.sh\" pypi.org }\n"
	    "permit private { 10.20.0.0/16 fd12::/64 } for { git.example.com }\n"
	    "deny read { \"~/notes/\" /srv/secret }\n"
	    "deny write ~/bin\n"
	    "system-path { /opt/sdk }\n"
	    "permit home-mount /home/builder\n"
	    "permit user-namespaces on\n"
	    "limit memory 2G\n"
	    "limit cpus 1.5\n"
	    "limit wall 2h\n"
	    "limit idle none\n"
	    "limit pids 512");

	(void)state;
	assert_true(conf->sandbox_set);
	assert_int_equal(conf->sandbox, SETTING_REQUIRE);
	assert_int_equal(conf->backend_default, BACKEND_NATIVE);
	assert_string_equal(conf->run_user, "builder");
	assert_string_equal(conf->socket_path, "/run/other/control.sock");
	assert_string_equal(conf->client_group, "runs");
	assert_int_equal(conf->log_level, CONF_LOG_DEBUG);
	assert_false(conf->egress_additions);
	assert_int_equal(conf->allow_hosts.n, 4);
	assert_string_equal(conf->allow_hosts.list[0].pattern, "a.example.com");
	assert_int_equal(conf->allow_hosts.list[2].origin.line, 15);
	assert_string_equal(conf->allow_hosts.list[2].origin.file, "t.conf");
	assert_int_equal(conf->allow_hosts.list[3].port, 2222);
	assert_int_equal(conf->deny_hosts.n, 1);
	assert_int_equal(conf->baseline_except.n, 2);
	assert_int_equal(conf->privates.n, 1);
	assert_int_equal(conf->privates.list[0].ncidrs, 2);
	assert_string_equal(conf->deny_read.list[0].path, "~/notes");
	assert_string_equal(conf->deny_write.list[0].path, "~/bin");
	assert_string_equal(conf->system_paths.list[0].path, "/opt/sdk");
	assert_string_equal(conf->home_mounts.list[0].path, "/home/builder");
	assert_true(conf->user_namespaces);
	assert_int_equal(conf->limits[LIMIT_MEMORY], UINT64_C(2) << 30);
	assert_int_equal(conf->limits[LIMIT_CPUS], 1500);
	assert_int_equal(conf->limits[LIMIT_WALL], 7200000);
	assert_int_equal(conf->limits[LIMIT_IDLE], LIMIT_NONE);
	assert_int_equal(conf->sentences, 26);
	conf_free(conf);
}

static void
sentences_of_later_parts_are_refused(void **state)
{
	static const char *const texts[] = {
		"terminal default native",
		"terminal default microvm",
		"metrics on",
		"sni optional for { \"a.example.com\" }",
		"upstream proxy \"http://proxy.example.com:3128\"",
		"permit loopback-port 1024:65535",
		"permit unix-socket { \"/run/x.sock\" }",
		"microvm accel kvm",
		"microvm memory 2G",
		"managed deny gitPush refs { \"main\" }",
		"autonomy max actFreely",
		"template default strict",
		"github app 12 key \"app.pem\"",
		"token file \"t\" for \"git.example.com\"",
		"audit keep 90 1G",
		"limit silence-chat 15m",
		"limit push-max 2G",
		"limit approval 10m",
		"deny write { \"*.key\" }",
		"deny read /srv/?",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		refuse_at(texts[i], 1, "not in this version");
	/* words of later parts are ordinary text in lists and quotes */
	conf_free(accept_text("allow host { guard.name.example }\n"
			      "run-user \"guard\"\nbackend default microvm\n"));
}

static void
bad_sentences_name_the_fault(void **state)
{
	static const struct row rows[] = {
		{ "frobnicate on", "unknown word \"frobnicate\"" },
		{ "allow", "unexpected end of line, expected host" },
		{ "allow network to x",
		    "unexpected \"network\", expected "
		    "host" },
		{ "deny everything", "unexpected \"everything\"" },
		{ "permit", "expected" },
		{ "sandbox maybe", "on, off or require" },
		{ "sandbox on off",
		    "unexpected \"off\", expected end of "
		    "line" },
		{ "sandbox", "expected a word" },
		{ "guard strong", "use auto, broker or bpf-lsm" },
		{ "backend default firecracker",
		    "unknown backend "
		    "\"firecracker\": use microvm, native or none" },
		{ "terminal default qemu", "use none" },
		{ "log level loud", "use err" },
		{ "metrics maybe", "use on or off" },
		{ "egress additions yes", "use on or off" },
		{ "permit user-namespaces 1", "use on or off" },
		{ "run-user root", "not root" },
		{ "run-user \"a b\"", "not a user name" },
		{ "run-user 1000", "not a user name" },
		{ "client-group \"\"", "not a group name" },
		{ "socket \"control.sock\"", "must begin with /" },
		{ "socket \"/run/../x\"", "\"..\"" },
		{ "state-dir /", "root directory" },
		{ "runtime-dir \"/a//b\"", "empty component" },
		{ "allow host { \"*.com\" }", "*.com" },
		{ "allow host \"*\"", "\"*\"" },
		{ "allow host \"a.*.*.b\"", "a.*.*.b" },
		{ "allow host 0x7f.1", "0x7f.1" },
		{ "allow host a.example.com port 0", "1 to 65535" },
		{ "allow host a.example.com port 65536", "1 to 65535" },
		{ "allow host a.example.com port http", "1 to 65535" },
		{ "allow host a.example.com port +1", "1 to 65535" },
		{ "baseline except { nothere.example }", "no such entry" },
		{ "permit private {} for { a.example.com }", "at least one" },
		{ "permit private 10.0.0.0/8 for {}", "at least one" },
		{ "permit private 10.0.0.1/8 for a.example.com", "10.0.0.1" },
		{ "permit private 127.0.0.0/8 for a.example.com", "never" },
		{ "permit private 169.254.169.254 for a.example.com", "never" },
		{ "permit private 169.254.0.0/16 for a.example.com", "never" },
		{ "permit private 100.64.0.0/10 for a.example.com", "never" },
		{ "permit private 0.0.0.0/0 for a.example.com", "never" },
		{ "permit private ::1 for a.example.com", "never" },
		{ "permit private ::/0 for a.example.com", "never" },
		{ "permit private fd00::/8 for a.example.com", "never" },
		{ "permit private 224.0.0.0/8 for a.example.com", "never" },
		{ "deny read notes", "must begin with / or ~/" },
		{ "deny read ~/", "must begin with / or ~/" },
		{ "deny write ~/a/../b", "\"..\"" },
		{ "deny write /", "cannot be denied" },
		{ "system-path ~/x", "must begin with /" },
		{ "system-path /etc", "cannot be given" },
		{ "system-path /proc/self", "cannot be given" },
		{ "system-path /home", "cannot be given" },
		{ "permit home-mount /root", "cannot be given" },
		{ "system-path /var/lib/stockade/x", "service's own" },
		{ "system-path /var/lib", "service's own" },
		{ "limit nothing 1", "no limit has this name" },
		{ "limit pids many", "a number is needed" },
		{ "limit pids 0", "limit pids is 8 to 4194304" },
		{ "limit pids 99999999999999999999", "limit pids is" },
		{ "limit pids -1", "a number is needed" },
		{ "limit pids none", "a number is needed" },
		{ "limit pids auto", "a number is needed" },
		{ "limit tmp 1T", "a size" },
		{ "limit memory none", "auto is needed" },
		{ "limit wall 30", "a time" },
		{ "limit wall 1.5h", "a time" },
		{ "limit cpus .5", "1.5" },
		{ "limit cpus 1.", "1.5" },
		{ "limit cpus 0.0001", "1.5" },
		{ "limit memory 2G 3G", "unexpected \"3G\"" },
		{ "include \"../x\"", "without a slash" },
		{ "include \"/etc/passwd\"", "without a slash" },
		{ "include \"..\"", "without a slash" },
		{ "include \"absent.conf\"", "No such file" },
		{ "include \"link.conf\"", "symbolic link" },
		{ "include \"t.conf\"", "read already" },
		{ "include \"more.conf\" twice", "unexpected \"twice\"" },
		{ "allow host { a.example.com", "not closed" },
		{ "allow host a.example.com }", "unexpected }" },
		{ "allow host { { a.example.com } }", "list inside a list" },
		{ "run-user \"x", "not closed on its line" },
		{ "run-user \"x\\n\"", "backslash" },
		{ "run-user \"x\"y", "without a blank" },
		{ "run-user x\"y\"", "inside a word" },
		{ "run-user a, b", "comma" },
		{ "run-user \x01", "control byte" },
		{ "sandbox on\r", "carriage return" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		refuse_at(rows[i].in, 1, rows[i].out);
}

static void
repeats_and_contradictions_are_refused(void **state)
{
	static const struct {
		const char *text;
		unsigned line;
		const char *expected;
	} rows[] = {
		{ "sandbox on\nsandbox on", 2, "stands already in t.conf:1" },
		{ "log level info\n\nlog level err", 3, "\"log level\"" },
		{ "limit pids 9\nlimit pids 9", 2, "\"limit pids\"" },
		{ "metrics off\nmetrics off", 2, "\"metrics\"" },
		{ "socket /run/a\nsocket /run/b", 2, "\"socket\"" },
		{ "client-group g\nadmin-group g", 2, "operator" },
		{ "client-group stockade-admin", 1, "operator" },
		{ "state-dir /run/stockade", 1, "are the same" },
		{ "guard auto\nguard broker", 2, "stands already" },
		{ "backend default none\nsandbox require", 1, "contradicts" },
		{ "deny host b.example.com\nallow host { a.example.com\n"
		  "b.example.com }",
		    3,
		    "deny host \"b.example.com\" in "
		    "t.conf:1" },
		{ "allow host a.b.example.com\ndeny host example.com", 1,
		    "contradicts" },
		{ "allow host *.example.com\ndeny host example.com", 1,
		    "contradicts" },
		{ "allow host x.sentry.io", 1, "always denied" },
		{ "allow host 169.254.169.254", 1, "always denied" },
		{ "allow host pypi.org\nbaseline except pypi.org", 1,
		    "contradicts baseline except" },
		{ "permit private 10.0.0.0/8 for a.example.com\n"
		  "deny host a.example.com",
		    1, "contradicts" },
		{ "deny read /opt\nsystem-path /opt/sdk", 2, "contradicts" },
		{ "limit sessions 8\nlimit sessions-uid 9", 2, "larger" },
		{ "include \"more.conf\"\ninclude \"more.conf\"", 2,
		    "read already" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		refuse_at(rows[i].text, rows[i].line, rows[i].expected);
	/* what only looks like one */
	conf_free(accept_text(
	    "allow host *.example.com\n"
	    "deny host bad.example.com\nallow host a.org\nallow host a.org\n"
	    "allow host pypi.org port 8443\nbaseline except pypi.org\n"
	    "deny read /opt/sdk/keys\nsystem-path /opt/sdk\n"
	    "limit sessions 8\n"));
}

static void
all_errors_are_found_in_one_pass(void **state)
{
	static const char text[] =
	    "frob 1 2 3\n"
	    "sandbox on\n"
	    "allow host { \"*.com\"\n\n\"*\" }\n"
	    "deny host {\n a.example.com\n b.example.com extra {\n}\n"
	    "run-user \"x\n"
	    "audit keep and more { of\n it }\n"
	    "limit pids x\n";
	static const unsigned lines[] = { 1, 3, 5, 8, 10, 11, 13 };
	struct conf_errors errors;
	struct conf *conf;
	char *out = NULL;
	size_t len = 0;
	FILE *f;

	(void)state;
	assert_int_equal(parse_len(text, sizeof(text) - 1, &conf, &errors),
	    -EINVAL);
	f = open_memstream(&out, &len);
	assert_non_null(f);
	conf_errors_print(&errors, f);
	assert_int_equal(fclose(f), 0);
	if (errors.n != ARRAY_LEN(lines))
		fail_msg("%s", out);
	for (size_t i = 0; i < errors.n; i++)
		if (errors.list[i].line != lines[i])
			fail_msg("%s", out);
	assert_int_equal(strncmp(out, "t.conf:1: unknown word \"frob\"\n", 29),
	    0);
	free(out);
	conf_errors_done(&errors);
}

static void
includes_are_one_level_deep_and_keep_their_place(void **state)
{
	struct conf_errors errors;
	struct conf *conf;

	(void)state;
	conf = accept_text("include \"more.conf\"\ninclude empty.conf\n"
			   "allow host after.example.com");
	assert_int_equal(conf->allow_hosts.n, 2);
	assert_string_equal(conf->allow_hosts.list[0].origin.file, "more.conf");
	assert_int_equal(conf->allow_hosts.list[0].origin.line, 1);
	assert_int_equal(conf->allow_hosts.list[1].origin.line, 3);
	assert_int_equal(conf->files.n, 3);
	conf_free(conf);

	assert_int_equal(parse_text("sandbox on\ninclude \"bad.conf\"\nfrob\n",
			     &conf, &errors),
	    -EINVAL);
	assert_int_equal(errors.n, 2);
	assert_string_equal(errors.list[0].file, "bad.conf");
	assert_int_equal(errors.list[0].line, 3);
	assert_string_equal(errors.list[1].file, "t.conf");
	assert_int_equal(errors.list[1].line, 3);
	conf_errors_done(&errors);

	assert_int_equal(parse_text("include \"nested.conf\"", &conf, &errors),
	    -EINVAL);
	assert_string_equal(errors.list[0].file, "nested.conf");
	assert_non_null(strstr(errors.list[0].text, "cannot include"));
	conf_errors_done(&errors);

	assert_int_equal(parse_text("allow host x.example.com\n"
				    "include \"deny.conf\"",
			     &conf, &errors),
	    -EINVAL);
	assert_non_null(strstr(errors.list[0].text, "deny.conf:1"));
	conf_errors_done(&errors);

	memset(&errors, 0, sizeof(errors));
	assert_int_equal(conf_parse("t.conf", "include \"more.conf\"", 19, NULL,
			     NULL, &conf, &errors),
	    -EINVAL);
	conf_errors_done(&errors);
}

/* print, parse, print: the same text. */
static void
round_trip(const char *text)
{
	struct conf *first = accept_text(text);
	char *once = printed(first);
	struct conf *second = accept_text(once);
	char *twice = printed(second);

	assert_string_equal(once, twice);
	for (int i = 0; i < LIMIT_ROWS; i++)
		assert_int_equal(first->limits[i], second->limits[i]);
	assert_int_equal(first->privates.n, second->privates.n);
	free(once);
	free(twice);
	conf_free(first);
	conf_free(second);
}

static void
what_is_printed_reads_back_to_the_same(void **state)
{
	(void)state;
	round_trip("");
	round_trip("guard bpf-lsm\nsandbox off\n"
		   "backend default microvm\nrun-user u\n"
		   "socket \"/tmp/a \\\" \\\\ b\"\nlimit cpus 0.25\n"
		   "limit memory auto\nlimit wall 90s\nlimit tmp 1500M\n"
		   "limit shm 1048577\nlimit idle 61m\n");
}

static void
every_kind_of_entry_reads_back_to_the_same(void **state)
{
	(void)state;
	round_trip(
	    "allow host { a.example.com *.b.example.com 8.8.8.8 "
	    "[2001:4860:4860::8888] x.*.example.com }\n"
	    "allow host a.example.com port 8443\n"
	    "allow host { c.example.com d.example.com } port 22\n"
	    "deny host { t.example.com }\nbaseline except models.dev\n"
	    "permit private { 10.0.0.0/8 fd12:3456::/32 192.168.1.7 } for "
	    "{ a.example.com *.b.example.com }\n"
	    "permit private 172.16.0.0/12 for c.example.com\n"
	    "deny read { /srv/a \"~/with space\" }\ndeny write \"~/\xc3\xa4\"\n"
	    "system-path { /opt/a /opt/b }\npermit home-mount /home/u\n"
	    "permit user-namespaces on\negress additions off\n");
}

static void
unicode_names_become_a_labels(void **state)
{
	struct conf *conf =
	    accept_text("allow host { "
			"\"b\xc3\xbc"
			"cher.example\" *.m\xc3\xbcnchen.example }\n"
			"deny host \"\xe6\x97\xa5\xe6\x9c\xac.example\"\n");

	(void)state;
	assert_string_equal(conf->allow_hosts.list[0].pattern,
	    "xn--bcher-kva.example");
	assert_string_equal(conf->allow_hosts.list[1].pattern,
	    "*.xn--mnchen-3ya.example");
	assert_string_equal(conf->deny_hosts.list[0].pattern,
	    "xn--wgv71a.example");
	conf_free(conf);
	/* upper case, sharp s, a combining mark, full width, broken UTF-8 */
	refuse_at("deny host \"B\xc3\x9c"
		  "CHER.example\"",
	    1, "A-labels");
	refuse_at("deny host \"stra\xc3\x9f"
		  "e.example\"",
	    1, "A-labels");
	refuse_at("deny host \"u\xcc\x88.example\"", 1, "A-labels");
	refuse_at("deny host \"\xef\xbd\x81.example\"", 1, "A-labels");
	refuse_at("deny host \"\xc3.example\"", 1, "A-labels");
	refuse_at("deny host \"\xc0\xaf.example\"", 1, "A-labels");
	refuse_at("deny host \"\xe2\x80\x8b.example\"", 1, "A-labels");
}

static void
punycode_agrees_with_rfc_3492(void **state)
{
	static const struct row rows[] = {
		{ "\xe4\xbb\x96\xe4\xbb\xac\xe4\xb8\xba\xe4\xbb\x80\xe4\xb9"
		  "\x88\xe4\xb8\x8d\xe8\xaf\xb4\xe4\xb8\xad\xe6\x96\x87",
		    "xn--ihqwcrb4cv8a8dqg056pqjye" },
		{ "pro\xc4\x8dprost\xc4\x9bnemluv\xc3\xad\xc4\x8d"
		  "esky",
		    "xn--proprostnemluvesky-uyb24dma41a" },
		{ "3\xe5\xb9\xb4"
		  "b\xe7\xb5\x84\xe9\x87\x91\xe5\x85\xab\xe5"
		  "\x85\x88\xe7\x94\x9f",
		    "xn--3b-ww4c5e180e575a65lsy2b" },
		{ "a.b", "a.b" },
		{ "", "" },
	};
	const char *why = "";
	char out[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(idna_to_ascii(rows[i].in, strlen(rows[i].in),
				     out, sizeof(out), &why),
		    0);
		assert_string_equal(out, rows[i].out);
	}
	assert_int_equal(idna_to_ascii("abc", 3, out, 3, &why), -ENOSPC);
}

static void
amounts_are_limited(void **state)
{
	char *text = malloc(CONF_BYTES_MAX + 2);
	struct conf_errors errors;
	struct conf *conf;
	size_t n = 0;

	(void)state;
	assert_non_null(text);
	memset(text, ' ', CONF_BYTES_MAX + 2);
	assert_int_equal(parse_len(text, CONF_BYTES_MAX + 1, &conf, &errors),
	    -EINVAL);
	assert_non_null(strstr(errors.list[0].text, "more than 1048576"));
	conf_errors_done(&errors);
	assert_int_equal(parse_len(text, CONF_BYTES_MAX, &conf, &errors), 0);
	conf_free(conf);

	n += (size_t)sprintf(text, "deny read {");
	for (unsigned i = 0; i < CONF_RULES_MAX; i++)
		n += (size_t)sprintf(text + n, " /x");
	n += (size_t)sprintf(text + n, "}\n");
	assert_int_equal(parse_len(text, n, &conf, &errors), 0);
	conf_free(conf);
	n += (size_t)sprintf(text + n, "deny write /x\n");
	assert_int_equal(parse_len(text, n, &conf, &errors), -EINVAL);
	assert_int_equal(errors.n, 1);
	assert_non_null(strstr(errors.list[0].text, "more than 10000 rules"));
	conf_errors_done(&errors);

	n = 0;
	for (unsigned i = 0; i < 3 * CONF_ERRORS_MAX; i++)
		n += (size_t)sprintf(text + n, "frob\n");
	assert_int_equal(parse_len(text, n, &conf, &errors), -EINVAL);
	assert_int_equal(errors.n, CONF_ERRORS_MAX);
	assert_int_equal(errors.dropped, 2 * CONF_ERRORS_MAX);
	conf_errors_done(&errors);

	n = 0;
	for (unsigned i = 0; i < 2048; i++)
		n += (size_t)sprintf(text + n, "allow host h%u.example\n", i);
	assert_int_equal(parse_len(text, n, &conf, &errors), -EINVAL);
	assert_non_null(strstr(errors.list[0].text, "allowed hosts"));
	conf_errors_done(&errors);
	free(text);
}

static void
hostile_bytes_do_not_reach_the_error_raw(void **state)
{
	static const char text[] = "run-user \"\x1b[31m\"\nfr\x7fob\nx\0y\n";
	struct conf_errors errors;
	struct conf *conf;

	(void)state;
	assert_int_equal(parse_len(text, sizeof(text) - 1, &conf, &errors),
	    -EINVAL);
	assert_true(errors.n >= 3);
	for (size_t i = 0; i < errors.n; i++)
		for (const char *p = errors.list[i].text; *p != '\0'; p++)
			assert_true((unsigned char)*p >= ' ' && *p != 0x7f);
	conf_errors_done(&errors);
}

/* A file of the source tree, terminated; the caller frees it. */
static char *
source_file(const char *name)
{
	const char *source = getenv("STOCKADE_SOURCE");
	char *text = calloc(1, SOURCE_MAX);
	char path[4096];
	FILE *f;

	assert_non_null(text);
	(void)snprintf(path, sizeof(path), "%s/%s",
	    source != NULL ? source : ".", name);
	f = fopen(path, "r");
	if (f == NULL) {
		fail_msg("%s: %s", path, strerror(errno));
		abort();
	}
	assert_true(fread(text, 1, SOURCE_MAX - 1, f) > 0);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void
the_example_file_is_all_defaults(void **state)
{
	char *text = source_file("contrib/examples/stockade.conf");
	struct conf *conf = accept_text(text);
	struct conf *none = accept_text("");
	char *a = printed(conf);
	char *b = printed(none);

	(void)state;
	assert_string_equal(a, b);
	free(a);
	free(b);
	free(text);
	conf_free(conf);
	conf_free(none);
}

/* "#word" is a sentence, "# text" a comment. */
static void
the_example_file_holds_when_uncommented(void **state)
{
	char *text = source_file("contrib/examples/stockade.conf");
	struct conf *conf;
	size_t kept = 0;
	char before = '\n';

	(void)state;
	for (size_t i = 0; text[i] != '\0'; i++) {
		char c = text[i];

		if (c != '#' || before != '\n' || text[i + 1] == ' ' ||
		    text[i + 1] == '\n')
			text[kept++] = c;
		before = c;
	}
	text[kept] = '\0';
	conf = accept_text(text);
	assert_true(conf->sentences > 10);
	assert_true(conf->privates.n > 0);
	conf_free(conf);
	free(text);
}

/* Each literal block of stockade.conf(5), and together every sentence. */
static void
every_example_of_the_manual_holds(void **state)
{
	static const char begin[] = ".Bd -literal -offset indent\n";
	char *text = source_file("supervisor/control/stockade.conf.5");
	unsigned blocks = 0;
	char *at = text;

	(void)state;
	while ((at = strstr(at, begin)) != NULL) {
		char *from = at + sizeof(begin) - 1;
		char *end = strstr(from, ".Ed\n");

		assert_non_null(end);
		*end = '\0';
		conf_free(accept_text(from));
		at = end + 1;
		blocks++;
	}
	assert_true(blocks >= 25);
	free(text);
}

static void
a_reload_names_what_needs_a_restart(void **state)
{
	struct conf *a = accept_text("");
	struct conf *b = accept_text("runtime-dir /run/x\nadmin-group y\n"
				     "deny host a.example.com\n");
	const char *names[8];

	(void)state;
	assert_int_equal(conf_restart_needed(a, a, names, 8), 0);
	assert_int_equal(conf_restart_needed(a, b, names, 8), 3);
	assert_string_equal(names[0], "socket");
	assert_string_equal(names[1], "runtime-dir");
	assert_string_equal(names[2], "admin-group");
	assert_int_equal(conf_restart_needed(a, b, names, 1), 1);
	conf_free(a);
	conf_free(b);
}

/* --- files ------------------------------------------------------------ */

static int
make_dir(char path[64])
{
	int fd;

	(void)strcpy(path, "/tmp/stockade-conf-XXXXXX");
	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void
make_file(int dirfd, const char *name, const char *text, mode_t mode)
{
	int fd =
	    openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

static void
remove_dir(int fd, const char *path)
{
	static const char *const names[] = { "a.conf", "b.conf", "fifo",
		"link.conf", "dir" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (unlinkat(fd, names[i], 0) < 0)
			(void)unlinkat(fd, names[i], AT_REMOVEDIR);
	assert_int_equal(close(fd), 0);
	assert_int_equal(rmdir(path), 0);
}

static void
refuse_file(int fd, const char *name, const char *expected)
{
	struct conf_errors errors = { 0 };
	struct conf *conf = NULL;

	assert_int_equal(conf_load(fd, name, false, &conf, &errors), -EINVAL);
	assert_null(conf);
	if (strstr(errors.list[0].text, expected) == NULL)
		fail_msg("\"%s\" lacks \"%s\"", errors.list[0].text, expected);
	conf_errors_done(&errors);
}

static void
only_roots_own_files_are_read(void **state)
{
	struct conf_errors errors = { 0 };
	struct conf *conf = NULL;
	char path[64];
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	fd = make_dir(path);
	make_file(fd, "a.conf", "include \"b.conf\"\n", 0644);
	make_file(fd, "b.conf", "deny host a.example.com\n", 0600);
	assert_int_equal(conf_load(fd, "a.conf", false, &conf, &errors), 0);
	assert_int_equal(conf->deny_hosts.n, 1);
	conf_free(conf);
	/* the same files, once somebody else could have written them */
	assert_int_equal(fchmodat(fd, "b.conf", 0620, 0), 0);
	refuse_file(fd, "a.conf", "writable by group or others");
	assert_int_equal(fchmodat(fd, "b.conf", 0602, 0), 0);
	refuse_file(fd, "a.conf", "writable by group or others");
	assert_int_equal(fchmodat(fd, "b.conf", 0644, 0), 0);
	assert_int_equal(fchownat(fd, "b.conf", 1, 0, 0), 0);
	refuse_file(fd, "a.conf", "owned by root");
	assert_int_equal(fchownat(fd, "a.conf", 1, 0, 0), 0);
	refuse_file(fd, "a.conf", "owned by root");
	remove_dir(fd, path);
}

static void
links_fifos_and_directories_are_not_read(void **state)
{
	char path[64];
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	fd = make_dir(path);
	make_file(fd, "a.conf", "sandbox on\n", 0644);
	assert_int_equal(symlinkat("a.conf", fd, "link.conf"), 0);
	assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
	assert_int_equal(mkdirat(fd, "dir", 0755), 0);
	refuse_file(fd, "link.conf", "symbolic link");
	refuse_file(fd, "fifo", "regular file");
	refuse_file(fd, "dir", "regular file");
	refuse_file(fd, "../etc/passwd", "single component");
	refuse_file(fd, "absent.conf", "No such file");
	remove_dir(fd, path);
}

static void
a_missing_file_means_defaults_where_permitted(void **state)
{
	struct conf_errors errors = { 0 };
	struct conf *conf = NULL;
	char path[64];
	int fd = make_dir(path);

	(void)state;
	assert_int_equal(conf_load(fd, "a.conf", true, &conf, &errors), 0);
	assert_string_equal(conf->runtime_dir, "/run/stockade");
	conf_free(conf);
	remove_dir(fd, path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_means_all_defaults),
		cmocka_unit_test(every_sentence_is_stored),
		cmocka_unit_test(sentences_of_later_parts_are_refused),
		cmocka_unit_test(bad_sentences_name_the_fault),
		cmocka_unit_test(repeats_and_contradictions_are_refused),
		cmocka_unit_test(all_errors_are_found_in_one_pass),
		cmocka_unit_test(
		    includes_are_one_level_deep_and_keep_their_place),
		cmocka_unit_test(what_is_printed_reads_back_to_the_same),
		cmocka_unit_test(every_kind_of_entry_reads_back_to_the_same),
		cmocka_unit_test(unicode_names_become_a_labels),
		cmocka_unit_test(punycode_agrees_with_rfc_3492),
		cmocka_unit_test(amounts_are_limited),
		cmocka_unit_test(hostile_bytes_do_not_reach_the_error_raw),
		cmocka_unit_test(the_example_file_is_all_defaults),
		cmocka_unit_test(the_example_file_holds_when_uncommented),
		cmocka_unit_test(every_example_of_the_manual_holds),
		cmocka_unit_test(a_reload_names_what_needs_a_restart),
		cmocka_unit_test(only_roots_own_files_are_read),
		cmocka_unit_test(links_fifos_and_directories_are_not_read),
		cmocka_unit_test(a_missing_file_means_defaults_where_permitted),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
