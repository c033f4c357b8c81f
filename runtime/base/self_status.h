/* SPDX-License-Identifier: Apache-2.0 */
/* self_status - signals and capabilities of this process, all at once: proc_pid_status(5). */
#pragma once

struct self_mask {
	const char *name; /* as it is there: "SigIgn" */
	uint64_t value;
};

/* Reads self/status of a procfs; -1: that at /proc.  False: it lacks one of them, or /proc is not
 * the kernel's. */
bool self_status_masks(int proc_fd, struct self_mask *masks, size_t count);
