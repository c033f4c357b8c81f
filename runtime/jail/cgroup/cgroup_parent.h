/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_parent - a directory of the unified hierarchy in which leaves may be made.
 *
 * Each way to one is a row of cgroup_parents[] (cgroup_parent.c), tried in order.
 * A cgroup with controllers for its children holds no processes itself
 * (cgroups(7), "no internal processes"), so where the parent is the cgroup we are
 * in, all that is in it moves to a child, "cejail-supervisor", first.  Several
 * cejails do this at once: every step may find itself already done.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/jail/cgroup/cgroup_text.h"

/* What this process sees of its host's cgroups. */
struct cgroup_host {
	uid_t uid;
	struct cgroup_mount mount;
	struct cgroup_self self;
	char own_path[CGROUP_PATH_MAX]; /* our own cgroup's directory; "": not to be seen */
	bool at_real_root;              /* the mount's root is the root of all cgroups */
};
void cgroup_host_read(struct cgroup_host *out);

struct cgroup_parent {
	int dir_fd; /* -1: there is none */
	char path[CGROUP_PATH_MAX];
	const char *origin;                   /* the row's name */
	bool offers[CGROUP_CONTROLLER_COUNT]; /* children have the controller's files */
	char why_not[256]; /* something is missing: one sentence with the remedy */
};

/*
 * cgroup_parent_find - the first way that serves, made ready for a leaf.
 *
 * Succeeds with dir_fd -1 and why_not when none does; an `option` that can't serve is an error.
 * `id` names the scope that is asked of a user manager.
 */
int cgroup_parent_find(const struct cgroup_host *host, const char *option, const char *id,
		       struct cgroup_parent *out, struct cj_error *err);
void cgroup_parent_fini(struct cgroup_parent *parent);
#define auto_cgroup_parent __attribute__((cleanup(cgroup_parent_fini)))

/* Where root's own subtree is: "<mount>/cejail". */
bool cgroup_parent_own_path(const struct cgroup_host *host, char out[static CGROUP_PATH_MAX]);

/* For doctor: each way a parent can be found, whether it serves, and if not why. */
struct cgroup_parent_report {
	const char *name;
	bool serves;
	bool controllers[CGROUP_CONTROLLER_COUNT];
	char detail[256];
};
size_t cgroup_parent_reports(struct cgroup_parent_report *out, size_t max);
