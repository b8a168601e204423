/*
 * The trapped calls: one handler for each group of them, one row of calls.def
 * for each call. A handler returns an enum answer or -errno; it has asked
 * notify_valid() after it read from the caller and before it acted.
 */
#ifndef BROKER_CALLS_H
#define BROKER_CALLS_H

struct broker;
struct call;
struct request;

/* The row of a call's number, NULL for what is not trapped. */
const struct call *calls_find(int nr);

/* calls_open.c */
int call_open(struct broker *, struct request *);
int call_creat(struct broker *, struct request *);
int call_openat2(struct broker *, struct request *);

/* calls_make.c */
int call_mkdir(struct broker *, struct request *);
int call_mknod(struct broker *, struct request *);
int call_symlink(struct broker *, struct request *);

/* calls_remove.c */
int call_unlink(struct broker *, struct request *);
int call_rmdir(struct broker *, struct request *);
int call_truncate(struct broker *, struct request *);

/* calls_rename.c */
int call_rename(struct broker *, struct request *);

/* calls_link.c */
int call_link(struct broker *, struct request *);

/* calls_bind.c */
int call_bind(struct broker *, struct request *);

/* calls.c */
int call_change(struct broker *, struct request *);
int call_chroot(struct broker *, struct request *);

#endif
