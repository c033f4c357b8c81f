/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_subtree - enables controllers for the children of a cgroup: cgroups(7), "No internal
 * processes" rule.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/files/system_file.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

/* Reads a file of the cgroup that is a list of words. */
bool cgroup_subtree_read(int dir_fd, const char *name, char list[static SYSTEM_FILE_SMALL]);

/* Some of the processes in the cgroup itself (0: one of another pid namespace); more may follow. */
size_t cgroup_subtree_pids(int dir_fd, pid_t *out, size_t max);

/*
 * Enables memory, cpu and pids for the children.  -EBUSY: the cgroup contains processes.  A
 * controller that the cgroup does not have is no error.
 */
int cgroup_subtree_enable(int dir_fd);

/*
 * Moves all processes of the cgroup into CGROUP_SUPERVISOR_LEAF.  -EXDEV: some are in another
 * pid namespace; -EBUSY: new ones keep appearing; or the errno of the move.
 */
int cgroup_subtree_vacate(int dir_fd);
