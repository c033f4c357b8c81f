/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_tree - a cgroup and all below it: a container may have made cgroups of its own.
 *
 * Names below a container's cgroup are the container's.  Each is opened beneath its parent's
 * descriptor, never by path.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/files/system_file.h"

/*
 * The processes in the cgroup and below it.  One of another pid namespace is left out: it has no
 * number here.
 */
int cgroup_tree_pids(int dir_fd, struct arena *a, pid_t **out, size_t *out_count,
		     struct cj_error *err);

/* The number behind `key` in cgroup.events is not 0; false when the directory is removed. */
bool cgroup_tree_event(int dir_fd, const char *key);

/* Waits until no process is left in it and below, at most timeout_ms.  False: some are left. */
bool cgroup_tree_wait_empty(int dir_fd, unsigned timeout_ms);

/*
 * Writes cgroup.freeze and waits until cgroup.events says that it is done: -ETIMEDOUT, or another
 * -errno.
 */
int cgroup_tree_freeze(int dir_fd, bool frozen, unsigned timeout_ms);

/*
 * Sends the signal once to each process.  One that is forked meanwhile may miss it, unless the
 * cgroup is frozen.  Signals go through pidfds, so no other process gets one.
 */
int cgroup_tree_signal(int dir_fd, int signal, struct cj_error *err);

/*
 * SIGKILL to every process, by cgroup.kill, which no fork escapes; returns when none is left, after
 * timeout_ms at the latest.
 *
 * What is left then, or after the first moments, gets a signal of its own: see the source.  With
 * timeout_ms 0, call it again until the cgroup is empty.
 */
int cgroup_tree_kill(int dir_fd, unsigned timeout_ms, struct cj_error *err);

/*
 * Removes the cgroup `name` in parent_fd with all below it: 0, also if it is gone, or -errno.
 * -EBUSY: after timeout_ms one of them still contains a process.  Shortly after the last process
 * has left, the kernel may say so, too.
 */
int cgroup_tree_remove(int parent_fd, const char *name, unsigned timeout_ms);

/* --- the cgroup itself, as the parent of others: cgroups(7), "No internal processes" rule --- */

/* Reads a file of the cgroup that is a list of words. */
bool cgroup_tree_read(int dir_fd, const char *name, char list[static SYSTEM_FILE_SMALL]);

/* Some of the processes in the cgroup itself (0: one of another pid namespace); more may follow. */
size_t cgroup_tree_own_pids(int dir_fd, pid_t *out, size_t max);

/*
 * Enables memory, cpu and pids for the children.  -EBUSY: the cgroup contains processes.  A
 * controller that the cgroup does not have is no error.  out_enabled[] says of each whether the
 * children have it; NULL: the caller does not ask.
 */
int cgroup_tree_enable(int dir_fd, bool *out_enabled);

/*
 * Moves all processes of the cgroup into CGROUP_SUPERVISOR_LEAF.  -EXDEV: some are in another
 * pid namespace; -EBUSY: new ones keep appearing; or the errno of the move.
 */
int cgroup_tree_vacate(int dir_fd);
