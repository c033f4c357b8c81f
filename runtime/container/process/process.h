/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process - what a process becomes before the container's program: one routine for create and exec.
 *
 * The calls, in order, and the process that makes them:
 *
 *	process_prepare    outside   everything that needs no container: the filter, the sets
 *	process_describe   outside   the pid is known: the message for a seccomp agent
 *	process_label      inside    while a trusted procfs is at hand: the AppArmor profile, the
 *	                             SELinux label
 *	process_make_cwd   inside    with create: the working directory, if it is missing
 *	process_become     inside    streams, session, user, capabilities, working directory
 *	process_find       inside    the executable and HOME, as that user
 *	process_adjust     outside   limits and priorities, which need the host's privileges
 *	process_execute    inside    limits again, filter, execve(2); with create after `start`
 *	process_await      outside   until it has executed the program, or its error
 *
 * "Inside" is the process itself, in its namespaces and root.  It is single-threaded and not
 * dumpable all the time, and runs from a sealed copy of this program (own_copy_enter()).
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/config/oci_config.h"

struct console;
struct process;
struct step_link;

/*
 * own_copy_enter - for create, run and exec: the first thing main() does, before any descriptor is
 * opened (own_copy.c).
 *
 * Executes a sealed copy of this program in memory, with the same arguments and environment.
 * Returns 0 when this process runs from it already, which is read from the seals of its executable.
 * This process is not dumpable afterwards.
 *
 * In the container a hostile process may find /proc/PID/exe, or have /proc/self/exe executed in the
 * place of the program.  What it reaches is a memfd that nobody can write, not the file on the host
 * (CVE-2019-5736).  Non-dumpability hides /proc/PID/exe as well, but not from a process that has
 * CAP_SYS_PTRACE in the host's user namespace.
 * Follows: memfd_create(2), fexecve(3), PR_SET_DUMPABLE in prctl(2).
 */
int own_copy_enter(char *const argv[], struct cj_error *err);

/* Of the container and the command line; zeroed: none of it. */
struct process_context {
	bool has_user_namespace; /* its own, so that it has every capability there */
	bool keeps_keyring;      /* --no-new-keyring */
	const char *profile;     /* io.cejail.profile: annotations.h; NULL: none */
	unsigned preserved_fds;  /* --preserve-fds N: 3 to 2 + N stay open */
};

/*
 * process_keep_fds - close all descriptors but the streams and 3 to 2 + `preserved`.
 *
 * An engine leaks some that are neither ours nor the container's.  Before this program opens any of
 * its own.  Fails: EBADF when one is to be preserved that is not open.
 */
int process_keep_fds(unsigned preserved, struct cj_error *err);

/*
 * process_check_dumpable - refuse to join a user namespace on a host with fs.suid_dumpable=1.
 *
 * There setns(2) and setresuid(2) make a process dumpable until its next call undoes that, and it
 * has every capability in the namespace: commit_creds() of the kernel.
 */
int process_check_dumpable(struct cj_error *err);

/*
 * process_prepare - resolve what the process will be.
 *
 * Borrows: config and process for as long as *out is used.  Connects to the seccomp agent if the
 *          filter has one.  The result lives in the arena, its descriptors until process_close().
 * Fails:   a label whose security module is not enabled; a capability set or a filter that can't be
 *          made; no descriptor where one is to be preserved; no agent at listenerPath.
 */
int process_prepare(const struct oci_config *config, const struct oci_process *process,
		    const struct process_context *context, struct arena *a, struct process **out,
		    struct cj_error *err);
void process_close(struct process **slot);
#define auto_process __attribute__((cleanup(process_close)))

/* What config.json asks for and this host can't grant, a sentence each: for the log, as the
 * specification says. */
const struct strings *process_warnings(const struct process *p);

/* The descriptor that the inside needs besides the streams and preserved ones: the socket of the
 * seccomp agent, O_CLOEXEC.  -1: there is none. */
int process_agent_fd(const struct process *p);

/* The container in a message to a seccomp agent. */
struct process_state {
	const char *id, *status, *bundle;
	pid_t container_pid; /* of its init, on the host */
	const struct oci_pairs *annotations;
};

/*
 * process_describe - what the agent receives with the listener: the container process state.
 *
 * `pid` is the process itself on the host.  The text is in memory that both sides share.  Without
 * an agent it does nothing.
 */
int process_describe(struct process *p, const struct process_state *state, pid_t pid,
		     struct cj_error *err);

/*
 * process_label - the AppArmor profile and the SELinux label of the next execve(2).
 *
 * Must not: run when "/proc" is the container's, which something inside can replace.
 * A fork inherits the request.  Without either it does nothing.
 */
int process_label(const struct process *p, struct cj_error *err);

/*
 * process_make_cwd - make the working directory if it does not exist, 0755, as other runtimes do.
 *
 * Runs in: the container's init, as its root, before pivot_root(2) and before anything becomes
 *          read-only.  It follows links inside root_fd, but none of procfs that lead elsewhere.
 */
int process_make_cwd(const struct process *p, int root_fd, struct cj_error *err);

/*
 * process_become - streams, terminal, keyring, personality, umask, groups, user, capabilities,
 * no_new_privs, and the working directory as that user; read back and compared.
 *
 * `console` is NULL without a terminal.  Afterwards every descriptor is closed or O_CLOEXEC, except
 * for the streams and the preserved ones.  Must not: run before the root is the container's.
 * With a filter but without no_new_privs CAP_SYS_ADMIN stays permitted until execve(2): seccomp(2)
 * needs it, and execve(2) computes the sets without it.
 */
int process_become(struct process *p, const struct console *console, struct cj_error *err);

/*
 * process_find - look for args[0] with the PATH of the container's env, as its user.  If env has no
 * HOME, it is the one in the container's /etc/passwd.
 *
 * Fails: ENOENT, EACCES, with the texts that podman turns into status 127 and 126.
 */
int process_find(struct process *p, struct cj_error *err);

/*
 * process_adjust - rlimits, oom_score_adj, scheduler and I/O priority of `pid`, a child of the
 * caller that waits.  They may need privileges that only the host's side has.
 */
int process_adjust(const struct process *p, pid_t pid, struct cj_error *err);

/* Loads the filter and executes.  Returns only on failure. */
int process_execute(const struct process *p, struct cj_error *err);

/*
 * process_confine_hook - what process_execute() does before execve(2), for a fork of the process
 * that executes a hook.
 *
 * There is no agent for it: a notified system call fails with ENOSYS.  seccomp(2)
 */
int process_confine_hook(const struct process *p, struct cj_error *err);

/* NAME=VALUE, NULL-terminated. */
const char *const *process_env(const struct process *p);

/*
 * process_await - outside: until execve(2) has closed the process' end of the link.
 *
 * After its last step the process sends nothing but an error, which is the caller's then.  `what`
 * is for messages: "start the container".
 */
int process_await(const struct step_link *link, const char *what, struct cj_error *err);

/* The CPUs of the calling process; NULL: every CPU of its cgroup.  sched_setaffinity(2) */
int process_adjust_own_cpus(const struct oci_set *cpus, struct cj_error *err);
