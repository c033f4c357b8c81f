/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config - what was asked for, after parsing and before planning.
 *
 * Filled in layers that each override the one before: built-in defaults, parent
 * profile, profile, options.  Text has become numbers with units; nothing has been
 * looked up on the host yet (that is plan.h).  Everything lives in `arena`.
 */
#pragma once

#include "netns/network.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/files/sha256.h"

/* Which script of ours waits in the profile's interpreter. */
enum launcher_kind { LAUNCHER_NONE, LAUNCHER_PYTHON, LAUNCHER_NODE, LAUNCHER_COUNT };

/* Whether the service runs a program that it cannot record. */
enum audit_need { AUDIT_OPTIONAL, AUDIT_REQUIRED, AUDIT_NEED_COUNT };

enum output_policy { OUTPUT_TRUNCATE, OUTPUT_KILL, OUTPUT_POLICY_COUNT };

/* When a public network is built: at the program's first socket, or before the program starts. */
enum network_start { NETWORK_START_FIRST_USE, NETWORK_START_EARLY, NETWORK_START_COUNT };

#define CALLS_OUTSTANDING_MAX 64

/* What a host can lack.  A warning about it begins with its name and ": ". */
enum degraded {
	DEGRADED_LIMITS,
	DEGRADED_LANDLOCK,
	DEGRADED_NETWORK,
	DEGRADED_NETWORK_FILTER,
	DEGRADED_SYSCALL_REPORT,
	DEGRADED_HOSTNAME,
	DEGRADED_RECORD,
	DEGRADED_COUNT
};

/* What one jail may use.  0: not limited, only for cpu_ms. */
struct limits_spec {
	uint64_t memory_bytes, millicpus, pids, cpu_ms;
	uint64_t nofile, disk_bytes;
};

/* What one program may use of the supervisor: a jail that waits for its program has none yet. */
struct run_limits {
	uint64_t wall_ms;      /* 0: not limited, only in a plan */
	uint64_t output_bytes; /* kept of stdout and of stderr, each */
	enum output_policy on_output_limit;
	bool interrupts; /* of a session: the time limit first sends SIGINT, and waits 2 s */
	/* Of its tools: calls in all, calls without an answer, calls a second, time for an answer.
	 */
	uint64_t calls, calls_outstanding, calls_per_second, call_ms;
};

struct config {
	struct arena arena;

	struct limits_spec limits;
	struct run_limits run_limits;

	/* the tree */
	const char *rootfs; /* "host", a directory, or directories joined by ':' (first on top) */
	const char *hostname;
	bool writable;
	bool noexec;                              /* /box, /tmp, /dev/shm */
	struct strings ro_binds, binds, connects; /* "SRC[:DST]" as written */
	struct strings upstreams;                 /* "NAME=URL[,...]" as written */
	struct strings overlays;
	struct strings kept;  /* "SRC:DST", of `cejail mcp wrap` alone */
	struct strings tmpfs; /* "DST[:SIZE]" as written */
	struct strings artifact_paths;
	const char *value_path;    /* of the return value; NULL: none */
	struct strings files;      /* "SRC[:DST]" as written; SRC "-": standard input */
	struct strings file_texts; /* "DST=TEXT" as written */

	/* the program */
	struct strings command; /* template: {file} and {args} are places */
	struct strings shell;
	struct strings extensions;
	enum launcher_kind launcher;
	struct strings preload; /* modules it loads before it waits */
	bool zygote;            /* one started interpreter may be forked into many jails */
	struct strings env;     /* "NAME=VALUE"; later ones win */
	const char *workdir;
	const char *venv;    /* a directory; "none"; NULL: none was named */
	const char *project; /* a directory with node_modules */
	/* what of `env` and `workdir` comes from the profile base: an image's settings go above */
	struct strings base_env;
	const char *base_workdir;
	const char *file_name; /* what {file} is called inside: /box/NAME, e.g. "main.py" */

	/* layers */
	enum network_mode network;
	enum uplink_kind uplink;
	enum network_start network_start;
	struct strings allow; /* "HOST[:PORT]" as written */
	size_t profile_allow; /* how many of them are the profile's: they go with its network */
	struct strings deny;  /* likewise */
	enum network_allow_by allow_by;
	enum network_names network_names;
	bool allow_private;
	const char *setup;          /* the shell command of --setup; NULL: none */
	struct strings setup_allow; /* what its network allows, as written */
	uint64_t setup_ms;          /* its time */
	const char *seccomp;        /* "default", or a file in OCI / Docker JSON */
	bool strict;
	bool reduced;                 /* no namespaces */
	struct strings accept_weaker; /* of degraded_names: no warning on the terminal */
	enum audit_need audit_required;

	/* the run */
	const char *description;
	const char *cgroup_parent;       /* NULL: found by cgroup.h's order */
	const char *id;                  /* NULL: minted */
	const char *args_json;           /* JSON text or "@FILE" */
	const char *tools;               /* the file of --tools; NULL: none */
	const char *tools_from;          /* the file of MCP servers whose tools these are; NULL */
	int calls_fd;                    /* the caller's socket, which answers them; -1: none */
	const char *artifacts;           /* directory, or NULL */
	uint64_t artifacts_inline_bytes; /* at most so many in the result; 0: none */
	bool interactive;                /* connect standard input */
	bool tty;

	/* how a request and its result are passed; options only */
	int request_fd; /* -1: none */
	bool json;
	const char *json_file;    /* NULL: standard output */
	int result_fd, events_fd; /* -1: none */
	const char *trace_file;   /* of --trace-file; NULL: none */
	bool verbose, quiet, no_report, dry_run;
	const char *remote; /* a service's socket; "": the first there is; NULL: here */
	const char *code;   /* -c CODE */
	size_t code_size;
	bool has_code;

	/* where it came from */
	const char *profile_name;            /* as in the result; "" before one is read */
	char profile_sha256[SHA256_HEX_MAX]; /* over the bytes of the file and its parents */
};

/* Built-in defaults; cannot fail (nothing is allocated). */
void config_init(struct config *c);
void config_fini(struct config *c);
/* The same settings, in an arena of its own; borrows the texts.  `c` is filled also on failure. */
int config_copy(struct config *c, const struct config *from, struct cj_error *err);
