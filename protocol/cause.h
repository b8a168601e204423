/*
 * Small closed sets that travel as numbers in messages, with their names for
 * people and for the client protocol. One table each; *_name() returns the
 * name or "unknown".
 */
#ifndef PROTOCOL_CAUSE_H
#define PROTOCOL_CAUSE_H

/* clang-format off */

/* Why a run ended (SPEC K8). RUN_CAUSE_EXIT: nobody killed it. */
#define RUN_CAUSES(X) \
	X(EXIT, "exit") X(MANUAL, "manual") X(OOM, "oom") \
	X(TIMEOUT, "timeout") X(SILENCE, "silence") X(IDLE, "idle") \
	X(WALL, "wall") X(CLIENT_GONE, "clientGone") X(SERVICE, "service")
enum run_cause {
#define X(n, s) RUN_CAUSE_##n,
	RUN_CAUSES(X)
#undef X
	RUN_CAUSE_COUNT
};
const char *run_cause_name(unsigned);

/* Notices that come from launcherd. */
#define RUN_NOTICES(X) \
	X(PID_LIMIT, "pidLimit") X(LIMIT_NOT_SET, "limitNotSet") \
	X(SOURCE_SKIPPED, "sourceSkipped") X(GUARD_LOST, "guardLost")
enum run_notice {
#define X(n, s) RUN_NOTICE_##n,
	RUN_NOTICES(X)
#undef X
	RUN_NOTICE_COUNT
};
const char *run_notice_name(unsigned);

/* A repository that a run has made, at its end. */
enum repository_state {
	REPOSITORY_FOUND, /* and all of it was read */
	REPOSITORY_GONE, /* removed, or moved by another */
	REPOSITORY_UNREADABLE, /* some of it could not be read */
	REPOSITORY_STATES
};
#define REPOSITORIES_MAX 64 /* of a run */

/* SPEC L5. */
#define VIOLATIONS(X) \
	X(FILE_READ, "file-read*") X(FILE_CREATE, "file-write-create") \
	X(FILE_DATA, "file-write-data") X(FILE_UNLINK, "file-write-unlink") \
	X(FILE_RENAME, "file-write-rename") X(FILE_LINK, "file-write-link") \
	X(FILE_MODE, "file-write-mode") X(EXEC, "process-exec") \
	X(NETWORK, "network-outbound") X(DNS, "network-dns") \
	X(UNIX, "unix-connect") X(PUSH, "git-push") X(GUEST, "guest-protocol")
enum violation_action {
#define X(n, s) VIOLATION_##n,
	VIOLATIONS(X)
#undef X
	VIOLATION_COUNT
};
const char *violation_name(unsigned);

#define RESOLVE_STATUSES(X) \
	X(OK, "ok") X(NOT_FOUND, "name not found") \
	X(FAILED, "look-up failed") X(TIMEOUT, "look-up timed out") \
	X(BUSY, "too many look-ups")
enum resolve_status {
#define X(n, s) RESOLVE_##n,
	RESOLVE_STATUSES(X)
#undef X
	RESOLVE_STATUS_COUNT
};
const char *resolve_status_name(unsigned);

/* SPEC A16, in its order. */
#define PROBE_ROWS(X) \
	X(BUBBLEWRAP, "bubblewrap") X(NAMESPACES, "namespaces") \
	X(CGROUP, "cgroup") X(LANDLOCK, "landlock") X(SECCOMP, "seccomp") \
	X(GUARD_CREATE, "guard.create") X(GUARD_READ, "guard.read") \
	X(GUARD_CONNECT, "guard.connect") X(EGRESS_REFUSE, "egress.refuse") \
	X(EGRESS_TRANSPARENT, "egress.transparent") \
	X(USERNS, "userns.refused") X(PROCSYS, "procsys.readonly")
enum probe_row {
#define X(n, s) PROBE_##n,
	PROBE_ROWS(X)
#undef X
	PROBE_ROW_COUNT
};
const char *probe_row_name(unsigned);

/* What holds name rules (SPEC D, Z6). AUTO, as a choice, is the first that
 * passes its test; as an answer it says that none did. */
enum guard_mechanism {
	GUARD_AUTO,
	GUARD_BROKER,
	GUARD_BPF_LSM,
	GUARD_MECHANISMS
};
/* "broker", "bpf-lsm"; "none" else. */
const char *guard_mechanism_name(unsigned);

/* SPEC X10. */
#define API_ERRORS(X) \
	X(UNKNOWN_METHOD, 1, "unknownMethod") X(BAD_PARAMS, 2, "badParams") \
	X(BAD_STATE, 3, "badState") X(TOO_LARGE, 4, "tooLarge") \
	X(FORBIDDEN, 5, "forbidden") X(NOT_FOUND, 6, "notFound") \
	X(EXISTS, 7, "exists") X(LIMIT, 8, "limit") X(BUSY, 9, "busy") \
	X(UNAVAILABLE, 10, "unavailable") \
	X(GUARD_UNAVAILABLE, 11, "guardUnavailable") \
	X(UNCONFINED, 12, "unconfined") X(LOOKUP_FAILED, 13, "lookupFailed") \
	X(BAD_PATH, 14, "badPath") X(DENIED, 15, "denied") \
	X(NO_APPROVER, 16, "noApprover") X(TIMEOUT, 17, "timeout") \
	X(CREDENTIAL, 18, "credential") \
	X(COW_UNAVAILABLE, 19, "cowUnavailable") \
	X(UNSAFE_GIT, 20, "unsafeGit") X(OUTSIDE_ROOTS, 21, "outsideRoots") \
	X(CONFLICT, 22, "conflict") X(GONE, 23, "gone") \
	X(UNSUPPORTED, 24, "unsupported") X(HOST_ERROR, 25, "hostError") \
	X(RESTARTING, 26, "restarting") \
	X(VERSION_MISMATCH, 27, "versionMismatch") \
	X(INTERNAL, 99, "internal")
enum api_error {
	API_OK = 0,
#define X(n, c, s) API_##n = (c),
	API_ERRORS(X)
#undef X
};
const char *api_error_name(unsigned);

/* Descriptors that come with exec_answer and restore_exec. */
#define EXEC_IO_STDIN 1u
#define EXEC_IO_STDOUT 2u
#define EXEC_IO_STDERR 4u
#define EXEC_IO_TTY 8u

/* clang-format on */

#endif
