/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init - pid 1 of the jail, until its end, and the parts of it that have a source of their own.
 * The reapers of a session share the later parts.
 */
#pragma once

#include <limits.h>
#include <signal.h>

#include "runtime/base/error.h"
#include "runtime/base/step.h"
#include "runtime/jail/protocol.h"

struct adoption;
struct jail;
struct limits_spec;
struct net_namespace_maker;
struct network_spec;

/* The whole life of init; never returns. */
_Noreturn void init_main(struct jail *j);

/*
 * init_adoption_open - open init's namespaces and a socket pair, while it may, for a launcher that
 * is a fork of a zygote (zygote/zygote.h).  When the supervisor asks, init sends them, closes its
 * copies and waits for the launcher's byte.
 *
 * All but the program's user namespace.  Runs in: init, before Landlock and the filter.
 */
int init_adoption_open(struct adoption *a, struct cj_error *err);
int init_adoption_open_program_user(struct adoption *a,
				    struct cj_error *err); /* once it is init's */

/* Instead of a pid: STEP_SESSION came, which init.serve carries out.  It is init's own pid. */
#define INIT_BECOMES_SESSION 1

/*
 * init_take_program - receive the inputs and the program, once sealed, and start it.
 *
 * Returns the pid of the main process; 0 when the program could not be executed;
 * INIT_BECOMES_SESSION.
 */
pid_t init_take_program(struct jail *j, struct cj_error *err);

/*
 * Reaps every process that ends, until the main process has; then sends STEP_ENDED.  Returns 1 if
 * this process is alone then, else 0.
 */
int init_reap_until_ended(const struct step_link *link, pid_t main_pid, struct cj_error *err);

/* Reaps until this process has no child. */
void init_reap_all(void);

/* --- limits.c: resource limits of setrlimit(2), in one table ------------------------------ */

/*
 * limits_apply - set soft and hard limits of the calling process for itself and all it starts.
 *
 * RLIMIT_CORE is exactly 1: with 0 a piped core_pattern still runs as root on the host
 * (fs/coredump.c).  `pids_by_rlimit`: no cgroup has the pids controller, so RLIMIT_NPROC, which
 * in the jail's own user namespace counts the jail alone, enforces the limit.
 * No row limits memory: usage_watch.h does, where no cgroup has the memory controller.
 * Runs in:  init, before the seal.
 */
int limits_apply(const struct limits_spec *limits, bool pids_by_rlimit, struct cj_error *err);

/* The part of it that the caller has asked for: a setting of 0 leaves the limit as it is. */
int limits_apply_asked(const struct limits_spec *limits, bool pids_by_rlimit, struct cj_error *err);

/* --- reduced.c: init without namespaces (plan->reduced) ------------------------------------ */

#define INIT_END_SIGNAL SIGUSR1 /* init kills all processes of the jail, waits for them and ends */

/* Kills every other process of the jail, and waits until there is none.  Does nothing in a full
 * jail, and before init is in its Landlock domain. */
void init_end_all(void);

/* Its stages, in their order. */
int init_reduced_detach(struct jail *j, struct cj_error *err);
int init_reduced_become(struct jail *j, const struct ids_mapped *ids, struct cj_error *err);
int init_reduced_handles(struct jail *j, struct cj_error *err);
int init_reduced_limits(struct jail *j, struct cj_error *err);
int init_reduced_landlock(struct jail *j, struct cj_error *err);
int init_reduced_guard(struct jail *j, struct cj_error *err);

/* --- net_namespace.c: the jail's network namespace, which a child makes meanwhile --------- */

/* Starts the child.  Runs in: init, with all capabilities over its user namespace. */
int net_namespace_begin(struct net_namespace_maker *m, struct cj_error *err);

/*
 * net_namespace_enter - wait for the child's end, and enter the namespace.
 *
 * Fails: as unshare(2) did in the child.  Then the caller is still in the network namespace of the
 *        host and must end.
 */
int net_namespace_enter(struct net_namespace_maker *m, struct cj_error *err);

/*
 * net_namespace_explain - init fails before net_namespace_enter(): why?
 *
 * Waits for the child, if there is one.  If it failed, its error replaces *err: the child shares
 * init's errno, so init's own failure may have been a consequence.
 */
void net_namespace_explain(struct net_namespace_maker *m, struct cj_error *err);

/* --- init.c --- */

/*
 * init_network_open - network_open(), and with a link its step for jail_network_enter().
 *
 * Runs in: the jail's network namespace, with capabilities over its owner.
 */
int init_network_open(const struct network_spec *spec, const struct step_link *link,
		      struct cj_error *err);

/* --- payload.c: the last steps before the untrusted program, from vfork(2) to execve(2) --- */

struct payload {
	char *const *argv, *const *env;
	char *const *own_argv; /* tried first: by the interpreter of its "#!" line; NULL: none */
	int stdio[3];
	int channel_fd; /* becomes descriptor 3 of a launcher or a REPL; -1: a program gets none */
	int calls_fd;   /* becomes descriptor 4, for the calls of its tools; -1: it gets none */
	int domain_fd;  /* the ruleset of a Landlock domain, in a session; -1: it enters none */
	bool has_tty;   /* stdio is a terminal of its own, to become the controlling one */
};

/* Returns its pid once it runs; 0 when execve(2) failed, with the reason in *out. */
pid_t payload_start(const struct payload *p, struct executed *out, struct cj_error *err);

/* --- elf_interpreter.c: the program that the kernel maps with an ELF file (PT_INTERP) ----- */

/* The kernel chooses the layout by the machine, not by the file's class: fs/binfmt_elf.c. */
enum elf_layout { ELF_LAYOUT_64, ELF_LAYOUT_32, ELF_LAYOUT_COUNT };

/* A file and what is read of it already; the rest is read as it is asked for. */
struct elf_file {
	int fd;
	size_t size;
	char begin[1024]; /* most often as far as the interpreter's name */
};

/*
 * The interpreter that the file names when it is read in this layout; "" when there is none.
 * Allocates nothing.  Returns 0 or the errno of a read.
 */
int elf_interpreter(const struct elf_file *f, enum elf_layout layout, char out_name[PATH_MAX]);
