/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler - estimates the CPU time of processes that nobody waited for, by comparing two samples.
 * No system calls but sysconf(3).
 *
 * The kernel adds a process' time to its parent's sum when the parent waits for it.  A parent that
 * ignores SIGCHLD, or has SA_NOCLDWAIT, doesn't wait, and the time is in no sum: wait(2).  Two
 * samples show it: a process is gone, and no sum has grown by what it had used.  How long it went
 * on after the first sample is estimated, to the program's disadvantage.
 */
#pragma once

#define SAMPLER_PIDS_MAX 4096

struct sampler;

/* NULL: no memory.  To be freed. */
struct sampler *sampler_create(void);

struct sampled_process {
	uint64_t pid, start_ticks; /* both: one process for ever */
	uint64_t own_us;           /* 0 of init, whose own time is ours */
	uint64_t children_us;      /* of those it has waited for */
	bool is_running;           /* or waits for a CPU */
};
/* One process of the sample that is going on; at most SAMPLER_PIDS_MAX. */
void sampler_add(struct sampler *s, const struct sampled_process *p);

/* The sample ends.  `is_whole`: a process that was not added is gone. */
void sampler_turn(struct sampler *s, bool is_whole, uint64_t now_us);

/* All growth of own_us that was seen. */
uint64_t sampler_grown_us(const struct sampler *s);
/* What processes used that ended without being waited for: an estimate. */
uint64_t sampler_unreaped_us(const struct sampler *s);

/* --- its arithmetic ------------------------------------------------------------------------- */

/* What changed from one sample to the next. */
struct unreaped_change {
	uint64_t gone_us;     /* used by the processes that are gone, as last seen */
	uint64_t estimate_us; /* that they may have used until they ended */
	uint64_t reaped_us;   /* by which the sums of all parents grew */
	uint64_t slack_us;    /* what the sums may lack, because they are in whole ticks */
};

/*
 * Zero at the start.  The processes are read one after another, so a parent's sum may have grown
 * one sample before its child is seen to be gone, or one sample later: `credit_us` and `fresh` wait
 * for the next one.
 */
struct unreaped {
	struct unreaped_debt {
		uint64_t us, estimate_us;
	} debt, fresh;      /* gone and in no sum yet; `fresh`: since the last sample */
	uint64_t credit_us; /* in a sum since the last sample, and not gone then */
};

/* The time that is in no sum and never will be, found by this sample.  An estimate. */
uint64_t unreaped_settle(struct unreaped *u, const struct unreaped_change *change);
