/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child - what a process of our own that was forked, not executed, gives up of its parent.
 *
 * Init, the service's spawner and workers, and the keeper of an uplink helper all begin as a copy
 * of a process that belongs to the caller.  Each calls the steps it needs, in its own order; so
 * does a fork that executes a helper (libexec.h).
 */
#pragma once

#include "runtime/base/error.h"

#define CHILD_FIRST_FD 3 /* behind the standard streams */
#define CHILD_FDS_MAX  24

/*
 * child_fork - fork(2), and the parent's pidfd of the child in the same call: clone3(2).
 *
 * A child that runs while its parent fails to get a pidfd could act before it is ended.  The
 * caller owns the pidfd.  -1 with errno: there is no child.
 */
pid_t child_fork(int *out_pidfd);

/* The same for a process that the caller's parent has to end and reap. */
pid_t child_fork_sibling(int *out_pidfd);

/*
 * child_keep_only - move fds[] to 3, 4, ... with O_CLOEXEC, and close all other descriptors.
 *
 * The standard streams stay.  fds[] has the new numbers on success, and is unchanged on failure.
 * Follows: close_range(2), dup(2).
 */
int child_keep_only(int *fds, size_t count, struct cj_error *err);

/* Puts /dev/null on the standard streams: the caller's terminal and files are not ours to hold. */
int child_null_streams(struct cj_error *err);

/*
 * Gives every signal its default action.  fork(2) copies handlers, and execve(2) hands on what is
 * ignored: signal(7).
 */
void child_default_signals(void);
/* The same where the changed ones are known: a fork has those of its parent. */
void child_reset_signals(uint64_t changed);

/* The signals without their default action: bit 0 is signal 1.  UINT64_MAX: not known. */
uint64_t child_changed_signals(void);

/* Blocks no signal: the mask, too, survives fork(2) and execve(2). */
int child_unblock_signals(struct cj_error *err);

/*
 * child_die_with_parent - SIGKILL when the parent dies, even if it is killed itself.
 *
 * A parent that died before this call sends no signal.  Its end of `link_fd` is closed then, which
 * is an error; -1: the caller checks by other means.  A change of credentials clears the request:
 * call it again afterwards.  Follows: PR_SET_PDEATHSIG(2const), prctl(2).
 */
int child_die_with_parent(int link_fd, struct cj_error *err);

/*
 * Starts a session without a terminal: no key of the caller's terminal signals this process, and
 * it can't push input back into the terminal.  setsid(2), ioctl_tty(2) TIOCSTI
 */
int child_start_session(struct cj_error *err);

/*
 * Lets no process of the same user attach with ptrace(2), read the memory or open the
 * descriptors in /proc.  Follows: PR_SET_DUMPABLE in prctl(2).
 */
int child_become_undumpable(struct cj_error *err);

/*
 * child_wipe_arguments - overwrite the command line and the environment, and leave environ empty.
 *
 * Every process inside can read the command line of pid 1 (proc(5)), which names host paths and
 * --env values.  The environment is the caller's secret.  No string of either may be used after.
 */
void child_wipe_arguments(void);

/* As a shell has it: what the process exited with, or 128 and the signal.  wait(2) */
int child_exit_status(int wait_status);

/*
 * child_reset - four of them at once: the child keeps fds[] as child_keep_only() does, has
 * /dev/null as its streams, default signal actions and no blocked signal.
 */
int child_reset(int *fds, size_t count, struct cj_error *err);
