/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_bound - sends the calls of calls_bounded[] that a plan allows to the supervisor.  Pure.
 *
 * A notified call that matches such a row is always one that the policy allows: where the policy
 * refuses a part of the row, that part is refused by an errno, without a notification.
 */
#pragma once

#include "runtime/jail/seccomp/filter_emit.h"

/* Changes `plan`; *out_rows: a bit for each row that it allows.  Returns 0 or -ENOMEM. */
int filter_bound(struct filter_plan *plan, struct arena *a, unsigned *out_rows);

/* The row among `rows` that a call of these arguments belongs to, or NULL. */
const struct call_bounded *filter_bound_row(unsigned rows, int nr, const uint64_t args[6]);
