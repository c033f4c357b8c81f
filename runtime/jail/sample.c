/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums over a jail's processes, through its own /proc.  Acts.
 *
 * Memory that processes share by fork counts once for each of them, and what is
 * mapped from the scratch counts there too: where the number is wrong it is too high.
 * CPU time of a child whose parent ignores SIGCHLD is lost to proc(5) altogether.
 */
#include "runtime/jail/sample.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "runtime/base/scope.h"
#include "runtime/jail/kernfile.h"
#include "runtime/jail/sample_text.h"

#define PIDS_MAX    4096 /* of one call: 4 opens and reads each */
#define THREADS_MAX 8    /* of a process: all but the first have memory until they are gone */

static bool is_pid(const char *name)
{
	return name[0] >= '1' && name[0] <= '9' && name[strspn(name, "0123456789")] == '\0';
}

static bool read_stat(int proc_fd, const char *pid, struct sample_stat *out)
{
	char name[32], text[KERNFILE_SMALL];
	(void)snprintf(name, sizeof(name), "%.20s/stat", pid);
	return kernfile_read(proc_fd, name, text, sizeof(text)) > 0 && sample_text_stat(text, out);
}

static uint64_t read_memory(int dir_fd, const char *task)
{
	char name[32], text[KERNFILE_SMALL];
	(void)snprintf(name, sizeof(name), "%.20s/status", task);
	return kernfile_read(dir_fd, name, text, sizeof(text)) > 0 ? sample_text_memory(text) : 0;
}

/* Of a process whose first thread has ended: its own file says nothing, those of the others do. */
static uint64_t read_memory_of_threads(int proc_fd, const char *pid)
{
	char name[32];
	(void)snprintf(name, sizeof(name), "%.20s/task", pid);
	auto_fd int fd = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int tasks_fd = fd;
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return 0;
	(void)take_fd(&fd); /* dir's now: fdopendir(3) */

	uint64_t bytes = 0;
	unsigned seen = 0;
	for (struct dirent *e; bytes == 0 && seen < THREADS_MAX && (e = readdir(dir)) != NULL;) {
		if (!is_pid(e->d_name))
			continue;
		seen++;
		bytes = read_memory(tasks_fd, e->d_name);
	}
	return bytes;
}

static uint64_t ticks_to_ms(uint64_t ticks)
{
	return ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* False: it has ended meanwhile, and its time is in its parent's sum. */
static bool add_process(int proc_fd, const char *pid, struct sample *sum)
{
	struct sample_stat stat;
	if (!read_stat(proc_fd, pid, &stat))
		return false;

	sum->cpu_ms += ticks_to_ms(stat.children_ticks);
	if (strcmp(pid, "1") == 0) /* init: ours, only what it reaped is the program's */
		return true;
	sum->cpu_ms += ticks_to_ms(stat.own_ticks);
	sum->processes += stat.threads > 0 ? stat.threads : 1; /* a zombie still has its pid */
	uint64_t bytes = read_memory(proc_fd, pid);
	if (bytes == 0 && stat.threads > 1)
		bytes = read_memory_of_threads(proc_fd, pid);
	sum->memory_bytes += bytes;
	return true;
}

static uint64_t used_bytes(int box_fd)
{
	struct statfs fs;
	if (box_fd < 0 || fstatfs(box_fd, &fs) < 0 || fs.f_bfree > fs.f_blocks)
		return 0;
	return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

bool sample_take(int proc_fd, int box_fd, struct sample *out)
{
	/* A description of its own: the offset of proc_fd is everybody's. */
	auto_fd int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return false;
	(void)take_fd(&fd); /* dir's now: fdopendir(3) */

	bool is_there = false;
	unsigned seen = 0;
	struct sample sum = { 0 };
	for (struct dirent *e; seen < PIDS_MAX && (e = readdir(dir)) != NULL;) {
		if (!is_pid(e->d_name))
			continue;
		seen++;
		is_there |= add_process(proc_fd, e->d_name, &sum);
	}
	if (!is_there)
		return false;
	sum.memory_bytes += used_bytes(box_fd);
	*out = sum;
	return true;
}

static void lift(uint64_t *peak, uint64_t now)
{
	*peak = now > *peak ? now : *peak;
}

void sample_raise(struct sample *peak, const struct sample *now)
{
	lift(&peak->memory_bytes, now->memory_bytes);
	lift(&peak->processes, now->processes);
	lift(&peak->cpu_ms, now->cpu_ms);
}
