/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler - which process had used how much CPU time at the last sample, for the time that the
 * kernel adds to no sum: of children whose parent ignores SIGCHLD.  No system calls but sysconf(3).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
/* What processes used that ended without being waited for: an estimate (unreaped.h). */
uint64_t sampler_unreaped_us(const struct sampler *s);
