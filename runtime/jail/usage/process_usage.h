/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_usage - what a jail uses, read from outside through its own /proc, where no
 * cgroup tells.  Bounded work per call; what it reads comes from the kernel, but the
 * names inside (comm) come from the payload and are skipped, not parsed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/jail/usage/sampler.h"

#define SAMPLE_PIDS_MAX SAMPLER_PIDS_MAX /* looked at by one call: 3 opens and reads each */

struct process_usage {
	/* Of all processes (process_usage_text_memory), and the scratch's used bytes. */
	uint64_t memory_bytes;
	uint64_t doubtful_bytes; /* of them, that may be counted twice */
	/* Of the living processes, of those that were reaped, and, with a sampler, of others. */
	uint64_t cpu_user_us, cpu_system_us;
	uint64_t processes; /* threads included, init not */
};

/*
 * proc_fd: the jail's /proc; box_fd: anything on the scratch; `s` may be NULL.
 * False: something could not be looked at, or nothing is there any more; *out is what was seen.
 */
bool process_usage_take(int proc_fd, int box_fd, struct sampler *s, struct process_usage *out);

static inline uint64_t process_usage_cpu_us(const struct process_usage *s)
{
	return s->cpu_user_us + s->cpu_system_us;
}

/*
 * SIGKILL to each process that is seen, init included.  For the end of a jail that grows: init's
 * own end, which ends all the others, needs a CPU first.  A directory of the jail's /proc names its
 * process and no later one of the same number.
 */
void process_usage_kill(int proc_fd);

/* The most that was seen of each. */
void process_usage_raise(struct process_usage *peak, const struct process_usage *now);
