/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_text - /proc/PID/stat and /proc/PID/status as text.  Pure.
 *
 * Both carry the process' name, which the payload chooses: it may hold blanks,
 * parentheses and digits, so stat is read from its last ')' on and status only at
 * the beginning of lines (the kernel escapes a newline in a name).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sample_stat {
	char state; /* 'R', 'D', ...: of the first thread */
	uint64_t parent_pid;
	bool has_executed;                              /* execve(2) since it was forked */
	uint64_t own_ticks, own_system_ticks;           /* utime + stime; stime alone */
	uint64_t children_ticks, children_system_ticks; /* the same of those it has reaped */
	uint64_t threads;
	uint64_t start_ticks; /* since boot */
};
bool sample_text_stat(const char *text, struct sample_stat *out);

/* /proc/PID/schedstat: the time on a CPU of its first thread, in nanoseconds; 0: not known. */
uint64_t sample_text_schedstat(const char *text);

/* RssAnon + RssShmem + VmPTE + VmSwap in bytes; 0 for a task without memory (a zombie). */
uint64_t sample_text_memory(const char *text);
