/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_emit - writes the decisions for all calls as a BPF program.  Pure.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/kernel/seccomp/policy.h"
#include "runtime/kernel/seccomp/filter_calls.h"

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
