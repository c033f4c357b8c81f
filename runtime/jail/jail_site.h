/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail_site - what a process finds once for the many jails that its children prepare.
 *
 * A plan may point to one (plan->site).  What it does not have, each jail finds itself.  A jail
 * with a cgroup parent of its own always does.  For all functions NULL is a site that has nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/kernel/cgroup/cgroup.h"

struct jail_site {
	/* Its parent_fd and path are those of the leaves' directory; parent_fd -1: not found. */
	struct cgroup cgroup;
	dev_t dev; /* of that directory */
	ino_t ino;
	/* Of the process that prepares the jail, as child_changed_signals(). */
	uint64_t changed_signals;
};
#define JAIL_SITE_NULL ((struct jail_site){ .cgroup = CGROUP_NULL, .changed_signals = UINT64_MAX })

/*
 * Finds the cgroup parent: where cgroup_find() finds it, unless a user manager makes one for each
 * jail.  `id` is cgroup_find()'s.
 */
void jail_site_find(struct jail_site *out, const char *id);
void jail_site_close(struct jail_site *s);

/* As cgroup_find(), in the site's parent.  False: it has none, or another directory is there. */
bool jail_site_cgroup(const struct jail_site *s, const char *id, struct cgroup *out);

/* As child_changed_signals(). */
uint64_t jail_site_signals(const struct jail_site *s);
