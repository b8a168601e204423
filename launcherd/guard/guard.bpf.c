/*
 * Name rules in the kernel: BPF programs on LSM hooks. A process that carries
 * a label is judged by the rules of its run; all others pass after one look
 * into their task storage.
 *
 * The walk goes from the name that is made or changed towards the root of its
 * file system, by dentries, so that bind mounts, chroot and namespaces do not
 * matter; it ends at the first guarded place. Everything that cannot be read,
 * is too long or too deep is denied. Only what the kernel hands over is
 * trusted; the table was checked in user space, and every index is bounded
 * here once more, since the verifier asks for it.
 *
 * inode_* hooks, not path_*: stacked file systems reach the lower one only
 * through these. Not mmap_file: its file may be NULL, which verifiers from
 * 6.3 on take for impossible and drop the check. For the same reason the inode
 * of a hook's own dentry is read with bpf_probe_read_kernel().
 */
#include <stdbool.h>
#include <stdint.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "launcherd/guard/kernel_view.h"
#include "launcherd/guard/policy.h"
#include "protocol/cause.h"

#define EPERM 1
#define DENY (-EPERM)

#define FMODE_READ 1u
#define FMODE_WRITE 2u
#define O_TRUNC 01000u
#define ATTR_SIZE 8u
#define TYPE_OF(mode) ((mode)&0170000u)
#define TYPE_DIRECTORY 0040000u
#define TYPE_LINK 0120000u

/* The compiler knows some of these to be redundant; the verifier does not. */
#define BOUND(v, mask) asm volatile("%0 &= %1" : "+r"(v) : "i"(mask))
#define OPAQUE(v) asm volatile("" : "+r"(v))

char guard_licence[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct guard_label);
} labels SEC(".maps");

struct one_policy {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct guard_policy));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, GUARD_SLOTS);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(uint32_t));
	__array(values, struct one_policy);
} runs SEC(".maps");

struct some_places {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP); /* as long as it must be */
	__uint(max_entries, 1);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct dfa_place));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2 * GUARD_SLOTS);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(uint32_t));
	__array(values, struct some_places);
} places_of_runs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, GUARD_EVENTS_BYTES);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GUARD_SLOTS);
	__type(key, uint32_t);
	__type(value, uint64_t);
} lost SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct guard_about);
} about SEC(".maps");

struct name {
	unsigned char text[256]; /* zero behind the end */
};

/* What was found, for the event. */
struct finding {
	uint32_t asked;
	uint32_t action;
	uint32_t denied;
	uint32_t rule;
	uint32_t entry;
	uint32_t names; /* between the place and the name, this one too */
	uint32_t state; /* of the table */
};

/* ---------------------------------------------------------------- the table */

/* Global functions are verified once, whoever calls them; their pointers are
 * checked for NULL because the verifier does not know their callers. */

/* dfa_name() */
__attribute__((noinline)) uint64_t
guard_name(const struct guard_policy *policy, const struct name *name,
    uint32_t len)
{
	uint64_t hash = DFA_HASH_BEGIN, state = 0, at, byte;

	if (policy == NULL || name == NULL)
		return 0;
	for (uint32_t i = 0; i < DFA_NAME_MAX; i++) {
		if (i >= len)
			break;
		at = len - 1 - i;
		BOUND(at, 0xff);
		byte = name->text[at];
		hash = dfa_hash(hash, (unsigned char)byte);
		state += policy->cls[byte];
		BOUND(state, 0xffff);
		state = policy->next[state];
	}
	state += policy->ncls;
	BOUND(state, 0xffff);
	return (hash >> DFA_HASH_SHIFT << DFA_HASH_SHIFT) | policy->next[state];
}

/* GUARD_ENTRIES: none. */
__attribute__((noinline)) uint32_t
guard_find_entry(const struct guard_policy *policy, uint64_t ino, uint32_t dev)
{
	if (policy == NULL)
		return GUARD_ENTRIES;
	for (uint32_t i = 0; i < GUARD_ENTRIES; i++)
		if (i < policy->nentries && policy->entry[i].ino == ino &&
		    policy->entry[i].dev == dev)
			return i;
	return GUARD_ENTRIES;
}

/* dfa_verdict_join(); rule << 16 | mask. Not inline: its branches would
 * multiply with the turns of the loops around it. */
__attribute__((noinline)) uint32_t
guard_join(uint32_t to, uint32_t v)
{
	bool more = (to & DFA_ALL & ~DFA_MOVE) != 0;
	bool has = (v & DFA_ALL & ~DFA_MOVE) != 0;
	uint32_t mask = (to | v) & DFA_ALL;

	if ((v & DFA_ALL) == 0)
		return to;
	if ((to & DFA_ALL) == 0 || (has && !more) ||
	    (has == more && v >> 16 < to >> 16))
		to = v;
	return (to & 0xffff0000u) | mask;
}

static __always_inline uint32_t
packed(struct dfa_verdict v)
{
	return (uint32_t)v.rule << 16 | v.mask;
}

static __always_inline const struct dfa_place *
place_at(uint32_t places, uint32_t number)
{
	void *map = bpf_map_lookup_elem(&places_of_runs, &places);

	return map == NULL ? NULL : bpf_map_lookup_elem(map, &number);
}

/* place_child(): the number of the child, or 0, which is nobody's child. */
__attribute__((noinline)) uint32_t
guard_child(uint32_t places, uint32_t from, uint32_t n, uint64_t name)
{
	name >>= DFA_HASH_SHIFT;
	for (uint32_t i = 0; i < 17 && n > 0; i++) {
		const struct dfa_place *middle = place_at(places, from + n / 2);

		if (middle == NULL)
			return 0;
		if (middle->name == name)
			return from + n / 2;
		if (middle->name < name) {
			from += n / 2 + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return 0;
}

/* walk_places() */
__attribute__((noinline)) uint32_t
guard_tree(uint32_t places, const struct guard_names *names, uint32_t tree,
    uint32_t depth)
{
	uint32_t to = DFA_RULE_NONE << 16, at = tree;
	uint64_t k;

	if (names == NULL)
		return DFA_RULE_TOO_DEEP << 16 | DFA_ALL;
	for (uint32_t i = 1; i <= DFA_DEPTH_MAX; i++) {
		const struct dfa_place *place;

		if (i > depth)
			break;
		place = place_at(places, at);
		if (place == NULL)
			return DFA_RULE_TOO_DEEP << 16 | DFA_ALL;
		if (place->nchildren == 0)
			break;
		k = depth - i;
		BOUND(k, DFA_DEPTH_MAX - 1);
		at = guard_child(places, place->child, place->nchildren,
		    names->n[k]);
		if (at == 0)
			break;
		place = place_at(places, at);
		if (place == NULL)
			return DFA_RULE_TOO_DEEP << 16 | DFA_ALL;
		to = guard_join(to,
		    packed(i < depth ? place->below : place->own));
	}
	return to;
}

/* The trees that begin at any depth. */
__attribute__((noinline)) uint32_t
guard_any(uint32_t places, const struct guard_names *names, uint32_t depth)
{
	uint32_t v = DFA_RULE_NONE << 16;

	if (names == NULL)
		return DFA_RULE_TOO_DEEP << 16 | DFA_ALL;
	for (uint32_t i = 0; i < DFA_DEPTH_MAX; i++) {
		if (i >= depth)
			break;
		v = guard_join(v,
		    guard_tree(places, names, DFA_PLACE_ANY, depth - i));
	}
	return v;
}

/* Goes on from a place to its root; the new state. */
__attribute__((noinline)) uint32_t
guard_prefix(const struct guard_policy *policy, struct guard_names *names,
    uint32_t number, uint32_t path_state, uint32_t depth)
{
	uint64_t state = path_state, which = number, k;
	const struct guard_entry *entry;

	if (policy == NULL || names == NULL)
		return 0;
	BOUND(which, GUARD_ENTRIES - 1);
	entry = &policy->entry[which];
	for (uint32_t i = 0; i < GUARD_PREFIX_MAX; i++) {
		if (i >= entry->nprefix)
			break;
		k = depth + i;
		BOUND(k, DFA_DEPTH_MAX - 1);
		names->n[k] = entry->prefix[i];
		state += entry->prefix[i] & 0xffff;
		BOUND(state, 0xffff);
		state = policy->next[state];
	}
	return (uint32_t)state;
}

/* dfa_walk_end() for a path that has reached its guarded place. */
__attribute__((noinline)) uint32_t
guard_verdict(const struct guard_policy *policy, struct guard_names *names,
    uint32_t number, uint32_t path_state, uint32_t depth)
{
	uint32_t v = DFA_RULE_NONE << 16;
	uint64_t which = number, state;
	const struct guard_entry *entry;

	if (policy == NULL || names == NULL)
		return DFA_RULE_TOO_DEEP << 16 | DFA_ALL;
	BOUND(which, GUARD_ENTRIES - 1);
	entry = &policy->entry[which];
	if (depth + entry->nprefix >= DFA_DEPTH_MAX)
		return DFA_RULE_TOO_DEEP << 16 | DFA_ALL;
	state = path_state;
	if (entry->nprefix > 0) {
		state = guard_prefix(policy, names, number, path_state, depth);
		depth += entry->nprefix;
	}
	state += policy->nnames + entry->root;
	BOUND(state, 0xffff);
	state = policy->next[state];
	if (state != 0) {
		state--;
		BOUND(state, DFA_VERDICTS_MAX - 1);
		v = packed(policy->verdict[state]);
	}
	if (policy->nplaces == 0)
		return v;
	v = guard_join(v,
	    guard_tree(policy->places, names, entry->root, depth));
	if (policy->any_places != 0)
		v = guard_join(v, guard_any(policy->places, names, depth));
	return v;
}

/* ---------------------------------------------------------------- events */

/* One name more, where the event says; false when it does not fit. The length
 * is kept in the event, out of the verifier's sight: else it would follow each
 * possible one through the loops. */
__attribute__((noinline)) int
guard_append(struct guard_event *ev, uint64_t dentry, uint32_t to_program)
{
	struct dentry *at = (struct dentry *)dentry;
	const unsigned char *name = BPF_CORE_READ(at, d_name.name);
	uint64_t len = BPF_CORE_READ(at, d_name.len), off;

	if (ev == NULL)
		return 0;
	BOUND(len, 0xff);
	if (to_program != 0) {
		off = ev->exe_len;
		if (off >= GUARD_EXE_BYTES ||
		    bpf_probe_read_kernel(ev->exe + off, (uint32_t)len, name) <
			0)
			return 0;
		ev->exe[off + len] = '\0';
		ev->exe_len = (uint16_t)(off + len + 1);
		return 1;
	}
	off = ev->path_len;
	if (off >= GUARD_PATH_BYTES ||
	    bpf_probe_read_kernel(ev->path + off, (uint32_t)len, name) < 0)
		return 0;
	ev->path[off + len] = '\0';
	ev->path_len = (uint32_t)(off + len + 1);
	return 1;
}

struct cursor {
	struct dentry *at;
	struct mount *mount;
};

/* One step towards the root of all mounts. The dentry whose name was passed,
 * 0 when there is none, 1 at the end. */
__attribute__((noinline)) uint64_t
guard_step(struct cursor *c)
{
	struct mount *mount, *parent;
	struct dentry *at, *up;

	if (c == NULL)
		return 1;
	at = c->at;
	mount = c->mount;
	up = BPF_CORE_READ(at, d_parent);
	if (up == NULL)
		return 1;
	if (at != up && at != BPF_CORE_READ(mount, mnt.mnt_root)) {
		c->at = up;
		return (uint64_t)at;
	}
	parent = BPF_CORE_READ(mount, mnt_parent);
	if (parent == mount)
		return 1;
	c->at = BPF_CORE_READ(mount, mnt_mountpoint);
	c->mount = parent;
	return 0;
}

/* The program, as it is named in the run's own mounts. Not exact while mounts
 * change: nothing hangs on it. */
__attribute__((noinline)) int
guard_put_program(struct guard_event *ev)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file *file = BPF_CORE_READ(task, mm, exe_file);
	void *vfs = BPF_CORE_READ(file, f_path.mnt);
	struct cursor c = { BPF_CORE_READ(file, f_path.dentry),
		vfs - bpf_core_field_offset(struct mount, mnt) };
	uint64_t name;

	if (ev == NULL)
		return 0;
	for (uint32_t i = 0; i < GUARD_EXE_DEPTH; i++) {
		name = guard_step(&c);
		if (name == 1)
			break;
		if (name != 0)
			(void)guard_append(ev, name, 1);
	}
	return 0;
}

/* `names` of them, from the dentry at that address on. */
__attribute__((noinline)) int
guard_put_path(struct guard_event *ev, uint64_t dentry, uint32_t names)
{
	if (ev == NULL)
		return 0;
	for (uint32_t i = 0; i < DFA_DEPTH_MAX; i++) {
		if (i >= names || guard_append(ev, dentry, 0) == 0)
			break;
		dentry =
		    (uint64_t)BPF_CORE_READ((struct dentry *)dentry, d_parent);
	}
	return 0;
}

static __always_inline uint32_t
inside_pid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	uint64_t level = BPF_CORE_READ(pid, level);
	void *numbers = (void *)pid + bpf_core_field_offset(pid->numbers);
	int nr = 0;

	(void)bpf_probe_read_kernel(&nr, sizeof(nr),
	    numbers + level * bpf_core_type_size(struct upid) +
		bpf_core_field_offset(struct upid, nr));
	return (uint32_t)nr;
}

static __noinline void
record(const struct guard_label *label, struct dentry *at,
    const struct finding *f)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct guard_event *ev;
	uint32_t slot = label->slot;
	uint64_t address = 0, *count;

	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (ev == NULL) {
		count = bpf_map_lookup_elem(&lost, &slot);
		if (count != NULL)
			(void)__sync_fetch_and_add(count, 1);
		return;
	}
	ev->gen = label->gen;
	ev->slot = slot;
	ev->pid = inside_pid(task);
	ev->entry = (uint16_t)f->entry;
	ev->rule = (uint16_t)f->rule;
	ev->asked = (uint16_t)f->asked;
	ev->denied = (uint16_t)f->denied;
	ev->action = (uint16_t)f->action;
	if (bpf_get_current_comm(ev->comm, sizeof(ev->comm)) < 0)
		ev->comm[0] = '\0';
	ev->exe_len = 0;
	ev->path_len = 0;
	(void)guard_put_program(ev);
	/* A pointer of the kernel's types is no number to the verifier, until
	 * it was read as one. */
	(void)bpf_probe_read_kernel(&address, sizeof(address), &at);
	(void)guard_put_path(ev, address, f->names);
	bpf_ringbuf_submit(ev, 0);
}

/* ---------------------------------------------------------------- the walk */

static __always_inline struct guard_label *
own_label(void)
{
	return bpf_task_storage_get(&labels, bpf_get_current_task_btf(), NULL,
	    0);
}

static __always_inline const struct guard_policy *
policy_of(const struct guard_label *label)
{
	uint32_t slot = label->slot, zero = 0;
	const struct guard_policy *policy;
	void *run = bpf_map_lookup_elem(&runs, &slot);

	if (run == NULL)
		return NULL;
	policy = bpf_map_lookup_elem(run, &zero);
	if (policy == NULL || policy->gen != label->gen)
		return NULL;
	return policy;
}

/* By the inode's number; the dentry of a hook may have no inode yet. */
static __always_inline uint32_t
entry_of(const struct guard_policy *policy, struct dentry *d, uint32_t dev)
{
	struct inode *inode = NULL;
	unsigned long ino = 0;

	if (bpf_probe_read_kernel(&inode, sizeof(inode), &d->d_inode) < 0 ||
	    inode == NULL ||
	    bpf_probe_read_kernel(&ino, sizeof(ino), &inode->i_ino) < 0)
		return GUARD_ENTRIES;
	if ((policy->bloom >> (ino & 63) & 1) == 0)
		return GUARD_ENTRIES;
	return guard_find_entry(policy, ino, dev);
}

/*
 * Not inline: its buffer is not to be on the stack of what comes after it.
 * Goes from *at to a guarded place. 0: none above it; 1: there is one, in *f;
 * -1: too deep, or a name that cannot be read.
 */
static __noinline int
walk(const struct guard_policy *policy, struct guard_names *names,
    struct dentry *at, struct finding *f)
{
	uint64_t state = policy->start, known;
	uint32_t dev = at->d_sb->s_dev, len, entry;
	struct name name;

	__builtin_memset(&name, 0, sizeof(name));
	entry = entry_of(policy, at, dev);
	for (uint32_t i = 0; i < DFA_DEPTH_MAX; i++) {
		struct dentry *up = at->d_parent;

		f->names = i;
		if (entry < GUARD_ENTRIES) {
			f->entry = entry;
			f->state = (uint32_t)state;
			return 1;
		}
		if (up == at)
			return 0;
		len = at->d_name.len;
		if (len == 0 || len > DFA_NAME_MAX)
			return -1;
		if (bpf_probe_read_kernel(name.text, len, at->d_name.name) < 0)
			return -1;
		known = guard_name(policy, &name, len);
		names->n[i] = known;
		state += known & 0xffff;
		BOUND(state, 0xffff);
		state = policy->next[state];
		at = up;
		entry = GUARD_ENTRIES;
		if ((policy->bloom >> (at->d_inode->i_ino & 63) & 1) != 0)
			entry =
			    guard_find_entry(policy, at->d_inode->i_ino, dev);
	}
	return -1;
}

/* Who asks: a labelled process, in whatever way. DENY or 0. */
static __noinline int
judge(struct guard_label *label, struct dentry *at, uint32_t asked,
    uint32_t action)
{
	const struct guard_policy *policy = policy_of(label);
	struct finding f = { .asked = asked,
		.action = action,
		.rule = DFA_RULE_TOO_DEEP,
		.denied = asked,
		.entry = GUARD_ENTRIES };
	uint32_t verdict;
	int r;

	if (policy == NULL)
		return DENY;
	if ((policy->masks & asked) == 0)
		return 0;
	r = walk(policy, &label->names, at, &f);
	if (r == 0)
		return 0;
	if (r > 0) {
		verdict = guard_verdict(policy, &label->names, f.entry, f.state,
		    f.names);
		f.denied = verdict & asked;
		f.rule = verdict >> 16;
		if (f.denied == 0)
			return 0;
	}
	/* A name that no file system takes, which the hook is asked about before
	 * anybody has looked: it fails anyway, as no violation. */
	if (r < 0 && f.names == 0)
		return DENY;
	record(label, at, &f);
	return DENY;
}

static __always_inline int
ask(struct dentry *at, uint32_t asked, uint32_t action)
{
	struct guard_label *label = own_label();

	return label == NULL ? 0 : judge(label, at, asked, action);
}

/* 0 when there is no inode. */
static __always_inline uint32_t
type_of(struct dentry *d)
{
	struct inode *inode = NULL;
	uint16_t mode = 0;

	(void)bpf_probe_read_kernel(&inode, sizeof(inode), &d->d_inode);
	if (inode != NULL)
		(void)bpf_probe_read_kernel(&mode, sizeof(mode),
		    &inode->i_mode);
	return TYPE_OF(mode);
}

/* ---------------------------------------------------------------- labels */

/* io workers too. Without room for the label there is no child. */
SEC("lsm/task_alloc")
int
BPF_PROG(guard_task_alloc, struct task_struct *task)
{
	struct guard_label *label = own_label(), *child;

	if (label == NULL)
		return 0;
	child = bpf_task_storage_get(&labels, task, NULL,
	    BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (child == NULL)
		return DENY;
	child->gen = label->gen;
	child->slot = label->slot;
	return 0;
}

/* No seccomp filter of ours stands behind a label; this does. */
SEC("lsm/bpf")
int
BPF_PROG(guard_bpf)
{
	return own_label() == NULL ? 0 : DENY;
}

/* ---------------------------------------------------------------- names */

#define HOOK_NEW(hook, asked, action) \
	SEC("lsm/" #hook) \
	int BPF_PROG(guard_##hook, void *dir, struct dentry *dentry) \
	{ \
		(void)dir; \
		return ask(dentry, asked, action); \
	}
HOOK_NEW(inode_mkdir, DFA_WRITE, VIOLATION_FILE_CREATE)
HOOK_NEW(inode_symlink, DFA_WRITE | DFA_MOVE, VIOLATION_FILE_CREATE)
HOOK_NEW(inode_rmdir, DFA_WRITE, VIOLATION_FILE_UNLINK)

/* What a file or link of this name asks beside WRITE: one called .git names a
 * tree elsewhere, whose configuration git believes, as a link does. */
static __always_inline uint32_t
file_asks(struct dentry *d, uint32_t type)
{
	unsigned char name[4] = { 0 };

	if (type == TYPE_LINK)
		return DFA_WRITE | DFA_MOVE;
	if (d->d_name.len != sizeof(name))
		return DFA_WRITE;
	if (bpf_probe_read_kernel(name, sizeof(name), d->d_name.name) < 0)
		return DFA_WRITE | DFA_MOVE;
	if (name[0] != '.' || (name[1] | 0x20) != 'g' ||
	    (name[2] | 0x20) != 'i' || (name[3] | 0x20) != 't')
		return DFA_WRITE;
	return DFA_WRITE | DFA_MOVE;
}

#define HOOK_FILE(hook, action) \
	SEC("lsm/" #hook) \
	int BPF_PROG(guard_##hook, void *dir, struct dentry *dentry) \
	{ \
		struct guard_label *label = own_label(); \
		(void)dir; \
		if (label == NULL) \
			return 0; \
		return judge(label, dentry, \
		    file_asks(dentry, type_of(dentry)), action); \
	}
HOOK_FILE(inode_create, VIOLATION_FILE_CREATE)
HOOK_FILE(inode_mknod, VIOLATION_FILE_CREATE)
HOOK_FILE(inode_unlink, VIOLATION_FILE_UNLINK)

SEC("lsm/inode_link")
int
BPF_PROG(guard_inode_link, struct dentry *old, void *dir, struct dentry *new)
{
	struct guard_label *label = own_label();

	(void)dir;
	if (label == NULL)
		return 0;
	/* A second name would take the protection away. */
	if (judge(label, old, DFA_WRITE | DFA_READ, VIOLATION_FILE_LINK) != 0)
		return DENY;
	return judge(label, new, file_asks(new, type_of(old)),
	    VIOLATION_FILE_LINK);
}

static __always_inline uint32_t
move_asks(struct dentry *d, uint32_t type)
{
	return type == TYPE_DIRECTORY ? DFA_WRITE | DFA_MOVE :
					file_asks(d, type);
}

/* An exchange is asked twice, the second time the other way round. */
SEC("lsm/inode_rename")
int
BPF_PROG(guard_inode_rename, void *old_dir, struct dentry *old, void *new_dir,
    struct dentry *new)
{
	struct guard_label *label = own_label();
	uint32_t type;

	(void)old_dir;
	(void)new_dir;
	if (label == NULL)
		return 0;
	type = type_of(old);
	if (judge(label, new, move_asks(new, type), VIOLATION_FILE_RENAME) != 0)
		return DENY;
	return judge(label, old, move_asks(old, type) | DFA_READ,
	    VIOLATION_FILE_RENAME);
}

/* ---------------------------------------------------------------- metadata */

/* The dentry stands first or second, as the kernel has it: the loader leaves
 * out the one that does not fit. */
#define HOOK_META(hook) \
	SEC("lsm/" #hook) \
	int BPF_PROG(guard_##hook##_0, struct dentry *dentry) \
	{ \
		return ask(dentry, DFA_WRITE, VIOLATION_FILE_MODE); \
	} \
	SEC("lsm/" #hook) \
	int BPF_PROG(guard_##hook##_1, void *first, struct dentry *dentry) \
	{ \
		(void)first; \
		return ask(dentry, DFA_WRITE, VIOLATION_FILE_MODE); \
	}
HOOK_META(inode_setxattr)
HOOK_META(inode_removexattr)
HOOK_META(inode_set_acl)
HOOK_META(inode_remove_acl)

static __always_inline int
set_attributes(struct dentry *dentry, const struct iattr *attr)
{
	return ask(dentry, DFA_WRITE,
	    (attr->ia_valid & ATTR_SIZE) != 0 ? VIOLATION_FILE_DATA :
						VIOLATION_FILE_MODE);
}

SEC("lsm/inode_setattr")
int
BPF_PROG(guard_inode_setattr_0, struct dentry *dentry, struct iattr *attr)
{
	return set_attributes(dentry, attr);
}

SEC("lsm/inode_setattr")
int
BPF_PROG(guard_inode_setattr_1, void *idmap, struct dentry *dentry,
    struct iattr *attr)
{
	(void)idmap;
	return set_attributes(dentry, attr);
}

/* ---------------------------------------------------------------- contents */

static __always_inline int
ask_file(struct file *file, bool truncates)
{
	struct guard_label *label = own_label();
	uint32_t mode = file->f_mode;

	if (label == NULL)
		return 0;
	if ((mode & FMODE_WRITE) != 0 || truncates) {
		if (judge(label, file->f_path.dentry,
			file_asks(file->f_path.dentry, 0),
			VIOLATION_FILE_DATA) != 0)
			return DENY;
	}
	if ((mode & FMODE_READ) == 0)
		return 0;
	return judge(label, file->f_path.dentry, DFA_READ, VIOLATION_FILE_READ);
}

SEC("lsm/file_open")
int
BPF_PROG(guard_file_open, struct file *file)
{
	return ask_file(file, (file->f_flags & O_TRUNC) != 0);
}

/* By a socket from outside. */
SEC("lsm/file_receive")
int
BPF_PROG(guard_file_receive, struct file *file)
{
	return ask_file(file, false);
}

SEC("lsm/file_truncate")
int
BPF_PROG(guard_file_truncate, struct file *file)
{
	return ask(file->f_path.dentry, DFA_WRITE, VIOLATION_FILE_DATA);
}

SEC("lsm/bprm_check_security")
int
BPF_PROG(guard_bprm_check_security, struct linux_binprm *bprm)
{
	return ask(bprm->file->f_path.dentry, DFA_EXEC, VIOLATION_EXEC);
}

/* ---------------------------------------------------------------- sockets */

/* The inode that is really reached, not the caller's string. */
static __always_inline int
ask_socket(struct sock *sock)
{
	struct unix_sock *unix_sock = bpf_skc_to_unix_sock(sock);
	struct dentry *dentry;

	if (unix_sock == NULL)
		return 0;
	dentry = unix_sock->path.dentry;
	return dentry == NULL ? 0 : ask(dentry, DFA_CONNECT, VIOLATION_UNIX);
}

SEC("lsm/unix_stream_connect")
int
BPF_PROG(guard_unix_stream_connect, void *sock, struct sock *other)
{
	(void)sock;
	return ask_socket(other);
}

SEC("lsm/unix_may_send")
int
BPF_PROG(guard_unix_may_send, void *sock, struct socket *other)
{
	struct sock *sk = other->sk;

	(void)sock;
	return sk == NULL ? 0 : ask_socket(sk);
}
