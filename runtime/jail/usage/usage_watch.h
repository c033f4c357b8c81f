/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage_watch - the limits that the supervisor enforces: it samples the jail's usage and ends the
 * run.  --cpu-time always; --memory where no cgroup has the memory controller.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/jail/usage/process_usage.h"

struct jail;
struct outcome;

struct usage_watch {
	uint64_t next_at_ms;      /* of the next sample, on clock_ms(); 0: none */
	bool reads_proc;          /* no cgroup counts memory and CPU time */
	bool was_over;            /* the last sample was above the memory limit */
	uint64_t mapped_bytes;    /* of the last sample: shared memory counts for each process */
	uint64_t shared_bytes;    /* of that sum, too much */
	uint64_t shared_until_ms; /* then it is measured again */
	uint64_t blind_since_ms;  /* since then no sample was complete; 0: the last one was */
	uint64_t cpu_us;          /* at the last sample */
	struct sampler *sampler;
	struct process_usage peak; /* the highest seen of each */
};

void usage_watch_init(struct usage_watch *w, const struct jail *j);
void usage_watch_fini(struct usage_watch *w);

/*
 * usage_watch_sample - one sample, after which *out may have a status, and the time of the next.
 *
 * Fails: EIO when no sample was complete for a second: limits that are enforced by sampling are not
 * enforced then.
 */
int usage_watch_sample(struct usage_watch *w, const struct jail *j, struct outcome *out,
		       struct cj_error *err);

/*
 * The same for the memory limit alone; *out_is_over: the jail is proven to be above it.
 * With may_rest the next sample may be 200 ms later, if the jail has used no CPU time since the
 * last one.
 */
int usage_watch_sample_memory(struct usage_watch *w, const struct jail *j, bool may_rest,
			      bool *out_is_over, struct cj_error *err);

/* A last sample, for the usage in the result.  Call it before the jail's processes are killed. */
void usage_watch_last(struct usage_watch *w, const struct jail *j);

/*
 * usage_watch_pause_ms - how long to wait before the next sample.
 *
 * `room_bytes`: below the memory limit; `cost_us`: the duration of the last sample; `is_resting`:
 * the jail uses no CPU time.
 */
unsigned usage_watch_pause_ms(uint64_t room_bytes, uint64_t cost_us, bool is_resting);
