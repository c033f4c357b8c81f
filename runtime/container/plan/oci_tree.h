/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_tree - the plan of a container's file tree and kernel parameters.
 *
 * Decisions that the runtime specification leaves open:
 *  - A bind without a propagation option is rprivate.
 *  - "cgroup" mounts the container's cgroup v2 hierarchy, also on hosts with cgroup v1 or both; it
 *    is read-only unless the options have "rw".  Without a cgroup namespace a container may have
 *    "rw" only with CAP_SYS_ADMIN or with a user namespace; others have it read-only.
 *  - Without a mount at /dev, a tmpfs is mounted there first: no device node is made in an image.
 *  - With a bind at /dev nothing is made in it: each device of linux.devices must be there.
 *  - "rw" never takes away that the source's own mount is read-only.
 */
#pragma once

#include "rootfs/tree/sysctls.h"
#include "rootfs/tree/tree.h"
#include "runtime/base/arena.h"
#include "runtime/container/config/oci_config.h"

struct oci_tree {
	struct tree_spec tree;
	const struct sysctl *sysctls;
	size_t nsysctls;
	struct strings warnings; /* what is stricter than config.json asks for */
};

/*
 * oci_tree_plan - mounts, devices, links, masks and sysctls of config.json.
 *
 * Names of sysctls have dots, or slashes where a component has a dot: sysctl(8).
 * `config` must outlive *out, which lives in the arena.
 * Fails: EINVAL for options that contradict each other, for what a bind can't have, for a sysctl
 *        that is not of a namespace of the container's own, or has another value than hostname or
 *        domainname; the message has the mount's line.
 */
int oci_tree_plan(const struct oci_config *config, struct arena *a, struct oci_tree *out,
		  struct cj_error *err);

/* The part for the sysctls, in the file's order. */
int oci_tree_plan_sysctls(const struct oci_config *config, struct arena *a, struct oci_tree *out,
			  struct cj_error *err);
