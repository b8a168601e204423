/*
 * In stockade-control, on a client's spec and the answers of a process that
 * runs as the user: both may lie, and a lie may only cost the liar. In this
 * order: the answers are matched with the questions, the grants are
 * judged, protected paths take the write permission of grants inside them,
 * mounts are laid out, and every deny path becomes masks wherever it shows.
 */
#include "supervisor/control/plan_make.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "common/size.h"
#include "supervisor/control/conf.h"
#include "supervisor/control/egress_make.h"
#include "supervisor/control/etc_files.h"
#include "supervisor/control/plan_private.h"
#include "supervisor/control/spec.h"

#define PLAN_HOSTNAME "sandbox"

/* SPEC I15: never a source as a whole. */
static const char *const refused_sources[] = { "/", "/boot", "/dev", "/etc",
	"/proc", "/root", "/run", "/sys", "/tmp", "/var/tmp" };

int
plan_no_memory(struct plan_maker *m)
{
	return spec_fault_set(m->fault, API_INTERNAL, NULL, "out of memory");
}

const struct lookup_result *
plan_result_of(const struct plan_maker *m, const struct plan_item *item)
{
	return &m->in->results->results[item - m->in->asked->items];
}

int
plan_lookup_failed(struct plan_maker *m, const struct plan_item *item,
    int error)
{
	return spec_fault_set(m->fault, API_LOOKUP_FAILED,
	    item->strict ? item->field : NULL, "%s: %s cannot be checked: %s",
	    item->field, item->path, strerror(error));
}

/* ------------------------------------------------ the answers */

/* ENOENT and ENOTDIR are absent, EACCES is hidden from the user; anything else
 * is no answer, and no rule is dropped for want of one (SPEC I17). */
int
plan_judge(struct plan_maker *m, const struct plan_item *item,
    enum plan_found *ret)
{
	const struct lookup_result *r = plan_result_of(m, item);

	switch (r->error) {
	case 0:
		*ret = PLAN_FOUND;
		return 0;
	case ENOENT:
	case ENOTDIR:
		*ret = PLAN_ABSENT;
		return 0;
	case EACCES:
		*ret = PLAN_HIDDEN;
		return 0;
	default:
		return plan_lookup_failed(m, item, (int)r->error);
	}
}

static bool
is_below_home(const char *path)
{
	return path[0] == '~' && path[1] == '/';
}

/* The answers must be of these questions and made of clean paths. */
static int
check_answers(struct plan_maker *m)
{
	const struct plan_asked *asked = m->in->asked;
	const struct lookup_result *r;

	if (m->in->results->nresults != asked->n)
		return spec_fault_set(m->fault, API_LOOKUP_FAILED, NULL,
		    "the look-up answered another question");
	for (size_t i = 0; i < asked->n; i++) {
		r = &m->in->results->results[i];
		if ((!is_below_home(asked->items[i].path) &&
			strcmp(r->literal, asked->items[i].path) != 0) ||
		    (r->error == 0 && !path_is_clean(r->resolved)))
			return spec_fault_set(m->fault, API_LOOKUP_FAILED, NULL,
			    "the look-up answered another question");
	}
	return 0;
}

/* ------------------------------------------------ grants */

static bool
is_refused_source(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(refused_sources); i++)
		if (strcmp(path, refused_sources[i]) == 0)
			return true;
	return false;
}

/* Whether `permit home-mount` names the resolved path. */
static bool
home_is_permitted(const struct plan_maker *m, const char *resolved)
{
	const struct plan_asked *asked = m->in->asked;

	for (size_t i = 0; i < asked->n; i++)
		if (asked->items[i].role == PLAN_ROLE_HOME_PERMIT &&
		    plan_result_of(m, &asked->items[i])->error == 0 &&
		    strcmp(plan_result_of(m, &asked->items[i])->resolved,
			resolved) == 0)
			return true;
	return false;
}

/* Our own directories: by their resolved spelling, or by the configured one
 * where the user cannot look. */
static bool
in_service(const struct plan_maker *m, const char *resolved)
{
	const struct plan_asked *asked = m->in->asked;
	const struct lookup_result *r;

	for (size_t i = 0; i < asked->n; i++) {
		if (asked->items[i].role != PLAN_ROLE_SERVICE)
			continue;
		r = plan_result_of(m, &asked->items[i]);
		if (path_is_within(resolved,
			r->error == 0 ? r->resolved : asked->items[i].path))
			return true;
	}
	return false;
}

static int
check_source(struct plan_maker *m, const struct plan_item *item,
    const struct lookup_result *r)
{
	if (is_refused_source(item->path) || is_refused_source(r->resolved))
		return spec_fault_set(m->fault, API_BAD_PATH, item->field,
		    "%s: %s cannot be given as a whole", item->field,
		    item->path);
	if (in_service(m, r->resolved))
		return spec_fault_set(m->fault, API_BAD_PATH, item->field,
		    "%s: %s belongs to the service", item->field, item->path);
	if ((path_is_within(m->in->user.home, r->resolved) ||
		path_is_within(m->home_resolved, r->resolved)) &&
	    !home_is_permitted(m, r->resolved))
		return spec_fault_set(m->fault, API_BAD_PATH, item->field,
		    "%s: %s holds a home directory as a whole; name a "
		    "directory below it",
		    item->field, item->path);
	if (r->kind != LOOKUP_DIR && r->kind != LOOKUP_FILE)
		return spec_fault_set(m->fault, API_BAD_PATH, item->field,
		    "%s: %s is neither a directory nor a file", item->field,
		    item->path);
	return 0;
}

int
plan_notice(struct plan_maker *m, const char *code, const char *detail)
{
	struct plan_made *made = m->made;
	char *copy = pool_strdup(m->pool, detail);

	if (copy == NULL)
		return plan_no_memory(m);
	if (made->nnotices < PLAN_NOTICES_MAX) {
		made->notices[made->nnotices].code = code;
		made->notices[made->nnotices++].detail = copy;
	}
	return 0;
}

static int
take_grant(struct plan_maker *m, const struct plan_item *item,
    const struct lookup_result *r)
{
	const struct spec *spec = m->in->spec;
	struct plan_grant *g;

	if (m->ngrants >= PLAN_GRANTS_MAX)
		return spec_fault_set(m->fault, API_LIMIT, item->field,
		    "%s: too many", item->field);
	g = &m->grants[m->ngrants++];
	g->literal = pool_strdup(m->pool, item->path);
	g->resolved = pool_strdup(m->pool, r->resolved);
	if (g->literal == NULL || g->resolved == NULL)
		return plan_no_memory(m);
	g->kind = r->kind == LOOKUP_DIR ? PLAN_DIR : PLAN_FILE;
	g->dev = r->dev;
	g->ino = r->ino;
	g->index = item->index;
	g->state = item->role == PLAN_ROLE_STATE;
	if (!g->state) {
		g->asked_read_only = spec->mounts[item->index].read_only;
		g->read_only = g->asked_read_only || spec->mode != SPEC_CHAT;
	}
	return 0;
}

static int
add_grant(struct plan_maker *m, const struct plan_item *item)
{
	const struct lookup_result *r = plan_result_of(m, item);
	enum plan_found found;

	if (plan_judge(m, item, &found) != 0)
		return -EINVAL;
	if (found == PLAN_ABSENT && item->role == PLAN_ROLE_STATE)
		return plan_notice(m, "stateDirMissing", item->path);
	if (found != PLAN_FOUND)
		return spec_fault_set(m->fault, API_BAD_PATH, item->field,
		    "%s: %s: %s", item->field, item->path,
		    strerror((int)r->error));
	if (check_source(m, item, r) != 0)
		return -EINVAL;
	if (item->role == PLAN_ROLE_STATE && r->kind != LOOKUP_DIR)
		return spec_fault_set(m->fault, API_BAD_PATH, item->field,
		    "%s: %s is not a directory", item->field, item->path);
	return take_grant(m, item, r);
}

/* Two grants of one place: equal ones are one, a state directory is writable
 * in every mode (I9), and what contradicts itself is refused (I14). */
static int
agree(struct plan_maker *m, struct plan_grant *a, struct plan_grant *b)
{
	bool state = a->state || b->state;

	if (strcmp(a->resolved, b->resolved) != 0)
		return 0;
	if ((state && (a->asked_read_only || b->asked_read_only)) ||
	    (!state && a->asked_read_only != b->asked_read_only))
		return spec_fault_set(m->fault, API_BAD_PARAMS, "bindMounts",
		    "bindMounts: %s is given twice, with and without readOnly",
		    a->literal);
	if (state)
		a->read_only = b->read_only = false;
	return 0;
}

static int
make_grants(struct plan_maker *m)
{
	const struct plan_asked *asked = m->in->asked;

	for (size_t i = 0; i < asked->n; i++)
		if ((asked->items[i].role == PLAN_ROLE_MOUNT ||
			asked->items[i].role == PLAN_ROLE_STATE) &&
		    add_grant(m, &asked->items[i]) != 0)
			return -EINVAL;
	for (size_t i = 0; i < m->ngrants; i++)
		for (size_t j = i + 1; j < m->ngrants; j++)
			if (agree(m, &m->grants[i], &m->grants[j]) != 0)
				return -EINVAL;
	return 0;
}

/* ------------------------------------------------ the rest of the plan */

static int
make_mounts(struct plan_maker *m)
{
	const struct plan_grant *bad = NULL;
	int r;

	r = plan_view_mounts(m->grants, m->ngrants, m->pool, m->made->plan,
	    &bad);
	if (r == -EACCES)
		return spec_fault_set(m->fault, API_BAD_PATH,
		    bad->state ? "runnerStateDirs" : "bindMounts",
		    "%s cannot appear in a run: that place is the system's",
		    bad->literal);
	return r < 0 ? plan_no_memory(m) : 0;
}

static int
make_home(struct plan_maker *m)
{
	struct plan *plan = m->made->plan;
	const char *home = m->in->user.home;

	/* System users may have "/" or a place of the fixed view. */
	if (path_is_clean(home) && plan_target_permitted(home) &&
	    !plan_view_system(home))
		plan->home = pool_strdup(m->pool, home);
	else if (spec_label_ok(m->in->user.name, strlen(m->in->user.name)) &&
	    strchr(m->in->user.name, '/') == NULL)
		plan->home = pool_concat(m->pool, "/home/", m->in->user.name);
	else
		plan->home = "/home/user";
	return plan->home == NULL ? plan_no_memory(m) : 0;
}

/* Without guestWorkdir: the first grant by name that was asked for writing,
 * else the first, so that it does not depend on the list's order (C17). */
static const char *
default_workdir(const struct plan_maker *m)
{
	const struct plan_grant *best = NULL, *g;

	for (size_t i = 0; i < m->ngrants; i++) {
		g = &m->grants[i];
		if (g->state || g->kind != PLAN_DIR)
			continue;
		if (best == NULL ||
		    best->asked_read_only > g->asked_read_only ||
		    (best->asked_read_only == g->asked_read_only &&
			strcmp(g->literal, best->literal) < 0))
			best = g;
	}
	if (best == NULL)
		return m->made->plan->home;
	return plan_view_has(m->made->plan, best->literal) ? best->literal :
							     best->resolved;
}

static int
workdir_of(struct plan_maker *m, const struct plan_item *item)
{
	const struct lookup_result *r = plan_result_of(m, item);
	struct plan *plan = m->made->plan;
	enum plan_found found;

	if (plan_judge(m, item, &found) != 0)
		return -EINVAL;
	if (!plan_touches_grant(m, item->path) &&
	    (found != PLAN_FOUND || !plan_view_has(plan, r->resolved)))
		return spec_fault_set(m->fault, API_BAD_PARAMS, item->field,
		    "guestWorkdir: %s lies in no mount", item->path);
	if (found != PLAN_FOUND || r->kind != LOOKUP_DIR)
		return spec_fault_set(m->fault, API_BAD_PATH, item->field,
		    "guestWorkdir: %s: %s", item->path,
		    strerror(found != PLAN_FOUND ? (int)r->error : ENOTDIR));
	plan->cwd = pool_strdup(m->pool,
	    plan_view_has(plan, item->path) ? item->path : r->resolved);
	if (plan->cwd == NULL)
		return plan_no_memory(m);
	return plan_view_has(plan, plan->cwd) ?
	    0 :
	    spec_fault_set(m->fault, API_BAD_PARAMS, item->field,
		"guestWorkdir: %s lies in no mount", item->path);
}

static int
make_workdir(struct plan_maker *m)
{
	const struct plan_asked *asked = m->in->asked;

	for (size_t i = 0; i < asked->n; i++)
		if (asked->items[i].role == PLAN_ROLE_WORKDIR)
			return workdir_of(m, &asked->items[i]);
	m->made->plan->cwd = default_workdir(m);
	return 0;
}

struct limit_row {
	enum limit_id id;
	uint64_t asked;
	uint64_t *to;
	uint64_t named; /* PLAN_LIMIT_* */
	const char *name;
};

/* A limit of the spec; what the operator set is the most it can be. */
static int
make_limit(struct plan_maker *m, const struct limit_row *row)
{
	const struct conf *conf = m->in->conf;
	uint64_t usual = conf->limits[row->id];

	if (usual == LIMIT_AUTO)
		usual = m->in->memory_default;
	if (row->asked == 0) {
		*row->to = usual == LIMIT_NONE ? 0 : usual;
		return 0;
	}
	if (conf->limit_set[row->id] && usual != LIMIT_NONE &&
	    row->asked > usual)
		return spec_fault_set(m->fault, API_LIMIT, "limits",
		    "limits.%s is above the configured %llu", row->name,
		    (unsigned long long)usual);
	*row->to = row->asked;
	m->made->plan->limits.named |= row->named;
	return 0;
}

static int
make_limits(struct plan_maker *m)
{
	const struct spec_limits *asked = &m->in->spec->limits;
	struct plan_limits *limits = &m->made->plan->limits;
	const struct limit_row rows[] = {
		{ LIMIT_MEMORY, asked->memory_bytes, &limits->memory_bytes,
		    PLAN_LIMIT_MEMORY, "memoryBytes" },
		{ LIMIT_PIDS, asked->pids, &limits->pids, PLAN_LIMIT_PIDS,
		    "pids" },
		{ LIMIT_CPUS, asked->cpu_milli, &limits->cpu_milli,
		    PLAN_LIMIT_CPUS, "cpus" },
		{ LIMIT_TMP, asked->tmp_bytes, &limits->tmp_bytes, 0,
		    "tmpBytes" },
		{ LIMIT_HOME, 0, &limits->home_bytes, 0, "home" },
		{ LIMIT_SHM, 0, &limits->shm_bytes, 0, "shm" },
		{ LIMIT_WALL, asked->wall_ms, &m->made->facts->wall_ms, 0,
		    "wallMs" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (make_limit(m, &rows[i]) != 0)
			return -EINVAL;
	return 0;
}

static int
compare_pairs(const void *a, const void *b)
{
	return strcmp(((const struct session_pair *)a)->name,
	    ((const struct session_pair *)b)->name);
}

/* Sorted, so that the digest does not depend on the sender's order. */
static int
take_pairs(struct plan_maker *m, const struct spec_env *env,
    struct session_pair *pairs, size_t *n)
{
	for (size_t i = 0; i < env->n; i++) {
		if (env->values[i] == NULL)
			continue;
		pairs[*n].name = pool_strdup(m->pool, env->names[i]);
		pairs[*n].value = pool_strdup(m->pool, env->values[i]);
		if (pairs[*n].name == NULL || pairs[*n].value == NULL)
			return plan_no_memory(m);
		(*n)++;
	}
	if (*n > 1)
		qsort(pairs, *n, sizeof(*pairs), compare_pairs);
	return 0;
}

/* A name in passEnv without a value is fine when `env` has it. */
static int
check_pass_env(struct plan_maker *m)
{
	const struct spec_env *pass = &m->in->spec->pass_env;
	const struct spec_env *env = &m->in->spec->env;
	bool has;

	for (size_t i = 0; i < pass->n; i++) {
		has = pass->values[i] != NULL;
		for (size_t j = 0; !has && j < env->n; j++)
			has = strcmp(env->names[j], pass->names[i]) == 0;
		if (!has && plan_notice(m, "envMissing", pass->names[i]) != 0)
			return -EINVAL;
	}
	return 0;
}

static const char *
kept(struct plan_maker *m, const char *s)
{
	return s == NULL ? "" : pool_strdup(m->pool, s);
}

static int
make_facts(struct plan_maker *m)
{
	const struct spec *spec = m->in->spec;
	struct session_facts *f = m->made->facts;
	bool whole = true;

	f->session_id = kept(m, spec->session_id);
	f->mode = spec->mode;
	f->network = spec->network;
	f->user = kept(m, m->in->user.name);
	f->shell = kept(m, m->in->user.shell);
	f->uid = m->in->user.uid;
	f->gid = m->in->user.gid;
	f->ca_bundle = kept(m, m->in->host->ca_bundle);
	f->unmasked = m->unmasked;
#define X(label, max) \
	f->label = kept(m, spec->label); \
	whole = whole && f->label != NULL;
	SPEC_LABELS(X)
#undef X
	f->detach = spec->detach;
	f->gone_ms = spec->gone_ms;
	f->idle_ms = spec->idle_ms;
	if (!spec->has_idle)
		f->idle_ms = m->in->conf->limits[LIMIT_IDLE] == LIMIT_NONE ?
		    0 :
		    m->in->conf->limits[LIMIT_IDLE];
	f->created_ms = m->in->now_ms;
	f->generation = 1;
	f->scan_gaps = m->scan_gaps;
	if (f->session_id == NULL || f->user == NULL || f->shell == NULL ||
	    f->ca_bundle == NULL || !whole)
		return plan_no_memory(m);
	if (take_pairs(m, &spec->pass_env, f->pass, &f->npass) != 0 ||
	    take_pairs(m, &spec->env, f->env, &f->nenv) != 0)
		return -EINVAL;
	return check_pass_env(m);
}

static int
make_env(struct plan_maker *m)
{
	const struct environ_set none = { NULL, 0 };
	char bad[ENVIRON_NAME_MAX + 1];
	int r;

	r = plan_environ(m->made->facts, m->made->plan, &none, &m->made->env,
	    bad);
	if (r == -ENOMEM)
		return plan_no_memory(m);
	if (r < 0)
		return spec_fault_set(m->fault, API_BAD_PARAMS, "env",
		    "env: %s: %s", bad,
		    r == -E2BIG ? "too much" : "not a valid name");
	for (size_t i = 0; i < m->made->env.nstripped; i++)
		if (plan_notice(m, "envStripped", m->made->env.stripped[i]) !=
		    0)
			return -EINVAL;
	return 0;
}

static int
make_etc(struct plan_maker *m)
{
	const struct plan *plan = m->made->plan;
	const struct etc_input etc = {
		.host = m->in->host,
		.user = m->in->user.name,
		.home = plan->home,
		.shell = m->in->user.shell,
		.uid = m->in->user.uid,
		.gid = m->in->user.gid,
		.label = m->in->spec->session_id,
		.hostname = PLAN_HOSTNAME,
		.mounts = plan->mounts,
		.nmounts = plan->nmounts,
	};

	return etc_files_make(&etc, m->pool, m->made->plan) < 0 ?
	    plan_no_memory(m) :
	    0;
}

/* ------------------------------------------------ digest and bytes */

int
plan_sha256(const struct wire_out *bytes, uint8_t ret[PLAN_DIGEST])
{
	unsigned int n = 0;

	if (bytes->err ||
	    EVP_Digest(bytes->data, bytes->len, ret, &n, EVP_sha256(), NULL) !=
		1 ||
	    n != PLAN_DIGEST)
		return -EIO;
	return 0;
}

/* The digest covers the plan with the policy part of the facts. */
static int
write_with(struct plan *plan, const struct session_facts *facts,
    void (*encode_facts)(const struct session_facts *, struct wire_out *),
    void (*encode_plan)(const struct plan *, struct wire_out *),
    struct wire_out *out)
{
	struct wire_out bytes;

	wire_out_init(&bytes);
	encode_facts(facts, &bytes);
	plan->session = (struct wire_view){ bytes.data, bytes.len };
	encode_plan(plan, out);
	plan->session = (struct wire_view){ NULL, 0 };
	wire_out_done(&bytes);
	return bytes.err || out->err ? -EIO : 0;
}

int
plan_write(struct plan *plan, const struct session_facts *facts,
    struct wire_out *out, uint8_t ret_digest[PLAN_DIGEST])
{
	struct wire_out policy;
	int r;

	wire_out_init(&policy);
	r = write_with(plan, facts, session_facts_encode_policy,
	    plan_encode_policy, &policy);
	if (r == 0)
		r = plan_sha256(&policy, ret_digest);
	wire_out_done(&policy);
	return r < 0 ?
	    r :
	    write_with(plan, facts, session_facts_encode, plan_encode, out);
}

static int
digest_into(struct plan_maker *m, const struct wire_out *bytes,
    struct wire_view *ret)
{
	uint8_t digest[PLAN_DIGEST];
	int r = plan_sha256(bytes, digest);

	if (r < 0)
		return r;
	ret->data = (const uint8_t *)pool_strndup(m->pool, (const char *)digest,
	    sizeof(digest));
	ret->len = sizeof(digest);
	return ret->data == NULL ? -ENOMEM : 0;
}

/* Of the rules as the spec and the configuration make them: what the start scan
 * adds is not policy, and changes with the trees. */
static int
digest_guard(struct plan_maker *m)
{
	if (m->made->plan->nroots == 0 ||
	    digest_into(m, &m->made->guard_bytes,
		&m->made->facts->guard_digest) == 0)
		return 0;
	return spec_fault_set(m->fault, API_INTERNAL, NULL,
	    "the plan could not be written");
}

static int
make_bytes(struct plan_maker *m)
{
	struct plan_made *made = m->made;
	int r;

	egress_lists_encode(made->egress, &made->egress_bytes);
	r = digest_into(m, &made->egress_bytes, &made->facts->egress_digest);
	if (r < 0)
		return spec_fault_set(m->fault, API_INTERNAL, NULL,
		    "the plan could not be written");
	r = plan_write(made->plan, made->facts, &made->plan_bytes,
	    made->digest);
	return r == 0 ?
	    0 :
	    spec_fault_set(m->fault, API_LIMIT, NULL, "the plan is too large");
}

static int
make_all(struct plan_maker *m)
{
	const struct plan_asked *asked = m->in->asked;
	struct plan *plan = m->made->plan;

	if (check_answers(m) != 0)
		return -EINVAL;
	m->home_resolved = m->in->user.home;
	for (size_t i = 0; i < asked->n; i++)
		if (asked->items[i].role == PLAN_ROLE_HOME &&
		    plan_result_of(m, &asked->items[i])->error == 0)
			m->home_resolved =
			    plan_result_of(m, &asked->items[i])->resolved;
	plan->hostname = PLAN_HOSTNAME;
	plan->userns = m->in->spec->userns;
	if (plan->userns && !m->in->conf->user_namespaces)
		return spec_fault_set(m->fault, API_UNAVAILABLE,
		    "allowUserNamespaces",
		    "allowUserNamespaces: the "
		    "configuration does not permit user namespaces");
	plan_count_bare_marks(m);
	if (make_grants(m) != 0 || plan_apply_to_grants(m) != 0 ||
	    make_mounts(m) != 0 || plan_make_masks(m) != 0 ||
	    make_home(m) != 0 || make_workdir(m) != 0 || make_limits(m) != 0 ||
	    plan_make_guard(m) != 0 || digest_guard(m) != 0 ||
	    plan_apply_found(m) != 0 || make_facts(m) != 0 ||
	    make_env(m) != 0 || make_etc(m) != 0 ||
	    egress_make(m->in->spec, m->in->conf, m->pool, &m->made->egress,
		m->fault) != 0)
		return -EINVAL;
	return make_bytes(m);
}

int
plan_make(const struct plan_input *in, struct plan_made **ret,
    struct spec_fault *fault)
{
	autofree struct plan_maker *m = calloc(1, sizeof(*m));
	struct plan_made *made = calloc(1, sizeof(*made));

	if (m == NULL || made == NULL) {
		free(made);
		return spec_fault_set(fault, API_INTERNAL, NULL,
		    "out of memory");
	}
	wire_out_init(&made->plan_bytes);
	wire_out_init(&made->egress_bytes);
	wire_out_init(&made->guard_bytes);
	made->plan = calloc(1, sizeof(*made->plan));
	made->facts = calloc(1, sizeof(*made->facts));
	m->in = in;
	m->made = made;
	m->pool = &made->pool;
	m->fault = fault;
	if (made->plan == NULL || made->facts == NULL) {
		plan_made_free(made);
		return plan_no_memory(m);
	}
	if (make_all(m) != 0) {
		plan_made_free(made);
		return -EINVAL;
	}
	*ret = made;
	return 0;
}

void
plan_made_free(struct plan_made *made)
{
	if (made == NULL)
		return;
	environ_done(&made->env);
	wire_out_done(&made->plan_bytes);
	wire_out_done(&made->egress_bytes);
	wire_out_done(&made->guard_bytes);
	free(made->plan);
	free(made->facts);
	pool_done(&made->pool);
	free(made);
}

/* ------------------------------------------------ the environment */

static bool
dir_in_view(void *arg, const char *dir)
{
	const struct plan *plan = arg;

	return path_is_clean(dir) &&
	    (plan_view_system(dir) || plan_view_has(plan, dir));
}

static void
to_set(const struct session_pair *from, size_t n, struct environ_pair *pairs,
    struct environ_set *set)
{
	for (size_t i = 0; i < n; i++) {
		pairs[i].name = from[i].name;
		pairs[i].value = from[i].value;
	}
	set->pairs = pairs;
	set->n = n;
}

int
plan_environ(const struct session_facts *facts, const struct plan *plan,
    const struct environ_set *exec_env, struct environ_result *ret,
    char *ret_bad)
{
	const bool shell_shows = plan_view_system(facts->shell);
	const struct environ_pair base[] = {
		{ "USER", facts->user },
		{ "LOGNAME", facts->user },
		{ "SHELL", shell_shows ? facts->shell : "/bin/bash" },
		{ "LANG", "C.UTF-8" },
	};
	const struct environ_pair fixed[] = {
		{ "STOCKADE_RUN_DIR", PLAN_RUN_DIR },
		{ "STOCKADE_SESSION", facts->session_id },
	};
	autofree struct environ_pair *pairs =
	    calloc(2 * SESSION_FACTS_ENV_MAX, sizeof(*pairs));
	struct environ_input in = {
		.base = { base, ARRAY_LEN(base) },
		.fixed = { fixed, ARRAY_LEN(fixed) },
		.exec_env = *exec_env,
		.proxy = true,
		.connect_path = PLAN_CONNECT,
		.home = plan->home,
		.tmpdir = PLAN_TMP_DIR,
		.ca_bundle =
		    facts->ca_bundle[0] == '\0' ? NULL : facts->ca_bundle,
		.native = true,
		.in_view = dir_in_view,
	};

	if (pairs == NULL)
		return -ENOMEM;
	/* The view is only read; the callback's argument is not const. */
	in.in_view_arg = (void *)(uintptr_t)plan;
	to_set(facts->pass, facts->npass, pairs, &in.pass_env);
	to_set(facts->env, facts->nenv, pairs + SESSION_FACTS_ENV_MAX,
	    &in.spec_env);
	return environ_make(&in, ret, ret_bad);
}
