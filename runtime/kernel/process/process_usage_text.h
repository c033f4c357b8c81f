/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_usage_text - files of /proc/PID as text: stat, status, schedstat, syscall.  It reads no
 * file itself.
 *
 * The first two carry the process' name, which the payload chooses: it may hold blanks,
 * parentheses and digits, so stat is read from its last ')' on and status only at
 * the beginning of lines (the kernel escapes a newline in a name).
 */
#pragma once

struct sample_stat {
	char state; /* 'R', 'D', ...: of the first thread */
	uint64_t parent_pid;
	bool has_executed;                              /* execve(2) since it was forked */
	bool is_ending;                                 /* it will not return from its exit */
	uint64_t own_ticks, own_system_ticks;           /* utime + stime; stime alone */
	uint64_t children_ticks, children_system_ticks; /* the same of those it has reaped */
	uint64_t threads;
	uint64_t start_ticks; /* since boot */
};
bool process_usage_text_stat(const char *text, struct sample_stat *out);

/* /proc/PID/schedstat: the time on a CPU of its first thread, in nanoseconds; 0: not known. */
uint64_t process_usage_text_schedstat(const char *text);

/* RssAnon, RssShmem, VmPTE, VmSwap and HugetlbPages in bytes; 0: no memory, as of a zombie. */
uint64_t process_usage_text_memory(const char *text);

/*
 * Of status and smaps_rollup: how much of RssAnon and RssShmem other processes have, too, so that
 * only a part of it is in the proportional set size.  0: none, or a line is missing.
 */
uint64_t process_usage_text_shared(const char *status, const char *rollup);

/* status: SIGKILL was sent to the process, which runs no instruction of its own any more. */
bool process_usage_text_is_killed(const char *text);

/* status: does the thread have this id in its own pid namespace, or its process? */
bool process_usage_text_is(const char *text, uint64_t named);

/*
 * /proc/PID/syscall: does its first thread wait for a child of vfork(2) that has all of its memory?
 * clone(2) waits in the same way with CLONE_VFORK alone, or for a thread.  Such a child has memory
 * of its own, or is no process.
 */
bool process_usage_text_in_vfork(const char *text);
