/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_enter - a copy of the zygote becomes a process of a prepared jail, a child of its init.
 */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/jail/zygote/zygote_protocol.h"

/*
 * zygote_enter - enter a jail's namespaces and cgroup in a copy of this process.
 *
 * Returns the value of fork(2): 0 in the copy, which has every capability over the jail and must
 * seal itself; the pid of an intermediate process that has ended, in the zygote.  A failure in an
 * intermediate process is sent to the job's report socket; it ends, and this one returns its pid.
 * `fork_now` is fork(3) of the C library.  All signals must be blocked.
 * Where an intermediate process is killed, the zygote ends, too: they share their memory.
 * Fails: when the first intermediate process can't be created.
 * Follows: clone(2) CLONE_INTO_CGROUP, setns(2), vfork(2), pid_namespaces(7).
 */
pid_t zygote_enter(const struct zygote_job *job, pid_t (*fork_now)(void), struct cj_error *err);
