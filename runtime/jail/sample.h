/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample - what a jail uses, read from outside through its own /proc, where no
 * cgroup tells.  Bounded work per call; what it reads comes from the kernel, but the
 * names inside (comm) come from the payload and are skipped, not parsed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sample {
	uint64_t
	    memory_bytes; /* of all processes (sample_text_memory), and the scratch's used bytes */
	uint64_t cpu_ms;  /* of the living processes and of those init has reaped */
	uint64_t processes; /* threads included, init not */
};

/* proc_fd: the jail's /proc; box_fd: anything on the scratch.  False: the jail is gone. */
bool sample_take(int proc_fd, int box_fd, struct sample *out);

/* The most that was seen of each. */
void sample_raise(struct sample *peak, const struct sample *now);
