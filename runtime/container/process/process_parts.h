/* SPDX-License-Identifier: Apache-2.0 */
/* process_parts - what a struct process consists of, and what the files of this room do for it. */
#pragma once

#include <limits.h>
#include <linux/filter.h>

#include "runtime/container/process/process.h"
#include "runtime/kernel/process/capabilities.h"

/* --- process_filter.c: the agent --------------------------------------------------------- */

/*
 * The program that answers notified system calls: it receives the filter's listener
 * over its unix socket, with a message about the process.
 *
 * The process can't send the listener itself: the filter may notify just that call, and nobody
 * would answer.  So a thread without the filter sends it, and execve(2) ends the thread.
 */
struct agent_message;

struct seccomp_agent {
	int sock_fd;                   /* connected, O_CLOEXEC; -1: there is no agent */
	struct agent_message *message; /* shared with forks of this process */
};
#define SECCOMP_AGENT_NULL ((struct seccomp_agent){ .sock_fd = -1 })

void seccomp_agent_close(struct seccomp_agent *agent);

/* --- process.c --------------------------------------------------------------------------- */

#define PROCESS_HOME "HOME="

struct process {
	const struct oci_config *config;  /* borrowed, as the next */
	const struct oci_process *wanted; /* of the configuration, or of exec */
	struct process_context context;
	struct capabilities caps;
	uint64_t kept_caps; /* permitted until execve(2), for seccomp(2) */

	bool no_new_privileges;
	struct sock_fprog tight_filter; /* of the profile, besides the other; len 0: none */
	struct sock_fprog filter;       /* len 0: none */
	uint32_t filter_flags;
	struct seccomp_agent agent;

	struct {
		dev_t device;
		ino_t inode;
	} own_program; /* which no container executes */

	const char *const *argv, *const *env;
	char home[sizeof(PROCESS_HOME) + PATH_MAX]; /* a variable in env; "": env has its own */
	char executable[PATH_MAX];
	struct strings warnings;
};

/* --- process_caps.c ---------------------------------------------------------------------- */

/*
 * The capability sets of a process, from the names in config.json.
 *
 * A set that config.json does not name is empty.  So nothing is inheritable or ambient unless the
 * engine asks for it (CVE-2022-29162, CVE-2022-27650).  capabilities(7)
 */

/* The bit of "CAP_KILL"; 0: no such capability is known. */
uint64_t process_caps_bit(const char *name);

/*
 * process_caps_resolve - names to sets.
 *
 * A capability that is unknown, or not in `available`, or whose set needs another set that lacks
 * it, is left out, with a warning: the specification wants no error.  -ENOMEM.
 */
int process_caps_resolve(const struct oci_capabilities *wanted, uint64_t available, struct arena *a,
			 struct capabilities *out, struct strings *warnings);

/* --- process_filter.c -------------------------------------------------------------------- */

/*
 * "linux.seccomp" compiled by libseccomp.  No system call but those on a memfd.
 *
 * Names that libseccomp does not know are skipped: each engine's profile names calls of other
 * architectures and newer kernels.  Several rules for a call are alternatives; the conditions of
 * one rule must all be true.  If two of them are about the same argument, each condition of the
 * rule is an alternative: other runtimes read it so, and engines write their profiles for these.
 */

/*
 * process_filter_compile - the program, in the arena.
 *
 * Fails: EINVAL for an action that takes no errnoRet; an architecture that this libseccomp lacks;
 *        a call with two rules of which libseccomp would ignore one.
 */
int process_filter_compile(const struct oci_seccomp *seccomp, struct arena *a,
			   struct sock_fprog *out, struct cj_error *err);

/* Compiles the filter and connects to its agent.  Runs outside, before the fork. */
int process_filter_prepare(struct process *p, const struct oci_seccomp *seccomp, struct arena *a,
			   struct cj_error *err);

/* Loads it on this process; a hook has no agent. */
int process_filter_load(const struct process *p, bool is_hook, struct cj_error *err);

/* --- process_program.c ------------------------------------------------------------------- */

/*
 * process_program_find - `name` itself if it has a slash, else in the PATH of `env`.
 *
 * Fails: ENOENT, "executable file not found in $PATH: 'NAME'" or "open executable 'NAME': ...";
 *        EACCES.  podman turns these texts into the status 127 and 126.
 */
int process_program_find(const char *name, const struct strings *env,
			 char out_path[static PATH_MAX], struct cj_error *err);

/*
 * process_program_home - the home directory of `uid` by the container's /etc/passwd; "/" where that
 * has none, or can't be read.
 *
 * Runs in: the process with the user and the rights of the program, so a hostile file in that place
 *          gives nothing to the program that it does not have.
 */
void process_program_home(uint32_t uid, char out_path[static PATH_MAX]);

/* --- process_become.c: what one process sets for another --------------------------------- */

/*
 * The part of an ordinary user: its own oom_score_adj, which a child inherits.  It can't write that
 * of the child, which is not dumpable, so that its files in /proc belong to root: proc(5).
 */
int process_adjust_self(const struct oci_process *wanted, struct cj_error *err);

/* The limits of `pid`; 0: in the process itself, before the filter, those that process_adjust()
 * left to it.  The others are set already, and this changes nothing. */
int process_set_limits(const struct oci_process *wanted, pid_t pid, struct cj_error *err);
