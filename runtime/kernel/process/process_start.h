/* SPDX-License-Identifier: Apache-2.0 */
/* process_start - when a process began: a pid and this time name one process for ever. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * process_start_ticks - in clock ticks since boot: proc_pid_stat(5), starttime.
 * Returns 0 or a negative errno: -ENOENT or -ESRCH when there is no such process.
 */
int process_start_ticks(pid_t pid, uint64_t *out);
