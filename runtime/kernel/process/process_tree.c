/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descendants of a reaper, by the parents in /proc.
 *
 * A parent may end while the list is made, and its number may be used again.  A process is never
 * older than its parent, so a link to a younger one is not followed.  A signal goes through the
 * open directory of the process, after it was compared with the list.
 */
#include "runtime/kernel/process/process_tree.h"

#include <fcntl.h>
#include <signal.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/process_usage_text.h"

#define INIT_PID    1
#define STOP_ROUNDS 8 /* a fork bomb is stopped within a few: stopped processes keep their pids */
#define WALK_TRIES  3 /* a parent may end during a walk */

enum kinship { KIN_UNKNOWN, KIN_BELOW, KIN_OTHER };

struct tree_entry {
	pid_t pid, parent_pid;
	uint64_t start_ticks;
	enum kinship kin;
	bool is_dead; /* a zombie without living threads */
};

struct snapshot {
	struct tree_entry items[PROCESS_TREE_MAX]; /* by pid */
	size_t count;
	bool is_whole, is_cut;
};

static bool read_stat(int dir_fd, const char *name, struct sample_stat *out)
{
	char text[SYSTEM_FILE_SMALL];
	return system_file_read(dir_fd, name, text, sizeof(text)) > 0 &&
	       process_usage_text_stat(text, out);
}

static bool read_stat_of(int proc_fd, pid_t pid, struct sample_stat *out)
{
	char name[32];
	(void)snprintf(name, sizeof(name), "%d/stat", pid);
	return read_stat(proc_fd, name, out);
}

int process_tree_start_ticks(pid_t pid, uint64_t *out)
{
	char path[32], text[SYSTEM_FILE_SMALL];
	struct sample_stat stat;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	ssize_t size = system_file_read(AT_FDCWD, path, text, sizeof(text));
	if (size < 0)
		return (int)size;
	if (!process_usage_text_stat(text, &stat))
		return -EPROTO;
	*out = stat.start_ticks;
	return 0;
}

pid_t process_tree_parent(int proc_fd, pid_t pid)
{
	struct sample_stat stat;
	return read_stat_of(proc_fd, pid, &stat) ? (pid_t)stat.parent_pid : 0;
}

bool process_tree_is_ending(int proc_fd, pid_t pid)
{
	struct sample_stat stat;
	return read_stat_of(proc_fd, pid, &stat) && stat.is_ending;
}

static int open_process(int proc_fd, pid_t pid)
{
	char name[32];
	(void)snprintf(name, sizeof(name), "%d", pid);
	return openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool process_tree_is_below(int proc_fd, pid_t pid, pid_t root_pid)
{
	pid_t chain[PROCESS_TREE_MAX]; /* the pids from `pid` up to below root_pid */
	for (int try = 0; try < WALK_TRIES && root_pid > 0; try++) {
		size_t count = 0, i = 0;
		pid_t at = pid;
		while (at > INIT_PID && at != root_pid && count < PROCESS_TREE_MAX) {
			chain[count++] = at;
			at = process_tree_parent(proc_fd, at);
		}
		/* A parent that has ended meanwhile is the parent no more: if all are still so, no
		 * number was used again. */
		while (at == root_pid && i < count &&
		       process_tree_parent(proc_fd, chain[i]) ==
			   (i + 1 < count ? chain[i + 1] : root_pid))
			i++;
		if (at == root_pid && count > 0 && i == count)
			return true;
	}
	return false;
}

int process_tree_signal(int proc_fd, pid_t pid, pid_t root_pid, int signo)
{
	auto_fd int process_fd = open_process(proc_fd, pid);
	if (process_fd < 0 || !process_tree_is_below(proc_fd, pid, root_pid))
		return -ESRCH;
	return sys_pidfd_send_signal(process_fd, signo) < 0 ? -errno : 0;
}

/* The kernel lists them in the order of their numbers. */
static void add(struct snapshot *s, int proc_fd, pid_t pid)
{
	struct sample_stat stat;
	if (!read_stat_of(proc_fd, pid, &stat))
		return; /* it has ended; if it can't be read for another reason, its children are
			   without a parent */
	s->is_cut |= s->count == PROCESS_TREE_MAX;
	if (s->count == PROCESS_TREE_MAX || (s->count > 0 && s->items[s->count - 1].pid >= pid)) {
		s->is_whole = false;
		return;
	}
	s->items[s->count++] = (struct tree_entry){
		.pid = pid,
		.parent_pid = (pid_t)stat.parent_pid,
		.start_ticks = stat.start_ticks,
		.is_dead = (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1,
	};
}

static bool list_all(int proc_fd, struct snapshot *s)
{
	s->count = 0;
	s->is_whole = true;
	s->is_cut = false;
	auto_fd_dir struct fd_dir *dir = fd_open_dir(proc_fd, ".");
	if (!dir)
		return false;
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9') /* no other name begins so */
			add(s, proc_fd, (pid_t)strtol(e->d_name, NULL, 10));
	return true;
}

static int compare_pids(const void *key, const void *item)
{
	const pid_t *pid = key;
	const struct tree_entry *entry = item;
	return (*pid > entry->pid) - (*pid < entry->pid);
}

static struct tree_entry *find(struct snapshot *s, pid_t pid)
{
	return bsearch(&pid, s->items, s->count, sizeof(s->items[0]), compare_pids);
}

/* The parent in the list, unless its number was used again. */
static struct tree_entry *parent_of(struct snapshot *s, const struct tree_entry *e)
{
	struct tree_entry *parent = e->parent_pid > 0 ? find(s, e->parent_pid) : NULL;
	return parent && parent->start_ticks <= e->start_ticks ? parent : NULL;
}

/* Follows the parents until one is known, and notes the answer for all on the way. */
static void settle(struct snapshot *s, struct tree_entry *e)
{
	struct tree_entry *top = e;
	size_t steps = 0;
	while (top && top->kin == KIN_UNKNOWN && steps++ <= s->count)
		top = parent_of(s, top);
	s->is_whole &= top != NULL;
	enum kinship kin = top && top->kin != KIN_UNKNOWN ? top->kin : KIN_OTHER;
	for (; e && e->kin == KIN_UNKNOWN; e = parent_of(s, e))
		e->kin = kin;
}

/* NULL: no memory, or /proc can't be read.  Only descendants stay in it. */
static struct snapshot *take_below(int proc_fd, pid_t root_pid)
{
	auto_free struct snapshot *s = malloc(sizeof(*s));
	if (!s || !list_all(proc_fd, s))
		return NULL;
	struct tree_entry *root = find(s, root_pid), *init = find(s, INIT_PID);
	if (init)
		init->kin = KIN_OTHER;
	if (root)
		root->kin = KIN_BELOW;
	for (size_t i = 0; i < s->count; i++)
		settle(s, &s->items[i]);

	size_t kept = 0;
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].kin == KIN_BELOW && s->items[i].pid != root_pid)
			s->items[kept++] = s->items[i];
	s->count = kept;
	return take_ptr(s);
}

bool process_tree_list(int proc_fd, pid_t root_pid, struct process_tree *out)
{
	auto_free struct snapshot *s = take_below(proc_fd, root_pid);
	out->count = 0;
	out->is_whole = s && s->is_whole;
	out->is_cut = s && s->is_cut;
	for (size_t i = 0; s && i < s->count; i++)
		out->pids[out->count++] = s->items[i].pid;
	return s != NULL;
}

static void signal_entry(int proc_fd, const struct tree_entry *e, int signo)
{
	struct sample_stat now;
	auto_fd int process_fd = open_process(proc_fd, e->pid);
	if (process_fd >= 0 && read_stat(process_fd, "stat", &now) &&
	    now.start_ticks == e->start_ticks)
		(void)sys_pidfd_send_signal(process_fd, signo); /* gone already: as well */
}

/* Stops those that were not in the list before.  Returns how many. */
static size_t stop_new(int proc_fd, struct snapshot *now, struct snapshot *before)
{
	size_t count = 0;
	for (size_t i = 0; i < now->count; i++) {
		const struct tree_entry *old = before ? find(before, now->items[i].pid) : NULL;
		if (now->items[i].is_dead || (old && old->start_ticks == now->items[i].start_ticks))
			continue;
		signal_entry(proc_fd, &now->items[i], SIGSTOP);
		count++;
	}
	return count;
}

size_t process_tree_kill(int proc_fd, pid_t root_pid)
{
	auto_free struct snapshot *before = NULL;
	auto_free struct snapshot *now = take_below(proc_fd, root_pid);
	for (int i = 0; now && i < STOP_ROUNDS && stop_new(proc_fd, now, before) > 0; i++) {
		free(before);
		before = take_ptr(now);
		now = take_below(proc_fd, root_pid);
	}
	size_t living = 0;
	for (size_t i = 0; now && i < now->count; i++) {
		if (now->items[i].is_dead)
			continue;
		signal_entry(proc_fd, &now->items[i], SIGKILL);
		living++;
	}
	return living;
}
