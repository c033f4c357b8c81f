/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_plan - one decision for each call, as a BPF program; and what such a program answers.  No
 * system calls.
 */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/kernel/seccomp/filter_calls.h"
#include "runtime/kernel/seccomp/policy.h"

/* If all of `args` hold, `ret` (SECCOMP_RET_*) is the answer. */
struct filter_branch {
	const struct policy_arg *args;
	size_t nargs;
	uint32_t ret;
};

/* One call: the first branch that holds answers, else `otherwise`. */
struct filter_call {
	const struct filter_branch *branches;
	size_t nbranches;
	uint32_t otherwise;
};

struct filter_plan {
	struct filter_call calls[CALLS_MAX];
	uint32_t otherwise; /* for every number above */
};

bool filter_arg_holds(const struct policy_arg *arg, uint64_t value);

/* The program's answer, computed from the plan: to check a plan, and to test the program. */
uint32_t filter_plan_answer(const struct filter_plan *plan, int nr, const uint64_t args[6]);

/*
 * filter_emit - plan to program, in `a`.
 *
 * Other architectures' entries (i386's, ARM's; x32 by its bit) end in KILL_PROCESS.
 * Fails: E2BIG past BPF_MAXINSNS; ENOMEM.
 */
int filter_emit(const struct filter_plan *plan, struct arena *a, const struct sock_filter **out,
		unsigned short *out_count, struct cj_error *err);

/* --- bounded calls: filter_bound.c -------------------------------------------------------- */

/*
 * filter_bound - send the calls of calls_bounded[] that the plan allows to the supervisor.
 *
 * The answer to such a call is SECCOMP_RET_USER_NOTIF with a mark in its data, which the kernel
 * ignores.  The supervisor runs the program again with the notified registers (filter_run()) and
 * reads the mark: so it knows that the policy allows this call, and which bound it has.
 * *out_bounds: a bit for each bound that a call of the plan has.  0 or -ENOMEM.
 */
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

/*
 * filter_run - what a program of filter_emit() answers, computed as the kernel does: about a
 * notified call, of which the notification has the registers that the kernel's own run has read.
 * SECCOMP_RET_KILL_PROCESS for a program that filter_emit() does not write.
 */
uint32_t filter_run(const struct sock_filter *insns, size_t ninsns,
		    const struct seccomp_data *data);
