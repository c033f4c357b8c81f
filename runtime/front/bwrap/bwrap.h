/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bwrap - the command line of bubblewrap as a front: `cejail bwrap`, which is libexec/cejail/bwrap.
 *
 * Theory of operation.  The caller decides the policy; this front carries it out like bubblewrap.
 *
 *	bwrap_parse()    bwrap_options.c   arguments -> struct bwrap_config; no system calls
 *	bwrap_limits_*() bwrap_limits.c    --cejail-*: what can only tighten, from three sources
 *	bwrap_check()    bwrap_options.c   what excludes or requires what
 *	bwrap_run()      bwrap_monitor.c   clones the child, writes the status documents, waits
 *	bwrap_watch_*()  bwrap_watch.c     with limits: enforces them, and says how it ended
 *	bwrap_network_*() bwrap_network.c  with --cejail-network: the network of a run
 *	bwrap_inside()   bwrap_inside.c    the child: namespaces, tree, privileges, execve(2)
 *	bwrap_tree_*()   bwrap_tree.c      the root, one operation after the other
 *
 * With a pid namespace the child is its pid 1, which forks the program and reaps.  It tells the
 * monitor by a pipe how the program ended, and lives until no process is left.
 *
 * Each message is bubblewrap's own where one exists, because programs that start bwrap look for it.
 */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "profiles/config.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/step.h"
#include "runtime/front/bwrap/bwrap_limits.h"

#define BWRAP_FAILED   1    /* the exit status of each failure of bwrap itself */
#define BWRAP_ARGS_MAX 9000 /* as bubblewrap */

/* What an operation makes at `dest`. */
enum bwrap_kind {
	BWRAP_BIND,    /* a clone of the host's `source`, with what is mounted below it */
	BWRAP_OVERLAY, /* of the host's `layers`, below `source`; without one, below a new tmpfs */
	BWRAP_PROC,
	BWRAP_DEV,
	BWRAP_TMPFS,
	BWRAP_MQUEUE,
	BWRAP_DIR,
	BWRAP_FILE,      /* a file with the bytes that `fd` has */
	BWRAP_BIND_DATA, /* the same, in a mount of its own */
	BWRAP_SYMLINK,   /* a link to `source` */
	BWRAP_CHMOD,
	BWRAP_REMOUNT_RO,
};

struct bwrap_op {
	enum bwrap_kind kind;
	const char *source;
	const char *dest;      /* absolute, in the root */
	const char *work;      /* of an overlay with a `source` */
	struct strings layers; /* of an overlay: the last one is on top */
	int fd;                /* -1: none; of a bind: the source */
	bool is_read_only;     /* a bind or an overlay */
	bool has_devices;      /* a bind: no nodev */
	bool may_be_missing;   /* a bind: without `source`, nothing is done */
	int perms;             /* -1: the default of its kind */
	uint64_t size;         /* a tmpfs; 0: the kernel's default */
};

/* A change of the environment; without a value the variable goes, without a name all go. */
struct bwrap_variable {
	const char *name, *value;
};

enum bwrap_request { BWRAP_RUN, BWRAP_HELP, BWRAP_VERSION };

struct bwrap_config {
	enum bwrap_request request;
	const char *const *argv; /* of the program */
	const char *argv0;       /* its argv[0]; NULL: argv[0] */

	struct bwrap_op *ops; /* in the order of the arguments */
	size_t nops;
	struct bwrap_variable *variables; /* the same */
	size_t nvariables;
	struct strings lock_files; /* in the root */
	int *seccomp_fds;
	size_t nseccomp;
	bool seccomp_is_single; /* by --seccomp */

	uint64_t namespaces; /* CLONE_NEW*; the mount namespace is always new */
	uint64_t optional;   /* those of them that may fail */
	int64_t uid, gid;    /* in the sandbox; -1: the caller's */
	const char *hostname, *directory;
	int sync_fd, block_fd, info_fd, status_fd; /* -1: none */

	/* The capabilities: those that the process has, limited to `kept`, and `added`. */
	uint64_t caps_kept, caps_added;
	bool sets_caps;

	bool dies_with_parent, starts_session, is_pid_1, has_level_prefix;
	bool disables_userns, asserts_userns;
	struct bwrap_limits limits;
};

/* One row is one option: of the command line, of --help, of the table in cejail-bwrap(1). */
struct bwrap_parser;
struct bwrap_option {
	const char *name;
	const char *args; /* "SRC DEST"; "": none */
	const char *help; /* with `take` NULL: why it is refused, and what to do instead */
	int (*take)(struct bwrap_parser *p, const struct bwrap_option *o, const char *const *args,
		    struct cj_error *err);
	size_t offset;  /* of the member of struct bwrap_config */
	uint64_t value; /* what `take` makes of it */
};
extern const struct bwrap_option bwrap_options[];
extern const size_t bwrap_option_count;

/* Reads what --args FD has, and closes FD.  Returns as fd_read_all(). */
typedef int bwrap_reader(int fd, struct arena *a, char **out_text, size_t *out_size,
			 struct cj_error *err);

/*
 * bwrap_parse - the arguments after the program's name, which end with NULL.
 *
 * Borrows the arguments; the rest is in the arena.  No system calls, but those of `read`.
 */
int bwrap_parse(const char *const *args, bwrap_reader *read, struct arena *a,
		struct bwrap_config *out, struct cj_error *err);

/* More options of --cejail-*: words that blanks divide, of BWRAP_VARIABLE.  Copies them. */
int bwrap_parse_variable(const char *text, struct arena *a, struct bwrap_config *out,
			 struct cj_error *err);

/* Checks what the options say together.  A caller that is not root always has a user namespace. */
int bwrap_check(struct bwrap_config *c, uid_t caller, gid_t group, struct cj_error *err);

/* --- bwrap_tree.c ----------------------------------------------------------------------------- */

/*
 * The root while it is built.  It is a directory of a tmpfs, the base, which is "/" meanwhile.  A
 * path in the root is resolved inside it by openat2(2): a link in a tree that is bound there never
 * leads an operation to the host (CVE-2026-87766).
 */
struct bwrap_tree {
	const struct bwrap_config *config;
	bool has_new_proc;    /* the pid namespace is new */
	const char *terminal; /* of standard output, on the host; NULL: it is none */
	int proc_fd;          /* the host's /proc */
	int base_fd;
	int host_fd; /* the host's root */
	int root_fd; /* the root, or what is mounted on it last */
	size_t ndata;
	/* With a network of cejail's: all of these files of /etc; NULL: what the options show. */
	const char *resolv_conf, *hosts;
};
#define BWRAP_TREE_NULL                                                                            \
	((struct bwrap_tree){ .proc_fd = -1, .base_fd = -1, .host_fd = -1, .root_fd = -1 })

/*
 * bwrap_tree_build - makes the root and carries out all operations; "/" is the base afterwards.
 *
 * Runs in: the child, in its new namespaces, with capabilities over them.
 * Fails:   with bubblewrap's own sentence; the end of the mount namespace undoes it.
 */
int bwrap_tree_build(struct bwrap_tree *t, struct cj_error *err);

/* Makes the root "/", and removes the host's root and the base from the namespace. */
int bwrap_tree_enter(struct bwrap_tree *t, struct cj_error *err);

/* --- bwrap_inside.c --------------------------------------------------------------------------- */

/* By the pipe to the monitor. */
struct bwrap_report {
	bool has_failed;       /* the program was not executed */
	int status;            /* else how it ended: wait(2) */
	struct cj_error error; /* why it was not */
};

/* What the child takes over from the monitor. */
struct bwrap_start {
	const struct bwrap_config *config;
	uint64_t namespaces; /* that it is in */
	uid_t uid;           /* of the caller */
	gid_t gid;
	uint64_t caps;         /* the caller's, permitted and in its bounding set */
	const char *directory; /* of the caller; NULL: unknown */
	struct bwrap_tree tree;
	struct sock_fprog *filters; /* those of the options, then ours */
	size_t nfilters;
	int go_fd;     /* one byte: the monitor has written who we are */
	int report_fd; /* struct bwrap_report; with limits one byte before it: we run */
	/* With limits: it dies with the monitor, and nothing inside can undo them. */
	bool is_limited;
	bool locks_mounts; /* the program will have CAP_SYS_ADMIN over its user namespace */
	struct limits_spec rlimits;         /* CPU time; processes, if no cgroup limits them */
	const struct network_spec *network; /* that the monitor builds; NULL: none */
	struct step_link link;              /* then to the monitor */
};

/* The life of the child; it never returns. */
_Noreturn void bwrap_inside(struct bwrap_start *s);

/* --- bwrap_monitor.c -------------------------------------------------------------------------- */

/* Runs the program; returns the exit status. */
int bwrap_run(struct bwrap_config *c, struct cj_error *err);

/* What fd_close_others() leaves open. */
#define BWRAP_FDS_MAX 64
struct bwrap_fds {
	int fds[BWRAP_FDS_MAX];
	size_t count;
};

/* Prints the error as bubblewrap does. */
void bwrap_print_error(const struct bwrap_config *c, const struct cj_error *err);
