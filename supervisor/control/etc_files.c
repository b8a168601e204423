/*
 * In stockade-control. User, home and shell come from the host's user database;
 * they are checked for the bytes that would add a line or a field.
 */
#include "supervisor/control/etc_files.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/cleanup.h"
#include "common/size.h"

#define HOST_FILE_MAX 65536u
#define SAFE_MAX 64u

/* ------------------------------------------------ the host, at start */

/* The text of a small file, or NULL. */
static char *
read_text(const char *path)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	autofree char *text = NULL;
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return NULL;
	text = malloc(HOST_FILE_MAX + 1);
	if (text == NULL)
		return NULL;
	while (len < HOST_FILE_MAX) {
		n = read(fd, text + len, HOST_FILE_MAX - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	return len == HOST_FILE_MAX || strlen(text) != len ? NULL :
							     take_ptr(&text);
}

/* Whether a directory or one directly in it holds a file whose name ends with
 * one of the two; local authorities are put there by people. */
static bool
has_certificates(const char *path, int depth)
{
	DIR *dir = opendir(path);
	bool found = false;
	struct dirent *e;
	char below[512];
	size_t n;

	if (dir == NULL)
		return false;
	while (!found && (e = readdir(dir)) != NULL) {
		n = strlen(e->d_name);
		if (e->d_name[0] == '.')
			continue;
		found = n > 4 &&
		    (strcmp(e->d_name + n - 4, ".crt") == 0 ||
			strcmp(e->d_name + n - 4, ".pem") == 0);
		if (!found && depth > 0 &&
		    snprintf(below, sizeof(below), "%s/%s", path, e->d_name) <
			(int)sizeof(below))
			found = has_certificates(below, depth - 1);
	}
	(void)closedir(dir);
	return found;
}

struct ca_place {
	const char *dir;
	const char *bundle;
};
static const struct ca_place ca_places[] = {
	{ "/usr/local/share/ca-certificates",
	    "/etc/ssl/certs/ca-certificates.crt" },
	{ "/etc/pki/ca-trust/source/anchors",
	    "/etc/pki/tls/certs/ca-bundle.crt" },
};

/* `name = value` with blanks around; the value unquoted, or NULL. */
static char *
git_value(const char *line, const char *name)
{
	size_t n = strlen(name), len;
	char *copy;

	line += strspn(line, " \t");
	if (strncasecmp(line, name, n) != 0)
		return NULL;
	line += n + strspn(line + n, " \t");
	if (*line != '=')
		return NULL;
	line++;
	line += strspn(line, " \t\"");
	len = strcspn(line, "\"\r\n");
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	if (len == 0 || memchr(line, '\\', len) != NULL)
		return NULL;
	copy = strndup(line, len);
	return copy;
}

static void
add_safe(struct etc_host *host, char *value)
{
	char **more;

	if (host->nsafe < SAFE_MAX) {
		more = reallocarray(host->safe, host->nsafe + 1, sizeof(*more));
		if (more != NULL) {
			host->safe = more;
			host->safe[host->nsafe++] = value;
			return;
		}
	}
	free(value);
}

void
etc_host_gitconfig(struct etc_host *host, const char *text)
{
	char section[64] = "";
	const char *line, *next;
	char *value;
	size_t n;

	for (line = text; *line != '\0'; line = next) {
		n = strcspn(line, "\n");
		next = line + n + (line[n] == '\n');
		line += strspn(line, " \t");
		if (*line == '[') {
			n = strcspn(line + 1, "] \t\n");
			if (n >= sizeof(section))
				n = 0;
			memcpy(section, line + 1, n);
			section[n] = '\0';
			continue;
		}
		if (strcasecmp(section, "safe") == 0 &&
		    (value = git_value(line, "directory")) != NULL)
			add_safe(host, value);
		if (strcasecmp(section, "http") == 0 &&
		    (value = git_value(line, "sslCAInfo")) != NULL) {
			free(host->git_ca);
			host->git_ca = value;
		}
	}
}

void
etc_host_read(struct etc_host *ret)
{
	autofree char *git = read_text("/etc/gitconfig");

	memset(ret, 0, sizeof(*ret));
	ret->profile = read_text("/etc/profile");
	if (git != NULL)
		etc_host_gitconfig(ret, git);
	for (size_t i = 0; i < ARRAY_LEN(ca_places); i++)
		if (ret->ca_bundle == NULL &&
		    access(ca_places[i].bundle, R_OK) == 0 &&
		    has_certificates(ca_places[i].dir, 1))
			ret->ca_bundle = strdup(ca_places[i].bundle);
}

void
etc_host_done(struct etc_host *host)
{
	for (size_t i = 0; i < host->nsafe; i++)
		free(host->safe[i]);
	free(host->safe);
	free(host->profile);
	free(host->git_ca);
	free(host->ca_bundle);
	memset(host, 0, sizeof(*host));
}

/* ------------------------------------------------ the run's files */

struct text {
	char *buf;
	size_t len;
	FILE *out;
};

static int
text_open(struct text *t)
{
	t->buf = NULL;
	t->out = open_memstream(&t->buf, &t->len);
	return t->out == NULL ? -ENOMEM : 0;
}

/* Closes the text and gives it to the plan as `path`. */
static int
text_into(struct text *t, struct pool *pool, struct plan *plan,
    const char *path)
{
	bool failed = ferror(t->out) != 0;
	autofree char *buf = NULL;
	struct plan_file *file;
	char *copy;

	failed = fclose(t->out) != 0 || failed;
	buf = t->buf;
	if (failed || plan->nfiles >= PLAN_FILES_MAX)
		return -ENOMEM;
	copy = pool_strndup(pool, buf, t->len);
	if (copy == NULL)
		return -ENOMEM;
	file = &plan->files[plan->nfiles++];
	file->path = path;
	file->content.data = (const uint8_t *)copy;
	file->content.len = t->len;
	return 0;
}

/* A field of passwd(5): a colon or control byte in it would be another. */
static const char *
field_or(const char *s, const char *fallback)
{
	if (s == NULL || *s == '\0')
		return fallback;
	for (const char *p = s; *p != '\0'; p++)
		if (*p == ':' || (unsigned char)*p < 0x20 || *p == 0x7f)
			return fallback;
	return s;
}

static void
write_passwd(FILE *out, const struct etc_input *in)
{
	(void)fprintf(out,
	    "root:x:0:0:root:/root:/usr/sbin/nologin\n"
	    "%s:x:%llu:%llu::%s:%s\n"
	    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	    field_or(in->user, "user"), (unsigned long long)in->uid,
	    (unsigned long long)in->gid, field_or(in->home, "/"),
	    field_or(in->shell, "/bin/sh"));
}

static void
write_group(FILE *out, const struct etc_input *in)
{
	(void)fprintf(out, "root:x:0:\n");
	if (in->gid != 0 && in->gid != 65534)
		(void)fprintf(out, "%s:x:%llu:\n", field_or(in->user, "user"),
		    (unsigned long long)in->gid);
	(void)fprintf(out, "nogroup:x:65534:\n");
}

static void
write_hosts(FILE *out, const struct etc_input *in)
{
	(void)fprintf(out,
	    "127.0.0.1\tlocalhost\n::1\tlocalhost "
	    "ip6-localhost ip6-loopback\n127.0.1.1\t%s\n",
	    in->hostname);
}

static void
write_hostname(FILE *out, const struct etc_input *in)
{
	(void)fprintf(out, "%s\n", in->hostname);
}

static void
write_nsswitch(FILE *out, const struct etc_input *in)
{
	(void)in;
	(void)fputs("passwd: files\ngroup: files\nshadow: files\n"
		    "hosts: files dns\nnetworks: files\nprotocols: files\n"
		    "services: files\nethers: files\nrpc: files\n",
	    out);
}

/* Nothing answers there yet: a look-up fails at once, not after a time-out. */
static void
write_resolv(FILE *out, const struct etc_input *in)
{
	(void)in;
	(void)fputs("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
	    out);
}

/* A value of git-config(1) in double quotes. */
static void
put_quoted(FILE *out, const char *s)
{
	(void)fputc('"', out);
	for (; *s != '\0'; s++) {
		if (*s == '\n') {
			(void)fputs("\\n", out);
			continue;
		}
		if (*s == '"' || *s == '\\')
			(void)fputc('\\', out);
		(void)fputc(*s, out);
	}
	(void)fputs("\"\n", out);
}

/* The work trees may belong to another user than git expects. */
static void
write_gitconfig(FILE *out, const struct etc_input *in)
{
	const char *ca = in->host->ca_bundle != NULL ? in->host->ca_bundle :
						       in->host->git_ca;

	(void)fputs("[safe]\n", out);
	for (size_t i = 0; i < in->host->nsafe; i++) {
		(void)fputs("\tdirectory = ", out);
		put_quoted(out, in->host->safe[i]);
	}
	for (size_t i = 0; i < in->nmounts; i++) {
		if (in->mounts[i].kind != PLAN_DIR)
			continue;
		(void)fputs("\tdirectory = ", out);
		put_quoted(out, in->mounts[i].target);
	}
	(void)fputs("[push]\n\tdefault = current\n", out);
	/* Nothing is copied into a new repository: its hooks would be refused
	 * before its configuration is (SPEC D17). */
	(void)fputs("[init]\n\ttemplateDir =\n", out);
	if (ca != NULL) {
		(void)fputs("[http]\n\tsslCAInfo = ", out);
		put_quoted(out, ca);
	}
}

/* The host's id would let a run tell hosts apart; this one is the session's
 * own and stays the same when it is launched again. */
static void
write_machine_id(FILE *out, const struct etc_input *in)
{
	static const char salt[] = "stockade machine-id ";
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned int n = 0;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	memset(sum, 0, sizeof(sum));
	if (ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1 &&
	    EVP_DigestUpdate(ctx, salt, sizeof(salt) - 1) == 1)
		(void)(EVP_DigestUpdate(ctx, in->label, strlen(in->label)) &&
		    EVP_DigestFinal_ex(ctx, sum, &n));
	EVP_MD_CTX_free(ctx);
	for (size_t i = 0; i < 16; i++)
		(void)fprintf(out, "%02x", sum[i]);
	(void)fputc('\n', out);
}

/* The host's own text, but PATH stays what it was (Debian's overwrites it);
 * in a function, so that a `return` in it does not skip the last line. */
static void
write_profile(FILE *out, const struct etc_input *in)
{
	if (in->host->profile == NULL || in->host->profile[0] == '\0')
		return;
	(void)fprintf(out,
	    "stockade_path=$PATH\nstockade_profile() {\n:\n%s\n"
	    "}\nstockade_profile\nPATH=$stockade_path\nexport PATH\n"
	    "unset stockade_path\nunset -f stockade_profile\n",
	    in->host->profile);
}

struct etc_file {
	const char *path;
	void (*write)(FILE *, const struct etc_input *);
};
static const struct etc_file etc_table[] = {
	{ "/etc/gitconfig", write_gitconfig },
	{ "/etc/group", write_group },
	{ "/etc/hostname", write_hostname },
	{ "/etc/hosts", write_hosts },
	{ "/etc/machine-id", write_machine_id },
	{ "/etc/nsswitch.conf", write_nsswitch },
	{ "/etc/passwd", write_passwd },
	{ "/etc/profile", write_profile },
	{ "/etc/resolv.conf", write_resolv },
};

int
etc_files_make(const struct etc_input *in, struct pool *pool, struct plan *plan)
{
	struct text text;
	int r;

	for (size_t i = 0; i < ARRAY_LEN(etc_table); i++) {
		r = text_open(&text);
		if (r < 0)
			return r;
		etc_table[i].write(text.out, in);
		r = text_into(&text, pool, plan, etc_table[i].path);
		if (r < 0)
			return r;
	}
	return 0;
}
