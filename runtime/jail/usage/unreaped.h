/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unreaped - the CPU time of processes that ended without being waited for.  Pure.
 *
 * The kernel adds a process' time to its parent's sum when the parent waits for it.  A parent that
 * ignores SIGCHLD, or has SA_NOCLDWAIT, doesn't wait, and the time is in no sum: wait(2).  Two
 * samples show it: a process is gone, and no sum has grown by what it had used.  How long it went
 * on after the first sample is estimated, to the program's disadvantage.
 */
#pragma once

#include <stdint.h>

/* What changed from one sample to the next. */
struct unreaped_change {
	uint64_t gone_us;     /* used by the processes that are gone, as last seen */
	uint64_t estimate_us; /* that they may have used until they ended */
	uint64_t reaped_us;   /* by which the sums of all parents grew */
	uint64_t slack_us;    /* what the sums may lack, because they are in whole ticks */
};

/* Zero at the start. */
struct unreaped {
	struct unreaped_debt {
		uint64_t us, estimate_us;
	} debt, fresh;      /* gone and in no sum yet; `fresh`: since the last sample */
	uint64_t credit_us; /* in a sum since the last sample, and not gone then */
};

/* The time that is in no sum and never will be, found by this sample.  An estimate. */
uint64_t unreaped_settle(struct unreaped *u, const struct unreaped_change *change);
