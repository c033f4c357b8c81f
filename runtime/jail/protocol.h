/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protocol - what supervisor and init say to each other, in order (see step.h).
 */
#pragma once

#include <stdint.h>

enum step {
	STEP_NETWORK, /* init -> supervisor: struct opened and its sockets; with a network or ports
		       */
	STEP_IDS_MAPPED, /* supervisor -> init: uid_map and gid_map are written; ID-mapped sources
			    of the overlays, in their order, where they are not the caller's own */
	STEP_SEALED, /* init -> supervisor: only the program is missing; struct sealed, descriptors
		      */
	STEP_WARM, /* supervisor -> init: as STEP_START, but a launcher, which gets a socket, too */
	STEP_WARMED,  /* init -> supervisor: struct warmed; the launcher waits for the program */
	STEP_INPUT,   /* supervisor -> init: struct input and, for a file, its bytes */
	STEP_START,   /* supervisor -> init: struct start, the program's words, its stdio */
	STEP_GO,      /* supervisor -> init: words for the launcher that waits */
	STEP_STARTED, /* init -> supervisor: struct executed; it has the words, or execve(2) went
			 through; with a tty its master end */
	STEP_EXEC_FAILED, /* init -> supervisor: struct executed; nothing of the program ran */
	STEP_ENDED,       /* init -> supervisor: struct ended; the main process is gone */
	STEP_COUNT
};

extern const char *const step_names[STEP_COUNT];

/* How long either side may take for one step before the payload runs. */
#define STEP_TIMEOUT_MS 10000

/* With STEP_NETWORK: which slots of enum network_slot the descriptors fill, in their order. */
struct opened {
	uint32_t slots;
	uint32_t has_ipv6;
};

struct ids_mapped {
	uint32_t may_setgroups; /* else the kernel denies it: user_namespaces(7) */
};

/*
 * With STEP_SEALED: /box, /proc, the root of each overlay in the order of the binds, and the
 * seccomp listener, where there is one.
 */
enum sealed_fd { SEALED_BOX, SEALED_PROC, SEALED_OVERLAYS };
struct sealed {
	uint32_t has_landlock;
};

/*
 * With STEP_START: descriptor 0 is a sealed memfd of NUL-ended words: the directory to start in, a
 * launcher's script if it has one, argc arguments, envc variables.  Then stdin, stdout and stderr,
 * unless the program gets a terminal.
 */
struct start {
	uint32_t argc, envc, wants_tty, has_script;
	/* Behind the variables: the words of the code's own "#!" line, which are tried first, and
	 * how many of the arguments they replace.  0: there is none. */
	uint32_t ownc, own_replaces;
};
#define START_WORDS_MAX  (2u << 20)  /* what execve(2) takes with an 8 MiB stack */
#define START_SCRIPT_MAX (64u << 10) /* what a launcher reads at once, and its socket holds */

/*
 * With STEP_GO there is such a memfd, too: "1" where the program has an input, else "0"; the code's
 * path; arguments.  The launcher reads them to the end of file.
 */

/* With STEP_STARTED and STEP_EXEC_FAILED. */
struct executed {
	int32_t exec_errno; /* 0: it runs */
	int32_t own_errno;  /* why the interpreter of its "#!" line does not run it; 0: it does */
};

struct warmed {
	uint64_t cpu_us; /* that the launcher has used */
};

struct ended {
	int32_t wait_status; /* as wait(2) gives it */
	uint32_t is_alone;   /* nobody but init is left in the pid namespace, so nobody can fork */
	uint64_t cpu_user_us, cpu_system_us; /* of all that init has reaped */
	uint64_t max_rss_bytes;              /* of the largest of them: getrusage(2) */
};
