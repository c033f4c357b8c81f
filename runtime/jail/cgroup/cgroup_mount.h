/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_mount - where cgroup v2 is mounted. */
#pragma once

#include "runtime/jail/cgroup/cgroup_text.h"

/* What cgroup_text_mount() finds in /proc/self/mountinfo, most often without reading that file. */
void cgroup_mount_find(struct cgroup_mount *out);
