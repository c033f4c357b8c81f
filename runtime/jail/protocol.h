/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protocol - the messages between supervisor and init, in order (step.h sends them).
 */
#pragma once

enum step {
	STEP_NETWORK, /* init -> supervisor: struct opened, a socket of the jail's namespace and the
			 listeners of --connect tcp:; with a network or ports */
	STEP_IDS_MAPPED, /* supervisor -> init: uid_map and gid_map are written; ID-mapped sources
			    of the overlays, in their order, where they are not the caller's own */
	STEP_SEALED, /* init -> supervisor: struct sealed, descriptors; init waits for the program
		      */
	STEP_WARM, /* supervisor -> init: as STEP_START, for a launcher, which also gets a socket */
	STEP_ADOPT,   /* supervisor -> init: instead of STEP_WARM; a fork of a zygote will come */
	STEP_ADOPTED, /* init -> supervisor: the launcher's socket, the jail's namespaces in the order
			 of enum zygote_namespace, and the Landlock ruleset, where there is one */
	STEP_WARMED,      /* init -> supervisor: struct warmed; the launcher is ready */
	STEP_INPUT,       /* supervisor -> init: struct input and, for a file, its bytes */
	STEP_FILES,       /* supervisor -> init: struct files_head and a pack of files: inputs.h */
	STEP_SETUP,       /* supervisor -> init: as STEP_START, for the command of --setup.  When it
			 has ended init kills what it left, and waits for the program */
	STEP_START,       /* supervisor -> init: struct start, the program's strings, its stdio */
	STEP_GO,          /* supervisor -> init: arguments for the waiting launcher */
	STEP_STARTED,     /* init -> supervisor: struct executed; the launcher has its arguments, or
			 execve(2) succeeded; with a tty its master end */
	STEP_EXEC_FAILED, /* init -> supervisor: struct executed; the program has not run */
	STEP_ENDED,       /* init -> supervisor: struct ended; the main process has ended */
	/* Of a session (runtime/session/session_init.c).  "Supervisor" and "init" of the steps from
	 * STEP_INPUT to STEP_ENDED are an exec's worker and its reaper then. */
	STEP_SESSION, /* supervisor -> init: instead of STEP_START; programs will come one by one */
	STEP_SERVING, /* init -> supervisor: struct serving */
	STEP_EXEC,   /* supervisor -> init: fork a reaper, with this end of a socket pair and, where
			 the exec has a cgroup, its cgroup.procs, open for writing */
	STEP_REAPER, /* reaper -> exec worker: struct reaper; it waits for its program */
	STEP_EMPTY,  /* reaper -> exec worker: it has no child left and ends */
	STEP_COUNT
};

extern const char *const step_names[STEP_COUNT];

/* Descriptors of the program; the sources of our launchers, REPLs and modules have them, too. */
#define CHANNEL_FD 3 /* of a launcher or a REPL */
#define CALLS_FD   4 /* for the calls of its tools: supervise/calls.h */

/*
 * How long the supervisor waits for one step of init before the payload runs.  It only ends what
 * hangs: on a machine whose processors are all taken, a step can need more than ten seconds.
 */
#define STEP_TIMEOUT_MS 20000

/* With STEP_NETWORK: which slots of enum network_slot the descriptors fill, in their order. */
struct opened {
	uint32_t slots;
};

struct ids_mapped {
	uint32_t may_setgroups; /* else the kernel denies it: user_namespaces(7) */
	uint32_t uid, gid;      /* outside: init's own without a user namespace */
};

/* The namespaces of a jail, in the order in which a fork of a zygote enters them. */
enum zygote_namespace {
	ZYGOTE_USER, /* the one that owns all others */
	ZYGOTE_MOUNT,
	ZYGOTE_NETWORK,
	ZYGOTE_IPC,
	ZYGOTE_UTS,
	ZYGOTE_CGROUP,
	ZYGOTE_PID,
	ZYGOTE_PROGRAM_USER, /* the program's own, below the first */
	ZYGOTE_NAMESPACES
};

/*
 * With STEP_SEALED: /box, /, /proc, the root of each overlay in the order of the binds, and the
 * seccomp listener, where there is one.
 */
enum sealed_fd { SEALED_BOX, SEALED_ROOT, SEALED_PROC, SEALED_OVERLAYS };
struct sealed {
	uint32_t has_landlock;
	int32_t hostname_errno; /* of sethostname(2); 0: the jail has its host name */
};

/* Of STEP_FILES.  The pack is step_bytes. */
struct files_head {
	uint32_t replaces; /* as in struct input */
};

/*
 * With STEP_START NUL-terminated strings, as step_bytes: the working directory, a launcher's script
 * if it has one, argc arguments, envc variables, ownc arguments.
 * Then stdin, stdout and stderr, unless the program gets a terminal; with has_calls the socket for
 * its calls, which becomes its descriptor 4; the channel of a REPL, which becomes its descriptor 3.
 */
struct start {
	uint32_t argc, envc, wants_tty, has_script, has_calls;
	/* The command of the code's own "#!" line, which is tried first, and how many of the
	 * arguments it replaces.  0: there is none. */
	uint32_t ownc, own_replaces;
};
#define START_STRINGS_MAX (2u << 20)  /* the most that execve(2) takes with an 8 MiB stack */
#define START_SCRIPT_MAX  (64u << 10) /* a launcher reads it at once, so its socket must hold it */

/*
 * With STEP_GO such strings, too: "1" if the program has an input, else "0"; the
 * same for tools that it may call; the code's path; the arguments.  The launcher reads them to the
 * end of file.
 */

/* With STEP_STARTED and STEP_EXEC_FAILED. */
struct executed {
	int32_t exec_errno; /* 0: it runs */
	int32_t own_errno;  /* why the interpreter of its "#!" line could not run it; 0: it does */
	int32_t main_pid;   /* in the jail's pid namespace; 0: it doesn't run */
};

struct warmed {
	uint64_t cpu_us; /* used by the launcher so far */
};

struct ended {
	int32_t wait_status; /* as wait(2) gives it */
	uint32_t is_alone;   /* init is the only process in the pid namespace, so none can fork */
	uint64_t cpu_user_us, cpu_system_us; /* of all that init has reaped */
	uint64_t max_rss_bytes;              /* of the largest of them: getrusage(2) */
};

/* With STEP_SERVING. */
struct serving {
	uint32_t isolation; /* enum session_isolation */
};

struct reaper {
	int32_t pid; /* in the jail's pid namespace */
};
