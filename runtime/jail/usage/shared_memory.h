/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_memory - how much of a jail's memory counts for several processes that have it by fork(2).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * shared_memory_take - what the sum of process_usage_take() has too much, or less than that.
 *
 * An idle process counts with the part of each page that is its own: the page divided by the number
 * of processes that map it (proc_pid_smaps_rollup(5), Pss).  Every other process keeps all that it
 * maps: one that is about to end would lower the part of the others, and its own part could be
 * missed.  Stops at enough_bytes, and after SHARED_MEMORY_READ_MAX of memory was looked at.
 * 0 where the kernel doesn't show it.
 */
#define SHARED_MEMORY_READ_MAX (2ull << 30) /* the kernel walks 4 to 30 GiB a second */
uint64_t shared_memory_take(int proc_fd, const pid_t *pids, size_t count, uint64_t enough_bytes);
