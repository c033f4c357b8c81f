/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits - resource limits of setrlimit(2), in one table.
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"

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
