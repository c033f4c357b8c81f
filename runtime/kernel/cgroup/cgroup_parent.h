/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_parent - a directory of the unified hierarchy in which leaves can be created.
 *
 * Each way to find one is a row of cgroup_parents[] (cgroup_parent.c), tried in order.  A cgroup
 * with controllers for its children may contain no process (cgroups(7), "no internal processes").
 * So when the parent is the cgroup of this process, all its processes first move to a child,
 * "cejail-supervisor".  Several cejails do this at once, so each step may be done already.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

/* What this process can see of the host's cgroups. */
struct cgroup_host {
	uid_t uid;
	struct cgroup_mount mount;
	struct cgroup_self self;
	char own_path[CGROUP_PATH_MAX]; /* our own cgroup's directory; "": not visible */
	bool at_real_root;              /* the mount's root is the root of all cgroups */
};
void cgroup_host_read(struct cgroup_host *out);

/*
 * cgroup_self_read - what /proc/PID/cgroup says, or /proc/self/cgroup with pid 0: 0 or -errno.
 * Where it can't be read, *out is in no cgroup.
 */
int cgroup_self_read(pid_t pid, struct cgroup_self *out);

struct cgroup_parent {
	int dir_fd; /* -1: there is none */
	char path[CGROUP_PATH_MAX];
	const char *origin;                   /* the row's name */
	bool offers[CGROUP_CONTROLLER_COUNT]; /* children have the controller's files */
	char why_not[256]; /* a controller is missing: one sentence with the remedy */
};

/*
 * cgroup_parent_find - the first parent that can be used, made ready for a leaf.
 *
 * Succeeds with dir_fd -1 and why_not when there is none; an `option` that can't be used is an
 * error.  `id` names the scope that a user manager is asked for.
 */
int cgroup_parent_find(const struct cgroup_host *host, const char *option, const char *id,
		       struct cgroup_parent *out, struct cj_error *err);
void cgroup_parent_fini(struct cgroup_parent *parent);
#define auto_cgroup_parent __attribute__((cleanup(cgroup_parent_fini)))

/*
 * cgroup_parent_claim - the user's manager creates the scope "cejail-ID.scope" around this process,
 * if it is from the manager that this process would get a parent.
 *
 * Afterwards this process and its children find the scope as a delegated parent.  A failure leaves
 * all as it is: each cgroup_parent_find() asks for itself and says why it got none.
 */
void cgroup_parent_claim(const struct cgroup_host *host, const char *id);

/* For doctor: each way to find a parent, whether it can be used, and if not why. */
struct cgroup_parent_report {
	const char *name;
	bool serves;
	bool controllers[CGROUP_CONTROLLER_COUNT];
	char detail[256];
};
size_t cgroup_parent_reports(struct cgroup_parent_report *out, size_t max);
