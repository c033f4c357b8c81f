/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_apply - enables controllers along a path and writes limits.  Acts.
 */
#pragma once

#include "runtime/container/cgroup/resource_writes.h"

/*
 * resource_enable - enable in this cgroup, for its children, the controllers that the writes need,
 * and of those that it has cpuset, cpu, io, memory and pids, for counters and updates.
 *
 * One that the writes need and that can't be enabled is an error with the limit and the remedy;
 * EBUSY: the cgroup contains processes itself.
 * `path` is for messages.
 */
int resource_enable(int dir_fd, const char *path, const struct resource_writes *writes,
		    struct cj_error *err);

/*
 * resource_apply - the writes, in their order, into the cgroup.
 * Fails: names the field, the value, the file and the remedy.
 */
int resource_apply(int dir_fd, const struct resource_writes *writes, struct cj_error *err);

/* The first write that a cgroup without controllers can't take; NULL: all are optional. */
const struct resource_write *resource_first_limit(const struct resource_writes *writes);

/* The remedy for a limit without its controller. */
int resource_hint(const char *controller, struct cj_error *err);

/* memory.limit is below what the cgroup uses now, and memory.checkBeforeUpdate asks to look. */
int resource_check_usage(int dir_fd, const struct oci_resources *resources, struct cj_error *err);
