/* SPDX-License-Identifier: Apache-2.0 */
/* process_adjust - what one process sets for another: limits, oom_score_adj, priorities. */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/container/config/oci_linux.h"
#include "runtime/container/config/oci_process.h"

/*
 * The part of an ordinary user: its own oom_score_adj, which a child inherits.  It can't write that
 * of the child, which is not dumpable, so that its files in /proc belong to root: proc(5).
 */
int process_adjust_self(const struct oci_process *wanted, struct cj_error *err);

/* `pid` is a child that nobody has waited for, so that no other process has its number. */
int process_adjust_pid(const struct oci_process *wanted, pid_t pid, struct cj_error *err);

/* The CPUs of the calling process; NULL: every CPU of its cgroup.  sched_setaffinity(2) */
int process_adjust_own_cpus(const struct oci_set *cpus, struct cj_error *err);

/* The memory policy of the calling process, which what it executes keeps.  set_mempolicy(2) */
int process_adjust_own_memory(const struct oci_memory_policy *policy, struct cj_error *err);

/* In the process itself, as the last call before the filter: the limits that process_adjust_pid()
 * left to it; the others are set already, and this changes nothing. */
int process_adjust_own_limits(const struct oci_process *wanted, struct cj_error *err);
