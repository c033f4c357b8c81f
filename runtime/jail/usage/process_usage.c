/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums over a jail's processes, through its own /proc.
 *
 * The number is never too low.  Memory that processes share by fork(2) counts for each of them,
 * until process_usage_shared() takes it off.  Memory mapped from the scratch counts twice.  Memory
 * that a parent shares with a child of vfork(2) counts once: see subtract_vforked().  The caller
 * learns when a process could not be read.
 */
#include "runtime/jail/usage/process_usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/vfs.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/process_usage_text.h"

#define THREADS_MAX                                                                                \
	8 /* of a process: after the first thread's end the others still have its memory */
#define STATUS_MAX 32768 /* its line of groups has up to 11 bytes for each */

#define RELATED_MAX 256 /* among so many processes children of vfork(2) are looked for */

/* A process that may be one side of a vfork(2), until the child calls execve(2) or ends. */
struct related {
	uint64_t pid, parent_pid, bytes;
	bool waits, has_executed;
	bool has_child; /* a child that uses this process' memory was found */
};

struct usage_walk {
	struct sampler *past; /* NULL: no memory for it */
	struct process_usage sum;
	struct related related[RELATED_MAX];
	size_t nrelated;
	const char *reaper; /* its own time is ours; what it reaped counts as the program's */
	bool is_there;      /* a process */
	bool is_blind;      /* a process could not be read */
};

/* The bytes of a file of a process or a thread; or -errno. */
static ssize_t read_of(int dir_fd, const char *task, const char *file, char *text, size_t size)
{
	char name[40];
	(void)snprintf(name, sizeof(name), "%.20s/%s", task, file);
	return system_file_read(dir_fd, name, text, size);
}

/* False: the process has ended, which is no failure; or is_blind is set. */
static bool read_file(struct usage_walk *w, int dir_fd, const char *task, const char *file,
		      char *text, size_t size)
{
	ssize_t got = read_of(dir_fd, task, file, text, size);
	w->is_blind |= got < 0 && got != -ENOENT && got != -ESRCH && got != -ELOOP;
	return got > 0;
}

/* The next process or thread in the directory, of at most `max`; NULL: there is none. */
static const char *next_task(struct fd_dir *dir, unsigned *seen, unsigned max)
{
	for (const struct dirent *e; *seen < max && (e = fd_next_entry(dir)) != NULL;)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
		    e->d_name[strspn(e->d_name, "0123456789")] == '\0') {
			++*seen;
			return e->d_name;
		}
	return NULL;
}

static uint64_t read_memory(struct usage_walk *w, int dir_fd, const char *task)
{
	char text[STATUS_MAX];
	return read_file(w, dir_fd, task, "status", text, sizeof(text))
		   ? process_usage_text_memory(text)
		   : 0;
}

/* For a process whose first thread has ended: only the files of its other threads show memory. */
static uint64_t read_memory_of_threads(struct usage_walk *w, int proc_fd, const char *pid)
{
	char name[32];
	(void)snprintf(name, sizeof(name), "%.20s/task", pid);
	auto_fd_dir struct fd_dir *dir = fd_open_dir(proc_fd, name);
	if (!dir) {
		w->is_blind |= errno != ENOENT && errno != ESRCH;
		return 0;
	}

	uint64_t bytes = 0;
	unsigned seen = 0;
	for (const char *id; bytes == 0 && (id = next_task(dir, &seen, THREADS_MAX)) != NULL;)
		bytes = read_memory(w, dir->fd, id);
	return bytes;
}

static uint64_t ticks_to_us(uint64_t ticks)
{
	return ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

static void add_cpu(struct usage_walk *w, uint64_t ticks, uint64_t system_ticks)
{
	w->sum.cpu_user_us += ticks_to_us(ticks - system_ticks);
	w->sum.cpu_system_us += ticks_to_us(system_ticks);
}

/* The first thread's time in nanoseconds; stat has whole ticks.  See sched-stats.rst. */
static uint64_t read_own_us(struct usage_walk *w, int proc_fd, const char *pid,
			    const struct sample_stat *stat)
{
	char text[SYSTEM_FILE_SMALL];
	uint64_t ticks_us = ticks_to_us(stat->own_ticks), thread_us = 0;
	if (w->past && read_file(w, proc_fd, pid, "schedstat", text, sizeof(text)))
		thread_us = process_usage_text_schedstat(text) / 1000;
	return thread_us > ticks_us ? thread_us : ticks_us;
}

static void remember(struct usage_walk *w, const char *pid, const struct sample_stat *stat,
		     uint64_t own_us)
{
	const struct sampled_process p = {
		.pid = strtoull(pid, NULL, 10),
		.start_ticks = stat->start_ticks,
		.own_us = own_us,
		.children_us = ticks_to_us(stat->children_ticks),
		.is_running = stat->state == 'R',
	};
	if (w->past)
		sampler_add(w->past, &p);
}

/* Only for a process in state D.  If the file can't be read, its memory is doubtful. */
static bool is_in_vfork(int proc_fd, const char *pid)
{
	char text[SYSTEM_FILE_SMALL];
	return read_of(proc_fd, pid, "syscall", text, sizeof(text)) > 0 &&
	       process_usage_text_in_vfork(text);
}

static void note_related(struct usage_walk *w, int proc_fd, const char *pid,
			 const struct sample_stat *stat, uint64_t bytes)
{
	if (w->nrelated < RELATED_MAX)
		w->related[w->nrelated++] = (struct related){
			.pid = strtoull(pid, NULL, 10),
			.parent_pid = stat->parent_pid,
			.bytes = bytes,
			.waits = stat->state == 'D' && is_in_vfork(proc_fd, pid),
			.has_executed = stat->has_executed,
		};
}

static struct related *find_parent(struct usage_walk *w, const struct related *child)
{
	for (size_t i = 0; i < w->nrelated; i++)
		if (w->related[i].pid == child->parent_pid)
			return &w->related[i];
	return NULL;
}

/*
 * A parent in vfork(2) waits in state D, and its child has not called execve(2).  The state alone
 * proves nothing: with CLONE_VFORK and without CLONE_VM, clone(2) waits for a child that has memory
 * of its own, and a chain of such children would hide all memory but the first one's.  At most one
 * child of each such parent is taken off, and at most the parent's own memory: a child of fork(2)
 * beside it hides nothing, because the child of vfork(2) stays counted then.  Where the parent was
 * not seen to wait, because another thread does or it has just begun to, the memory is doubtful.
 */
static void subtract_vforked(struct usage_walk *w)
{
	for (size_t i = 0; i < w->nrelated; i++) {
		const struct related *child = &w->related[i];
		struct related *parent = child->has_executed ? NULL : find_parent(w, child);
		if (!parent)
			continue;
		uint64_t shared = child->bytes < parent->bytes ? child->bytes : parent->bytes;
		if (parent->waits && !parent->has_child)
			w->sum.memory_bytes -= shared;
		else
			w->sum.doubtful_bytes += shared;
		parent->has_child |= parent->waits;
	}
}

/* A process that has ended meanwhile is skipped: its time is in its parent's sum. */
static void add_process(struct usage_walk *w, int proc_fd, const char *pid)
{
	char text[SYSTEM_FILE_SMALL];
	struct sample_stat stat;
	if (!read_file(w, proc_fd, pid, "stat", text, sizeof(text)) ||
	    !process_usage_text_stat(text, &stat))
		return;

	w->is_there = true;
	add_cpu(w, stat.children_ticks, stat.children_system_ticks);
	if (strcmp(pid, w->reaper) == 0) {
		remember(w, pid, &stat, 0);
		return;
	}
	uint64_t own_us = read_own_us(w, proc_fd, pid, &stat);
	remember(w, pid, &stat, own_us);
	add_cpu(w, stat.own_ticks, stat.own_system_ticks);
	w->sum.cpu_user_us += own_us - ticks_to_us(stat.own_ticks);
	w->sum.processes += stat.threads > 0 ? stat.threads : 1; /* a zombie still has its pid */
	uint64_t bytes = read_memory(w, proc_fd, pid);
	if (bytes == 0 && stat.threads > 1)
		bytes = read_memory_of_threads(w, proc_fd, pid);
	w->sum.memory_bytes += bytes;
	w->sum.has_memory |= bytes > 0;
	note_related(w, proc_fd, pid, &stat, bytes);
}

static uint64_t used_bytes(int box_fd)
{
	struct statfs fs;
	if (box_fd < 0 || fstatfs(box_fd, &fs) < 0 || fs.f_bfree > fs.f_blocks)
		return 0;
	return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

static void lift(uint64_t *peak, uint64_t now)
{
	*peak = now > *peak ? now : *peak;
}

/* The sum, and whether it is of every process. */
static bool conclude(struct usage_walk *w, struct sampler *s, bool is_all,
		     struct process_usage *out)
{
	subtract_vforked(w);
	bool is_whole = w->is_there && !w->is_blind;
	if (s) {
		sampler_turn(s, is_whole && is_all, clock_us());
		w->sum.cpu_user_us += sampler_unreaped_us(s);
		uint64_t grown_us = sampler_grown_us(s), sum_us = process_usage_cpu_us(&w->sum);
		w->sum.cpu_user_us += grown_us > sum_us ? grown_us - sum_us : 0;
	}
	*out = w->sum;
	return is_whole;
}

bool process_usage_take(int proc_fd, int box_fd, struct sampler *s, struct process_usage *out)
{
	*out = (struct process_usage){ 0 };
	auto_fd_dir struct fd_dir *dir = fd_open_dir(proc_fd, ".");
	if (!dir)
		return false;

	unsigned seen = 0;
	struct usage_walk w = { .past = s, .reaper = "1" };
	for (const char *pid; (pid = next_task(dir, &seen, SAMPLE_PIDS_MAX)) != NULL;)
		add_process(&w, proc_fd, pid);
	w.sum.memory_bytes += used_bytes(box_fd);
	return conclude(&w, s, seen < SAMPLE_PIDS_MAX, out);
}

bool process_usage_take_of(int proc_fd, const struct process_group *group, struct sampler *s,
			   struct process_usage *out)
{
	char name[16], reaper[16];
	struct usage_walk w = { .past = s, .reaper = reaper };
	(void)snprintf(reaper, sizeof(reaper), "%d", group->reaper_pid);
	add_process(&w, proc_fd, reaper);
	for (size_t i = 0; i < group->count; i++) {
		(void)snprintf(name, sizeof(name), "%d", group->pids[i]);
		add_process(&w, proc_fd, name);
	}
	return conclude(&w, s, group->is_whole, out);
}

/* Our own /proc shows the host's processes, not a jail's. */
static bool is_our_own(int proc_fd)
{
	char text[32];
	return readlinkat(proc_fd, "self", text, sizeof(text)) > 0;
}

void process_usage_kill(int proc_fd)
{
	if (is_our_own(proc_fd))
		return;
	auto_fd_dir struct fd_dir *dir = fd_open_dir(proc_fd, ".");
	if (!dir)
		return;

	unsigned seen = 0;
	for (const char *pid; (pid = next_task(dir, &seen, SAMPLE_PIDS_MAX)) != NULL;) {
		auto_fd int pidfd =
		    openat(proc_fd, pid, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (pidfd >= 0)
			(void)sys_pidfd_send_signal(pidfd, SIGKILL); /* gone already: as well */
	}
}

void process_usage_raise(struct process_usage *peak, const struct process_usage *now)
{
	lift(&peak->memory_bytes, now->memory_bytes);
	lift(&peak->processes, now->processes);
	peak->has_memory |= now->has_memory;
	if (process_usage_cpu_us(now) > process_usage_cpu_us(peak)) {
		peak->cpu_user_us = now->cpu_user_us;
		peak->cpu_system_us = now->cpu_system_us;
	}
}

#define NEVER_RUN "0 0 0\n" /* schedstat */

static bool read_stat(int proc_fd, const char *pid, struct sample_stat *out)
{
	char text[SYSTEM_FILE_SMALL];
	return read_of(proc_fd, pid, "stat", text, sizeof(text)) > 0 &&
	       process_usage_text_stat(text, out);
}

/*
 * It has one thread, which sleeps, has not run yet or is killed, and memory of its own:
 * process_usage_take() counts a child of vfork(2) with its parent, which is in state D, or was
 * until it was killed.
 */
static bool is_idle(int proc_fd, const char *pid, const char *schedstat, const char *status)
{
	struct sample_stat own, parent = { 0 };
	char parent_pid[24];
	if (!read_stat(proc_fd, pid, &own) || own.threads != 1)
		return false;
	if (own.state != 'S' && strcmp(schedstat, NEVER_RUN) != 0 &&
	    !process_usage_text_is_killed(status))
		return false;
	if (own.has_executed)
		return true;
	char of_parent[STATUS_MAX];
	(void)snprintf(parent_pid, sizeof(parent_pid), "%" PRIu64, own.parent_pid);
	return read_stat(proc_fd, parent_pid, &parent) && parent.state != 'D' &&
	       read_of(proc_fd, parent_pid, "status", of_parent, sizeof(of_parent)) > 0 &&
	       !process_usage_text_is_killed(of_parent);
}

/* 0 if the process has run meanwhile: schedstat counts how often it was given a CPU. */
static uint64_t take_one(int proc_fd, pid_t number, uint64_t *read_bytes)
{
	char pid[16];
	char before[SYSTEM_FILE_SMALL], after[SYSTEM_FILE_SMALL], rollup[SYSTEM_FILE_SMALL];
	char status[STATUS_MAX];
	(void)snprintf(pid, sizeof(pid), "%d", number);
	if (read_of(proc_fd, pid, "schedstat", before, sizeof(before)) <= 0 ||
	    read_of(proc_fd, pid, "status", status, sizeof(status)) <= 0 ||
	    !is_idle(proc_fd, pid, before, status) ||
	    read_of(proc_fd, pid, "smaps_rollup", rollup, sizeof(rollup)) <= 0 ||
	    read_of(proc_fd, pid, "schedstat", after, sizeof(after)) <= 0)
		return 0;
	*read_bytes += process_usage_text_memory(status);
	return strcmp(before, after) == 0 ? process_usage_text_shared(status, rollup) : 0;
}

uint64_t process_usage_shared(int proc_fd, const pid_t *pids, size_t count, uint64_t enough_bytes)
{
	uint64_t bytes = 0, read_bytes = 0;
	for (size_t i = 0; i < count && bytes < enough_bytes && read_bytes < SHARED_READ_MAX; i++)
		bytes += take_one(proc_fd, pids[i], &read_bytes);
	return bytes;
}
