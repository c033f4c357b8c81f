/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of idle processes.  Acts. */
#include "runtime/jail/usage/shared_memory.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/files/system_file.h"
#include "runtime/kernel/process/process_usage_text.h"

#define NEVER_RUN "0 0 0\n" /* schedstat */
#define TEXT_MAX  32768     /* of status: see process_usage.c */

static bool read_text(int proc_fd, pid_t pid, const char *file, char *text, size_t size)
{
	char name[40];
	(void)snprintf(name, sizeof(name), "%d/%s", pid, file);
	return system_file_read(proc_fd, name, text, size) > 0;
}

static bool read_stat(int proc_fd, pid_t pid, struct sample_stat *out)
{
	char text[SYSTEM_FILE_SMALL];
	return read_text(proc_fd, pid, "stat", text, sizeof(text)) &&
	       process_usage_text_stat(text, out);
}

/*
 * It has one thread, which sleeps or has not run yet, and memory of its own: process_usage_take()
 * counts a child of vfork(2) with its parent, which is in state D.
 */
static bool is_idle(int proc_fd, pid_t pid, const char *schedstat)
{
	struct sample_stat own, parent = { 0 };
	if (!read_stat(proc_fd, pid, &own) || own.threads != 1)
		return false;
	if (own.state != 'S' && strcmp(schedstat, NEVER_RUN) != 0)
		return false;
	return own.has_executed ||
	       (read_stat(proc_fd, (pid_t)own.parent_pid, &parent) && parent.state != 'D');
}

/* 0 if the process has run meanwhile: schedstat counts how often it was given a CPU. */
static uint64_t take_one(int proc_fd, pid_t pid, uint64_t *read_bytes)
{
	char before[SYSTEM_FILE_SMALL], after[SYSTEM_FILE_SMALL], rollup[SYSTEM_FILE_SMALL];
	char status[TEXT_MAX];
	if (!read_text(proc_fd, pid, "schedstat", before, sizeof(before)) ||
	    !is_idle(proc_fd, pid, before) ||
	    !read_text(proc_fd, pid, "status", status, sizeof(status)) ||
	    !read_text(proc_fd, pid, "smaps_rollup", rollup, sizeof(rollup)) ||
	    !read_text(proc_fd, pid, "schedstat", after, sizeof(after)))
		return 0;
	*read_bytes += process_usage_text_memory(status);
	return strcmp(before, after) == 0 ? process_usage_text_shared(status, rollup) : 0;
}

uint64_t shared_memory_take(int proc_fd, const pid_t *pids, size_t count, uint64_t enough_bytes)
{
	uint64_t bytes = 0, read_bytes = 0;
	for (size_t i = 0; i < count && bytes < enough_bytes && read_bytes < SHARED_MEMORY_READ_MAX;
	     i++)
		bytes += take_one(proc_fd, pids[i], &read_bytes);
	return bytes;
}
