/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_tree - who descends from whom in a jail, by the parents in its own /proc.
 *
 * All pids are those of the jail's pid namespace, and proc_fd is the jail's /proc.  The processes
 * may fork and end while they are read, so a list may lack some: only the reaper's own end proves
 * that an exec is empty.  The work per call is bounded.
 */
#pragma once

#define PROCESS_TREE_MAX 4096 /* processes that are looked at */

struct process_tree {
	pid_t pids[PROCESS_TREE_MAX]; /* the descendants, zombies included; not the root itself */
	size_t count;
	bool is_whole; /* every process could be read, and so could its parents */
	bool is_cut;   /* /proc shows more than PROCESS_TREE_MAX: some were not looked at */
};

/* The descendants of root_pid.  False: /proc can't be read. */
bool process_tree_list(int proc_fd, pid_t root_pid, struct process_tree *out);

/* The parent of a process; 0: there is no such process, or its parent is outside. */
pid_t process_tree_parent(int proc_fd, pid_t pid);

/* Has it begun to end?  Init ends when all processes of its namespace have: pid_namespaces(7). */
bool process_tree_is_ending(int proc_fd, pid_t pid);

/* Does pid descend from root_pid, at most PROCESS_TREE_MAX steps up? */
bool process_tree_is_below(int proc_fd, pid_t pid, pid_t root_pid);

/*
 * A signal to pid if it descends from root_pid.  The open directory in /proc names the process, and
 * no later one with the same number.  Returns 0, or a negative errno: -ESRCH.
 */
int process_tree_signal(int proc_fd, pid_t pid, pid_t root_pid, int signo);

/* SIGKILL to every descendant that is found.  Returns how many. */
size_t process_tree_kill(int proc_fd, pid_t root_pid);

/*
 * process_tree_start_ticks - when a process in our own /proc began, in clock ticks since boot.
 *
 * A pid and this time name one process for ever.  Follows: proc_pid_stat(5), starttime.
 * Returns 0 or a negative errno: -ENOENT or -ESRCH when there is no such process.
 */
int process_tree_start_ticks(pid_t pid, uint64_t *out);
