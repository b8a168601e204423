/*
 * The kernel's structures as far as the programs look at them. Field offsets
 * are taken from the running kernel's BTF when the programs are loaded
 * (preserve_access_index), so that one object serves all kernels; names and
 * nesting are Linux 6.1's, and later moves into unnamed unions are found.
 */
#ifndef LAUNCHERD_GUARD_KERNEL_VIEW_H
#define LAUNCHERD_GUARD_KERNEL_VIEW_H

#include <stdint.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((preserve_access_index)), \
    apply_to = record)
#endif

struct qstr {
	uint32_t len;
	const unsigned char *name;
};
struct super_block {
	uint32_t s_dev;
};
struct inode {
	uint16_t i_mode;
	unsigned long i_ino;
};
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	struct super_block *d_sb;
};
struct vfsmount {
	struct dentry *mnt_root;
};
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};
struct file {
	unsigned int f_flags;
	unsigned int f_mode;
	struct path f_path;
};
struct mm_struct {
	struct file *exe_file;
};
struct upid {
	int nr;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};
struct task_struct {
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct pid *thread_pid;
};
struct iattr {
	unsigned int ia_valid;
};
struct linux_binprm {
	struct file *file;
};
struct sock;
struct socket {
	struct sock *sk;
};
struct unix_sock {
	struct path path;
};

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif
