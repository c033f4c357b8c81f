/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail_state - what a jail holds; private to the engine.
 *
 * Supervisor and init each have their own copy after clone3(2).  Init's copy begins as the
 * supervisor's, and init then closes what it may not keep.
 */
#pragma once

#include <signal.h>

#include "netns/network.h"
#include "rootfs/image/image_store.h"
#include "runtime/base/step.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/ids/idmap.h"
#include "runtime/jail/script.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/jail_ops.h"
#include "runtime/jail/protocol.h"
#include "runtime/jail/outcome.h"
#include "runtime/jail/private_dir.h"
#include "runtime/jail/record.h"
#include "runtime/kernel/seccomp/filter.h"
#include "runtime/jail/relay.h"

#define INIT_PID 1 /* in the jail's pid namespace */

/* Init of a session, once it is sealed: returns only on failure. */
typedef int jail_serve(struct jail *j, struct cj_error *err);

/* Init's side of a launcher that is a fork of a zygote (zygote/zygote.h); each -1: none. */
struct adoption {
	int our_fd, its_fd; /* the launcher's socket pair */
	int namespace_fds[ZYGOTE_NAMESPACES];
	int ruleset_fd; /* init's Landlock ruleset */
};
#define ADOPTION_NULL ((struct adoption){ -1, -1, { -1, -1, -1, -1, -1, -1, -1, -1 }, -1 })

/* The child that makes the network namespace (init/net_namespace.c), and our end of its link. */
struct net_namespace_maker {
	pid_t pid; /* 0: there is none */
	int link_fd;
};

/* Init's own. */
struct jail_init {
	struct rootfs_sources *sources; /* until the root is built */
	int root_fd;                    /* then, until the handles are open; else -1 */
	struct net_namespace_maker netns;
	int oom_fd; /* its oom_score_adj, opened while init may still open it; -1: none */
	struct adoption adoption;
	/* The ruleset of a program's own domain: in a session, and with plan->reduced; -1: none */
	int domain_fd;
	int files_fd;      /* with plan->reduced: where inputs are written, as "/" of a full jail */
	jail_serve *serve; /* after STEP_SESSION; NULL: the jail can't become a session */
};

/* The launcher.  What it uses until the program comes does not count as the program's usage. */
struct jail_warm {
	const struct program *launcher; /* borrowed; NULL: none */
	struct cgroup_usage before;
	uint64_t cpu_us; /* as init measured it; used where no cgroup counts */
	int calls_fd;    /* the near end of its descriptor 4; -1: it has none */
};

/* The program and what belongs to it, from jail_start() on. */
struct jail_run {
	const struct program *program; /* borrowed */
	struct jail_io io;
	enum network_state network_reported; /* to io.network */
	struct relay relays[RELAY_COUNT];
	int master_fd;                   /* of the program's terminal */
	struct session_cell *cell;       /* of cell_ops; borrowed */
	const struct cell_ops *cell_ops; /* NULL: it is no cell */
	struct calls *calls;             /* NULL: the program has no tools */
	struct bind_watch *binds;        /* NULL: the program may write no directory of the host */
	int exec_errno;                  /* why execve(2) failed; 0: the program runs */
	struct script script_line;       /* the code's "#!" line, if the plan wants it obeyed */
	const char *code_real;           /* the path of the code's file; NULL: none, or not known */
	char code_sha256[SHA256_HEX_MAX];
	uint64_t started_epoch_ms;
	struct timespec started_tick; /* by the clock that the kernel stamps files with */
	uint64_t started_ms;          /* on clock_ms() */
};

struct jail {
	const struct plan *plan; /* borrowed */
	char id[PLAN_ID_MAX];
	struct arena arena; /* of the warnings and a compiled filter */
	struct strings warnings;
	struct filter filter;
	struct rootfs_spec root;    /* the plan's, with this run's names */
	struct endpoints endpoints; /* the addresses of --allow and --deny */
	struct limit_state limits[LIMIT_COUNT];
	enum layer_state layers[LAYER_COUNT];
	int hostname_errno;    /* of sethostname(2) in init; 0: the jail has its host name */
	struct step_link link; /* to the other role */
	struct rootfs_handles handles; /* init opens them and sends them to the supervisor */

	/* The supervisor's, acquired and released by its stages. */
	sigset_t old_signals;
	uint64_t changed_signals; /* child_changed_signals(): init's, too, until it resets them */
	bool discards_signals;    /* jail_discard_signals() */
	int signal_fd;
	int runtime_dir_fd;
	char private_dir[PRIVATE_DIR_MAX]; /* with plan->reduced: it has /box and /tmp; else "" */
	struct image_use image;            /* the layers of --rootfs NAME */
	struct idmap ids;
	struct cgroup cgroup;
	bool moves_init;    /* into its cgroup, instead of making it there */
	bool dies_at_birth; /* why: spawn_kills() */
	pid_t init_pid;
	int init_pidfd;
	bool init_is_killed;  /* by jail_init_kill() */
	bool is_sealed;       /* init has said so */
	struct record record; /* its strings are the plan's and our own */
	int record_fd;
	bool leaf_stays; /* the cgroup could not be removed: its record stays for a sweep */
	struct filter_watch *watch;
	struct network *network; /* NULL: never more than the loopback */

	struct jail_init init;
	struct jail_warm warm;
	struct jail_run run;
	const struct jail_ops *ops;
	struct session_exec *exec; /* of its ops; NULL: this is no exec */
	/* The command of --setup runs; or it has run, and may have left files. */
	bool is_setting_up, was_set_up;
	/* Its /proc shows other processes, too: those of a session's other execs, each with its own
	 * view; the host's, with plan->reduced. */
	bool is_shared;
	pid_t parent_pid; /* init or the reaper, in that /proc: all processes of the program descend
			     from it */
};

/* A jail in which nothing is held, for a run.  NULL: no memory. */
struct jail *jail_state_create(const struct plan *plan, const char *id);
void jail_state_free(struct jail **j);
/* With the listener, of which -1 is none: together they are most often one call. */
void jail_close_handles(struct jail *j, int listener_fd);

/* A warning for the outcome: a sentence, lower case, no full stop. */
void jail_warn(struct jail *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same about a feature that this host lacks. */
void jail_degrade(struct jail *j, enum degraded what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A jail that was prepared ahead has its program now: 'cejail ps' shows it as running. */
void jail_record_started(struct jail *j);

/* A jail with neither network nor ports only brings its loopback up. */
bool jail_network_is_wanted(const struct jail *j);
/* The network is built when the program first asks for it; decided with the filter. */
bool jail_network_starts_late(const struct jail *j);

/* The program's part of the jail's CPU time `all_us`: without the launcher's. */
uint64_t jail_program_cpu_us(const struct jail *j, uint64_t all_us);
