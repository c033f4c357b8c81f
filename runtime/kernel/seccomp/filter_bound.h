/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_bound - sends the calls of calls_bounded[] that a plan allows to the supervisor.  Pure.
 *
 * The answer to such a call is SECCOMP_RET_USER_NOTIF with a mark in its data, which the kernel
 * ignores.  The supervisor runs the program again with the notified registers (filter_run()) and
 * reads the mark: so it knows that the policy allows this call, and which bound it has.
 */
#pragma once

#include "runtime/kernel/seccomp/filter_emit.h"

/* Changes `plan`; *out_bounds: a bit for each bound that a call of it has.  0 or -ENOMEM. */
int filter_bound(struct filter_plan *plan, struct arena *a, unsigned *out_bounds);

/* Does the plan allow io_uring, at least in part?  A ring opens sockets, and no filter sees it. */
bool filter_bound_is_bypassed(const struct filter_plan *plan);

/* The bound in a program's answer; CALL_BOUND_COUNT: none, so the policy refuses the call. */
enum call_bound filter_bound_of(uint32_t answer);

/*
 * The calls of one bound are not notified: their marked answers become what the policy says, to
 * allow or to log.
 */
void filter_bound_drop(struct sock_filter *insns, size_t ninsns, enum call_bound bound);
