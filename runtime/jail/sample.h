/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample - what a jail uses, read from outside through its own /proc, where no
 * cgroup tells.  Bounded work per call; what it reads comes from the kernel, but the
 * names inside (comm) come from the payload and are skipped, not parsed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLE_PIDS_MAX 4096 /* looked at by one call: 4 opens and reads each */

struct sample {
	/* Of all processes (sample_text_memory), and the scratch's used bytes. */
	uint64_t memory_bytes;
	/* Of the living processes and of those that were reaped. */
	uint64_t cpu_user_ms, cpu_system_ms;
	uint64_t processes; /* threads included, init not */
};

/*
 * Memory of who used what when last seen: for the time of children whose parent ignores SIGCHLD,
 * which the kernel adds to nobody's when they are gone.
 */
struct sampler {
	uint64_t grown_ticks; /* all growth that was seen */
	size_t nbefore, nnow, at;
	struct process_time {
		uint64_t pid, start_ticks, own_ticks;
	} times[2][SAMPLE_PIDS_MAX], *before, *now;
};
/* NULL: no memory.  To be freed. */
struct sampler *sampler_create(void);

/*
 * proc_fd: the jail's /proc; box_fd: anything on the scratch; `s` may be NULL.
 * False: something could not be looked at, or nothing is there any more; *out is what was seen.
 */
bool sample_take(int proc_fd, int box_fd, struct sampler *s, struct sample *out);

static inline uint64_t sample_cpu_ms(const struct sample *s)
{
	return s->cpu_user_ms + s->cpu_system_ms;
}

/* The most that was seen of each. */
void sample_raise(struct sample *peak, const struct sample *now);
