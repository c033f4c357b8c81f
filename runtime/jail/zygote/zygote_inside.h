/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_inside - what runs in a zygote and in its children: the parts of zygote.so. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/jail/zygote/zygote_protocol.h"

#define ZYGOTE_SOCK_FD 3 /* where zygote_spawn() puts the socket */

/*
 * zygote_serve - the fork(3) of a zygote: say that it is ready, then make a child for each request
 * that comes to ZYGOTE_SOCK_FD.
 *
 * Returns only in the children, with 0: each is sealed, in its jail, and a child of its init.
 * The zygote ends (exit status 0) when every other end of its socket is closed.
 * `fork_now` is fork(3) of the C library.
 */
pid_t zygote_serve(pid_t (*fork_now)(void));

/*
 * May this process be forked into jails?  EBUSY: no; else what the kernel says when that can't be
 * found out.
 *
 * A fork has only the thread that calls it; what the others hold stays locked for ever.
 */
int zygote_check_threads(struct cj_error *err);
/*
 * Memory that is mapped shared and writable, or may become so, stays common to all forks: jails
 * could exchange data through it.  Modules make such mappings with mmap(2) or shmat(2).
 */
int zygote_check_memory(struct cj_error *err);

/*
 * zygote_pages_try - find out which pages every copy of this process uses until it is ready.
 *
 * Forks a trial, waits until it says ready on its ZYGOTE_SOCK_FD, and ends it.  The pages are not
 * found where that fails.  Returns 0 in the trial.
 */
pid_t zygote_pages_try(pid_t (*fork_now)(void));
/* In a copy: gets these pages, all at once. */
void zygote_pages_fetch(void);

/*
 * zygote_enter - enter a jail's namespaces and cgroup in a copy of this process.
 *
 * Returns the value of fork(2): 0 in the copy, which has every capability over the jail and must
 * seal itself; the pid of an intermediate process that has ended, in the zygote.  A failure in an
 * intermediate process is sent to the job's report socket; it ends, and this one returns its pid.
 * All signals must be blocked.
 * Where an intermediate process is killed, the zygote ends, too: they share their memory.
 * Fails: when the first intermediate process can't be created.
 * Follows: clone(2) CLONE_INTO_CGROUP, setns(2), vfork(2), pid_namespaces(7).
 */
pid_t zygote_enter(const struct zygote_job *job, pid_t (*fork_now)(void), struct cj_error *err);

/*
 * zygote_seal - become what a launcher is that init has executed, and tell the supervisor.
 *
 * Afterwards this process has no descriptor above 3, no capability, the jail's ids, limits,
 * Landlock ruleset and seccomp filter.  Its signals are as they were.  Cannot be undone.
 * Runs in:  the copy that zygote_enter() made.
 * Fails:    with the name of the step as err->stage.  The copy must end then.
 */
int zygote_seal(const struct zygote_job *job, struct cj_error *err);
