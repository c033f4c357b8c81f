/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_subtree - making a cgroup one that gives its children controllers.  See
 * cgroups(7), "No internal processes" rule.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/files/system_file.h"
#include "runtime/jail/cgroup/cgroup_text.h"

/* A file of the cgroup that is a list of words. */
bool cgroup_subtree_read(int dir_fd, const char *name, char list[static SYSTEM_FILE_SMALL]);

/* Some of the processes in the cgroup itself (0: one of another pid namespace); more may follow. */
size_t cgroup_subtree_pids(int dir_fd, pid_t *out, size_t max);

/*
 * Gives on to the children what is to be had of memory, cpu and pids.  -EBUSY: processes are in
 * the way.  A controller that is not to be had is no error.
 */
int cgroup_subtree_enable(int dir_fd);

/*
 * Moves all processes of the cgroup into CGROUP_SUPERVISOR_LEAF.  -EXDEV: there are some of another
 * pid namespace; -EBUSY: there are always new ones; or what forbids it.
 */
int cgroup_subtree_vacate(int dir_fd);
