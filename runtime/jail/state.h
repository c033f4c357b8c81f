/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - what a jail holds; private to the engine.  Each role has its own copy after
 * clone3(2): init's begins as the supervisor's and then closes all it may not keep.
 */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "netns/network.h"
#include "runtime/base/step.h"
#include "runtime/jail/cgroup/cgroup.h"
#include "runtime/jail/seccomp/filter.h"
#include "runtime/jail/ids/idmap.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/protocol.h"
#include "runtime/jail/record.h"
#include "runtime/jail/supervise/relay.h"
#include "runtime/jail/init/script.h"

struct jail {
	const struct plan *plan; /* borrowed */
	char id[PLAN_ID_MAX];
	struct arena arena; /* of the warnings and a compiled filter */
	struct strings warnings;
	struct filter filter;
	struct rootfs_spec root;    /* the plan's, with this run's names */
	struct endpoints endpoints; /* what --allow stands for now */
	struct limit_state limits[LIMIT_COUNT];
	enum layer_state layers[LAYER_COUNT];

	/* held by stages; jail_create() sets the null value of each (jail.c) */
	sigset_t old_signals;
	int signal_fd;
	int runtime_dir_fd;
	struct idmap ids;
	struct cgroup cgroup;
	pid_t init_pid;
	int init_pidfd;
	struct step_link link; /* to the other role */
	struct record record;  /* its strings are the plan's and our own */
	int record_fd;
	bool leaf_stays; /* the cgroup could not be removed: a sweep's, by its record */
	struct rootfs_sources *sources; /* init's, until the root is built */
	int box_fd, proc_fd;            /* rootfs_handles, from init */
	int overlay_fds[OVERLAYS_MAX];
	size_t noverlays; /* of them open */
	int oom_fd; /* init's own oom_score_adj, opened while init may still do that; -1: none */
	struct filter_watch *watch;
	struct network *network; /* NULL: loopback only */

	/* while a program runs */
	const struct program *program; /* borrowed */
	struct jail_io io;
	struct relay relays[RELAY_COUNT];
	int master_fd;             /* of the program's terminal */
	struct bind_watch *binds;  /* NULL: it may write no directory of the host */
	int exec_errno;            /* it could not be executed; 0: it runs */
	struct script script_line; /* its "#!" line, where that counts */
	const char *code_real; /* the file that was opened as its code; NULL: none, or not known */
	char code_sha256[SHA256_HEX_MAX];
	struct timespec started_at;
	uint64_t started_ms; /* the same on clock_ms() */

	/* with a launcher: what getting ready has cost is not the program's */
	const struct program *launcher; /* borrowed; NULL: none */
	struct cgroup_usage before;
	uint64_t launcher_cpu_us; /* as init saw it; for where no cgroup counts */
};

/* A warning for the outcome: a sentence, lower case, no full stop. */
/* As jail_warn(), about what this host lacks. */
void jail_degrade(struct jail *j, enum degraded what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void jail_warn(struct jail *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The life of init; never returns.  init.c */
_Noreturn void init_main(struct jail *j);
/* Takes in the program and starts it.  Its pid; 0 when it could not be executed.  intake.c */
pid_t intake_program(struct jail *j, struct cj_error *err);

/* The rows for what a kill can leave.  jail_record.c */
int directory_enter(struct jail *j, struct cj_error *err);
void directory_leave(struct jail *j);
bool jail_has_directory(const struct jail *j);
int place_enter(struct jail *j, struct cj_error *err);
int record_enter(struct jail *j, struct cj_error *err);
void record_leave(struct jail *j);
void record_started(struct jail *j); /* a jail built ahead has its program: no longer ready */
int cgroup_enter(struct jail *j, struct cj_error *err);
void cgroup_leave(struct jail *j);
int entry_enter(struct jail *j, struct cj_error *err);
int sweep_enter(struct jail *j, struct cj_error *err);

/* The network's rows.  jail_network.c */
bool jail_has_network(const struct jail *j);
int names_enter(struct jail *j, struct cj_error *err);
int network_enter(struct jail *j, struct cj_error *err);
void network_leave(struct jail *j);
int uplink_enter(struct jail *j, struct cj_error *err);
int network_hand_out(struct jail *j, struct network_handles *handles, struct cj_error *err);

/* The life of the payload until it is the payload: see payload.c. */
struct payload {
	char *const *argv, *const *env;
	char *const *own_argv; /* tried first: by the interpreter of its "#!" line; NULL: none */
	int stdio[3];
	int launcher_fd; /* becomes descriptor 3 of a launcher; -1: a program gets none */
	bool has_tty;    /* stdio is a terminal of its own, to become the controlling one */
};
/* Its pid once it runs; 0 when it could not be executed; a negative errno. */
pid_t payload_start(const struct payload *p, struct executed *out, struct cj_error *err);

/* Hands the program to a sealed init.  handover.c */
int handover_inputs(struct jail *j, struct cj_error *err);
/* `step`: STEP_START for the program, STEP_WARM for a launcher. */
int handover_start(struct jail *j, enum step step, const struct program *p, const int stdio[3],
		   struct cj_error *err);
/* To the launcher that waits, if it was started for such a program. */
int handover_go(struct jail *j, struct cj_error *err);

/* Of the CPU time of all of the jail, the program's.  start.c */
uint64_t jail_program_cpu_us(const struct jail *j, uint64_t all_us);

/* Watches until the outcome has a status, ends everything, gathers the evidence.  supervisor.c */
int supervisor_watch(struct jail *j, struct outcome *out, struct cj_error *err);
