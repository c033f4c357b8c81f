/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_mount - where cgroup v2 is mounted, and which of its cgroups a process is in. */
#pragma once

#include "runtime/kernel/cgroup/cgroup_text.h"

/* What cgroup_text_mount() finds in /proc/self/mountinfo, most often without reading that file. */
void cgroup_mount_find(struct cgroup_mount *out);

/*
 * cgroup_self_read - what /proc/PID/cgroup says, or /proc/self/cgroup with pid 0: 0 or -errno.
 * Where it can't be read, *out is in no cgroup.
 */
int cgroup_self_read(pid_t pid, struct cgroup_self *out);
