/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_scope - the systemd scope of a container, and its two children.  Acts.
 *
 *	SCOPE/runtime      create moves itself there, to be allowed to clone into the scope
 *	SCOPE/container    the container, with its limits
 *
 * The scope is delegated, so systemd writes to neither.  Root asks the system's manager; an
 * ordinary user, and root of a user namespace, ask the user's.
 */
#pragma once

#include "runtime/container/cgroup/container_cgroup.h"

#define CGROUP_SCOPE_CONTAINER "container"

/* Is there a manager?  `is_system`: the system's. */
bool cgroup_scope_is_there(bool is_system);

/*
 * Puts the unit and the slice into *out; `path` is "slice:prefix:name" or NULL.
 * Fails: EINVAL for another form; ENOENT where no systemd runs, with the remedy.
 */
int cgroup_scope_find(const char *path, const char *id, struct container_cgroup *out,
		      struct cj_error *err);

/*
 * Starts the scope around this process and moves it to the child "runtime".  record.path is the
 * scope's then, and *out_fd its directory, for the caller to close.
 */
int cgroup_scope_start(struct container_cgroup *c, int *out_fd, struct cj_error *err);

/* Moves a process into the container's cgroup, where only the manager may. */
int cgroup_scope_attach(const struct container_cgroup *c, pid_t pid, struct cj_error *err);

/* Waits until systemd has removed the empty scope, so that its name is free; best effort. */
void cgroup_scope_end(const struct container_cgroup *c, int scope_fd);
