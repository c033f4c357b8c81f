/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_usage - what a jail uses, read from outside through its own /proc, where no cgroup counts
 * it.  The work per call is bounded.  The payload chooses the process names (comm) in these files;
 * they are skipped, not parsed.
 */
#pragma once

#include "runtime/jail/usage/sampler.h"

#define SAMPLE_PIDS_MAX SAMPLER_PIDS_MAX /* looked at by one call: 3 opens and reads each */

struct process_usage {
	/* Of all processes (process_usage_text_memory), and the scratch's used bytes. */
	uint64_t memory_bytes;
	uint64_t doubtful_bytes; /* of them, that may be counted twice */
	/* Of the living processes, of those that were reaped, and, with a sampler, of others. */
	uint64_t cpu_user_us, cpu_system_us;
	uint64_t processes; /* threads included, init not */
	bool has_memory;    /* of a process; one that is ending shows none */
};

/*
 * proc_fd: the jail's /proc; box_fd: anything on the scratch; `s` may be NULL.
 * False: a process could not be read, or none is left; *out has what was found.
 */
bool process_usage_take(int proc_fd, int box_fd, struct sampler *s, struct process_usage *out);

/* A part of a jail: a process that only reaps for others, and those below it. */
struct process_group {
	pid_t reaper_pid;
	const pid_t *pids;
	size_t count;
	bool is_whole; /* no process of the group is missing */
};

/* The same of a group; the scratch is not counted. */
bool process_usage_take_of(int proc_fd, const struct process_group *group, struct sampler *s,
			   struct process_usage *out);

static inline uint64_t process_usage_cpu_us(const struct process_usage *s)
{
	return s->cpu_user_us + s->cpu_system_us;
}

/*
 * SIGKILL to each process that is found, init included.  For a jail whose memory still grows: the
 * kernel kills the others only once init gets a CPU.  An open directory of /proc names its process
 * and no later one with the same number.  Kills nothing where this process itself is in `proc_fd`.
 */
void process_usage_kill(int proc_fd);

/* Raises each member of *peak to that of *now. */
void process_usage_raise(struct process_usage *peak, const struct process_usage *now);

/*
 * process_usage_shared - what the sum of process_usage_take() has too much, or less than that.
 *
 * An idle process counts with the part of each page that is its own: the page divided by the number
 * of processes that map it (proc_pid_smaps_rollup(5), Pss).  Every other process keeps all that it
 * maps: one that is about to end would lower the part of the others, and its own part could be
 * missed.  Stops at enough_bytes, and after SHARED_READ_MAX of memory was looked at.
 * 0 where the kernel doesn't show it.
 */
#define SHARED_READ_MAX (2ull << 30) /* the kernel walks 4 to 30 GiB a second */
uint64_t process_usage_shared(int proc_fd, const pid_t *pids, size_t count, uint64_t enough_bytes);
